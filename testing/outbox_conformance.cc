#include "testing/outbox_conformance.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>

#include "kit/text/visible_text.h"
#include "testing/failure_texts.h"
#include "testing/results.h"

namespace leasehold::testing {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OutboxConformance);

namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string text_of(const OutboxMessage& message) {
  return message.key + ":" + message.payload;
}

// Keeps what came, and answers as it is told.
class Receiver final : public OutboxTarget {
 public:
  using Answer = std::function<Status(const OutboxMessage&, const Delivery&)>;
  explicit Receiver(Answer answer = {}) : answer_(std::move(answer)) {}

  Status deliver(const OutboxMessage& message, const Delivery& delivery) override {
    Status answer = answer_ ? answer_(message, delivery) : Status();
    tried.push_back(text_of(message));
    if (answer) came.push_back(message);
    return answer;
  }

  std::vector<std::string> texts() const {
    std::vector<std::string> all;
    for (const OutboxMessage& message : came) all.push_back(text_of(message));
    return all;
  }

  std::vector<OutboxMessage> came;
  std::vector<std::string> tried;

 private:
  Answer answer_;
};

RelayOptions until_empty() {
  RelayOptions options;
  options.until_empty = true;
  options.first_pause = 1ms;
  options.poll = 1ms;
  return options;
}

Status refused() {
  return fail(ErrorCode::invalid, "the receiver does not want it");
}

}  // namespace

void OutboxConformance::SetUp() {
  database_ = GetParam()();
  outbox_ = database_->open();
  ASSERT_TRUE(good(outbox_->install()));
  auto store = std::make_unique<MemoryStore>();
  store_ = store.get();
  client_ = std::make_unique<Client>(std::move(store));
}

// Waits: a lease that was dropped is given back in the background.
FencedLease OutboxConformance::lease() {
  return client_->acquire_fenced("relay", {.ttl = 1min, .wait = 30s}).value();
}

void OutboxConformance::put(const std::string& key, const std::string& payload) {
  ASSERT_TRUE(good(database_->put({{key, "paid", payload, {}}}, true)));
}

std::string OutboxConformance::waiting() {
  const auto messages = outbox_->next(100, {});
  EXPECT_TRUE(good(messages));
  std::string text;
  for (const OutboxMessage& message : *messages) {
    text += (text.empty() ? "" : " ") + text_of(message);
  }
  return text;
}

OutboxStatus OutboxConformance::status() {
  auto status = outbox_->status();
  EXPECT_TRUE(good(status));
  return *status;
}

// ---- putting -------------------------------------------------------------------------------

TEST_P(OutboxConformance, WhatIsRolledBackIsNotSent) {
  ASSERT_TRUE(good(database_->put({{"a", "paid", "1", {}}}, false)));
  ASSERT_TRUE(good(database_->put({{"a", "paid", "2", {}}, {"b", "paid", "3", {}}}, true)));
  EXPECT_EQ(waiting(), "a:2 b:3");
}

TEST_P(OutboxConformance, InstallingAgainKeepsWhatWaits) {
  put("a", "1");
  ASSERT_TRUE(good(outbox_->install()));
  EXPECT_EQ(waiting(), "a:1");
}

TEST_P(OutboxConformance, IdempotencyKeyIsUniqueAndMadeUpIfMissing) {
  ASSERT_TRUE(good(database_->put({{"a", "paid", "1", "payment/1"}}, true)));
  const Status again = database_->put({{"b", "paid", "2", "payment/1"}}, true);
  EXPECT_TRUE(bad(again, ErrorCode::invalid));
  EXPECT_THAT(to_string(again.error()), HasSubstr("'payment/1' is in the outbox already"));
  put("a", "3");
  put("a", "4");
  std::set<std::string> keys;
  const auto messages = outbox_->next(100, {});
  for (const OutboxMessage& message : *messages) keys.insert(message.idempotency_key);
  EXPECT_EQ(keys.size(), 3u);
  EXPECT_TRUE(keys.contains("payment/1"));
}

TEST_P(OutboxConformance, WrongInputIsRefused) {
  const std::string long_name(513, 'x');
  EXPECT_TRUE(bad(database_->put({{"", "t", "p", {}}}, true), ErrorCode::invalid));
  EXPECT_TRUE(bad(database_->put({{long_name, "t", "p", {}}}, true), ErrorCode::invalid));
  EXPECT_TRUE(bad(database_->put({{"k", "a\nb", "p", {}}}, true), ErrorCode::invalid));
  EXPECT_TRUE(bad(database_->put({{"k", "t", "p", "a\rb"}}, true), ErrorCode::invalid));
  EXPECT_TRUE(bad(database_->put({{"k", "t", std::string(kMaxOutboxPayload + 1, 'x'), {}}}, true),
                  ErrorCode::invalid));
  EXPECT_TRUE(bad(database_->put_alone({"k", "t", "p", {}}), ErrorCode::invalid));
  EXPECT_EQ(waiting(), "");
  EXPECT_TRUE(good(database_->put({{"k", "t", std::string(kMaxOutboxPayload, 'x'), {}}}, true)));
}

TEST_P(OutboxConformance, PlainSqlPutsTooAndIsCheckedToo) {
  EXPECT_EQ(database_->put_by_sql("a", "1"), "");
  EXPECT_THAT(database_->put_by_sql("", "2"), HasSubstr("leasehold: invalid: "));
  EXPECT_THAT(database_->put_by_sql(std::string(513, 'x'), "2"), HasSubstr("leasehold: invalid: "));
  EXPECT_EQ(waiting(), "a:1");
}

// ---- the relay's side ----------------------------------------------------------------------

TEST_P(OutboxConformance, OvertakenRelayCanMarkNothing) {
  put("a", "1");
  const auto id = outbox_->next(1, {})->front().id;
  const FencedLease old = lease();
  ASSERT_TRUE(good(outbox_->enter(old.token())));
  store_->end(old.request());
  const FencedLease now = lease();
  ASSERT_TRUE(good(outbox_->enter(now.token())));

  EXPECT_TRUE(bad(outbox_->delivered(old.token(), id), ErrorCode::fenced_out));
  EXPECT_TRUE(bad(outbox_->failed(old.token(), id, "x", 1), ErrorCode::fenced_out));
  EXPECT_TRUE(bad(outbox_->forget(old.token(), 0ms), ErrorCode::fenced_out));
  EXPECT_TRUE(bad(outbox_->enter(old.token()), ErrorCode::fenced_out));
  EXPECT_EQ(waiting(), "a:1");
  EXPECT_EQ(database_->refused(), 4);
  EXPECT_TRUE(good(outbox_->delivered(now.token(), id)));
  EXPECT_EQ(waiting(), "");
  EXPECT_TRUE(bad(outbox_->delivered(now.token(), id), ErrorCode::invalid)) << "not twice";
}

TEST_P(OutboxConformance, NextLeavesOutWhatPauses) {
  put("a", "1");
  put("b", "2");
  put("it's", "3");
  const auto left = outbox_->next(100, {"a", "it's"});
  ASSERT_TRUE(good(left));
  ASSERT_EQ(left->size(), 1u);
  EXPECT_EQ(left->front().key, "b");
}

TEST_P(OutboxConformance, SearchGoesOnAndKeepsTheOrderOfAKey) {
  for (const char* key : {"a", "b", "a", "c"}) put(key, key);
  const auto all = outbox_->next(100, {}).value();
  ASSERT_EQ(all.size(), 4u);
  const auto after_b = [&] {
    std::string keys;
    const auto found = outbox_->next(100, {}, all[1].id).value();
    for (const OutboxMessage& message : found) keys += message.key;
    return keys;
  };
  EXPECT_EQ(after_b(), "c") << "the first of a waits still";
  const FencedLease mine = lease();
  ASSERT_TRUE(good(outbox_->delivered(mine.token(), all[0].id)));
  EXPECT_EQ(after_b(), "ac");
}

TEST_P(OutboxConformance, RelayDeliversEachKeyInOrder) {
  for (const char* payload : {"1", "2", "3"}) {
    put("a", payload);
    put("b", payload);
  }
  Receiver receiver;
  const auto report = relay(*outbox_, receiver, lease(), until_empty());
  ASSERT_TRUE(good(report));
  EXPECT_EQ(report->delivered, 6);
  EXPECT_THAT(receiver.texts(), ElementsAre("a:1", "b:1", "a:2", "b:2", "a:3", "b:3"));
  EXPECT_EQ(status().waiting, 0);
  EXPECT_EQ(status().delivered, 6);
}

TEST_P(OutboxConformance, EachIsMarkedBeforeTheNextIsSent) {
  put("a", "1");
  put("b", "2");
  auto other = database_->open();
  std::vector<std::int64_t> seen;
  Receiver receiver([&](const OutboxMessage&, const Delivery&) {
    seen.push_back(other->status()->waiting);
    return Status();
  });
  ASSERT_TRUE(good(relay(*outbox_, receiver, lease(), until_empty())));
  EXPECT_THAT(seen, ElementsAre(2, 1));
}

TEST_P(OutboxConformance, PoisonedMessageStopsItsOwnKeyOnly) {
  put("bad", "poison");
  put("bad", "after");
  put("fine", "1");
  put("fine", "2");
  bool cured = false;
  Receiver receiver([&](const OutboxMessage& message, const Delivery&) {
    return message.payload == "poison" && !cured ? refused() : Status();
  });
  RelayOptions options = until_empty();
  options.attempts = 3;
  const auto report = relay(*outbox_, receiver, lease(), options);
  ASSERT_TRUE(good(report));
  EXPECT_EQ(report->failed, 3);
  EXPECT_EQ(report->set_aside, 1);
  EXPECT_THAT(receiver.texts(), ElementsAre("fine:1", "fine:2"));

  ASSERT_EQ(status().set_aside.size(), 1u);
  const OutboxProblem problem = status().set_aside.front();
  EXPECT_EQ(problem.message.key, "bad");
  EXPECT_EQ(problem.message.attempts, 3);
  EXPECT_EQ(problem.behind, 1);
  EXPECT_THAT(problem.last_error, HasSubstr("does not want it"));
  EXPECT_EQ(waiting(), "") << "the whole key is set aside";
  EXPECT_EQ(status().lag, 0ms);

  cured = true;
  receiver.came.clear();
  EXPECT_TRUE(bad(outbox_->retry(problem.message.id + 1), ErrorCode::invalid)) << "not that one";
  ASSERT_TRUE(good(outbox_->retry(problem.message.id)));
  ASSERT_TRUE(good(relay(*outbox_, receiver, lease(), options)));
  EXPECT_THAT(receiver.texts(), ElementsAre("bad:poison", "bad:after"));
}

TEST_P(OutboxConformance, FailureIsCountedWhateverItSays) {
  for (const std::string& text : hostile_failure_texts()) {
    put("bad", "1");
    Receiver receiver(
        [&](const OutboxMessage&, const Delivery&) { return fail(ErrorCode::invalid, text); });
    RelayOptions options = until_empty();
    options.attempts = 2;
    const auto report = relay(*outbox_, receiver, lease(), options);
    ASSERT_TRUE(good(report));
    EXPECT_EQ(report->failed, 2);
    const OutboxStatus now = status();
    ASSERT_EQ(now.set_aside.size(), 1u);
    EXPECT_EQ(now.set_aside[0].last_error, kit::storable(text));
    ASSERT_TRUE(good(outbox_->skip(now.set_aside[0].message.id)));
  }
}

TEST_P(OutboxConformance, MessagesMayBeKeptForEver) {
  put("a", "1");
  Receiver receiver;
  RelayOptions options = until_empty();
  options.keep = Millis::max();
  ASSERT_TRUE(good(relay(*outbox_, receiver, lease(), options)));
  EXPECT_EQ(status().delivered, 1);
}

TEST_P(OutboxConformance, SkippedMessageIsNeverSent) {
  put("bad", "poison");
  put("bad", "after");
  const FencedLease mine = lease();
  ASSERT_TRUE(good(outbox_->enter(mine.token())));
  const auto id = outbox_->next(1, {})->front().id;
  EXPECT_TRUE(bad(outbox_->skip(id), ErrorCode::invalid)) << "it is not set aside";
  EXPECT_EQ(outbox_->failed(mine.token(), id, "no", 2).value(), false);
  EXPECT_EQ(outbox_->failed(mine.token(), id, "no", 2).value(), true);
  ASSERT_TRUE(good(outbox_->skip(id)));
  Receiver receiver;
  ASSERT_TRUE(good(relay(*outbox_, receiver, mine, until_empty())));
  EXPECT_THAT(receiver.texts(), ElementsAre("bad:after"));
  EXPECT_EQ(status().skipped, 1);
}

TEST_P(OutboxConformance, ReceiverThatIsAwayIsNotCounted) {
  put("a", "1");
  put("a", "2");
  int away = 5;
  Receiver receiver([&](const OutboxMessage&, const Delivery&) -> Status {
    if (away-- > 0) return fail(ErrorCode::unavailable, "it is away");
    return {};
  });
  RelayOptions options = until_empty();
  options.attempts = 1;
  const auto report = relay(*outbox_, receiver, lease(), options);
  ASSERT_TRUE(good(report));
  EXPECT_EQ(report->failed, 0);
  EXPECT_THAT(receiver.texts(), ElementsAre("a:1", "a:2"));
  EXPECT_EQ(receiver.tried.size(), 7u);
}

TEST_P(OutboxConformance, HealthyKeysGoOnHoweverManyPause) {
  std::vector<OutboxEntry> entries;
  for (int i = 0; i < 1200; ++i) entries.push_back({"bad/" + std::to_string(i), "paid", "x", {}});
  entries.push_back({"fine", "paid", "1", {}});
  ASSERT_TRUE(good(database_->put(entries, true)));
  std::stop_source stop;
  Receiver receiver([&](const OutboxMessage& message, const Delivery&) -> Status {
    if (message.key != "fine") return fail(ErrorCode::unavailable, "not now");
    stop.request_stop();
    return {};
  });
  RelayOptions options = until_empty();
  options.first_pause = options.longest_pause = 24h;
  options.stop = stop.get_token();
  ASSERT_TRUE(good(relay(*outbox_, receiver, lease(), options)));
  EXPECT_THAT(receiver.texts(), ElementsAre("fine:1"));
}

// Keys that fail, and whose pause is over at once, are not tried over and over before the others.
TEST_P(OutboxConformance, HealthyKeysGoOnHoweverManyAreDueAgain) {
  std::vector<OutboxEntry> entries;
  for (int i = 0; i < 150; ++i) entries.push_back({"bad/" + std::to_string(i), "paid", "x", {}});
  entries.push_back({"fine", "paid", "1", {}});
  ASSERT_TRUE(good(database_->put(entries, true)));
  Receiver receiver([](const OutboxMessage& message, const Delivery&) {
    return message.key == "fine" ? Status() : refused();
  });
  RelayOptions options = until_empty();
  options.first_pause = options.longest_pause = 0ms;
  options.attempts = 3;
  const auto report = relay(*outbox_, receiver, lease(), options);
  ASSERT_TRUE(good(report));
  EXPECT_EQ(report->set_aside, 150) << "and these are tried too";
  const auto fine = std::find(receiver.tried.begin(), receiver.tried.end(), "fine:1");
  EXPECT_LT(fine - receiver.tried.begin(), 200);
}

TEST_P(OutboxConformance, RelayThatIsOvertakenStops) {
  put("a", "1");
  put("a", "2");
  const FencedLease old = lease();
  auto other = database_->open();
  std::optional<FencedLease> now;
  Receiver overtaken([&](const OutboxMessage&, const Delivery&) {
    store_->end(old.request());
    now.emplace(lease());
    return other->enter(now->token());
  });
  EXPECT_TRUE(bad(relay(*outbox_, overtaken, old, until_empty()), ErrorCode::fenced_out));
  EXPECT_THAT(overtaken.tried, ElementsAre("a:1"));
  Receiver receiver;
  ASSERT_TRUE(good(relay(*other, receiver, *now, until_empty())));
  EXPECT_THAT(receiver.texts(), ElementsAre("a:1", "a:2")) << "at least once, in order";
}

TEST_P(OutboxConformance, RelayEntersBeforeItDelivers) {
  put("a", "1");
  const FencedLease old = lease();
  ASSERT_TRUE(good(outbox_->enter(old.token())));
  store_->end(old.request());
  auto other = database_->open();
  std::optional<ErrorCode> late;
  Receiver receiver([&](const OutboxMessage& message, const Delivery&) {
    const auto marked = other->delivered(old.token(), message.id);
    if (!marked) late = marked.error().code;
    return Status();
  });
  ASSERT_TRUE(good(relay(*outbox_, receiver, lease(), until_empty())));
  EXPECT_EQ(late, ErrorCode::fenced_out);
}

TEST_P(OutboxConformance, LostLeaseEndsTheDeliveryAndCountsNothing) {
  put("a", "1");
  const FencedLease mine = lease();
  Receiver receiver([&](const OutboxMessage&, const Delivery& delivery) -> Status {
    store_->end(mine.request());
    std::mutex mutex;
    std::condition_variable_any told;
    std::unique_lock lock(mutex);
    told.wait(lock, delivery.context.stop, [] { return false; });
    return refused();
  });
  RelayOptions options = until_empty();
  options.attempts = 1;
  EXPECT_TRUE(bad(relay(*outbox_, receiver, mine, options), ErrorCode::lost));
  EXPECT_EQ(waiting(), "a:1");
  EXPECT_TRUE(status().set_aside.empty());
}

TEST_P(OutboxConformance, StopEndsAfterTheDeliveryThatIsGoingOn) {
  put("a", "1");
  put("a", "2");
  std::stop_source stop;
  Receiver receiver([&](const OutboxMessage&, const Delivery&) {
    stop.request_stop();
    return Status();
  });
  RelayOptions options = until_empty();
  options.stop = stop.get_token();
  ASSERT_TRUE(good(relay(*outbox_, receiver, lease(), options)));
  EXPECT_EQ(waiting(), "a:2");
}

TEST_P(OutboxConformance, RelayFindsWhatIsPutWhileItRuns) {
  put("a", "1");
  std::stop_source stop;
  Receiver receiver([&](const OutboxMessage& message, const Delivery&) {
    if (message.payload == "1") put("a", "2");
    if (message.payload == "2") stop.request_stop();
    return Status();
  });
  RelayOptions options = until_empty();
  options.until_empty = false;
  options.stop = stop.get_token();
  ASSERT_TRUE(good(relay(*outbox_, receiver, lease(), options)));
  EXPECT_THAT(receiver.texts(), ElementsAre("a:1", "a:2"));
}

TEST_P(OutboxConformance, MessageIsWholeAndCarriesTheToken) {
  const std::string payload = "{\"a\": \"\xc3\xa4\"}\n\t";
  ASSERT_TRUE(good(database_->put({{"a", "paid", payload, "payment/7731"}}, true)));
  const FencedLease mine = lease();
  std::int64_t token = 0;
  Receiver receiver([&](const OutboxMessage&, const Delivery& delivery) {
    token = delivery.token.number.value();
    return Status();
  });
  ASSERT_TRUE(good(relay(*outbox_, receiver, mine, until_empty())));
  ASSERT_EQ(receiver.came.size(), 1u);
  EXPECT_EQ(receiver.came[0].payload, payload);
  EXPECT_EQ(receiver.came[0].topic, "paid");
  EXPECT_EQ(receiver.came[0].idempotency_key, "payment/7731");
  EXPECT_EQ(token, mine.token().number.value());
}

TEST_P(OutboxConformance, DeliveredIsForgottenAndWaitingIsNot) {
  put("a", "1");
  put("b", "2");
  const FencedLease mine = lease();
  ASSERT_TRUE(good(outbox_->enter(mine.token())));
  ASSERT_TRUE(good(outbox_->delivered(mine.token(), outbox_->next(1, {})->front().id)));
  EXPECT_EQ(outbox_->forget(mine.token(), std::chrono::hours(1)).value(), 0);
  EXPECT_EQ(outbox_->forget(mine.token(), Millis(-1000)).value(), 1);
  EXPECT_EQ(waiting(), "b:2");
}

// One transaction that deletes all would hold up those who put.
TEST_P(OutboxConformance, MuchIsForgottenInSteps) {
  ASSERT_TRUE(good(
      database_->put(std::vector<OutboxEntry>(2100, OutboxEntry{"a", "paid", "x", {}}), true)));
  ASSERT_EQ(database_->deliver_all_by_sql(), "");
  const FencedLease mine = lease();
  EXPECT_EQ(outbox_->forget(mine.token(), Millis(-1000)).value(), 2000);
  EXPECT_EQ(outbox_->forget(mine.token(), Millis(-1000)).value(), 100);
}

TEST_P(OutboxConformance, MissingOutboxIsSaid) {
  const auto empty = GetParam()();
  auto missing = empty->open();
  EXPECT_TRUE(bad(missing->status(), ErrorCode::unavailable));
  EXPECT_TRUE(bad(missing->enter(lease().token()), ErrorCode::unavailable));
  const Status put = empty->put({{"a", "t", "p", {}}}, true);
  EXPECT_TRUE(bad(put, ErrorCode::unavailable));
  EXPECT_THAT(to_string(put.error()), HasSubstr("leasehold outbox install"));
}

}  // namespace leasehold::testing
