#include "leasehold/single_flight.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "kit/try.h"
#include "leasehold/run_while_held.h"

namespace leasehold {
namespace {

// Above 0, at most 1.
double part_of_one(Random& random) {
  return std::ldexp(static_cast<double>((random.next() >> 11U) + 1), -53);
}

Fetched as_it_is(CachedValue seen) {
  const bool fresh = seen.fresh_for > Millis(0);
  return {std::move(seen.value), fresh ? Fetched::From::cache : Fetched::From::stale};
}

}  // namespace

SingleFlight::SingleFlight(Client client, ValueCache& cache, const Clock& clock, Random& random)
    : client_(std::move(client)), cache_(cache), clock_(clock), random_(random) {}

Result<Fetched> SingleFlight::fetch(const LockName& key, const Compute& compute,
                                    const FetchOptions& options) {
  const BootTime until = BootClock::now() + options.lock.wait;
  RunOptions run{.acquire = options.lock};
  run.acquire.mode = Mode::exclusive();
  run.acquire.wait = Millis(0);
  auto seen = TRY(cache_.get(key.str()));
  if (seen && !is_due(*seen, options.eagerness)) return as_it_is(std::move(*seen));
  const auto work = [&](const std::stop_token& stop) {
    return compute_alone(key, seen, compute, options, stop);
  };
  auto ran = run_while_held(client_, key, run, work);
  if (!ran && seen) return as_it_is(std::move(*seen));
  if (!ran && ran.error().code == ErrorCode::busy) {
    TRY(wait_for_other(key, options.lock));
    seen = TRY(cache_.get(key.str()));
    if (seen) return as_it_is(std::move(*seen));
    run.acquire.wait = std::max(Millis(1), std::chrono::ceil<Millis>(until - BootClock::now()));
    ran = run_while_held(client_, key, run, work);
  }
  if (!ran) return fail(std::move(ran.error()));
  return std::move(ran->result);
}

// Optimal probabilistic cache stampede prevention (Vattani, Chierichetti, Lowenstein 2015).
bool SingleFlight::is_due(const CachedValue& seen, double eagerness) const {
  if (seen.fresh_for <= Millis(0)) return true;
  const double early = static_cast<double>(seen.took.count()) * eagerness;
  return -std::log(part_of_one(random_)) * early >= static_cast<double>(seen.fresh_for.count());
}

// Unless somebody else has since `seen` was.
Result<Fetched> SingleFlight::compute_alone(const LockName& key,
                                            const std::optional<CachedValue>& seen,
                                            const Compute& compute, const FetchOptions& options,
                                            const std::stop_token& stop) {
  auto now = TRY(cache_.get(key.str()));
  if (now && now->fresh_for > (seen ? std::max(seen->fresh_for, Millis(0)) : Millis(0))) {
    return as_it_is(std::move(*now));
  }
  const BootTime began = clock_.now();
  auto value = TRY(compute(stop));
  const auto took = std::chrono::ceil<Millis>(clock_.now() - began);
  TRY(cache_.put(key.str(), {value, options.fresh_for, took}));
  return Fetched{std::move(value), Fetched::From::computed};
}

// Where it can be, beside the others who wait: they all come when the one that computes has gone.
Status SingleFlight::wait_for_other(const LockName& key, AcquireOptions options) {
  options.mode = client_.store().modes ? Mode::shared() : Mode::exclusive();
  TRY(client_.acquire(key, std::move(options)));
  return {};
}

}  // namespace leasehold
