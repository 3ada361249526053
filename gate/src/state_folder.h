// The folder in which a gate keeps what it must not forget.
#pragma once

#include <string>

#include "kit/system/fd.h"
#include "leasehold/error.h"

namespace leasehold::gate {

struct StateFolder {
  std::string path;

  std::string ledger() const { return path + "/ledger"; }
  std::string new_ledger() const { return path + "/ledger.new"; }
  std::string lock() const { return path + "/lock"; }
  std::string control() const { return path + "/control"; }
};

// Held as long as it lives; the kernel gives it back when the process dies.
class [[nodiscard]] FolderLock {
 public:
  // Creates the folder if only its last part is missing. Fails with `busy` if another process has
  // it, `unavailable` if the folder cannot be used.
  [[nodiscard]] static Result<FolderLock> take(const StateFolder& folder);

 private:
  explicit FolderLock(kit::Fd file) : file_(std::move(file)) {}
  kit::Fd file_;
};

// Makes the folder and what is in it durable, as far as names go: whoever made them may have died
// before that.
[[nodiscard]] Status sync_found(const StateFolder& folder);

// Makes the folder's own entries durable: a file that was created or renamed.
[[nodiscard]] Status sync_folder(const std::string& path);

}  // namespace leasehold::gate
