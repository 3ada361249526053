#include "leasehold/rate_limit.h"

#include <utility>

#include "kept_turns.h"
#include "kit/try.h"
#include "leasehold/ttl.h"

namespace leasehold {

Result<RateLimit> RateLimit::of(Client client, std::string_view lock, Rate rate) {
  auto name = TRY(LockName::parse(lock));
  TRY(Mode::permit_of(rate.count).check());
  if (!Ttl::of(rate.interval)) {
    return fail(ErrorCode::invalid, "the interval of a rate must be 100 ms to 24 h, not " +
                                        std::to_string(rate.interval.count()) + " ms");
  }
  const StoreTraits& store = client.store();
  if (!store.modes) {
    return fail(error_at(store.address, Error(ErrorCode::unsupported,
                                              "this store has no permits, which a rate needs: " +
                                                  store.why_no_modes)));
  }
  return RateLimit(std::move(client), std::move(name), rate);
}

RateLimit::RateLimit(Client client, LockName lock, Rate rate)
    : client_(std::move(client)),
      lock_(std::move(lock)),
      rate_(rate),
      kept_(std::make_shared<detail::KeptTurns>()) {}

// Whatever becomes of the release, the permit lasts for its TTL, which is the interval.
Status RateLimit::take_turn(AcquireOptions options) {
  options.mode = Mode::permit_of(rate_.count);
  options.ttl = rate_.interval;
  const Millis timeout = options.store_timeout;
  auto lease = TRY(client_.acquire(lock_, std::move(options)));
  if (!client_.store().keeps_after_release) return kept_->keep(std::move(lease), rate_.interval);
  (void)lease.release_after(rate_.interval, timeout);
  return {};
}

}  // namespace leasehold
