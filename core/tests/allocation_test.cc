// An acquire and a release that nobody disturbs ask for no memory but the lease's own.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stop_token>
#include <vector>

#include "leasehold/client.h"
#include "rig/counted_allocations.h"

namespace leasehold {
namespace {

constexpr std::size_t kOfALease = 2;  // what is known of it, and whom to tell of its loss
constexpr std::size_t kPairs = 100;

class WillingStore final : public Store {
 public:
  const StoreTraits& traits() const override { return traits_; }
  void start(StoreEvents&) override {}
  void close() override {}
  void acquire(AcquireCall call, CallContext, Completion<AcquireReply> done) override {
    done(Granted{TokenNumber::of(1).value(), id_, call.ttl.length(), /*fresh=*/true});
  }
  void renew(std::vector<RenewCall> calls, CallContext,
             Completion<std::vector<RenewReply>> done) override {
    done(std::vector(calls.size(), RenewReply::renewed));
  }
  void release(ReleaseCall, CallContext, Completion<ReleaseReply> done) override {
    done(ReleaseReply::released);
  }

 private:
  StoreTraits traits_;
  const StoreId id_ = StoreId::random(system_random());
};

class AllocationTest : public ::testing::Test {
 protected:
  template <class Pair>
  static std::size_t of_many(Pair pair) {
    pair();  // the first one fills what the others use again
    const std::size_t before = rig::allocations_of_this_thread();
    for (std::size_t i = 0; i < kPairs; ++i) pair();
    return rig::allocations_of_this_thread() - before;
  }

  const LockName lock = LockName::parse("a name too long to be kept in a string itself").value();
  Client client{std::make_unique<WillingStore>()};
};

TEST_F(AllocationTest, PairAsksForTheLeaseAlone) {
  EXPECT_LE(of_many([&] { ASSERT_TRUE(client.acquire(lock)->release()); }), kPairs * kOfALease);
}

TEST_F(AllocationTest, HeldLeasesAddNothing) {
  std::vector<Lease> held;
  for (int i = 0; i < 1000; ++i) held.push_back(client.acquire(lock).value());
  EXPECT_LE(of_many([&] { ASSERT_TRUE(client.acquire(lock)->release()); }), kPairs * kOfALease);
}

TEST_F(AllocationTest, CallersStopTokenAddsNothing) {
  const std::stop_source stop;
  const auto pair = [&] {
    auto lease = client.acquire(lock, {.stop = stop.get_token()});
    ASSERT_TRUE(lease->release(std::chrono::seconds(5), stop.get_token()));
  };
  EXPECT_LE(of_many(pair), kPairs * kOfALease);
}

}  // namespace
}  // namespace leasehold
