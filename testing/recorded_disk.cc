#include "testing/recorded_disk.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <fstream>
#include <sstream>
#include <stdexcept>

extern "C" {
int __real_open(const char*, int, ...);
int __real_openat(int, const char*, int, ...);
ssize_t __real_write(int, const void*, size_t);
ssize_t __real_pwrite(int, const void*, size_t, off_t);
int __real_fsync(int);
int __real_fdatasync(int);
int __real_rename(const char*, const char*);
int __real_mkdir(const char*, mode_t);
int __real_renameat(int, const char*, int, const char*);
int __real_linkat(int, const char*, int, const char*, int);
int __real_symlinkat(const char*, int, const char*);
int __real_mkdirat(int, const char*, mode_t);
int __real_unlink(const char*);
int __real_unlinkat(int, const char*, int);
}

namespace leasehold::testing {
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
  std::ostringstream content;
  content << std::ifstream(path_of(fd), std::ios::binary).rdbuf();
  return std::move(content).str();
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
  const leasehold::kit::Fd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
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
    const leasehold::kit::Fd inner(
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
  const leasehold::kit::Fd fd(__real_openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) broken("find " + std::string(name));
  return learn_fd(fd.get());
}

RecordedDisk::Node RecordedDisk::learn_fd(int fd) {
  const struct stat status = status_of_fd(fd);
  Thing& thing = things_[status.st_ino];
  if (thing.mode != 0) return status.st_ino;
  thing.mode = status.st_mode;
  thing.keep = leasehold::kit::Fd(dup(fd));
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

}  // namespace leasehold::testing

using leasehold::testing::RecordedDisk;

namespace {

bool dead() {
  if (!RecordedDisk::active() || !RecordedDisk::active()->dead()) return false;
  errno = EIO;
  return true;
}

// Of a call without one: what it names is in this folder.
class Parent {
 public:
  explicit Parent(const std::filesystem::path& path)
      : folder_(__real_open(path.has_parent_path() ? path.parent_path().c_str() : ".",
                            O_PATH | O_DIRECTORY | O_CLOEXEC)),
        name_(path.filename()) {}
  int fd() const { return folder_.get(); }
  const char* name() const { return name_.c_str(); }

 private:
  leasehold::kit::Fd folder_;
  std::string name_;
};

int opened(int fd, int at, const char* name, int flags) {
  if (fd < 0 || !RecordedDisk::active()) return fd;
  if ((flags & O_CREAT) != 0) RecordedDisk::active()->named(at, name);
  if ((flags & O_TRUNC) != 0) RecordedDisk::active()->written(fd);
  return fd;
}

int sync(int fd, int (*really)(int)) {
  if (!RecordedDisk::active()) return really(fd);
  if (dead()) return -1;
  const bool fails = RecordedDisk::active()->sync_fails();
  RecordedDisk::active()->synced(fd, !fails);
  errno = EIO;
  return fails ? -1 : 0;
}

ssize_t written(int fd, ssize_t count) {
  if (count > 0 && RecordedDisk::active()) RecordedDisk::active()->written(fd);
  return count;
}

int named(int result, int at, const char* name) {
  if (result == 0 && RecordedDisk::active()) RecordedDisk::active()->named(at, name);
  return result;
}

int unnamed(int result, int at, const char* name) {
  if (result == 0 && RecordedDisk::active()) RecordedDisk::active()->unnamed(at, name);
  return result;
}

int renamed(int result, int from, const char* old_name, int to, const char* new_name) {
  if (result == 0 && RecordedDisk::active()) {
    RecordedDisk::active()->renamed(from, old_name, to, new_name);
  }
  return result;
}

mode_t mode_in(int flags, va_list rest) {
  return (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
}

}  // namespace

extern "C" {

int __wrap_openat(int at, const char* name, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_in(flags, rest);
  va_end(rest);
  if ((flags & O_CREAT) != 0 && dead()) return -1;
  return opened(__real_openat(at, name, flags, mode), at, name, flags);
}

int __wrap_open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_in(flags, rest);
  va_end(rest);
  if ((flags & O_CREAT) != 0 && dead()) return -1;
  if ((flags & O_CREAT) == 0) return __real_open(path, flags, mode);
  const Parent parent(path);
  return opened(__real_open(path, flags, mode), parent.fd(), parent.name(), flags);
}

ssize_t __wrap_write(int fd, const void* data, size_t size) {
  return dead() ? -1 : written(fd, __real_write(fd, data, size));
}

ssize_t __wrap_pwrite(int fd, const void* data, size_t size, off_t at) {
  return dead() ? -1 : written(fd, __real_pwrite(fd, data, size, at));
}

int __wrap_fsync(int fd) {
  return sync(fd, __real_fsync);
}

int __wrap_fdatasync(int fd) {
  return sync(fd, __real_fdatasync);
}

int __wrap_renameat(int from, const char* old_name, int to, const char* new_name) {
  if (dead()) return -1;
  return renamed(__real_renameat(from, old_name, to, new_name), from, old_name, to, new_name);
}

int __wrap_rename(const char* old_path, const char* new_path) {
  if (dead()) return -1;
  const Parent from(old_path);
  const Parent to(new_path);
  return renamed(__real_rename(old_path, new_path), from.fd(), from.name(), to.fd(), to.name());
}

int __wrap_linkat(int from, const char* old_name, int to, const char* new_name, int flags) {
  return dead() ? -1 : named(__real_linkat(from, old_name, to, new_name, flags), to, new_name);
}

int __wrap_symlinkat(const char* target, int at, const char* name) {
  return dead() ? -1 : named(__real_symlinkat(target, at, name), at, name);
}

int __wrap_mkdirat(int at, const char* name, mode_t mode) {
  return dead() ? -1 : named(__real_mkdirat(at, name, mode), at, name);
}

int __wrap_mkdir(const char* path, mode_t mode) {
  if (dead()) return -1;
  const Parent parent(path);
  return named(__real_mkdir(path, mode), parent.fd(), parent.name());
}

int __wrap_unlink(const char* path) {
  if (dead()) return -1;
  const Parent parent(path);
  return unnamed(__real_unlink(path), parent.fd(), parent.name());
}

int __wrap_unlinkat(int at, const char* name, int flags) {
  return dead() ? -1 : unnamed(__real_unlinkat(at, name, flags), at, name);
}
}
