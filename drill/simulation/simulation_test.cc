#include "simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <ostream>

#include "drifting_clock.h"
#include "settings.h"

namespace leasehold::simulation {
namespace {

// ---- same seed, same trace -----------------------------------------------------------------

TEST(SimulationTest, SameSeedSameTrace) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Options options{.seed = seed, .steps = 20'000};
    const Outcome one = run(options);
    const Outcome other = run(options);
    EXPECT_EQ(one.trace, other.trace) << seed;
    EXPECT_EQ(one.steps, other.steps) << seed;
    EXPECT_GE(one.steps, options.steps);
  }
}

TEST(SimulationTest, OtherSeedOtherTrace) {
  EXPECT_NE(run({.seed = 1, .steps = 5'000}).trace, run({.seed = 2, .steps = 5'000}).trace);
}

TEST(SimulationTest, MutationShowsInTheTrace) {
  EXPECT_NE(run({.seed = 1, .steps = 20'000}).trace,
            run({.seed = 1, .steps = 20'000, .mutation = Mutation::random_token}).trace);
}

// ---- many seeds ----------------------------------------------------------------------------

constexpr std::uint64_t kSeedsInAShard = 100;
constexpr std::uint64_t kShards = 5;
constexpr std::uint64_t kSteps = LEASEHOLD_SIMULATION_STEPS;  // of each seed

// So many of a million steps, at the least.
struct Least {
  Fault fault;
  std::uint64_t per_million;
};
constexpr Least kLeast[] = {
    {Fault::request_lost, 5000},
    {Fault::reply_lost, 2000},
    {Fault::connection_broken, 3000},
    {Fault::duplicate, 1000},
    {Fault::reordered, 3000},
    {Fault::delayed, 1000},
    {Fault::executed_late, 2000},
    {Fault::unavailable, 3000},
    {Fault::disconnected, 500},
    {Fault::nudge_lost, 500},
    {Fault::timer_late, 1500},
    {Fault::client_paused, 500},
    {Fault::paused_holder, 50},
    {Fault::client_crashed, 300},
    {Fault::store_crashed, 300},
    {Fault::crashed_after_commit, 5},
    {Fault::killed_in_sync, 50},
    {Fault::power_cut, 50},
    {Fault::store_paused, 300},
    {Fault::wall_clock_set, 300},
    {Fault::drift_changed, 300},
    {Fault::cancelled, 300},
    {Fault::forged, 300},
    {Fault::forced_release, 20},
    {Fault::lost_short_lease, 10},
    {Fault::late_confirm, 100},
    {Fault::renewing_stopped, 300},
    {Fault::renewing_resumed, 50},
    {Fault::gone_together, 500},
    {Fault::left_the_line, 20},
    {Fault::swept, 20},
};
static_assert(std::size(kLeast) == kFaults, "every kind of fault must have happened");

class Seeds : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(Seeds, AreClean) {
  FaultCounts faults;
  std::uint64_t steps = 0;
  std::uint64_t grants = 0;
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;
  std::uint64_t overlaps = 0;
  std::uint64_t granted_beside = 0;
  const std::uint64_t first = 1 + GetParam() * kSeedsInAShard;
  for (std::uint64_t seed = first; seed < first + kSeedsInAShard; ++seed) {
    const Outcome outcome = run({.seed = seed, .steps = kSteps});
    ASSERT_TRUE(outcome.problems.empty())
        << to_text(outcome) << "To see it again: make simulate SEED=" << seed;
    faults += outcome.faults;
    steps += outcome.steps;
    grants += outcome.report.grants;
    accepted += outcome.report.accepted;
    refused += outcome.report.refused;
    overlaps += outcome.report.overlaps.count;
    granted_beside += outcome.granted_beside;
  }
  std::printf("%" PRIu64 " seeds, %" PRIu64 " steps, %" PRIu64 " grants, %" PRIu64
              " accepted, %" PRIu64 " refused, %" PRIu64 " overlaps, %" PRIu64
              " granted beside others\n",
              kSeedsInAShard, steps, grants, accepted, refused, overlaps, granted_beside);
  EXPECT_GE(steps, kSeedsInAShard * kSteps);
  for (const Least& least : kLeast) {
    std::printf("  %-22s %" PRIu64 "\n", to_string(least.fault).data(), faults[least.fault]);
    EXPECT_GE(faults[least.fault], least.per_million * steps / 1'000'000)
        << "too few to prove anything: " << to_string(least.fault);
  }
  EXPECT_GE(grants, steps / 200);
  EXPECT_GE(accepted, steps / 100);
  EXPECT_GE(refused, steps / 2000) << "no stale holder ever came to the fence";
  EXPECT_GE(overlaps, steps / 20'000) << "no holder was ever overtaken";
  EXPECT_GE(granted_beside, steps / 1'000) << "nobody ever shared a lock";
}

INSTANTIATE_TEST_SUITE_P(Shard, Seeds, ::testing::Range<std::uint64_t>(0, kShards));

// ---- mutants -------------------------------------------------------------------------------

struct Mutant {
  Mutation mutation;
  const char* check;  // that must catch it
};
void PrintTo(const Mutant& mutant, std::ostream* out) {
  *out << to_string(mutant.mutation);
}

constexpr Mutant kMutants[] = {
    {Mutation::bare_delete, "I5"},
    {Mutation::compare_then_delete, "I5"},
    {Mutation::random_token, "I1"},
    {Mutation::counter_lost_on_release, "I1"},
    {Mutation::counter_lost_in_crash, "I1"},
    {Mutation::unsynced_ceiling, "I1"},
    {Mutation::leases_lost_in_crash, "I6"},
    {Mutation::token_of_32_bits, "I3"},
    {Mutation::wall_clock_expiry, "I6"},
    {Mutation::renew_acquires, "I5"},
    {Mutation::renew_of_any_holder, "I5"},
    {Mutation::alive_at_expiry, "I5"},
    {Mutation::acquire_renews, "I5"},
    {Mutation::retry_granted_anew, "I6"},
    {Mutation::old_grant_told_as_fresh, "H1"},
    {Mutation::dead_waiter_blocks, "L1"},
    {Mutation::reader_beside_writer, "I7"},
    {Mutation::one_permit_too_many, "I7"},
    {Mutation::slot_given_twice, "I7"},
    {Mutation::overtaking, "Q1"},
    {Mutation::write_only_fence, "I4"},
    {Mutation::fence_refuses_equal, "F1"},
    {Mutation::fence_accepts_equal, "I2"},
    {Mutation::fence_accepts_lower, "I2"},
    {Mutation::fence_ignores_lineage, "I3"},
    {Mutation::fence_without_sequence, "I4"},
    {Mutation::fence_forgets_mark, "I2"},
    {Mutation::float_compare, "I2"},
    {Mutation::fence_lets_any_reader_in, "I8"},
    {Mutation::fence_forgets_readers, "I8"},
    {Mutation::floor_not_heeded, "I8"},
    {Mutation::neighbours_swap_answers, "I3"},
    {Mutation::deadline_from_reply, "H1"},
    {Mutation::no_drift_allowance, "H1"},
    {Mutation::new_id_after_lost_reply, "E5"},
    {Mutation::release_overtakes_acquire, "E5"},
    {Mutation::release_not_sent, "E5"},
    {Mutation::lost_lease_comes_back, "E6"},
    {Mutation::lost_lease_hurries, "E8"},
    {Mutation::renews_what_was_stopped, "E9"},
    {Mutation::confirms_for_too_long, "E3"},
    {Mutation::answers_twice, "E1"},
    {Mutation::answers_never, "E5"},
};

constexpr std::uint64_t kSeedsForAMutant = 100;
constexpr std::uint64_t kStepsForAMutant = 20'000;

// The names of all checks that found something, each once.
std::vector<std::string> found_by(const Outcome& outcome) {
  std::vector<std::string> checks;
  for (const Problem& each : outcome.problems) {
    if (std::find(checks.begin(), checks.end(), each.check) == checks.end()) {
      checks.push_back(each.check);
    }
  }
  return checks;
}

class Mutants : public ::testing::TestWithParam<Mutant> {};

TEST_P(Mutants, AreCaught) {
  const auto& [mutation, check] = GetParam();
  std::vector<std::string> found;
  for (std::uint64_t seed = 1; seed <= kSeedsForAMutant; ++seed) {
    found = found_by(run({.seed = seed, .steps = kStepsForAMutant, .mutation = mutation}));
    if (std::find(found.begin(), found.end(), check) == found.end()) continue;
    std::printf("%s: caught with seed %" PRIu64 " by", to_string(mutation).data(), seed);
    for (const std::string& each : found) std::printf(" %s", each.c_str());
    std::printf("\n");
    return;
  }
  FAIL() << to_string(mutation) << " was not caught by " << check << " within " << kSeedsForAMutant
         << " seeds";
}

INSTANTIATE_TEST_SUITE_P(Known, Mutants, ::testing::ValuesIn(kMutants), [](const auto& mutant) {
  return std::string(to_string(mutant.param.mutation));
});

TEST(MutantsTest, EachIsInTheTable) {
  std::vector<Mutation> listed;
  for (const Mutant& each : kMutants) listed.push_back(each.mutation);
  EXPECT_THAT(listed, ::testing::ElementsAreArray(all_mutations()));
}

TEST(MutantsTest, WithoutOneTheSameSeedsAreClean) {
  for (std::uint64_t seed = 1; seed <= kSeedsForAMutant; ++seed) {
    const Outcome outcome = run({.seed = seed, .steps = kStepsForAMutant});
    EXPECT_TRUE(outcome.problems.empty()) << to_text(outcome);
  }
}

// ---- the parts -----------------------------------------------------------------------------

TEST(SettingsTest, SeedsMakeDifferentWorlds) {
  int queueing = 0;
  int coarse = 0;
  int careless = 0;
  int together = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const Settings settings = settings_of(seed);
    queueing += settings.queues ? 1 : 0;
    coarse += settings.grid > 1 ? 1 : 0;
    careless += settings.careless > 0 ? 1 : 0;
    together += settings.together ? 1 : 0;
  }
  for (const int count : {queueing, coarse, careless, together}) {
    EXPECT_GT(count, 10);
    EXPECT_LT(count, 90);
  }
}

TEST(DriftingClockTest, NeitherJumpsNorGoesBackWhenItsRateChanges) {
  DriftingClock clock;
  Chance chance(7);
  Time now = 0;
  for (int i = 0; i < 1000; ++i) {
    const BootTime before = clock.local(now);
    clock.set_rate(now, static_cast<int>(chance.between(-900, 900)));
    EXPECT_EQ(clock.local(now), before);
    const Time span = chance.between(0, 10 * kSecond);
    const auto shown = clock.local(now + span) - before;
    EXPECT_LE(std::abs(shown.count() - span), span / 1000 + 1);
    now += span;
  }
}

TEST(DriftingClockTest, KnowsWhenItWillShowATime) {
  DriftingClock clock;
  for (const int ppm : {-900, -1, 0, 1, 900}) {
    clock.set_rate(5 * kSecond, ppm);
    for (const Time ahead : {Time{-kSecond}, Time{0}, Time{1}, kSecond, 3600 * kSecond}) {
      const BootTime wanted = clock.local(5 * kSecond) + std::chrono::nanoseconds(ahead);
      const Time when = clock.when(wanted);
      EXPECT_GE(clock.local(when), wanted);
      EXPECT_LE(clock.local(when), wanted + std::chrono::microseconds(10)) << ppm << " " << ahead;
    }
  }
}

}  // namespace
}  // namespace leasehold::simulation
