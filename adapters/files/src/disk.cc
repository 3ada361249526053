#include "disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>

#include "kit/try.h"

namespace leasehold::files {
namespace {

constexpr std::size_t kChunk = 1 << 16;

const char* meaning_of(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return ": the disk is full";
    case EFBIG:
      return ": the file would be larger than this process or filesystem allows";
    case EROFS:
      return ": the filesystem is read-only";
    case EACCES:
    case EPERM:
      return ": not permitted";
    case ENOENT:
      return ": it is not there";
    case ELOOP:
      return ": it is a symbolic link, which the fence does not follow";
    case ENOTDIR:
      return ": it is not a folder of its own";
    case EXDEV:
      return ": it is on another filesystem, or in a lower layer of an overlay";
    default:
      return "";
  }
}

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

// A descriptor of its own: reading the names moves its position.
std::unique_ptr<DIR, CloseFolder> reader_of(int folder) {
  const int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) return nullptr;
  DIR* reader = fdopendir(own);
  if (reader == nullptr) close(own);
  return std::unique_ptr<DIR, CloseFolder>(reader);
}

Result<std::size_t> read_some(int fd, char* into, std::size_t size, const std::string& what) {
  for (;;) {
    const ssize_t count = read(fd, into, size);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR) return fail(disk_error(what, errno));
  }
}

Result<std::size_t> read_fully(int fd, char* into, std::size_t size, const std::string& what) {
  std::size_t filled = 0;
  while (filled < size) {
    const auto count = read_some(fd, into + filled, size - filled, what);
    if (!count) return count;
    if (*count == 0) break;
    filled += *count;
  }
  return filled;
}

// What a replacement keeps. Labels and capabilities are the system's to give.
bool is_kept(std::string_view attribute) {
  return attribute.starts_with("user.") || attribute == "system.posix_acl_access" ||
         attribute == "system.posix_acl_default";
}

Result<std::string> attribute_names(int fd, const std::string& what) {
  for (;;) {
    const ssize_t size = flistxattr(fd, nullptr, 0);
    if (size < 0 && errno == ENOTSUP) return std::string();
    if (size < 0) return fail(disk_error(what, errno));
    std::string names(static_cast<std::size_t>(size), '\0');
    const ssize_t got = flistxattr(fd, names.data(), names.size());
    if (got < 0 && errno == ERANGE) continue;
    if (got < 0) return fail(disk_error(what, errno));
    names.resize(static_cast<std::size_t>(got));
    return names;
  }
}

Status copy_attribute(int from, int to, const char* name, const std::string& what) {
  std::string value(XATTR_SIZE_MAX, '\0');
  const ssize_t size = fgetxattr(from, name, value.data(), value.size());
  if (size < 0 && errno == ENODATA) return {};
  if (size < 0) return fail(disk_error(what, errno));
  if (fsetxattr(to, name, value.data(), static_cast<std::size_t>(size), 0) == 0) return {};
  return fail(disk_error(what, errno));
}

Status copy_extended_attributes(int from, int to, const std::string& what) {
  const auto names = TRY(attribute_names(from, what));
  for (std::size_t at = 0; at < names.size();) {
    const char* name = names.data() + at;
    at += std::strlen(name) + 1;
    if (!is_kept(name)) continue;
    TRY(copy_attribute(from, to, name, what));
  }
  return {};
}

}  // namespace

Error disk_error(const std::string& what, int error) {
  const ErrorCode code = error == ENAMETOOLONG ? ErrorCode::invalid : ErrorCode::unavailable;
  return Error(code, what + meaning_of(error), std::strerror(error));
}

Result<Fd> open_folder(int at, const std::string& name, const std::string& what) {
  Fd folder(openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder) return fail(disk_error(what, errno));
  return folder;
}

Result<Fd> open_file(int at, const std::string& name, const std::string& what) {
  Fd file(openat(at, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) return fail(disk_error(what, errno));
  const auto status = TRY(status_of(file.get(), what));
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorCode::unavailable, what + ": it is not a regular file");
  }
  return file;
}

Result<struct stat> status_of(int fd, const std::string& what) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return fail(disk_error(what, errno));
  return status;
}

Result<std::optional<struct stat>> status_at(int at, const std::string& name,
                                             const std::string& what) {
  struct stat status {};
  if (fstatat(at, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) return status;
  if (errno == ENOENT) return std::nullopt;
  return fail(disk_error(what, errno));
}

bool same_file(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

Result<std::string> read_whole(int fd, const std::string& what) {
  std::string content;
  std::array<char, kChunk> chunk;
  for (;;) {
    const auto count = TRY(read_some(fd, chunk.data(), chunk.size(), what));
    if (count == 0) return content;
    content.append(chunk.data(), count);
  }
}

Result<bool> same_content(int one, int other, const std::string& what) {
  std::array<char, kChunk> a;
  std::array<char, kChunk> b;
  for (;;) {
    const auto size = TRY(read_fully(one, a.data(), a.size(), what));
    const auto other_size = TRY(read_fully(other, b.data(), b.size(), what));
    if (size != other_size || std::memcmp(a.data(), b.data(), size) != 0) return false;
    if (size < a.size()) return true;
  }
}

Result<std::string> target_of_link(int at, const std::string& name, const std::string& what) {
  std::array<char, PATH_MAX> target;
  const ssize_t size = readlinkat(at, name.c_str(), target.data(), target.size());
  if (size < 0) return fail(disk_error(what, errno));
  return std::string(target.data(), static_cast<std::size_t>(size));
}

Status write_whole(int fd, std::string_view content, const std::string& what) {
  while (!content.empty()) {
    const ssize_t count = write(fd, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(disk_error(what, errno));
    content.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Status write_file(int at, const std::string& name, mode_t mode, std::string_view content,
                  const std::string& what) {
  // Not over what may be there: that could be a link to something else.
  if (unlinkat(at, name.c_str(), 0) != 0 && errno != ENOENT) return fail(disk_error(what, errno));
  const Fd file(
      openat(at, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!file) return fail(disk_error(what, errno));
  if (fchmod(file.get(), mode) != 0) return fail(disk_error(what, errno));
  TRY(write_whole(file.get(), content, what));
  return sync(file.get(), what);
}

Status sync(int fd, const std::string& what) {
  if (fsync(fd) != 0) return fail(disk_error(what, errno));
  return {};
}

Status sync_tree(int folder, const std::string& what) {
  const auto names = TRY(names_in(folder, what));
  for (const std::string& name : names) {
    TRY(sync_entry(folder, name, what));
  }
  return sync(folder, what);
}

Status sync_entry(int folder, const std::string& name, const std::string& what) {
  const auto status = TRY(status_at(folder, name, what));
  if (!status) return {};
  if (S_ISDIR(status->st_mode)) {
    const auto inner = TRY(open_folder(folder, name, what));
    return sync_tree(inner.get(), what);
  }
  if (!S_ISREG(status->st_mode)) return {};
  const auto file = TRY(open_file(folder, name, what));
  return sync(file.get(), what);
}

Result<std::vector<std::string>> names_in(int folder, const std::string& what) {
  const auto reader = reader_of(folder);
  if (!reader) return fail(disk_error(what, errno));
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(reader.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
    errno = 0;
  }
  if (errno != 0) return fail(disk_error(what, errno));
  return names;
}

void remove_tree(int at, const std::string& name) {
  if (unlinkat(at, name.c_str(), 0) == 0 || errno == ENOENT) return;
  if (const auto folder = open_folder(at, name, "cannot open a leftover")) {
    (void)fchmod(folder->get(), 0700);  // it may be closed to its own owner
    if (const auto names = names_in(folder->get(), "cannot read a leftover")) {
      for (const std::string& inner : *names) remove_tree(folder->get(), inner);
    }
  }
  unlinkat(at, name.c_str(), AT_REMOVEDIR);
}

Status copy_attributes(int from, int to, const std::string& what) {
  const auto wanted = TRY(status_of(from, what));
  const auto now = TRY(status_of(to, what));
  const bool same_owner = wanted.st_uid == now.st_uid && wanted.st_gid == now.st_gid;
  if (!same_owner && fchown(to, wanted.st_uid, wanted.st_gid) != 0) {
    return fail(disk_error(what + ", because it belongs to another user or group", errno));
  }
  TRY(copy_extended_attributes(from, to, what));
  if (fchmod(to, wanted.st_mode & 07777) != 0) return fail(disk_error(what, errno));
  return {};
}

}  // namespace leasehold::files
