#include "leasehold/sqlite/claim.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>

#include "leasehold/sqlite/fence.h"
#include "user_database.h"

namespace leasehold::sqlite {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ClaimTest : public ::testing::Test {
 protected:
  ClaimTest() {
    EXPECT_EQ(user_.exec("PRAGMA journal_mode = wal; CREATE TABLE data(value);"
                         "INSERT INTO data VALUES('')"),
              "");
    EXPECT_TRUE(good(install_fence(user_.get())));
  }

  Result<Claim> take(char request) const {
    return Claim::take(user_.get(), "ledger", request_of(request));
  }
  std::string value() const { return user_.ask("SELECT value FROM data"); }
  std::string column(const std::string& name) const {
    return user_.ask("SELECT " + name + " FROM leasehold_fence WHERE resource = 'ledger'");
  }

  TempFolder folder_;
  std::string path_ = folder_.file("data.db");
  UserConnection user_{path_};
};

auto write(const std::string& text) {
  return [text](OpenTransaction& open) -> Status {
    sqlite3_exec(open.handle(), ("UPDATE data SET value = '" + text + "'").c_str(), nullptr,
                 nullptr, nullptr);
    return {};
  };
}

TEST_F(ClaimTest, HolderCommitsWhileItsClaimIsThere) {
  const auto claim = take('1');
  ASSERT_TRUE(good(claim));
  EXPECT_EQ(column("claim"), std::string(32, '1'));
  EXPECT_TRUE(good(claim->transaction(write("a"))));
  EXPECT_TRUE(good(claim->transaction(write("b"))));
  EXPECT_EQ(value(), "b");
}

TEST_F(ClaimTest, TheNextClaimPushesTheFirstOut) {
  const auto first = take('1');
  const auto second = take('2');
  ASSERT_TRUE(first && second);
  const auto late = first->transaction(write("zombie"));
  ASSERT_TRUE(bad(late, ErrorCode::fenced_out));
  EXPECT_THAT(late.error().message, HasSubstr("another request has claimed it"));
  EXPECT_TRUE(good(second->transaction(write("b"))));
  EXPECT_EQ(value(), "b");
  EXPECT_EQ(column("refused"), "1");
}

TEST_F(ClaimTest, NoInterleavingLosesAnAcceptedUpdate) {
  std::string order = "AAABBB";  // each holder claims, reads, commits
  int orders = 0;
  do {
    ASSERT_EQ(user_.exec("UPDATE data SET value = ''"), "");
    std::array<int, 2> step = {0, 0};
    std::array<std::optional<Claim>, 2> claims;
    std::array<std::string, 2> seen;
    std::string expected;
    for (const char who : order) {
      const std::size_t i = who == 'A' ? 0 : 1;
      switch (step[i]++) {
        case 0:
          claims[i] = take(who == 'A' ? '1' : '2').value();
          break;
        case 1:
          seen[i] = value();
          break;
        default:
          if (claims[i]->transaction(write(seen[i] + who))) expected += who;
      }
    }
    EXPECT_EQ(value(), expected) << order;
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(orders, 20);
}

TEST_F(ClaimTest, ConfirmHoldsTheClaimUntilTheTransactionEnds) {
  const UserConnection other(path_, 0);
  const auto claim = take('1');
  ASSERT_TRUE(good(claim));
  EXPECT_TRUE(bad(claim->confirm(), ErrorCode::invalid));
  ASSERT_EQ(user_.exec("BEGIN"), "");
  EXPECT_TRUE(good(claim->confirm()));
  EXPECT_TRUE(bad(Claim::take(other.get(), "ledger", request_of('2')), ErrorCode::unavailable));
  ASSERT_EQ(user_.exec("COMMIT"), "");
}

TEST_F(ClaimTest, FailedWorkChangesNothingAndKeepsTheClaim) {
  const auto claim = take('1');
  ASSERT_TRUE(good(claim));
  const auto status = claim->transaction([](OpenTransaction& open) -> Status {
    (void)write("half")(open);
    return fail(ErrorCode::lost, "no time");
  });
  EXPECT_TRUE(bad(status, ErrorCode::lost));
  EXPECT_EQ(value(), "");
  EXPECT_TRUE(good(claim->transaction(write("whole"))));
}

TEST_F(ClaimTest, TokensAndClaimsDoNotMix) {
  ASSERT_TRUE(good(take('1')));
  const auto entered =
      Fence::open(user_.get(), "ledger")->transaction(token_of(33, '3'), write("token"));
  EXPECT_TRUE(bad(entered, ErrorCode::invalid));
  ASSERT_TRUE(good(Fence::open(user_.get(), "till")->transaction(token_of(33, '3'), write("x"))));
  EXPECT_TRUE(bad(Claim::take(user_.get(), "till", request_of('1')), ErrorCode::invalid));
  EXPECT_EQ(value(), "x");
}

TEST_F(ClaimTest, WrongUseIsTold) {
  EXPECT_TRUE(bad(Claim::take(user_.get(), "", request_of('1')), ErrorCode::invalid));
  EXPECT_TRUE(
      bad(Claim::take(user_.get(), std::string(513, 'n'), request_of('1')), ErrorCode::invalid));
  ASSERT_EQ(user_.exec("BEGIN"), "");
  EXPECT_TRUE(bad(take('1'), ErrorCode::invalid));
  ASSERT_EQ(user_.exec("ROLLBACK"), "");
  const UserConnection bare(folder_.file("bare.db"));
  EXPECT_TRUE(bad(Claim::take(bare.get(), "ledger", request_of('1')), ErrorCode::unavailable));
}

TEST_F(ClaimTest, PlainSqlClaimsAndConfirms) {
  const std::string one = "('ledger', '" + std::string(32, '1') + "')";
  const std::string two = "('ledger', '" + std::string(32, '2') + "')";
  const std::string claim = "INSERT INTO leasehold_claim(resource, request) VALUES";
  const std::string confirm = "INSERT OR IGNORE INTO leasehold_confirm(resource, request) VALUES";
  EXPECT_THAT(user_.exec(confirm + one), StartsWith("leasehold: fenced_out"));
  ASSERT_EQ(user_.exec(claim + one), "");
  EXPECT_EQ(user_.exec(confirm + one), "");
  ASSERT_EQ(user_.exec(claim + two), "");
  EXPECT_THAT(user_.exec(confirm + one), StartsWith("leasehold: fenced_out"));
  EXPECT_EQ(user_.exec(confirm + two), "");
  EXPECT_THAT(user_.exec(claim + "('ledger', 'me')"), StartsWith("leasehold: invalid: request"));
  EXPECT_THAT(user_.exec(claim + "('ledger', NULL)"), StartsWith("leasehold: invalid: request"));
  EXPECT_THAT(user_.exec(confirm + "('ledger', NULL)"), StartsWith("leasehold: invalid: request"));
  EXPECT_THAT(user_.exec(claim + "('', '" + std::string(32, '1') + "')"),
              StartsWith("leasehold: invalid: resource"));
}

TEST_F(ClaimTest, MarksShowTheClaim) {
  ASSERT_TRUE(good(take('1')));
  const auto marks = fence_marks(user_.get());
  ASSERT_TRUE(good(marks));
  ASSERT_EQ(marks->size(), 1u);
  EXPECT_EQ(marks->front().claim, request_of('1'));
  EXPECT_FALSE(marks->front().mark);
  EXPECT_FALSE(marks->front().lineage);
}

}  // namespace
}  // namespace leasehold::sqlite
