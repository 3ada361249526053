#include "store_base/mode_conflict.h"

#include "kit/text/visible_text.h"

namespace leasehold {
namespace {

std::string use_of(const LockName& lock, Mode used) {
  const std::string subject = "lock " + kit::in_quotes(lock.str());
  if (!used.is_permit()) return subject + " is in use without permits (" + to_string(used) + ")";
  return subject + " has " + std::to_string(used.permits()) +
         (used.permits() == 1 ? " permit" : " permits");
}

}  // namespace

Error mode_conflict(const LockName& lock, Mode asked, Mode used, bool set) {
  return Error(ErrorCode::invalid, use_of(lock, used) +
                                       (set ? ", which its operator has set" : "") + ", and " +
                                       to_string(asked) + " was asked for");
}

Error in_use_without_permits(const LockName& lock, Mode used) {
  return Error(ErrorCode::invalid, use_of(lock, used) + "; permits can be set when it is free");
}

}  // namespace leasehold
