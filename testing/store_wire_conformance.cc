#include "testing/store_wire_conformance.h"

#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <list>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>

#include "testing/one_in_time.h"

namespace leasehold::testing {

using namespace std::chrono_literals;
using ::testing::AnyOf;
using ::testing::Eq;

namespace {

constexpr rig::WireFault kFaults[] = {rig::WireFault::cut_before, rig::WireFault::cut_during,
                                      rig::WireFault::cut_after, rig::WireFault::lose_reply};

// What can come over a single call. Last the death of the server that has done it: a call that a
// store makes for the first time may need a round trip more.
struct CallFault {
  rig::WireFault wire;
  bool kills = false;

  bool done() const { return wire == rig::WireFault::lose_reply; }
  bool operator==(const CallFault&) const = default;
};
constexpr CallFault kCallFaults[] = {{rig::WireFault::cut_before},
                                     {rig::WireFault::cut_during},
                                     {rig::WireFault::cut_after},
                                     {rig::WireFault::lose_reply},
                                     {rig::WireFault::lose_reply, /*kills=*/true}};
std::string to_string(const CallFault& fault) {
  return fault.kills ? "the server dies" : rig::to_string(fault.wire);
}

// A fault, and the mode of the call that it comes over.
template <class Fault>
struct Trial {
  Fault fault;
  Mode mode = {};
};
template <class Fault>
std::string to_string(const Trial<Fault>& trial) {
  const std::string fault = to_string(trial.fault);
  return trial.mode.is_exclusive() ? fault : fault + ", " + leasehold::to_string(trial.mode);
}

// All faults come over exclusive calls. In other modes it is the loss of a reply: what they change
// is what the server has done by then. Its death comes over all of their calls together.
template <class Faults>
auto trials_of(const Faults& faults, const std::vector<Mode>& other_modes) {
  using Fault = std::decay_t<decltype(*std::begin(faults))>;
  std::vector<Trial<Fault>> trials;
  for (const Fault& fault : faults) {
    trials.push_back({fault});
    if (fault != Fault{rig::WireFault::lose_reply}) continue;
    for (const Mode mode : other_modes) trials.push_back({fault, mode});
  }
  return trials;
}

// Every trial gets a lock of its own, so that one cannot hide what another left behind.
template <class T>
std::string lock_for(const T& trial) {
  return "job " + to_string(trial);
}

// A store has no event for what another client did, so it is asked.
void wait_until(const std::function<bool()>& holds) {
  const BootTime late = BootClock::now() + 2min;
  while (!holds()) {
    if (BootClock::now() > late) throw std::runtime_error("what was waited for did not happen");
    std::this_thread::sleep_for(2ms);
  }
}

// A failure must say what is known, and where.
void expect_clear(const Error& error, bool done) {
  if (done) {
    EXPECT_EQ(error.code, ErrorCode::outcome_unknown) << to_string(error);
  } else {
    EXPECT_THAT(error.code, AnyOf(Eq(ErrorCode::outcome_unknown), Eq(ErrorCode::unavailable)))
        << to_string(error);
  }
  EXPECT_NE(error.address.find("127.0.0.1"), std::string::npos)
      << "the address is missing: " << to_string(error);
}

std::optional<LockStatus::Holder> holder_of(RawStore& direct, const RequestId& request) {
  const auto status = direct.inspect();
  if (!status) return std::nullopt;
  for (const auto& holder : status->holders) {
    if (holder.request == request) return holder;
  }
  return std::nullopt;
}

bool held_by(RawStore& direct, const RequestId& request) {
  return holder_of(direct, request).has_value();
}

using Holders = std::set<RequestId>;

bool held_by_exactly(RawStore& direct, const Holders& requests) {
  const auto status = direct.inspect();
  if (!status || !status->waiters.empty()) return false;
  Holders holders;
  for (const auto& holder : status->holders) holders.insert(holder.request);
  return holders == requests && status->holders.size() == requests.size();
}

bool is_free(RawStore& direct) {
  return held_by_exactly(direct, {});
}

// When the grant ends; long ago if there is none.
BootTime end_of_grant(RawStore& direct, const RequestId& request) {
  const auto holder = holder_of(direct, request);
  return holder ? BootClock::now() + holder->remaining : BootTime{};
}

bool is_granted(const Result<AcquireReply>& reply) {
  return reply && std::holds_alternative<Granted>(*reply);
}

// Somebody who holds the lock already, where the mode lets others in.
Holders stand_beside(RawStore& direct, Mode mode) {
  if (mode.is_exclusive()) return {};
  const RequestId request = new_request();
  EXPECT_TRUE(is_granted(direct.acquire_as(mode, request)));
  return {request};
}

Holders with(Holders holders, const RequestId& another) {
  holders.insert(another);
  return holders;
}

// That does not fit beside one, or beside two permits.
Mode rival_of(Mode mode) {
  return mode.is_permit() ? mode : Mode::exclusive();
}

// After a restart a connection may be lost once more, and a write with it.
void wait_until_it_writes(RawStore& store) {
  const RequestId request = new_request();
  wait_until([&] { return store.acquire_another(lock_name("another"), request).has_value(); });
}

// After the server's death what a store knows may be too little to tell for a while.
template <class Ask>
auto ask_until_told(Ask ask) {
  auto answer = ask();
  wait_until([&] {
    if (!answer) answer = ask();
    return answer.has_value();
  });
  return answer;
}

}  // namespace

void StoreWireConformance::arm(rig::WireFault fault, const rig::IsRequest& chosen) {
  for (rig::TcpProxy* proxy : server->proxies()) proxy->arm(fault, chosen);
}

void StoreWireConformance::wait_for_fault(rig::WireFault fault,
                                          const std::function<bool()>& went_through, bool kills) {
  for (rig::TcpProxy* proxy : server->proxies()) {
    EXPECT_TRUE(proxy->wait_for_fault(30s)) << "no request came: " << to_string(fault);
  }
  if (fault != rig::WireFault::lose_reply) return;
  wait_until(went_through);
  if (kills) server->kill();
  cut();
  if (kills) server->start();
}

template <class Call>
auto StoreWireConformance::with_fault(rig::WireFault fault, Call call,
                                      const std::function<bool()>& went_through, bool kills,
                                      const rig::IsRequest& chosen) {
  arm(fault, chosen);
  auto answer = std::async(std::launch::async, call);
  wait_for_fault(fault, went_through, kills);
  return answer.get();
}

template <class Call>
auto StoreWireConformance::leave_without_reply(Call call, const std::function<bool()>& went_through,
                                               const rig::IsRequest& chosen) {
  arm(rig::WireFault::lose_reply, chosen);
  auto answer = std::async(std::launch::async, std::move(call));
  for (rig::TcpProxy* proxy : server->proxies()) {
    EXPECT_TRUE(proxy->wait_for_fault(30s)) << "no request came";
  }
  wait_until(went_through);
  return answer;
}

std::size_t StoreWireConformance::round_trips() {
  std::size_t all = 0;
  for (rig::TcpProxy* proxy : server->proxies()) all += proxy->round_trips();
  return all;
}

void StoreWireConformance::cut() {
  for (rig::TcpProxy* proxy : server->proxies()) proxy->cut();
}
void StoreWireConformance::refuse(bool on) {
  for (rig::TcpProxy* proxy : server->proxies()) proxy->refuse(on);
}
void StoreWireConformance::hold(bool on) {
  for (rig::TcpProxy* proxy : server->proxies()) proxy->hold(on);
}
void StoreWireConformance::heal() {
  for (rig::TcpProxy* proxy : server->proxies()) {
    proxy->disarm();
    proxy->hold(false);
    proxy->refuse(false);
  }
}

// ---- one call, one fault -------------------------------------------------------------------

TEST_P(StoreWireConformance, AcquireSaysWhatIsKnownAndItsRetryIsTheSameGrant) {
  for (const auto& trial :
       trials_of(kCallFaults, if_it_has({Mode::shared(), Mode::permit_of(2)}))) {
    const auto& [fault, mode] = trial;
    SCOPED_TRACE(to_string(trial));
    RawStore faulty(server->open_through_proxies(), lock_for(trial), 30s);
    RawStore direct(server->open(), lock_for(trial), 30s);
    ASSERT_TRUE(faulty.inspect()) << "it is connected before the fault comes";
    const Holders beside = stand_beside(direct, mode);
    const RequestId request = new_request();
    const auto ask = [&, as = mode] { return faulty.acquire_as(as, request); };
    const auto first = with_fault(
        fault.wire, ask, [&] { return held_by(direct, request); }, fault.kills, takes(mode));
    if (fault.kills)
      for (RawStore* it : {&direct, &faulty}) wait_until_it_writes(*it);
    if (!first) expect_clear(first.error(), fault.done());

    const auto seen = holder_of(direct, request);
    const auto again = fault.kills ? ask_until_told(ask) : ask();
    ASSERT_TRUE(again) << to_string(again.error());
    ASSERT_TRUE(std::holds_alternative<Granted>(*again));
    EXPECT_TRUE(held_by_exactly(direct, with(beside, request)));
    const bool same = server->grants_outlive_restarts() || !fault.kills;
    // Where nobody else knows how long a grant lasts, a permit counts from when it is told.
    const bool since_told = mode.is_permit() && !server->tells_remaining();
    if (fault.done() && same && !since_told && server->grants_outlive_connections()) {
      EXPECT_FALSE(std::get<Granted>(*again).fresh)
          << "it counts from the call whose reply was lost";
    }
    if (!mode.is_exclusive()) {
      EXPECT_EQ(std::get<Granted>(*again).token, seen->token);
      EXPECT_EQ(std::get<Granted>(*again).slot, seen->slot);
    }
    if (first && same && server->grants_outlive_connections()) {
      EXPECT_EQ(std::get<Granted>(*first).token, std::get<Granted>(*again).token);
    }
    EXPECT_TRUE(
        std::holds_alternative<Busy>(direct.acquire_as(rival_of(mode), new_request()).value()));
    EXPECT_EQ(faulty.release(request), ReleaseReply::released);
    EXPECT_TRUE(held_by_exactly(direct, beside)) << "an orphan";
  }
}

// Of a store whose calls go together most of these are on their way in one batch.
TEST_P(StoreWireConformance, OfCallsAtTheSameTimeEachSaysWhatIsKnown) {
  constexpr std::size_t kCalls = 8;
  RawStore faulty(server->open_through_proxies(), "job", 30s);
  RawStore direct(server->open(), "job", 30s);
  ASSERT_TRUE(faulty.inspect()) << "it is connected before the fault comes";
  // Elsewhere a token may be another when it is told again.
  const bool counts = faulty.traits().one_counter && server->grants_outlive_connections();
  std::map<LockName, TokenNumber> last;
  for (const rig::WireFault fault : kFaults) {
    for (int round = 0; round < 3; ++round) {
      SCOPED_TRACE(rig::to_string(fault) + ", round " + std::to_string(round));
      std::vector<std::pair<LockName, RequestId>> asked;
      for (std::size_t i = 0; i < kCalls; ++i) {
        asked.emplace_back(lock_name("order " + std::to_string(i)), new_request());
      }
      arm(fault);
      std::vector<std::future<Result<AcquireReply>>> replies;
      for (const auto& it : asked) {
        replies.push_back(std::async(std::launch::async, [&faulty, it] {
          return faulty.acquire_another(it.first, it.second);
        }));
      }
      wait_for_fault(fault, [] { return true; });
      for (std::size_t i = 0; i < kCalls; ++i) {
        SCOPED_TRACE(asked[i].first.str());
        const auto first = replies[i].get();
        if (!first) expect_clear(first.error(), /*done=*/false);
        const auto ask = [&] { return faulty.acquire_another(asked[i].first, asked[i].second); };
        const auto again = ask_until_told(ask);
        ASSERT_TRUE(is_granted(again)) << "it holds its own lock, and nobody else's";
        const TokenNumber token = std::get<Granted>(*again).token;
        if (first && counts) {
          EXPECT_EQ(std::get<Granted>(*first).token, token);
        }
        if (const auto before = last.find(asked[i].first); counts && before != last.end()) {
          EXPECT_GT(token, before->second);
        }
        last.insert_or_assign(asked[i].first, token);
        const auto other = direct.acquire_another(asked[i].first, new_request());
        EXPECT_TRUE(other && std::holds_alternative<Busy>(*other));
      }
      arm(fault);
      std::vector<std::future<Result<ReleaseReply>>> releases;
      for (const auto& it : asked) {
        releases.push_back(std::async(std::launch::async, [&faulty, it] {
          return faulty.release_another(it.first, it.second);
        }));
      }
      wait_for_fault(fault, [] { return true; });
      for (std::size_t i = 0; i < kCalls; ++i) {
        SCOPED_TRACE(asked[i].first.str());
        const auto first = releases[i].get();
        if (!first) expect_clear(first.error(), /*done=*/false);
        if (first && server->grants_outlive_connections()) {
          EXPECT_EQ(*first, ReleaseReply::released);
        }
        (void)ask_until_told(
            [&] { return faulty.release_another(asked[i].first, asked[i].second); });
        const RequestId next = new_request();
        EXPECT_TRUE(is_granted(direct.acquire_another(asked[i].first, next))) << "an orphan";
        EXPECT_TRUE(direct.release_another(asked[i].first, next));
      }
    }
  }
}

// They share batches with callers who do not, and what was on its way for them is taken back.
TEST_P(StoreWireConformance, CallersThatGiveUpAtAnyTimeLeaveNothingBehind) {
  constexpr int kCallers = 12;
  constexpr int kLocks = 4;
  Client faulty = proxied_client();
  Client direct = direct_client();
  ASSERT_TRUE(faulty.inspect(lock_name("lock 0")));
  for (rig::TcpProxy* proxy : server->proxies()) proxy->delay(2ms);
  std::array<std::atomic<int>, kLocks> inside{};
  std::atomic<int> granted = 0;
  std::atomic<int> given_up = 0;
  const auto call = [&](int caller) {
    std::minstd_rand random(static_cast<unsigned>(caller + 1));
    for (int i = 0; i < 25; ++i) {
      const auto which = static_cast<std::size_t>(random() % kLocks);
      const bool is_patient = random() % 3 == 0;
      std::stop_source stop;
      AcquireOptions options{
          .ttl = 10min,
          .wait = Millis(random() % 40),
          .store_timeout = is_patient ? Millis(30'000) : Millis(1 + random() % 20)};
      if (random() % 4 == 0) options.stop = stop.get_token();
      auto asked = std::async(std::launch::async, [&] {
        return faulty.acquire(lock_name("lock " + std::to_string(which)), options);
      });
      if (options.stop.stop_possible()) {
        (void)asked.wait_for(std::chrono::milliseconds(random() % 10));
        stop.request_stop();
      }
      auto lease = asked.get();
      if (!lease) {
        ++given_up;
        continue;
      }
      ++granted;
      EXPECT_EQ(++inside[which], 1) << "two holders";
      --inside[which];
      if (random() % 2 == 0) (void)lease->release(Millis(1 + random() % 20));
    }
  };
  std::vector<std::jthread> callers;
  for (int i = 0; i < kCallers; ++i) callers.emplace_back(call, i);
  callers.clear();
  EXPECT_GT(granted, 0);
  EXPECT_GT(given_up, 0);
  for (rig::TcpProxy* proxy : server->proxies()) proxy->delay(0ms);
  for (int i = 0; i < kLocks; ++i) {
    const LockName lock = lock_name("lock " + std::to_string(i));
    wait_until([&] {
      const auto status = direct.inspect(lock);
      return status && status->holders.empty() && status->waiters.empty();
    });
  }
}

TEST_P(StoreWireConformance, RenewSaysWhatIsKnownAndNeverThatALivingGrantIsGone) {
  for (const auto& trial : trials_of(kCallFaults, if_it_has({Mode::permit_of(2)}))) {
    const CallFault& fault = trial.fault;
    SCOPED_TRACE(to_string(trial));
    RawStore faulty(server->open_through_proxies(), lock_for(trial), 30s);
    RawStore direct(server->open(), lock_for(trial), 30s);
    const Holders beside = stand_beside(direct, trial.mode);
    const RequestId request = new_request();
    ASSERT_TRUE(is_granted(faulty.acquire_as(trial.mode, request, false, 20s)));
    const bool shows = fault.done() && server->tells_remaining();
    const BootTime end = end_of_grant(direct, request);
    if (shows) wait_until([&] { return BootClock::now() + 18'800ms > end; });  // so that it shows
    const auto first = with_fault(
        fault.wire, [&] { return faulty.try_renew(request, 20s); },
        [&] { return !shows || end_of_grant(direct, request) > end + 1s; }, fault.kills);
    if (fault.kills)
      for (RawStore* it : {&direct, &faulty}) wait_until_it_writes(*it);
    if (!server->grants_outlive_connections()) {
      if (first) {
        EXPECT_EQ(first->at(0), RenewReply::gone);
      } else {
        expect_clear(first.error(), /*done=*/false);
      }
      wait_until([&] { return is_free(direct); });
      EXPECT_EQ(faulty.renew(request), RenewReply::gone);
      continue;
    }
    if (first) {
      EXPECT_EQ(first->at(0), RenewReply::renewed);
    } else {
      expect_clear(first.error(), /*done=*/false);
    }
    EXPECT_EQ(faulty.renew(request), RenewReply::renewed);
    EXPECT_TRUE(held_by_exactly(direct, with(beside, request)));
    EXPECT_EQ(faulty.release(request), ReleaseReply::released);
    EXPECT_TRUE(held_by_exactly(direct, beside));
  }
}

TEST_P(StoreWireConformance, ReleaseSaysWhatIsKnownAndFreesOnlyItsOwn) {
  for (const auto& trial :
       trials_of(kCallFaults, if_it_has({Mode::shared(), Mode::permit_of(2)}))) {
    const CallFault& fault = trial.fault;
    SCOPED_TRACE(to_string(trial));
    RawStore faulty(server->open_through_proxies(), lock_for(trial), 30s);
    RawStore direct(server->open(), lock_for(trial), 30s);
    const Holders beside = stand_beside(direct, trial.mode);
    const RequestId request = new_request();
    ASSERT_TRUE(is_granted(faulty.acquire_as(trial.mode, request)));
    const auto left = [&] { return !held_by(direct, request); };
    const auto first = with_fault(
        fault.wire, [&] { return faulty.try_release(request); }, left, fault.kills);
    if (fault.kills)
      for (RawStore* it : {&direct, &faulty}) wait_until_it_writes(*it);
    if (first) {
      EXPECT_EQ(*first, ReleaseReply::released) << "nobody else can have ended it";
    } else {
      expect_clear(first.error(), fault.done());
    }
    const auto again = faulty.try_release(request);
    ASSERT_TRUE(again) << to_string(again.error());
    wait_until(left);
    EXPECT_TRUE(held_by_exactly(direct, beside));

    const RequestId next = new_request();
    const auto ask = [&] { return direct.acquire_as(trial.mode, next); };
    const auto granted = fault.kills ? ask_until_told(ask) : ask();
    ASSERT_TRUE(granted) << to_string(granted.error());
    ASSERT_TRUE(std::holds_alternative<Granted>(*granted));
    ASSERT_TRUE(faulty.try_release(request));
    EXPECT_TRUE(held_by_exactly(direct, with(beside, next)))
        << "a late release ended its successor";
    EXPECT_TRUE(std::holds_alternative<Busy>(
        direct.acquire_as(rival_of(trial.mode), new_request()).value()))
        << "a late release gave its successor's place away";
    EXPECT_EQ(direct.release(next), ReleaseReply::released);
  }
}

TEST_P(StoreWireConformance, KeptLockStaysTakenThoughNobodyWasTold) {
  RawStore faulty(server->open_through_proxies(), "job", 30s);
  if (!faulty.traits().keeps_after_release) return;  // nothing promised
  RawStore direct(server->open(), "job", 30s);
  const RequestId request = new_request();
  ASSERT_TRUE(faulty.acquire(request, 4s));
  const auto kept = [&] {
    const auto status = direct.inspect();
    return status && status->holder() && status->holder()->request == request &&
           status->holder()->kept;
  };
  const auto told = with_fault(
      rig::WireFault::lose_reply, [&] { return faulty.try_release(request, 60s); }, kept);
  if (!told) expect_clear(told.error(), /*done=*/true);
  // The grant's own time, and what its store needs to end what is over.
  const BootTime late = BootClock::now() + 4s + 3s;
  wait_until([&] { return !kept() || BootClock::now() > late; });
  EXPECT_TRUE(kept()) << "its own store has ended it";
}

TEST_P(StoreWireConformance, ForceReleaseSaysWhatIsKnownAndNeverHitsTheSuccessor) {
  for (const auto& trial : trials_of(kCallFaults, if_it_has({Mode::permit_of(2)}))) {
    const CallFault& fault = trial.fault;
    SCOPED_TRACE(to_string(trial));
    RawStore faulty(server->open_through_proxies(), lock_for(trial), 30s);
    RawStore direct(server->open(), lock_for(trial), 30s);
    ASSERT_TRUE(faulty.inspect());
    const Holders beside = stand_beside(direct, trial.mode);
    const RequestId seen = new_request();
    ASSERT_TRUE(is_granted(direct.acquire_as(trial.mode, seen)));
    const auto first = with_fault(
        fault.wire, [&] { return faulty.force_release(seen); },
        [&] { return !held_by(direct, seen); }, fault.kills);
    if (fault.kills)
      for (RawStore* it : {&direct, &faulty}) wait_until_it_writes(*it);
    if (first) {
      EXPECT_EQ(*first, ReleaseReply::released);
    } else {
      expect_clear(first.error(), fault.done());
    }
    const auto again = faulty.force_release(seen);
    ASSERT_TRUE(again) << to_string(again.error());
    wait_until([&] { return !held_by(direct, seen); });
    EXPECT_TRUE(held_by_exactly(direct, beside));

    const RequestId successor = new_request();
    const auto ask = [&] { return direct.acquire_as(trial.mode, successor); };
    const auto granted = fault.kills ? ask_until_told(ask) : ask();
    ASSERT_TRUE(granted) << to_string(granted.error());
    ASSERT_TRUE(std::holds_alternative<Granted>(*granted));
    const auto late = faulty.force_release(seen);
    ASSERT_TRUE(late) << to_string(late.error());
    EXPECT_EQ(*late, ReleaseReply::not_held);
    EXPECT_TRUE(held_by_exactly(direct, with(beside, successor)));
    EXPECT_EQ(direct.release(successor), ReleaseReply::released);
  }
}

// One death for all of them, since a start takes its time.
TEST_P(StoreWireConformance, DeathOfTheServerInTheMiddleOfCallsKeepsReadersAndPermits) {
  struct Crowd {
    Crowd(ServerUnderTest& server, Mode as)
        : mode(as),
          direct(server.open(), to_string(mode), 30s),
          acquires(server.open_through_proxies(), to_string(mode), 30s),
          renews(server.open_through_proxies(), to_string(mode), 30s),
          releases(server.open_through_proxies(), to_string(mode), 30s),
          forces(server.open_through_proxies(), to_string(mode), 30s) {}

    std::map<RequestId, std::optional<Slot>> slots() {
      std::map<RequestId, std::optional<Slot>> all;
      const LockStatus status = direct.inspect().value();
      for (const auto& holder : status.holders) all.emplace(holder.request, holder.slot);
      return all;
    }

    const Mode mode;
    RawStore direct;
    RawStore acquires;
    RawStore renews;
    RawStore releases;
    RawStore forces;
    const RequestId beside = new_request();
    const RequestId forced = new_request();
    const RequestId released = new_request();
    const RequestId renewed = new_request();
    const RequestId acquired = new_request();
    std::map<RequestId, std::optional<Slot>> before_death = {};
    std::future<Result<AcquireReply>> acquire = {};
    std::future<Result<std::vector<RenewReply>>> renewal = {};
    std::future<Result<ReleaseReply>> release = {};
    std::future<Result<ReleaseReply>> force = {};
  };
  const auto modes = if_it_has({Mode::shared(), Mode::permit_of(5)});
  std::list<Crowd> crowds;
  if (modes.empty()) return;  // nothing promised
  for (const Mode mode : modes) {
    Crowd& it = crowds.emplace_back(*server, mode);
    ASSERT_TRUE(it.acquires.inspect() && it.forces.inspect()) << "they are connected before";
    // A server that has not met a script yet says so first, and that reply would be the lost one.
    const RequestId before = new_request();
    ASSERT_TRUE(is_granted(it.direct.acquire_as(mode, before)));
    ASSERT_EQ(it.direct.renew(before), RenewReply::renewed);
    ASSERT_EQ(it.direct.release(before), ReleaseReply::released);
    ASSERT_TRUE(it.direct.force_release(before));
    ASSERT_TRUE(is_granted(it.direct.acquire_as(mode, it.beside)));
    ASSERT_TRUE(is_granted(it.direct.acquire_as(mode, it.forced)));
    ASSERT_TRUE(is_granted(it.releases.acquire_as(mode, it.released)));
    ASSERT_TRUE(is_granted(it.renews.acquire_as(mode, it.renewed)));
    it.acquire =
        leave_without_reply([&it] { return it.acquires.acquire_as(it.mode, it.acquired); },
                            [&it] { return held_by(it.direct, it.acquired); }, takes(mode));
    it.renewal =
        leave_without_reply([&it] { return it.renews.try_renew(it.renewed); }, [] { return true; });
    it.release = leave_without_reply([&it] { return it.releases.try_release(it.released); },
                                     [&it] { return !held_by(it.direct, it.released); });
    it.force = leave_without_reply([&it] { return it.forces.force_release(it.forced); },
                                   [&it] { return !held_by(it.direct, it.forced); });
    it.before_death = it.slots();
    ASSERT_EQ(it.before_death.size(), 3u);
  }
  server->kill();
  cut();
  server->start();
  std::vector<std::future<void>> connecting;  // which may take its time, so all at once
  for (Crowd& it : crowds) {
    for (RawStore* raw : {&it.direct, &it.acquires, &it.renews, &it.releases, &it.forces}) {
      connecting.push_back(std::async(std::launch::async, [raw] { wait_until_it_writes(*raw); }));
    }
  }
  for (std::future<void>& it : connecting) it.get();
  for (Crowd& it : crowds) {
    SCOPED_TRACE(to_string(it.mode));
    if (const auto told = it.acquire.get(); !told) expect_clear(told.error(), /*done=*/true);
    if (const auto told = it.renewal.get(); !told) expect_clear(told.error(), /*done=*/false);
    if (const auto told = it.release.get(); !told) expect_clear(told.error(), /*done=*/true);
    if (const auto told = it.force.get(); !told) expect_clear(told.error(), /*done=*/true);

    const auto again =
        ask_until_told([&it] { return it.acquires.acquire_as(it.mode, it.acquired); });
    ASSERT_TRUE(is_granted(again)) << "it has its place";
    ASSERT_TRUE(ask_until_told([&it] { return it.releases.try_release(it.released); }));
    ASSERT_TRUE(ask_until_told([&it] { return it.forces.force_release(it.forced); }));
    if (server->grants_outlive_restarts()) {
      EXPECT_EQ(it.renews.renew(it.renewed), RenewReply::renewed);
      EXPECT_EQ(it.slots(), it.before_death);
      EXPECT_EQ(std::get<Granted>(*again).slot, it.before_death.at(it.acquired));
    }
    EXPECT_FALSE(held_by(it.direct, it.released));
    EXPECT_FALSE(held_by(it.direct, it.forced));
    std::set<std::optional<Slot>> given;
    for (const auto& [request, slot] : it.slots()) {
      EXPECT_TRUE(given.insert(slot).second || !it.mode.is_permit()) << "given twice";
    }
    EXPECT_FALSE(is_granted(it.direct.acquire(new_request()))) << "a writer beside them";
  }
}

// ---- a client, which retries ---------------------------------------------------------------

TEST_P(StoreWireConformance, ClientGetsTheLockDespiteEachFault) {
  for (const rig::WireFault fault : kFaults) {
    SCOPED_TRACE(to_string(fault));
    Client faulty = proxied_client();
    RawStore direct(server->open(), lock_for(fault));
    ASSERT_TRUE(faulty.inspect(lock_name(lock_for(fault))));
    auto lease = with_fault(
        fault, [&] { return faulty.acquire(lock_for(fault), {.store_timeout = 30s}); },
        [&] { return direct.inspect().value().holder().has_value(); });
    ASSERT_TRUE(lease) << to_string(lease.error());
    EXPECT_TRUE(held_by(direct, lease->request()));
    EXPECT_TRUE(std::holds_alternative<Busy>(direct.acquire(new_request()).value()));

    const auto outcome = with_fault(
        fault, [&] { return lease->release(); }, [&] { return is_free(direct); });
    const bool honest = outcome ? *outcome == ReleaseOutcome::released
                                : outcome.error().code == ErrorCode::outcome_unknown;
    EXPECT_TRUE(honest);
    EXPECT_TRUE(is_free(direct)) << "an orphan";
  }
}

TEST_P(StoreWireConformance, LeaseOutlivesEachFaultOfItsRenewal) {
  if (!server->grants_outlive_connections()) return;  // told by LeaseEndsWithItsConnection
  for (const rig::WireFault fault : kFaults) {
    SCOPED_TRACE(to_string(fault));
    Client faulty = proxied_client();
    RawStore direct(server->open(), lock_for(fault));
    auto lease = faulty.acquire(lock_for(fault), {.ttl = 6s});
    ASSERT_TRUE(lease) << to_string(lease.error());
    arm(fault);
    wait_for_fault(fault, [] { return true; });
    const BootTime before = lease->deadline();
    wait_until([&] { return lease->deadline() > before || lease->state() == LeaseState::lost; });
    EXPECT_EQ(lease->state(), LeaseState::held);
    EXPECT_TRUE(held_by(direct, lease->request()));
    EXPECT_EQ(lease->release().value(), ReleaseOutcome::released);
  }
}

TEST_P(StoreWireConformance, LeaseEndsWithItsConnection) {
  if (server->grants_outlive_connections()) return;  // told by LeaseOutlivesEachFault…
  Client faulty = proxied_client();
  RawStore direct(server->open());
  auto lease = faulty.acquire("job", {.ttl = 30s});
  ASSERT_TRUE(lease) << to_string(lease.error());
  cut();
  wait_until([&] { return lease->state() == LeaseState::lost; });
  EXPECT_EQ(lease->release().value(), ReleaseOutcome::too_late);
  wait_until([&] { return is_free(direct); });
  EXPECT_TRUE(faulty.acquire("job", {.store_timeout = 30s}));
}

TEST_P(StoreWireConformance, WaiterGetsItsTurnDespiteEachFault) {
  for (const auto& trial : trials_of(kFaults, if_it_has({Mode::shared(), Mode::permit_of(2)}))) {
    const auto& [fault, mode] = trial;
    SCOPED_TRACE(to_string(trial));
    RawStore direct(server->open(), lock_for(trial));
    const bool permits = mode.is_permit();
    const Holders beside = permits ? stand_beside(direct, mode) : Holders();
    const RequestId holder = new_request();
    ASSERT_TRUE(is_granted(direct.acquire_as(rival_of(mode), holder, false, 60s)));
    Client faulty = proxied_client();
    ASSERT_TRUE(faulty.inspect(lock_name(lock_for(trial))));
    const bool queues = direct.traits().queues;
    const auto waits = [&] { return !queues || direct.inspect().value().waiters.size() == 1; };

    arm(fault);  // when it takes its place
    auto waiting = std::async(std::launch::async, [&, lock = lock_for(trial), as = mode] {
      return faulty.acquire(lock, {.wait = 60s, .store_timeout = 30s, .mode = as});
    });
    const auto looks = BootClock::now() + 500ms;  // a permit's first request may be a look
    wait_for_fault(fault, [&] { return waits() || (permits && BootClock::now() > looks); });
    wait_until(waits);
    const std::size_t before = round_trips();
    cut();                                       // while it waits
    const auto soon = BootClock::now() + 500ms;  // some need no request to wait on
    wait_until([&] { return round_trips() > before || BootClock::now() > soon; });
    wait_until(waits);
    arm(fault, takes(mode));  // when its turn has come
    EXPECT_EQ(direct.release(holder), ReleaseReply::released);
    const auto patience =
        BootClock::now() + 2s;  // it may have been another request of the waiter's
    wait_for_fault(fault, [&] {
      return direct.inspect().value().holders.size() > beside.size() || BootClock::now() > patience;
    });
    const auto lease = waiting.get();
    ASSERT_TRUE(lease) << to_string(lease.error());
    // A fault that nobody has met before may yet cut the connection that keeps the lock.
    const bool may_end = !server->grants_outlive_connections();
    wait_until([&] {
      return held_by(direct, lease->request()) || (may_end && lease->state() == LeaseState::lost);
    });
    EXPECT_TRUE(may_end || held_by_exactly(direct, with(beside, lease->request())));
    EXPECT_TRUE(direct.inspect().value().waiters.empty());
  }
}

TEST_P(StoreWireConformance, AbandonedAcquireIsGivenBackWhenTheWireIsBack) {
  Client faulty = proxied_client();
  RawStore direct(server->open());
  ASSERT_TRUE(faulty.inspect(lock_name("job")));
  arm(rig::WireFault::lose_reply);
  auto answer = std::async(std::launch::async,
                           [&] { return faulty.acquire("job", {.ttl = 1h, .store_timeout = 2s}); });
  wait_for_fault(rig::WireFault::lose_reply, [&] {
    if (!direct.inspect().value().holder()) return false;
    refuse(true);
    return true;
  });
  const auto abandoned = answer.get();
  ASSERT_FALSE(abandoned);
  EXPECT_EQ(abandoned.error().code, ErrorCode::outcome_unknown) << to_string(abandoned.error());
  refuse(false);
  wait_until([&] { return is_free(direct); });  // long before its hour is over
}

// ---- a network that hangs, a server that dies ----------------------------------------------

TEST_P(StoreWireConformance, HangingNetworkEndsACallAtItsDeadline) {
  Client faulty = proxied_client();
  RawStore direct(server->open());
  ASSERT_TRUE(faulty.inspect(lock_name("job")));
  hold(true);
  EXPECT_TRUE(one_ends_in_time(4s, [&] {
    const auto hung = faulty.acquire("job", {.ttl = 1h, .store_timeout = 300ms});
    ASSERT_FALSE(hung);
    expect_clear(hung.error(), /*done=*/false);
  })) << "the usual time is five seconds";
  hold(false);
  // What was sent may still be granted now; it is given back long before its hour is over.
  auto lease = faulty.acquire("job", {.wait = 60s, .store_timeout = 30s});
  ASSERT_TRUE(lease) << to_string(lease.error());
  EXPECT_TRUE(held_by(direct, lease->request()));
}

TEST_P(StoreWireConformance, HangingNetworkEndsEveryCallAtItsDeadline) {
  RawStore faulty(server->open_through_proxies(), "job", 1s);
  const RequestId held = new_request();
  ASSERT_TRUE(faulty.acquire(held));
  hold(true);
  const auto expect_an_end = [](const char* what, auto call) {
    const BootTime began = BootClock::now();
    const auto reply = call();
    EXPECT_LT(BootClock::now() - began, 30s) << what;
    ASSERT_FALSE(reply) << what;
    expect_clear(reply.error(), /*done=*/false);
  };
  expect_an_end("renew", [&] { return faulty.try_renew(held); });
  expect_an_end("release", [&] { return faulty.try_release(held); });
  expect_an_end("force-release", [&] { return faulty.force_release(held); });
  expect_an_end("inspect", [&] { return faulty.inspect(); });
  hold(false);
}

TEST_P(StoreWireConformance, HangingNetworkCanBeLeftByStopToken) {
  Client faulty = proxied_client();
  ASSERT_TRUE(faulty.inspect(lock_name("job")));
  hold(true);
  std::stop_source stop;
  auto answer = std::async(std::launch::async, [&] {
    return faulty.acquire("job", {.store_timeout = 10min, .stop = stop.get_token()});
  });
  stop.request_stop();
  const auto left = answer.get();
  ASSERT_FALSE(left);
  EXPECT_THAT(left.error().code, AnyOf(Eq(ErrorCode::cancelled), Eq(ErrorCode::outcome_unknown)));
  hold(false);
}

TEST_P(StoreWireConformance, LeaseIsUncertainThenLostWhileTheServerIsUnreachable) {
  Client faulty = proxied_client();
  auto lease = faulty.acquire("job", {.ttl = 3s});
  ASSERT_TRUE(lease) << to_string(lease.error());
  refuse(true);
  std::promise<BootTime> told;
  const std::stop_callback on_loss(lease->lost(), [&] { told.set_value(BootClock::now()); });
  if (server->grants_outlive_connections()) {
    wait_until([&] { return lease->state() != LeaseState::held; });
    EXPECT_EQ(lease->state(), LeaseState::uncertain);
  }
  EXPECT_LE(told.get_future().get(), lease->deadline() + 3s);
  EXPECT_EQ(lease->state(), LeaseState::lost);
  refuse(false);
  EXPECT_TRUE(faulty.acquire("job", {.wait = 60s, .store_timeout = 30s})) << "it recovers";
}

TEST_P(StoreWireConformance, EverythingRecoversAfterARestartOfTheServer) {
  Client faulty = proxied_client();
  RawStore direct(server->open());
  auto lease = faulty.acquire("job", {.ttl = 60s});
  ASSERT_TRUE(lease) << to_string(lease.error());
  auto waiting = std::async(std::launch::async, [&] {
    return faulty.acquire("job", {.wait = 5min, .store_timeout = 60s});
  });
  if (direct.traits().queues) {
    wait_until([&] { return direct.inspect().value().waiters.size() == 1; });
  }

  server->kill();
  const auto down = faulty.acquire("another", {.store_timeout = 500ms});
  ASSERT_FALSE(down);
  expect_clear(down.error(), /*done=*/false);
  server->start();

  if (server->grants_outlive_connections()) {
    wait_until([&] { return direct.inspect().has_value(); });
    EXPECT_TRUE(held_by(direct, lease->request())) << "honoured";
    EXPECT_NE(lease->state(), LeaseState::lost);
    const auto outcome = lease->release(30s);
    EXPECT_TRUE(outcome && *outcome == ReleaseOutcome::released);
  }
  const auto next = waiting.get();
  ASSERT_TRUE(next) << to_string(next.error());
  EXPECT_NE(lease->state(), LeaseState::held) << "two holders";
  EXPECT_TRUE(held_by(direct, next->request()));
  EXPECT_TRUE(faulty.acquire("another", {.wait = 30s, .store_timeout = 30s}));
}

}  // namespace leasehold::testing
