// Readers beside each other and beside writers, whatever the isolation level of either is.
#include "adapters/postgres/rig/pgbouncer.h"
#include "fence_database.h"

namespace leasehold::postgres {
namespace {

std::string enter_to_read(const std::string& token, const std::string& resource = "ledger") {
  return "SELECT leasehold_fence.enter_to_read('" + resource + "', " + token + ", '" +
         lineage_of().str() + "', '" + std::string(32, '1') + "')";
}

class ReadersTest : public FenceDatabase {
 protected:
  std::string reader() const {
    return user_.ask("SELECT read_token FROM leasehold_fence.marks() WHERE resource = 'ledger'");
  }
  static std::string rows_seen_by(OpenTransaction& open) {
    PGresult* result = PQexec(open.handle(), "SELECT count(*) FROM data");
    std::string count = PQgetvalue(result, 0, 0);
    PQclear(result);
    return count;
  }
  static Result<std::string> read(const UserConnection& user, const Token& token) {
    return fence_of(user).read(
        token, [](OpenTransaction& open) -> Result<std::string> { return rows_seen_by(open); });
  }
};

TEST_F(ReadersTest, WhoReadsCannotWrite) {
  ASSERT_TRUE(good(fence().transaction(token_of(33, '1'), insert_row)));
  for (const char* first : {"SELECT 1", "SAVEPOINT a", "SET TRANSACTION READ WRITE",
                            "SAVEPOINT a; SET LOCAL transaction_read_only = off", "RESET ALL"}) {
    EXPECT_TRUE(bad(fence().read(token_of(34, '2'),
                                 [&](OpenTransaction& open) -> Status {
                                   (void)exec_on(open.handle(), first);
                                   (void)insert_row(open);
                                   return {};
                                 }),
                    ErrorCode::invalid))
        << first;
    EXPECT_EQ(rows(), "1") << first;
  }
  EXPECT_TRUE(good(fence().transaction(token_of(34, '2'), insert_row))) << "afterwards it can";
}

TEST_F(ReadersTest, WhoReadsDoesNotOpenAGuardedTable) {
  ASSERT_TRUE(good(guard_table(user_.get(), "data", ledger())));
  ASSERT_EQ(user_.exec("BEGIN;" + enter_to_read("33")), "");
  EXPECT_THAT(user_.exec("INSERT INTO data VALUES('x')"), StartsWith("LH002"));
}

TEST_F(ReadersTest, TheMarkStaysRaisedWhenTheReaderDies) {
  const UserConnection other(url());
  const std::string pid = user_.ask("SELECT pg_backend_pid()");
  const auto answer = fence().read(token_of(35, '3'), [&](OpenTransaction&) -> Status {
    EXPECT_EQ(other.ask("SELECT pg_terminate_backend(" + pid + ", 30000)"), "t");
    return {};
  });
  EXPECT_FALSE(answer);
  EXPECT_TRUE(bad(fence_of(other).transaction(token_of(34, '2'), nothing), ErrorCode::fenced_out));
  fence_server().kill();
  fence_server().start();
  const UserConnection next(url());
  EXPECT_TRUE(bad(fence_of(next).transaction(token_of(34, '2'), nothing), ErrorCode::fenced_out));
  EXPECT_TRUE(good(fence_of(next).transaction(token_of(35, '3'), nothing)));
}

TEST_F(ReadersTest, TheMarkStaysRaisedWhenTheWorkFails) {
  EXPECT_TRUE(bad(fence().read(token_of(35, '3'),
                               [](OpenTransaction&) { return Status(fail(ErrorCode::lost, "")); }),
                  ErrorCode::lost));
  EXPECT_EQ(reader(), "35");
}

TEST_F(ReadersTest, TheMarkIsRaisedDurably) {
  watch_commits("leasehold_fence.mark");
  EXPECT_TRUE(good(read(user_, token_of(35, '3'))));
  EXPECT_EQ(commits(), "on");
  EXPECT_TRUE(good(read(user_, token_of(34, '2'))));
  EXPECT_EQ(commits(), "") << "nothing to write";
  ASSERT_EQ(user_.exec(enter_to_read("36")), "");
  EXPECT_EQ(commits(), "on");
}

TEST_F(ReadersTest, RefusalsAreCounted) {
  ASSERT_TRUE(good(fence().transaction(token_of(34, '2'), nothing)));
  EXPECT_TRUE(bad(read(user_, token_of(33, '1')), ErrorCode::fenced_out));
  EXPECT_EQ(refused(), "1");
  EXPECT_EQ(PQtransactionStatus(user_.get()), PQTRANS_IDLE);
}

TEST_F(ReadersTest, EnteringNeedsATransactionAndReadingNone) {
  EXPECT_TRUE(bad(fence().enter_to_read(token_of(33, '1')), ErrorCode::invalid));
  ASSERT_EQ(user_.exec("BEGIN"), "");
  EXPECT_TRUE(bad(read(user_, token_of(33, '1')), ErrorCode::invalid));
  EXPECT_TRUE(good(fence().enter_to_read(token_of(33, '1'))));
  EXPECT_TRUE(bad(fence().enter_to_read(token_of(33, '2')), ErrorCode::fenced_out));
}

TEST_F(ReadersTest, AResourceOfClaimsHasNoReaders) {
  ASSERT_EQ(user_.exec("SELECT leasehold_fence.claim('ledger', '" + std::string(32, '2') + "')"),
            "");
  EXPECT_TRUE(bad(read(user_, token_of(33, '1')), ErrorCode::invalid));
  EXPECT_THAT(user_.exec(enter_to_read("33")), StartsWith("LH003"));
}

TEST_F(ReadersTest, PlainSqlIsChecked) {
  EXPECT_THAT(user_.exec(enter_to_read("0")), StartsWith("LH003 leasehold: invalid: token must"));
  EXPECT_THAT(user_.exec(enter_to_read("NULL")), StartsWith("LH003 leasehold: invalid: token"));
  EXPECT_THAT(user_.exec(enter_to_read("1", "")), StartsWith("LH003 leasehold: invalid: resource"));
  EXPECT_THAT(user_.exec("SELECT leasehold_fence.enter_to_read('a', 1, 'b', 'c')"),
              StartsWith("LH003 leasehold: invalid: lineage"));
  EXPECT_EQ(user_.ask("SELECT count(*) FROM leasehold_fence.marks()"), "0");
}

// As docs/fence-postgres.md has it.
TEST_F(ReadersTest, PlainSqlReadsBesideOthers) {
  const UserConnection other(url());
  ASSERT_EQ(other.exec("SET lock_timeout = '10s'"), "");
  for (const UserConnection* reader : {&user_, &other}) {
    const std::string entering = enter_to_read(reader == &user_ ? "33" : "34");
    EXPECT_EQ(reader->exec(entering), "");
    EXPECT_EQ(reader->exec("BEGIN"), "");
    EXPECT_EQ(reader->exec(entering), "");
    EXPECT_EQ(reader->exec("SET TRANSACTION READ ONLY"), "");
    EXPECT_EQ(reader->ask("SELECT count(*) FROM data"), "0");
  }
  EXPECT_THAT(user_.exec("INSERT INTO data VALUES('x')"), StartsWith("25006"));
  EXPECT_EQ(other.exec("COMMIT"), "");
}

// Alone, without having raised the mark before: nobody who must raise it higher gets past.
TEST_F(ReadersTest, WhoRaisesTheMarkInItsOwnTransactionKeepsOthersWaiting) {
  const UserConnection other(url());
  ASSERT_EQ(user_.exec("BEGIN;" + enter_to_read("33")), "");
  auto waiting = std::async(std::launch::async, [&] { return other.exec(enter_to_read("34")); });
  await_waiter();
  ASSERT_EQ(user_.exec("ROLLBACK"), "");
  EXPECT_EQ(waiting.get(), "");
  EXPECT_EQ(reader(), "34");
}

TEST_F(ReadersTest, RollingBackToASavepointLetsWritersIn) {
  ASSERT_EQ(user_.exec(enter_to_read("33")), "");
  ASSERT_EQ(user_.exec("BEGIN; SAVEPOINT a;" + enter_to_read("33") + "; ROLLBACK TO a"), "");
  const UserConnection other(url());
  ASSERT_EQ(other.exec("SET lock_timeout = '10s'"), "");
  EXPECT_TRUE(good(fence_of(other).transaction(token_of(34, '2'), insert_row)));
}

TEST_F(ReadersTest, AnOperatorWaitsForThem) {
  ASSERT_EQ(user_.exec(enter_to_read("33")), "");
  const UserConnection other(url());
  ASSERT_EQ(other.exec("SET lock_timeout = '50ms'"), "");
  for (const std::string& change :
       {std::string("reset('ledger')"), "adopt('ledger', '" + lineage_of('b').str() + "', 7)"}) {
    ASSERT_EQ(user_.exec("BEGIN;" + enter_to_read("33")), "");
    EXPECT_THAT(other.exec("SELECT leasehold_fence." + change), StartsWith("55P03"));
    EXPECT_EQ(user_.exec("COMMIT"), "");
    EXPECT_EQ(other.exec("SELECT leasehold_fence." + change), "");
  }
  EXPECT_EQ(reader(), "") << "adopting has cleared it";
}

TEST_F(ReadersTest, MarksOfReadersDoNotGoDown) {
  ASSERT_EQ(user_.exec(enter("30") + ";" + enter_to_read("33")), "");
  for (const char* change : {"read_token = 32", "read_token = NULL", "token = 29",
                             "token = 32, read_token = NULL", "floor = 5, read_token = NULL"}) {
    EXPECT_THAT(user_.exec(std::string("UPDATE leasehold_fence.mark SET ") + change),
                StartsWith("LH003"))
        << change;
  }
  EXPECT_EQ(user_.exec("UPDATE leasehold_fence.mark SET token = 33, read_token = NULL"), "");
}

TEST_F(ReadersTest, WorkThroughAPoolerInTransactionMode) {
  const leasehold::rig::Pgbouncer pooler(fence_server());
  const UserConnection pooled(pooler.url(database_));
  EXPECT_TRUE(good(read(pooled, token_of(34, '2'))));
  EXPECT_TRUE(good(read(pooled, token_of(33, '1'))));
  EXPECT_TRUE(bad(fence_of(pooled).transaction(token_of(33, '1'), nothing), ErrorCode::fenced_out));
  EXPECT_TRUE(good(fence_of(pooled).transaction(token_of(35, '3'), insert_row)))
      << "the session can write again";
}

class ReadersIsolationTest : public ReadersTest, public ::testing::WithParamInterface<const char*> {
 protected:
  bool reads_committed() const { return std::string(GetParam()) == "read committed"; }
  // What a stale one gets whose transaction began before the mark rose.
  ErrorCode too_late() const {
    return reads_committed() ? ErrorCode::fenced_out : ErrorCode::unavailable;
  }
  std::unique_ptr<UserConnection> connect() const {
    auto user = std::make_unique<UserConnection>(url());
    EXPECT_EQ(user->exec(std::string("SET lock_timeout = '20s';"
                                     "SET default_transaction_isolation = '") +
                         GetParam() + "'"),
              "");
    return user;
  }
  // Has read, so that it has a snapshot.
  std::unique_ptr<UserConnection> begun() const {
    auto user = connect();
    EXPECT_EQ(user->exec("BEGIN; SELECT count(*) FROM data"), "");
    return user;
  }
};

TEST_P(ReadersIsolationTest, AreInsideSideBySide) {
  ASSERT_TRUE(good(fence().transaction(token_of(33, '1'), insert_row)));
  const auto one = connect();
  const auto two = connect();
  const auto three = connect();
  const auto four = connect();
  int inside = 0;
  const auto answer = fence_of(*one).read(token_of(35, '3'), [&](OpenTransaction&) {
    return fence_of(*two).read(token_of(34, '2'), [&](OpenTransaction&) {
      return fence_of(*three).read(token_of(35, '3'), [&](OpenTransaction&) {
        return fence_of(*four).read(token_of(36, '4'), [&](OpenTransaction&) -> Status {
          for (const auto* reader : {&one, &two, &three, &four}) {
            inside += (*reader)->ask("SELECT count(*) FROM data") == "1";
          }
          return {};
        });
      });
    });
  });
  EXPECT_TRUE(good(answer));
  EXPECT_EQ(inside, 4);
  EXPECT_EQ(reader(), "36");
  EXPECT_EQ(mark(), "33");
}

TEST_P(ReadersIsolationTest, TheWriterReadsAndWritesBesideItself) {
  ASSERT_TRUE(good(fence().transaction(token_of(33, '1'), insert_row)));
  const auto mine = connect();
  EXPECT_TRUE(good(fence_of(*mine).read(token_of(33, '1'), [&](OpenTransaction&) {
    return fence().transaction(token_of(33, '1'), insert_row);
  })));
  EXPECT_EQ(rows(), "2");
}

TEST_P(ReadersIsolationTest, AWriterAboveComesInWhenTheyHaveEnded) {
  ASSERT_TRUE(good(fence().transaction(token_of(33, '1'), insert_row)));
  const auto one = connect();
  const auto two = connect();
  const auto writer = connect();
  std::future<Status> writing;
  std::string seen;
  const auto answer = fence_of(*one).read(token_of(35, '3'), [&](OpenTransaction&) {
    return fence_of(*two).read(token_of(34, '2'), [&](OpenTransaction& open) -> Status {
      EXPECT_EQ(writer->exec("SET lock_timeout = '50ms'"), "");
      EXPECT_TRUE(bad(fence_of(*writer).transaction(token_of(36, '4'), insert_row),
                      ErrorCode::unavailable));
      EXPECT_EQ(writer->exec("SET lock_timeout = '20s'"), "");
      if (::testing::Test::HasFailure()) return {};
      writing = std::async(std::launch::async, [&] {
        return fence_of(*writer).transaction(token_of(36, '4'), insert_row);
      });
      await_waiter();
      seen = rows_seen_by(open);
      return {};
    });
  });
  EXPECT_TRUE(good(answer));
  ASSERT_EQ(seen, "1");
  EXPECT_TRUE(good(writing.get()));
  EXPECT_EQ(mark(), "36");
  EXPECT_EQ(reader(), "");
  EXPECT_TRUE(bad(read(*one, token_of(35, '3')), ErrorCode::fenced_out));
  EXPECT_EQ(read(*one, token_of(36, '4')).value_or("refused"), "2");
}

TEST_P(ReadersIsolationTest, AWriterBelowIsRefused) {
  const auto writer = connect();
  const auto stranger = connect();
  const auto mine = connect();
  ASSERT_TRUE(good(fence_of(*writer).transaction(token_of(33, '1'), insert_row)));
  std::future<Status> late;
  EXPECT_TRUE(good(fence_of(*mine).read(token_of(35, '3'), [&](OpenTransaction&) -> Status {
    late = std::async(std::launch::async,
                      [&] { return fence_of(*writer).transaction(token_of(33, '1'), insert_row); });
    await_waiter();
    return {};
  })));
  EXPECT_TRUE(bad(late.get(), ErrorCode::fenced_out)) << "which was inside before";
  EXPECT_TRUE(
      bad(fence_of(*stranger).transaction(token_of(34, '2'), insert_row), ErrorCode::fenced_out));
  EXPECT_TRUE(
      bad(fence_of(*stranger).transaction(token_of(35, '2'), insert_row), ErrorCode::fenced_out));
  EXPECT_EQ(rows(), "1");
  EXPECT_EQ(refused(), "3");
}

// Its snapshot is older than the reader's mark: with the mark of the snapshot it would get in.
TEST_P(ReadersIsolationTest, AWriterThatBeganBeforeTheReaderNeverGetsIn) {
  ASSERT_TRUE(good(fence().transaction(token_of(33, '1'), insert_row)));
  for (const Token& token : {token_of(33, '1'), token_of(34, '2')}) {
    const auto writer = begun();
    ASSERT_TRUE(good(read(user_, token_of(35, '3'))));
    EXPECT_TRUE(bad(fence_of(*writer).enter(token), too_late()));
    ASSERT_EQ(writer->exec("ROLLBACK"), "");
    ASSERT_EQ(user_.exec("SELECT leasehold_fence.reset('ledger');" + enter("33")), "");
  }
}

TEST_P(ReadersIsolationTest, AReaderThatBeganBeforeTheWriterNeverReadsWhatWasBefore) {
  ASSERT_TRUE(good(fence().transaction(token_of(33, '1'), insert_row)));
  const auto stale = begun();
  const auto late = begun();
  ASSERT_TRUE(good(fence().transaction(token_of(34, '2'), insert_row)));
  EXPECT_TRUE(bad(fence_of(*stale).enter_to_read(token_of(33, '1')), too_late()));
  const auto above = fence_of(*late).enter_to_read(token_of(35, '3'));
  if (reads_committed()) {
    EXPECT_TRUE(good(above));
    EXPECT_EQ(late->ask("SELECT count(*) FROM data"), "2");
  } else {
    EXPECT_TRUE(bad(above, ErrorCode::unavailable));
  }
}

// Sharing a row overlooks that its reader's mark has changed, but not what comes after that.
TEST_P(ReadersIsolationTest, AReaderNoticesAWriterBehindAnotherReader) {
  ASSERT_TRUE(good(fence().transaction(token_of(33, '1'), insert_row)));
  const auto stale = begun();
  const auto known = begun();
  ASSERT_TRUE(good(read(user_, token_of(40, '4'))));
  ASSERT_TRUE(good(fence().transaction(token_of(41, '5'), insert_row)));
  EXPECT_TRUE(bad(fence_of(*stale).enter_to_read(token_of(35, '3')), too_late()));
  EXPECT_TRUE(bad(fence_of(*known).enter_to_read(token_of(33, '1')), too_late()));
}

TEST_P(ReadersIsolationTest, AReaderNoticesASweepBehindAnotherReader) {
  ASSERT_TRUE(good(fence().transaction(token_of(33, '1'), insert_row)));
  const auto stale = begun();
  const auto known = begun();
  ASSERT_TRUE(good(read(user_, token_of(40, '4'))));
  ASSERT_EQ(user_.exec("SELECT leasehold_fence.raise_floors(ARRAY[repeat('a', 32)], ARRAY[40]);"
                       "DELETE FROM leasehold_fence.mark"),
            "");
  EXPECT_TRUE(bad(fence_of(*stale).enter_to_read(token_of(35, '3')), too_late()));
  EXPECT_TRUE(bad(fence_of(*known).enter_to_read(token_of(33, '1')), too_late()));
}

TEST_P(ReadersIsolationTest, AReaderBehindAWriterIsJudgedByWhatThatLeaves) {
  for (const char* end : {"ROLLBACK", "COMMIT"}) {
    const UserConnection writer(url());
    ASSERT_EQ(writer.exec("BEGIN"), "");
    ASSERT_TRUE(good(fence_of(writer).enter(token_of(34, '2'))));
    ASSERT_EQ(writer.exec("INSERT INTO data VALUES('first')"), "");
    const auto mine = connect();
    auto reading = std::async(std::launch::async, [&] { return read(*mine, token_of(33, '1')); });
    await_waiter();
    ASSERT_EQ(writer.exec(end), "");
    const auto seen = reading.get();
    if (std::string(end) == "COMMIT") {
      EXPECT_TRUE(bad(seen, ErrorCode::fenced_out));
    } else {
      EXPECT_EQ(seen.value_or("refused"), "0");
      ASSERT_EQ(user_.exec("SELECT leasehold_fence.reset('ledger')"), "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Postgres, ReadersIsolationTest,
                         ::testing::Values("read committed", "repeatable read", "serializable"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::erase(name, ' ');
                           return name;
                         });

}  // namespace
}  // namespace leasehold::postgres
