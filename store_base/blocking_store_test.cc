#include "store_base/blocking_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <future>
#include <latch>
#include <stdexcept>
#include <thread>

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
  ToldStore() { traits_.address = kAddress; }
  ~ToldStore() override { close(); }

  const StoreTraits& traits() const override { return traits_; }

  using BlockingStore::doubts;

  std::function<Result<AcquireReply>()> on_acquire = [] { return Busy{"somebody"}; };
  std::function<Result<ReleaseReply>(const CallContext&)> on_release = [](const auto&) {
    return ReleaseReply::released;
  };
  std::function<void(std::span<const AnyAsked>)> on_batch;
  std::function<void()> on_close = [] {};
  int asked = 0;
  int closed = 0;

 private:
  void answer(std::span<const AnyAsked> batch) override {
    if (on_batch) return on_batch(batch);
    BlockingStore::answer(batch);
  }
  Result<AcquireReply> do_acquire(const AcquireCall&, const CallContext&) override {
    return on_acquire();
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

bool sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string number, name, state;
  file >> number >> name >> state;
  return state == "S";
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
      while (!returned && !sleeps(closer)) std::this_thread::yield();
      EXPECT_FALSE(returned);
    });
  });
  inside.wait();
  store.close();
  returned = true;
  caller.join();
}

TEST_F(BlockingStoreTest, StoreThatThrowsOrForgetsACallIsAnUnknownOutcome) {
  store.on_release = [](const auto&) -> Result<ReleaseReply> {
    throw std::runtime_error("broken");
  };
  EXPECT_EQ(to_string(release().error()),
            "outcome_unknown: told:somewhere: the store failed unexpectedly (broken)");
  store.on_batch = [](const auto&) {};
  EXPECT_EQ(release().error().code, ErrorCode::outcome_unknown);
}

TEST_F(BlockingStoreTest, BatchHasEachCallWithItsContextAndTakesAReplyForIt) {
  const CallContext limits = context();
  store.on_batch = [&](std::span<const AnyAsked> batch) {
    ASSERT_EQ(batch.size(), 1u);
    auto* asked = std::get<Asked<ReleaseCall, ReleaseReply>*>(batch[0]);
    EXPECT_EQ(asked->call.lock, lock());
    EXPECT_EQ(asked->context.deadline, limits.deadline);
    asked->reply = ReleaseReply::not_held;
  };
  EXPECT_EQ(release(limits).value(), ReleaseReply::not_held);
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
    store.on_acquire = std::move(acquire);
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
