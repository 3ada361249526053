#include "leasehold/read_write_lock.h"

#include <utility>

#include "kit/try.h"
#include "take.h"

namespace leasehold {
namespace {

template <class HeldLease>
Result<HeldLease> take_as(Mode mode, Client& client, const LockName& lock, AcquireOptions options) {
  options.mode = mode;
  return detail::take<HeldLease>(client, lock, std::move(options));
}

}  // namespace

ReadWriteLock::ReadWriteLock(Client client, LockName lock)
    : client_(std::move(client)), lock_(std::move(lock)) {}

Result<ReadLease> ReadWriteLock::read(AcquireOptions options) {
  return ReadLease(TRY(take_as<Lease>(Mode::shared(), client_, lock_, std::move(options))));
}
Result<FencedReadLease> ReadWriteLock::read_fenced(AcquireOptions options) {
  return FencedReadLease(
      TRY(take_as<FencedLease>(Mode::shared(), client_, lock_, std::move(options))));
}
Result<WriteLease> ReadWriteLock::write(AcquireOptions options) {
  return WriteLease(TRY(take_as<Lease>(Mode::exclusive(), client_, lock_, std::move(options))));
}
Result<FencedWriteLease> ReadWriteLock::write_fenced(AcquireOptions options) {
  return FencedWriteLease(
      TRY(take_as<FencedLease>(Mode::exclusive(), client_, lock_, std::move(options))));
}

}  // namespace leasehold
