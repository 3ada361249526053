#include "settings.h"

namespace leasehold::simulation {
namespace {

// Each world has some kinds of fault and not others: a kind that is always there can hide another.
int sometimes(Chance& chance, int least, int most) {
  return chance.one_in(4) ? 0 : static_cast<int>(chance.between(least, most));
}

LockUse some_use(Chance& chance) {
  switch (chance.below(3)) {
    case 0:
      return {};
    case 1:
      return {.readers = static_cast<int>(chance.between(200, 900))};
    default:
      return {.permits = chance.between(1, 4)};
  }
}

}  // namespace

Settings settings_of(std::uint64_t seed) {
  Chance chance(seed ^ 0x5e771465);
  Settings it;
  it.queues = chance.one_in(2);
  it.clients = static_cast<int>(chance.between(2, 6));
  it.workers = static_cast<int>(chance.between(1, 4));
  it.locks = static_cast<int>(chance.between(1, Settings::kMostLocks));
  switch (chance.below(4)) {
    case 0:
      it.shortest_ttl = Millis(100);
      it.longest_ttl = Millis(600);
      break;
    case 1:
      it.shortest_ttl = Millis(500);
      it.longest_ttl = Millis(3'000);
      break;
    case 2:
      it.shortest_ttl = Millis(5'000);
      it.longest_ttl = Millis(20'000);
      break;
    default:
      it.shortest_ttl = Millis(100);
      it.longest_ttl = Millis(6'000);
      it.short_beside_long = true;
      break;
  }
  if (chance.one_in(3)) it.grid = 10 * kMillisecond;
  constexpr std::int64_t kFirstTokens[] = {0, (std::int64_t{1} << 32) - 40,
                                           (std::int64_t{1} << 53) - 40, std::int64_t{1} << 62};
  it.first_token = kFirstTokens[chance.below(4)];
  constexpr Time kDelays[] = {500 * kMillisecond, 3 * kSecond, 90 * kSecond};
  it.most_delay = kDelays[chance.below(3)];
  it.lost = sometimes(chance, 5, 150);
  it.repeated = sometimes(chance, 5, 100);
  it.unavailable = sometimes(chance, 5, 100);
  it.timers_late = sometimes(chance, 5, 100);
  it.pauses = sometimes(chance, 1, 10);
  it.crashes = sometimes(chance, 1, 4);
  it.store_crashes = sometimes(chance, 1, 4);
  it.store_pauses = sometimes(chance, 1, 4);
  it.clock_steps = sometimes(chance, 1, 4);
  it.drifts = sometimes(chance, 1, 4);
  it.cuts = sometimes(chance, 1, 6);
  it.forgeries = sometimes(chance, 1, 6);
  it.forced = chance.one_in(4) ? 1 : 0;
  it.careless = sometimes(chance, 50, 600);
  it.tells_ended = chance.one_in(2);
  it.late_confirms = sometimes(chance, 50, 500);
  it.sweeps = sometimes(chance, 1, 4);
  const bool exclusive_only = chance.one_in(3);
  for (LockUse& use : it.uses) {
    if (!exclusive_only) use = some_use(chance);
  }
  it.together = chance.one_in(2);
  return it;
}

}  // namespace leasehold::simulation
