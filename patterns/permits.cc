#include "leasehold/permits.h"

#include <string>
#include <utility>

#include "kit/try.h"
#include "take.h"

namespace leasehold {
namespace {

std::string name_of_slot(const LockName& lock, Slot slot) {
  return lock.str() + "#" + std::to_string(slot.number);
}

}  // namespace

ResourceName detail::resource_of_slot(const LockName& lock, Slot slot) {
  return ResourceName::parse(name_of_slot(lock, slot)).value();
}

// An operator may set more permits than were asked for here: the name has room for every slot.
Result<Permits> Permits::of(Client client, std::string_view lock, std::int64_t permits) {
  auto name = TRY(LockName::parse(lock));
  const Mode mode = Mode::permit_of(permits);
  TRY(mode.check());
  TRY(ResourceName::parse(name_of_slot(name, Slot{Mode::kMostPermits - 1})));
  return Permits(std::move(client), std::move(name), mode);
}

Permits::Permits(Client client, LockName lock, Mode mode)
    : client_(std::move(client)), lock_(std::move(lock)), mode_(mode) {}

Result<Permit> Permits::acquire(AcquireOptions options) {
  options.mode = mode_;
  return Permit(TRY(detail::take<Lease>(client_, lock_, std::move(options))));
}

Result<FencedPermit> Permits::acquire_fenced(AcquireOptions options) {
  options.mode = mode_;
  return FencedPermit(TRY(detail::take<FencedLease>(client_, lock_, std::move(options))));
}

}  // namespace leasehold
