// What a ride does with its riders, on a road that does what the test says.
#include "ride.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <thread>

#include "joined_txn.h"
#include "kit/tests/sleeps.h"
#include "transactions.h"

namespace leasehold::etcd {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Answer = tl::expected<wire::TxnResponse, Failure>;

// Nothing comes back before the test says so.
class TestRoad final : public Road {
 public:
  struct Sent {
    wire::TxnRequest request;
    Limits limits;
    Done<wire::TxnResponse> done;
  };

  void send(wire::TxnRequest request, Limits limits, Done<wire::TxnResponse> done) override {
    if (on_send) on_send();
    if (answers_at_once) return done(tl::unexpected(Failure{.kind = Failure::Kind::not_sent}));
    sent.push_back({std::move(request), std::move(limits), std::move(done)});
  }
  BootTime now() const override { return now_; }
  void call_at(BootTime when, std::function<void()> what) override {
    alarm_at_ = when;
    alarm_ = std::move(what);
  }
  void call_off() override {
    alarm_ = nullptr;
    if (on_call_off) on_call_off();
  }

  void pass(Millis time) {
    const BootTime until = now_ + time;
    ring_until(until);
    now_ = until;
  }
  // What is to be called now.
  void ring() { ring_until(now_); }
  // What has been asked for, as if it had begun already.
  std::function<void()> alarm() const { return alarm_; }

  std::vector<Sent> sent;
  bool answers_at_once = false;
  std::function<void()> on_send;
  std::function<void()> on_call_off;

 private:
  void ring_until(BootTime until) {
    while (alarm_ && alarm_at_ <= until) {
      now_ = std::max(now_, alarm_at_);
      std::exchange(alarm_, nullptr)();
    }
  }

  BootTime now_ = BootTime(1h);
  BootTime alarm_at_;
  std::function<void()> alarm_;
};

wire::TxnRequest put_at(const std::string& key, std::string value = "") {
  wire::TxnRequest txn;
  *txn.add_compare() = created_at(key, 0);
  *txn.add_success() = put(key, std::move(value), 0);
  *txn.add_failure() = get(key);
  return txn;
}

wire::TxnRequest erase_at(const std::string& key) {
  wire::TxnRequest txn;
  *txn.add_success() = erase(key);
  return txn;
}

const std::string& key_in(const wire::TxnRequest& txn) {
  const wire::RequestOp& op = txn.success(0);
  return op.has_put() ? op.put().key() : op.delete_range().key();
}

bool is_shared(const wire::TxnRequest& txn) {
  return txn.success_size() > 0 && txn.success(0).has_txn();
}

std::vector<std::string> keys_in(const wire::TxnRequest& txn) {
  if (!is_shared(txn)) return {key_in(txn)};
  std::vector<std::string> keys;
  for (const wire::RequestOp& op : txn.success()) keys.push_back(key_in(op.txn()));
  return keys;
}

class RideTest : public ::testing::Test {
 protected:
  // What was never answered keeps the ride, which owns the road.
  ~RideTest() override { road.sent.clear(); }

  // A call for the lock of this name, whose key has the same.
  void go(const std::string& lock, Limits limits = {}, Mode mode = {}) {
    go_with(lock, put_at(lock), std::move(limits), mode);
  }
  void go_with(const std::string& lock, wire::TxnRequest txn, Limits limits = {}, Mode mode = {}) {
    if (limits.deadline == BootTime()) limits.deadline = road.now() + 10s;
    const std::size_t number = calls++;
    ride->go(LockName::parse(lock).value(), mode, std::move(txn), std::move(limits),
             [this, number](Answer answer) {
               EXPECT_FALSE(answers.contains(number)) << "told twice";
               answers.emplace(number, std::move(answer));
             });
  }
  // The first one, which goes at once, and those that gather behind it.
  void go_behind(const std::vector<std::string>& locks) {
    go("first");
    for (const std::string& lock : locks) go(lock);
  }

  // What a server answers to a transaction if nobody is in the way, or if somebody is whose key has
  // that name.
  static wire::TxnResponse done(const wire::TxnRequest& txn, const std::string& taken = "") {
    wire::TxnResponse response;
    const bool free = is_shared(txn) || key_in(txn) != taken;
    response.set_succeeded(free);
    for (const wire::RequestOp& op : free ? txn.success() : txn.failure()) {
      wire::ResponseOp& answer = *response.add_responses();
      if (op.has_txn()) {
        *answer.mutable_txn() = done(op.txn(), taken);
      } else if (op.has_put()) {
        answer.mutable_put();
      } else if (op.has_delete_range()) {
        answer.mutable_delete_range()->set_deleted(1);
      } else {
        wire::KeyValue& kv = *answer.mutable_range()->add_kvs();
        kv.set_key(op.range().key());
        kv.set_create_revision(1);
        kv.set_mod_revision(1);
      }
    }
    return response;
  }
  void answer(std::size_t sent, const std::string& taken = "") {
    wire::TxnResponse response = done(road.sent[sent].request, taken);
    response.mutable_header()->set_revision(100 + static_cast<std::int64_t>(sent));
    tell(sent, std::move(response));
  }
  void refuse(std::size_t sent, Failure failure) { tell(sent, tl::unexpected(std::move(failure))); }
  void tell(std::size_t sent, Answer answer) {
    const auto done = std::exchange(road.sent[sent].done, nullptr);  // more may be sent meanwhile
    done(std::move(answer));
  }

  Failure::Kind failure_of(std::size_t call) const { return answers.at(call).error().kind; }
  std::vector<std::string> keys_of(std::size_t sent) const {
    return keys_in(road.sent.at(sent).request);
  }

  static Failure refusal(Failure::Meaning meaning) {
    return {.kind = Failure::Kind::refused, .meaning = meaning, .servers_word = true};
  }

  std::unique_ptr<TestRoad> owned = std::make_unique<TestRoad>();
  TestRoad& road = *owned;
  std::shared_ptr<Ride> ride = std::make_shared<Ride>(std::move(owned));
  std::size_t calls = 0;
  std::map<std::size_t, Answer> answers;
};

// ---- together ------------------------------------------------------------------------------

TEST_F(RideTest, CallAloneGoesAtOnceAsItIs) {
  const BootTime deadline = road.now() + 3s;
  std::stop_source stop;
  go("one", {.deadline = deadline, .stop = stop.get_token()});
  ASSERT_THAT(road.sent, SizeIs(1));
  EXPECT_EQ(road.sent[0].request.SerializeAsString(), put_at("one").SerializeAsString());
  EXPECT_EQ(road.sent[0].limits.deadline, deadline);
  stop.request_stop();
  EXPECT_TRUE(road.sent[0].limits.stop.stop_requested());
  answer(0);
  EXPECT_TRUE(answers.at(0)->succeeded());
  go("two");
  EXPECT_EQ(keys_of(1), std::vector<std::string>{"two"});
}

TEST_F(RideTest, CallsGatherBehindOneAndGoTogether) {
  go_behind({"a", "b", "c"});
  ASSERT_THAT(road.sent, SizeIs(1));
  answer(0);
  ASSERT_THAT(road.sent, SizeIs(2));
  EXPECT_THAT(keys_of(1), ElementsAre("a", "b", "c"));
  EXPECT_EQ(road.sent[1].request.compare_size(), 0) << "it is done whatever becomes of each";
  EXPECT_THAT(answers, SizeIs(1));
  go("d");
  answer(1);
  EXPECT_THAT(answers, SizeIs(4));
  EXPECT_THAT(keys_of(2), ElementsAre("d"));
  EXPECT_FALSE(is_shared(road.sent[2].request)) << "alone again";
}

TEST_F(RideTest, ThousandsThatAreAnsweredAtOnceNeedNoDeepStack) {
  constexpr std::size_t many = 20'000;
  go("a");
  for (std::size_t i = 0; i < many; ++i) go("a");
  road.answers_at_once = true;
  answer(0);
  EXPECT_THAT(answers, SizeIs(1 + many));
}

TEST_F(RideTest, EachIsToldItsOwnAnswer) {
  go_behind({"a", "b", "c"});
  answer(0);
  answer(1, /*taken=*/"b");
  EXPECT_TRUE(answers.at(1)->succeeded());
  EXPECT_FALSE(answers.at(2)->succeeded());
  EXPECT_EQ(first_kv(*answers.at(2), 0)->key(), "b");
  EXPECT_TRUE(answers.at(3)->succeeded());
  EXPECT_EQ(answers.at(1)->header().revision(), 101) << "a token";
}

TEST_F(RideTest, AnswerThatDoesNotFitOneIsInDoubt) {
  go_behind({"a", "b"});
  answer(0);
  wire::TxnResponse response = done(road.sent[1].request);
  response.mutable_header()->set_revision(7);
  response.mutable_responses(1)->mutable_txn()->clear_responses();
  tell(1, response);
  EXPECT_TRUE(answers.at(1));
  EXPECT_EQ(failure_of(2), Failure::Kind::ambiguous);
}

TEST_F(RideTest, WhatOnlyReadsOrMayBeRepeatedGoesByItself) {
  go("first");
  wire::TxnRequest look;
  *look.add_success() = get("a");
  go_with("a", look);
  EXPECT_THAT(road.sent, SizeIs(2));
  go("b", {.deadline = road.now() + 1s, .repeat = true});
  EXPECT_TRUE(road.sent.at(2).limits.repeat);
}

// ---- order ---------------------------------------------------------------------------------

TEST_F(RideTest, TwoOfOneLockNeverShareABatchAndKeepTheirOrder) {
  go("first");
  go_with("a", erase_at("a's holder"));
  go_with("a", put_at("a's next"));
  go("b");
  go_with("a", put_at("a's last"));
  answer(0);
  EXPECT_THAT(keys_of(1), ElementsAre("a's holder", "b"));
  EXPECT_THAT(road.sent, SizeIs(2)) << "before that is answered";
  go("c");
  answer(1);
  EXPECT_THAT(keys_of(2), ElementsAre("a's next", "c"));
  answer(2);
  EXPECT_THAT(keys_of(3), ElementsAre("a's last"));
  answer(3);
  EXPECT_THAT(answers, SizeIs(6));
}

TEST_F(RideTest, ThoseWhoStandBesideEachOtherDoNotWaitForEachOther) {
  go("first");
  for (const std::string key : {"one", "two", "three"}) {
    go_with("read", put_at(key), {}, Mode::shared());
  }
  go_with("read", put_at("writer"));
  go_with("read", put_at("four"), {}, Mode::shared());
  go("b");
  answer(0);
  ASSERT_THAT(road.sent, SizeIs(4));
  EXPECT_THAT(keys_of(1), ElementsAre("one", "b"));
  EXPECT_THAT(keys_of(2), ElementsAre("two"));
  EXPECT_THAT(keys_of(3), ElementsAre("three"));
  answer(1);
  EXPECT_THAT(keys_of(4), ElementsAre("writer"));
  answer(4);
  EXPECT_THAT(keys_of(5), ElementsAre("four"));
  for (const std::size_t sent : {2, 3, 5}) answer(sent);
  EXPECT_THAT(answers, SizeIs(7));
}

TEST_F(RideTest, NobodyWaitsForLongBehindWhatIsSlow) {
  go("slow");
  road.pass(10ms);
  go("a");
  road.pass(Ride::kPatience - 11ms);
  EXPECT_THAT(road.sent, SizeIs(1));
  go("b");
  road.pass(1ms);
  EXPECT_THAT(keys_of(1), ElementsAre("a", "b"));
  go("c");
  answer(0);
  EXPECT_THAT(road.sent, SizeIs(2)) << "it was not waited for any more";
  answer(1);
  EXPECT_THAT(keys_of(2), ElementsAre("c"));
}

// ---- how many ------------------------------------------------------------------------------

TEST_F(RideTest, OperationsAreCountedAsTheServerDoes) {
  wire::TxnRequest txn = put_at("a");
  EXPECT_EQ(operations_in(txn), 1);
  for (int i = 0; i < 4; ++i) *txn.add_compare() = created_at("other", 0);
  EXPECT_EQ(operations_in(txn), 5) << "the longest list";
  const wire::TxnRequest same = txn;
  *txn.add_failure()->mutable_txn() = same;
  *txn.add_failure()->mutable_txn() = put_at("b");
  EXPECT_EQ(operations_in(txn), 10) << "and the largest below it";
}

TEST_F(RideTest, NoMoreGoTogetherThanTheServerTakes) {
  go("first");
  for (int i = 0; i < 300; ++i) go("lock " + std::to_string(i));
  for (std::size_t sent = 0; sent < road.sent.size(); ++sent) {
    EXPECT_LE(operations_in(road.sent[sent].request), 128);
    answer(sent);
  }
  EXPECT_THAT(road.sent, SizeIs(4)) << "127, 127 and the rest";
  EXPECT_THAT(answers, SizeIs(301));
}

TEST_F(RideTest, LargeOnesGoInSmallCompany) {
  go("first");
  for (int i = 0; i < 9; ++i) {
    const std::string lock = "lock " + std::to_string(i);
    go_with(lock, put_at(lock, std::string(200'000, 'x')));
  }
  for (std::size_t sent = 0; sent < road.sent.size(); ++sent) {
    EXPECT_LE(road.sent[sent].request.ByteSizeLong(), 512'000);
    answer(sent);
  }
  EXPECT_THAT(answers, SizeIs(10));
}

TEST_F(RideTest, ServerThatTakesFewerIsRemembered) {
  go("first");
  for (int i = 0; i < 100; ++i) go("lock " + std::to_string(i));
  answer(0);
  ASSERT_THAT(keys_of(1), SizeIs(100));
  refuse(1, refusal(Failure::Meaning::not_accepted));
  ASSERT_THAT(road.sent, SizeIs(102)) << "each by itself";
  for (std::size_t sent = 2; sent < 102; ++sent) answer(sent);
  EXPECT_THAT(answers, SizeIs(101));
  go("first");
  for (int i = 0; i < 100; ++i) go("lock " + std::to_string(i));
  answer(102);
  EXPECT_THAT(keys_of(103), SizeIs(63));
}

// ---- failures ------------------------------------------------------------------------------

TEST_F(RideTest, WhatTheServerRefusesForOneIsRepeatedForEach) {
  go_behind({"a", "b", "c"});
  answer(0);
  go("a");
  refuse(1, refusal(Failure::Meaning::lease_gone));
  ASSERT_THAT(road.sent, SizeIs(6));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_FALSE(is_shared(road.sent[2 + i].request));
  EXPECT_THAT(answers, SizeIs(1)) << "nothing is known of the others yet";
  answer(2);
  refuse(3, refusal(Failure::Meaning::lease_gone));
  answer(4);
  EXPECT_TRUE(answers.at(1));
  EXPECT_TRUE(answers.at(2).error().lease_is_gone());
  EXPECT_TRUE(answers.at(3));
}

TEST_F(RideTest, WhatMayHaveBeenDoneIsNotRepeated) {
  go_behind({"a", "b"});
  answer(0);
  refuse(1, {.kind = Failure::Kind::ambiguous});
  EXPECT_THAT(road.sent, SizeIs(2));
  EXPECT_EQ(failure_of(1), Failure::Kind::ambiguous);
  EXPECT_EQ(failure_of(2), Failure::Kind::ambiguous);
}

TEST_F(RideTest, FullServerStillLetsKeysGo) {
  go_behind({"a"});
  go_with("b", erase_at("b"));
  answer(0);
  refuse(1, refusal(Failure::Meaning::no_space));
  EXPECT_TRUE(answers.at(1).error().out_of_space());
  EXPECT_EQ(failure_of(2), Failure::Kind::ambiguous) << "it may have been applied all the same";
  go_with("first", erase_at("first"));
  go("c");
  go_with("d", erase_at("d"));
  answer(2);
  EXPECT_THAT(keys_of(3), ElementsAre("c")) << "apart, while it is full";
  refuse(3, refusal(Failure::Meaning::no_space));
  EXPECT_THAT(keys_of(4), ElementsAre("d"));
  answer(4);
  EXPECT_TRUE(answers.at(calls - 1));
}

// ---- deadlines and stop tokens -------------------------------------------------------------

TEST_F(RideTest, EachHasItsOwnDeadline) {
  go("first");
  const BootTime begun = road.now();
  go("short", {.deadline = begun + 1s});
  go("long", {.deadline = begun + 9s});
  answer(0);
  EXPECT_EQ(road.sent[1].limits.deadline, begun + 9s) << "one must not cost the other its time";
  road.pass(1s);
  EXPECT_EQ(failure_of(1), Failure::Kind::ambiguous);
  EXPECT_TRUE(answers.at(1).error().silence);
  EXPECT_FALSE(road.sent[1].limits.stop.stop_requested());
  answer(1);
  EXPECT_TRUE(answers.at(2));
}

TEST_F(RideTest, DeadlineOfWhoHasNotLeftProvesThatNothingWasSent) {
  go("first");
  go("short", {.deadline = road.now() + 30ms});
  go("long");
  road.pass(30ms);
  EXPECT_EQ(failure_of(1), Failure::Kind::not_sent);
  answer(0);
  EXPECT_THAT(keys_of(1), ElementsAre("long"));
}

TEST_F(RideTest, WhoStopsLeavesTheOthersAlone) {
  std::stop_source gathered;
  std::stop_source riding;
  go("first");
  go("gathered", {.deadline = road.now() + 10s, .stop = gathered.get_token()});
  go("riding", {.deadline = road.now() + 10s, .stop = riding.get_token()});
  go("other");
  gathered.request_stop();
  EXPECT_THAT(answers, IsEmpty()) << "not on the thread that stops it";
  road.ring();
  EXPECT_EQ(failure_of(1), Failure::Kind::stopped);
  answer(0);
  EXPECT_THAT(keys_of(1), ElementsAre("riding", "other"));
  riding.request_stop();
  road.ring();
  EXPECT_EQ(failure_of(2), Failure::Kind::ambiguous);
  EXPECT_FALSE(road.sent[1].limits.stop.stop_requested()) << "somebody rides on";
  answer(1);
  EXPECT_TRUE(answers.at(3));
}

TEST_F(RideTest, WhoWasStoppedBeforeIsNeverSent) {
  std::stop_source stop;
  stop.request_stop();
  go("first");
  go("a", {.deadline = road.now() + 10s, .stop = stop.get_token()});
  road.ring();
  EXPECT_EQ(failure_of(1), Failure::Kind::stopped);
  answer(0);
  EXPECT_THAT(road.sent, SizeIs(1));
}

TEST_F(RideTest, BatchThatAllHaveLeftIsGivenUp) {
  std::stop_source stop;
  go("first");
  for (const std::string lock : {"a", "b"}) {
    go(lock, {.deadline = road.now() + 10s, .stop = stop.get_token()});
  }
  answer(0);
  stop.request_stop();
  road.ring();
  EXPECT_THAT(answers, SizeIs(3));
  EXPECT_TRUE(road.sent[1].limits.stop.stop_requested());
}

TEST_F(RideTest, WhoHasLeftIsNotRepeated) {
  go("first");
  go("short", {.deadline = road.now() + 1s});
  go("long");
  answer(0);
  road.pass(1s);
  refuse(1, refusal(Failure::Meaning::lease_gone));
  ASSERT_THAT(road.sent, SizeIs(3));
  EXPECT_THAT(keys_of(2), ElementsAre("long"));
}

// ---- closing -------------------------------------------------------------------------------

TEST_F(RideTest, AllAreToldWhenItIsClosed) {
  go_behind({"a", "b"});
  for (int i = 0; i < 1000; ++i) go("a");
  ride->close();
  EXPECT_THAT(answers, SizeIs(1002)) << "all but the one that is on its way";
  EXPECT_EQ(failure_of(1002), Failure::Kind::closed);
  refuse(0, {.kind = Failure::Kind::ambiguous});
  EXPECT_EQ(failure_of(0), Failure::Kind::ambiguous);
  go("late");
  go("late", {.deadline = road.now() + 1s, .repeat = true});
  EXPECT_EQ(failure_of(1003), Failure::Kind::closed);
  EXPECT_EQ(failure_of(1004), Failure::Kind::closed);
  ride->close();
  EXPECT_THAT(road.sent, SizeIs(1));
}

TEST_F(RideTest, WhoIsToldOfTheCloseMayAskAgain) {
  go("first");
  bool told = false;
  ride->go(LockName::parse("a").value(), {}, put_at("a"), {.deadline = road.now() + 10s},
           [&](const Answer&) {
             go("again");
             told = true;
           });
  ride->close();
  EXPECT_TRUE(told);
  EXPECT_EQ(failure_of(1), Failure::Kind::closed);
}

TEST_F(RideTest, AlarmThatComesAfterTheCloseDoesNothing) {
  std::stop_source stop;
  go("first");
  go("short", {.deadline = road.now() + 1s, .stop = stop.get_token()});
  answer(0);
  const auto alarm = road.alarm();
  ASSERT_TRUE(alarm);
  ride->close();
  EXPECT_FALSE(road.alarm());
  stop.request_stop();
  EXPECT_FALSE(road.alarm());
  road.pass(1s);
  alarm();
  EXPECT_THAT(answers, SizeIs(1)) << "the road tells it, when it is closed";
  refuse(1, {.kind = Failure::Kind::ambiguous});
  EXPECT_EQ(failure_of(1), Failure::Kind::ambiguous);
}

// What an alarm does when the ride is closed, which must wait for it.
class CloseDuringAlarmTest : public RideTest {
 protected:
  CloseDuringAlarmTest() {
    road.on_call_off = [this] { closing_.count_down(); };
  }

  // On the alarm's thread: until it is seen whether close() waits.
  void hold() {
    inside_.count_down();
    closing_.wait();
    while (!returned_ && !testing::sleeps(closer_)) std::this_thread::yield();
    EXPECT_FALSE(returned_);
    held_ = true;
  }
  void close_during(const std::function<void()>& alarm) {
    std::jthread thread(alarm);
    inside_.wait();
    ride->close();
    returned_ = true;
  }

  bool held_ = false;

 private:
  const pid_t closer_ = gettid();
  std::latch inside_{1};
  std::latch closing_{1};
  std::atomic<bool> returned_ = false;
};

TEST_F(CloseDuringAlarmTest, WaitsForTheCompletionOfWhoLeaves) {
  go("first");
  ride->go(LockName::parse("short").value(), {}, put_at("short"), {.deadline = road.now() + 1s},
           [this](const Answer&) {
             hold();
             go("again");
           });
  answer(0);
  close_during([this] { road.pass(1s); });
  EXPECT_TRUE(held_);
  EXPECT_EQ(failure_of(1), Failure::Kind::closed);
  refuse(1, {.kind = Failure::Kind::ambiguous});
}

TEST_F(CloseDuringAlarmTest, WaitsForWhatGoesWithoutWaiting) {
  go("slow");
  go("a");
  road.on_send = [this] { hold(); };
  close_during([this] { road.pass(Ride::kPatience); });
  EXPECT_TRUE(held_);
  EXPECT_THAT(keys_of(1), ElementsAre("a"));
  answer(0);
  answer(1);
  EXPECT_THAT(answers, SizeIs(2));
}

}  // namespace
}  // namespace leasehold::etcd
