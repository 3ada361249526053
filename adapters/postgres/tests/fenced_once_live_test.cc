#include "leasehold/postgres/fenced_once.h"

#include <string>

#include "fence_database.h"
#include "leasehold/postgres/once.h"

namespace leasehold::postgres {
namespace {

using namespace std::chrono_literals;

class FencedOnceTest : public FenceDatabase {
 protected:
  FencedOnceTest() { EXPECT_TRUE(good(install_once(user_.get()))); }

  static FencedOnce fenced(const UserConnection& user) {
    return FencedOnce::open(user.get(), "ledger").value();
  }
  static auto pay(std::string result) {
    return [result](OpenTransaction& open) -> Result<std::string> {
      if (auto ok = insert_row(open); !ok) return fail(ok.error());
      return result;
    };
  }
};

// The key is also used by somebody who is behind another fence, or none.
TEST_F(FencedOnceTest, KeyAtWorkElsewhereIsWaitedForAsTheOptionsSay) {
  const UserConnection other(url());
  const auto outer = Once::open(user_.get())->run("k", "", [&](OpenTransaction& open) {
    const auto late = fenced(other).run(token_of(33, '1'), "k", "", pay("r"), {.wait = 20ms});
    EXPECT_TRUE(bad(late, ErrorCode::timeout));
    EXPECT_EQ(PQtransactionStatus(other.get()), PQTRANS_IDLE);
    return pay("outer")(open);
  });
  ASSERT_TRUE(good(outer));
  EXPECT_EQ(mark(), "none");
  EXPECT_EQ(fenced(other).run(token_of(33, '1'), "k", "", pay("r")).value().result, "outer");
  EXPECT_EQ(mark(), "33");
}

TEST_F(FencedOnceTest, SnapshotOlderThanTheOthersCommitIsTakenAnew) {
  const UserConnection other(url());
  ASSERT_EQ(other.exec("SET default_transaction_isolation = 'repeatable read'"), "");
  std::future<Result<OnceResult>> repeat;
  const auto first = fenced(user_).run(
      token_of(33, '1'), "k", "", [&](OpenTransaction& open) -> Result<std::string> {
        repeat = std::async(std::launch::async, [&] {
          return fenced(other).run(token_of(34, '2'), "k", "", pay("second"), {.wait = 60s});
        });
        await_waiter_elsewhere();
        return pay("first")(open);
      });
  ASSERT_TRUE(good(first));
  EXPECT_EQ(repeat.get().value().result, "first");
  EXPECT_EQ(rows(), "1");
  EXPECT_EQ(mark(), "34");
}

}  // namespace
}  // namespace leasehold::postgres
