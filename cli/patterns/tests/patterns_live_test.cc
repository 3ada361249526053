// leasehold once and leasehold serial prepare a PostgreSQL database for programs of every language.
#include "cli/tests/cli_fixture.h"
#include "rig/postgres.h"

namespace leasehold::cli {
namespace {

class PostgresWaysTest : public CliTest {
 protected:
  ~PostgresWaysTest() override { server().drop_database(database_); }

  static leasehold::rig::PostgresServer& server() {
    static leasehold::rig::PostgresServer running;
    return running;
  }
  std::string url() const { return server().url(database_); }
  std::string psql(const std::string& sql) const { return server().psql(sql, database_); }

  const std::string database_ = server().create_database();
};

TEST_F(PostgresWaysTest, KeysAreInstalledUsedAndForgotten) {
  for (int i = 0; i < 2; ++i) {
    const Finished done = leasehold({"once", "install", url()});
    EXPECT_EQ(done.status, 0) << done.err;
  }
  psql(
      "BEGIN; SELECT leasehold_once.claim('charge/1', 'cents=1');"
      " SELECT leasehold_once.store('charge/1', 'receipt 77'); COMMIT");
  EXPECT_EQ(leasehold({"once", "forget", url(), "--older-than", "1h"}).out, "forgotten: 0\n");
  psql("UPDATE leasehold_once.result SET stored_at = stored_at - interval '2 hours'");
  EXPECT_EQ(leasehold({"once", "forget", url(), "--older-than", "1h"}).out, "forgotten: 1\n");
}

TEST_F(PostgresWaysTest, QueuesAreInstalledAndUsed) {
  for (int i = 0; i < 2; ++i) {
    const Finished done = leasehold({"serial", "install", url()});
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(done.out, "the serial queues are installed\n");
  }
  psql("SELECT leasehold_serial.push('orders', 'order/1234', 'ship')");
  EXPECT_THAT(psql("SELECT count(*) FROM leasehold_serial.operation"), HasSubstr("1"));
}

TEST_F(PostgresWaysTest, PasswordIsNotRepeated) {
  const Finished done = leasehold({"once", "install", "postgres://app:hunter2@127.0.0.1:1/shop"});
  EXPECT_EQ(done.status, 69);
  EXPECT_THAT(done.err, Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace leasehold::cli
