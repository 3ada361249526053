#include "disk.h"

#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <new>
#include <string_view>
#include <utility>

namespace leasehold::sqlite::testing {
namespace {

using Step = Disk::Step;

// SQLite allocates szOsFile bytes for this; the real file's bytes come behind it.
struct File {
  sqlite3_file base;
  Disk* disk;
  const char* path;  // SQLite keeps it alive as long as the file; null for temporary files
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};
File& of(sqlite3_file* file) {
  return *reinterpret_cast<File*>(file);
}

void note(File& file, Step::Kind kind, std::int64_t offset = 0, std::vector<char> data = {}) {
  if (!file.disk->record || file.path == nullptr) return;
  file.disk->steps_.push_back({kind, file.path, offset, std::move(data)});
}

int answer(File& file, Step::Kind kind) {
  return file.path == nullptr ? SQLITE_OK : file.disk->answer_to(kind, file.path);
}

int on_write(sqlite3_file* it, const void* data, int size, sqlite3_int64 offset) {
  File& file = of(it);
  const std::string_view path = file.path == nullptr ? "" : file.path;
  if (file.disk->fail_write != 0 && path.ends_with(file.disk->fail_write_of)) {
    return file.disk->fail_write;
  }
  if (const int code = answer(file, Step::Kind::write); code != 0) return code;
  const auto* bytes = static_cast<const char*>(data);
  note(file, Step::Kind::write, offset, std::vector<char>(bytes, bytes + size));
  return file.real()->pMethods->xWrite(file.real(), data, size, offset);
}

int on_truncate(sqlite3_file* it, sqlite3_int64 size) {
  File& file = of(it);
  if (const int code = answer(file, Step::Kind::truncate); code != 0) return code;
  note(file, Step::Kind::truncate, size);
  return file.real()->pMethods->xTruncate(file.real(), size);
}

int on_sync(sqlite3_file* it, int flags) {
  File& file = of(it);
  const std::string_view path = file.path == nullptr ? "" : file.path;
  if (file.disk->fail_sync != 0 && path.ends_with(file.disk->fail_sync_of)) {
    note(file, Step::Kind::failed_sync);
    return file.disk->fail_sync;
  }
  if (const int code = answer(file, Step::Kind::sync); code != 0) return code;
  note(file, Step::Kind::sync);
  return file.disk->ignore_syncs ? SQLITE_OK : file.real()->pMethods->xSync(file.real(), flags);
}

template <auto Method>
struct Pass;
template <class... Args, int (*sqlite3_io_methods::*Method)(sqlite3_file*, Args...)>
struct Pass<Method> {
  static int call(sqlite3_file* it, Args... args) {
    return (of(it).real()->pMethods->*Method)(of(it).real(), args...);
  }
};

void on_barrier(sqlite3_file* it) {
  of(it).real()->pMethods->xShmBarrier(of(it).real());
}

const sqlite3_io_methods kMethods = {
    .iVersion = 2,
    .xClose = Pass<&sqlite3_io_methods::xClose>::call,
    .xRead = Pass<&sqlite3_io_methods::xRead>::call,
    .xWrite = on_write,
    .xTruncate = on_truncate,
    .xSync = on_sync,
    .xFileSize = Pass<&sqlite3_io_methods::xFileSize>::call,
    .xLock = Pass<&sqlite3_io_methods::xLock>::call,
    .xUnlock = Pass<&sqlite3_io_methods::xUnlock>::call,
    .xCheckReservedLock = Pass<&sqlite3_io_methods::xCheckReservedLock>::call,
    .xFileControl = Pass<&sqlite3_io_methods::xFileControl>::call,
    .xSectorSize = [](sqlite3_file*) { return 512; },           // else all pages of one are written
    .xDeviceCharacteristics = [](sqlite3_file*) { return 0; },  // a write may tear anywhere
    .xShmMap = Pass<&sqlite3_io_methods::xShmMap>::call,
    .xShmLock = Pass<&sqlite3_io_methods::xShmLock>::call,
    .xShmBarrier = on_barrier,
    .xShmUnmap = Pass<&sqlite3_io_methods::xShmUnmap>::call,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

void overwrite(std::vector<char>& content, std::int64_t offset, const char* data,
               std::size_t size) {
  const auto end = static_cast<std::size_t>(offset) + size;
  if (content.size() < end) content.resize(end);
  std::copy_n(data, size, content.begin() + offset);
}

void apply(std::vector<char>& content, const Step& step, std::size_t bytes) {
  if (step.kind == Step::Kind::truncate) content.resize(static_cast<std::size_t>(step.offset));
  if (step.kind == Step::Kind::write) overwrite(content, step.offset, step.data.data(), bytes);
}

void apply(std::vector<char>& content, const Step& step) {
  apply(content, step, step.data.size());
}

}  // namespace

struct Disk::Vfs {
  sqlite3_vfs base{};
  sqlite3_vfs* real = nullptr;
  Disk* disk = nullptr;
};

Disk::Disk() : vfs_(std::make_unique<Vfs>()) {
  vfs_->real = sqlite3_vfs_find(nullptr);
  vfs_->disk = this;
  vfs_->base = *vfs_->real;
  vfs_->base.szOsFile = static_cast<int>(sizeof(File)) + vfs_->real->szOsFile;
  vfs_->base.zName = "leasehold-test-disk";
  vfs_->base.pNext = nullptr;
  vfs_->base.xOpen = [](sqlite3_vfs* it, sqlite3_filename path, sqlite3_file* raw, int flags,
                        int* out_flags) {
    auto& vfs = *reinterpret_cast<Vfs*>(it);
    File* file = new (raw) File{{nullptr}, vfs.disk, path};
    const int code = vfs.real->xOpen(vfs.real, path, file->real(), flags, out_flags);
    if (file->real()->pMethods != nullptr) file->base.pMethods = &kMethods;
    return code;
  };
  vfs_->base.xDelete = [](sqlite3_vfs* it, const char* path, int sync_folder) {
    auto& vfs = *reinterpret_cast<Vfs*>(it);
    if (const int code = vfs.disk->answer_to(Step::Kind::remove, path); code != 0) return code;
    if (vfs.disk->record) vfs.disk->steps_.push_back({Step::Kind::remove, path});
    return vfs.real->xDelete(vfs.real, path, sync_folder);
  };
  sqlite3_vfs_register(&vfs_->base, 0);
}

Disk::~Disk() {
  sqlite3_vfs_unregister(&vfs_->base);
}

const char* Disk::name() const {
  return vfs_->base.zName;
}

int Disk::answer_to(Step::Kind kind, const char* file) {
  const bool struck = strike_ && strike_->step == steps_.size();
  if (struck && strike_->fault == Fault::kill) dead_ = true;
  if (dead_) return SQLITE_IOERR;
  if (!struck || kind != Step::Kind::sync) return SQLITE_OK;
  const bool lost = std::exchange(strike_, {})->fault == Fault::lost_sync;
  if (lost) steps_.push_back({Step::Kind::failed_sync, file});
  return SQLITE_IOERR_FSYNC;
}

void Disk::files_after(std::size_t steps, Unsynced unsynced, Random& random,
                       const std::string& from_folder, const std::string& to_folder) const {
  std::map<std::string, std::vector<char>> synced;
  std::map<std::string, std::vector<const Step*>> pending;
  for (std::size_t i = 0; i < steps; ++i) {
    const Step& step = steps_[i];
    if (step.kind == Step::Kind::remove) {
      synced.erase(step.file);
      pending.erase(step.file);
    } else if (step.kind == Step::Kind::failed_sync) {
      pending[step.file].clear();
    } else if (step.kind == Step::Kind::sync) {
      for (const Step* write : pending[step.file]) apply(synced[step.file], *write);
      pending[step.file].clear();
    } else {
      pending[step.file].push_back(&step);
    }
  }
  for (const auto& [path, writes] : pending) {
    auto& content = synced[path];
    if (unsynced == Unsynced::none) continue;
    for (const Step* write : writes) {
      const bool last = write == writes.back();
      if (unsynced == Unsynced::some && random.next() % 2 == 0) continue;
      if (unsynced == Unsynced::torn && last) {
        apply(content, *write, static_cast<std::size_t>(random.next()) % (write->data.size() + 1));
      } else {
        apply(content, *write);
      }
    }
  }
  std::filesystem::remove_all(to_folder);
  std::filesystem::create_directories(to_folder);
  for (const auto& [path, content] : synced) {
    const auto name = std::filesystem::path(path).lexically_relative(from_folder);
    std::ofstream(to_folder / name, std::ios::binary)
        .write(content.data(), static_cast<std::streamsize>(content.size()));
  }
}

}  // namespace leasehold::sqlite::testing
