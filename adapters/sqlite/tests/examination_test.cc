#include "examination.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "leasehold/client.h"
#include "leasehold/sqlite/adapter.h"
#include "testing/findings.h"
#include "testing/in_child.h"
#include "user_database.h"

namespace leasehold::sqlite {
namespace {

using namespace std::chrono_literals;
using leasehold::testing::Finds;
using leasehold::testing::in_own_mount;
using leasehold::testing::is_ok;
using leasehold::testing::told;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct ExaminationTest : ::testing::Test {
  Result<Diagnosis> look(ExaminedAs as = ExaminedAs::store, const std::string& at = {}) const {
    const Url url = Url::parse("sqlite:" + (at.empty() ? file : at)).value();
    return examine(url, {as, 30s, {BootClock::now() + 10s, {}}});
  }
  // A lock store that was used once.
  StoreId use() const {
    Registry registry;
    registry.add(adapters());
    auto client = connect("sqlite:" + file, {}, registry);
    auto lease = client->acquire_fenced("job", {.wait = 0ms, .stop = {}});
    return lease->token().lineage.store;
  }

  TempFolder folder;
  const std::string file = folder.file("locks.db");
};

TEST_F(ExaminationTest, AUsedStoreIsOk) {
  const StoreId lineage = use();
  const auto found = look();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->findings, AllOf(is_ok("sqlite.store"), is_ok("sqlite.permissions"),
                                     is_ok("sqlite.space"), is_ok("sqlite.journal"),
                                     is_ok("sqlite.integrity"), is_ok("sqlite.round_trip")));
  EXPECT_EQ(found->lineage, lineage);
  ASSERT_TRUE(found->traits);
  EXPECT_EQ(found->traits->guarantee, Guarantee::correctness);
}

TEST_F(ExaminationTest, LookingChangesNothing) {
  use();
  const auto size = std::filesystem::file_size(file + "-wal");
  ASSERT_TRUE(look());
  EXPECT_EQ(std::filesystem::file_size(file + "-wal"), size);
}

TEST_F(ExaminationTest, WhatIsNotThereIsUnavailable) {
  EXPECT_EQ(look().error().code, ErrorCode::unavailable);
  std::ofstream(file) << std::string(5000, 'x');
  EXPECT_EQ(look().error().code, ErrorCode::unavailable);
}

TEST_F(ExaminationTest, AnotherProgramsDatabaseIsADanger) {
  UserConnection user(file);
  ASSERT_EQ(user.exec("CREATE TABLE orders(id)"), "");
  const auto found = look();
  EXPECT_THAT(found->findings, Finds("sqlite.store", Severity::danger, "another program"));
  EXPECT_FALSE(found->traits);
}

TEST_F(ExaminationTest, AnotherMachinesStoreIsADanger) {
  use();
  UserConnection user(file);
  ASSERT_EQ(user.exec("UPDATE store SET machine = 'elsewhere', boot = 'then'"), "");
  EXPECT_THAT(look()->findings, Finds("sqlite.store", Severity::danger, "(elsewhere)"));
}

TEST_F(ExaminationTest, AnotherFormatIsADanger) {
  use();
  UserConnection user(file);
  ASSERT_EQ(user.exec("PRAGMA user_version = 77"), "");
  EXPECT_THAT(look()->findings, Finds("sqlite.store", Severity::danger, "format 77"));
}

TEST_F(ExaminationTest, AnotherJournalIsAWarningForAStoreAndNoneForAFence) {
  use();
  {
    UserConnection user(file);
    ASSERT_EQ(user.ask("PRAGMA journal_mode = delete"), "delete");
  }
  EXPECT_THAT(look()->findings, Finds("sqlite.journal", Severity::warning, "mode is delete"));
  EXPECT_THAT(look(ExaminedAs::fence)->findings, is_ok("sqlite.journal"));
}

TEST_F(ExaminationTest, ADamagedFileIsADanger) {
  use();
  {
    UserConnection user(file);
    ASSERT_EQ(user.exec("CREATE TABLE fill(x); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT "
                        "i + 1 FROM n WHERE i < 2000) INSERT INTO fill SELECT i FROM n;"
                        "PRAGMA wal_checkpoint(TRUNCATE)"),
              "");
  }
  const auto size = std::filesystem::file_size(file);
  std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekp(static_cast<std::streamoff>(size - 4096));
  bytes << std::string(4096, 'x');
  bytes.close();
  EXPECT_THAT(look()->findings, Finds("sqlite.integrity", Severity::danger, "quick check says"));
}

TEST_F(ExaminationTest, AFullDiskAndOneInMemoryAreWarnings) {
  EXPECT_TRUE(in_own_mount(folder.path(), "tmpfs", "size=2m", 0, [this] {
    UserConnection user(file);
    if (!user.exec("CREATE TABLE orders(id)").empty()) return false;
    const auto found = look(ExaminedAs::fence);
    return found && ::testing::Matches(AllOf(
                        Finds("sqlite.space", Severity::warning, "MiB left"),
                        Finds("sqlite.filesystem", Severity::warning, "tmpfs")))(found->findings);
  }));
}

// Root may do everything, so another user looks.
TEST_F(ExaminationTest, AFolderOrALogThatMayNotBeWrittenIsADanger) {
  use();
  namespace fs = std::filesystem;
  const bool root = geteuid() == 0;
  fs::permissions(folder.path(),
                  fs::perms::owner_all | fs::perms::group_all | fs::perms::others_all);
  fs::permissions(file, fs::perms::all);
  fs::permissions(file + "-wal", fs::perms::owner_read | fs::perms::others_read);
  ASSERT_EQ(root ? seteuid(65534) : 0, 0);
  const auto found = look();
  ASSERT_EQ(root ? seteuid(0) : 0, 0);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->findings, Finds("sqlite.permissions", Severity::danger, "-wal"));
}

TEST_F(ExaminationTest, AFenceSaysWhatItCannotSee) {
  UserConnection user(file);
  ASSERT_EQ(user.exec("CREATE TABLE orders(id)"), "");
  const auto found = look(ExaminedAs::fence);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->findings, AllOf(Finds("sqlite.sync", Severity::note, "cannot be seen"),
                                     is_ok("sqlite.permissions"), is_ok("sqlite.round_trip")));
  EXPECT_FALSE(found->traits);
}

TEST_F(ExaminationTest, AWriterThatHoldsOnMakesItSlow) {
  use();
  UserConnection user(file);
  ASSERT_EQ(user.exec("BEGIN IMMEDIATE"), "");
  const Url url = Url::parse("sqlite:" + file).value();
  const auto found = examine(url, {ExaminedAs::store, 30s, {BootClock::now() + 300ms, {}}});
  ASSERT_TRUE(found);
  EXPECT_THAT(found->findings, Finds("sqlite.round_trip", Severity::unseen, "never answered"));
  ASSERT_EQ(user.exec("ROLLBACK"), "");
}

}  // namespace
}  // namespace leasehold::sqlite
