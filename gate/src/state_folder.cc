#include "state_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "kit/try.h"

namespace leasehold::gate {
namespace {

std::string words_of(int error) {
  return std::generic_category().message(error);
}

std::string parent_of(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Where the parent may not be read, another user made the folder.
Status sync_parent(const std::string& path) {
  const std::string parent = parent_of(path);
  return access(parent.c_str(), R_OK) == 0 ? sync_folder(parent) : Status();
}

// Durable even if it was there: whoever made it may have died before that.
Status make_folder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail(ErrorCode::unavailable, "cannot create the state folder " + path, words_of(errno));
  }
  return sync_parent(path);
}

}  // namespace

Result<FolderLock> FolderLock::take(const StateFolder& folder) {
  TRY(make_folder(folder.path));
  kit::Fd file(open(folder.lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file) {
    return fail(ErrorCode::unavailable, "cannot write to the state folder " + folder.path,
                words_of(errno));
  }
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    return fail(ErrorCode::busy, "the state folder " + folder.path + " is in use by another gate");
  }
  return FolderLock(std::move(file));
}

Status sync_found(const StateFolder& folder) {
  TRY(sync_parent(folder.path));
  return sync_folder(folder.path);
}

Status sync_folder(const std::string& path) {
  const kit::Fd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder && fsync(folder.get()) == 0) return {};
  return fail(ErrorCode::unavailable, "cannot sync the folder " + path, words_of(errno));
}

}  // namespace leasehold::gate
