// asio's completion tokens: which executor, what stops it, and what becomes of what nobody takes.
#include "leasehold/asio.h"

#include <gtest/gtest.h>

#include <asio/awaitable.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/bind_executor.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>
#include <optional>

#include "testing/faulty_store.h"
#include "testing/memory_store.h"
#include "testing/results.h"

namespace leasehold {
namespace {

using namespace std::chrono_literals;
using namespace leasehold::testing;
using asio::use_awaitable;

class AsioTest : public ::testing::Test {
 protected:
  // Runs it to its end, on this thread alone.
  void run(asio::awaitable<void> work) {
    bool done = false;
    asio::co_spawn(io, std::move(work), [&](const std::exception_ptr& thrown) {
      done = true;
      EXPECT_EQ(thrown, nullptr);
    });
    io.run();
    io.restart();
    EXPECT_TRUE(done) << "there was work left, and the context did not know";
  }

  std::shared_ptr<Faults> faults = std::make_shared<Faults>();
  Client client{with_faults(std::make_unique<MemoryStore>(), faults)};
  asio::io_context io;
};

TEST_F(AsioTest, CoroutineTakesAndReleases) {
  run([this]() -> asio::awaitable<void> {
    const auto thread = std::this_thread::get_id();
    auto lease = co_await async_acquire(client, "job", {}, use_awaitable);
    EXPECT_TRUE(good(lease));
    EXPECT_EQ(std::this_thread::get_id(), thread) << "the executor's";
    auto second = co_await async_acquire(client, LockName::parse("job").value(), {}, use_awaitable);
    EXPECT_TRUE(bad(second, ErrorCode::busy));
    const auto released = co_await async_release(client, std::move(*lease), {}, use_awaitable);
    EXPECT_EQ(released.value(), ReleaseOutcome::released);
    auto fenced = co_await async_acquire_fenced(client, "job", {}, use_awaitable);
    EXPECT_EQ(fenced.value().token().number.value(), 2);
    EXPECT_EQ((co_await async_release(client, std::move(*fenced), {}, use_awaitable)).value(),
              ReleaseOutcome::released);
  }());
}

TEST_F(AsioTest, WaitIsRacedAgainstATimer) {
  const auto holder = client.acquire("job");
  run([this]() -> asio::awaitable<void> {
    using namespace asio::experimental::awaitable_operators;
    asio::steady_timer timer(co_await asio::this_coro::executor, 50ms);
    const auto first = co_await (async_acquire(client, "job", {.wait = 1h}, use_awaitable) ||
                                 timer.async_wait(use_awaitable));
    EXPECT_EQ(first.index(), 1U) << "and the acquire has ended too";
  }());
}

TEST_F(AsioTest, CancellationEndsItWithCancelled) {
  const auto holder = client.acquire("job");
  asio::cancellation_signal signal;
  std::optional<Result<Lease>> told;
  async_acquire(client, "job", {.wait = 20s},
                asio::bind_cancellation_slot(
                    signal.slot(), asio::bind_executor(io, [&](Result<Lease> lease) {
                      told.emplace(std::move(lease));
                      EXPECT_FALSE(signal.slot().has_handler()) << "it is for the next operation";
                    })));
  faults->wait_for_calls(Operation::acquire, 3);
  signal.emit(asio::cancellation_type::partial);
  io.run();
  ASSERT_TRUE(told);
  EXPECT_TRUE(bad(*told, ErrorCode::cancelled));
}

TEST_F(AsioTest, StopTokenOfTheOptionsIsHeardToo) {
  const auto holder = client.acquire("job");
  std::stop_source stop;
  auto told =
      async_acquire(client, "job", {.wait = 20s, .stop = stop.get_token()}, asio::use_future);
  faults->wait_for_calls(Operation::acquire, 3);
  stop.request_stop();
  EXPECT_TRUE(bad(told.get(), ErrorCode::cancelled));
}

TEST_F(AsioTest, LeaseThatNobodyTakesIsReleased) {
  async_acquire(client, "job", {.ttl = 1h}, asio::bind_executor(io, asio::detached));
  io.run();
  EXPECT_TRUE(good(client.acquire("job", {.wait = 30s})));
}

TEST_F(AsioTest, HandlerThatNeverRunsLeavesNothingHeld) {
  {
    asio::io_context never_run;
    async_acquire(client, "job", {.ttl = 1h}, asio::bind_executor(never_run, asio::detached));
    while (!bad(client.acquire("job"), ErrorCode::busy)) std::this_thread::yield();
    // Its answer is in the context's line before that of this one is told.
    (void)async_acquire(client, "other", {}, asio::use_future).get();
  }
  EXPECT_TRUE(good(client.acquire("job", {.wait = 30s})));
}

TEST_F(AsioTest, EveryQuestionIsAnOperation) {
  run([this]() -> asio::awaitable<void> {
    const LockName lock = LockName::parse("x").value();
    const ErrorCode none = ErrorCode::unsupported;
    auto lease = co_await async_acquire(client, lock, {}, use_awaitable);
    const RequestId seen = lease->request();
    const auto status = co_await async_inspect(client, lock, {}, use_awaitable);
    EXPECT_EQ(status.value().holder()->request, seen);
    const auto all = co_await async_list(client, {}, use_awaitable);
    EXPECT_EQ(all.value().size(), 1U);
    EXPECT_TRUE(bad(co_await async_force_release(client, lock, seen, {}, use_awaitable), none));
    EXPECT_TRUE(bad(co_await async_set_permits(client, lock, 2, {}, use_awaitable), none));
    EXPECT_TRUE(bad(co_await async_rotate_store_id(client, {}, use_awaitable), none));
    EXPECT_TRUE(bad(co_await async_recall(client, lock, "key", {}, use_awaitable), none));
    EXPECT_TRUE(bad(co_await async_record(client, *lease, "key", {}, {}, use_awaitable), none));
    EXPECT_TRUE(bad(co_await async_recorded_keys(client, lock, {}, use_awaitable), none));
    EXPECT_TRUE(bad(co_await async_forget(client, lock, "key", {}, use_awaitable), none));
    EXPECT_TRUE(
        bad(co_await async_release_after(client, std::move(*lease), 1s, {}, use_awaitable), none));
  }());
  EXPECT_TRUE(good(client.acquire("x", {.wait = 30s}))) << "nobody has the lease any more";
}

}  // namespace
}  // namespace leasehold
