// What the program does through pgbouncer must not be felt by whoever gets the session next.
#include "adapters/postgres/rig/pgbouncer.h"

#include "fence_database.h"
#include "leasehold/fence_admin.h"
#include "leasehold/outbox.h"
#include "leasehold/postgres/adapter.h"

namespace leasehold::postgres {
namespace {

class PooledAdminTest : public FenceDatabase {
 protected:
  // Only one client is connected at a time, so that there is one session.
  std::string settings() const {
    const UserConnection other(pooler_.url(database_));
    return other.ask(
        "SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) FROM pg_settings"
        " WHERE source = 'session' AND name NOT IN ('application_name', 'client_encoding',"
        " 'transaction_isolation')");  // each transaction begins with its own
  }
  Url pooled() const { return Url::parse(pooler_.url(database_)).value(); }

  const leasehold::rig::Pgbouncer pooler_{fence_server()};
};

TEST_F(PooledAdminTest, CommandsLeaveNoSettingBehind) {
  const Adapter adapter = adapters().front();
  {
    auto fence = adapter.offers.open<FenceAdmin>(pooled()).value();
    EXPECT_TRUE(good(fence->marks()));
    EXPECT_TRUE(good(fence->guard("data", ledger())));
  }
  EXPECT_EQ(settings(), "");
  {
    auto outbox = adapter.offers.open<Outbox>(pooled()).value();
    EXPECT_TRUE(good(outbox->install()));
    EXPECT_TRUE(good(outbox->enter(token_of(1, '1'))));
    EXPECT_TRUE(good(outbox->status()));
  }
  EXPECT_EQ(settings(), "");
  ASSERT_TRUE(good(adapter.examine(pooled(), {.context = OpenOptions().begin()})));
  ASSERT_TRUE(good(adapter.open_store(pooled(), {})));
  EXPECT_EQ(settings(), "");
}

// Direct or not, a lock that is not to be had does not hang the program.
TEST_F(PooledAdminTest, CommandsWaitForLocksOnlySoLong) {
  const UserConnection other(url());
  ASSERT_EQ(other.exec("BEGIN; LOCK TABLE leasehold_fence.mark"), "");
  for (const Url& where : {pooled(), Url::parse(url()).value()}) {
    auto fence = adapters().front().offers.open<FenceAdmin>(where).value();
    const auto late = fence->reset(ledger());
    ASSERT_TRUE(bad(late, ErrorCode::unavailable));
    EXPECT_THAT(late.error().message, HasSubstr("longer than this connection waits"));
  }
  ASSERT_EQ(other.exec("ROLLBACK"), "");
}

}  // namespace
}  // namespace leasehold::postgres
