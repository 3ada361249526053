// leasehold once and leasehold serial prepare a PostgreSQL database for programs of every language.
#include "adapters/postgres/rig/server.h"
#include "cli/tests/cli_fixture.h"

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
  EXPECT_EQ(leasehold({"once", "sweep", url(), "--older-than", "1h"}).out, "forgotten: 0\n");
  psql("UPDATE leasehold_once.result SET stored_at = stored_at - interval '2 hours'");
  EXPECT_EQ(leasehold({"once", "sweep", url(), "--older-than", "1h"}).out, "forgotten: 1\n");
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

class SerialWorkTest : public PostgresWaysTest {
 protected:
  SerialWorkTest() { EXPECT_EQ(leasehold({"serial", "install", url()}).status, 0); }

  Finished work(const std::string& command, Words more = {}) const {
    Words words = {"serial",  "work", url(), "orders", "--until-empty",
                   "--pause", "1ms",  "-c",  command};
    words.insert(words.end(), more.begin(), more.end());
    return leasehold(words);
  }
  void push(const std::string& entity, const std::string& payload) const {
    psql("SELECT leasehold_serial.push('orders', '" + entity + "', '" + payload + "')");
  }
  Finished show() const { return leasehold({"serial", "show", url(), "orders"}); }
};

TEST_F(SerialWorkTest, RunsACommandPerOperationInTheirOrder) {
  push("order/1", "ship");
  push("order/1", "bill");
  EXPECT_EQ(show().out, "queue 'orders': 2 operations wait\n");
  const std::string log = path("log");
  const Finished done = work(
      "echo \"$LEASEHOLD_SERIAL_QUEUE $LEASEHOLD_SERIAL_ENTITY "
      "$LEASEHOLD_SERIAL_ID $(cat)\" >> " +
          log,
      {"-v"});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(read("log"), "orders order/1 1 ship\norders order/1 2 bill\n");
  EXPECT_THAT(done.err, HasSubstr("operation 2 of 'order/1' was done"));
  EXPECT_EQ(show().out, "queue 'orders': 0 operations wait\n");
}

TEST_F(SerialWorkTest, AFailureIsSetAsideShownAndResolved) {
  push("order/1", "ship");
  push("order/2", "ship");
  const Finished failed =
      work("test $LEASEHOLD_SERIAL_ENTITY != order/1 || exit 9", {"--attempts", "1"});
  EXPECT_EQ(failed.status, 0) << failed.err;
  EXPECT_THAT(failed.err, HasSubstr("operation 1 of 'order/1' failed, and is set aside"));
  const Finished shown = show();
  EXPECT_EQ(shown.status, 65);
  EXPECT_THAT(shown.out, AllOf(HasSubstr("1 operations wait"), HasSubstr("\norder/1 "),
                               HasSubstr("exited with status 9")));
  EXPECT_EQ(leasehold({"serial", "retry", url(), "orders", "order/2"}).status, 64);
  EXPECT_EQ(leasehold({"serial", "retry", url(), "orders", "order/1"}).status, 0);
  EXPECT_EQ(show().status, 0);
  EXPECT_EQ(work("exit 9", {"--attempts", "1"}).status, 0);
  EXPECT_EQ(leasehold({"serial", "skip", url(), "orders", "order/1"}).status, 64) << "no --force";
  EXPECT_EQ(leasehold({"serial", "skip", url(), "orders", "order/1", "--force"}).status, 0);
  EXPECT_EQ(show().out, "queue 'orders': 0 operations wait\n");
}

TEST_F(SerialWorkTest, ACommandThatTakesTooLongIsAFailure) {
  push("order/1", "ship");
  const Finished late = work("sleep 60", {"--attempts", "1", "--timeout", "200ms"});
  EXPECT_THAT(late.err, HasSubstr("took too long, and was ended"));
  EXPECT_EQ(show().status, 65);
}

TEST_F(PostgresWaysTest, PasswordIsNotRepeated) {
  const Finished done = leasehold({"once", "install", "postgres://app:hunter2@127.0.0.1:1/shop"});
  EXPECT_EQ(done.status, 69);
  EXPECT_THAT(done.err, Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace leasehold::cli
