// leasehold elect.
#include <thread>

#include "cli/tests/cli_fixture.h"

namespace leasehold::cli {
namespace {

class ElectTest : public CliTest {
 protected:
  Child elect(Words options, const std::string& script) const {
    options.insert(options.begin(), "elect");
    options.insert(options.end(), {"--", "sh", "-c", script});
    return start_piped(std::move(options));
  }
  static std::string line(Child& child) {
    return read_until(child.out().get(), "\n", within(kPatience));
  }
  static int status(Child& child) {
    const auto ended = child.wait_for(kPatience);
    EXPECT_TRUE(ended) << "still running";
    return ended ? ended->shell_status() : -1;
  }
};

TEST_F(ElectTest, TheNextOneLeadsWhenTheLeaderEnds) {
  Child first = elect({"office", "--fenced", "--note", "one:1"},
                      "echo $LEASEHOLD_TOKEN $LEASEHOLD_LOCK; read line");
  EXPECT_EQ(line(first), "1 office\n");
  EXPECT_THAT(leasehold({"show", "office"}).out, HasSubstr("one:1"));
  Child second = elect({"office"}, "echo leads; read line");
  EXPECT_FALSE(wait_readable(second.out().get(), within(100ms)));
  first.signal(SIGTERM);
  EXPECT_EQ(status(first), 128 + SIGTERM);
  EXPECT_EQ(line(second), "leads\n");
  second.signal(SIGTERM);
  EXPECT_EQ(status(second), 128 + SIGTERM);
}

TEST_F(ElectTest, StandsAgainWhenTheCommandHasEnded) {
  Child leader = elect({"office", "--fenced", "--pause", "10ms"}, "echo $LEASEHOLD_TOKEN");
  EXPECT_EQ(line(leader), "1\n");
  EXPECT_EQ(line(leader), "2\n");
  EXPECT_EQ(line(leader), "3\n");
  leader.signal(SIGTERM);
  EXPECT_TRUE(leader.wait_for(kPatience));
}

TEST_F(ElectTest, LetsAnotherOneLeadBeforeItStandsAgain) {
  Child first = elect({"office", "--pause", "1h"}, "echo one");
  EXPECT_EQ(line(first), "one\n");
  Child second = elect({"office"}, "echo two; read line");
  EXPECT_EQ(line(second), "two\n");
  first.signal(SIGINT);
  EXPECT_EQ(status(first), 130);
  second.signal(SIGTERM);
  EXPECT_TRUE(second.wait_for(kPatience));
}

TEST_F(ElectTest, EndsWithItsCommandIfThatIsWanted) {
  EXPECT_EQ(leasehold({"elect", "office", "--end-with-command", "--", "sh", "-c", "exit 7"}).status,
            7);
}

TEST_F(ElectTest, EndsTheCommandOfALostLeaseAndStandsAgain) {
  Child leader = elect({"office", "--fenced", "--pause", "10ms", "--end-with-command"},
                       "echo $LEASEHOLD_TOKEN; sleep 600");
  EXPECT_EQ(line(leader), "1\n");
  ASSERT_EQ(leasehold({"release", "office", "--force"}).status, 0);
  EXPECT_EQ(line(leader), "2\n") << errors();
  EXPECT_THAT(errors(), HasSubstr("the lease was lost"));
  leader.signal(SIGTERM);
  EXPECT_EQ(status(leader), 128 + SIGTERM);
}

TEST_F(ElectTest, ASignalEndsTheWait) {
  Child leader = start_ready(run_shell({"office"}, "echo ready; read line"));
  Child waits = elect({"office", "-v"}, "echo leads");
  // It says so when it has waited for a while.
  while (errors().find("waiting for 'office'") == std::string::npos) std::this_thread::yield();
  waits.signal(SIGTERM);
  EXPECT_EQ(status(waits), 130);
  EXPECT_EQ(line(waits), "");
}

TEST_F(ElectTest, WhatCanNeverBeStartedEndsIt) {
  EXPECT_EQ(leasehold({"elect", "office", "--", "./no-such-program"}).status, 127);
  EXPECT_EQ(leasehold({"elect", "office", "--on-lost", "ignore", "--", "true"}).status, 64);
  EXPECT_EQ(leasehold({"elect", "office", "--shared", "--", "true"}).status, 64);
  EXPECT_EQ(leasehold({"elect", "office", "--grace", "1m", "--", "true"}).status, 64);
  EXPECT_EQ(leasehold({"elect", "office"}).status, 64);
  EXPECT_EQ(leasehold({"elect", "office", "--store", "carrier-pigeon://coop", "--", "true"}).status,
            77);
}

}  // namespace
}  // namespace leasehold::cli
