#include "leasehold/postgres/claim.h"

#include "fence_database.h"

namespace leasehold::postgres {
namespace {

class ClaimTest : public FenceDatabase {};

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

TEST_F(ClaimTest, ClaimWaitsForTheOneThatCommits) {
  ASSERT_EQ(user_.exec("INSERT INTO data VALUES('')"), "");
  const auto first = Claim::take(user_.get(), "ledger", request_of('1'));
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

}  // namespace
}  // namespace leasehold::postgres
