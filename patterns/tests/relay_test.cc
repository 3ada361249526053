// The relay's loop, on an outbox that writes down what is asked of it. What every real outbox must
// do is in testing/outbox_conformance.cc.
#include "leasehold/relay.h"

#include <gmock/gmock.h>

#include <deque>
#include <set>
#include <utility>

#include "leasehold/client.h"
#include "testing/faulty_store.h"
#include "testing/memory_store.h"
#include "testing/virtual_time.h"

namespace leasehold {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

class ScriptedOutbox final : public Outbox {
 public:
  Status install() override { return {}; }
  Status enter(const Token&) override { return note("enter"); }
  Result<std::vector<OutboxMessage>> next(int limit, const std::vector<std::string>& except,
                                          std::int64_t after) override {
    note("next");
    if (on_next) on_next();
    std::set<std::string> left_out(except.begin(), except.end());
    std::vector<OutboxMessage> batch;
    for (const OutboxMessage& message : waiting) {
      if (std::ssize(batch) == limit) break;
      if (message.id <= after) left_out.insert(message.key);
      if (message.id > after) ++passed;
      if (!left_out.contains(message.key)) batch.push_back(message);
    }
    return batch;
  }
  Result<std::optional<OutboxMessage>> find(std::int64_t id) override {
    for (const OutboxMessage& message : waiting) {
      if (message.id == id) return message;
    }
    return std::nullopt;
  }
  Status delivered(const Token&, std::int64_t id) override {
    remove(id);
    return note("delivered");
  }
  Result<bool> failed(const Token&, std::int64_t, const std::string&, int) override {
    return false;
  }
  Result<std::int64_t> forget(const Token&, Millis) override {
    note("forget");
    if (to_forget.empty()) return 0;
    const std::int64_t gone = to_forget.front();
    to_forget.pop_front();
    return gone;
  }
  Result<OutboxStatus> status() override { return OutboxStatus{}; }
  Status retry(std::int64_t) override { return {}; }
  Status skip(std::int64_t) override { return {}; }

  Status note(const std::string& what) {
    log.push_back(what);
    return {};
  }
  void remove(std::int64_t id) {
    std::erase_if(waiting, [id](const OutboxMessage& message) { return message.id == id; });
  }

  std::vector<OutboxMessage> waiting;
  std::deque<std::int64_t> to_forget;
  std::function<void()> on_next;
  std::int64_t passed = 0;  // messages that a search has looked at
  std::vector<std::string> log;
};

class RelayTest : public ::testing::Test, public OutboxTarget {
 protected:
  Status deliver(const OutboxMessage& message, const Delivery& delivery) override {
    deadline_ = delivery.context.deadline;
    outbox_.note("deliver " + std::to_string(message.id));
    return answer_ ? answer_(message) : Status();
  }
  Result<RelayReport> run() {
    auto lease = client_.acquire_fenced("relay", {.ttl = 1min});
    if (!lease) return fail(std::move(lease.error()));
    return relay(outbox_, *this, *lease, options_);
  }
  static OutboxMessage message(std::int64_t id, const std::string& key) {
    return {.id = id, .key = key, .topic = "t", .payload = "p", .idempotency_key = "i"};
  }

  ScriptedOutbox outbox_;
  RelayOptions options_{.until_empty = true};
  std::function<Status(const OutboxMessage&)> answer_;
  testing::FakeClock clock_{BootClock::now()};
  BootTime deadline_;
  Client client_{std::make_unique<testing::MemoryStore>()};
};

// Whoever put it there may not have waited for the disk: a commit of the relay's own does.
TEST_F(RelayTest, CommitsBetweenReadingAndSending) {
  outbox_.waiting = {message(1, "a"), message(2, "b")};
  ASSERT_TRUE(run());
  EXPECT_THAT(outbox_.log, ElementsAre("enter", "next", "enter", "deliver 1", "delivered",
                                       "deliver 2", "delivered", "forget", "next"));
}

TEST_F(RelayTest, BeginsNoDeliveryWhenTheLeaseIsNearlyOver) {
  const auto faults = std::make_shared<testing::Faults>();
  faults->always(testing::Operation::renew, testing::Fault::refuse);
  client_ =
      Client(with_faults(std::make_unique<testing::MemoryStore>(), faults), {.clock = &clock_});
  outbox_.waiting = {message(1, "a")};
  outbox_.on_next = [&] { clock_.advance(55s); };
  const auto report = run();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::lost);
  EXPECT_THAT(outbox_.log, ElementsAre("enter", "next", "enter"));
}

TEST_F(RelayTest, ForgetsAgainAtOnceWhileThereIsMuch) {
  outbox_.to_forget = {2000, 2000, 7, 0};
  std::stop_source stop;
  int rounds = 0;
  outbox_.on_next = [&] {
    if (++rounds == 6) stop.request_stop();
  };
  options_ = {.poll = 1ms, .stop = stop.get_token()};
  ASSERT_TRUE(run());
  EXPECT_EQ(std::count(outbox_.log.begin(), outbox_.log.end(), "forget"), 3);
}

TEST_F(RelayTest, GivesUpWhenAllThatWaitsFails) {
  outbox_.waiting = {message(1, "a"), message(2, "a"), message(3, "b")};
  answer_ = [](const OutboxMessage& message) {
    return message.key == "b" ? Status() : fail(ErrorCode::unavailable, "not now");
  };
  options_.first_pause = 24h;
  options_.longest_pause = 24h;
  options_.give_up_after = 0ms;
  const auto report = run();
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->emptied);
  EXPECT_EQ(report->delivered, 1);
}

TEST_F(RelayTest, ForEverIsATimeToo) {
  outbox_.waiting = {message(1, "a")};
  int tries = 0;
  answer_ = [&](const OutboxMessage&) {
    return ++tries < 3 ? Status(fail(ErrorCode::unavailable, "not now")) : Status();
  };
  options_.timeout = options_.poll = options_.longest_pause = Millis::max();
  options_.first_pause = 1ms;
  options_.give_up_after = Millis::max();
  const auto report = run();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->delivered, 1);
  EXPECT_GT(deadline_, BootClock::now() + 24h);
}

TEST_F(RelayTest, GivesUpAlsoIfSomeKeyIsAlwaysDue) {
  outbox_.waiting = {message(1, "a"), message(2, "b")};
  answer_ = [](const OutboxMessage&) { return fail(ErrorCode::unavailable, "not now"); };
  options_.first_pause = 0ms;
  options_.longest_pause = 0ms;
  options_.give_up_after = 0ms;
  const auto report = run();
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->emptied);
  EXPECT_EQ(report->delivered, 0);
}

TEST_F(RelayTest, DoesNotGiveUpBeforeEveryKeyWasTried) {
  for (int id = 1; id <= 200; ++id) outbox_.waiting.push_back(message(id, std::to_string(id)));
  answer_ = [](const OutboxMessage& message) -> Status {
    if (message.id == 200) return {};
    return fail(ErrorCode::unavailable, "not now");
  };
  options_.first_pause = 24h;
  options_.longest_pause = 24h;
  options_.give_up_after = 0ms;
  const auto report = run();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->delivered, 1);
}

// If each of many failing keys were passed by between any two retries, it would be N * N / 10.
TEST_F(RelayTest, FailingKeysArePassedByOnceInASearch) {
  constexpr int kKeys = 500;
  for (int id = 1; id <= kKeys; ++id) outbox_.waiting.push_back(message(id, std::to_string(id)));
  std::stop_source stop;
  int tries = 0;
  answer_ = [&](const OutboxMessage&) -> Status {
    if (++tries == 5 * kKeys) stop.request_stop();
    return fail(ErrorCode::unavailable, "not now");
  };
  options_ = {.poll = 24h, .first_pause = 0ms, .longest_pause = 0ms, .stop = stop.get_token()};
  ASSERT_TRUE(run());
  EXPECT_LE(outbox_.passed, 2 * kKeys) << "a search that finds them, and one that finds no more";
}

TEST_F(RelayTest, WhatIsBehindARecoveredKeyIsFoundAtOnce) {
  outbox_.waiting = {message(1, "bad"), message(2, "a"), message(3, "a")};
  bool failed = false;
  std::stop_source stop;
  answer_ = [&](const OutboxMessage& message) -> Status {
    if (message.key == "bad") return fail(ErrorCode::unavailable, "not now");
    if (message.id == 3) stop.request_stop();
    if (std::exchange(failed, true)) return {};
    return fail(ErrorCode::unavailable, "not now");
  };
  options_ = {.poll = 24h, .first_pause = 1ms, .longest_pause = 1ms, .stop = stop.get_token()};
  ASSERT_TRUE(run());
  EXPECT_THAT(outbox_.log, ::testing::Contains("deliver 3"));
}

TEST_F(RelayTest, KeysThatRecoverDoNotWaitForOneAnother) {
  std::set<std::int64_t> tried;
  for (int id = 1; id <= 200; ++id) outbox_.waiting.push_back(message(id, std::to_string(id)));
  answer_ = [&](const OutboxMessage& message) -> Status {
    if (!tried.insert(message.id).second) return {};
    return fail(ErrorCode::unavailable, "not now");
  };
  options_.first_pause = 0ms;
  options_.longest_pause = 0ms;
  const auto report = run();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->delivered, 200);
  EXPECT_LT(std::count(outbox_.log.begin(), outbox_.log.end(), "next"), 10);
}

TEST_F(RelayTest, KeyBeginsAnewWhenSomebodyHasRemovedTheMessageThatFailed) {
  outbox_.waiting = {message(1, "a"), message(2, "a")};
  answer_ = [&](const OutboxMessage& message) -> Status {
    if (message.id == 2) return {};
    outbox_.remove(1);
    return fail(ErrorCode::unavailable, "not now");
  };
  options_.first_pause = 1ms;
  const auto report = run();
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->emptied);
  EXPECT_EQ(report->delivered, 1);
}

}  // namespace
}  // namespace leasehold
