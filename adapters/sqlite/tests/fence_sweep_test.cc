// Marks that nobody has used for long are swept, and whoever was below them is refused all the
// same.
#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <map>
#include <sstream>
#include <thread>
#include <vector>

#include "fence/refusal.h"
#include "fence/rule.h"
#include "fence_file.h"
#include "leasehold/sqlite/claim.h"
#include "mark_sweep.h"

namespace leasehold::sqlite {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Reason = Refusal::Reason;

StoreId store(char digit) {
  return lineage_of(digit).store;
}
ResourceName named(const std::string& name) {
  return ResourceName::parse(name).value();
}
Token of_lock(const std::string& lock, std::int64_t number, char request) {
  return Token{TokenNumber::of(number).value(),
               {store('a'), LockName::parse(lock).value()},
               request_of(request)};
}

// Marks, as if nobody had entered for two hours.
void grow_old(const UserConnection& user, const std::string& which = "true") {
  EXPECT_EQ(user.exec("UPDATE leasehold_fence SET entered_at = entered_at - 7200 WHERE " + which),
            "");
}

// With the tokens 1 to `count`, and names by this expression of i.
void make_old_marks(const UserConnection& user, int count, const std::string& name) {
  EXPECT_EQ(user.exec("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < " +
                      std::to_string(count) +
                      ") INSERT INTO leasehold_fence(resource, lineage, token, request, entered_at)"
                      " SELECT " +
                      name + ", '" + lineage_of().str() + "', i, '" + std::string(32, '1') +
                      "', 7 FROM n"),
            "");
}

class FenceSweepTest : public ::testing::Test {
 protected:
  Result<std::int64_t> sweep(SweepOptions options = {.older_than = 1h}) const {
    return file_.admin()->sweep(options);
  }
  // Of a resource that was entered two hours ago with this token.
  void sweep_mark(const Token& token, const std::string& resource = "old") const {
    ASSERT_TRUE(good(enter(user_, token, resource)));
    grow_old(user_, "resource = '" + resource + "'");
    ASSERT_EQ(sweep().value_or(-1), 1);
  }
  std::vector<FenceFloor> floors() const { return file_.admin()->floors().value(); }
  std::optional<FenceMark> mark(const std::string& resource = "ledger") const {
    return fence_at(user_, resource).mark().value();
  }
  std::string rows() const { return user_.ask("SELECT count(*) FROM leasehold_fence"); }

  const FenceFile file_;
  const UserConnection user_{file_.path()};
};

TEST_F(FenceSweepTest, OldMarksGoAndTheirFloorStays) {
  ASSERT_TRUE(good(enter(user_, token_of(33, '1'), "a")));
  ASSERT_TRUE(good(enter_to_read(user_, token_of(40, '2'), "b")));
  grow_old(user_);
  ASSERT_TRUE(good(enter(user_, token_of(50, '3'), "young")));
  EXPECT_TRUE(floors().empty());
  EXPECT_EQ(sweep().value_or(-1), 2);
  EXPECT_THAT(floors(), ElementsAre(FenceFloor{store('a'), 40}));
  EXPECT_FALSE(mark("a"));
  EXPECT_EQ(file_.admin()->marks()->size(), 1u);
  EXPECT_EQ(sweep().value_or(-1), 0);
}

TEST_F(FenceSweepTest, WhoIsNotAboveTheFloorIsRefusedWhereThereIsNoMark) {
  sweep_mark(token_of(33, '1'));
  for (const char* resource : {"old", "other"}) {
    EXPECT_TRUE(refused(enter(user_, token_of(32, '2'), resource), Reason::swept, 33));
    EXPECT_TRUE(refused(enter(user_, token_of(33, '1'), resource), Reason::swept, 33));
    EXPECT_TRUE(refused(enter_to_read(user_, token_of(33, '1'), resource), Reason::swept, 33));
    EXPECT_TRUE(
        refused(enter(user_, of_lock("another lock", 33, '1'), resource), Reason::swept, 33));
  }
  EXPECT_TRUE(good(enter(user_, of_lock("another lock", 34, '1'), "old")));
  EXPECT_TRUE(good(enter(user_, token_of(34, '2'), "other")));
}

TEST_F(FenceSweepTest, WhoHasAMarkIsNotJudgedByTheFloor) {
  ASSERT_TRUE(good(enter(user_, token_of(20, '1'), "young")));
  ASSERT_TRUE(good(enter_to_read(user_, token_of(21, '1'), "read")));
  ASSERT_TRUE(good(enter(user_, token_of(33, '1'), "old")));
  grow_old(user_, "resource = 'old'");
  ASSERT_EQ(sweep().value_or(-1), 1);
  EXPECT_TRUE(good(enter(user_, token_of(20, '1'), "young")));
  EXPECT_TRUE(good(enter_to_read(user_, token_of(21, '1'), "read")));
  EXPECT_TRUE(good(enter(user_, token_of(22, '2'), "read")));
}

TEST_F(FenceSweepTest, AFirstReaderKeepsTheFloorForThoseBelowIt) {
  sweep_mark(token_of(33, '1'));
  ASSERT_TRUE(good(enter_to_read(user_, token_of(40, '4'), "old")));
  EXPECT_TRUE(good(enter_to_read(user_, token_of(34, '2'), "old")));
  EXPECT_TRUE(refused(enter_to_read(user_, token_of(33, '1'), "old"), Reason::swept, 33));
  ASSERT_TRUE(good(enter(user_, token_of(41, '5'), "old")));
  EXPECT_TRUE(refused(enter_to_read(user_, token_of(33, '1'), "old"), Reason::lower, 41));
}

TEST_F(FenceSweepTest, AnUnknownStoreIsRefusedAfterASweepUntilItIsAdmitted) {
  EXPECT_TRUE(good(enter(user_, token_of(1, '1', 'b'), "first")));
  EXPECT_EQ(sweep().value_or(-1), 0);
  EXPECT_TRUE(good(enter(user_, token_of(1, '1', 'c'), "second"))) << "nothing was swept yet";
  sweep_mark(token_of(33, '1'), "third");
  const auto unknown = enter(user_, token_of(99, '1', 'd'), "new");
  ASSERT_TRUE(refused(unknown, Reason::unknown, 0));
  EXPECT_THAT(unknown.error().message,
              HasSubstr("`leasehold fence admit URL " + store('d').hex() + "`"));
  EXPECT_TRUE(refused(enter_to_read(user_, token_of(99, '1', 'd'), "new"), Reason::unknown, 0));
  EXPECT_TRUE(good(enter(user_, token_of(2, '1', 'c'), "new"))) << "of a mark that was there";
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(good(file_.admin()->admit(store('d'))));
    ASSERT_TRUE(good(file_.admin()->admit(store('a'))));
  }
  EXPECT_TRUE(good(enter(user_, token_of(1, '1', 'd'), "newer")));
  EXPECT_TRUE(refused(enter(user_, token_of(33, '1'), "newest"), Reason::swept, 33))
      << "admitting does not lower a floor";
}

TEST_F(FenceSweepTest, AdmittingBeforeTheFirstSweepShutsNobodyOut) {
  ASSERT_TRUE(good(file_.admin()->admit(store('d'))));
  EXPECT_THAT(floors(), ElementsAre(FenceFloor{store('d'), 0}));
  EXPECT_TRUE(good(enter(user_, token_of(1, '1', 'a'), "first")));
  sweep_mark(token_of(33, '1', 'b'));
  EXPECT_TRUE(good(enter(user_, token_of(5, '1', 'd'), "second")));
}

TEST_F(FenceSweepTest, WhatAnOperatorOrAClaimHasSetStays) {
  const auto admin = file_.admin();
  ASSERT_TRUE(good(Claim::take(user_.get(), "claimed", request_of('1'))));
  for (const char* resource : {"adopted", "adopted and entered"}) {
    ASSERT_TRUE(good(admin->adopt(named(resource), lineage_of(), TokenNumber::of(7).value())));
  }
  ASSERT_TRUE(good(enter(user_, token_of(8, '1'), "adopted and entered")));
  ASSERT_TRUE(good(enter(user_, token_of(33, '1'), "reset")));
  ASSERT_TRUE(good(admin->reset(named("reset"))));
  grow_old(user_);
  sweep_mark(token_of(40, '1'));
  EXPECT_EQ(rows(), "4");
  EXPECT_TRUE(good(enter(user_, token_of(7, '1'), "adopted")));
  EXPECT_TRUE(refused(enter(user_, token_of(7, '1'), "adopted and entered"), Reason::lower, 8));
  EXPECT_TRUE(good(enter(user_, token_of(1, '1', 'f'), "reset"))) << "the first to come";
  EXPECT_EQ(mark("claimed")->claim, request_of('1'));
}

TEST_F(FenceSweepTest, WhatWasAdoptedKeepsTheOldStoreOutForGood) {
  ASSERT_TRUE(good(enter(user_, token_of(33, '1'), "ledger")));
  ASSERT_TRUE(
      good(file_.admin()->adopt(named("ledger"), lineage_of('b'), TokenNumber::of(1).value())));
  ASSERT_TRUE(good(enter(user_, token_of(5, '2', 'b'), "ledger")));
  ASSERT_TRUE(good(enter(user_, token_of(6, '3', 'b'), "ledger")));
  grow_old(user_);
  sweep_mark(token_of(10, '1'));
  EXPECT_TRUE(refused(enter(user_, token_of(34, '1'), "ledger"), Reason::foreign, 6));
}

TEST_F(FenceSweepTest, WhatWasResetKeepsTheOldStoreOutForGood) {
  ASSERT_TRUE(good(enter(user_, token_of(33, '1'), "reset")));
  ASSERT_TRUE(good(file_.admin()->reset(ResourceName::parse("reset").value())));
  ASSERT_TRUE(good(enter(user_, token_of(5, '2', 'b'), "reset")));
  grow_old(user_, "resource = 'reset'");
  sweep_mark(token_of(10, '1'), "other");
  EXPECT_FALSE(good(enter(user_, token_of(34, '1'), "reset")));
  EXPECT_TRUE(good(enter(user_, token_of(6, '3', 'b'), "reset")));
}

TEST_F(FenceSweepTest, NobodyIsAdoptedBelowTheFloorWhereThereIsNoMark) {
  const auto adopt = [&](const char* name, char store, std::int64_t number) {
    return file_.admin()->adopt(named(name), lineage_of(store), TokenNumber::of(number).value());
  };
  ASSERT_TRUE(good(enter(user_, token_of(20, '1'), "reset")));
  ASSERT_TRUE(good(file_.admin()->reset(named("reset"))));
  sweep_mark(token_of(33, '1'));
  for (const char* name : {"old", "new"}) {
    for (const std::int64_t number : {5, 33}) {
      const Status low = adopt(name, 'a', number);
      ASSERT_TRUE(bad(low, ErrorCode::invalid));
      EXPECT_EQ(low.error().message,
                fence::below_the_floor(named(name), 33, TokenNumber::of(number).value()).message);
    }
  }
  EXPECT_EQ(rows(), "1");
  EXPECT_TRUE(good(adopt("old", 'a', 34)));
  EXPECT_TRUE(good(adopt("new", 'c', 1))) << "a store without a floor";
  EXPECT_TRUE(good(adopt("reset", 'a', 1))) << "there it is on purpose";
  EXPECT_TRUE(good(enter(user_, token_of(34, '1'), "old")));
}

TEST_F(FenceSweepTest, ACountedRefusalIsNeitherAMarkNorAReset) {
  sweep_mark(token_of(33, '1'));
  for (int i = 1; i <= 3; ++i) {
    EXPECT_TRUE(refused(enter(user_, token_of(33, '1'), "old"), Reason::swept, 33));
    EXPECT_TRUE(refused(enter_to_read(user_, token_of(9, '1', 'd'), "old"), Reason::unknown, 0));
    EXPECT_EQ(mark("old")->refused, 2 * i);
    EXPECT_FALSE(mark("old")->lineage);
  }
  EXPECT_EQ(sweep().value_or(-1), 0) << "the count is young";
  grow_old(user_);
  EXPECT_EQ(sweep().value_or(-1), 0) << "it is swept, and is no mark";
  EXPECT_FALSE(mark("old"));
  EXPECT_TRUE(refused(enter(user_, token_of(33, '1'), "old"), Reason::swept, 33));
  ASSERT_TRUE(good(enter(user_, token_of(34, '1'), "old")));
  EXPECT_TRUE(refused(enter(user_, token_of(33, '1'), "old"), Reason::lower, 34));
  EXPECT_EQ(mark("old")->refused, 2);
}

TEST_F(FenceSweepTest, RowsWithoutNumbersAreNoMarks) {
  sweep_mark(token_of(33, '1'));
  ASSERT_EQ(user_.exec("INSERT INTO leasehold_fence(resource) VALUES('by hand');"
                       "INSERT INTO leasehold_fence(resource, lineage) VALUES('named', '" +
                       lineage_of().str() + "')"),
            "");
  for (const char* resource : {"by hand", "named"}) {
    EXPECT_TRUE(refused(enter(user_, token_of(33, '1'), resource), Reason::swept, 33)) << resource;
  }
  EXPECT_TRUE(refused(enter(user_, token_of(99, '1', 'b'), "named"), Reason::foreign, 0));
}

TEST_F(FenceSweepTest, AnAgeMustBePositive) {
  ASSERT_TRUE(good(enter(user_, token_of(33, '1'))));
  grow_old(user_);
  for (const Millis age : {0ms, -1ms, Millis::min()}) {
    EXPECT_TRUE(bad(sweep({.older_than = age}), ErrorCode::invalid)) << age.count();
  }
  EXPECT_EQ(sweep({.older_than = Millis::max()}).value_or(-1), 0);
  EXPECT_TRUE(mark());
  EXPECT_EQ(sweep({.older_than = 1ms}).value_or(-1), 1);
}

TEST_F(FenceSweepTest, NobodyWhoHasEnteredWithinTheAgeIsSwept) {
  ASSERT_TRUE(good(enter(user_, token_of(33, '1'))));
  ASSERT_EQ(user_.exec("UPDATE leasehold_fence SET entered_at = entered_at - 3590"), "");
  EXPECT_EQ(sweep().value_or(-1), 0);
  ASSERT_EQ(user_.exec("UPDATE leasehold_fence SET entered_at = entered_at + 9999"), "");
  EXPECT_EQ(sweep({.older_than = 1ms}).value_or(-1), 0) << "the clock went back";
}

class SteppedSweepTest : public FenceSweepTest {
 protected:
  SteppedSweepTest() { make_old_marks(user_, 1200, "'r' || i"); }
};

TEST_F(SteppedSweepTest, IsDoneInStepsThatAreTold) {
  std::vector<std::int64_t> told;
  EXPECT_EQ(sweep({.older_than = 1h, .progress = [&](std::int64_t sum) { told.push_back(sum); }})
                .value_or(-1),
            1200);
  EXPECT_THAT(told, ElementsAre(500, 1000, 1200));
  EXPECT_THAT(floors(), ElementsAre(FenceFloor{store('a'), 1200}));
}

TEST_F(SteppedSweepTest, AStepThatFindsNothingOldIsToldToo) {
  ASSERT_EQ(user_.exec("UPDATE leasehold_fence SET entered_at = CAST(strftime('%s', 'now') AS"
                       " INTEGER) WHERE resource IN"
                       " (SELECT resource FROM leasehold_fence ORDER BY resource LIMIT 500)"),
            "");
  std::vector<std::int64_t> told;
  EXPECT_EQ(sweep({.older_than = 1h, .progress = [&](std::int64_t sum) { told.push_back(sum); }})
                .value_or(-1),
            700);
  EXPECT_THAT(told, ElementsAre(0, 500, 700));
}

TEST_F(SteppedSweepTest, StopsBetweenStepsAndGoesOnAnotherTime) {
  std::stop_source stop;
  SweepOptions options{.older_than = 1h, .stop = stop.get_token()};
  options.progress = [&](std::int64_t) { stop.request_stop(); };
  EXPECT_TRUE(bad(sweep(options), ErrorCode::cancelled));
  EXPECT_EQ(rows(), "700");
  EXPECT_TRUE(refused(enter(user_, token_of(1200, '2'), "r1"), Reason::swept, 1200));
  EXPECT_EQ(sweep().value_or(-1), 700) << "the count of that refusal is young";
}

TEST_F(SteppedSweepTest, AStopBeforeTheFirstStepSweepsNothing) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(bad(sweep({.older_than = 1h, .stop = stop.get_token()}), ErrorCode::cancelled));
  EXPECT_EQ(rows(), "1200");
}

TEST(Utf16SweepTest, StepsFollowTheOrderOfTheDatabase) {
  const TempFolder folder;
  const std::string path = folder.file("wide.db");
  const UserConnection user(path);
  ASSERT_EQ(user.exec("PRAGMA encoding = 'UTF-16'; CREATE TABLE data(value)"), "");
  ASSERT_TRUE(good(install_fence(user.get())));
  make_old_marks(user, 1200, "char(160 + i)");
  EXPECT_EQ(sweep_marks(Connection(user.get()), {.older_than = 1h}).value_or(-1), 1200);
}

// Behind each of its commits: the first store, the floors, the steps. Then an operator comes.
TEST(KilledSweepTest, HasTakenNoMarkWithoutItsFloor) {
  for (int last = 1; last <= 4; ++last) {
    SCOPED_TRACE("killed after commit " + std::to_string(last));
    const FenceFile file;
    {
      const UserConnection user(file.path());
      make_old_marks(user, 700, "'r' || i");
    }
    ASSERT_TRUE(is_killed_in([&] {
      const UserConnection user(file.path());
      const AtEachCommit then(user.get(), [&](int commit) {
        if (commit == last) raise(SIGKILL);
      });
      (void)sweep_marks(Connection(user.get()), {.older_than = 1h});
    }));
    const UserConnection user(file.path());
    EXPECT_EQ(user.ask("SELECT count(*) FROM leasehold_fence"),
              last <= 2 ? "700" : (last == 3 ? "200" : "0"));
    for (const char* resource : {"r1", "r350", "r700"}) {
      EXPECT_TRUE(bad(enter(user, token_of(1, '2'), resource), ErrorCode::fenced_out)) << resource;
    }
    const auto admin = file.admin();
    const bool are_there = last <= 3;
    if (are_there) {
      ASSERT_TRUE(good(admin->reset(named("r98"))));
      ASSERT_TRUE(good(admin->adopt(named("r99"), lineage_of('b'), TokenNumber::of(5).value())));
    }
    EXPECT_TRUE(good(admin->sweep({.older_than = 1h})));
    EXPECT_EQ(are_there, bool(good(enter(user, token_of(1, '2', 'c'), "r98"))))
        << "the first to come";
    EXPECT_EQ(are_there, bool(good(enter(user, token_of(5, '2', 'b'), "r99"))))
        << "of its new store";
    EXPECT_TRUE(bad(enter(user, token_of(700, '2'), "r1"), ErrorCode::fenced_out));
    EXPECT_TRUE(good(enter(user, token_of(701, '2'), "r1")));
  }
}

// ---- what comes in while it sweeps ----------------------------------------------------------

class BusySweepTest : public FenceSweepTest {
 protected:
  // Sweeps on a connection of its own, and does `act` just before this statement is run.
  Result<std::int64_t> sweep_and(const std::string& before, std::function<void()> act) const {
    const UserConnection sweeper(file_.path());
    struct Trace {
      std::string before;
      std::function<void()> act;
    } trace{before, std::move(act)};
    sqlite3_trace_v2(
        sweeper.get(), SQLITE_TRACE_STMT,
        [](unsigned, void* context, void* statement, void*) {
          auto* it = static_cast<Trace*>(context);
          const std::string sql = sqlite3_sql(static_cast<sqlite3_stmt*>(statement));
          if (it->act && sql.starts_with(it->before)) std::exchange(it->act, nullptr)();
          return 0;
        },
        &trace);
    auto swept = sweep_marks(Connection(sweeper.get()), {.older_than = 1h});
    EXPECT_FALSE(trace.act) << "there was no such statement";
    return swept;
  }
};

TEST_F(BusySweepTest, AStoreThatComesInBehindTheLookIsKnown) {
  ASSERT_TRUE(good(enter(user_, token_of(33, '1'), "old")));
  grow_old(user_);
  EXPECT_EQ(
      sweep_and("BEGIN", [&] { EXPECT_TRUE(good(enter(user_, token_of(1, '1', 'c'), "new"))); })
          .value_or(-1),
      1);
  EXPECT_TRUE(good(enter(user_, token_of(2, '1', 'c'), "newer")));
}

TEST_F(BusySweepTest, AStoreThatIsAdoptedBehindTheLookIsKnown) {
  ASSERT_TRUE(good(enter(user_, token_of(33, '1'), "old")));
  grow_old(user_);
  const auto admin = file_.admin();
  ASSERT_TRUE(good(sweep_and("BEGIN", [&] {
    EXPECT_TRUE(good(admin->adopt(named("new"), lineage_of('c'), TokenNumber::of(1).value())));
  })));
  EXPECT_TRUE(good(enter(user_, token_of(2, '1', 'c'), "newer")));
}

TEST_F(BusySweepTest, AMarkThatIsEnteredBehindTheLookStays) {
  ASSERT_TRUE(good(enter(user_, token_of(33, '1'), "old")));
  grow_old(user_);
  EXPECT_EQ(sweep_and("SELECT 1 FROM main.leasehold_fence",
                      [&] { EXPECT_TRUE(good(enter(user_, token_of(50, '2'), "old"))); })
                .value_or(-1),
            0);
  EXPECT_EQ(mark("old")->mark, token_of(50, '2'));
  EXPECT_TRUE(refused(enter(user_, token_of(49, '3'), "old"), Reason::lower, 50));
}

// A mark that has become old since the look, above the floor: a clock that steps.
TEST_F(BusySweepTest, AMarkAboveTheFloorStaysHoweverOldItLooks) {
  ASSERT_TRUE(good(enter(user_, token_of(33, '1'), "old")));
  grow_old(user_);
  EXPECT_EQ(sweep_and("SELECT 1 FROM main.leasehold_fence",
                      [&] {
                        EXPECT_TRUE(good(enter(user_, token_of(50, '2'), "new")));
                        grow_old(user_);
                      })
                .value_or(-1),
            1);
  EXPECT_EQ(mark("new")->mark, token_of(50, '2'));
  EXPECT_EQ(sweep().value_or(-1), 1);
  EXPECT_TRUE(refused(enter(user_, token_of(50, '2'), "new"), Reason::swept, 50));
}

// Four resources, three holders that come with ever higher tokens, and now and then late again, and
// somebody who finds every mark old and sweeps it.
TEST_F(BusySweepTest, NoUpdateIsLostAndNobodyStaleComesIn) {
  constexpr int kRounds = 120;
  const std::vector<std::string> names = {"a", "b", "c", "d"};
  std::atomic<std::int64_t> next = 1;
  std::atomic<int> working = 3;
  std::array<std::map<std::string, int>, 3> accepted;
  {
    std::jthread sweeper([&] {
      const UserConnection user(file_.path());
      while (working > 0) {
        EXPECT_EQ(user.exec("UPDATE leasehold_fence SET entered_at = 0"), "");
        EXPECT_TRUE(good(sweep_marks(Connection(user.get()), {.older_than = 1h})));
      }
    });
    std::vector<std::jthread> holders;
    for (int i = 0; i < 3; ++i) {
      holders.emplace_back([&, i] {
        const UserConnection user(file_.path());
        std::int64_t late = 1;
        for (int round = 0; round < kRounds; ++round) {
          const std::string& name = names[static_cast<std::size_t>(round % 4)];
          const std::int64_t number = round % 5 == 4 ? late : next++;
          if (round % 7 == 0) late = number;
          const char request = static_cast<char>('1' + i);
          if (round % 3 == 0) (void)enter_to_read(user, token_of(number, request), name);
          const auto done =
              append(user, token_of(number, request), std::to_string(number) + ",", name);
          EXPECT_TRUE(done || done.error().code == ErrorCode::fenced_out)
              << to_string(done.error());
          if (done) ++accepted[static_cast<std::size_t>(i)][name];
        }
        --working;
      });
    }
  }
  for (const std::string& name : names) {
    std::istringstream value(user_.ask("SELECT value FROM data WHERE name = '" + name + "'"));
    std::int64_t highest = 0;
    int count = 0;
    for (std::string number; std::getline(value, number, ','); ++count) {
      EXPECT_GE(std::stoll(number), highest) << name;
      highest = std::stoll(number);
    }
    EXPECT_EQ(count, accepted[0][name] + accepted[1][name] + accepted[2][name]) << name;
    EXPECT_GT(count, 0);
  }
}

// ---- what keeps marks and floors --------------------------------------------------------------

TEST_F(FenceSweepTest, NoMarkCanBeDeletedThatNoFloorCovers) {
  ASSERT_TRUE(good(Claim::take(user_.get(), "claimed", request_of('1'))));
  ASSERT_TRUE(
      good(file_.admin()->adopt(named("adopted"), lineage_of(), TokenNumber::of(7).value())));
  ASSERT_TRUE(good(enter(user_, token_of(1, '1'), "reset")));
  ASSERT_TRUE(good(file_.admin()->reset(named("reset"))));
  sweep_mark(token_of(33, '1'));
  ASSERT_TRUE(good(enter(user_, token_of(40, '1'), "above")));
  ASSERT_TRUE(good(file_.admin()->admit(store('b'))));
  ASSERT_TRUE(good(enter(user_, token_of(3, '1', 'b'), "another store")));
  ASSERT_TRUE(good(enter_to_read(user_, token_of(41, '1'), "read")));
  for (const char* resource : {"claimed", "adopted", "reset", "above", "another store", "read"}) {
    EXPECT_THAT(
        user_.exec(std::string("DELETE FROM leasehold_fence WHERE resource = '") + resource + "'"),
        StartsWith("leasehold: invalid: a mark is kept"))
        << resource;
  }
  EXPECT_NE(user_.exec("DELETE FROM leasehold_fence"), "");
  EXPECT_EQ(rows(), "6");
}

TEST_F(FenceSweepTest, AReaderAboveTheFloorKeepsTheMark) {
  ASSERT_TRUE(good(enter(user_, token_of(20, '1'))));
  ASSERT_TRUE(good(enter_to_read(user_, token_of(40, '2'))));
  ASSERT_TRUE(good(enter(user_, token_of(33, '1'), "old")));
  grow_old(user_, "resource = 'old'");
  ASSERT_EQ(sweep().value_or(-1), 1);
  EXPECT_THAT(user_.exec("DELETE FROM leasehold_fence WHERE resource = 'ledger'"),
              StartsWith("leasehold: invalid"));
  EXPECT_EQ(user_.exec("UPDATE leasehold_fence SET entered_at = 0"), "");
  ASSERT_EQ(sweep().value_or(-1), 1);
  EXPECT_THAT(floors(), ElementsAre(FenceFloor{store('a'), 40}));
}

TEST_F(FenceSweepTest, FloorsCannotBeDeletedOrLoweredByAccident) {
  sweep_mark(token_of(33, '1'));
  for (const char* sql : {"DELETE FROM leasehold_floor", "UPDATE leasehold_floor SET floor = 32",
                          "UPDATE leasehold_floor SET store = 'other'",
                          "REPLACE INTO leasehold_floor(store) SELECT store FROM leasehold_floor",
                          "INSERT OR REPLACE INTO leasehold_floor SELECT store, 1 FROM"
                          " leasehold_floor"}) {
    EXPECT_THAT(user_.exec(sql), StartsWith("leasehold: invalid: a floor")) << sql;
  }
  EXPECT_THAT(floors(), ElementsAre(FenceFloor{store('a'), 33}));
  const auto admin = file_.admin();
  for (const char* trigger : {"keep", "once", "stay"}) {
    ASSERT_EQ(user_.exec(std::string("DROP TRIGGER leasehold_floor_") + trigger), "");
    EXPECT_TRUE(bad(admin->check_marks(), ErrorCode::unavailable)) << trigger;
    EXPECT_TRUE(bad(sweep(), ErrorCode::unavailable)) << trigger;
    ASSERT_TRUE(good(admin->install()));
    EXPECT_TRUE(good(admin->check_marks())) << trigger;
  }
}

TEST_F(FenceSweepTest, AGuardStaysWhenTheMarkOfItsResourceIsSwept) {
  ASSERT_TRUE(good(guard_table(user_.get(), "data", named("ledger"))));
  ASSERT_EQ(user_.exec("PRAGMA foreign_keys = ON"), "");
  ASSERT_TRUE(good(append(user_, token_of(33, '1'), "a")));
  grow_old(user_);
  ASSERT_EQ(sweep().value_or(-1), 1);
  EXPECT_THAT(user_.exec("UPDATE data SET value = 'x'"), StartsWith("leasehold: not_entered"));
  EXPECT_TRUE(refused(append(user_, token_of(33, '1'), "late"), Reason::swept, 33));
  EXPECT_TRUE(good(append(user_, token_of(34, '2'), "b")));
  EXPECT_EQ(user_.ask("SELECT value FROM data"), "ab");
}

TEST_F(FenceSweepTest, PlainSqlIsToldTheSame) {
  sweep_mark(token_of(33, '1'));
  const auto enter = [&](const char* view, int token, char store) {
    return user_.exec(std::string("INSERT INTO ") + view +
                      "(resource, token, lineage, request) VALUES('old', " + std::to_string(token) +
                      ", '" + lineage_of(store).str() + "', '" + std::string(32, '1') + "')");
  };
  for (const char* view : {"leasehold_enter", "leasehold_enter_to_read"}) {
    EXPECT_THAT(enter(view, 33, 'a'),
                StartsWith("leasehold: fenced_out: marks up to a higher token were swept; take the "
                           "lock anew"));
    EXPECT_THAT(enter(view, 99, 'b'),
                AllOf(StartsWith("leasehold: fenced_out: marks were swept, and the store"),
                      HasSubstr("`leasehold fence admit URL STORE_ID`")));
    EXPECT_EQ(user_.exec("INSERT INTO leasehold_count_refusal(resource) VALUES('old')"), "");
  }
  EXPECT_EQ(mark("old")->refused, 2);
  EXPECT_THAT(user_.exec("INSERT INTO leasehold_count_refusal(resource) VALUES('')"),
              StartsWith("leasehold: invalid: resource"));
  EXPECT_EQ(enter("leasehold_enter", 34, 'a'), "");
}

TEST_F(FenceSweepTest, RemovingTakesTheFloorsToo) {
  sweep_mark(token_of(33, '1'));
  const auto admin = file_.admin();
  ASSERT_TRUE(good(admin->remove()));
  EXPECT_EQ(user_.ask("SELECT count(*) FROM sqlite_master WHERE name LIKE 'leasehold_f%'"), "0");
  EXPECT_TRUE(bad(sweep(), ErrorCode::unavailable));
  EXPECT_TRUE(bad(admin->admit(store('a')), ErrorCode::unavailable));
  EXPECT_TRUE(bad(admin->floors(), ErrorCode::unavailable));
  ASSERT_TRUE(good(admin->install()));
  EXPECT_TRUE(good(enter(user_, token_of(1, '1'), "old")));
}

// ---- the rule -------------------------------------------------------------------------------

// What judge() says of a resource where all that was swept is known: each thing that may have come
// before, then each token around it.
TEST_F(FenceSweepTest, FollowsTheRule) {
  struct Step {
    Token token;
    Access access;
  };
  const auto writes = [](std::int64_t number, char request, char from = 'a') {
    return Step{token_of(number, request, from), Access::write};
  };
  const auto reads = [](std::int64_t number, char request, char from = 'a') {
    return Step{token_of(number, request, from), Access::read};
  };
  sweep_mark(token_of(33, '1'));
  const std::vector<std::vector<Step>> befores = {
      {},
      {reads(34, '2')},
      {reads(35, '3'), reads(34, '2')},
      {writes(34, '2')},
      {writes(34, '2'), reads(35, '3')},
      {reads(34, '2'), writes(35, '3')},
  };
  int played = 0;
  for (const auto& before : befores) {
    for (const std::int64_t number : {32, 33, 34, 35, 36}) {
      for (const Step& then :
           {writes(number, '2'), reads(number, '2'), writes(number, '3'), reads(number, '3'),
            writes(number, '2', 'b'), reads(number, '2', 'b')}) {
        const std::string resource = "case " + std::to_string(++played);
        SCOPED_TRACE(resource);
        const auto play = [&](const Step& step) {
          return step.access == Access::write ? enter(user_, step.token, resource)
                                              : enter_to_read(user_, step.token, resource);
        };
        const auto attempt = [](const Step& step) {
          return fence::Attempt{.token = step.token, .access = step.access};
        };
        fence::Mark mark{.floor = 33};
        for (const Step& step : before) {
          mark = std::get<fence::Enter>(fence::judge(mark, attempt(step))).next;
          ASSERT_TRUE(good(play(step)));
        }
        if (before.empty() && then.token.lineage != lineage_of()) {
          mark.floor = 0;
          mark.knows_store = false;
        }
        const auto verdict = fence::judge(mark, attempt(then));
        const auto done = play(then);
        std::int64_t count = 0;
        if (const auto* refuse = std::get_if<fence::Refuse>(&verdict)) {
          ASSERT_TRUE(bad(done, ErrorCode::fenced_out));
          const Error expected = fence::refusal(named(resource), attempt(then), refuse->why, mark);
          EXPECT_EQ(done.error().message, expected.message);
          count = 1;
        } else {
          ASSERT_TRUE(good(done));
          mark = std::get<fence::Enter>(verdict).next;
        }
        const auto found = this->mark(resource);
        const FenceMark shown = mark.shown(named(resource), count);
        ASSERT_TRUE(found);
        EXPECT_EQ(found->mark, shown.mark);
        EXPECT_EQ(found->reader, shown.reader);
        EXPECT_EQ(found->lineage, shown.lineage);
        EXPECT_EQ(found->refused, count);
      }
    }
  }
  EXPECT_EQ(played, 180);
}

}  // namespace
}  // namespace leasehold::sqlite
