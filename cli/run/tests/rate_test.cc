// leasehold run --rate.
#include <nlohmann/json.hpp>

#include "cli/tests/cli_fixture.h"

namespace leasehold::cli {
namespace {

class RateTest : public CliTest {
 protected:
  Finished rated(const std::string& rate, Words more, const std::string& script) const {
    more.insert(more.begin(), {"run", "calls", "--rate", rate});
    return leasehold(run_shell(std::move(more), script));
  }
  Child start_rated(const std::string& rate) const {
    return start_ready(run_shell({"calls", "--rate", rate}, "echo ready; read line; exit 7"));
  }
  static int status(Child& child) {
    const auto ended = child.wait_for(kPatience);
    EXPECT_TRUE(ended) << "still running";
    return ended ? ended->shell_status() : -1;
  }
};

TEST_F(RateTest, NoMoreStartThanTheRateAllows) {
  EXPECT_EQ(rated("2/1h", {}, "true").status, 0);
  EXPECT_EQ(rated("2/1h", {}, "exit 7").status, 7);
  const Finished third = rated("2/1h", {}, "echo ran");
  EXPECT_EQ(third.status, 75);
  EXPECT_EQ(third.out, "");
  EXPECT_THAT(third.err, HasSubstr("'calls' is not free"));
  const Finished silent = rated("2/1h", {"--busy-status", "0"}, "echo ran");
  EXPECT_EQ(silent.status, 0);
  EXPECT_EQ(silent.out + silent.err, "");
}

TEST_F(RateTest, WhoWaitsStartsWhenTheIntervalIsOver) {
  const auto began = std::chrono::steady_clock::now();
  ASSERT_EQ(rated("1/300ms", {}, "true").status, 0);
  const Finished next = rated("1/300ms", {"--wait", "60s", "-v"}, "echo ran");
  EXPECT_GE(std::chrono::steady_clock::now() - began, 300ms);
  EXPECT_EQ(next.out, "ran\n");
  EXPECT_THAT(next.err, HasSubstr("took a turn of 'calls', at most 1/300ms\n"));
}

TEST_F(RateTest, TheTurnOfOneThatWasKilledCounts) {
  Child killed = start_rated("1/1h");
  killed.signal(SIGKILL);
  EXPECT_EQ(status(killed), 128 + SIGKILL);
  EXPECT_EQ(rated("1/1h", {"--wait", "100ms"}, "true").status, 75);
}

TEST_F(RateTest, ALongCommandKeepsNobodyOutAfterItsInterval) {
  Child slow = start_rated("1/100ms");
  EXPECT_EQ(rated("1/100ms", {"--wait", "60s"}, "true").status, 0);
  slow.in().reset();
  EXPECT_EQ(status(slow), 7) << errors();
  EXPECT_EQ(errors(), "") << "it had no lease that could be lost";
}

TEST_F(RateTest, TheCommandHasNoLease) {
  const Finished done = leasehold({"run", "outer", "--fenced", "--", LEASEHOLD_PROGRAM, "run",
                                   "calls", "--rate", "1/1h", "--", "env"});
  EXPECT_THAT(done.out, AllOf(HasSubstr("LEASEHOLD_LOCK=calls\n"), HasSubstr("LEASEHOLD_STORE=")));
  for (const std::string name : {"REQUEST", "TOKEN", "LINEAGE", "SLOT"}) {
    EXPECT_THAT(done.out, Not(HasSubstr("LEASEHOLD_" + name))) << "the outer run's";
  }
}

TEST_F(RateTest, SignalsArePassedOnAndEndTheWait) {
  Child running = start_rated("1/1h");
  Child waiting = start(run_shell({"calls", "--rate", "1/1h", "--wait", "1h"}, "echo ran"));
  const auto waiters = [&] {
    const auto shown = nlohmann::json::parse(leasehold({"show", "calls", "--json"}).out);
    return shown.at("lock").at("waiters").size();
  };
  while (waiters() == 0 && !waiting.wait_for(10ms)) {
  }
  waiting.signal(SIGTERM);
  EXPECT_EQ(status(waiting), 130);
  running.signal(SIGTERM);
  EXPECT_EQ(status(running), 128 + SIGTERM);
}

TEST_F(RateTest, EndsWhatTheCommandLeavesRunning) {
  const Finished done = rated("1/1h", {}, "sleep 1000 & true");
  EXPECT_EQ(done.status, 0);
  EXPECT_THAT(done.err, HasSubstr("ended 1 process that the command left running"));
}

}  // namespace
}  // namespace leasehold::cli
