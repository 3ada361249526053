// What a supervisor starts, and what it does not, whatever came between the grant and the start.
#include "cli/run/supervisor.h"

#include "cli/tests/cli_fixture.h"
#include "leasehold/client.h"
#include "testing/faulty_store.h"
#include "testing/memory_store.h"
#include "testing/virtual_time.h"

namespace leasehold::cli {
namespace {

using leasehold::testing::Fault;
using leasehold::testing::Faults;
using leasehold::testing::MemoryStore;
using leasehold::testing::Operation;

class SupervisorTest : public CliTest, public ::testing::WithParamInterface<OnLost> {
 protected:
  static constexpr Millis kTtl = 10s;
  static constexpr Millis kGrace = 1s;

  SupervisorTest() { faults_->always(Operation::renew, Fault::refuse); }

  // After a grant, and then `pause` without a renewal.
  auto run_after(BootClock::duration pause) {
    clock_.advance(pause);
    Supervisor supervisor(&lease_, signals_, {GetParam(), kGrace, [] { return std::nullopt; }});
    return supervisor.run(command({"touch", path("started")}));
  }
  bool started() const { return shell("test -e " + path("started")).status == 0; }

 private:
  const std::shared_ptr<Faults> faults_ = std::make_shared<Faults>();
  leasehold::testing::FakeClock clock_{BootClock::now()};
  Signals signals_;
  Client client_{with_faults(std::make_unique<MemoryStore>(), faults_), {.clock = &clock_}};
  Lease lease_ = client_.acquire("x", {.ttl = kTtl}).value();
};

TEST_P(SupervisorTest, StartsWhileEnoughTimeIsLeft) {
  const auto end = run_after(kTtl / 2);
  ASSERT_TRUE(end);
  EXPECT_TRUE(started());
}

TEST_P(SupervisorTest, StartsNothingThatItWouldHaveToEndAtOnce) {
  const auto end = run_after(kTtl - kGrace / 2);
  ASSERT_FALSE(end);
  EXPECT_FALSE(started());
  EXPECT_EQ(end.error().ending.number(), 76);
  EXPECT_THAT(end.error().message, AllOf(HasSubstr("'x'"), HasSubstr("not started")));
}

TEST_P(SupervisorTest, StartsNothingUnderALostLease) {
  const auto end = run_after(kTtl);
  ASSERT_FALSE(end);
  EXPECT_FALSE(started());
  EXPECT_EQ(end.error().ending.number(), 76);
}

INSTANTIATE_TEST_SUITE_P(EveryPolicy, SupervisorTest,
                         ::testing::Values(OnLost::kill, OnLost::term, OnLost::ignore));

}  // namespace
}  // namespace leasehold::cli
