// Each fault is seen at a cluster that has it, and not at one that has not.
#include <gmock/gmock.h>

#include "adapters/etcd/rig/server.h"
#include "leasehold/client.h"
#include "leasehold/etcd/adapter.h"
#include "leasehold/examination.h"
#include "rig/certificates.h"
#include "testing/examining.h"
#include "testing/findings.h"

namespace leasehold::etcd {
namespace {

using namespace std::chrono_literals;
using namespace leasehold::testing;
using namespace ::testing;

struct ExaminationTest : Examining {
  ExaminationTest() : Examining(adapters(), "etcd://") {}
};

TEST_F(ExaminationTest, AHealthyClusterOfThree) {
  rig::EtcdCluster cluster;
  auto diagnosis = look(cluster.addresses());
  ASSERT_TRUE(diagnosis);
  const auto& all = diagnosis->findings;
  EXPECT_THAT(all, AllOf(is_ok("etcd.members"), is_ok("etcd.health"), is_ok("etcd.alarms"),
                         is_ok("etcd.lease"), is_ok("etcd.round_trip"), is_ok("etcd.leader"),
                         is_ok("etcd.quota"), is_ok("etcd.clock")));
  EXPECT_THAT(findings_of(all, "etcd.leader"), SizeIs(3)) << "each member is looked at";
  EXPECT_THAT(findings_of(all, "etcd.disk"), SizeIs(3));
  EXPECT_EQ(diagnosis->traits->guarantee, Guarantee::correctness);
  EXPECT_FALSE(diagnosis->lineage);
  EXPECT_EQ(cluster[0].ctl({"get", "--prefix", "leasehold"}).out, "")
      << "looking leaves nothing behind";

  // One address of the URL leads to all.
  EXPECT_THAT(findings_of(found(cluster[0].address()), "etcd.leader"), SizeIs(3));

  auto client = connect("etcd://" + cluster.addresses(), {}, registry);
  ASSERT_TRUE(client);
  const auto lease = client->acquire_fenced("job");
  ASSERT_TRUE(lease);
  EXPECT_EQ(look(cluster.addresses())->lineage, lease->token().lineage.store);

  cluster[0].kill();
  cluster.leader();
  EXPECT_THAT(found(cluster.addresses()),
              AllOf(Finds("etcd.health", Severity::warning, "n0"),
                    Finds("etcd.endpoint", Severity::warning, "does not answer")));
  cluster[1].kill();
  const auto lost = look(cluster.addresses(), {.ttl = 30s, .timeout = 6s});
  ASSERT_TRUE(lost);
  EXPECT_THAT(lost->findings, AllOf(Not(is_ok("etcd.round_trip")), Not(is_ok("etcd.lease"))));
  // The last one notices within an election's time that there is no leader any more.
  std::vector<Finding> alone = lost->findings;
  const BootTime give_up = BootClock::now() + 60s;
  while (findings_of(alone, "etcd.leader").front().severity == Severity::ok &&
         BootClock::now() < give_up) {
    const auto again = look(cluster.addresses(), {.ttl = 30s, .timeout = 6s});
    if (again) alone = again->findings;
  }
  EXPECT_THAT(alone, Finds("etcd.leader", Severity::danger, "It knows no leader"));
  cluster[2].kill();
  EXPECT_EQ(look(cluster.addresses(), {.ttl = 30s, .timeout = 3s}).error().code,
            ErrorCode::unavailable);
}

TEST_F(ExaminationTest, AnEvenNumberOfMembersIsNoted) {
  rig::EtcdCluster two(2);
  EXPECT_THAT(found(two.addresses()),
              Finds("etcd.members", Severity::note, "An even number survives no more"));
}

TEST_F(ExaminationTest, ASingleMemberIsAWarningAndItsVersionIsJudged) {
  const rig::EtcdServer server;
  EXPECT_THAT(found(server.address()),
              AllOf(Finds("etcd.members", Severity::warning, "1 voting"), is_ok("etcd.health"),
                    Finds("etcd.version", Severity::warning, "or later")));
}

TEST_F(ExaminationTest, ATtlBelowWhatTheServerAllowsIsNoted) {
  const rig::EtcdServer slow(
      {.more = {"--heartbeat-interval", "300", "--election-timeout", "3000"}});
  EXPECT_THAT(found(slow.address(), {.ttl = 1s}), Finds("etcd.lease", Severity::note, "lasts 5 s"));
  EXPECT_THAT(found(slow.address(), {.ttl = 5s}), is_ok("etcd.lease"));
}

TEST_F(ExaminationTest, ALogThatIsNeverSyncedIsADanger) {
  const rig::EtcdServer server({.more = {"--unsafe-no-fsync"}});
  EXPECT_THAT(found(server.address()), Finds("etcd.disk", Severity::danger, "--unsafe-no-fsync"));
  EXPECT_THAT(found(rig::EtcdServer().address()),
              Not(Finds("etcd.disk", Severity::danger, "--unsafe-no-fsync")));
}

TEST_F(ExaminationTest, AFullDatabaseIsSeenBeforeAndAfter) {
  const rig::EtcdServer server({.more = {"--quota-backend-bytes", "2000000"}});
  const std::string value(40'000, 'x');
  const auto fill = [&](int i) {
    return server.ctl({"put", "fill" + std::to_string(i), value}).status == 0;
  };
  int i = 0;
  while (findings_of(found(server.address()), "etcd.quota").front().severity == Severity::ok) {
    ASSERT_TRUE(fill(i++));
  }
  EXPECT_THAT(found(server.address()),
              AllOf(Finds("etcd.quota", Severity::warning, "of its quota"), is_ok("etcd.alarms")));
  while (fill(i++)) ASSERT_LT(i, 100);
  EXPECT_THAT(found(server.address()),
              AllOf(Finds("etcd.alarms", Severity::danger, "NOSPACE"),
                    Finds("etcd.writes", Severity::danger, "space exceeded")));
}

TEST_F(ExaminationTest, AStoreOfAnotherFormatIsADanger) {
  const rig::EtcdServer server;
  ASSERT_TRUE(connect("etcd://" + server.address(), {}, registry));
  EXPECT_THAT(findings_of(found(server.address()), "etcd.store"), IsEmpty());
  ASSERT_EQ(server.ctl({"put", "leasehold/!format", "2"}).status, 0);
  EXPECT_THAT(found(server.address()), Finds("etcd.store", Severity::danger, "newer build"));
}

TEST_F(ExaminationTest, ALearnerIsSeen) {
  const rig::EtcdServer server;
  const rig::Port peer = rig::Port::take();
  const std::string url = "http://" + peer.address();
  const auto added = server.ctl({"member", "add", "pupil", "--learner", "--peer-urls", url});
  ASSERT_EQ(added.status, 0) << added.out;
  EXPECT_THAT(found(server.address()), Finds("etcd.members", Severity::warning, "1 learner."));
  const std::string begin = "ETCD_INITIAL_CLUSTER=\"";
  const auto at = added.out.find(begin) + begin.size();
  const std::string members = added.out.substr(at, added.out.find('"', at) - at);
  const rig::EtcdServer pupil(
      {.more = {"--name", "pupil", "--listen-peer-urls", url, "--initial-advertise-peer-urls", url,
                "--initial-cluster", members, "--initial-cluster-state", "existing"},
       .healthy = false});
  std::vector<Finding> all;
  do {
    const auto looked = look(pupil.address());
    if (looked) all = looked->findings;
  } while (findings_of(all, "etcd.learner").empty());
  EXPECT_THAT(all, Finds("etcd.learner", Severity::warning, "learner"));
}

TEST_F(ExaminationTest, WhatTlsHidesIsUnseen) {
  leasehold::rig::TempFolder folder;
  leasehold::rig::make_certificate(folder, "ca");
  leasehold::rig::make_certificate(folder, "server", "subjectAltName=IP:127.0.0.1", "ca");
  const rig::EtcdServer server(
      {.tls = leasehold::rig::EtcdTls{folder.file("server.crt"), folder.file("server.key")}});
  const auto all = found(server.address() + "?ca=" + folder.file("ca.crt"));
  EXPECT_THAT(all, AllOf(Finds("etcd.disk", Severity::unseen, "TLS"),
                         Finds("etcd.clock", Severity::unseen, "TLS"),
                         Finds("etcd.quota", Severity::unseen, "quota"), is_ok("etcd.leader")));
}

TEST_F(ExaminationTest, AUserIsLoggedInAndItsPasswordNotTold) {
  const rig::EtcdServer server;
  ASSERT_EQ(server.ctl({"user", "add", "root:hush"}).status, 0);
  ASSERT_EQ(server.ctl({"user", "grant-role", "root", "root"}).status, 0);
  ASSERT_EQ(server.ctl({"auth", "enable"}).status, 0);
  const auto all = found("root:hush@" + server.address());
  EXPECT_THAT(all, AllOf(is_ok("etcd.alarms"), is_ok("etcd.lease"), is_ok("etcd.round_trip")));
  EXPECT_THAT(told(all), Not(HasSubstr("hush")));
  const auto version = findings_of(all, "etcd.version");
  EXPECT_TRUE(std::any_of(
      version.begin(), version.end(),
      [](const Finding& it) { return it.seen.find("GHSA-q8m4-xhhv-38mg") != std::string::npos; }))
      << "Debian's etcd is older than that; where a user is known it matters: " << told(version);
}

TEST_F(ExaminationTest, AFrozenServerIsGivenUpInTime) {
  rig::EtcdServer server;
  server.freeze();
  const BootTime before = BootClock::now();
  const auto frozen = look(server.address(), {.ttl = 30s, .timeout = 1s});
  EXPECT_LT(BootClock::now() - before, 20s);
  server.thaw();
  EXPECT_EQ(frozen.error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace leasehold::etcd
