#include "turnstile.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace leasehold::sqlite {
namespace {

using namespace std::chrono_literals;

CallContext within(Millis span) {
  return {BootClock::now() + span, {}};
}

TEST(TurnstileTest, OneAtATime) {
  Turnstile turnstile;
  int inside = 0;  // guarded by the turnstile alone
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 500; ++turn) {
        const auto pass = turnstile.enter(within(60s));
        ASSERT_TRUE(pass);
        ASSERT_EQ(++inside, 1);
        --inside;
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(TurnstileTest, UrgentOnesGoBeforeAllOthersInLine) {
  Turnstile turnstile;
  std::vector<int> order;  // guarded by the turnstile alone
  std::vector<std::thread> threads;
  const auto stand_in_line = [&](int who, bool urgent) {
    threads.emplace_back([&order, &turnstile, who, urgent] {
      const auto pass = turnstile.enter({BootClock::now() + 60s, {}, urgent});
      order.push_back(who);
    });
    while (turnstile.in_line() < threads.size()) std::this_thread::yield();
  };
  {
    const auto pass = turnstile.enter(within(60s));
    for (int who = 0; who < 3; ++who) stand_in_line(who, false);
    for (int who = 3; who < 5; ++who) stand_in_line(who, true);
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector{3, 4, 0, 1, 2}));
}

TEST(TurnstileTest, WhoStepsAsideLetsTheNextThroughAndComesBack) {
  Turnstile turnstile;
  auto pass = turnstile.enter(within(60s));
  ASSERT_TRUE(pass);
  bool was_inside = false;  // guarded by the turnstile alone
  std::thread next([&] {
    const auto other = turnstile.enter(within(60s));
    was_inside = true;
  });
  while (turnstile.in_line() == 0) std::this_thread::yield();
  ASSERT_TRUE(pass->step_aside(within(60s)));
  EXPECT_TRUE(was_inside);
  next.join();
  EXPECT_FALSE(turnstile.enter(within(1ms))) << "this one is inside again";
}

TEST(TurnstileTest, StopDeadlineAndCloseEndThePauseOfWhoStepsAside) {
  Turnstile turnstile;
  auto pass = turnstile.enter(within(1s)).value();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(pass.step_aside({BootClock::now() + 1h, stop.get_token()}, 1h));
  EXPECT_TRUE(pass.step_aside(within(1ms), 1h));
  std::thread pausing([&] { EXPECT_FALSE(pass.step_aside(within(1h), 1h)); });
  while (turnstile.in_line() == 0) std::this_thread::yield();
  EXPECT_TRUE(turnstile.enter(within(1ms))) << "nobody is inside during a pause";
  turnstile.close();
  pausing.join();
}

TEST(TurnstileTest, GivesUpAtTheDeadlineAndAtTheStop) {
  Turnstile turnstile;
  const auto pass = turnstile.enter(within(1s));
  ASSERT_TRUE(pass);
  EXPECT_EQ(turnstile.enter(within(1ms)).error().code, ErrorCode::unavailable);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(turnstile.enter({BootClock::now() + 1h, stop.get_token()}).error().code,
            ErrorCode::cancelled);
}

TEST(TurnstileTest, CloseWaitsForTheOneInsideAndTurnsTheOthersAway) {
  Turnstile turnstile;
  auto pass = std::make_unique<Turnstile::Pass>(turnstile.enter(within(1s)).value());
  std::thread waiting(
      [&] { EXPECT_EQ(turnstile.enter(within(1h)).error().code, ErrorCode::unavailable); });
  std::atomic<bool> left = false;
  std::thread closing([&] {
    turnstile.close();
    EXPECT_TRUE(left);
  });
  waiting.join();
  left = true;
  pass.reset();
  closing.join();
  EXPECT_FALSE(turnstile.enter(within(1s)));
}

}  // namespace
}  // namespace leasehold::sqlite
