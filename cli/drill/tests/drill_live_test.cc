// `leasehold drill` on every store that has a server; it starts them itself.
#include "adapters/postgres/rig/server.h"
#include "adapters/redis/rig/server.h"
#include "cli/tests/cli_fixture.h"
#include "leasehold/drill/checker.h"
#include "leasehold/drill/history_file.h"

namespace leasehold::cli {
namespace {

class DrillLiveTest : public CliTest {
 protected:
  Finished drilled(Words options) const {
    Words words = with_defaults(std::move(options), {"--locks", "2", "--workers", "2", "--duration",
                                                     "25s", "--history", path("history")});
    words.insert(words.begin(), "drill");
    return leasehold(words);
  }
  drill::History history() const {
    leasehold::drill::HistoryReader reader;
    const auto read = reader.read(path("history"));
    EXPECT_TRUE(read) << (read ? "" : read.error().message);
    return reader.take();
  }
  // Holds, and has seen at least so many late writes refused.
  void expect_held(Words options, std::uint64_t refused) {
    const Finished end = drilled(std::move(options));
    ASSERT_EQ(end.status, 0) << end.out << end.err;
    drill::History what = history();
    const drill::Report report = check(what);
    EXPECT_TRUE(report.clean()) << to_text(report, what);
    EXPECT_GE(report.refused, refused);
    EXPECT_GT(report.accepted, 0u);
  }
};

struct OwnStore {
  std::string name;
  unsigned cycles;
};

class DrillOfAStoreTest : public DrillLiveTest, public ::testing::WithParamInterface<OwnStore> {};

TEST_P(DrillOfAStoreTest, RefusesWhatIsLate) {
  const auto& [name, cycles] = GetParam();
  expect_held({"--store", name, "--cycles", std::to_string(cycles)}, cycles);
}

INSTANTIATE_TEST_SUITE_P(Every, DrillOfAStoreTest,
                         ::testing::Values(OwnStore{"postgres", 6},
                                           OwnStore{"postgres-advisory", 6}, OwnStore{"redis", 6},
                                           OwnStore{"redlock", 6}, OwnStore{"etcd", 3},
                                           OwnStore{"zookeeper", 3}),
                         [](const auto& store) {
                           std::string name = store.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class DrillOfAModeTest : public DrillLiveTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(DrillOfAModeTest, WorksOnAServerWhateverHappensToIt) {
  expect_held({"--store", "postgres", "--mode", GetParam(), "--workers", "4", "--cycles", "10",
               "--fault", "pause,kill-holder"},
              10);
  expect_held({"--store", "postgres", "--mode", GetParam(), "--workers", "4", "--duration", "16s",
               "--fault", "pause,kill-server,lose-reply"},
              1);
}

TEST_P(DrillOfAModeTest, WorksOnEveryStoreThatHasAQueue) {
  for (const char* store : {"redis", "etcd", "zookeeper"}) {
    SCOPED_TRACE(store);
    expect_held({"--store", store, "--mode", GetParam(), "--workers", "4", "--cycles", "4"}, 4);
  }
}

TEST_P(DrillOfAModeTest, FencesOfOtherServersRefuseWhatIsLate) {
  for (const char* fence : {"redis", "etcd", "zookeeper"}) {
    expect_held({"--store", "sqlite", "--fence", fence, "--mode", GetParam(), "--workers", "4",
                 "--cycles", "4"},
                4);
  }
}

TEST_P(DrillOfAModeTest, NeedsAStoreThatHasIt) {
  const Finished end =
      drilled({"--store", "postgres-advisory", "--mode", GetParam(), "--workers", "4"});
  EXPECT_EQ(end.status, 77) << end.out << end.err;
  EXPECT_THAT(end.err, HasSubstr("the mode '" + std::string(GetParam()) +
                                 "' cannot be had on this store: PostgreSQL's own advisory locks"));
  EXPECT_EQ(std::count(end.err.begin(), end.err.end(), '\n'), 1) << end.err;
}

INSTANTIATE_TEST_SUITE_P(Every, DrillOfAModeTest, ::testing::Values("shared", "permits"),
                         [](const auto& mode) { return std::string(mode.param); });

struct Pattern {
  std::string mode;
  std::string store;
};

class DrillOfAPatternTest : public DrillLiveTest, public ::testing::WithParamInterface<Pattern> {};

TEST_P(DrillOfAPatternTest, RefusesWhatIsLate) {
  const auto& [mode, store] = GetParam();
  expect_held({"--mode", mode, "--store", store, "--cycles", "2"}, 2);
}

INSTANTIATE_TEST_SUITE_P(
    Every, DrillOfAPatternTest,
    ::testing::Values(Pattern{"election", "postgres"}, Pattern{"election", "redis"},
                      Pattern{"election", "redlock"}, Pattern{"election", "etcd"},
                      Pattern{"election", "zookeeper"}, Pattern{"partitions", "postgres"},
                      Pattern{"partitions", "redis"}, Pattern{"partitions", "etcd"},
                      Pattern{"partitions", "zookeeper"}),
    [](const auto& pattern) { return pattern.param.mode + "_" + pattern.param.store; });

TEST_F(DrillLiveTest, PartitionsNeedAStoreWithSharedLocks) {
  const Finished end = drilled({"--store", "redlock", "--mode", "partitions"});
  EXPECT_EQ(end.status, 77) << end.out << end.err;
  EXPECT_THAT(end.err, HasSubstr("the mode 'partitions' cannot be had on this store: "));
  EXPECT_EQ(std::count(end.err.begin(), end.err.end(), '\n'), 1) << end.err;
}

TEST_F(DrillLiveTest, TokensOfOneStoreAtTheFenceOfAnother) {
  expect_held({"--store", "sqlite", "--fence", "redis", "--cycles", "4"}, 4);
}

TEST_F(DrillLiveTest, WithoutTheFenceUpdatesAreLost) {
  const Finished end = drilled({"--store", "redis", "--fence", "none", "--cycles", "6"});
  EXPECT_EQ(end.status, 1) << end.out << end.err;
  EXPECT_THAT(end.out, HasSubstr("lost"));
}

TEST_F(DrillLiveTest, NetworkAndServerFaults) {
  expect_held({"--store", "redis", "--fault", "pause,cut,delay,lose-reply,kill-server,clock",
               "--duration", "16s"},
              1);
  const drill::History what = history();
  std::size_t on_the_server = 0;
  for (const drill::Record& record : what.records()) {
    const bool begins = record.kind == drill::Kind::fault;
    if (begins && what.process_name(record.process) == "server") ++on_the_server;
  }
  EXPECT_GE(on_the_server, 3u);
}

TEST_F(DrillLiveTest, ARunningServerIsNamedByItsUrl) {
  leasehold::rig::RedisServer server;
  expect_held({"--store", server.url(), "--fence", "sqlite", "--cycles", "3"}, 3);
}

TEST_F(DrillLiveTest, OptionsOfAFencesUrlAreHeeded) {
  leasehold::rig::PostgresServer server;
  const std::string url = server.url("postgres");
  expect_held({"--fence", url, "--cycles", "3"}, 3);
  EXPECT_EQ(drilled({"--fence", url + "?bogus=1"}).status, 64);
  const Finished no_tls = drilled({"--fence", url + "?tls=on"});
  EXPECT_EQ(no_tls.status, 69);
  EXPECT_THAT(no_tls.err, HasSubstr("SSL"));
}

TEST_F(DrillLiveTest, NotEveryFenceHasClaims) {
  const Finished end = drilled({"--store", "redis", "--fence", "etcd"});
  EXPECT_EQ(end.status, 77);
  EXPECT_THAT(end.err, HasSubstr("the store has no tokens, and the fence 'etcd' has no claims"));
}

}  // namespace
}  // namespace leasehold::cli
