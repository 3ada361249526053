// What a real server does for calls of lease rows that go together, and what each is answered.
#include "together.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <future>
#include <latch>
#include <thread>

#include "postgres_under_test.h"
#include "schema.h"
#include "user_connection.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using postgres::Together;
using postgres::UserConnection;

class PostgresTogether : public ::testing::Test {
 protected:
  AskedAcquire& acquire(std::string_view lock, const RequestId& request = new_request(),
                        leasehold::Mode mode = {}, std::string_view note = "") {
    return acquires_.emplace_back(
        AcquireCall{lock_name(lock), request, OwnerLabel::parse("me").value(), Ttl::of(30s).value(),
                    false, mode, Note::parse(note).value()},
        soon());
  }
  AskedRelease& release(std::string_view lock, const RequestId& request, Millis keep_for = {}) {
    return releases_.emplace_back(ReleaseCall{lock_name(lock), request, keep_for}, soon());
  }

  // False if the server refused all of it.
  bool go(std::vector<AnyAsked> batch) {
    Together together(batch, doubts);
    if (!together.is_several()) return true;
    const auto all = together.begin();
    const CallContext limits = limits_of(batch);
    waiting::CallWait wait(limits, never_);
    const auto rows = connection_->run(
        statement_,
        {all.locks.c_str(), all.requests.c_str(), all.owners.c_str(), all.ttls.c_str(),
         all.notes.c_str(), all.released_locks.c_str(), all.released_requests.c_str()},
        wait);
    if (rows) together.answer(*rows);
    return rows.has_value();
  }

  static const Granted& grant(const AskedAcquire& asked) {
    return std::get<Granted>(asked.reply->value());
  }
  RequestId held(std::string_view lock) {
    const RequestId request = new_request();
    EXPECT_TRUE(
        std::holds_alternative<Granted>(store.acquire_another(lock_name(lock), request).value()));
    return request;
  }
  std::string psql(const std::string& sql) { return shared_server().psql(sql, server.database()); }
  std::string url() { return shared_server().url(server.database()); }

  PostgresUnderTest server{"mode=rows"};
  RawStore store{server.open()};
  Doubts doubts;

 private:
  static CallContext soon() { return {BootClock::now() + 30s, {}}; }

  const waiting::Alarm never_;
  std::unique_ptr<postgres::Connection> connection_ =
      postgres::Connection::open(postgres::Options::of(Url::parse(url()).value()).value().hosts,
                                 soon(), never_)
          .value();
  const postgres::Statement statement_{"", postgres::in_schema(Together::kSql, "leasehold")};
  std::deque<AskedAcquire> acquires_;
  std::deque<AskedRelease> releases_;
};

TEST_F(PostgresTogether, FreeLocksAreGrantedByOneStatementAsEachAloneWouldBe) {
  for (const char* known : {"new names", "names that are known"}) {
    SCOPED_TRACE(known);
    AskedAcquire& first = acquire("a", new_request(), {}, "for the books");
    AskedAcquire& second = acquire("b \"quoted\", {and} \\all");
    AskedAcquire& third = acquire("c");
    ASSERT_TRUE(go({&first, &second, &third}));
    EXPECT_NE(grant(first).token, grant(second).token);
    EXPECT_NE(grant(second).token, grant(third).token);
    for (const AskedAcquire* it : {&first, &second, &third}) {
      const auto again =
          std::get<Granted>(store.acquire_another(it->call.lock, it->call.request).value());
      EXPECT_EQ(again.token, grant(*it).token);
      EXPECT_EQ(again.store, grant(*it).store);
      EXPECT_FALSE(again.fresh);
    }
    EXPECT_EQ(psql("SELECT owner, note, kept, expires_at > now() + interval '20 s' FROM "
                   "leasehold.lock WHERE name = 'a'"),
              "me|for the books|f|t");
    AskedRelease& one = release("a", first.call.request);
    AskedRelease& other = release("c", third.call.request);
    ASSERT_TRUE(go({&one, &other}));
    EXPECT_EQ(one.reply->value(), ReleaseReply::released);
    EXPECT_EQ(other.reply->value(), ReleaseReply::released);
    EXPECT_EQ(psql("SELECT name FROM leasehold.lock WHERE expires_at > now()"),
              second.call.lock.str());
    EXPECT_EQ(store.release_another(second.call.lock, second.call.request).value(),
              ReleaseReply::released);
  }
}

TEST_F(PostgresTogether, WhatIsInTheWayOfOneLockHoldsUpNoOther) {
  const RequestId holder = held("held");
  held("waited");
  ASSERT_TRUE(std::holds_alternative<Queued>(
      store.acquire_another(lock_name("waited"), new_request(), 30s, /*queue=*/true).value()));
  const RequestId reader = new_request();
  EXPECT_EQ(psql("SELECT leasehold.set_permits('set', 3)"), "");
  EXPECT_EQ(psql("SELECT o_outcome FROM leasehold.acquire('read', '" + reader.hex() +
                 "', 'reader', 30000, false, NULL, -1)"),
            "granted");
  const RequestId given_up = new_request();
  EXPECT_EQ(psql("SELECT leasehold.release('late', '" + given_up.hex() + "', 0, true)"), "f");
  EXPECT_EQ(psql("DELETE FROM leasehold.lock WHERE name = 'late'"), "") << "swept";

  std::vector<AskedAcquire*> blocked;
  for (const char* lock : {"held", "waited", "set", "read"}) blocked.push_back(&acquire(lock));
  blocked.push_back(&acquire("late", given_up));
  AskedAcquire& before = acquire("before");
  AskedAcquire& after = acquire("after");
  std::vector<AnyAsked> batch{&before};
  batch.insert(batch.end(), blocked.begin(), blocked.end());
  batch.push_back(&after);
  ASSERT_TRUE(go(batch));
  EXPECT_TRUE(grant(before).fresh);
  EXPECT_TRUE(grant(after).fresh);
  for (const AskedAcquire* it : blocked) {
    EXPECT_FALSE(it->reply) << it->call.lock.str() << " was not done, and goes on its own";
  }
  EXPECT_EQ(store.release_another(lock_name("held"), holder).value(), ReleaseReply::released);
}

// It may hold the row for as long as it likes.
TEST_F(PostgresTogether, NobodyWaitsBehindTheTransactionOfAStranger) {
  const RequestId holder = held("theirs too");
  store.release_another(lock_name("theirs"), held("theirs"));
  const UserConnection stranger(url());
  ASSERT_EQ(
      stranger.exec("BEGIN; SELECT * FROM leasehold.lock WHERE name LIKE 'theirs%' FOR UPDATE"),
      "");
  AskedAcquire& theirs = acquire("theirs");
  AskedAcquire& ours = acquire("ours");
  AskedRelease& leaves = release("theirs too", holder);
  ASSERT_TRUE(go({&theirs, &leaves, &ours}));
  EXPECT_FALSE(theirs.reply);
  EXPECT_FALSE(leaves.reply);
  EXPECT_TRUE(grant(ours).fresh);

  ASSERT_EQ(stranger.exec("INSERT INTO leasehold.lock(name) VALUES ('new')"), "");
  AskedAcquire& new_one = acquire("new");
  AskedAcquire& other = acquire("other");
  EXPECT_FALSE(go({&new_one, &other})) << "what waits for a name that comes into being gives up";
  EXPECT_FALSE(new_one.reply);
  EXPECT_FALSE(other.reply);
  EXPECT_EQ(stranger.exec("ROLLBACK"), "");
  EXPECT_EQ(psql("SELECT count(*) FROM leasehold.lock WHERE name IN ('new', 'other')"), "0");
}

TEST_F(PostgresTogether, OfTwoThatWantOneLockTheFirstGetsIt) {
  AskedAcquire& first = acquire("one");
  AskedAcquire& second = acquire("one");
  AskedAcquire& other = acquire("other");
  ASSERT_TRUE(go({&first, &second, &other}));
  EXPECT_TRUE(grant(first).fresh);
  EXPECT_FALSE(second.reply);
  EXPECT_TRUE(grant(other).fresh);
}

TEST_F(PostgresTogether, OnlyItsHolderReleasesALockAndOnlyWhereNobodyWaits) {
  const RequestId holder = held("held");
  const RequestId first = held("waited");
  const RequestId kept = held("kept");
  const RequestId doubtful = held("doubtful");
  const RequestId plain = held("plain");
  ASSERT_TRUE(std::holds_alternative<Queued>(
      store.acquire_another(lock_name("waited"), new_request(), 30s, /*queue=*/true).value()));
  doubts.doubt(doubtful);
  AskedRelease& stranger = release("held", new_request());
  AskedRelease& wakes = release("waited", first);
  AskedRelease& keeps = release("kept", kept, 10s);
  AskedRelease& in_doubt = release("doubtful", doubtful);
  AskedRelease& simple = release("plain", plain);
  AskedRelease& unknown = release("unknown", new_request());
  ASSERT_TRUE(go({&stranger, &wakes, &keeps, &in_doubt, &simple, &unknown}));
  EXPECT_EQ(simple.reply->value(), ReleaseReply::released);
  for (const AskedRelease* it : {&stranger, &wakes, &keeps, &in_doubt, &unknown}) {
    EXPECT_FALSE(it->reply) << it->call.lock.str();
  }
  EXPECT_EQ(psql("SELECT string_agg(name, ' ' ORDER BY name) FROM leasehold.lock "
                 "WHERE expires_at > now() AND NOT kept"),
            "doubtful held kept waited");
  EXPECT_EQ(store.release_another(lock_name("held"), holder).value(), ReleaseReply::released);
}

TEST_F(PostgresTogether, OtherModesAndRenewalsGoOnTheirOwn) {
  const RequestId holder = held("held");
  AskedRenew renewal({{lock_name("held"), holder, Ttl::of(60s).value()}}, {BootTime::max(), {}});
  AskedAcquire& reader = acquire("books", new_request(), leasehold::Mode::shared());
  AskedAcquire& first = acquire("first");
  AskedAcquire& second = acquire("second");
  ASSERT_TRUE(go({&renewal, &reader, &first, &second}));
  EXPECT_FALSE(renewal.begin()) << "it was let go before the server was asked";
  EXPECT_FALSE(reader.reply);
  EXPECT_TRUE(grant(first).fresh);
  EXPECT_TRUE(grant(second).fresh);
}

TEST_F(PostgresTogether, WhoHasGoneIsNotDoneAndNoNeighbourIsHarmed) {
  AskedAcquire& first = acquire("first");
  AskedAcquire& gone = acquire("gone");
  AskedAcquire& second = acquire("second");
  gone.left_behind();
  ASSERT_TRUE(go({&first, &gone, &second}));
  EXPECT_TRUE(grant(first).fresh);
  EXPECT_TRUE(grant(second).fresh);
  EXPECT_EQ(psql("SELECT string_agg(name, ' ' ORDER BY name) FROM leasehold.lock"), "first second");
}

// In opposite order, again and again: neither waits for the other, and no lock has two holders.
TEST_F(PostgresTogether, BatchesOfTwoClientsDoNotBlockEachOther) {
  const auto work = [this](std::vector<std::string> names, std::latch& start) {
    Client client(server.open());
    std::vector<std::jthread> threads;
    std::atomic<int> done = 0;
    start.arrive_and_wait();
    for (const std::string& name : names) {
      threads.emplace_back([&client, &done, name] {
        for (int i = 0; i < 100; ++i) {
          auto lease = client.acquire(name, {.wait = 2min, .store_timeout = 1min});
          ASSERT_TRUE(lease) << to_string(lease.error());
          ASSERT_TRUE(lease->release());
          ++done;
        }
      });
    }
    threads.clear();
    return done.load();
  };
  std::latch start(2);
  auto forth = std::async(std::launch::async, work,
                          std::vector<std::string>{"a", "b", "c", "d", "e", "f"}, std::ref(start));
  auto back = std::async(std::launch::async, work,
                         std::vector<std::string>{"f", "e", "d", "c", "b", "a"}, std::ref(start));
  EXPECT_EQ(forth.get(), 600);
  EXPECT_EQ(back.get(), 600);
  EXPECT_EQ(psql("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"), "0");
}

}  // namespace
}  // namespace leasehold::testing
