// What a claim, a row fence and a guarded table must do in every SQL database. `Database`: see
// testing/sql_patterns.h.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leasehold/fence_admin.h"
#include "testing/results.h"
#include "testing/sql_patterns.h"
#include "testing/tokens.h"

namespace leasehold::testing {

inline ResourceName resource_named(const std::string& name) {
  return ResourceName::parse(name).value();
}

// ---- claims --------------------------------------------------------------------------------

// The table "data" has one row.
template <class Database>
class ClaimSuite : public ::testing::Test {
 protected:
  using Claim = typename Database::Claim;
  using Open = typename Database::OpenTransaction;

  ClaimSuite() { EXPECT_EQ(user_.exec("INSERT INTO data VALUES('')"), ""); }

  Result<Claim> take(char request, const std::string& resource = "ledger") const {
    return Claim::take(user_.get(), resource, request_of(request));
  }
  static auto write(const std::string& text) {
    return [text](Open& open) -> Status {
      EXPECT_EQ(Database::run_inside(open, "UPDATE data SET value = '" + text + "'"), "");
      return {};
    };
  }
  auto fence(const std::string& resource) const {
    return Database::Fence::open(user_.get(), resource).value();
  }
  std::string value() const { return user_.ask("SELECT value FROM data"); }

  const Database database_{Installed::fence};
  const typename Database::Connection user_{database_.place()};
};

TYPED_TEST_SUITE_P(ClaimSuite);

TYPED_TEST_P(ClaimSuite, HolderCommitsWhileItsClaimIsThere) {
  const auto claim = this->take('1');
  ASSERT_TRUE(good(claim));
  EXPECT_TRUE(good(claim->transaction(this->write("a"))));
  EXPECT_TRUE(good(claim->transaction(this->write("b"))));
  EXPECT_EQ(this->value(), "b");
}

TYPED_TEST_P(ClaimSuite, MarksShowTheClaim) {
  ASSERT_TRUE(good(this->take('1')));
  const auto marks = TypeParam::marks(this->user_);
  ASSERT_TRUE(good(marks));
  ASSERT_EQ(marks->size(), 1u);
  EXPECT_EQ(marks->front().claim, request_of('1'));
  EXPECT_FALSE(marks->front().mark);
  EXPECT_FALSE(marks->front().lineage);
}

TYPED_TEST_P(ClaimSuite, TheNextClaimPushesTheFirstOut) {
  const auto first = this->take('1');
  const auto second = this->take('2');
  ASSERT_TRUE(first && second);
  const auto late = first->transaction(this->write("zombie"));
  ASSERT_TRUE(bad(late, ErrorCode::fenced_out));
  EXPECT_THAT(late.error().message, ::testing::HasSubstr("another request has claimed it"));
  EXPECT_TRUE(good(second->transaction(this->write("b"))));
  EXPECT_EQ(this->value(), "b");
  EXPECT_EQ(this->user_.ask(TypeParam::of_the_mark("refused")), "1");
}

TYPED_TEST_P(ClaimSuite, NoInterleavingLosesAnAcceptedUpdate) {
  std::string order = "AAABBB";  // each holder claims, reads, commits
  int orders = 0;
  do {
    ASSERT_EQ(this->user_.exec("UPDATE data SET value = ''"), "");
    std::array<int, 2> step = {0, 0};
    std::array<std::optional<typename TypeParam::Claim>, 2> claims;
    std::array<std::string, 2> seen;
    std::string expected;
    for (const char who : order) {
      const std::size_t i = who == 'A' ? 0 : 1;
      switch (step[i]++) {
        case 0:
          claims[i] = this->take(i == 0 ? '1' : '2').value();
          break;
        case 1:
          seen[i] = this->value();
          break;
        default:
          if (claims[i]->transaction(this->write(seen[i] + who))) expected += who;
      }
    }
    EXPECT_EQ(this->value(), expected) << order;
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(orders, 20);
}

TYPED_TEST_P(ClaimSuite, FailedWorkChangesNothingAndKeepsTheClaim) {
  const auto claim = this->take('1');
  ASSERT_TRUE(good(claim));
  const auto status = claim->transaction([&](typename TypeParam::OpenTransaction& open) -> Status {
    (void)this->write("half")(open);
    return fail(ErrorCode::lost, "no time");
  });
  EXPECT_TRUE(bad(status, ErrorCode::lost));
  EXPECT_EQ(this->value(), "");
  EXPECT_TRUE(good(claim->transaction(this->write("whole"))));
}

TYPED_TEST_P(ClaimSuite, TokensAndClaimsDoNotMix) {
  ASSERT_TRUE(good(this->take('1')));
  const Token token = token_of(33, '3');
  EXPECT_TRUE(
      bad(this->fence("ledger").transaction(token, this->write("token")), ErrorCode::invalid));
  ASSERT_TRUE(good(this->fence("till").transaction(token, this->write("x"))));
  EXPECT_TRUE(bad(this->take('1', "till"), ErrorCode::invalid));
  EXPECT_EQ(this->value(), "x");
}

TYPED_TEST_P(ClaimSuite, ConfirmingNeedsATransactionAndTakingNone) {
  const auto claim = this->take('1');
  EXPECT_TRUE(bad(claim->confirm(), ErrorCode::invalid));
  ASSERT_EQ(this->user_.exec("BEGIN"), "");
  EXPECT_TRUE(bad(this->take('2'), ErrorCode::invalid));
  EXPECT_TRUE(good(claim->confirm()));
  ASSERT_EQ(this->user_.exec("ROLLBACK"), "");
}

TYPED_TEST_P(ClaimSuite, WrongNamesAreInvalid) {
  EXPECT_TRUE(bad(this->take('1', ""), ErrorCode::invalid));
  EXPECT_TRUE(bad(this->take('1', std::string(513, 'x')), ErrorCode::invalid));
}

REGISTER_TYPED_TEST_SUITE_P(ClaimSuite, HolderCommitsWhileItsClaimIsThere, MarksShowTheClaim,
                            TheNextClaimPushesTheFirstOut, NoInterleavingLosesAnAcceptedUpdate,
                            FailedWorkChangesNothingAndKeepsTheClaim, TokensAndClaimsDoNotMix,
                            ConfirmingNeedsATransactionAndTakingNone, WrongNamesAreInvalid);

// ---- rows ----------------------------------------------------------------------------------

// A table "orders" with the row 7.
template <class Database>
class RowFenceSuite : public ::testing::Test {
 protected:
  using RowFence = typename Database::RowFence;

  RowFenceSuite() {
    EXPECT_EQ(user_.exec("CREATE TABLE orders(id integer PRIMARY KEY,"
                         " paid integer CHECK (paid IN (0, 1)), note text);"
                         "INSERT INTO orders VALUES(7, 0, NULL)"),
              "");
    EXPECT_TRUE(good(Database::add_columns(user_, "orders")));
  }

  Result<RowFence> open(const std::string& table, const std::string& key = "id") const {
    return RowFence::open(user_.get(), table, key);
  }
  RowFence orders() const { return open("orders").value(); }
  std::string row() const {
    return user_.ask(
        "SELECT paid || ' ' || coalesce(note, '-') || ' ' || coalesce(fence, 0) || ' ' "
        "|| fence_refused FROM orders WHERE id = 7");
  }

  const Database database_{Installed::fence};
  const typename Database::Connection user_{database_.place()};
};

TYPED_TEST_SUITE_P(RowFenceSuite);

TYPED_TEST_P(RowFenceSuite, WritesOfTheHighestTokenPass) {
  const auto orders = this->orders();
  EXPECT_TRUE(good(orders.write("7", token_of(33, '1'), {{"paid", "1"}, {"note", "a"}})));
  EXPECT_EQ(this->row(), "1 a 33 0");
  EXPECT_TRUE(good(orders.write("7", token_of(33, '1'), {{"note", std::nullopt}})));
  EXPECT_TRUE(good(orders.write("7", token_of(34, '2'), {{"paid", "0"}})));
  const auto late = orders.write("7", token_of(33, '1'), {{"paid", "1"}});
  ASSERT_TRUE(bad(late, ErrorCode::fenced_out));
  EXPECT_EQ(late.error().refusal->mark, 34);
  EXPECT_EQ(this->row(), "0 - 34 1");
}

TYPED_TEST_P(RowFenceSuite, EnteringReadsAndShutsTheDoor) {
  const auto orders = this->orders();
  const auto seen = orders.enter("7", token_of(34, '2'), {"id", "note"});
  ASSERT_TRUE(good(seen));
  EXPECT_EQ(seen->at(0), "7");
  EXPECT_EQ(seen->at(1), std::nullopt);
  EXPECT_TRUE(bad(orders.write("7", token_of(33, '1'), {{"note", "z"}}), ErrorCode::fenced_out));
  EXPECT_TRUE(bad(orders.enter("7", token_of(33, '1')), ErrorCode::fenced_out));
}

TYPED_TEST_P(RowFenceSuite, NumberThatWasWrittenByHandKeepsItsOrder) {
  ASSERT_EQ(this->user_.exec("UPDATE orders SET fence = 33"), "");
  EXPECT_TRUE(bad(this->orders().write("7", token_of(32, '1'), {}), ErrorCode::fenced_out));
  EXPECT_TRUE(good(this->orders().write("7", token_of(33, '1'), {})));
}

TYPED_TEST_P(RowFenceSuite, WhatIsNotThereIsInvalid) {
  EXPECT_TRUE(bad(this->open("missing"), ErrorCode::invalid));
  EXPECT_TRUE(bad(this->open("orders; DROP TABLE orders"), ErrorCode::invalid));
  EXPECT_TRUE(bad(this->open("orders", "no"), ErrorCode::invalid));
  EXPECT_TRUE(bad(this->open("orders", "id\" = 1 --"), ErrorCode::invalid));
  const auto bare = this->open("data", "value");
  ASSERT_TRUE(bad(bare, ErrorCode::invalid));
  EXPECT_THAT(bare.error().message, ::testing::HasSubstr("'fence'"));
  EXPECT_TRUE(bad(TypeParam::add_columns(this->user_, "missing"), ErrorCode::invalid));

  const auto orders = this->orders();
  const Token token = token_of(33, '1');
  const auto no_row = orders.write("8", token, {{"paid", "1"}});
  ASSERT_TRUE(bad(no_row, ErrorCode::invalid));
  EXPECT_THAT(no_row.error().message, ::testing::HasSubstr("no row '8'"));
  EXPECT_TRUE(bad(orders.write("seven", token, {{"paid", "1"}}), ErrorCode::invalid));
  EXPECT_TRUE(bad(orders.write("", token, {{"paid", "1"}}), ErrorCode::invalid));
  EXPECT_TRUE(bad(orders.write("7", token, {{"no", "1"}}), ErrorCode::invalid));
  EXPECT_TRUE(bad(orders.write("7", token, {{"paid\" = 1 --", "1"}}), ErrorCode::invalid));
  EXPECT_TRUE(bad(orders.write("7", token, {{"paid", "2"}}), ErrorCode::invalid));
  EXPECT_TRUE(bad(orders.write("7", token, {{"paid", "perhaps"}}), ErrorCode::invalid));
  EXPECT_TRUE(bad(orders.write("7", token, {{"paid", "1"}, {"Fence", "1"}}), ErrorCode::invalid));
  EXPECT_TRUE(bad(orders.write_sql({"fence_request"}), ErrorCode::invalid));
  EXPECT_TRUE(bad(orders.enter("7", token, {"no"}), ErrorCode::invalid));
  EXPECT_TRUE(
      bad(orders.adopt("8", lineage_of('b'), TokenNumber::of(1).value()), ErrorCode::invalid));
  EXPECT_EQ(this->row(), "0 - 0 0") << "and nothing was written";
}

TYPED_TEST_P(RowFenceSuite, AddingTheColumnsAgainChangesNothing) {
  ASSERT_TRUE(good(this->orders().write("7", token_of(33, '1'), {})));
  EXPECT_TRUE(good(TypeParam::add_columns(this->user_, "orders")));
  EXPECT_EQ(this->row(), "0 - 33 0");
}

TYPED_TEST_P(RowFenceSuite, NamesThatNeedQuotes) {
  ASSERT_EQ(
      this->user_.exec("CREATE TABLE \"Or\"\"ders\"(\"The Key\" text PRIMARY KEY, \"A'b\" text);"
                       "INSERT INTO \"Or\"\"ders\" VALUES('k', NULL)"),
      "");
  const std::string table = TypeParam::as_argument("Or\"ders");
  ASSERT_TRUE(good(TypeParam::add_columns(this->user_, table)));
  const auto rows = this->open(table, "The Key");
  ASSERT_TRUE(good(rows));
  EXPECT_TRUE(good(rows->write("k", token_of(33, '1'), {{"A'b", "v"}})));
  EXPECT_EQ(rows->enter("k", token_of(33, '1'), {"A'b"})->at(0), "v");
  EXPECT_TRUE(bad(rows->write("k", token_of(32, '1'), {}), ErrorCode::fenced_out));
}

TYPED_TEST_P(RowFenceSuite, InATransactionOfTheUsersItGoesWithIt) {
  ASSERT_EQ(this->user_.exec("BEGIN"), "");
  ASSERT_TRUE(good(this->orders().write("7", token_of(34, '2'), {{"paid", "1"}})));
  EXPECT_TRUE(bad(this->orders().write("7", token_of(33, '1'), {}), ErrorCode::fenced_out));
  ASSERT_EQ(this->user_.exec("ROLLBACK"), "");
  EXPECT_EQ(this->row(), "0 - 0 0");
}

REGISTER_TYPED_TEST_SUITE_P(RowFenceSuite, WritesOfTheHighestTokenPass,
                            EnteringReadsAndShutsTheDoor, NumberThatWasWrittenByHandKeepsItsOrder,
                            WhatIsNotThereIsInvalid, AddingTheColumnsAgainChangesNothing,
                            NamesThatNeedQuotes, InATransactionOfTheUsersItGoesWithIt);

// ---- guarded tables ------------------------------------------------------------------------

// A table "orders" with the row 1, guarded by "ledger".
template <class Database>
class GuardSuite : public ::testing::Test {
 protected:
  GuardSuite() {
    EXPECT_EQ(user_.exec("CREATE TABLE orders(id integer PRIMARY KEY, paid integer DEFAULT 0);"
                         "INSERT INTO orders VALUES(1, 0)"),
              "");
    EXPECT_TRUE(good(guard("orders")));
  }

  Status guard(const std::string& table, const std::string& resource = "ledger") const {
    return Database::guard(user_, table, resource_named(resource));
  }
  std::unique_ptr<FenceAdmin> admin() const {
    return Database::adapters()
        .front()
        .offers.template open<FenceAdmin>(Url::parse(database_.url()).value())
        .value();
  }
  std::vector<GuardedTable> guards() const { return admin()->guards().value(); }
  auto fence(const std::string& resource = "ledger") const {
    return Database::Fence::open(user_.get(), resource).value();
  }
  // A work that does this.
  auto doing(const std::string& sql) const {
    return [sql](typename Database::OpenTransaction& open) -> Status {
      EXPECT_EQ(Database::run_inside(open, sql), "");
      return {};
    };
  }
  // Every row: "1:0 2:0".
  std::string orders() const {
    std::string all;
    for (int id = 1; id <= 9; ++id) {
      const std::string paid =
          user_.ask("SELECT paid FROM orders WHERE id = " + std::to_string(id));
      if (paid == "none") continue;
      all += (all.empty() ? "" : " ") + std::to_string(id) + ":" + paid;
    }
    return all;
  }
  void expect_not_entered(const std::string& sql) const {
    EXPECT_THAT(user_.exec(sql), ::testing::StartsWith(Database::kNotEntered)) << sql;
  }

  const Database database_{Installed::fence};
  const typename Database::Connection user_{database_.place()};
};

TYPED_TEST_SUITE_P(GuardSuite);

TYPED_TEST_P(GuardSuite, TransactionEntersAndLeavesByItself) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(good(this->fence().transaction(token_of(33, '1'),
                                               this->doing("UPDATE orders SET paid = paid + 1"))));
  }
  EXPECT_EQ(this->orders(), "1:2");
  this->expect_not_entered("DELETE FROM orders");
}

TYPED_TEST_P(GuardSuite, AnotherResourceDoesNotCount) {
  ASSERT_EQ(this->user_.exec("BEGIN;" + TypeParam::enter("33", "other")), "");
  this->expect_not_entered("DELETE FROM orders");
  EXPECT_EQ(this->user_.exec("ROLLBACK"), "");
}

TYPED_TEST_P(GuardSuite, ConfirmedClaimCountsAsEntered) {
  ASSERT_EQ(this->user_.exec("CREATE TABLE claimed(a integer)"), "");
  ASSERT_TRUE(good(this->guard("claimed", "claimed")));
  const auto claim = TypeParam::Claim::take(this->user_.get(), "claimed", request_of('1'));
  ASSERT_TRUE(good(claim));
  this->expect_not_entered("INSERT INTO claimed VALUES(1)");
  EXPECT_TRUE(good(claim->transaction(this->doing("INSERT INTO claimed VALUES(1)"))));
}

TYPED_TEST_P(GuardSuite, GuardingAgainChangesNothingAndAnotherResourceIsInvalid) {
  EXPECT_TRUE(good(this->guard("orders")));
  EXPECT_TRUE(good(this->guard(TypeParam::kOrdersToo)));
  const auto other = this->guard("orders", "somebody else");
  ASSERT_TRUE(bad(other, ErrorCode::invalid));
  EXPECT_THAT(other.error().message, ::testing::HasSubstr("'ledger'"));
  ASSERT_EQ(this->guards().size(), 1u);
  EXPECT_EQ(this->guards().at(0).table, "orders");
  EXPECT_EQ(this->guards().at(0).resource, resource_named("ledger"));
  EXPECT_TRUE(this->guards().at(0).armed);
}

TYPED_TEST_P(GuardSuite, UnguardedTableIsFree) {
  ASSERT_TRUE(good(TypeParam::unguard(this->user_, "orders")));
  EXPECT_EQ(this->user_.exec("DELETE FROM orders"), "");
  EXPECT_TRUE(bad(TypeParam::unguard(this->user_, "orders"), ErrorCode::invalid));
  EXPECT_TRUE(this->guards().empty());
  EXPECT_EQ(this->user_.exec(TypeParam::enter("33")), "") << "nothing is left inside";
}

TYPED_TEST_P(GuardSuite, HostileNamesAreOnlyNames) {
  const std::string quoted = "\"o'r\"\"d%s; DROP TABLE orders\"";
  ASSERT_EQ(this->user_.exec("CREATE TABLE " + quoted + "(a integer)"), "");
  const std::string resource = "it's \"%s\" \\ ?1 $1; --";
  ASSERT_TRUE(good(this->guard(TypeParam::as_argument("o'r\"d%s; DROP TABLE orders"), resource)));
  const std::string insert = "INSERT INTO " + quoted + " VALUES(1)";
  this->expect_not_entered(insert);
  EXPECT_TRUE(good(this->fence(resource).transaction(token_of(1, '1'), this->doing(insert))));
  EXPECT_EQ(this->orders(), "1:0");
}

REGISTER_TYPED_TEST_SUITE_P(GuardSuite, TransactionEntersAndLeavesByItself,
                            AnotherResourceDoesNotCount, ConfirmedClaimCountsAsEntered,
                            GuardingAgainChangesNothingAndAnotherResourceIsInvalid,
                            UnguardedTableIsFree, HostileNamesAreOnlyNames);

}  // namespace leasehold::testing

// Every suite of this header, for one kind of database.
#define LEASEHOLD_SQL_FENCE_SUITES(Name, Database)               \
  INSTANTIATE_TYPED_TEST_SUITE_P(Name, ClaimSuite, Database);    \
  INSTANTIATE_TYPED_TEST_SUITE_P(Name, RowFenceSuite, Database); \
  INSTANTIATE_TYPED_TEST_SUITE_P(Name, GuardSuite, Database)
