#include "leasehold/sqlite/once.h"

#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <latch>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "leasehold/sqlite/fence.h"
#include "user_database.h"

namespace leasehold::sqlite {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class OnceTest : public ::testing::Test {
 protected:
  OnceTest() {
    EXPECT_EQ(user_.exec("PRAGMA journal_mode = wal; CREATE TABLE data(value)"), "");
    EXPECT_TRUE(good(install_once(user_.get())));
  }

  Once once() const { return Once::open(user_.get()).value(); }
  std::string rows() const { return user_.ask("SELECT count(*) FROM data"); }
  std::string keys() const { return user_.ask("SELECT count(*) FROM leasehold_once"); }

  TempFolder folder_;
  std::string path_ = folder_.file("data.db");
  UserConnection user_{path_};
};

auto add_row(std::string result) {
  return [result](OpenTransaction& open) -> Result<std::string> {
    sqlite3_exec(open.handle(), "INSERT INTO data VALUES(1)", nullptr, nullptr, nullptr);
    return result;
  };
}

TEST_F(OnceTest, RepeatReturnsTheStoredResultWithoutWorking) {
  const auto first = once().run("order-7", "amount=3", add_row("receipt"));
  ASSERT_TRUE(good(first));
  EXPECT_EQ(first->result, "receipt");
  EXPECT_FALSE(first->replayed);
  const auto second = once().run("order-7", "amount=3", add_row("another"));
  ASSERT_TRUE(good(second));
  EXPECT_EQ(second->result, "receipt");
  EXPECT_TRUE(second->replayed);
  EXPECT_EQ(rows(), "1");
}

TEST_F(OnceTest, KeyWithOtherParametersIsInvalidAndNothingRuns) {
  ASSERT_TRUE(good(once().run("k", "amount=3", add_row(""))));
  for (const std::string parameters : {"amount=4", "", "amount=3 ", "AMOUNT=3"}) {
    const auto other = once().run("k", parameters, add_row(""));
    ASSERT_TRUE(bad(other, ErrorCode::invalid)) << parameters;
    EXPECT_THAT(other.error().message, HasSubstr("other parameters"));
  }
  EXPECT_EQ(rows(), "1");
}

TEST_F(OnceTest, AnyBytesAreExact) {
  const std::string odd("a\0b\xff", 4);
  ASSERT_TRUE(good(once().run("k", odd, add_row(odd))));
  EXPECT_EQ(once().run("k", odd, add_row("")).value().result, odd);
  EXPECT_TRUE(bad(once().run("k", "a", add_row("")), ErrorCode::invalid));
  ASSERT_TRUE(good(once().run("empty", std::string_view(), add_row(""))));
  EXPECT_TRUE(once().run("empty", "", add_row("")).value().replayed);
}

TEST_F(OnceTest, FailedWorkStoresNothingAndRunsAgain) {
  const auto failed = once().run("k", "", [](OpenTransaction& open) -> Result<std::string> {
    (void)add_row("")(open);
    return fail(ErrorCode::lost, "no time");
  });
  EXPECT_TRUE(bad(failed, ErrorCode::lost));
  EXPECT_EQ(rows(), "0");
  EXPECT_EQ(keys(), "0");
  EXPECT_FALSE(once().run("k", "", add_row("")).value().replayed);
}

TEST_F(OnceTest, ExceptionStoresNothing) {
  const auto run = [&] {
    (void)once().run("k", "", [](OpenTransaction& open) -> Result<std::string> {
      (void)add_row("")(open);
      throw std::runtime_error("work");
    });
  };
  EXPECT_THROW(run(), std::runtime_error);
  EXPECT_EQ(rows(), "0");
  EXPECT_EQ(keys(), "0");
}

TEST_F(OnceTest, WorkThatEndsTheTransactionStoresNothing) {
  const auto ended = once().run("k", "", [](OpenTransaction& open) -> Result<std::string> {
    sqlite3_exec(open.handle(), "COMMIT", nullptr, nullptr, nullptr);
    return "x";
  });
  EXPECT_TRUE(bad(ended, ErrorCode::invalid));
  EXPECT_EQ(keys(), "0");
}

TEST_F(OnceTest, LimitsAreTold) {
  EXPECT_TRUE(bad(once().run("", "", add_row("")), ErrorCode::invalid));
  EXPECT_TRUE(bad(once().run(std::string(513, 'k'), "", add_row("")), ErrorCode::invalid));
  EXPECT_TRUE(bad(once().run("a\nb", "", add_row("")), ErrorCode::invalid));
  EXPECT_TRUE(bad(once().run("k", std::string(kMaxOnceParameters + 1, 'p'), add_row("")),
                  ErrorCode::invalid));
  EXPECT_TRUE(
      bad(once().run("k", "", add_row(std::string(kMaxOnceResult + 1, 'r'))), ErrorCode::invalid));
  EXPECT_EQ(rows(), "0");
  EXPECT_TRUE(good(once().run(std::string(512, 'k'), std::string(kMaxOnceParameters, 'p'),
                              add_row(std::string(kMaxOnceResult, 'r')))));
}

TEST_F(OnceTest, InsideATransactionIsInvalid) {
  ASSERT_EQ(user_.exec("BEGIN"), "");
  EXPECT_TRUE(bad(once().run("k", "", add_row("")), ErrorCode::invalid));
  EXPECT_TRUE(bad(once().forget_older_than(0s), ErrorCode::invalid));
  ASSERT_EQ(user_.exec("ROLLBACK"), "");
}

TEST_F(OnceTest, WithoutWaitingAWriterIsBusy) {
  const UserConnection other(path_);
  ASSERT_EQ(other.exec("BEGIN IMMEDIATE"), "");
  const auto busy = once().run("k", "", add_row(""), {.wait = 0ms});
  EXPECT_TRUE(bad(busy, ErrorCode::busy));
  const auto late = once().run("k", "", add_row(""), {.wait = 20ms});
  EXPECT_TRUE(bad(late, ErrorCode::timeout));
  ASSERT_EQ(other.exec("ROLLBACK"), "");
  EXPECT_EQ(user_.ask("PRAGMA busy_timeout"), "30000");
}

TEST_F(OnceTest, RepeatDuringTheWorkIsBusyAndDoesNotRun) {
  const UserConnection other(path_);
  const auto first = once().run("k", "", [&](OpenTransaction& open) -> Result<std::string> {
    const auto repeat = Once::open(other.get())->run("k", "", add_row("second"), {.wait = 0ms});
    EXPECT_TRUE(bad(repeat, ErrorCode::busy));
    return add_row("first")(open);
  });
  ASSERT_TRUE(good(first));
  EXPECT_EQ(rows(), "1");
}

// Runs `then` on another connection just before this one asks for the write lock.
struct BeforeTheLock {
  std::function<void()> then;

  static int trace(unsigned, void* self, void*, void* sql) {
    auto& then = static_cast<BeforeTheLock*>(self)->then;
    const bool begins = std::string_view(static_cast<const char*>(sql)).starts_with("BEGIN");
    if (begins && then) std::exchange(then, nullptr)();
    return 0;
  }
};

TEST_F(OnceTest, ResultStoredBetweenTheLookAndTheLockIsReplayed) {
  const UserConnection other(path_);
  BeforeTheLock before{[&] {
    EXPECT_FALSE(Once::open(other.get())->run("k", "", add_row("first")).value().replayed);
  }};
  sqlite3_trace_v2(user_.get(), SQLITE_TRACE_STMT, BeforeTheLock::trace, &before);
  const auto answer = once().run("k", "", add_row("second"));
  ASSERT_TRUE(good(answer));
  EXPECT_TRUE(answer->replayed);
  EXPECT_EQ(answer->result, "first");
  EXPECT_EQ(rows(), "1");
}

TEST_F(OnceTest, StoredResultIsAnsweredWhileAnotherWrites) {
  ASSERT_TRUE(good(once().run("k", "", add_row("r"))));
  const UserConnection other(path_);
  ASSERT_EQ(other.exec("BEGIN IMMEDIATE"), "");
  EXPECT_TRUE(once().run("k", "", add_row(""), {.wait = 0ms}).value().replayed);
  ASSERT_EQ(other.exec("ROLLBACK"), "");
}

TEST_F(OnceTest, StopEndsTheWait) {
  const UserConnection other(path_);
  ASSERT_EQ(other.exec("BEGIN IMMEDIATE"), "");
  std::stop_source source;
  const std::jthread stopper([&] { source.request_stop(); });
  const auto stopped = once().run("k", "", add_row(""), {.wait = 1h, .stop = source.get_token()});
  EXPECT_TRUE(bad(stopped, ErrorCode::cancelled));
  ASSERT_EQ(other.exec("ROLLBACK"), "");
}

TEST_F(OnceTest, ConcurrentRepeatWaitsAndGetsTheResult) {
  std::latch working(1);
  std::atomic<bool> replayed = false;
  std::string result;
  std::jthread repeat([&] {
    const UserConnection other(path_);
    working.wait();
    const auto answer = Once::open(other.get())->run("k", "p", add_row("second"), {.wait = 60s});
    if (!answer) return;
    replayed = answer->replayed;
    result = answer->result;
  });
  const auto first = once().run("k", "p", [&](OpenTransaction& open) -> Result<std::string> {
    working.count_down();
    return add_row("first")(open);
  });
  ASSERT_TRUE(good(first));
  repeat.join();
  EXPECT_TRUE(replayed);
  EXPECT_EQ(result, "first");
  EXPECT_EQ(rows(), "1");
}

TEST_F(OnceTest, ManyThreadsRunEachKeyOnce) {
  constexpr int threads = 4;
  constexpr int keys_each = 25;
  std::latch start(threads);
  std::atomic<int> ran = 0;
  std::atomic<int> errors = 0;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) {
      workers.emplace_back([&] {
        const UserConnection mine(path_);
        start.arrive_and_wait();
        for (int key = 0; key < keys_each; ++key) {
          const auto answer =
              Once::open(mine.get())
                  ->run("key-" + std::to_string(key), "", add_row("r"), {.wait = 60s});
          if (!answer) ++errors;
          if (answer && !answer->replayed) ++ran;
        }
      });
    }
  }
  EXPECT_EQ(errors, 0);
  EXPECT_EQ(ran, keys_each);
  EXPECT_EQ(rows(), std::to_string(keys_each));
}

TEST_F(OnceTest, FenceMayBeEnteredInTheWork) {
  ASSERT_TRUE(good(install_fence(user_.get())));
  const Fence fence = Fence::open(user_.get(), "ledger").value();
  const auto pay = [&](const Token& token) {
    return once().run("k" + std::to_string(token.number.value()), "",
                      [&](OpenTransaction& open) -> Result<std::string> {
                        if (auto ok = fence.enter(token); !ok) return fail(ok.error());
                        return add_row("r")(open);
                      });
  };
  EXPECT_TRUE(good(pay(token_of(34, '2'))));
  EXPECT_TRUE(bad(pay(token_of(33, '1')), ErrorCode::fenced_out));
  EXPECT_EQ(rows(), "1");
  EXPECT_EQ(keys(), "1");
}

TEST_F(OnceTest, ForgetsOldResultsOnly) {
  ASSERT_TRUE(good(once().run("old", "", add_row(""))));
  ASSERT_TRUE(good(once().run("new", "", add_row(""))));
  ASSERT_EQ(user_.exec("UPDATE leasehold_once SET stored_at = stored_at - 7200 WHERE key = 'old'"),
            "");
  EXPECT_EQ(once().forget_older_than(3600s).value(), 1);
  EXPECT_TRUE(once().run("new", "", add_row("")).value().replayed);
  EXPECT_FALSE(once().run("old", "", add_row("")).value().replayed);
}

TEST_F(OnceTest, MissingOrOtherVersionIsUnavailable) {
  const UserConnection bare(folder_.file("bare.db"));
  EXPECT_TRUE(bad(Once::open(bare.get()), ErrorCode::unavailable));
  EXPECT_TRUE(good(install_once(user_.get())));
  ASSERT_EQ(user_.exec("UPDATE leasehold_version SET version = 9 WHERE part = 'once'"), "");
  EXPECT_TRUE(bad(Once::open(user_.get()), ErrorCode::unavailable));
}

}  // namespace
}  // namespace leasehold::sqlite
