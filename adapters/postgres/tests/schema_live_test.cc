// The lock store's schema: who makes it, whose it may be, and what its functions say to other
// programs.
#include <future>
#include <vector>

#include "fence_database.h"
#include "leasehold/once_admin.h"
#include "leasehold/postgres/adapter.h"
#include "testing/findings.h"

namespace leasehold::postgres {
namespace {

class SchemaTest : public FenceDatabase {
 protected:
  Status open_store(const std::string& role = "postgres", const std::string& options = "") const {
    const Url as_role = Url::parse(fence_server().url(database_, role) + options).value();
    auto store = adapters().front().open_store(as_role, {});
    if (!store) return fail(std::move(store.error()));
    return {};
  }
};

// ---- racing clients ------------------------------------------------------------------------

// A role whose transactions see what was there when they began, before they had any lock.
class RacingTest : public SchemaTest {
 protected:
  RacingTest() {
    EXPECT_TRUE(good(remove_fence(user_.get())));
    EXPECT_EQ(user_.exec("DROP ROLE IF EXISTS rr; CREATE ROLE rr LOGIN;"
                         "ALTER ROLE rr SET default_transaction_isolation = 'repeatable read';"
                         "GRANT CREATE ON DATABASE " +
                         database_ + " TO rr"),
              "");
  }
  ~RacingTest() override { EXPECT_EQ(user_.exec("DROP OWNED BY rr CASCADE; DROP ROLE rr"), ""); }

  // All wait for the lock before the first has it.
  template <class Work>
  void race(const std::string& lock, Work work) const {
    ASSERT_EQ(user_.exec("SELECT pg_advisory_lock(" + lock + ")"), "");
    std::vector<std::future<Status>> clients;
    for (int i = 0; i < 6; ++i) clients.push_back(std::async(std::launch::async, work));
    while (user_.ask("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                     " AND wait_event_type = 'Lock'") != "6") {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    ASSERT_EQ(user_.exec("SELECT pg_advisory_unlock(" + lock + ")"), "");
    for (auto& client : clients) EXPECT_TRUE(good(client.get()));
  }
};

TEST_F(RacingTest, FirstClientsAgreeWhateverTheirIsolation) {
  race("7810758531586156404", [&] { return open_store("rr"); });
}

TEST_F(RacingTest, InstallersAgreeWhateverTheirIsolation) {
  race("7810758531586156405", [&] {
    const UserConnection mine(fence_server().url(database_, "rr"));
    return install_fence(mine.get());
  });
  race("7810758531586156405", [&]() -> Status {
    auto outbox = adapters().front().offers.open<OnceAdmin>(
        Url::parse(fence_server().url(database_, "rr")).value());
    if (!outbox) return fail(std::move(outbox.error()));
    return (*outbox)->install();
  });
}

// ---- whose it is ---------------------------------------------------------------------------

class TrustTest : public SchemaTest {
 protected:
  TrustTest() {
    for (const std::string role : {"maker", "app"}) {
      EXPECT_EQ(user_.exec("DROP ROLE IF EXISTS " + role + "; CREATE ROLE " + role + " LOGIN"), "");
    }
    EXPECT_EQ(user_.exec("GRANT CREATE ON DATABASE " + database_ + " TO maker"), "");
    EXPECT_TRUE(good(open_store("maker")));
    EXPECT_EQ(user_.exec("GRANT USAGE ON SCHEMA leasehold TO app;"
                         "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA leasehold"
                         " TO app;"
                         "GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA leasehold TO app"),
              "");
  }
  ~TrustTest() override {
    EXPECT_EQ(user_.exec("DROP OWNED BY maker, app CASCADE; DROP ROLE maker, app"), "");
  }

  void expect_refused(const Status& opened) const {
    ASSERT_TRUE(bad(opened, ErrorCode::unavailable));
    EXPECT_THAT(opened.error().message, HasSubstr("belongs to the role 'maker'"));
    EXPECT_THAT(opened.error().message, HasSubstr("schema_owner=maker"));
  }
};

TEST_F(TrustTest, SchemaOfAnotherRoleIsRefusedAlsoIfItIsComplete) {
  for (const char* mode : {"?mode=rows", "?mode=advisory"}) expect_refused(open_store("app", mode));
  const auto examined = adapters().front().examine(
      Url::parse(fence_server().url(database_, "app")).value(), {.context = OpenOptions().begin()});
  ASSERT_TRUE(good(examined));
  EXPECT_THAT(leasehold::testing::told(examined->findings), HasSubstr("'maker'"));
}

TEST_F(TrustTest, OneObjectOfAnotherRoleIsEnough) {
  ASSERT_EQ(user_.exec("ALTER SCHEMA leasehold OWNER TO postgres"), "");
  expect_refused(open_store("app"));
}

TEST_F(TrustTest, OwnerThatTheUrlNamesIsTrusted) {
  EXPECT_TRUE(good(open_store("app", "?schema_owner=maker")));
  expect_refused(open_store("app", "?schema_owner=mak"));
  expect_refused(open_store("postgres", "?schema_owner=maker"));
}

TEST_F(TrustTest, RoleOfWhichOneIsAMemberIsTrusted) {
  ASSERT_EQ(user_.exec("GRANT maker TO app"), "");
  EXPECT_TRUE(good(open_store("app")));
}

TEST_F(TrustTest, OwnerOfTheDatabaseIsTrusted) {
  ASSERT_EQ(user_.exec("ALTER DATABASE " + database_ + " OWNER TO maker"), "");
  EXPECT_TRUE(good(open_store("app")));
  ASSERT_EQ(user_.exec("ALTER DATABASE " + database_ + " OWNER TO postgres"), "");
}

// ---- NULL ----------------------------------------------------------------------------------

struct Call {
  std::string function;
  std::vector<std::string> arguments;
  std::size_t may_be_null = 99;  // the number of one that may
};

TEST_F(SchemaTest, FunctionsRefuseNull) {
  ASSERT_TRUE(good(open_store()));
  const std::string id = "'00000000-0000-0000-0000-000000000001'::uuid";
  const std::vector<Call> calls = {
      {"acquire", {"'l'::text", id, "'me'::text", "60000", "false", "1"}, 5},
      {"renew", {"'{l}'::text[]", "ARRAY[" + id + "]", "'{60000}'::bigint[]"}},
      {"record", {"'l'::text", id, "'k'::text", "'p'::bytea", "'r'::bytea"}},
      {"force_release", {"'l'::text", id}},
      {"release", {"'l'::text", id, "0", "false", "true"}},
      {"rotate", {id, id}},
      {"session_acquire", {"'l'::text", id, "'me'::text", "60000", "false", "1", "false"}},
      {"session_grant", {"'l'::text", id, "'me'::text", "60000", "false"}},
      {"session_renew", {"'l'::text", id, "60000"}},
      {"session_record", {"'l'::text", id, "'k'::text", "'p'::bytea", "'r'::bytea"}},
      {"session_release", {"'l'::text", id, "false"}},
      {"session_force", {"'l'::text", id}},
      {"transaction_lock", {"'l'::text", "0", "1000"}}};
  for (const Call& call : calls) {
    for (std::size_t null = 0; null <= call.arguments.size(); ++null) {
      std::string sql = "SELECT * FROM leasehold." + call.function + "(";
      for (std::size_t i = 0; i < call.arguments.size(); ++i) {
        sql += (i == 0 ? "" : ", ") + (i == null ? "NULL" : call.arguments[i]);
      }
      sql += ")";
      const bool all_given = null == call.arguments.size() || null == call.may_be_null;
      if (all_given) {
        EXPECT_EQ(user_.exec(sql), "") << sql;
      } else {
        EXPECT_THAT(user_.exec(sql), StartsWith("22004")) << sql;
      }
    }
  }
  for (const std::string& arrays : std::vector<std::string>{
           "'{l,NULL}', ARRAY[" + id + ", " + id + "], '{1,1}'", "'{l}', '{NULL}', '{1}'",
           "'{l}', ARRAY[" + id + "], '{NULL}'", "'{l}', '{}', '{1}'"}) {
    EXPECT_THAT(user_.exec("SELECT leasehold.renew(" + arrays + ")"), StartsWith("22004"));
  }
}

}  // namespace
}  // namespace leasehold::postgres
