#include "leasehold/sqlite/claim.h"

#include "test_database.h"
#include "testing/sql_fence_suites.h"

namespace leasehold::sqlite {
namespace {

using ::testing::StartsWith;

class ClaimTest : public leasehold::testing::ClaimSuite<TestDatabase> {};

TEST_F(ClaimTest, ConfirmHoldsTheClaimUntilTheTransactionEnds) {
  const UserConnection other(database_.place(), 0);
  const auto claim = take('1');
  ASSERT_TRUE(good(claim));
  ASSERT_EQ(user_.exec("BEGIN"), "");
  EXPECT_TRUE(good(claim->confirm()));
  EXPECT_TRUE(bad(Claim::take(other.get(), "ledger", request_of('2')), ErrorCode::unavailable));
  ASSERT_EQ(user_.exec("COMMIT"), "");
}

TEST_F(ClaimTest, NeedsTheFence) {
  const TestDatabase bare(Installed::nothing);
  const UserConnection user(bare.place());
  EXPECT_TRUE(bad(Claim::take(user.get(), "ledger", request_of('1')), ErrorCode::unavailable));
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

}  // namespace
}  // namespace leasehold::sqlite
