#include "store_base/blocking_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <future>
#include <latch>
#include <stdexcept>
#include <thread>

#include "kit/tests/sleeps.h"
#include "leasehold/random.h"

namespace leasehold {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Field;

constexpr const char* kAddress = "told:somewhere";

// Answers as it is told.
class ToldStore final : public BlockingStore {
 public:
  explicit ToldStore(Calls calls) : BlockingStore(calls, /*patience=*/1h) {
    traits_.address = kAddress;
  }
  ~ToldStore() override { close(); }

  const StoreTraits& traits() const override { return traits_; }

  using BlockingStore::doubts;
  using BlockingStore::gathered;
  void answer_each(std::span<const AnyAsked> batch) { BlockingStore::answer(batch); }

  std::function<Result<AcquireReply>(const AcquireCall&)> on_acquire = [](const auto&) {
    return Busy{"somebody"};
  };
  std::function<Result<ReleaseReply>(const CallContext&)> on_release = [](const auto&) {
    return ReleaseReply::released;
  };
  std::function<void(std::span<const AnyAsked>)> on_batch;
  // If there is one, a batch only begins at its departure.
  std::function<void(std::span<const AnyAsked>)> on_arrival;
  std::function<void()> on_close = [] {};
  int asked = 0;
  int closed = 0;

 private:
  struct Trip final : Line::Trip {
    explicit Trip(std::function<void()> what) : rest(std::move(what)) {}
    void arrive() override { rest(); }
    const std::function<void()> rest;
  };

  void answer(std::span<const AnyAsked> batch) override {
    if (on_batch) return on_batch(batch);
    BlockingStore::answer(batch);
  }
  std::unique_ptr<Line::Trip> depart(std::span<const AnyAsked> batch) override {
    if (!on_arrival) return BlockingStore::depart(batch);
    for (const AnyAsked& one : batch) std::visit([](auto* rider) { rider->begin(); }, one);
    return std::make_unique<Trip>([this, batch] { on_arrival(batch); });
  }
  Result<AcquireReply> do_acquire(const AcquireCall& call, const CallContext&) override {
    return on_acquire(call);
  }
  Result<std::vector<RenewReply>> do_renew(const std::vector<RenewCall>& calls,
                                           const CallContext&) override {
    return std::vector<RenewReply>(calls.size(), RenewReply::gone);
  }
  Result<ReleaseReply> do_release(const ReleaseCall&, const CallContext& context) override {
    ++asked;
    return on_release(context);
  }
  void do_close() override {
    ++closed;
    on_close();
  }

  StoreTraits traits_;
};

class BlockingStoreTest : public ::testing::Test {
 protected:
  explicit BlockingStoreTest(BlockingStore::Calls calls = BlockingStore::Calls::apart)
      : store(calls) {}

  static LockName lock() { return LockName::parse("job").value(); }
  static CallContext context(std::stop_token stop = {}) { return {BootClock::now() + 10s, stop}; }

  Result<ReleaseReply> release(CallContext limits = context()) {
    std::vector<Result<ReleaseReply>> answers;
    store.release({lock(), request}, std::move(limits),
                  [&](Result<ReleaseReply> reply) { answers.push_back(std::move(reply)); });
    EXPECT_EQ(answers.size(), 1u) << "the completion is called once, before the call returns";
    return answers.at(0);
  }
  void fail_with(ErrorCode code) {
    store.on_release = [code](const auto&) { return fail(code, "it failed", "its words"); };
  }

  const RequestId request = RequestId::random(system_random());
  ToldStore store;
};

TEST_F(BlockingStoreTest, GivesTheAnswerOfTheMethod) {
  EXPECT_EQ(release().value(), ReleaseReply::released);
  std::optional<Result<AcquireReply>> acquired;
  store.acquire({lock(), RequestId::random(system_random()), OwnerLabel::parse("me").value(),
                 Ttl::of(30s).value()},
                context(), [&](Result<AcquireReply> reply) { acquired = std::move(reply); });
  EXPECT_EQ(std::get<Busy>(acquired->value()).ahead, "somebody");
  std::optional<Result<std::vector<RenewReply>>> renewed;
  store.renew({{lock(), RequestId::random(system_random()), Ttl::of(30s).value()}}, context(),
              [&](auto reply) { renewed = std::move(reply); });
  EXPECT_THAT(renewed->value(), ::testing::ElementsAre(RenewReply::gone));
}

TEST_F(BlockingStoreTest, AnErrorHasTheAddressAndIsNamedOnce) {
  fail_with(ErrorCode::unavailable);
  const Error error = release().error();
  EXPECT_EQ(to_string(error), "unavailable: told:somewhere: it failed (its words)");
  store.on_release = [](const auto&) {
    return fail(error_at("10.0.0.1:7", Error(ErrorCode::unavailable, "it failed")));
  };
  EXPECT_EQ(sentence(release().error()), "told:somewhere: it failed");
}

TEST_F(BlockingStoreTest, WhatWasNotDoneBecauseOfTheStopIsCancelled) {
  std::stop_source stop;
  stop.request_stop();
  fail_with(ErrorCode::unavailable);
  EXPECT_EQ(release(context(stop.get_token())).error().code, ErrorCode::cancelled);
  EXPECT_EQ(release().error().code, ErrorCode::unavailable);
  for (const ErrorCode other : {ErrorCode::outcome_unknown, ErrorCode::lost, ErrorCode::invalid}) {
    fail_with(other);
    EXPECT_EQ(release(context(stop.get_token())).error().code, other);
  }
}

TEST_F(BlockingStoreTest, CallPastItsDeadlineIsNotBegun) {
  EXPECT_THAT(release({BootClock::now() - 1ns, {}}).error(),
              AllOf(Field(&Error::code, ErrorCode::unavailable), Field(&Error::address, kAddress)));
  EXPECT_EQ(store.asked, 0);
}

TEST_F(BlockingStoreTest, ClosedStoreAnswersAtOnce) {
  store.close();
  EXPECT_THAT(release().error(),
              AllOf(Field(&Error::code, ErrorCode::unavailable), Field(&Error::address, kAddress)));
  EXPECT_EQ(store.asked, 0);
  store.close();
  EXPECT_EQ(store.closed, 1);
}

TEST_F(BlockingStoreTest, CloseReturnsWhenEveryCompletionHas) {
  std::promise<void> closing;
  std::latch inside(1);
  store.on_close = [&] { closing.set_value(); };
  store.on_release = [&](const auto&) {
    inside.count_down();
    closing.get_future().wait();
    return ReleaseReply::released;
  };
  std::atomic<bool> returned = false;
  const pid_t closer = gettid();
  std::thread caller([&] {
    store.release({lock(), RequestId::random(system_random())}, context(), [&](const auto& reply) {
      EXPECT_TRUE(reply);
      while (!returned && !testing::sleeps(closer)) std::this_thread::yield();
      EXPECT_FALSE(returned);
    });
  });
  inside.wait();
  store.close();
  returned = true;
  caller.join();
}

TEST_F(BlockingStoreTest, StoreThatThrowsIsAnUnknownOutcome) {
  store.on_release = [](const auto&) -> Result<ReleaseReply> {
    throw std::runtime_error("broken");
  };
  EXPECT_EQ(to_string(release().error()),
            "outcome_unknown: told:somewhere: the store failed unexpectedly (broken)");
}

// Calls that go together. The first of them waits until the test lets it go on.
class TogetherTest : public BlockingStoreTest {
 protected:
  TogetherTest() : BlockingStoreTest(BlockingStore::Calls::together) {
    store.on_release = [this](const auto&) {
      out_.count_down();
      go_on_.wait();
      return ReleaseReply::released;
    };
    store.on_batch = [this](std::span<const AnyAsked> batch) {
      sizes.push_back(batch.size());
      if (then) return then(batch);
      store.answer_each(batch);
    };
    threads_.emplace_back([this] { EXPECT_TRUE(release()); });
    out_.wait();
  }
  ~TogetherTest() override {
    let_go();
    store.close();
  }
  void let_go() {
    if (!std::exchange(has_gone_, true)) go_on_.count_down();
    for (auto& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

  // From a thread of its own; returns when it has gathered.
  void gather(std::function<void()> call) {
    const std::size_t before = store.gathered();
    threads_.emplace_back(std::move(call));
    while (store.gathered() == before) std::this_thread::yield();
  }
  void gather_acquire(std::string name, CallContext limits,
                      std::optional<Result<AcquireReply>>& answer,
                      RequestId who = RequestId::random(system_random())) {
    gather([this, name, limits, who, &answer] {
      store.acquire({LockName::parse(name).value(), who, OwnerLabel::parse("me").value(),
                     Ttl::of(30s).value()},
                    limits, [&](Result<AcquireReply> reply) { answer = std::move(reply); });
    });
  }
  static Result<AcquireReply> name_of_lock(const AcquireCall& call) {
    return Busy{call.lock.str()};
  }

  std::vector<std::size_t> sizes;
  std::function<void(std::span<const AnyAsked>)> then;

 private:
  bool has_gone_ = false;
  std::latch out_{1};
  std::latch go_on_{1};
  std::vector<std::thread> threads_;
};

TEST_F(TogetherTest, EachGetsItsOwnAnswer) {
  store.on_acquire = name_of_lock;
  std::array<std::optional<Result<AcquireReply>>, 3> answers;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    gather_acquire("job-" + std::to_string(i), context(), answers[i]);
  }
  let_go();
  EXPECT_THAT(sizes, ::testing::ElementsAre(3));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(std::get<Busy>(answers[i]->value()).ahead, "job-" + std::to_string(i));
  }
}

TEST_F(TogetherTest, AFailureOfOneIsNotThatOfItsNeighbours) {
  store.on_acquire = [](const AcquireCall& call) -> Result<AcquireReply> {
    if (call.lock.str() == "bad") return fail(ErrorCode::invalid, "no such thing");
    return Busy{call.lock.str()};
  };
  std::optional<Result<AcquireReply>> before, bad, after;
  gather_acquire("before", context(), before);
  gather_acquire("bad", context(), bad);
  gather_acquire("after", context(), after);
  let_go();
  EXPECT_EQ(std::get<Busy>(before->value()).ahead, "before");
  EXPECT_THAT(bad->error(),
              AllOf(Field(&Error::code, ErrorCode::invalid), Field(&Error::address, kAddress)));
  EXPECT_EQ(std::get<Busy>(after->value()).ahead, "after");
}

TEST_F(TogetherTest, WhatABatchLeavesGoesOnItsOwnAndWhatItThrewAwayIsUnknown) {
  store.on_acquire = name_of_lock;
  then = [](std::span<const AnyAsked> batch) {
    std::get<AskedAcquire*>(batch[0])->begin();
    throw std::runtime_error("broken");
  };
  const RequestId begun = RequestId::random(system_random());
  std::optional<Result<AcquireReply>> thrown, left;
  gather_acquire("begun", context(), thrown, begun);
  gather_acquire("left", context(), left);
  let_go();
  EXPECT_EQ(to_string(thrown->error()),
            "outcome_unknown: told:somewhere: the store failed unexpectedly (broken)");
  EXPECT_TRUE(store.doubts().doubts(begun));
  EXPECT_EQ(std::get<Busy>(left->value()).ahead, "left");
}

TEST_F(TogetherTest, WhatWasNotAnsweredWhenABatchArrivesGoesOnItsOwnToo) {
  store.on_acquire = name_of_lock;
  std::optional<Result<AcquireReply>> answered, left;
  store.on_arrival = [](std::span<const AnyAsked> batch) {
    std::get<AskedAcquire*>(batch[0])->answer(Busy{"the batch"});
  };
  gather_acquire("answered", context(), answered);
  gather_acquire("left", context(), left);
  let_go();
  EXPECT_EQ(std::get<Busy>(answered->value()).ahead, "the batch");
  EXPECT_EQ(std::get<Busy>(left->value()).ahead, "left");
}

TEST_F(TogetherTest, WhatIsThrownAtTheArrivalIsAnUnknownOutcome) {
  std::optional<Result<AcquireReply>> thrown;
  store.on_arrival = [](auto) { throw std::runtime_error("broken"); };
  gather_acquire("thrown", context(), thrown);
  let_go();
  EXPECT_EQ(thrown->error().code, ErrorCode::outcome_unknown);
}

TEST_F(TogetherTest, EachHasItsOwnDeadlineAndStop) {
  store.on_acquire = name_of_lock;
  std::stop_source stop;
  const RequestId stopped_request = RequestId::random(system_random());
  std::latch begun(1);
  std::latch answered(2);
  then = [&](std::span<const AnyAsked> batch) {
    for (const AnyAsked& one : batch) std::get<AskedAcquire*>(one)->begin();
    begun.count_down();
    answered.wait();
    for (const AnyAsked& one : batch) {
      auto* asked = std::get<AskedAcquire*>(one);
      asked->answer(name_of_lock(asked->call));
    }
  };
  std::optional<Result<AcquireReply>> short_of_time, stopped, patient;
  std::thread stopper;
  const auto acquire = [&](const std::string& name, CallContext limits, auto& answer,
                           RequestId who) {
    gather([&, name, limits, who] {
      store.acquire({LockName::parse(name).value(), who, OwnerLabel::parse("me").value(),
                     Ttl::of(30s).value()},
                    limits, [&](Result<AcquireReply> reply) {
                      answer = std::move(reply);
                      if (name != "patient") answered.count_down();
                    });
    });
  };
  const RequestId late = RequestId::random(system_random());
  acquire("short", {BootClock::now() + 150ms, {}}, short_of_time, late);
  acquire("stopped", context(stop.get_token()), stopped, stopped_request);
  acquire("patient", context(), patient, RequestId::random(system_random()));
  stopper = std::thread([&] {
    begun.wait();
    stop.request_stop();
  });
  let_go();
  stopper.join();
  EXPECT_EQ(
      to_string(short_of_time->error()),
      "outcome_unknown: told:somewhere: the time for it was over while waiting for an answer");
  EXPECT_EQ(to_string(stopped->error()),
            "outcome_unknown: told:somewhere: stop was requested while waiting for an answer");
  EXPECT_TRUE(store.doubts().doubts(late));
  EXPECT_TRUE(store.doubts().doubts(stopped_request));
  EXPECT_EQ(std::get<Busy>(patient->value()).ahead, "patient");
}

TEST_F(TogetherTest, WhatABatchLeavesIsNotBegunAfterItsTime) {
  std::atomic<int> done = 0;
  store.on_acquire = [&](const AcquireCall& call) {
    ++done;
    return name_of_lock(call);
  };
  then = [](std::span<const AnyAsked> batch) {
    while (!std::get<AskedAcquire*>(batch[0])->is_over()) std::this_thread::yield();
  };
  std::optional<Result<AcquireReply>> late;
  gather_acquire("late", {BootClock::now() + 20ms, {}}, late);
  let_go();
  EXPECT_EQ(late->error().code, ErrorCode::unavailable);
  EXPECT_EQ(done, 0);
}

TEST_F(TogetherTest, WhoIsStoppedBeforeItsBatchIsCancelledAndNotDone) {
  int done = 0;
  store.on_acquire = [&](const AcquireCall& call) {
    ++done;
    return name_of_lock(call);
  };
  std::stop_source stop;
  std::optional<Result<AcquireReply>> stopped;
  gather_acquire("stopped", context(stop.get_token()), stopped);
  stop.request_stop();
  let_go();
  EXPECT_EQ(stopped->error().code, ErrorCode::cancelled);
  EXPECT_EQ(done, 0);
}

TEST_F(TogetherTest, ABatchOfSeveralLastsAsLongAsAnybodyWaits) {
  store.on_acquire = name_of_lock;
  std::stop_source stop;
  const CallContext soon = context(stop.get_token());
  const CallContext late{soon.deadline + 5s, {}};
  std::optional<CallContext> limits;
  then = [&](std::span<const AnyAsked> batch) {
    limits = limits_of(batch);
    store.answer_each(batch);
  };
  std::optional<Result<AcquireReply>> first, second;
  gather_acquire("soon", soon, first);
  gather_acquire("late", late, second);
  let_go();
  EXPECT_EQ(limits->deadline, late.deadline);
  EXPECT_FALSE(limits->stop.stop_possible());
}

TEST_F(BlockingStoreTest, WhatAStoreDoesNotOfferIsUnsupported) {
  std::optional<Result<LockStatus>> status;
  store.inspect(lock(), context(), [&](auto reply) { status = std::move(reply); });
  EXPECT_EQ(status->error().code, ErrorCode::unsupported);
  EXPECT_EQ(store.once_records(), nullptr);
}

TEST_F(BlockingStoreTest, AcquireOfUnknownOutcomeIsInDoubtUntilItsReleaseIsDone) {
  using Answer = Result<AcquireReply>;
  const auto after = [&](std::function<Answer()> acquire) {
    store.on_acquire = [acquire = std::move(acquire)](const auto&) { return acquire(); };
    store.acquire({lock(), request, OwnerLabel::parse("me").value(), Ttl::of(30s).value()},
                  context(), [](const Answer&) {});
    return store.doubts().doubts(request);
  };
  EXPECT_FALSE(after([] { return Answer(Busy{}); }));
  EXPECT_FALSE(after([]() -> Answer { return fail(ErrorCode::unavailable, "not sent"); }));
  for (const auto& unknown :
       {std::function<Answer()>(
            []() -> Answer { return fail(ErrorCode::outcome_unknown, "no answer"); }),
        std::function<Answer()>([]() -> Answer { throw std::bad_alloc(); })}) {
    EXPECT_TRUE(after(unknown));
    fail_with(ErrorCode::unavailable);
    EXPECT_FALSE(release());
    EXPECT_TRUE(store.doubts().doubts(request));
    store.on_release = [](const auto&) { return ReleaseReply::not_held; };
    EXPECT_TRUE(release());
    EXPECT_FALSE(store.doubts().doubts(request));
  }
}

}  // namespace
}  // namespace leasehold
