#include "leasehold/postgres/claim.h"

#include <algorithm>
#include <array>
#include <optional>

#include "fence_database.h"

namespace leasehold::postgres {
namespace {

class ClaimTest : public FenceDatabase {
 protected:
  ClaimTest() { EXPECT_EQ(user_.exec("INSERT INTO data VALUES('')"), ""); }

  Result<Claim> take(char request) const {
    return Claim::take(user_.get(), "ledger", request_of(request));
  }
  auto write(const std::string& text) const {
    return [this, text](OpenTransaction&) -> Status {
      EXPECT_EQ(user_.exec("UPDATE data SET value = $1", {text}), "");
      return {};
    };
  }
  std::string value() const { return user_.ask("SELECT value FROM data"); }
};

TEST_F(ClaimTest, HolderCommitsWhileItsClaimIsThere) {
  const auto claim = take('1');
  ASSERT_TRUE(good(claim));
  EXPECT_TRUE(good(claim->transaction(write("a"))));
  EXPECT_TRUE(good(claim->transaction(write("b"))));
  EXPECT_EQ(value(), "b");
  EXPECT_EQ(fence_marks(user_.get())->at(0).claim, request_of('1'));
}

TEST_F(ClaimTest, CommitIsDurableWhateverTheWorkSays) {
  watch_commits("data");
  const UserConnection mine(url());
  const auto claim = Claim::take(mine.get(), "ledger", request_of('1'));
  ASSERT_TRUE(good(claim));
  for (const char* sql : {"SET LOCAL synchronous_commit = off", "RESET ALL"}) {
    EXPECT_TRUE(good(claim->transaction([&](OpenTransaction& open) {
      EXPECT_EQ(mine.exec(sql), "");
      return insert_row(open);
    })));
    EXPECT_EQ(commits(), "on") << sql;
  }
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
  EXPECT_EQ(refused(), "1");
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
          claims[i] = take(i == 0 ? '1' : '2').value();
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

TEST_F(ClaimTest, ClaimWaitsForTheOneThatCommits) {
  const auto first = take('1');
  const UserConnection other(url());
  ASSERT_EQ(user_.exec("BEGIN"), "");
  ASSERT_TRUE(good(first->confirm()));
  auto waiting = std::async(std::launch::async,
                            [&] { return Claim::take(other.get(), "ledger", request_of('2')); });
  await_waiter();
  ASSERT_EQ(user_.exec("UPDATE data SET value = 'first'; COMMIT"), "");
  EXPECT_TRUE(good(waiting.get()));
  EXPECT_EQ(other.ask("SELECT value FROM data"), "first") << "read after the claim";
}

TEST_F(ClaimTest, TokensAndClaimsDoNotMix) {
  ASSERT_TRUE(good(take('1')));
  EXPECT_TRUE(bad(fence().transaction(token_of(1, '1'), nothing), ErrorCode::invalid));
  ASSERT_EQ(user_.exec(enter("1", "'fenced'")), "");
  EXPECT_TRUE(bad(Claim::take(user_.get(), "fenced", request_of('1')), ErrorCode::invalid));
}

TEST_F(ClaimTest, ConfirmingNeedsATransactionAndTakingNone) {
  const auto claim = take('1');
  EXPECT_TRUE(bad(claim->confirm(), ErrorCode::invalid));
  ASSERT_EQ(user_.exec("BEGIN"), "");
  EXPECT_TRUE(bad(take('2'), ErrorCode::invalid));
  EXPECT_TRUE(good(claim->confirm()));
}

TEST_F(ClaimTest, WrongNamesAreInvalid) {
  EXPECT_TRUE(bad(Claim::take(user_.get(), "", request_of('1')), ErrorCode::invalid));
  EXPECT_TRUE(
      bad(Claim::take(user_.get(), std::string(513, 'x'), request_of('1')), ErrorCode::invalid));
}

}  // namespace
}  // namespace leasehold::postgres
