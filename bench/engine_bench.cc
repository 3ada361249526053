// What Leasehold itself costs: acquire + release on a store that does nothing. Once it answers at
// once, again and again; once it takes a millisecond, and many other threads come meanwhile, as
// with a server: then little of what is needed is still in the processor's caches. And a reentrant
// lock that is taken again while it is held.
//
//   engine_bench [--quick]
#include <time.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/report.h"
#include "leasehold/client.h"
#include "leasehold/reentrant_lock.h"
#include "rig/counted_allocations.h"
#include "store_base/blocking_store.h"

namespace {

using namespace leasehold;
using namespace leasehold::bench;
using namespace std::chrono_literals;

constexpr int kPairsInATurn = 10'000;
constexpr int kThreads = 50;
constexpr auto kTurn = 200ms;
constexpr auto kCallToAServer = 1ms;

StoreTraits traits_of_willing() {
  StoreTraits traits;
  traits.address = "willing:";
  traits.guarantee = Guarantee::correctness;
  return traits;
}

// Grants and releases whatever it is asked to, after a time.
class WillingStore final : public BlockingStore {
 public:
  explicit WillingStore(Millis answers_after) : answers_after_(answers_after) {}
  ~WillingStore() override { close(); }
  const StoreTraits& traits() const override { return traits_; }

 private:
  Result<AcquireReply> do_acquire(const AcquireCall& call, const CallContext&) override {
    take_time();
    return Granted{must(TokenNumber::of(++last_token_)), id_, call.ttl.length(), /*fresh=*/true};
  }
  Result<std::vector<RenewReply>> do_renew(const std::vector<RenewCall>& calls,
                                           const CallContext&) override {
    return std::vector(calls.size(), RenewReply::renewed);
  }
  Result<ReleaseReply> do_release(const ReleaseCall&, const CallContext&) override {
    take_time();
    return ReleaseReply::released;
  }
  void do_close() override {}

  void take_time() const {
    if (answers_after_ > 0ms) std::this_thread::sleep_for(answers_after_);
  }

  const Millis answers_after_;
  const StoreTraits traits_ = traits_of_willing();
  const StoreId id_ = StoreId::random(system_random());
  std::atomic<std::int64_t> last_token_ = 0;
};

// A client, and what one of its threads does again and again.
class Pairs {
 public:
  explicit Pairs(Millis answers_after) : client_(std::make_unique<WillingStore>(answers_after)) {}

  std::function<void()> with_lock_of(int thread) {
    const std::string name = "tenant-17/invoice/2026000" + std::to_string(thread);
    return [this, lock = must(LockName::parse(name))] {
      auto lease = must(client_.acquire(lock));
      if (must(lease.release()) != ReleaseOutcome::released) stop("a lease was lost");
    };
  }

 private:
  Client client_;
};

double microseconds_on(clockid_t clock) {
  timespec used{};
  clock_gettime(clock, &used);
  return static_cast<double>(used.tv_sec) * 1e6 + static_cast<double>(used.tv_nsec) * 1e-3;
}

template <class Counter>
double of_each(const std::function<void()>& pair, Counter counter) {
  const auto before = counter();
  for (int i = 0; i < kPairsInATurn; ++i) pair();
  return static_cast<double>(counter() - before) / kPairsInATurn;
}

double microseconds_of_each(const std::function<void()>& pair) {
  return of_each(pair, [] { return microseconds_on(CLOCK_THREAD_CPUTIME_ID); });
}

// Of this process, while many threads do it.
double microseconds_of_each(const std::function<std::function<void()>(int thread)>& work) {
  std::atomic<bool> over = false;
  std::atomic<long> done = 0;
  const double before = microseconds_on(CLOCK_PROCESS_CPUTIME_ID);
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, pair = work(i)] {
      for (; !over; ++done) pair();
    });
  }
  std::this_thread::sleep_for(kTurn);
  over = true;
  threads.clear();
  return (microseconds_on(CLOCK_PROCESS_CPUTIME_ID) - before) / static_cast<double>(done);
}

void report_time(const std::string& what, std::vector<double> turns) {
  const double median = percentile(turns, 0.5);
  report({what, format(median, "%.2f us"), "<= 5 us", median <= 5});
}

void again_and_again(int turns) {
  Pairs pairs(0ms);
  const auto pair = pairs.with_lock_of(0);
  std::vector<double> each;
  for (int i = 0; i < turns; ++i) each.push_back(microseconds_of_each(pair));
  report_time("Leasehold itself, acquire + release: processor time", each);
  const double allocations = of_each(pair, rig::allocations_of_this_thread);
  report({"Leasehold itself, acquire + release: allocations", format(allocations, "%.1f"), "<= 2",
          std::lround(allocations) <= 2});
}

void between_others(int turns) {
  Pairs pairs(kCallToAServer);
  const auto sleeps_alone = [](int) {
    return [] {
      std::this_thread::sleep_for(kCallToAServer);
      std::this_thread::sleep_for(kCallToAServer);
    };
  };
  std::vector<double> each;
  for (int i = 0; i < turns; ++i) {
    const double whole =
        microseconds_of_each([&](int thread) { return pairs.with_lock_of(thread); });
    each.push_back(whole - microseconds_of_each(sleeps_alone));
  }
  report_time("the same, 50 in flight at a store that takes 1 ms", each);
}

void taken_again(int turns) {
  ReentrantLock lock(Client(std::make_unique<WillingStore>(0ms)), must(LockName::parse("ledger")));
  const auto held = must(lock.acquire());
  std::vector<double> each;
  for (int i = 0; i < turns; ++i)
    each.push_back(microseconds_of_each([&] { must(lock.acquire()); }));
  const double median = percentile(each, 0.5) * 1e3;
  report({"a reentrant lock, taken again and given back", format(median, "%.0f ns"), "<= 100 ns",
          median <= 100});
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  again_and_again(quick ? 20 : 100);
  between_others(quick ? 5 : 25);
  taken_again(quick ? 20 : 100);
  return 0;
}
