// Marks that are swept, and what is refused behind their floor, whatever comes in between.
#include <map>
#include <mutex>
#include <random>

#include "fence/refusal.h"
#include "fence_database.h"
#include "leasehold/postgres/adapter.h"
#include "leasehold/postgres/claim.h"
#include "testing/fence_cases.h"

namespace leasehold::postgres {
namespace {

using leasehold::testing::fence_rule_cases;
using leasehold::testing::FenceRuleCase;
using leasehold::testing::FenceStep;

class SweepTest : public FenceDatabase {
 protected:
  static constexpr Millis kMonth = std::chrono::hours(24 * 30);

  Result<std::int64_t> sweep(Millis older_than = kMonth) const {
    return admin_->sweep({.older_than = older_than});
  }
  // The marks, or one of them, are from long ago then.
  void make_old(const std::string& resource = "") const {
    const std::string which = resource.empty() ? "" : " WHERE resource = '" + resource + "'";
    ASSERT_EQ(user_.exec("UPDATE leasehold_fence.mark SET entered_at = entered_at - interval '40 "
                         "days', read_at = read_at - interval '40 days'" +
                         which +
                         "; UPDATE leasehold_fence.refusal SET refused_at = refused_at - "
                         "interval '40 days'" +
                         which),
              "");
  }
  static Status enter_on(const UserConnection& user, const std::string& resource,
                         const Token& token) {
    return Fence::open(user.get(), resource).value().transaction(token, nothing);
  }
  static Status read_on(const UserConnection& user, const std::string& resource,
                        const Token& token) {
    return Fence::open(user.get(), resource).value().read(token, nothing);
  }
  Status enter_at(const std::string& resource, const Token& token) const {
    return enter_on(user_, resource, token);
  }
  Status read_at(const std::string& resource, const Token& token) const {
    return read_on(user_, resource, token);
  }
  std::string resources() const {
    return user_.ask("SELECT string_agg(resource, ' ') FROM leasehold_fence.marks()");
  }
  static Token of_lock(const std::string& lock, std::int64_t number, char request) {
    return {TokenNumber::of(number).value(),
            Lineage::parse(std::string(32, 'a') + "/" + lock).value(), request_of(request)};
  }
  static StoreId store(char digit) { return lineage_of(digit).store; }
  static ::testing::AssertionResult refused_as(const Status& status, Refusal::Reason why,
                                               std::int64_t floor) {
    if (auto ok = bad(status, ErrorCode::fenced_out); !ok) return ok;
    const auto& refusal = status.error().refusal;
    if (refusal && refusal->why == why && refusal->mark == floor) {
      return ::testing::AssertionSuccess();
    }
    return ::testing::AssertionFailure() << to_string(status.error());
  }
  static ::testing::AssertionResult swept_up_to(std::int64_t floor, const Status& status) {
    return refused_as(status, Refusal::Reason::swept, floor);
  }

  const std::unique_ptr<FenceAdmin> admin_ =
      adapters().front().offers.open<FenceAdmin>(Url::parse(url()).value()).value();
};

TEST_F(SweepTest, WhatIsOldIsGoneAndWhoeverWasBelowIsStillRefused) {
  ASSERT_TRUE(good(enter_at("old", token_of(33, '1'))));
  ASSERT_TRUE(good(enter_at("young", token_of(20, '2'))));
  make_old("old");
  EXPECT_EQ(sweep().value_or(-1), 1);
  EXPECT_EQ(resources(), "young");
  EXPECT_FALSE(*Fence::open(user_.get(), "old")->mark());
  EXPECT_EQ(admin_->floors().value(), (std::vector<FenceFloor>{{store('a'), 33}}));

  for (const char* resource : {"old", "new"}) {
    EXPECT_TRUE(swept_up_to(33, enter_at(resource, token_of(32, '3'))));
    EXPECT_TRUE(swept_up_to(33, enter_at(resource, token_of(33, '1'))));
    EXPECT_TRUE(swept_up_to(33, read_at(resource, token_of(33, '1'))));
    EXPECT_TRUE(swept_up_to(33, enter_at(resource, of_lock("another", 33, '4'))));
  }
  EXPECT_EQ(user_.ask("SELECT refused FROM leasehold_fence.marks() WHERE resource = 'old'"), "4");
  EXPECT_TRUE(swept_up_to(33, enter_at("old", token_of(33, '1')))) << "a count is no mark";
  EXPECT_TRUE(good(enter_at("young", token_of(20, '2')))) << "a mark is judged by itself";
  EXPECT_TRUE(good(enter_at("old", of_lock("another", 34, '4'))));
  EXPECT_TRUE(good(read_at("new", token_of(34, '5'))));
}

TEST_F(SweepTest, ReadersBehindAFloorAreJudgedByIt) {
  ASSERT_TRUE(good(enter_at("old", token_of(33, '1'))));
  make_old();
  ASSERT_EQ(sweep().value_or(-1), 1);
  ASSERT_TRUE(good(read_at("old", token_of(40, '4'))));
  EXPECT_TRUE(good(read_at("old", token_of(35, '3'))));
  EXPECT_TRUE(bad(read_at("old", token_of(33, '1')), ErrorCode::fenced_out));
  ASSERT_TRUE(good(enter_at("other", token_of(50, '5'))));
  make_old("other");
  ASSERT_EQ(sweep().value_or(-1), 1);
  EXPECT_TRUE(good(read_at("old", token_of(36, '3')))) << "here it was above the floor";
}

// Every case of the rule for a resource without a mark, and for one with a reader.
TEST_F(SweepTest, FollowsTheRule) {
  ASSERT_TRUE(good(enter_at("old", token_of(33, '1'))));
  ASSERT_TRUE(good(enter_at("also", token_of(1, '1', 'b'))));
  make_old();
  ASSERT_EQ(sweep().value_or(-1), 2);
  const auto floor_of = [&](const Token& token) {
    return token.lineage.store == store('a') ? 33 : token.lineage.store == store('b') ? 1 : 0;
  };
  const leasehold::testing::FenceWays ways{.readers = true};
  const FenceStep reader{.token = token_of(40, '4'), .access = Access::read, .writes = false};
  int played = 0;
  for (const FenceRuleCase& it : fence_rule_cases(ways)) {
    if (it.adopted || !it.before.empty()) continue;
    for (const char from : {'s', 'c'}) {
      for (const bool is_read : {false, true}) {
        Token token = it.then.token;
        if (from == 'c') token.lineage = lineage_of('c');
        const std::string name = "case-" + std::to_string(played++);
        fence::Mark mark{.floor = floor_of(token), .knows_store = from == 's'};
        if (is_read) {
          ASSERT_TRUE(good(read_at(name, reader.token)));
          mark = {.lineage = lineage_of(),
                  .floor = 33,
                  .reader = fence::Mark::Reader{reader.token.number, reader.token.request}};
        }
        const fence::Attempt attempt{.token = token,
                                     .access = it.then.access,
                                     .writes = it.then.writes,
                                     .single = it.then.single};
        const auto verdict = fence::judge(mark, attempt);
        const Fence here = Fence::open(user_.get(), name).value();
        const Status done =
            attempt.access == Access::read
                ? here.read(token, nothing)
                : here.transaction(token, nothing,
                                   attempt.single ? Entry::single : Entry::repeatable);
        SCOPED_TRACE(it.str() + (is_read ? " after a reader" : "") + " from " + from);
        const auto resource = ResourceName::parse(name).value();
        if (const auto* refuse = std::get_if<fence::Refuse>(&verdict)) {
          const Error expected = fence::refusal(resource, attempt, refuse->why, mark);
          ASSERT_TRUE(bad(done, ErrorCode::fenced_out));
          EXPECT_EQ(done.error().message, expected.message);
          EXPECT_EQ(done.error().refusal->mark, expected.refusal->mark);
          EXPECT_EQ(done.error().refusal->why, expected.refusal->why);
          continue;
        }
        EXPECT_TRUE(good(done));
        const auto shown = std::get<fence::Enter>(verdict).next.shown(resource, 0);
        const auto found = here.mark().value();
        ASSERT_TRUE(found);
        EXPECT_EQ(found->mark, shown.mark);
        EXPECT_EQ(found->reader, shown.reader);
      }
    }
  }
  EXPECT_GT(played, 100);
}

TEST_F(SweepTest, AStoreThatIsNotKnownIsRefusedUntilItIsAdmitted) {
  EXPECT_TRUE(admin_->floors().value().empty());
  ASSERT_TRUE(good(enter_at("old", token_of(33, '1'))));
  ASSERT_TRUE(good(enter_at("kept", token_of(5, '1', 'b'))));
  EXPECT_TRUE(good(enter_at("first", token_of(7, '1', 'c')))) << "it was never swept";
  ASSERT_EQ(user_.exec("SELECT leasehold_fence.reset('first')"), "");
  make_old("old");
  ASSERT_EQ(sweep().value_or(-1), 1);

  EXPECT_TRUE(good(enter_at("x", token_of(1, '1', 'b')))) << "of a mark it knew";
  const Status unknown = enter_at("y", token_of(99, '1', 'c'));
  ASSERT_TRUE(refused_as(unknown, Refusal::Reason::unknown, 0));
  EXPECT_THAT(unknown.error().message,
              HasSubstr("`leasehold fence admit URL " + store('c').hex() + "`"));
  EXPECT_TRUE(refused_as(read_at("y", token_of(99, '1', 'c')), Refusal::Reason::unknown, 0));
  EXPECT_TRUE(good(enter_at("first", token_of(7, '1', 'c')))) << "there an operator has reset it";

  for (int times = 0; times < 2; ++times) EXPECT_TRUE(good(admin_->admit(store('c'))));
  EXPECT_TRUE(good(admin_->admit(store('a'))));
  EXPECT_TRUE(good(enter_at("y", token_of(99, '1', 'c'))));
  EXPECT_EQ(admin_->floors().value(),
            (std::vector<FenceFloor>{{store('a'), 33}, {store('b'), 0}, {store('c'), 0}}));
  EXPECT_TRUE(swept_up_to(33, enter_at("old", token_of(33, '1')))) << "its floor stays";
}

TEST_F(SweepTest, PlainSqlIsToldTheSame) {
  ASSERT_TRUE(good(enter_at("old", token_of(33, '1'))));
  make_old();
  ASSERT_EQ(sweep().value_or(-1), 1);
  for (const Token& token : {token_of(33, '1'), token_of(99, '1', 'c')}) {
    const Status refused = enter_at("old", token);
    ASSERT_TRUE(bad(refused, ErrorCode::fenced_out));
    for (const std::string function : {"enter", "enter_to_read"}) {
      EXPECT_EQ(user_.exec("SELECT leasehold_fence." + function + "('old', $1, $2, $3)",
                           {std::to_string(token.number.value()), token.lineage.str(),
                            token.request.hex()}),
                "LH001 leasehold: fenced_out: " + refused.error().message);
    }
  }
}

TEST_F(SweepTest, WithNothingToForgetNothingIsRefused) {
  EXPECT_EQ(sweep().value_or(-1), 0);
  ASSERT_TRUE(good(enter_at("young", token_of(33, '1'))));
  EXPECT_EQ(sweep().value_or(-1), 0);
  EXPECT_TRUE(admin_->floors().value().empty());
  EXPECT_TRUE(good(enter_at("new", token_of(7, '1', 'c'))));
}

TEST_F(SweepTest, StoresThatCameLaterAreKnownToTheNextSweep) {
  ASSERT_TRUE(good(enter_at("old", token_of(33, '1'))));
  make_old();
  ASSERT_EQ(sweep().value_or(-1), 1);
  ASSERT_TRUE(good(admin_->adopt(ledger(), lineage_of('b'), TokenNumber::of(5).value())));
  EXPECT_TRUE(bad(enter_at("new", token_of(9, '1', 'b')), ErrorCode::fenced_out));
  EXPECT_EQ(sweep().value_or(-1), 0);
  EXPECT_TRUE(good(enter_at("new", token_of(9, '1', 'b'))));
}

TEST_F(SweepTest, WhatAnOperatorHasSetAndClaimsStay) {
  ASSERT_TRUE(good(Claim::take(user_.get(), "claimed", request_of('1'))));
  ASSERT_TRUE(good(Claim::take(user_.get(), "confirmed", request_of('1'))->transaction(nothing)));
  ASSERT_TRUE(good(enter_at("reset", token_of(50, '1'))));
  ASSERT_EQ(user_.exec("SELECT leasehold_fence.reset('reset')"), "");
  const auto named = [](const char* name) { return ResourceName::parse(name).value(); };
  for (const char* name : {"adopted", "adopted and read", "adopted and written"}) {
    ASSERT_TRUE(good(admin_->adopt(named(name), lineage_of(), TokenNumber::of(33).value())));
  }
  ASSERT_TRUE(good(read_at("adopted and read", token_of(40, '1'))));
  ASSERT_TRUE(good(enter_at("adopted and written", token_of(41, '1'))));
  ASSERT_TRUE(good(read_at("read", token_of(42, '1'))));
  make_old();
  EXPECT_EQ(sweep().value_or(-1), 1);
  EXPECT_EQ(resources(), "adopted adopted and read adopted and written claimed confirmed reset");
  EXPECT_EQ(admin_->floors().value(), (std::vector<FenceFloor>{{store('a'), 42}}));
  EXPECT_TRUE(good(enter_at("reset", token_of(1, '1')))) << "on purpose";
  EXPECT_TRUE(good(read_at("adopted and read", token_of(34, '1'))));
  EXPECT_TRUE(bad(enter_at("adopted", token_of(32, '1')), ErrorCode::fenced_out));
  EXPECT_TRUE(good(enter_at("adopted", token_of(33, '1'))));
  EXPECT_TRUE(good(enter_at("adopted and written", token_of(41, '1'))));
}

// A floor of its own store would not say that the old store has no business there any more.
TEST_F(SweepTest, WhatWasAdoptedKeepsTheOldStoreOutForGood) {
  const auto named = [](const char* name) { return ResourceName::parse(name).value(); };
  ASSERT_TRUE(good(enter_at("other", token_of(10, '1'))));
  for (const char* name : {"once", "twice"}) {
    ASSERT_TRUE(good(enter_at(name, token_of(33, '1'))));
    ASSERT_TRUE(good(admin_->adopt(named(name), lineage_of('b'), TokenNumber::of(1).value())));
    ASSERT_TRUE(good(enter_at(name, token_of(5, '2', 'b'))));
  }
  ASSERT_TRUE(good(enter_at("twice", token_of(6, '3', 'b'))));
  make_old();
  EXPECT_EQ(sweep().value_or(-1), 1);
  EXPECT_EQ(resources(), "once twice");
  EXPECT_TRUE(refused_as(enter_at("once", token_of(34, '1')), Refusal::Reason::foreign, 5));
  EXPECT_TRUE(refused_as(enter_at("twice", token_of(34, '1')), Refusal::Reason::foreign, 6));
  EXPECT_TRUE(refused_as(enter_at("twice", token_of(5, '2', 'b')), Refusal::Reason::lower, 6))
      << "the number that was adopted counts no more";
  EXPECT_THAT(user_.exec("DELETE FROM leasehold_fence.mark"), StartsWith("LH003"));
}

TEST_F(SweepTest, WhatWasResetKeepsTheOldStoreOutForGood) {
  ASSERT_TRUE(good(enter_at("other", token_of(10, '1'))));
  ASSERT_TRUE(good(enter_at("reset", token_of(33, '1'))));
  ASSERT_EQ(user_.exec("SELECT leasehold_fence.reset('reset')"), "");
  ASSERT_TRUE(good(enter_at("reset", token_of(5, '2', 'b'))));
  make_old();
  EXPECT_EQ(sweep().value_or(-1), 1);
  EXPECT_TRUE(refused_as(enter_at("reset", token_of(34, '1')), Refusal::Reason::foreign, 5));
  EXPECT_TRUE(good(enter_at("reset", token_of(6, '3', 'b'))));
}

TEST_F(SweepTest, NobodyIsAdoptedBelowTheFloorWhereThereIsNoMark) {
  const auto adopt = [&](const char* name, char store, std::int64_t number) {
    return admin_->adopt(ResourceName::parse(name).value(), lineage_of(store),
                         TokenNumber::of(number).value());
  };
  ASSERT_TRUE(good(enter_at("old", token_of(33, '1'))));
  ASSERT_TRUE(good(enter_at("reset", token_of(20, '1'))));
  ASSERT_EQ(user_.exec("SELECT leasehold_fence.reset('reset')"), "");
  make_old();
  ASSERT_EQ(sweep().value_or(-1), 1);
  for (const char* name : {"old", "new"}) {
    for (const std::int64_t number : {5, 33}) {
      const Status low = adopt(name, 'a', number);
      ASSERT_TRUE(bad(low, ErrorCode::invalid));
      EXPECT_EQ(low.error().message, fence::below_the_floor(ResourceName::parse(name).value(), 33,
                                                            TokenNumber::of(number).value())
                                         .message);
    }
  }
  EXPECT_EQ(resources(), "reset");
  EXPECT_TRUE(good(adopt("old", 'a', 34)));
  EXPECT_TRUE(good(adopt("new", 'c', 1))) << "a store without a floor";
  EXPECT_TRUE(good(adopt("reset", 'a', 1))) << "there it is on purpose";
  EXPECT_TRUE(good(enter_at("old", token_of(34, '1'))));
}

TEST_F(SweepTest, AMarkThatSomebodyReadsIsNotOld) {
  ASSERT_TRUE(good(enter_at("ledger", token_of(33, '1'))));
  for (const Token& token : {token_of(40, '4'), token_of(35, '3'), token_of(40, '4')}) {
    make_old();
    ASSERT_TRUE(good(read_at("ledger", token)));
    EXPECT_EQ(sweep().value_or(-1), 0);
  }
  make_old();
  EXPECT_EQ(sweep().value_or(-1), 1);
  EXPECT_TRUE(swept_up_to(40, enter_at("ledger", token_of(40, '4'))));
}

TEST_F(SweepTest, NeitherWaitsForWhoIsInsideNorTakesItsMark) {
  ASSERT_TRUE(good(enter_at("ledger", token_of(33, '1'))));
  ASSERT_TRUE(good(enter_at("other", token_of(40, '4'))));
  make_old();
  const UserConnection reader(url());
  const UserConnection writer(url());
  ASSERT_EQ(reader.exec(
                "BEGIN; SELECT FROM leasehold_fence.mark WHERE resource = 'ledger' FOR KEY SHARE"),
            "");
  ASSERT_EQ(writer.exec("BEGIN"), "");
  ASSERT_TRUE(good(Fence::open(writer.get(), "other")->enter(token_of(41, '5'))));
  EXPECT_EQ(sweep().value_or(-1), 0);
  ASSERT_EQ(writer.exec("COMMIT"), "");
  ASSERT_EQ(reader.exec("COMMIT"), "");
  EXPECT_EQ(resources(), "ledger other");
  EXPECT_TRUE(good(enter_at("other", token_of(41, '5'))));
  EXPECT_EQ(sweep().value_or(-1), 1);
}

TEST_F(SweepTest, AnAgeIsNeeded) {
  ASSERT_TRUE(good(enter_at("ledger", token_of(33, '1'))));
  make_old();
  for (const Millis age : {Millis(0), Millis(-1), Millis::min()}) {
    const auto refused = sweep(age);
    ASSERT_TRUE(bad(refused, ErrorCode::invalid));
    EXPECT_THAT(refused.error().message, HasSubstr("must be more than 0"));
  }
  EXPECT_EQ(sweep(Millis::max()).value_or(-1), 0);
  EXPECT_EQ(resources(), "ledger");
}

TEST_F(SweepTest, AGuardedTableStaysGuarded) {
  ASSERT_TRUE(good(guard_table(user_.get(), "data", ledger())));
  ASSERT_TRUE(good(fence().transaction(token_of(33, '1'), insert_row)));
  make_old();
  ASSERT_EQ(sweep().value_or(-1), 1);
  EXPECT_THAT(user_.exec("INSERT INTO data VALUES('x')"), StartsWith("LH002"));
  EXPECT_TRUE(swept_up_to(33, fence().transaction(token_of(33, '1'), insert_row)));
  EXPECT_TRUE(good(fence().transaction(token_of(34, '2'), insert_row)));
  EXPECT_EQ(rows(), "2");
}

TEST_F(SweepTest, OldRefusalsGoWithTheirMarks) {
  ASSERT_TRUE(good(enter_at("ledger", token_of(33, '1'))));
  EXPECT_TRUE(bad(enter_at("ledger", token_of(32, '2')), ErrorCode::fenced_out));
  make_old();
  ASSERT_EQ(sweep().value_or(-1), 1);
  EXPECT_EQ(resources(), "");
  EXPECT_TRUE(swept_up_to(33, enter_at("ledger", token_of(32, '2'))));
  ASSERT_EQ(sweep().value_or(-1), 0);
  EXPECT_EQ(refused(), "1") << "it is young";
}

TEST_F(SweepTest, GoesInStepsAndStopsBetweenThem) {
  ASSERT_EQ(user_.exec("SELECT count(leasehold_fence.enter(n::text, n, '" + lineage_of().str() +
                       "', '" + std::string(32, '1') + "')) FROM generate_series(1, 1200) n"),
            "");
  make_old();
  std::stop_source stop;
  std::vector<std::int64_t> told;
  const auto tell = [&](std::int64_t swept) {
    told.push_back(swept);
    stop.request_stop();
  };
  EXPECT_TRUE(bad(admin_->sweep({.older_than = kMonth, .progress = tell, .stop = stop.get_token()}),
                  ErrorCode::cancelled));
  EXPECT_EQ(told, (std::vector<std::int64_t>{500}));
  EXPECT_EQ(user_.ask("SELECT count(*) FROM leasehold_fence.mark"), "700");
  EXPECT_TRUE(bad(enter_at("1", token_of(1200, '1')), ErrorCode::fenced_out));
  EXPECT_EQ(sweep().value_or(-1), 700);
  EXPECT_TRUE(bad(enter_at("999", token_of(1200, '1')), ErrorCode::fenced_out));
  EXPECT_TRUE(good(enter_at("999", token_of(1201, '2'))));
}

TEST_F(SweepTest, IsTheOwnersBusiness) {
  ASSERT_TRUE(good(enter_at("ledger", token_of(33, '1'))));
  make_old();
  ASSERT_EQ(user_.exec("DROP ROLE IF EXISTS sweeper; CREATE ROLE sweeper LOGIN;"
                       "GRANT USAGE ON SCHEMA leasehold_fence TO sweeper"),
            "");
  {
    const auto other =
        adapters()
            .front()
            .offers.open<FenceAdmin>(Url::parse(fence_server().url(database_, "sweeper")).value())
            .value();
    EXPECT_TRUE(bad(other->sweep({.older_than = kMonth}), ErrorCode::unavailable));
    EXPECT_TRUE(bad(other->admit(store('b')), ErrorCode::unavailable));
    EXPECT_TRUE(good(other->floors()));
  }
  EXPECT_EQ(user_.exec("DROP OWNED BY sweeper; DROP ROLE sweeper"), "");
  EXPECT_EQ(resources(), "ledger");
}

// ---- by accident ---------------------------------------------------------------------------

TEST_F(SweepTest, MarksThatNoFloorCoversCannotBeDeleted) {
  ASSERT_TRUE(good(enter_at("a", token_of(33, '1'))));
  ASSERT_TRUE(good(enter_at("b", token_of(34, '1'))));
  ASSERT_TRUE(good(enter_at("c", token_of(30, '1'))));
  ASSERT_TRUE(good(read_at("c", token_of(35, '1'))));
  ASSERT_TRUE(good(enter_at("d", token_of(2, '1', 'b'))));
  ASSERT_TRUE(good(Claim::take(user_.get(), "e", request_of('1'))));
  ASSERT_TRUE(good(
      admin_->adopt(ResourceName::parse("f").value(), lineage_of(), TokenNumber::of(3).value())));
  ASSERT_TRUE(good(enter_at("g", token_of(3, '1'))));
  ASSERT_EQ(user_.exec("SELECT leasehold_fence.reset('g')"), "");
  make_old("a");
  ASSERT_EQ(sweep().value_or(-1), 1);
  for (const char* resource : {"b", "c", "d", "e", "f", "g"}) {
    EXPECT_THAT(user_.exec("DELETE FROM leasehold_fence.mark WHERE resource = '" +
                           std::string(resource) + "'"),
                StartsWith("LH003"))
        << resource;
  }
  EXPECT_THAT(user_.exec("DELETE FROM leasehold_fence.mark"), StartsWith("LH003"));
  EXPECT_THAT(user_.exec("TRUNCATE leasehold_fence.mark"), StartsWith("LH003"));
  ASSERT_TRUE(good(enter_at("a", token_of(36, '1'))));
  EXPECT_THAT(user_.exec("DELETE FROM leasehold_fence.mark WHERE resource = 'a'"),
              StartsWith("LH003"));
  EXPECT_EQ(resources(), "a b c d e f g");
}

TEST_F(SweepTest, FloorsCannotBeLoweredOrDeleted) {
  ASSERT_TRUE(good(enter_at("ledger", token_of(33, '1'))));
  make_old();
  ASSERT_EQ(sweep().value_or(-1), 1);
  for (const char* sql :
       {"UPDATE leasehold_fence.floor SET floor = 32", "DELETE FROM leasehold_fence.floor",
        "TRUNCATE leasehold_fence.floor",
        "UPDATE leasehold_fence.floor SET store = repeat('b', 32)",
        "UPDATE leasehold_fence.sweeping SET sweeps = 0", "DELETE FROM leasehold_fence.sweeping",
        "TRUNCATE leasehold_fence.sweeping"}) {
    EXPECT_THAT(user_.exec(sql), StartsWith("LH003")) << sql;
  }
  for (const char* trigger :
       {"keep ON leasehold_fence.floor", "rise ON leasehold_fence.floor",
        "keep ON leasehold_fence.sweeping", "uncovered ON leasehold_fence.mark"}) {
    EXPECT_TRUE(good(admin_->check_marks()));
    ASSERT_EQ(user_.exec(std::string("DROP TRIGGER ") + trigger), "");
    EXPECT_TRUE(bad(admin_->check_marks(), ErrorCode::unavailable)) << trigger;
    ASSERT_TRUE(good(install_fence(user_.get())));
  }
  EXPECT_TRUE(good(admin_->check_marks()));
  EXPECT_EQ(admin_->floors().value(), (std::vector<FenceFloor>{{store('a'), 33}}));
}

// ---- in the middle -------------------------------------------------------------------------

TEST_F(SweepTest, KilledBetweenFloorAndDeletionGoesOnLater) {
  ASSERT_TRUE(good(enter_at("old", token_of(33, '1'))));
  make_old();
  ASSERT_EQ(user_.exec("SET synchronous_commit = off;"
                       "SELECT leasehold_fence.raise_floors(ARRAY[repeat('a', 32)], ARRAY[33])"),
            "");
  fence_server().kill();
  fence_server().start();
  const UserConnection next(url());
  const auto admin = adapters().front().offers.open<FenceAdmin>(Url::parse(url()).value()).value();
  EXPECT_EQ(admin->floors().value(), (std::vector<FenceFloor>{{store('a'), 33}}));
  EXPECT_TRUE(bad(enter_on(next, "old", token_of(32, '2')), ErrorCode::fenced_out));
  EXPECT_TRUE(swept_up_to(33, enter_on(next, "new", token_of(32, '2'))));
  EXPECT_TRUE(good(enter_on(next, "old", token_of(33, '1')))) << "it has its mark still";
  ASSERT_EQ(
      next.exec("UPDATE leasehold_fence.mark SET entered_at = entered_at - interval '40 days'"),
      "");
  EXPECT_EQ(admin->sweep({.older_than = kMonth}).value_or(-1), 1);
  EXPECT_TRUE(swept_up_to(33, enter_on(next, "old", token_of(33, '1'))));
}

// A sweep that was killed after a page, and then the server.
TEST_F(SweepTest, WhatWasSweptBeforeACrashIsRefusedAfterIt) {
  ASSERT_TRUE(good(enter_at("old", token_of(33, '1'))));
  make_old();
  const auto die = [&](std::int64_t) { fence_server().kill(); };
  EXPECT_FALSE(admin_->sweep({.older_than = kMonth, .progress = die}));
  fence_server().start();
  const UserConnection next(url());
  EXPECT_EQ(next.ask("SELECT count(*) FROM leasehold_fence.mark"), "0");
  EXPECT_TRUE(swept_up_to(33, enter_on(next, "old", token_of(33, '1'))));
}

class SweepIsolationTest : public SweepTest, public ::testing::WithParamInterface<const char*> {
 protected:
  bool reads_committed() const { return std::string(GetParam()) == "read committed"; }
  // Has read, so that it has a snapshot.
  std::unique_ptr<UserConnection> begun() const {
    auto user = std::make_unique<UserConnection>(url());
    EXPECT_EQ(user->exec(std::string("SET lock_timeout = '20s'; BEGIN ISOLATION LEVEL ") +
                         GetParam() + "; SELECT count(*) FROM data"),
              "");
    return user;
  }
  static Status enter_inside(const UserConnection& user, const Token& token, bool reads) {
    return reads ? fence_of(user).enter_to_read(token) : fence_of(user).enter(token);
  }
  // A stale token in a transaction that began before it was swept.
  void expect_kept_out(const UserConnection& user, bool reads, std::int64_t floor = 34) const {
    const Status status = enter_inside(user, token_of(33, '1'), reads);
    if (reads_committed()) {
      EXPECT_TRUE(swept_up_to(floor, status));
    } else {
      EXPECT_TRUE(bad(status, ErrorCode::unavailable));
    }
  }
};

TEST_P(SweepIsolationTest, ASnapshotFromBeforeTheFloorLetsNobodyIn) {
  for (const bool reads : {false, true}) {
    ASSERT_TRUE(good(enter_at("ledger", token_of(reads ? 44 : 34, '2'))));
    make_old();
    const auto stale = begun();
    ASSERT_EQ(sweep().value_or(-1), 1);
    expect_kept_out(*stale, reads, reads ? 44 : 34);
  }
}

TEST_P(SweepIsolationTest, ASnapshotFromBeforeTheDeletionLetsNobodyIn) {
  for (const bool reads : {false, true}) {
    ASSERT_TRUE(good(enter_at("ledger", token_of(reads ? 44 : 34, '2'))));
    make_old();
    ASSERT_EQ(user_.exec("SELECT leasehold_fence.raise_floors(ARRAY[repeat('a', 32)], ARRAY[" +
                         std::string(reads ? "44" : "34") + "])"),
              "");
    const auto stale = begun();
    ASSERT_EQ(sweep().value_or(-1), 1);
    expect_kept_out(*stale, reads, reads ? 44 : 34);
  }
}

// The mark came and went while the transaction was open: it sees neither that nor the floor.
TEST_P(SweepIsolationTest, AMarkThatTheSnapshotNeverSawKeepsItOut) {
  for (const bool reads : {false, true}) {
    const auto stale = begun();
    ASSERT_TRUE(good(enter_at("ledger", token_of(reads ? 44 : 34, '2'))));
    make_old();
    ASSERT_EQ(sweep().value_or(-1), 1);
    expect_kept_out(*stale, reads, reads ? 44 : 34);
  }
}

TEST_P(SweepIsolationTest, AStoreThatTheSnapshotTookForKnownIsKeptOut) {
  const auto stale = begun();
  ASSERT_TRUE(good(enter_at("ledger", token_of(34, '2', 'b'))));
  make_old();
  ASSERT_EQ(sweep().value_or(-1), 1);
  const Status status = fence_of(*stale).enter(token_of(33, '1'));
  EXPECT_TRUE(bad(status, reads_committed() ? ErrorCode::fenced_out : ErrorCode::unavailable));
}

TEST_P(SweepIsolationTest, NobodyIsAdoptedBelowAFloorThatTheSnapshotNeverSaw) {
  const auto stale = begun();
  ASSERT_TRUE(good(enter_at("ledger", token_of(34, '2'))));
  make_old();
  ASSERT_EQ(sweep().value_or(-1), 1);
  EXPECT_THAT(
      stale->exec("SELECT leasehold_fence.adopt('ledger', '" + lineage_of().str() + "', 33)"),
      StartsWith(reads_committed() ? "LH003" : "40001"));
}

TEST_P(SweepIsolationTest, WhoWasFirstInBeforeTheFloorStays) {
  for (const bool reads : {false, true}) {
    const std::int64_t floor = reads ? 44 : 34;
    ASSERT_TRUE(good(enter_at("old", token_of(floor, '2'))));
    make_old("old");
    const auto inside = begun();
    ASSERT_TRUE(good(enter_inside(*inside, token_of(33, '1'), reads)));
    EXPECT_EQ(sweep().value_or(-1), 1) << "it waits for nobody";
    EXPECT_EQ(inside->exec("COMMIT"), "");
    EXPECT_TRUE(
        good(reads ? read_at("ledger", token_of(33, '1')) : enter_at("ledger", token_of(33, '1'))));
    EXPECT_TRUE(bad(enter_at("ledger", token_of(32, '1')), ErrorCode::fenced_out));
    ASSERT_EQ(user_.exec("SELECT leasehold_fence.adopt('ledger', '" + lineage_of('b').str() +
                         "', 1); DROP SCHEMA leasehold_fence CASCADE"),
              "");
    ASSERT_TRUE(good(install_fence(user_.get())));
  }
}

// It waits for the first entry of another, which is gone again when it looks.
TEST_P(SweepIsolationTest, WhoWaitsForAFirstEntryIsJudgedByWhatIsLeft) {
  const UserConnection first(url());
  ASSERT_EQ(first.exec("BEGIN"), "");
  ASSERT_TRUE(good(fence_of(first).enter(token_of(34, '2'))));
  const auto stale = begun();
  auto waiting =
      std::async(std::launch::async, [&] { return fence_of(*stale).enter(token_of(33, '1')); });
  await_waiter_elsewhere();
  ASSERT_EQ(first.exec("UPDATE leasehold_fence.mark SET entered_at = now() - interval '40 days';"
                       "SELECT leasehold_fence.raise_floors(ARRAY[repeat('a', 32)], ARRAY[34]);"
                       "SELECT leasehold_fence.sweep_marks('', 1); COMMIT"),
            "");
  const Status late = waiting.get();
  EXPECT_TRUE(bad(late, reads_committed() ? ErrorCode::fenced_out : ErrorCode::unavailable));
  EXPECT_EQ(resources(), "");
}

INSTANTIATE_TEST_SUITE_P(Postgres, SweepIsolationTest,
                         ::testing::Values("read committed", "repeatable read", "serializable"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::erase(name, ' ');
                           return name;
                         });

// ---- at the same time ----------------------------------------------------------------------

// Writers and readers with tokens that grow, but not always, at resources whose marks vanish as
// fast as a sweep can take them.
class SweepRaceTest : public SweepTest {
 protected:
  static constexpr int kResources = 4;
  static constexpr int kWorkers = 3;
  static constexpr int kRounds = 80;
  using Numbers = std::map<std::string, std::vector<std::int64_t>>;

  // What this worker has written, by resource.
  Numbers work(int worker, const char* isolation) const {
    const UserConnection mine(url());
    EXPECT_EQ(mine.exec(std::string("SET default_transaction_isolation = '") + isolation + "'"),
              "");
    std::minstd_rand random(static_cast<unsigned>(worker) + 1);
    Numbers written;
    for (int round = 0; round < kRounds; ++round) {
      const auto pick = [&](int most) {
        return std::uniform_int_distribution<int>(0, most)(random);
      };
      const std::string resource = "r" + std::to_string(pick(kResources - 1));
      const std::int64_t number = (round * 8 + pick(31)) * kWorkers + worker + 1;
      const Token token = token_of(number, static_cast<char>('1' + worker));
      const Fence fence = Fence::open(mine.get(), resource).value();
      if (pick(3) == 0) {
        (void)fence.read(token, nothing);
        continue;
      }
      const auto append = [&](OpenTransaction& open) -> Status {
        const std::string failure = exec_on(
            open.handle(), "UPDATE lists SET numbers = numbers || ARRAY[" + std::to_string(number) +
                               "::bigint] WHERE name = '" + resource + "'");
        if (failure.empty()) return {};
        return fail(ErrorCode::unavailable, "the update failed", failure);
      };
      const Status done = fence.transaction(token, append);
      if (done) written[resource].push_back(number);
      if (!done && done.error().code != ErrorCode::fenced_out &&
          done.error().code != ErrorCode::unavailable) {
        ADD_FAILURE() << to_string(done.error());
      }
    }
    return written;
  }
};

TEST_F(SweepRaceTest, NothingStaleGetsInAndNothingIsLost) {
  ASSERT_EQ(user_.exec("CREATE TABLE lists(name text PRIMARY KEY, numbers bigint[]);"
                       "INSERT INTO lists SELECT 'r' || n, '{}' FROM generate_series(0, 3) n"),
            "");
  std::mutex mutex;
  Numbers all;
  std::atomic<int> working = kWorkers;
  std::int64_t swept = 0;
  {
    std::vector<std::jthread> workers;
    for (int worker = 0; worker < kWorkers; ++worker) {
      workers.emplace_back([&, worker] {
        constexpr const char* kIsolation[] = {"read committed", "repeatable read", "serializable"};
        Numbers mine = work(worker, kIsolation[worker]);
        const std::lock_guard lock(mutex);
        for (auto& [resource, numbers] : mine) {
          all[resource].insert(all[resource].end(), numbers.begin(), numbers.end());
        }
        --working;
      });
    }
    while (working > 0) {
      const auto some = sweep(Millis(1));
      EXPECT_TRUE(good(some));
      swept += some.value_or(0);
    }
  }
  EXPECT_GT(swept, 0);
  for (auto& [resource, numbers] : all) {
    std::string expected = "{";
    std::sort(numbers.begin(), numbers.end());
    for (const std::int64_t number : numbers) {
      expected += (expected.size() > 1 ? "," : "") + std::to_string(number);
    }
    EXPECT_EQ(user_.ask("SELECT numbers FROM lists WHERE name = '" + resource + "'"),
              expected + "}")
        << resource;
  }
  EXPECT_FALSE(all.empty());
}

}  // namespace
}  // namespace leasehold::postgres
