// What only etcd has: shared leases, other programs on the same lock, watches, logins, TLS.
#include <gmock/gmock.h>
#include <signal.h>

#include <future>
#include <thread>

#include "etcd_under_test.h"
#include "leasehold/client.h"
#include "leasehold/process/child.h"
#include "rig/certificates.h"
#include "testing/raw_store.h"
#include "testing/results.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class EtcdTest : public ::testing::Test {
 protected:
  Client client() { return Client(etcd.open()); }
  Client proxied_client() { return Client(etcd.open_through_proxies()); }
  rig::TcpProxy& proxy() { return *etcd.proxies().front(); }
  void wait_for_waiters(Client& client, const std::string& lock, std::size_t count) {
    while (client.inspect(lock_name(lock)).value().waiters.size() != count) {
      std::this_thread::sleep_for(1ms);
    }
  }
  std::size_t leases_at_the_server() {
    const std::string list = etcd.server().ctl({"lease", "list"}).out;
    return static_cast<std::size_t>(std::count(list.begin(), list.end(), '\n')) - 1;
  }
  // Of the one key there, as etcdctl writes it.
  std::string lease_of(const std::string& lock, const std::string& request = "") {
    const std::string place = etcd.prefix() + "/" + lock + "/" + request;
    const std::string key = etcd.server().ctl({"get", "--prefix", place, "-w", "fields"}).out;
    const std::size_t at = key.find("\"Lease\" : ");
    if (at == std::string::npos) throw std::runtime_error("no such key: " + key);
    char hex[32];
    std::snprintf(hex, sizeof hex, "%llx", std::stoull(key.substr(at + 10)));
    return hex;
  }
  void revoke(const std::string& lease) {
    ASSERT_EQ(etcd.server().ctl({"lease", "revoke", lease}).status, 0);
  }

  EtcdUnderTest etcd;
};

// ---- one lease for many locks --------------------------------------------------------------

TEST_F(EtcdTest, AllLocksOfAClientShareALease) {
  Client one = client();
  const std::size_t before = leases_at_the_server();
  std::vector<Lease> leases;
  for (int i = 0; i < 20; ++i) {
    leases.push_back(std::move(one.acquire("job " + std::to_string(i), {.ttl = 47s}).value()));
  }
  EXPECT_EQ(leases_at_the_server(), before + 1);
}

TEST_F(EtcdTest, WhoHasNoTimeForTheLeaseLeavesItToThoseWhoHave) {
  const std::shared_ptr<Store> store = etcd.open_through_proxies();
  SeenEvents events;
  store->start(events);
  const auto acquire = [&](const std::string& lock, Millis time) {
    auto answer = std::make_shared<std::promise<Result<AcquireReply>>>();
    store->acquire(
        {lock_name(lock), new_request(), default_owner_label(), Ttl::of(51s).value(), false},
        {BootClock::now() + time, {}},
        [answer](Result<AcquireReply> reply) { answer->set_value(std::move(reply)); });
    return answer->get_future();
  };
  proxy().hold(true);
  auto first = acquire("first", 300ms);
  auto patient = acquire("patient", 1h);
  EXPECT_TRUE(bad(first.get(), ErrorCode::unavailable));
  auto last = acquire("last", 300ms);
  EXPECT_EQ(last.wait_for(20s), std::future_status::ready);
  proxy().hold(false);
  EXPECT_TRUE(bad(last.get(), ErrorCode::unavailable));
  EXPECT_TRUE(good(patient.get()));
  store->close();
}

TEST_F(EtcdTest, GrantThatIsNotRenewedEndsThoughItsLeaseLives) {
  const std::shared_ptr<Store> store = etcd.open();
  SeenEvents events;
  store->start(events);
  Client observer = client();
  const CallContext context{BootClock::now() + 60s, {}};
  const auto acquire = [&](const std::string& lock, const RequestId& request) {
    auto answer = std::make_shared<std::promise<Result<AcquireReply>>>();
    store->acquire({lock_name(lock), request, default_owner_label(), Ttl::of(2s).value(), false},
                   context, [answer](Result<AcquireReply> reply) { answer->set_value(reply); });
    return std::get<Granted>(answer->get_future().get().value());
  };
  const auto renew = [&](const std::string& lock, const RequestId& request) {
    auto answer = std::make_shared<std::promise<Result<std::vector<RenewReply>>>>();
    store->renew({{lock_name(lock), request, Ttl::of(2s).value()}}, context,
                 [answer](Result<std::vector<RenewReply>> reply) { answer->set_value(reply); });
    return answer->get_future().get().value().at(0);
  };
  const RequestId left = new_request();
  const RequestId kept = new_request();
  acquire("left", left);
  acquire("kept", kept);
  while (observer.inspect(lock_name("left")).value().holder()) {
    ASSERT_EQ(renew("kept", kept), RenewReply::renewed);
  }
  EXPECT_EQ(renew("left", left), RenewReply::gone);
  EXPECT_EQ(renew("kept", kept), RenewReply::renewed);
  store->close();
}

TEST_F(EtcdTest, NewGrantOnAnOldLeaseLastsItsTime) {
  RawStore raw(etcd.open());
  const RequestId first = new_request();
  ASSERT_TRUE(raw.acquire(first, 6s));
  EXPECT_EQ(raw.release(first), ReleaseReply::released);
  std::this_thread::sleep_for(2s);  // the lease itself grows old; nothing can be waited for
  const BootTime asked = BootClock::now();
  const auto second = std::get<Granted>(raw.acquire(new_request(), 6s).value());
  EXPECT_GE(second.ttl, 5s) << "not below 5/6 of what was asked";
  const Millis remaining = raw.inspect().value().holder()->remaining;
  EXPECT_GE(remaining + (BootClock::now() - asked), 5s) << "and the server knows";
}

TEST_F(EtcdTest, RevokedLeaseIsToldToTheHolder) {
  Client one = client();
  auto lease = one.acquire("job", {.ttl = 3s});
  ASSERT_TRUE(lease);
  revoke(lease_of("job"));
  std::promise<void> told;
  const std::stop_callback on_loss(lease->lost(), [&] { told.set_value(); });
  told.get_future().wait();
  EXPECT_EQ(lease->release().value(), ReleaseOutcome::too_late);
  EXPECT_TRUE(one.acquire("job", {.ttl = 3s})) << "on a new lease";
}

TEST_F(EtcdTest, OneLeaseThatDiedCostsNoWaiterItsPlace) {
  RawStore holder(etcd.open());
  ASSERT_TRUE(holder.acquire(new_request()));
  RawStore one(etcd.open());
  ASSERT_TRUE(one.acquire_another(lock_name("other"), new_request(), 30s));
  const RequestId before = new_request();
  ASSERT_TRUE(one.acquire(before, 30s, /*queue=*/true));
  revoke(lease_of("other"));
  const auto next = one.acquire_another(lock_name("free"), new_request(), 30s, /*queue=*/true);
  ASSERT_TRUE(next) << to_string(next.error());
  EXPECT_TRUE(std::holds_alternative<Granted>(*next)) << "on a new lease";
  const RequestId after = new_request();
  ASSERT_TRUE(one.acquire(after, 30s, /*queue=*/true));
  EXPECT_EQ(lease_of("job", before.hex()), lease_of("job", after.hex()))
      << "nobody keeps the first one's alive any more";
}

TEST_F(EtcdTest, PlaceThatWasTakenIsNeverToldAsNothing) {
  RawStore holder(etcd.open());
  ASSERT_TRUE(holder.acquire(new_request()));
  rig::TcpProxy wire(etcd.server().port(), is_any_message);
  RawStore one(std::move(open_etcd("etcd://" + wire.address() + "/" + etcd.prefix()).value()));
  ASSERT_TRUE(one.acquire_another(lock_name("other"), new_request(), 6s));
  std::this_thread::sleep_for(1200ms);  // its lease grows old; nothing can be waited for
  ASSERT_TRUE(one.acquire(new_request(), 30s, /*queue=*/true));
  revoke(lease_of("other"));
  wire.arm(rig::WireFault::lose_reply, is_lease_grant);
  const RequestId request = new_request();
  auto answer = std::async(std::launch::async, [&] { return one.acquire(request, 6s, true); });
  ASSERT_TRUE(wire.wait_for_fault(30s)) << "it wants no new lease";
  EXPECT_EQ(holder.inspect().value().waiters.size(), 2);
  wire.refuse(true);
  const auto told = answer.get();
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, ErrorCode::outcome_unknown) << to_string(told.error());
  wire.refuse(false);
}

TEST_F(EtcdTest, LeaseThatDiedIsNotToldOfLocksThatAreNotOnIt) {
  RawStore one(etcd.open());
  const LockName two = lock_name("two");
  const RequestId first = new_request();
  const RequestId second = new_request();
  ASSERT_TRUE(one.acquire(first, 30s));
  ASSERT_TRUE(one.acquire_another(two, second, 30s));
  ASSERT_TRUE(one.acquire_another(lock_name("three"), new_request(), 40s));
  revoke(lease_of("three"));
  const auto renew = [&] {
    return one
        .renew_together(
            {{lock_name("job"), first, Ttl::of(30s).value()}, {two, second, Ttl::of(40s).value()}})
        .value();
  };
  EXPECT_THAT(renew(), ElementsAre(RenewReply::renewed, RenewReply::unknown));
  EXPECT_THAT(renew(), ElementsAre(RenewReply::renewed, RenewReply::renewed));
}

// Whether it is late or was sent again, what was asked before must not undo it.
TEST_F(EtcdTest, KeptLockStaysOnItsOwnLease) {
  RawStore one(etcd.open_through_proxies());
  RawStore direct(etcd.open());
  const RequestId request = new_request();
  ASSERT_TRUE(one.acquire(request, 30s));
  proxy().arm(rig::WireFault::lose_reply);
  auto told = std::async(std::launch::async, [&] { return one.try_release(request, 1h); });
  ASSERT_TRUE(proxy().wait_for_fault(30s));
  const auto kept = [&] {
    const auto holder = direct.inspect().value().holder();
    return holder && holder->kept && holder->request == request && holder->remaining > 30min;
  };
  while (!kept()) std::this_thread::sleep_for(1ms);
  proxy().cut();
  EXPECT_EQ(told.get().error().code, ErrorCode::outcome_unknown);

  EXPECT_FALSE(one.acquire(request, 40s)) << "it has given the lock back";
  EXPECT_TRUE(kept());
  EXPECT_EQ(one.try_renew(request, 50s).value().at(0), RenewReply::gone);
  EXPECT_TRUE(kept());
  EXPECT_FALSE(one.acquire(request, 40s));
  EXPECT_TRUE(kept());
}

// It could arrive when the lock is free again, and take it for a request that nobody knows of.
TEST_F(EtcdTest, AttemptInDoubtIsWithdrawnAlsoWhenTheLockIsKept) {
  RawStore one(etcd.open_through_proxies());
  const RequestId request = new_request();
  proxy().arm(rig::WireFault::cut_before);
  ASSERT_TRUE(bad(one.acquire(request), ErrorCode::outcome_unknown));
  ASSERT_TRUE(std::holds_alternative<Granted>(one.acquire(request).value()));
  ASSERT_EQ(one.try_release(request, 1h).value(), ReleaseReply::released);
  const auto marks = [&] {
    const std::string keys = etcd.server()
                                 .ctl({"get", "--prefix", "--keys-only",
                                       etcd.prefix() + "/!withdrawn/" + request.hex() + "/"})
                                 .out;
    return std::count(keys.begin(), keys.end(), '!');
  };
  const BootTime late = BootClock::now() + 30s;
  while (marks() < 2 && BootClock::now() < late) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(marks(), 2) << "one of the kept lock, one of the attempt";
  EXPECT_TRUE(one.inspect()->holder()->kept);
}

TEST_F(EtcdTest, RecordThatIsNotOursDoesNotMeanThatNothingWasDone) {
  Client one = client();
  ASSERT_EQ(etcd.server().ctl({"put", etcd.prefix() + "/!once/job/key", "9 short"}).status, 0);
  EXPECT_EQ(one.recall(lock_name("job"), "key").error().code, ErrorCode::unavailable);
}

// ---- round trips ---------------------------------------------------------------------------

TEST_F(EtcdTest, AcquireAndReleaseAreOneRoundTripEach) {
  Client one = proxied_client();
  ASSERT_TRUE(one.acquire("job", {.ttl = 60s})->release());  // connects, makes the lease
  for (int i = 0; i < 5; ++i) {
    const std::size_t before = proxy().round_trips();
    auto lease = one.acquire("job", {.ttl = 60s, .wait = 5s});
    ASSERT_TRUE(lease);
    EXPECT_EQ(proxy().round_trips(), before + 1);
    ASSERT_TRUE(lease->release());
    EXPECT_EQ(proxy().round_trips(), before + 2);
  }
  auto lease = one.acquire("job", {.ttl = 60s});
  Client other = proxied_client();
  ASSERT_EQ(other.acquire("job", {.ttl = 60s}).error().code, ErrorCode::busy);
  const std::size_t before = proxy().requests();
  EXPECT_EQ(other.acquire("job", {.ttl = 60s}).error().code, ErrorCode::busy);
  EXPECT_EQ(proxy().requests(), before + 1) << "busy leaves nothing to clean up";
}

TEST_F(EtcdTest, WaiterThatLeavesWakesNobodyForNothing) {
  RawStore holder(etcd.open());
  const RequestId held = new_request();
  ASSERT_TRUE(holder.acquire(held));
  RawStore waiters(etcd.open());
  const RequestId second = new_request();
  const RequestId third = new_request();
  ASSERT_TRUE(waiters.acquire(second, 30s, true));
  ASSERT_TRUE(waiters.acquire(third, 30s, true));
  EXPECT_EQ(waiters.release(second), ReleaseReply::released);
  ASSERT_TRUE(waiters.events.wait_for_nudge(third, 30s));
  EXPECT_TRUE(std::holds_alternative<Queued>(waiters.acquire(third, 30s, true).value()));
  EXPECT_EQ(holder.release(held), ReleaseReply::released);
  while (!std::holds_alternative<Granted>(waiters.acquire(third, 30s, true).value())) {
  }
}

TEST_F(EtcdTest, PredecessorThatGoesBeforeItIsWatchedIsNoticed) {
  RawStore holder(etcd.open());
  const RequestId held = new_request();
  ASSERT_TRUE(holder.acquire(held));
  RawStore waiter(etcd.open_through_proxies());
  const RequestId waits = new_request();
  proxy().delay(300ms);  // so long is its watch on its way
  ASSERT_TRUE(std::holds_alternative<Queued>(waiter.acquire(waits, 30s, true).value()));
  EXPECT_EQ(holder.release(held), ReleaseReply::released);
  ASSERT_TRUE(waiter.events.wait_for_nudge(waits, 30s));
  EXPECT_TRUE(std::holds_alternative<Granted>(waiter.acquire(waits, 30s, true).value()));
}

TEST_F(EtcdTest, CompactionDuringAWaitHurtsNobody) {
  Client one = client();
  Client two = proxied_client();
  auto lease = one.acquire("job");
  ASSERT_TRUE(lease);
  auto waiting = std::async(std::launch::async, [&] { return two.acquire("job", {.wait = 60s}); });
  wait_for_waiters(one, "job", 1);
  for (int i = 0; i < 3; ++i) {
    auto other = one.acquire_fenced("other");
    ASSERT_TRUE(other);
    const std::string revision = std::to_string(other->token().number.value());
    ASSERT_EQ(etcd.server().ctl({"compact", "--physical", revision}).status, 0);
    proxy().cut();
    ASSERT_TRUE(other->release());
  }
  ASSERT_TRUE(lease->release());
  EXPECT_TRUE(waiting.get());
}

TEST_F(EtcdTest, WatchThatBeginsBehindACompactionIsNoLoss) {
  Client other = client();
  ASSERT_TRUE(other.acquire("other")->release());
  RawStore holder(etcd.open_through_proxies());
  const RequestId held = new_request();
  ASSERT_TRUE(holder.acquire(held));
  proxy().delay(800ms);  // so long is the watch of its own key on its way
  EXPECT_EQ(holder.renew(held), RenewReply::renewed);
  ASSERT_TRUE(other.acquire("other")->release());
  const auto last = other.acquire_fenced("other");
  ASSERT_TRUE(last);
  const std::string revision = std::to_string(last->token().number.value());
  ASSERT_EQ(etcd.server().ctl({"compact", revision}).status, 0);
  EXPECT_EQ(holder.renew(held), RenewReply::renewed) << "told after the end of the watch";
  EXPECT_FALSE(holder.events.was_ended(held));
}

// ---- etcdctl lock --------------------------------------------------------------------------

// A running `etcdctl lock NAME`.
class Etcdctl {
 public:
  Etcdctl(const rig::EtcdServer& server, const std::string& name)
      : child_(std::move(*process::Child::start(
            {.argv = {"etcdctl", "--endpoints", server.address(), "lock", name, "--ttl", "10"},
             .environment = {{"ETCDCTL_API", "3"}},
             .in = process::Null{},
             .out = process::Piped{},
             .parent_death_signal = SIGKILL}))) {}
  bool has_lock(Millis within) {
    return process::wait_readable(child_.out().get(), process::within(within));
  }
  void release() {
    child_.signal(SIGTERM);
    child_.wait();
  }

 private:
  process::Child child_;
};

TEST_F(EtcdTest, EtcdctlAndWeExcludeEachOtherAndQueueTogether) {
  Client one = client();
  const std::string name = one.inspect(lock_name("a/b")).value().known_as;
  Etcdctl first(etcd.server(), name);
  ASSERT_TRUE(first.has_lock(30s));
  const auto refused = one.acquire("a/b");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::busy);
  EXPECT_THAT(refused.error().message, HasSubstr("another program"));

  auto ours = std::async(std::launch::async, [&] { return one.acquire("a/b", {.wait = 60s}); });
  wait_for_waiters(one, "a/b", 1);
  Etcdctl last(etcd.server(), name);
  wait_for_waiters(one, "a/b", 2);
  EXPECT_FALSE(last.has_lock(0ms));
  first.release();
  auto lease = ours.get();
  ASSERT_TRUE(lease) << to_string(lease.error());
  EXPECT_FALSE(last.has_lock(0ms));
  ASSERT_TRUE(lease->release());
  EXPECT_TRUE(last.has_lock(30s));

  const auto status = one.inspect(lock_name("a/b")).value();
  ASSERT_TRUE(status.holder());
  EXPECT_EQ(one.force_release(lock_name("a/b"), status.holder()->request).value(),
            ReleaseReply::released);
  EXPECT_TRUE(one.acquire("a/b")) << "the operator took it away";
}

// ---- a lock at the bare name ---------------------------------------------------------------

class LockAtTheNameTest : public EtcdTest {
 protected:
  // As python-etcd3 takes it, and gives it back.
  void put(const std::string& lock = "job") {
    const std::string granted = etcd.server().ctl({"lease", "grant", "600"}).out;  // lease ID …
    const std::string id = granted.substr(6, granted.find(' ', 6) - 6);
    ASSERT_EQ(etcd.server().ctl({"put", key(lock), "value", "--lease=" + id}).status, 0) << granted;
  }
  void remove(const std::string& lock = "job") {
    ASSERT_EQ(etcd.server().ctl({"del", key(lock)}).out, "1\n");
  }
  std::string key(const std::string& lock) const { return etcd.prefix() + "/" + lock; }
};

TEST_F(LockAtTheNameTest, IsSomebodyElsesAndCanBeTakenAway) {
  put();
  Client one = proxied_client();
  ASSERT_TRUE(one.acquire("other", {.ttl = 60s})->release());  // connects, makes the lease
  const std::size_t before = proxy().round_trips();
  const auto refused = one.acquire("job", {.ttl = 60s});
  EXPECT_EQ(proxy().round_trips(), before + 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::busy);
  EXPECT_THAT(refused.error().message, HasSubstr("another program (etcd key " + key("job") + ")"));

  const auto status = one.inspect(lock_name("job")).value();
  ASSERT_TRUE(status.holder());
  EXPECT_TRUE(status.holder()->foreign);
  EXPECT_GT(status.holder()->remaining, 500s);
  const auto all = one.list().value();
  ASSERT_EQ(all.size(), 1);
  EXPECT_EQ(all[0].holder()->request, status.holder()->request);
  EXPECT_EQ(one.force_release(lock_name("job"), new_request()).value(), ReleaseReply::not_held);
  EXPECT_EQ(one.force_release(lock_name("job"), status.holder()->request).value(),
            ReleaseReply::released);
  EXPECT_TRUE(one.acquire("job"));
}

TEST_F(LockAtTheNameTest, WaitersAreWokenWhenItGoesAndOvertakenIfItComesAgain) {
  put();
  RawStore waiters(etcd.open());
  const RequestId first = new_request();
  const RequestId second = new_request();
  const auto queued = [&](const RequestId& request) {
    const auto reply = waiters.acquire(request, 30s, /*queue=*/true).value();
    return std::holds_alternative<Queued>(reply) &&
           std::get<Queued>(reply).ahead.find("another program") != std::string::npos;
  };
  ASSERT_TRUE(queued(first));
  ASSERT_TRUE(queued(second));
  const auto status = waiters.inspect().value();
  EXPECT_TRUE(status.holder() && status.holder()->foreign);
  ASSERT_EQ(status.waiters.size(), 2);
  EXPECT_EQ(status.waiters[0].request, first);

  remove();
  ASSERT_TRUE(waiters.events.wait_for_nudge(first, 30s)) << "long before it would ask again";
  waiters.events.forget_nudges();
  put();  // by one that does not queue
  EXPECT_TRUE(waiters.inspect().value().holder());
  ASSERT_TRUE(queued(first));
  remove();
  ASSERT_TRUE(waiters.events.wait_for_nudge(first, 30s));
  EXPECT_TRUE(std::holds_alternative<Granted>(waiters.acquire(first, 30s, true).value()));
  EXPECT_EQ(waiters.release(first), ReleaseReply::released);
  ASSERT_TRUE(waiters.events.wait_for_nudge(second, 30s));
  EXPECT_TRUE(std::holds_alternative<Granted>(waiters.acquire(second, 30s, true).value()));
}

TEST_F(LockAtTheNameTest, WaiterThatWasOvertakenRestsThoughTheClusterIsBusy) {
  put();
  RawStore waiter(etcd.open_through_proxies());
  const RequestId request = new_request();
  ASSERT_TRUE(waiter.acquire(request, 30s, true));
  remove();
  ASSERT_TRUE(waiter.events.wait_for_nudge(request, 30s));
  waiter.events.forget_nudges();
  put();                 // younger than the waiter's key
  proxy().delay(300ms);  // so long is its watch on its way
  ASSERT_TRUE(std::holds_alternative<Queued>(waiter.acquire(request, 30s, true).value()));
  ASSERT_EQ(etcd.server().ctl({"put", key("else/where"), "now"}).status, 0);
  EXPECT_FALSE(waiter.events.wait_for_nudge(request, 2s)) << "for nothing";
}

TEST_F(LockAtTheNameTest, IsShownBesideALeaseIfItsProgramDidNotLook) {
  Client one = client();
  auto lease = one.acquire("job", {.ttl = 60s});
  put();
  const auto both = one.inspect(lock_name("job")).value();
  EXPECT_THAT(both.holder()->owner,
              AllOf(StartsWith(default_owner_label().str()), HasSubstr(", and another program")));
  EXPECT_FALSE(both.holder()->foreign);
  ASSERT_TRUE(lease->release());
  EXPECT_TRUE(one.inspect(lock_name("job")).value().holder()->foreign);
}

TEST_F(LockAtTheNameTest, DataIsNoLock) {
  Client one = client();
  ASSERT_EQ(etcd.server().ctl({"put", key("job"), "no lease"}).status, 0);
  EXPECT_FALSE(one.inspect(lock_name("job")).value().holder());
  EXPECT_TRUE(one.list().value().empty());
  auto lease = one.acquire("job");
  ASSERT_TRUE(lease) << to_string(lease.error());
  auto waiting = std::async(std::launch::async, [&] { return one.acquire("job", {.wait = 60s}); });
  wait_for_waiters(one, "job", 1);
  ASSERT_TRUE(lease->release());
  EXPECT_TRUE(waiting.get());
}

// ---- what can be wrong ---------------------------------------------------------------------

Error refusal_of(const std::string& url) {
  const BootTime begun = BootClock::now();
  const auto store = open_etcd(url);
  EXPECT_LT(BootClock::now(), begun + 20s);
  EXPECT_FALSE(store) << url;
  return store ? Error(ErrorCode::internal, "opened") : store.error();
}

// `unavailable`, with the address in the sentence and what etcd or gRPC said.
void expect_refused(const std::string& url, const std::string& address, const std::string& words) {
  const Error error = refusal_of(url);
  EXPECT_EQ(error.code, ErrorCode::unavailable) << to_string(error);
  EXPECT_THAT(sentence(error), HasSubstr(address));
  EXPECT_THAT(error.store_words, HasSubstr(words));
  EXPECT_THAT(to_string(error), Not(HasSubstr("wr0ng")));
}

TEST_F(EtcdTest, NobodyThereOrNobodyWhoSpeaksEtcd) {
  const rig::Port nobody = rig::Port::take();
  expect_refused("etcd://" + nobody.address(), nobody.address(), "refused");
  expect_refused("etcd://no-such-host.invalid", "no-such-host.invalid",
                 "DNS resolution failed for no-such-host.invalid");
  const std::string http1 = etcd.server().metrics_address();
  expect_refused("etcd://" + http1, http1, "http1.x server");
}

TEST_F(EtcdTest, SlowNetworkIsOpenedInTheTimeThatThereIs) {
  proxy().hold(true);
  auto opening = std::async(std::launch::async, [&] {
    return open_etcd("etcd://" + proxy().address() + "/slow", {.store_timeout = 30s});
  });
  proxy().wait_for_connection();
  EXPECT_EQ(opening.wait_for(2500ms), std::future_status::timeout) << "it has given up";
  proxy().hold(false);
  const auto opened = opening.get();
  EXPECT_TRUE(opened) << to_string(opened.error());
}

TEST(EtcdLoginTest, UsersAreLoggedInAgainAndStrangersRefused) {
  rig::EtcdServer server;
  ASSERT_EQ(server.ctl({"user", "add", "root:s3cret"}).status, 0);
  ASSERT_EQ(server.ctl({"user", "grant-role", "root", "root"}).status, 0);
  ASSERT_EQ(server.ctl({"auth", "enable"}).status, 0);

  expect_refused("etcd://root:wr0ng@" + server.address(), server.address(),
                 "authentication failed");
  expect_refused("etcd://" + server.address(), server.address(),
                 "the server wants a user and a password");

  Client one(std::move(open_etcd("etcd://root:s3cret@" + server.address()).value()));
  EXPECT_THAT(one.store().address, Not(HasSubstr("s3cret")));
  auto lease = one.acquire("job", {.ttl = 60s});
  ASSERT_TRUE(lease) << to_string(lease.error());
  server.kill();  // it forgets its tokens
  server.start();
  EXPECT_EQ(lease->release(30s).value(), ReleaseOutcome::released);
  EXPECT_TRUE(one.acquire("job", {.wait = 30s}));
}

TEST(EtcdTlsTest, CertificatesAreCheckedOnBothSides) {
  const rig::TempFolder files;
  for (const std::string authority : {"ca", "other"}) rig::make_certificate(files, authority);
  rig::make_certificate(files, "server", "subjectAltName=IP:127.0.0.1", "ca");
  rig::make_certificate(files, "client", "extendedKeyUsage=clientAuth", "ca");
  const std::string ca = files.file("ca.crt");
  rig::EtcdServer server(
      {.tls = rig::EtcdTls{files.file("server.crt"), files.file("server.key"), ca}, .more = {}});
  const std::string own = "&cert=" + files.file("client.crt") + "&key=" + files.file("client.key");
  auto store = open_etcd("etcd://" + server.address() + "?ca=" + ca + own);
  ASSERT_TRUE(store) << to_string(store.error());
  Client one(std::move(*store));
  EXPECT_TRUE(one.acquire("job"));

  const auto refused = [&](const std::string& options, const std::string& words) {
    expect_refused("etcd://" + server.address() + options, server.address(), words);
  };
  refused("?ca=" + files.file("other.crt") + own, "certificate verify failed");
  refused("?server_name=elsewhere&ca=" + ca + own, "elsewhere is not in peer certificate");
  // It wants a certificate, and TLS. gRPC tells no more than that it was hung up on.
  refused("?ca=" + ca, server.address());
  refused("", server.address());
}

TEST(EtcdQuotaTest, FullServerIsUnavailableWithItsWords) {
  rig::EtcdServer server({.tls = {}, .more = {"--quota-backend-bytes", "8000000"}});
  Client one(std::move(open_etcd("etcd://" + server.address()).value()));
  auto lease = one.acquire("job", {.ttl = 60s});
  ASSERT_TRUE(lease);
  Result<void> full = {};
  for (int i = 0; i < 40 && full; ++i) {
    full = one.record(*lease, std::to_string(i), {"", std::string(1'000'000, 'x')});
  }
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::unavailable) << to_string(full.error());
  EXPECT_THAT(full.error().store_words, HasSubstr("database space exceeded"));
  const auto refused = one.acquire("another", {.ttl = 60s});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_THAT(refused.error().store_words, HasSubstr("database space exceeded"));
  auto opened = open_etcd("etcd://" + server.address());
  ASSERT_TRUE(opened) << to_string(opened.error());
  Client late(std::move(*opened));
  EXPECT_EQ(late.inspect(lock_name("job"))->holder()->request, lease->request());
  EXPECT_EQ(lease->release().value(), ReleaseOutcome::released) << "what is held can be let go";
}

}  // namespace
}  // namespace leasehold::testing
