#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "kit/threads/doorbell.h"
#include "waiting/call_wait.h"
#include "waiting/connection_pool.h"

namespace leasehold::waiting {
namespace {

using namespace std::chrono_literals;

CallContext within(Millis span, std::stop_token stop = {}) {
  return {BootClock::now() + span, std::move(stop)};
}

TEST(DoorbellTest, WakesItsSleeperOrIsHeardLater) {
  for (int i = 0; i < 200; ++i) {
    auto bell = std::make_unique<kit::Doorbell>();
    int written = 0;
    std::thread ringing([&written, it = bell.get()] {
      written = 1;
      it->ring();
    });
    bell->wait();
    bell.reset();
    EXPECT_EQ(written, 1);
    ringing.join();
  }
}

TEST(DoorbellTest, IsNotWaitedForLongerThanTold) {
  kit::Doorbell bell;
  EXPECT_FALSE(bell.wait_until(BootClock::now() - 1s));
  EXPECT_FALSE(bell.wait_until(BootClock::now() + 1ms));
  bell.ring();
  EXPECT_TRUE(bell.wait_until(BootClock::now() - 1s));
}

TEST(GongTest, WakesAllWhoSleepAndIsHeardByWhoComesLate) {
  kit::Gong gong;
  std::atomic<bool> written = false;
  std::vector<std::thread> sleepers;
  for (int i = 0; i < 5; ++i) {
    sleepers.emplace_back([&] {
      for (auto seen = gong.strokes(); !written; seen = gong.strokes()) {
        gong.await_stroke_after(seen, BootTime::max());
      }
    });
  }
  written = true;
  gong.strike();
  for (auto& sleeper : sleepers) sleeper.join();
  gong.await_stroke_after(gong.strokes() - 1, BootTime::max());
  gong.await_stroke_after(gong.strokes(), BootClock::now() - 1s);
}

class PoolTest : public ::testing::Test {
 protected:
  using Pool = ConnectionPool<int>;
  int made = 0;
  Pool pool{2, [this](const CallContext&) { return std::make_unique<int>(++made); }};
};

TEST_F(PoolTest, ReusesWhatWasGivenBackAndReplacesWhatWasDiscarded) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(**pool.take(within(1s)), 1);
  pool.take(within(1s))->discard();
  EXPECT_EQ(**pool.take(within(1s)), 2);
  pool.drop_idle();
  EXPECT_EQ(**pool.take(within(1s)), 3);
}

TEST_F(PoolTest, UrgentCallsGetAConnectionBeforeAllOthers) {
  std::vector<std::string> order;
  std::mutex mutex;
  std::vector<std::thread> waiting;
  const auto wait_for_one = [&](const std::string& who, bool urgent) {
    waiting.emplace_back([&, who, urgent] {
      const auto loan = pool.take({BootClock::now() + 20s, {}, urgent});
      EXPECT_TRUE(loan);
      const std::lock_guard lock(mutex);
      order.push_back(who);
    });
    while (pool.waiting() < waiting.size()) std::this_thread::yield();
  };
  auto kept = std::make_optional(pool.take(within(1s)).value());
  {
    const auto given_back = pool.take(within(1s));
    for (int i = 0; i < 8; ++i) wait_for_one("ordinary", false);
    wait_for_one("urgent", true);
  }
  for (auto& thread : waiting) thread.join();
  EXPECT_EQ(order.front(), "urgent");
  EXPECT_EQ(order.size(), 9u);
}

TEST_F(PoolTest, AskedForALookOnlyAtWhatNobodyUsedForAWhile) {
  const auto needs_look = [&] { return pool.take(within(1s))->needs(Look::if_rested); };
  EXPECT_FALSE(needs_look()) << "it is new";
  const BootTime used = BootClock::now();
  EXPECT_TRUE(pool.take(within(1s))->needs(Look::always));
  const bool at_once = needs_look();
  EXPECT_TRUE(!at_once || BootClock::now() - used > 10ms);
  // Time itself is the event.
  std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(needs_look());
  pool.drop_idle();
  EXPECT_FALSE(needs_look());
}

TEST_F(PoolTest, WaitsForAConnectionButNotForEver) {
  auto one = pool.take(within(1s));
  auto two = std::make_unique<Pool::Loan>(std::move(*pool.take(within(1s))));
  EXPECT_EQ(pool.take(within(1ms)).error().code, ErrorCode::unavailable);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(pool.take(within(1h, stop.get_token())).error().code, ErrorCode::cancelled);
  auto third = std::async(std::launch::async, [&] { return **pool.take(within(1h)); });
  two.reset();
  EXPECT_EQ(third.get(), 2);
}

// It may owe an answer to a call that has gone.
TEST_F(PoolTest, ExceptionUnderALoanDiscardsIt) {
  EXPECT_THROW(
      {
        const auto loan = pool.take(within(1s));
        throw std::bad_alloc();
      },
      std::bad_alloc);
  EXPECT_EQ(**pool.take(within(1s)), 2);
}

TEST_F(PoolTest, FailedMakerTakesNoPlace) {
  Pool failing(1, [](const CallContext&) -> Result<std::unique_ptr<int>> {
    return fail(ErrorCode::unavailable, "no server");
  });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(failing.take(within(1h)).error().message, "no server");
}

TEST_F(PoolTest, CloseWaitsForLoansAndRefusesAfterwards) {
  auto loan = std::make_unique<Pool::Loan>(std::move(*pool.take(within(1s))));
  auto closing = std::async(std::launch::async, [&] { pool.close(); });
  while (pool.take(within(0ms))) {
  }
  EXPECT_EQ(closing.wait_for(20ms), std::future_status::timeout) << "one is still on loan";
  loan.reset();
  closing.get();
  EXPECT_EQ(pool.take(within(1h)).error().code, ErrorCode::unavailable);
}

// Every new one fails.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none = before_;
    none.rlim_cur = 3;  // which are open; poll() takes so many
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;

 private:
  rlimit before_{};
};

class CallWaitTest : public ::testing::Test {
 protected:
  CallWaitTest() {
    int raw[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, raw) != 0) throw std::bad_alloc();
    here = kit::Fd(raw[0]);
    there = kit::Fd(raw[1]);
  }
  kit::Fd here;
  kit::Fd there;
  Alarm closing;
};

TEST_F(CallWaitTest, HearsTheStopTokenWithoutADescriptorForIt) {
  std::stop_source stop;
  const CallContext context = within(1h, stop.get_token());
  const NoMoreDescriptors none;
  CallWait wait(context, closing);
  std::thread stopping([&] { stop.request_stop(); });
  EXPECT_FALSE(wait.until_readable(here.get()));
  stopping.join();
  EXPECT_TRUE(wait.stopped());
}

TEST_F(CallWaitTest, EndsByBytesDeadlineStopOrClose) {
  const CallContext brief = within(5ms);
  CallWait late(brief, closing);
  EXPECT_FALSE(late.until_readable(here.get()));
  EXPECT_EQ(late.ended("asking", false).code, ErrorCode::unavailable);
  EXPECT_EQ(late.ended("asking", true).code, ErrorCode::outcome_unknown);

  std::stop_source stop;
  const CallContext stoppable = within(1h, stop.get_token());
  CallWait wait(stoppable, closing);
  EXPECT_TRUE(wait.until_writable(here.get()));
  ASSERT_EQ(send(there.get(), "x", 1, 0), 1);
  EXPECT_TRUE(wait.until_readable(here.get()));
  char byte = 0;
  ASSERT_EQ(recv(here.get(), &byte, 1, 0), 1);
  auto waiting = std::async(std::launch::async, [&] { return wait.until_readable(here.get()); });
  stop.request_stop();
  EXPECT_FALSE(waiting.get());
  EXPECT_EQ(wait.ended("asking", false).code, ErrorCode::cancelled);

  const CallContext endless = within(1h);
  CallWait third(endless, closing);
  auto also = std::async(std::launch::async, [&] { return third.until_readable(here.get()); });
  closing.raise();
  EXPECT_FALSE(also.get());
  EXPECT_EQ(third.ended("asking", false).code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace leasehold::waiting
