// Somebody who may create things in `public`, or schemas, and waits for a more powerful role to use
// them unawares.
#include "adapters/postgres/rig/pgbouncer.h"
#include "fence_database.h"
#include "leasehold/client.h"
#include "leasehold/fence_admin.h"
#include "leasehold/once_admin.h"
#include "leasehold/outbox.h"
#include "leasehold/postgres/adapter.h"
#include "leasehold/postgres/once.h"
#include "leasehold/postgres/outbox.h"
#include "leasehold/postgres/row_fence.h"
#include "leasehold/postgres/serial_queue.h"
#include "leasehold/postgres/transaction_lock.h"
#include "leasehold/postgres/versioned_row.h"
#include "leasehold/serial_queue_admin.h"
#include "testing/findings.h"

namespace leasehold::postgres {
namespace {

class StrangerTest : public FenceDatabase {
 protected:
  StrangerTest() {
    EXPECT_EQ(user_.exec("DROP ROLE IF EXISTS stranger; CREATE ROLE stranger LOGIN;"
                         "GRANT CREATE ON SCHEMA public TO stranger;"
                         "GRANT CREATE ON DATABASE " +
                         database_ + " TO stranger"),
              "");
  }
  ~StrangerTest() override {
    EXPECT_EQ(user_.exec("DROP OWNED BY stranger CASCADE; DROP ROLE stranger"), "");
  }

  void as_stranger(const std::string& sql) const {
    EXPECT_EQ(UserConnection(fence_server().url(database_, "stranger")).exec(sql), "") << sql;
  }
  // What the stranger would have done in its favour.
  static std::string seizing(const std::string& header, const std::string& returned) {
    return "CREATE FUNCTION " + header +
           " LANGUAGE plpgsql AS $$ BEGIN"
           " IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN"
           " ALTER ROLE stranger SUPERUSER; END IF; RETURN " +
           returned + "; END $$;";
  }
  std::string is_superuser() const {
    return user_.ask("SELECT rolsuper FROM pg_roles WHERE rolname = 'stranger'");
  }
  Status open_store(const std::string& role = "postgres") const {
    const Url as_role = Url::parse(fence_server().url(database_, role)).value();
    auto store = adapters().front().open_store(as_role, {});
    if (!store) return fail(std::move(store.error()));
    return {};
  }
  void install_everything() const {
    EXPECT_TRUE(good(install_fence(user_.get())));
    EXPECT_TRUE(good(install_once(user_.get())));
    EXPECT_TRUE(good(install_outbox(user_.get())));
    EXPECT_TRUE(good(SerialQueue::install(user_.get())));
    EXPECT_TRUE(good(open_store()));
  }

  // In `schema`: whatever fits the types that we use better than what pg_catalog has.
  void set_traps(const std::string& schema = "public") const {
    as_stranger(seizing(schema + ".seize() RETURNS boolean", "true"));
    as_stranger("SET search_path = pg_catalog; SET traps.schema = '" + schema + "';" + R"sql(
DO $do$ DECLARE
  types text[] := '{text,varchar,name,bigint,integer,smallint,"\"char\"",timestamptz,interval,boolean,oid,regclass,uuid,numeric,double precision,text[]}';
  s text := current_setting('traps.schema');
  body text := format(' RETURNS boolean LANGUAGE sql AS ''SELECT %I.seize()''', s);
  l text; r text; called text; given text;
BEGIN
  FOREACH l IN ARRAY types LOOP
    FOREACH called IN ARRAY ARRAY['format', 'unnest', 'cardinality', 'count', 'max', 'min', 'floor', 'ceil',
        'to_hex', 'octet_length', 'encode', 'md5', 'length', 'pg_terminate_backend', 'pg_advisory_lock'] LOOP
      IF to_regprocedure(format('pg_catalog.%I(%s)', called, l)) IS NULL THEN
        EXECUTE format('CREATE FUNCTION %I.%I(%s)', s, called, l) || body;
      END IF;
    END LOOP;
    FOREACH r IN ARRAY types LOOP
      FOREACH given IN ARRAY ARRAY['boolean', 'numeric', 'text'] LOOP
        EXECUTE format('CREATE FUNCTION %I.trap_%s(%s, %s) RETURNS %s LANGUAGE sql AS ''SELECT CASE WHEN %I.seize() THEN 1 END::text::%s''',
                       s, given, l, r, given, s, given);
      END LOOP;
      FOREACH called IN ARRAY ARRAY['=', '<>', '<', '<=', '>', '>=', '+', '-', '*', '||', '&', '|', '<<', '~', '!~', '~~'] LOOP
        IF to_regoperator(format('pg_catalog.%s(%s,%s)', called, l, r)) IS NULL THEN
          EXECUTE format('CREATE OPERATOR %I.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = %I.trap_%s)', s, called, l, r, s,
            CASE WHEN called IN ('+', '-', '*', '&', '|', '<<') THEN 'numeric' WHEN called = '||' THEN 'text' ELSE 'boolean' END);
        END IF;
      END LOOP;
      FOREACH called IN ARRAY ARRAY['format', 'concat', 'array_fill', 'generate_subscripts', 'encode', 'decode', 'substr',
          'hashtextextended', 'pg_advisory_xact_lock', 'current_setting', 'pg_notify'] LOOP
        IF to_regprocedure(format('pg_catalog.%I(%s,%s)', called, l, r)) IS NULL THEN
          EXECUTE format('CREATE FUNCTION %I.%I(%s, %s)', s, called, l, r) || body;
        END IF;
      END LOOP;
      EXECUTE format('CREATE FUNCTION %I.format(text, %s, %s)', s, l, r) || body;
    END LOOP;
  END LOOP;
END $do$)sql");
  }

  // The ways that keep their mark or version in a row of the user's.
  void use_rows(const std::string& table, const std::string& key,
                const std::string& version) const {
    ASSERT_EQ(
        user_.exec("CREATE TABLE " + table + "(id " + key + " PRIMARY KEY, paid boolean, version " +
                   version + "); INSERT INTO " + table + " VALUES('7', false, 1)"),
        "");
    ASSERT_TRUE(good(add_fence_columns(user_.get(), table)));
    const auto rows = RowFence::open(user_.get(), table);
    ASSERT_TRUE(good(rows));
    EXPECT_TRUE(good(rows->enter("7", token_of(33, '1'), {"paid"})));
    EXPECT_TRUE(good(rows->write("7", token_of(33, '1'), {{"paid", "true"}})));
    EXPECT_TRUE(
        bad(rows->write("7", token_of(32, '2'), {{"paid", "true"}}), ErrorCode::fenced_out));
    EXPECT_TRUE(good(rows->marks()));
    EXPECT_TRUE(good(rows->adopt("7", lineage_of('b'), TokenNumber::of(5).value())));
    const auto row =
        VersionedRow::open(user_.get(), {.table = table, .key = "7", .columns = {"paid"}});
    ASSERT_TRUE(good(row));
    const auto seen = row->read();
    ASSERT_TRUE(good(seen));
    EXPECT_TRUE(row->write(*seen, seen->value).value_or(false));
  }

  void use_queue() const {
    const auto queue = SerialQueue::open(user_.get(), "orders").value();
    EXPECT_TRUE(good(queue.push("a", "1")));
    for (const Status& answer : {Status(fail(ErrorCode::busy, "not now")), Status()}) {
      EXPECT_TRUE(
          good(queue.handle_one([&](OpenTransaction&, const Operation&) { return answer; })));
      ASSERT_EQ(user_.exec("UPDATE leasehold_serial.operation SET due = '-infinity'"), "");
    }
    EXPECT_EQ(queue.waiting().value_or(-1), 0);
    EXPECT_TRUE(good(queue.set_aside()));
    EXPECT_TRUE(bad(queue.retry(1), ErrorCode::invalid));
    EXPECT_TRUE(bad(queue.skip(1), ErrorCode::invalid));
  }

  // What the program does at a database that its URL names.
  void use_everything(const std::string& url) const {
    const Url parsed = Url::parse(url).value();
    const Adapter adapter = adapters().front();
    for (const ExaminedAs as : {ExaminedAs::store, ExaminedAs::fence}) {
      const auto examined = adapter.examine(parsed, {.as = as, .context = OpenOptions().begin()});
      ASSERT_TRUE(good(examined));
      EXPECT_THAT(leasehold::testing::told(examined->findings), HasSubstr("clock"));
    }
    for (const std::string mode : {"rows", "advisory"}) {
      auto store = adapter.open_store(Url::parse(url + "?mode=" + mode).value(), {});
      if (!store && store.error().code == ErrorCode::unsupported) continue;  // behind a pooler
      ASSERT_TRUE(good(store));
      Client client(std::move(*store));
      const LockName lock = LockName::parse("job").value();
      const auto lease = client.acquire(lock);
      ASSERT_TRUE(good(lease));
      EXPECT_TRUE(good(client.record(*lease, "k", {"p", "r"})));
      EXPECT_TRUE(good(client.recall(lock, "k")));
      EXPECT_TRUE(good(client.inspect(lock)));
      EXPECT_TRUE(good(client.list()));
      std::thread waiter([&] {
        EXPECT_TRUE(bad(client.acquire(lock, {.wait = Millis(50)}), ErrorCode::timeout));
      });
      waiter.join();
      EXPECT_TRUE(good(client.rotate_store_id()));
    }
    auto fence = adapter.offers.open<FenceAdmin>(parsed).value();
    EXPECT_TRUE(good(fence->install()));
    EXPECT_TRUE(good(fence->guard("data", ledger())));
    EXPECT_TRUE(good(fence->guards()));
    EXPECT_TRUE(good(fence->marks()));
    EXPECT_TRUE(good(fence->adopt(ledger(), lineage_of('b'), TokenNumber::of(5).value())));
    EXPECT_TRUE(good(fence->reset(ledger())));
    EXPECT_TRUE(good(fence->unguard("data")));
    EXPECT_TRUE(good(adapter.offers.open<OnceAdmin>(parsed).value()->forget_older_than(
        std::chrono::seconds(0))));
    auto outbox = adapter.offers.open<Outbox>(parsed).value();
    EXPECT_TRUE(good(outbox->install()));
    EXPECT_TRUE(good(outbox->enter(token_of(1, '1'))));
    EXPECT_TRUE(good(outbox->next(10, {"other"}, 0)));
    EXPECT_TRUE(good(outbox->status()));
    EXPECT_TRUE(good(outbox->forget(token_of(1, '1'), Millis(0))));
    EXPECT_TRUE(good(adapter.offers.open<SerialQueueAdmin>(parsed).value()->install()));
  }
};

TEST_F(StrangerTest, GuardingATableCallsNoFunctionOfSomebodyElse) {
  as_stranger(
      seizing("public.format(text, regclass) RETURNS text", "pg_catalog.format($1, $2)") +
      seizing("public.format(text, regclass, text) RETURNS text", "pg_catalog.format($1, $2, $3)"));
  EXPECT_TRUE(good(guard_table(user_.get(), "data", ledger())));
  EXPECT_TRUE(good(unguard_table(user_.get(), "data")));
  EXPECT_EQ(is_superuser(), "f");
}

TEST_F(StrangerTest, PushingUsesNoOperatorOfSomebodyElse) {
  as_stranger(
      seizing("public.hidden(bigint, integer) RETURNS bigint", "$1 & $2::bigint") +
      "CREATE OPERATOR public.& (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = public.hidden)");
  ASSERT_TRUE(good(SerialQueue::install(user_.get())));
  EXPECT_TRUE(good(SerialQueue::open(user_.get(), "orders")->push("a", "1")));
  EXPECT_EQ(is_superuser(), "f");
}

TEST_F(StrangerTest, SchemaThatSomebodyElseMadeFirstIsRefused) {
  ASSERT_TRUE(good(remove_fence(user_.get())));
  const auto refused = [&](const Status& status) {
    ASSERT_TRUE(bad(status, ErrorCode::unavailable));
    EXPECT_THAT(status.error().message, HasSubstr("'stranger'"));
  };
  for (const char* schema :
       {"leasehold_fence", "leasehold_once", "leasehold_outbox", "leasehold_serial"}) {
    as_stranger(std::string("CREATE SCHEMA ") + schema + "; GRANT USAGE ON SCHEMA " + schema +
                " TO PUBLIC;" + seizing(std::string(schema) + ".version() RETURNS integer", "1"));
  }
  as_stranger(
      "CREATE SCHEMA leasehold;" + seizing("leasehold.seize() RETURNS integer", "2") +
      "CREATE VIEW leasehold.meta AS SELECT leasehold.seize() AS version,"
      " gen_random_uuid() AS row_store, gen_random_uuid() AS session_store;"
      "GRANT USAGE ON SCHEMA leasehold TO PUBLIC; GRANT SELECT ON leasehold.meta TO PUBLIC");
  refused(install_fence(user_.get()));
  refused(guard_table(user_.get(), "data", ledger()));
  refused(install_once(user_.get()));
  refused(remove_once(user_.get()));
  refused(install_outbox(user_.get()));
  refused(SerialQueue::install(user_.get()));
  refused(open_store());
  const auto examined = adapters().front().examine(
      Url::parse(fence_server().url(database_)).value(), {.context = OpenOptions().begin()});
  ASSERT_TRUE(examined);
  EXPECT_THAT(leasehold::testing::told(examined->findings), HasSubstr("'stranger'"));
  EXPECT_EQ(is_superuser(), "f");
}

TEST_F(StrangerTest, SchemaOfAnotherRoleIsUsedByOrdinaryRolesAndMadeByItsOwner) {
  ASSERT_TRUE(good(remove_fence(user_.get())));
  ASSERT_EQ(user_.exec("DROP ROLE IF EXISTS clerk; CREATE ROLE clerk LOGIN"), "");
  {
    const UserConnection owner(fence_server().url(database_, "stranger"));
    const UserConnection clerk(fence_server().url(database_, "clerk"));
    ASSERT_TRUE(good(install_fence(owner.get())));
    EXPECT_TRUE(good(install_fence(owner.get())));
    ASSERT_EQ(owner.exec("GRANT USAGE ON SCHEMA leasehold_fence TO clerk"), "");
    EXPECT_TRUE(good(fence_of(clerk).transaction(token_of(33, '1'), nothing)));
    EXPECT_TRUE(bad(install_fence(clerk.get()), ErrorCode::unavailable));
    EXPECT_TRUE(bad(Fence::open(user_.get(), "ledger"), ErrorCode::unavailable))
        << "its functions would run as a superuser";
    ASSERT_EQ(user_.exec("ALTER DATABASE " + database_ + " OWNER TO stranger"), "");
    EXPECT_TRUE(good(install_fence(clerk.get()))) << "the database's owner may be trusted with it";
    EXPECT_TRUE(bad(install_fence(user_.get()), ErrorCode::unavailable));
    ASSERT_EQ(user_.exec("ALTER DATABASE " + database_ + " OWNER TO postgres"), "");
  }
  EXPECT_EQ(user_.exec("DROP OWNED BY clerk; DROP ROLE clerk"), "");
}

TEST_F(StrangerTest, NothingOfOursFindsWhatSomebodyElsePutThere) {
  ASSERT_TRUE(good(remove_fence(user_.get())));
  set_traps();
  install_everything();
  PGconn* mine = user_.get();

  ASSERT_EQ(user_.exec("CREATE TABLE log(day int) PARTITION BY LIST(day);"
                       "CREATE TABLE log_1 PARTITION OF log FOR VALUES IN (1)"),
            "");
  for (const char* table : {"data", "log"}) {
    EXPECT_TRUE(good(guard_table(mine, table, ledger()))) << table;
    EXPECT_TRUE(good(guard_table(mine, table, ledger()))) << table;
  }
  EXPECT_TRUE(good(fence().transaction(token_of(33, '1'), insert_row)));
  EXPECT_TRUE(good(fence().transaction(token_of(33, '1'), insert_row)));
  EXPECT_TRUE(bad(fence().transaction(token_of(32, '2'), insert_row), ErrorCode::fenced_out));
  auto admin = adapters().front().offers.open<FenceAdmin>(Url::parse(url()).value()).value();
  EXPECT_TRUE(good(admin->guards()));
  EXPECT_TRUE(good(admin->marks()));
  EXPECT_TRUE(good(admin->adopt(ledger(), lineage_of('b'), TokenNumber::of(5).value())));
  EXPECT_TRUE(good(admin->reset(ledger())));
  EXPECT_TRUE(good(unguard_table(mine, "log")));

  EXPECT_TRUE(good(Once::open(mine)->run(
      "k", "p", [](OpenTransaction&) -> Result<std::string> { return "r"; })));
  EXPECT_TRUE(good(Once::open(mine)->forget_older_than(std::chrono::seconds(0))));

  use_queue();

  ASSERT_EQ(user_.exec("BEGIN"), "");
  const auto put =
      outbox_put(mine, {.key = "k", .topic = "t", .payload = "p", .idempotency_key = {}});
  EXPECT_TRUE(good(put));
  ASSERT_EQ(user_.exec("COMMIT"), "");
  auto outbox = adapters().front().offers.open<Outbox>(Url::parse(url()).value()).value();
  EXPECT_TRUE(good(outbox->next(10, {"other"})));
  EXPECT_TRUE(good(outbox->failed(token_of(1, '1'), *put, "why", 3)));
  EXPECT_TRUE(good(outbox->find(*put)));
  EXPECT_TRUE(good(outbox->status()));
  EXPECT_TRUE(good(outbox->delivered(token_of(1, '1'), *put)));
  EXPECT_TRUE(good(outbox->forget(token_of(1, '1'), Millis(0))));

  use_rows("orders", "int", "bigint");
  use_rows("parcels", "varchar", "numeric");

  ASSERT_EQ(user_.exec("BEGIN"), "");
  EXPECT_TRUE(good(lock_in_transaction(mine, LockName::parse("l").value(), {})));
  ASSERT_EQ(user_.exec("COMMIT"), "");
  const std::string one = "'00000000-0000-0000-0000-000000000001'";
  for (const std::string& call :
       {"acquire('l', " + one + ", 'me', 60000, true, NULL)",
        "renew('{l}', ARRAY[" + one + "]::uuid[], '{60000}')",
        std::string("acquire('l', gen_random_uuid(), 'other', 60000, true, 1)"),
        std::string("status(NULL)"), "record('l', " + one + ", 'k', 'p', 'r')",
        "release('l', " + one + ", 0, true)",
        std::string("session_acquire('s', gen_random_uuid(), 'me', 60000, true, 1, true)"),
        std::string("session_status(NULL)")}) {
    EXPECT_EQ(user_.exec("SELECT * FROM leasehold." + call), "") << call;
  }
  EXPECT_EQ(is_superuser(), "f");
}

TEST_F(StrangerTest, OurOwnConnectionsFindNothingOfSomebodyElse) {
  install_everything();
  as_stranger("CREATE SCHEMA postgres; GRANT USAGE ON SCHEMA postgres TO PUBLIC");
  for (const char* schema : {"public", "postgres"}) set_traps(schema);
  use_everything(url());
  EXPECT_EQ(is_superuser(), "f");
  const leasehold::rig::Pgbouncer pooler(fence_server());
  use_everything(pooler.url(database_));
  EXPECT_EQ(is_superuser(), "f");
}

// A function finds only what pg_catalog has: it sets its own search_path, or its body was bound to
// what it names when it was made. The exceptions name all of it in full, and are tried here.
TEST_F(StrangerTest, EveryFunctionSetsItsSearchPathOrIsBound) {
  install_everything();
  EXPECT_EQ(
      user_.ask("SELECT string_agg(p.oid::regprocedure::text, ' '"
                " ORDER BY p.oid::regprocedure::text COLLATE \"C\")"
                " FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
                " WHERE n.nspname LIKE 'leasehold%' AND p.prosqlbody IS NULL"
                " AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (p.proconfig), false)"),
      "leasehold.acquire(text,uuid,text,bigint,boolean,bigint,bigint,text,integer)"
      " leasehold.release(text,uuid,bigint,boolean,boolean)"
      " leasehold_fence.enter(text,bigint,text,text,boolean)");
  EXPECT_NE(
      user_.ask("SELECT count(*) FROM pg_proc WHERE pronamespace = 'leasehold'::regnamespace"),
      "0");
}

// A copy of what pg_catalog has stands before it, so that a name that is not written in full finds
// the copy.
class CopyTest : public StrangerTest {
 protected:
  CopyTest() {
    as_stranger(R"sql(CREATE SCHEMA copy; GRANT USAGE ON SCHEMA copy TO PUBLIC;
DO $do$ DECLARE
  f record;
BEGIN
  FOR f IN SELECT p.proname, oidvectortypes(p.proargtypes) AS takes, p.prokind FROM pg_proc p
           WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind IN ('f', 'a')
             AND (p.proname = ANY (SELECT regexp_split_to_table(prosrc, E'\\W+') FROM pg_proc
                                   WHERE proname IN ('enter', 'acquire', 'release'))
                  OR p.proname IN ('max', 'min', 'count', 'clock_timestamp', 'unnest')) LOOP
    CONTINUE WHEN f.takes LIKE '%"any"%';
    EXECUTE format($$CREATE FUNCTION copy.%I(%s) RETURNS text LANGUAGE plpgsql AS
      'BEGIN RAISE EXCEPTION ''a copy was called''; END'$$, f.proname, f.takes);
  END LOOP;
  FOR f IN SELECT o.oprname, o.oprleft::regtype AS l, o.oprright::regtype AS r FROM pg_operator o
           WHERE o.oprkind = 'b'
             AND o.oprleft = ANY ('{text,bigint,integer,smallint,name,oid,numeric,timestamptz,uuid,double precision}'::regtype[])
             AND o.oprright = ANY ('{text,bigint,integer,smallint,name,oid,numeric,timestamptz,uuid,interval}'::regtype[]) LOOP
    EXECUTE format($$CREATE OR REPLACE FUNCTION copy.operator(%s, %s) RETURNS boolean LANGUAGE plpgsql AS
      'BEGIN RAISE EXCEPTION ''a copy was used''; END'$$, f.l, f.r);
    EXECUTE format('CREATE OPERATOR copy.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = copy.operator)',
                   f.oprname, f.l, f.r);
  END LOOP;
END $do$)sql");
  }

  void find_the_copy_first() const {
    ASSERT_EQ(user_.exec("SET search_path = copy, pg_catalog, public"), "");
    ASSERT_THAT(user_.exec("SELECT now()"), HasSubstr("a copy was called"));
    ASSERT_THAT(user_.exec("SELECT 'a'::text = 'b'::text"), HasSubstr("a copy was used"));
  }
};

TEST_F(CopyTest, RowsAndQueuesNameEverythingInFull) {
  install_everything();
  find_the_copy_first();
  use_rows("orders", "int", "bigint");
  use_rows("parcels", "varchar", "integer");
  use_queue();
}

TEST_F(CopyTest, TakingALockNamesEverythingInFull) {
  install_everything();
  find_the_copy_first();
  const std::string one = "'00000000-0000-0000-0000-000000000001'";
  const std::string two = "'00000000-0000-0000-0000-000000000002'";
  for (const char* usual : {"on", "off"}) {
    ASSERT_EQ(user_.exec(std::string("SET synchronous_commit = ") + usual), "");
    for (const std::string& call :
         {"acquire('l', " + one + ", 'me', 60000, true, NULL)",
          "release('l', " + one + ", 0, false)",
          "acquire('l', " + two + ", 'me', 60000, true, NULL)",
          "acquire('l', " + one + ", 'me', 60000, true, NULL)",
          "release('l', " + two + ", 0, false, true)", "release('l', " + one + ", 1000, true)"}) {
      EXPECT_EQ(user_.exec("SELECT * FROM leasehold." + call), "") << call;
    }
  }
  ASSERT_EQ(user_.exec("RESET search_path"), "");
}

TEST_F(CopyTest, EnteringNamesEverythingInFull) {
  find_the_copy_first();
  for (const char* token : {"33", "33", "34"}) EXPECT_EQ(user_.exec(enter(token)), "") << token;
  EXPECT_THAT(user_.exec(enter("33")), StartsWith("LH001"));
  EXPECT_EQ(user_.exec("SET synchronous_commit = off;" + enter("34")), "");
  ASSERT_EQ(user_.exec("RESET search_path"), "");
  const Fence mine = fence();
  ASSERT_EQ(user_.exec("SET search_path = copy, pg_catalog; RESET synchronous_commit"), "");
  for (int times = 0; times < 2; ++times) {
    EXPECT_TRUE(good(mine.transaction(token_of(35, '3'), nothing)));
  }
  for (const Token& token : {token_of(36, '4'), token_of(35, '3')}) {
    EXPECT_TRUE(good(mine.read(token, nothing)));
  }
  ASSERT_EQ(user_.exec("RESET search_path"), "");
}

}  // namespace
}  // namespace leasehold::postgres
