#include "recorded_disk.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <fstream>
#include <stdexcept>

extern "C" {
int __real_openat(int, const char*, int, ...);
ssize_t __real_write(int, const void*, size_t);
int __real_fsync(int);
int __real_renameat(int, const char*, int, const char*);
int __real_linkat(int, const char*, int, const char*, int);
int __real_symlinkat(const char*, int, const char*);
int __real_mkdirat(int, const char*, mode_t);
int __real_unlinkat(int, const char*, int);
}

namespace leasehold::files {
namespace {

RecordedDisk* g_active = nullptr;  // the wrapped calls have no other way to it

[[noreturn]] void broken(const std::string& what) {
  throw std::runtime_error("the recorder cannot " + what);
}

struct stat status_of_fd(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) broken("look at a descriptor");
  return status;
}

std::string path_of(int fd) {
  return "/proc/self/fd/" + std::to_string(fd);
}

std::string content_of(int fd) {
  std::ifstream file(path_of(fd), std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string link_of(int fd) {
  std::array<char, PATH_MAX> target;
  const ssize_t size = readlinkat(fd, "", target.data(), target.size());
  if (size < 0) broken("read a link");
  return std::string(target.data(), static_cast<std::size_t>(size));
}

}  // namespace

RecordedDisk* RecordedDisk::active() {
  return g_active;
}

RecordedDisk::RecordedDisk(const std::filesystem::path& folder) {
  const detail::Fd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || g_active != nullptr) broken("begin");
  root_ = learn_fd(fd.get());
  scan(fd.get());
  begin_ = steps_.size();
  g_active = this;
}

RecordedDisk::~RecordedDisk() {
  stop();
}

void RecordedDisk::stop() {
  g_active = nullptr;
}

// What is there at the beginning is safe.
void RecordedDisk::scan(int fd) {
  std::vector<Change> step = all_of(fd);
  const std::vector<Change> found = step;
  step.push_back({Change::Kind::sync, status_of_fd(fd).st_ino});
  note(std::move(step));
  for (const Change& change : found) {
    if (change.kind != Change::Kind::name) continue;
    if (S_ISLNK(things_.at(change.target).mode)) continue;
    const detail::Fd inner(
        open((path_of(fd) + "/" + change.text).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    scan(inner.get());
  }
}

// Everything that is now in a file or folder.
std::vector<RecordedDisk::Change> RecordedDisk::all_of(int fd) {
  const struct stat status = status_of_fd(fd);
  if (!S_ISDIR(status.st_mode)) return {{Change::Kind::content, status.st_ino, content_of(fd)}};
  std::vector<Change> all;
  for (const auto& entry : std::filesystem::directory_iterator(path_of(fd))) {
    const std::string name = entry.path().filename();
    all.push_back({Change::Kind::name, status.st_ino, name, learn(fd, name.c_str())});
  }
  return all;
}

RecordedDisk::Node RecordedDisk::learn(int folder, const char* name) {
  const detail::Fd fd(__real_openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) broken("find " + std::string(name));
  return learn_fd(fd.get());
}

RecordedDisk::Node RecordedDisk::learn_fd(int fd) {
  const struct stat status = status_of_fd(fd);
  Thing& thing = things_[status.st_ino];
  if (thing.mode != 0) return status.st_ino;
  thing.mode = status.st_mode;
  thing.keep = detail::Fd(dup(fd));
  if (S_ISLNK(status.st_mode)) thing.link = link_of(fd);
  return status.st_ino;
}

void RecordedDisk::named(int folder, const char* name) {
  note({{Change::Kind::name, status_of_fd(folder).st_ino, name, learn(folder, name)}});
}

void RecordedDisk::unnamed(int folder, const char* name) {
  note({{Change::Kind::name, status_of_fd(folder).st_ino, name, 0}});
}

void RecordedDisk::renamed(int from, const char* old_name, int to, const char* new_name) {
  note({{Change::Kind::name, status_of_fd(to).st_ino, new_name, learn(to, new_name)},
        {Change::Kind::name, status_of_fd(from).st_ino, old_name, 0}});
}

void RecordedDisk::written(int file) {
  note({{Change::Kind::content, status_of_fd(file).st_ino, content_of(file)}});
}

bool RecordedDisk::sync_fails() {
  return ++syncs == fail_sync;
}

void RecordedDisk::synced(int fd, bool good) {
  std::vector<Change> step = all_of(fd);  // others may have changed it, unseen
  step.push_back({good ? Change::Kind::sync : Change::Kind::failed_sync, status_of_fd(fd).st_ino});
  note(std::move(step));
}

namespace {

template <class Value>
struct History {
  std::vector<Value> values;
  std::size_t durable = 0;  // of `values`, counted from 1; 0: not even there

  void add(Value value) {
    if (values.empty() || values.back() != value) values.push_back(std::move(value));
  }
  // What is found of it; nothing if it is gone.
  const Value* choose(Unsynced unsynced, Random& random) const {
    std::size_t last = durable;
    if (unsynced == Unsynced::all) last = values.size();
    if (unsynced == Unsynced::some) last += random.next() % (values.size() - durable + 1);
    return last == 0 ? nullptr : &values[last - 1];
  }
};

}  // namespace

void RecordedDisk::folder_after(std::size_t steps, Unsynced unsynced, Random& random,
                                const std::filesystem::path& to) const {
  std::map<Node, History<std::string>> contents;
  std::map<Node, std::map<std::string, History<Node>>> names;
  std::map<Node, bool> lost;
  for (std::size_t i = 0; i < begin_ + steps; ++i) {
    for (const Change& change : steps_[i]) {
      switch (change.kind) {
        case Change::Kind::name:
          names[change.node][change.text].add(change.target);
          break;
        case Change::Kind::content:
          contents[change.node].add(change.text);
          break;
        case Change::Kind::failed_sync:
          lost[change.node] = true;
          break;
        case Change::Kind::sync:
          for (auto& [name, history] : names[change.node]) history.durable = history.values.size();
          if (!lost[change.node])
            contents[change.node].durable = contents[change.node].values.size();
          break;
      }
    }
  }
  std::map<Node, std::filesystem::path> made;
  const auto make = [&](const auto& self, Node node, const std::filesystem::path& path) -> void {
    const Thing& thing = things_.at(node);
    if (S_ISLNK(thing.mode)) return std::filesystem::create_symlink(thing.link, path);
    if (S_ISREG(thing.mode) && made.contains(node)) {
      return std::filesystem::create_hard_link(made[node], path);
    }
    if (!made.emplace(node, path).second) return;  // a folder has one place
    if (S_ISREG(thing.mode)) {
      // Of a content that was not synced a part may have been written.
      const Unsynced how = unsynced == Unsynced::all ? Unsynced::none : unsynced;
      const std::string* content = contents[node].choose(how, random);
      std::ofstream(path, std::ios::binary) << (content == nullptr ? "" : *content);
      return;
    }
    std::filesystem::create_directories(path);
    for (const auto& [name, history] : names[node]) {
      const Node* target = history.choose(unsynced, random);
      if (target != nullptr && *target != 0) self(self, *target, path / name);
    }
  };
  make(make, root_, to);
}

}  // namespace leasehold::files

using leasehold::files::RecordedDisk;

extern "C" {

int __wrap_openat(int at, const char* name, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list rest;
    va_start(rest, flags);
    mode = va_arg(rest, mode_t);
    va_end(rest);
  }
  const int fd = __real_openat(at, name, flags, mode);
  if (fd >= 0 && (flags & O_CREAT) != 0 && RecordedDisk::active()) {
    RecordedDisk::active()->named(at, name);
  }
  return fd;
}

ssize_t __wrap_write(int fd, const void* data, size_t size) {
  const ssize_t count = __real_write(fd, data, size);
  if (count > 0 && RecordedDisk::active()) RecordedDisk::active()->written(fd);
  return count;
}

int __wrap_fsync(int fd) {
  if (!RecordedDisk::active()) return __real_fsync(fd);
  const bool fails = RecordedDisk::active()->sync_fails();
  RecordedDisk::active()->synced(fd, !fails);
  errno = EIO;
  return fails ? -1 : 0;
}

int __wrap_renameat(int from, const char* old_name, int to, const char* new_name) {
  const int result = __real_renameat(from, old_name, to, new_name);
  if (result == 0 && RecordedDisk::active()) {
    RecordedDisk::active()->renamed(from, old_name, to, new_name);
  }
  return result;
}

int __wrap_linkat(int from, const char* old_name, int to, const char* new_name, int flags) {
  const int result = __real_linkat(from, old_name, to, new_name, flags);
  if (result == 0 && RecordedDisk::active()) RecordedDisk::active()->named(to, new_name);
  return result;
}

int __wrap_symlinkat(const char* target, int at, const char* name) {
  const int result = __real_symlinkat(target, at, name);
  if (result == 0 && RecordedDisk::active()) RecordedDisk::active()->named(at, name);
  return result;
}

int __wrap_mkdirat(int at, const char* name, mode_t mode) {
  const int result = __real_mkdirat(at, name, mode);
  if (result == 0 && RecordedDisk::active()) RecordedDisk::active()->named(at, name);
  return result;
}

int __wrap_unlinkat(int at, const char* name, int flags) {
  const int result = __real_unlinkat(at, name, flags);
  if (result == 0 && RecordedDisk::active()) RecordedDisk::active()->unnamed(at, name);
  return result;
}
}
