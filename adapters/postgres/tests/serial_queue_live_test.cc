#include "leasehold/postgres/serial_queue.h"

#include <fstream>
#include <functional>
#include <sstream>

#include "fence_database.h"
#include "kit/text/visible_text.h"
#include "testing/crashing_workers.h"
#include "testing/failure_texts.h"
#include "testing/handled_operations.h"

namespace leasehold::postgres {
namespace {

using leasehold::rig::TempFolder;
using leasehold::testing::CrashingWorkers;
using ::testing::AllOf;

class SerialQueueTest : public FenceDatabase {
 protected:
  SerialQueueTest() {
    EXPECT_TRUE(good(SerialQueue::install(user_.get())));
    EXPECT_TRUE(good(SerialQueue::install(user_.get()))) << "again changes nothing";
    EXPECT_EQ(user_.exec("CREATE TABLE done(entity text, id bigint, payload text,"
                         " place bigserial)"),
              "");
  }

  SerialQueue queue() const { return SerialQueue::open(user_.get(), "orders").value(); }
  static SerialQueue queue_of(const UserConnection& user) {
    return SerialQueue::open(user.get(), "orders").value();
  }
  void push(const std::string& entity, const std::string& payload) const {
    ASSERT_TRUE(good(queue().push(entity, payload)));
  }

  void end_pauses() const {
    ASSERT_EQ(user_.exec("UPDATE leasehold_serial.operation SET due = '-infinity'"), "");
  }

  // Handles one and tells "entity:payload", or what else has happened.
  static std::string handle(const SerialQueue& queue, const Status& answer = {},
                            const SerialHandleOptions& options = {}) {
    return leasehold::testing::told(
        queue.handle_one([&](OpenTransaction&, const Operation&) { return answer; }, options));
  }
};

TEST_F(SerialQueueTest, OperationsOfAnEntityAreDoneInOrder) {
  for (const char* payload : {"1", "2"}) {
    push("a", payload);
    push("b", payload);
  }
  EXPECT_EQ(queue().waiting().value(), 4);
  EXPECT_EQ(handle(queue()), "a:1");
  EXPECT_EQ(handle(queue()), "b:1");
  EXPECT_EQ(handle(queue()), "a:2");
  EXPECT_EQ(handle(queue()), "b:2");
  EXPECT_EQ(handle(queue()), "nothing");
  EXPECT_EQ(queue().waiting().value(), 0);
}

TEST_F(SerialQueueTest, EntityAtWorkIsPassedOver) {
  push("a", "1");
  push("a", "2");
  push("b", "3");
  const UserConnection other(url());
  const auto handled = queue().handle_one([&](OpenTransaction&, const Operation& operation) {
    EXPECT_EQ(operation.payload, "1");
    EXPECT_EQ(handle(queue_of(other)), "b:3");
    EXPECT_EQ(handle(queue_of(other)), "nothing") << "a:2 must wait for a:1";
    return Status();
  });
  ASSERT_TRUE(good(handled));
  EXPECT_EQ(handle(queue_of(other)), "a:2");
}

TEST_F(SerialQueueTest, EntityWithManyOperationsIsPassedOver) {
  ASSERT_EQ(user_.exec("SELECT leasehold_serial.push('orders', entity, 'x') FROM unnest(ARRAY["
                       "'m', 'p']) entity, generate_series(1, 200);"
                       "SELECT leasehold_serial.push('others', 'a', 'not of this queue')"),
            "");
  push("z", "1");
  push("a", "2");
  push("n", "3");
  push("a", "4");
  const UserConnection other(url());
  const UserConnection third(url());
  const auto fails = [](OpenTransaction&, const Operation&) -> Status {
    return fail(ErrorCode::internal, "no");
  };
  EXPECT_EQ(queue().handle_one(fails).value().operation->entity.str(), "m") << "which pauses";
  const auto handled = queue().handle_one([&](OpenTransaction&, const Operation& operation) {
    EXPECT_EQ(operation.entity.str(), "p");
    EXPECT_EQ(handle(queue_of(other)), "z:1") << "the oldest of those that can be taken";
    const auto inner = queue_of(other).handle_one([&](OpenTransaction&, const Operation& second) {
      EXPECT_EQ(second.payload, "2");
      EXPECT_EQ(handle(queue_of(third)), "n:3");
      EXPECT_EQ(handle(queue_of(third)), "nothing") << "a:4 must wait for a:2";
      return Status();
    });
    EXPECT_TRUE(good(inner));
    EXPECT_EQ(handle(queue_of(other)), "a:4");
    EXPECT_EQ(handle(queue_of(other)), "nothing");
    return Status();
  });
  ASSERT_TRUE(good(handled));
}

TEST_F(SerialQueueTest, PushDoesNotWaitForTheWorker) {
  push("a", "1");
  const UserConnection other(url());
  ASSERT_EQ(other.exec("SET lock_timeout = '10s'"), "");
  const auto handled = queue().handle_one([&](OpenTransaction&, const Operation&) {
    EXPECT_TRUE(good(queue_of(other).push("a", "2")));
    return Status();
  });
  ASSERT_TRUE(good(handled));
  EXPECT_EQ(handle(queue()), "a:2");
}

TEST_F(SerialQueueTest, WritesAndRemovalAreOneTransaction) {
  push("a", "1");
  const auto insert = [](OpenTransaction& open, const Operation&) { return insert_row(open); };
  const auto broken = queue().handle_one([&](OpenTransaction& open, const Operation&) -> Status {
    EXPECT_TRUE(good(insert_row(open)));
    return fail(ErrorCode::internal, "no");
  });
  ASSERT_TRUE(good(broken));
  EXPECT_EQ(broken->what, Handled::What::failed);
  EXPECT_EQ(rows(), "0");
  ASSERT_EQ(user_.exec("UPDATE leasehold_serial.operation SET due = '-infinity'"), "");
  ASSERT_TRUE(good(queue().handle_one(insert)));
  EXPECT_EQ(rows(), "1");
  EXPECT_EQ(queue().waiting().value(), 0);
}

TEST_F(SerialQueueTest, FailedOperationPausesAndIsSetAside) {
  push("bad", "1");
  push("bad", "2");
  push("fine", "3");
  SerialHandleOptions options;
  options.attempts = 2;
  const Status no = fail(ErrorCode::internal, "it does not work");
  EXPECT_EQ(handle(queue(), no, options), "failed");
  EXPECT_EQ(handle(queue()), "fine:3") << "the failed one pauses";
  EXPECT_EQ(handle(queue()), "nothing");
  ASSERT_EQ(user_.exec("UPDATE leasehold_serial.operation SET due = '-infinity'"), "");
  EXPECT_EQ(handle(queue(), no, options), "set aside");
  ASSERT_EQ(user_.exec("UPDATE leasehold_serial.operation SET due = '-infinity'"), "");
  EXPECT_EQ(handle(queue()), "nothing") << "the whole entity is set aside";

  const auto problems = queue().set_aside();
  ASSERT_TRUE(good(problems));
  ASSERT_EQ(problems->size(), 1u);
  const Operation& operation = problems->front().operation;
  EXPECT_EQ(operation.attempts, 2);
  EXPECT_THAT(problems->front().last_error, HasSubstr("it does not work"));
  EXPECT_TRUE(bad(queue().retry(operation.id + 1), ErrorCode::invalid));
  ASSERT_TRUE(good(queue().retry(operation.id)));
  EXPECT_EQ(handle(queue(), no, SerialHandleOptions{{.attempts = 1}, Millis(0)}), "set aside");
  ASSERT_TRUE(good(queue().skip(operation.id)));
  EXPECT_EQ(handle(queue()), "bad:2");
}

TEST_F(SerialQueueTest, FailureIsCountedWhateverItSays) {
  for (const std::string& text : leasehold::testing::hostile_failure_texts()) {
    push("bad", "1");
    EXPECT_EQ(handle(queue(), fail(ErrorCode::internal, text), {{.attempts = 1}, Millis(0)}),
              "set aside");
    const auto problems = queue().set_aside();
    ASSERT_TRUE(good(problems));
    ASSERT_EQ(problems->size(), 1u);
    EXPECT_EQ(problems->front().last_error, kit::storable("internal: " + text));
    ASSERT_TRUE(good(queue().skip(problems->front().operation.id)));
  }
}

TEST_F(SerialQueueTest, FailureIsCountedHoweverLongItsPauseIs) {
  const Status no = fail(ErrorCode::internal, "no");
  for (const Millis pause :
       {Millis::max(), Millis(std::chrono::hours(24) * 365 * 1000), Millis(-1), Millis::min()}) {
    push("bad", "1");
    const HandleOptions options{.first_pause = pause, .longest_pause = pause};
    EXPECT_EQ(handle(queue(), no, {options, Millis(0)}), "failed") << pause.count();
    ASSERT_EQ(user_.exec("DELETE FROM leasehold_serial.operation"), "");
  }
}

TEST_F(SerialQueueTest, IdleTimeoutMayBeEndless) {
  push("a", "1");
  EXPECT_EQ(handle(queue(), {}, {{}, Millis::max()}), "a:1");
}

TEST_F(SerialQueueTest, WhatIsAnsweredIsCommittedDurably) {
  watch_commits("leasehold_serial.operation");
  const Status no = fail(ErrorCode::internal, "no");
  const SerialHandleOptions once{{.attempts = 1}, Millis(0)};
  push("a", "1");
  EXPECT_EQ(commits(), "on") << "pushed";
  EXPECT_EQ(handle(queue()), "a:1");
  EXPECT_EQ(commits(), "on") << "done";
  push("b", "2");
  EXPECT_EQ(handle(queue(), no, once), "set aside");
  EXPECT_EQ(commits(), "on") << "failed";
  const std::int64_t id = queue().set_aside().value().at(0).operation.id;
  ASSERT_TRUE(good(queue().retry(id)));
  EXPECT_EQ(commits(), "on") << "retried";
  EXPECT_EQ(handle(queue(), no, once), "set aside");
  ASSERT_TRUE(good(queue().skip(id)));
  EXPECT_EQ(commits(), "on") << "skipped";
  EXPECT_EQ(user_.ask("SHOW synchronous_commit"), "off") << "the session's own stays";
}

TEST_F(SerialQueueTest, PushedOperationSurvivesACrash) {
  ASSERT_EQ(user_.exec("SET synchronous_commit = off"), "");
  const auto id = queue().push("a", "1");
  ASSERT_TRUE(good(id));
  fence_server().kill();
  fence_server().start();
  const UserConnection after(url());
  EXPECT_EQ(handle(queue_of(after)), "a:1");
  EXPECT_GT(queue_of(after).push("a", "2").value(), *id) << "the id is an idempotency key";
}

TEST_F(SerialQueueTest, PushesSideBySideKeepTheOrderOfAnEntity) {
  const UserConnection first(url());
  const UserConnection second(url());
  ASSERT_EQ(first.exec("BEGIN"), "");
  ASSERT_TRUE(good(queue_of(first).push("a", "first")));
  auto later = std::async(std::launch::async,
                          [&] { return queue_of(second).push("a", "second").has_value(); });
  const auto second_waits = [&] {
    return user_.ask(
               "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
               " AND wait_event_type = 'Lock'") == "1";
  };
  while (!second_waits() &&
         later.wait_for(std::chrono::milliseconds(2)) != std::future_status::ready) {
  }
  EXPECT_EQ(handle(queue()), "nothing") << "the second must not be done before the first";
  ASSERT_EQ(first.exec("COMMIT"), "");
  EXPECT_TRUE(later.get());
  EXPECT_EQ(handle(queue()), "a:first");
  EXPECT_EQ(handle(queue()), "a:second");
}

TEST_F(SerialQueueTest, WrongInputIsRefused) {
  EXPECT_TRUE(bad(SerialQueue::open(user_.get(), ""), ErrorCode::invalid));
  EXPECT_TRUE(bad(queue().push("a\nb", "x"), ErrorCode::invalid));
  EXPECT_TRUE(bad(queue().push("a", std::string("x\0y", 3)), ErrorCode::invalid));
  EXPECT_TRUE(
      bad(queue().push("a", std::string(kMaxOperationPayload + 1, 'x')), ErrorCode::invalid));
  EXPECT_THAT(user_.exec("SELECT leasehold_serial.push('q', E'a\\nb', 'x')"), StartsWith("23514"));
  EXPECT_EQ(queue().waiting().value(), 0);
  ASSERT_EQ(user_.exec("BEGIN"), "");
  EXPECT_THAT(handle(queue()), HasSubstr("has a transaction open already"));
  ASSERT_EQ(user_.exec("ROLLBACK"), "");
}

TEST_F(SerialQueueTest, WorkThatEndsTheTransactionIsCountedAsFailed) {
  push("a", "1");
  for (const std::string end : {"ROLLBACK", "ROLLBACK; BEGIN", "COMMIT; BEGIN"}) {
    const auto handled = queue().handle_one([&](OpenTransaction& open, const Operation&) -> Status {
      PQclear(PQexec(open.handle(), end.c_str()));
      if (end == "ROLLBACK; BEGIN") return fail(ErrorCode::lost, "its own error");
      return {};
    });
    ASSERT_TRUE(good(handled));
    EXPECT_EQ(handled->what, Handled::What::failed) << end;
    EXPECT_EQ(PQtransactionStatus(user_.get()), PQTRANS_IDLE);
    EXPECT_EQ(handle(queue()), "nothing") << "it pauses";
    end_pauses();
  }
  EXPECT_EQ(user_.ask("SELECT attempts FROM leasehold_serial.operation"), "3");
  EXPECT_EQ(handle(queue()), "a:1");
}

TEST_F(SerialQueueTest, WorkThatLeavesAnswersUnreadIsCountedAsFailed) {
  push("a", "1");
  const auto send = [](PGconn* handle, bool in_pipeline, const char* sql) {
    if (!in_pipeline) return PQsendQuery(handle, sql);
    return PQenterPipelineMode(handle) &
           PQsendQueryParams(handle, sql, 0, nullptr, nullptr, nullptr, nullptr, 0);
  };
  int attempts = 0;
  const auto expect_failed = [&](const char* sql, bool in_pipeline, const Status& answer) {
    const auto handled = queue().handle_one([&](OpenTransaction& open, const Operation&) {
      EXPECT_EQ(send(open.handle(), in_pipeline, sql), 1);
      return answer;
    });
    ASSERT_TRUE(good(handled)) << sql;
    EXPECT_EQ(handled->what, Handled::What::failed) << sql;
    EXPECT_EQ(PQtransactionStatus(user_.get()), PQTRANS_IDLE);
    EXPECT_EQ(user_.ask("SELECT attempts FROM leasehold_serial.operation"),
              std::to_string(++attempts))
        << sql;
    end_pauses();
  };
  for (const bool in_pipeline : {false, true}) {
    expect_failed("COMMIT", in_pipeline, {});
    expect_failed("SELECT 1/0", in_pipeline, {});
    for (const char* sql : {"COMMIT", "INSERT INTO data VALUES('x')"}) {
      expect_failed(sql, in_pipeline, fail(ErrorCode::lost, "its own error"));
    }
  }
  expect_failed("INSERT INTO data VALUES('x')", /*in_pipeline=*/true, {});
  EXPECT_EQ(rows(), "0");
  EXPECT_EQ(handle(queue()), "a:1");
}

TEST_F(SerialQueueTest, SavepointsOfAFailedWorkKeepNothing) {
  push("a", "1");
  for (const bool fails : {true, false}) {
    const auto handled = queue().handle_one([&](OpenTransaction& open, const Operation&) -> Status {
      EXPECT_TRUE(good(insert_row(open)));
      EXPECT_EQ(user_.exec("SAVEPOINT leasehold_serial_work"), "");
      if (fails) return fail(ErrorCode::internal, "no");
      EXPECT_THAT(user_.exec("SELECT 1/0"), StartsWith("22012"));
      return {};
    });
    ASSERT_TRUE(good(handled));
    EXPECT_EQ(handled->what, Handled::What::failed);
    EXPECT_EQ(rows(), "0");
    end_pauses();
  }
}

// What loses the connection, before or after the work has asked something in vain.
TEST_F(SerialQueueTest, FailureWithoutAConnectionIsNotCountedAndNothingIsInDoubt) {
  push("a", "1");
  using Loss = std::function<void(PGconn*)>;
  const auto terminate = [&](PGconn* handle) {
    EXPECT_EQ(user_.ask("SELECT pg_terminate_backend(" + std::to_string(PQbackendPID(handle)) +
                        ", 30000)"),
              "t");
  };
  const auto copy = [](PGconn* handle) {
    EXPECT_EQ(PQenterPipelineMode(handle), 1);
    EXPECT_EQ(
        PQsendQueryParams(handle, "COPY data FROM STDIN", 0, nullptr, nullptr, nullptr, nullptr, 0),
        1);
  };
  const auto terminate_failed = [&](PGconn* handle) {
    EXPECT_THAT(exec_on(handle, "SELECT 1/0"), StartsWith("22012"));
    terminate(handle);
  };
  const auto terminate_and_ask = [&](PGconn* handle) {
    terminate(handle);
    EXPECT_NE(exec_on(handle, "SELECT 1"), "");
  };
  for (const Loss& lose :
       {Loss(terminate), Loss(copy), Loss(terminate_failed), Loss(terminate_and_ask)}) {
    for (const bool fails : {true, false}) {
      const UserConnection mine(url());
      const auto handled =
          queue_of(mine).handle_one([&](OpenTransaction& open, const Operation&) -> Status {
            EXPECT_TRUE(good(insert_row(open)));
            lose(open.handle());
            if (fails) return fail(ErrorCode::internal, "its own error");
            return {};
          });
      EXPECT_TRUE(bad(handled, ErrorCode::unavailable)) << "fails: " << fails;
      if (handled) continue;
      EXPECT_THAT(to_string(handled.error()), HasSubstr(fails ? "its own error" : ""));
      EXPECT_EQ(rows(), "0");
      EXPECT_EQ(user_.ask("SELECT attempts FROM leasehold_serial.operation"), "0");
    }
  }
  EXPECT_EQ(handle(queue()), "a:1");
}

TEST_F(SerialQueueTest, CountThatIsInDoubtDoesNotPutTheOperationInDoubt) {
  ASSERT_EQ(
      user_.exec("CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS"
                 " $$BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END$$;"
                 "CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON leasehold_serial.operation"
                 " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION die()"),
      "");
  push("a", "1");
  const UserConnection mine(url());
  const SerialQueue on_mine = queue_of(mine);
  EXPECT_THAT(handle(on_mine, fail(ErrorCode::internal, "its own error")),
              AllOf(StartsWith("unavailable: "), HasSubstr("its own error")));
  EXPECT_TRUE(bad(on_mine.push("a", "2"), ErrorCode::unavailable)) << "it was not even asked";
  EXPECT_EQ(handle(queue()), "a:1");
}

TEST_F(SerialQueueTest, SuccessThatCannotBeCommittedIsCountedAsFailed) {
  ASSERT_EQ(user_.exec("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
                       " $$BEGIN RAISE EXCEPTION 'not at this price'; END$$;"
                       "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON data"
                       " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()"),
            "");
  push("bad", "1");
  push("fine", "2");
  SerialHandleOptions options;
  options.attempts = 2;
  const auto insert = [](OpenTransaction& open, const Operation&) { return insert_row(open); };
  const auto first = queue().handle_one(insert, options);
  ASSERT_TRUE(good(first));
  EXPECT_EQ(first->what, Handled::What::failed);
  EXPECT_EQ(handle(queue()), "fine:2") << "the other pauses";
  EXPECT_EQ(handle(queue()), "nothing");
  end_pauses();
  const auto second = queue().handle_one(insert, options);
  ASSERT_TRUE(good(second));
  EXPECT_EQ(second->what, Handled::What::set_aside);
  EXPECT_THAT(queue().set_aside().value().at(0).last_error, HasSubstr("not at this price"));
  EXPECT_EQ(rows(), "0");
}

// Else another worker could take it before its pause is written.
TEST_F(SerialQueueTest, FailureIsCountedInTheTransactionThatHasTheOperation) {
  ASSERT_EQ(user_.exec("CREATE TABLE counted(xact text);"
                       "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS"
                       " $$BEGIN INSERT INTO counted VALUES (pg_current_xact_id()); RETURN NULL;"
                       " END$$;"
                       "CREATE TRIGGER note AFTER UPDATE OF attempts ON leasehold_serial.operation"
                       " FOR EACH ROW EXECUTE FUNCTION note()"),
            "");
  push("a", "1");
  push("b", "2");
  std::string xact;
  const auto fails = [&](OpenTransaction& open, const Operation& operation) -> Status {
    xact = user_.ask("SELECT pg_current_xact_id()");
    EXPECT_TRUE(good(insert_row(open)));
    if (operation.payload == "1") return fail(ErrorCode::internal, "no");
    EXPECT_THAT(user_.exec("SELECT 1/0"), StartsWith("22012"));
    return {};
  };
  for (const char* entity : {"a", "b"}) {
    const auto handled = queue().handle_one(fails);
    ASSERT_TRUE(good(handled));
    EXPECT_EQ(handled->what, Handled::What::failed);
    EXPECT_EQ(handled->operation->entity.str(), entity);
    EXPECT_EQ(user_.ask("SELECT string_agg(xact, ' ') FROM counted"), xact);
    ASSERT_EQ(user_.exec("TRUNCATE counted"), "");
  }
  EXPECT_EQ(rows(), "0");
}

TEST_F(SerialQueueTest, FrozenWorkerLosesItsEntity) {
  push("a", "1");
  const UserConnection frozen(url());
  const auto handled = queue_of(frozen).handle_one(
      [&](OpenTransaction&, const Operation&) {
        while (handle(queue()) != "a:1") std::this_thread::sleep_for(std::chrono::milliseconds(2));
        return Status();
      },
      SerialHandleOptions{{}, Millis(100)});
  EXPECT_FALSE(handled) << "the server ended its session";
  EXPECT_EQ(queue().waiting().value(), 0);
}

TEST_F(SerialQueueTest, WorkersKilledAtAnyPointDoEachOperationOnceAndOneAtATime) {
  constexpr int kKills = 25;
  const std::vector<std::string> entities = {"a", "b"};
  const TempFolder folder;

  std::vector<std::string> argv = {LEASEHOLD_SERIAL_WORKER, url(), "orders", folder.path()};
  argv.insert(argv.end(), entities.begin(), entities.end());
  CrashingWorkers workers(argv, 4);
  int operations = 0;
  for (int i = 0; i < kKills; ++i) {
    for (int three = 0; three < 3; ++three) {
      for (const std::string& entity : entities) push(entity, std::to_string(operations++));
    }
    ASSERT_TRUE(workers.kill_one()) << "after kill " << i;
  }
  while (queue().waiting().value() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));

  std::ostringstream overlap;
  overlap << std::ifstream(folder.file("overlap")).rdbuf();
  EXPECT_EQ(overlap.str(), "");
  EXPECT_EQ(user_.ask("SELECT count(*) FROM done"), std::to_string(operations));
  EXPECT_EQ(user_.ask("SELECT count(DISTINCT payload) FROM done"), std::to_string(operations));
  EXPECT_EQ(user_.ask("SELECT count(*) FROM done x JOIN done y ON x.entity = y.entity"
                      " WHERE x.id < y.id AND x.place > y.place"),
            "0")
      << "out of order";
}

}  // namespace
}  // namespace leasehold::postgres
