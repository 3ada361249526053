// Each fault is seen at a server that has it, and not at one that has not.
#include <gmock/gmock.h>

#include "adapters/zookeeper/rig/server.h"
#include "leasehold/client.h"
#include "leasehold/examination.h"
#include "leasehold/zookeeper/adapter.h"
#include "testing/examining.h"
#include "testing/findings.h"
#include "words.h"

namespace leasehold::zookeeper {
namespace {

using namespace std::chrono_literals;
using namespace leasehold::testing;
using namespace ::testing;

struct ExaminationTest : Examining {
  ExaminationTest() : Examining(adapters(), "zookeeper://", 1s) {}
};

// Members give each other up after ten ticks, and a busy machine may stall for longer than ten
// short ones.
constexpr int patient_tick_ms = 1000;

TEST_F(ExaminationTest, AnEnsembleOfThreeIsOkUntilServersAreGone) {
  rig::ZookeeperEnsemble ensemble({.tick_ms = patient_tick_ms, .read_only_without_majority = true});
  const auto diagnosis = look(ensemble.addresses());
  ASSERT_TRUE(diagnosis);
  const auto& all = diagnosis->findings;
  EXPECT_THAT(all, AllOf(is_ok("zookeeper.ensemble"), is_ok("zookeeper.session"),
                         Measures("zookeeper.round_trip"), is_ok("zookeeper.clock"),
                         is_ok("zookeeper.version"), is_ok("zookeeper.mode"),
                         is_ok("zookeeper.tick"), is_ok("zookeeper.force_sync")));
  EXPECT_THAT(findings_of(all, "zookeeper.mode"), SizeIs(3));
  EXPECT_EQ(diagnosis->traits->guarantee, Guarantee::correctness);
  EXPECT_FALSE(diagnosis->lineage);
  EXPECT_FALSE(look(ensemble.addresses())->lineage) << "looking makes nothing";

  ensemble[0].kill();
  ensemble.leader();
  EXPECT_THAT(found(ensemble.addresses()),
              AllOf(Finds("zookeeper.hosts", Severity::warning, "does not answer"),
                    Measures("zookeeper.round_trip")));
  ensemble[1].kill();
  const auto alone = look(ensemble.addresses(), {.ttl = 1s, .timeout = 4s});
  ASSERT_FALSE(alone) << told(alone->findings);
  EXPECT_EQ(alone.error().code, ErrorCode::unavailable);
}

TEST_F(ExaminationTest, AnEvenNumberIsNotedAndASingleServerAWarning) {
  rig::ZookeeperEnsemble four({.tick_ms = patient_tick_ms, .members = 4});
  EXPECT_THAT(found(four.addresses()), Finds("zookeeper.ensemble", Severity::note, "4 voting"));
  const rig::ZookeeperServer one;
  EXPECT_THAT(found(one.address()),
              AllOf(Finds("zookeeper.ensemble", Severity::warning, "1 voting"),
                    is_ok("zookeeper.force_sync")));
}

TEST_F(ExaminationTest, TheLineageIsRead) {
  const rig::ZookeeperServer server;
  auto client = connect("zookeeper://" + server.address(), {}, registry);
  ASSERT_TRUE(client);
  const auto lease = client->acquire_fenced("job", {.ttl = 1s, .stop = {}});
  ASSERT_TRUE(lease) << to_string(lease.error());
  EXPECT_EQ(look(server.address())->lineage, lease->token().lineage.store);
}

TEST_F(ExaminationTest, ALogThatIsNotSyncedIsADanger) {
  const rig::ZookeeperServer server({.more = {"forceSync=no"}});
  EXPECT_THAT(found(server.address()),
              Finds("zookeeper.force_sync", Severity::danger, "forceSync=no"));
}

TEST_F(ExaminationTest, SessionsAreComparedWithTheTtl) {
  const rig::ZookeeperServer server;  // 0.4 to 4 s
  EXPECT_THAT(found(server.address(), {.ttl = 30s}),
              Finds("zookeeper.session", Severity::warning, "maxSessionTimeout="));
  EXPECT_THAT(found(server.address(), {.ttl = 1s}), is_ok("zookeeper.session"));
  EXPECT_THAT(found(server.address(), {.ttl = 100ms}),
              Finds("zookeeper.session", Severity::note, "400 ms given"));
}

TEST_F(ExaminationTest, ALongTickIsAWarning) {
  const rig::ZookeeperServer server({.tick_ms = 3000});
  EXPECT_THAT(found(server.address()), Finds("zookeeper.tick", Severity::warning, "is 3 s"));
}

TEST_F(ExaminationTest, WordsThatAreNotAllowedAreUnseen) {
  const rig::ZookeeperServer some({.more = {"4lw.commands.whitelist=srvr"}});
  EXPECT_THAT(found(some.address()),
              AllOf(is_ok("zookeeper.version"), Measures("zookeeper.round_trip"),
                    Finds("zookeeper.tick", Severity::unseen, "4lw.commands.whitelist"),
                    Finds("zookeeper.force_sync", Severity::unseen, "4lw.commands.whitelist")));
}

TEST_F(ExaminationTest, AServerWithoutItsMajorityIsADanger) {
  rig::ZookeeperEnsemble ensemble({.tick_ms = patient_tick_ms, .read_only_without_majority = true});
  ensemble[0].kill();
  ensemble[1].kill();
  const BootTime give_up = BootClock::now() + 60s;
  while (ensemble[2].mode() != "read-only" && BootClock::now() < give_up) {
  }
  // Another server takes the session, as the majority would that this one cannot reach.
  const rig::ZookeeperServer other;
  EXPECT_THAT(found(other.address() + "," + ensemble[2].address()),
              Finds("zookeeper.mode", Severity::danger, "read-only"));
}

TEST_F(ExaminationTest, AFrozenServerIsGivenUpInTime) {
  rig::ZookeeperServer server;
  server.freeze();
  const BootTime before = BootClock::now();
  const auto frozen = look(server.address(), {.ttl = 1s, .timeout = 1s});
  EXPECT_LT(BootClock::now() - before, 30s);
  server.thaw();
  EXPECT_EQ(frozen.error().code, ErrorCode::unavailable);
}

TEST_F(ExaminationTest, AUserIsUsedAndItsPasswordNotTold) {
  const rig::ZookeeperServer server;
  const auto all = found("app:hush@" + server.address());
  EXPECT_THAT(all, Measures("zookeeper.round_trip"));
  EXPECT_THAT(told(all), Not(HasSubstr("hush")));
}

TEST(WordsTest, AnswersAreRead) {
  const auto fields = fields_in("a: 1\nnothing\nb c: 2: 3\n", ": ");
  EXPECT_EQ(fields.at("a"), "1");
  EXPECT_EQ(fields.at("b c"), "2: 3");
  EXPECT_EQ(fields.size(), 2u);
  EXPECT_EQ(version_in("3.8.0-5a02, built on")->minor, 8);
  EXPECT_FALSE(version_in("new"));
  EXPECT_FALSE(version_in("-3.8"));
  EXPECT_FALSE(version_in("3.-8"));
  EXPECT_EQ(millis_in("2000"), 2s);
  EXPECT_EQ(millis_in("-1"), 0s);
  EXPECT_EQ(millis_in("soon"), 0s);
  EXPECT_EQ(millis_in("9223372036854775807"), 24h * 365);
  EXPECT_EQ(millis_in("99999999999999999999"), 24h * 365);
  EXPECT_EQ(voters_in("server.1=a:1:2:participant;0.0.0.0:2181\nserver.2=b:1:2:observer\n"
                      "server.3=c:1:2\nversion=100000000\n"),
            2u);
}

}  // namespace
}  // namespace leasehold::zookeeper
