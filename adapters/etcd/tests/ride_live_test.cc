// Calls that ride together to a real server, and what the server's own rules are.
#include <gmock/gmock.h>

#include <future>
#include <latch>
#include <map>
#include <set>
#include <thread>

#include "etcd_under_test.h"
#include "joined_txn.h"
#include "leasehold/client.h"
#include "leasehold/url.h"
#include "options.h"
#include "send_txn.h"
#include "testing/raw_store.h"
#include "transactions.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AnyOf;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;

namespace wire = etcd::wire;

// ---- the server's rules --------------------------------------------------------------------

class ServersRulesTest : public ::testing::Test {
 protected:
  tl::expected<wire::TxnResponse, etcd::Failure> run(wire::TxnRequest txn) {
    return etcd::run_txn(*transport_, std::move(txn), {.deadline = BootClock::now() + 30s});
  }
  std::string key(int number) const { return server_.prefix() + "/" + std::to_string(number); }
  // Asks for so many keys that are not there, from this one on.
  wire::TxnRequest gets(int count) const {
    wire::TxnRequest txn;
    for (int i = 0; i < count; ++i) *txn.add_success() = etcd::get(key(i));
    return txn;
  }
  static wire::TxnRequest joined(const std::vector<wire::TxnRequest>& all) {
    etcd::JoinedTxn joined;
    for (const wire::TxnRequest& one : all) joined.add(one);
    return joined.take();
  }

 private:
  EtcdUnderTest server_;
  std::unique_ptr<etcd::Transport> transport_ =
      etcd::Transport::make(etcd::Options::of(Url::parse(server_.url()).value()).value()).value();
};

TEST_F(ServersRulesTest, OperationsAreCountedAsWeDo) {
  wire::TxnRequest deep = gets(20);
  *deep.add_failure()->mutable_txn() = gets(30);
  const std::vector<std::vector<wire::TxnRequest>> shapes = {std::vector(127, gets(1)),
                                                             std::vector(60, gets(68)),
                                                             {gets(1), gets(125), gets(3)},
                                                             std::vector(78, deep)};
  for (const auto& fits : shapes) {
    ASSERT_EQ(etcd::operations_in(joined(fits)), 128);
    const auto taken = run(joined(fits));
    EXPECT_TRUE(taken) << taken.error().words;
    auto too_many = fits;
    too_many.push_back(gets(1));
    const auto refused = run(joined(too_many));
    ASSERT_FALSE(refused);
    EXPECT_TRUE(refused.error().is_the_callers()) << refused.error().words;
  }
}

TEST_F(ServersRulesTest, ConditionsOfAllAreEvaluatedBeforeAnythingIsDone) {
  std::vector<wire::TxnRequest> both(2);
  for (const int own : {0, 1}) {
    *both[own].add_compare() = etcd::nothing_in(key(0) + "/");
    *both[own].add_success() = etcd::put(key(0) + "/" + std::to_string(own), "", 0);
  }
  const auto response = run(joined(both));
  ASSERT_TRUE(response);
  EXPECT_TRUE(response->responses(0).txn().succeeded());
  EXPECT_TRUE(response->responses(1).txn().succeeded()) << "why one lock has one call in a batch";
}

TEST_F(ServersRulesTest, KeyThatTwoPutIsRefused) {
  wire::TxnRequest once;
  *once.add_success() = etcd::put(key(0), "", 0);
  const auto refused = run(joined({once, once}));
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().is_the_callers()) << refused.error().words;
}

TEST_F(ServersRulesTest, OneLeaseThatIsGoneUndoesTheWhole) {
  wire::TxnRequest good;
  *good.add_success() = etcd::put(key(0), "", 0);
  wire::TxnRequest bad;
  *bad.add_success() = etcd::put(key(1), "", 4711);
  const auto refused = run(joined({good, bad}));
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().lease_is_gone());
  wire::TxnRequest look;
  *look.add_success() = etcd::get(key(0));
  EXPECT_EQ(etcd::first_kv(run(look).value(), 0), nullptr);
}

// ---- riders --------------------------------------------------------------------------------

using AcquireAnswer = std::future<Result<AcquireReply>>;

bool is_granted(const Result<AcquireReply>& reply) {
  return reply && std::holds_alternative<Granted>(*reply);
}

struct Wish {
  std::string lock;
  RequestId request = new_request();
  Millis ttl = 30s;
  Millis timeout = 60s;
  std::stop_token stop = {};
  Mode mode = {};
  bool queue = false;
};

// A store of which many things are wanted at once.
class Crowd {
 public:
  explicit Crowd(std::unique_ptr<Store> opened) : store_(std::move(opened)) {
    store_->start(events_);
  }
  ~Crowd() { store_->close(); }

  AcquireAnswer acquire(const Wish& wish) {
    return ask<AcquireReply>([&](auto done) {
      store_->acquire({lock_name(wish.lock), wish.request, OwnerLabel::parse("crowd").value(),
                       Ttl::of(wish.ttl).value(), wish.queue, wish.mode},
                      {BootClock::now() + wish.timeout, wish.stop}, std::move(done));
    });
  }
  std::future<Result<ReleaseReply>> release(const Wish& wish) {
    return ask<ReleaseReply>([&](auto done) {
      store_->release({lock_name(wish.lock), wish.request, Millis(0)}, {BootClock::now() + 60s, {}},
                      std::move(done));
    });
  }
  std::future<Result<LockStatus>> inspect(const std::string& lock) {
    return ask<LockStatus>([&](auto done) {
      store_->inspect(lock_name(lock), {BootClock::now() + 60s, {}}, std::move(done));
    });
  }
  LockStatus status(const std::string& lock) { return inspect(lock).get().value(); }
  std::optional<LockStatus::Holder> holder(const std::string& lock) {
    return status(lock).holder();
  }
  // Connects, and makes the lease.
  void prepare(Millis ttl = 30s) {
    const Wish first{.lock = "prepared", .ttl = ttl};
    ASSERT_TRUE(is_granted(acquire(first).get()));
    ASSERT_EQ(release(first).get().value(), ReleaseReply::released);
  }

  Store& store() { return *store_; }

 private:
  template <class Reply, class Call>
  static std::future<Result<Reply>> ask(Call call) {
    const auto answer = std::make_shared<std::promise<Result<Reply>>>();
    call([answer](Result<Reply> reply) { answer->set_value(std::move(reply)); });
    return answer->get_future();
  }

  SeenEvents events_;
  std::unique_ptr<Store> store_;
};

class RidersTest : public ::testing::Test {
 protected:
  rig::TcpProxy& proxy() { return *etcd.proxies().front(); }
  Crowd through_proxy() { return Crowd(etcd.open_through_proxies()); }

  // Wishes for the locks of these names, and others' names beside them.
  static std::vector<Wish> wishes(int count) {
    std::vector<Wish> all;
    for (int i = 0; i < count; ++i) all.push_back({.lock = "ride-" + std::to_string(i)});
    return all;
  }
  // All at once, behind one that is on its way.
  static std::vector<AcquireAnswer> acquire(Crowd& crowd, const std::vector<Wish>& all) {
    std::vector<AcquireAnswer> answers;
    answers.reserve(all.size());
    for (const Wish& it : all) answers.push_back(crowd.acquire(it));
    return answers;
  }
  // The same while nothing passes the proxy, so that they leave together.
  std::vector<AcquireAnswer> acquire_together(Crowd& crowd, const std::vector<Wish>& all) {
    proxy().hold(true);
    auto answers = acquire(crowd, all);
    proxy().hold(false);
    return answers;
  }

  EtcdUnderTest etcd;
};

// Which of the locks a message is about that is about several of them.
class SharedMessage {
 public:
  explicit SharedMessage(const std::vector<Wish>& wishes) {
    for (const Wish& it : wishes) names_.push_back(it.lock);
  }
  rig::IsRequest is() {
    return [this](std::string_view bytes) {
      std::set<std::string> seen;
      for (const std::string& name : names_) {
        if (bytes.find("/" + name + "/") != std::string_view::npos) seen.insert(name);
      }
      if (seen.size() < 2) return false;
      riders_ = seen;
      return true;
    };
  }
  // After the fault.
  const std::set<std::string>& riders() const { return riders_; }

 private:
  std::vector<std::string> names_;
  std::set<std::string> riders_;
};

TEST_F(RidersTest, ManyMoreThanOneTransactionTakesAreAllGranted) {
  Crowd crowd = through_proxy();
  crowd.prepare();
  const auto all = wishes(300);
  const std::size_t before = proxy().requests();
  auto answers = acquire_together(crowd, all);
  for (AcquireAnswer& it : answers) EXPECT_TRUE(is_granted(it.get()));
  EXPECT_LT(proxy().requests(), before + 100) << "they do not ride";
  std::vector<std::future<Result<ReleaseReply>>> released;
  for (const Wish& it : all) released.push_back(crowd.release(it));
  for (auto& it : released) EXPECT_EQ(it.get().value(), ReleaseReply::released);
  EXPECT_LT(proxy().requests(), before + 200);
  for (const Wish& it : all) EXPECT_FALSE(crowd.holder(it.lock)) << it.lock;
}

TEST_F(RidersTest, EachIsToldWhatIsTrueOfItsOwnLock) {
  Crowd other(etcd.open());
  const Wish held{.lock = "ride-2"};
  ASSERT_TRUE(is_granted(other.acquire(held).get()));
  const Wish permit{.lock = "ride-5", .mode = Mode::permit_of(3)};
  ASSERT_TRUE(is_granted(other.acquire(permit).get()));
  Crowd crowd = through_proxy();
  crowd.prepare();
  const auto all = wishes(8);
  auto answers = acquire_together(crowd, all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto answer = answers[i].get();
    if (i == 2) {
      EXPECT_TRUE(answer && std::holds_alternative<Busy>(*answer));
    } else if (i == 5) {
      ASSERT_FALSE(answer);
      EXPECT_EQ(answer.error().code, ErrorCode::invalid) << to_string(answer.error());
    } else {
      ASSERT_TRUE(is_granted(answer)) << all[i].lock;
      const auto holder = other.holder(all[i].lock);
      ASSERT_TRUE(holder);
      EXPECT_EQ(holder->request, all[i].request);
      EXPECT_EQ(holder->token, std::get<Granted>(*answer).token);
    }
  }
  EXPECT_EQ(crowd.release(all[2]).get().value(), ReleaseReply::not_held);
  EXPECT_EQ(other.holder("ride-2")->request, held.request);
}

TEST_F(RidersTest, OneLockIsGrantedOnceHoweverManyCome) {
  Crowd crowd = through_proxy();
  crowd.prepare();
  for (const Mode mode : {Mode::exclusive(), Mode::permit_of(2)}) {
    std::vector<Wish> all = {{.lock = "before " + to_string(mode)}};
    for (int i = 0; i < 12; ++i) all.push_back({.lock = to_string(mode), .mode = mode});
    auto answers = acquire_together(crowd, all);
    EXPECT_TRUE(is_granted(answers[0].get()));
    std::set<std::int64_t> tokens;
    int granted = 0;
    for (std::size_t i = 1; i < answers.size(); ++i) {
      const auto answer = answers[i].get();
      ASSERT_TRUE(answer) << to_string(answer.error());
      if (!is_granted(answer)) continue;
      ++granted;
      tokens.insert(std::get<Granted>(*answer).token.value());
    }
    EXPECT_EQ(granted, mode.permits());
    EXPECT_THAT(tokens, SizeIs(granted));
  }
}

TEST_F(RidersTest, CallsOfOneLockHaveOnePlaceEach) {
  Crowd other(etcd.open());
  ASSERT_TRUE(is_granted(other.acquire({.lock = "wanted"}).get()));
  Crowd crowd = through_proxy();
  std::vector<Wish> all;
  for (int i = 0; i < 12; ++i) all.push_back({.lock = "wanted", .queue = true});
  ASSERT_TRUE(crowd.acquire(all[0]).get()) << "and makes the lease of those who wait";
  for (AcquireAnswer& it : acquire_together(crowd, all)) {
    const auto answer = it.get();
    EXPECT_TRUE(answer && std::holds_alternative<Queued>(*answer));
  }
  std::vector<RequestId> asked;
  for (const Wish& it : all) asked.push_back(it.request);
  std::vector<RequestId> queue;
  for (const auto& waiter : crowd.status("wanted").waiters) queue.push_back(waiter.request);
  // In the order of arrival, unless one waits for too long and goes alone: ride_test.cc.
  EXPECT_THAT(queue, UnorderedElementsAreArray(asked));
}

TEST_F(RidersTest, LostReplyIsInDoubtForEachAndEachCanBeWithdrawn) {
  for (const rig::WireFault fault : {rig::WireFault::lose_reply, rig::WireFault::cut_after,
                                     rig::WireFault::cut_during, rig::WireFault::cut_before}) {
    SCOPED_TRACE(to_string(fault));
    Crowd crowd = through_proxy();
    crowd.prepare();
    Crowd other(etcd.open());
    const auto all = wishes(6);
    SharedMessage message(all);
    proxy().arm(fault, message.is());
    auto answers = acquire_together(crowd, all);
    ASSERT_TRUE(proxy().wait_for_fault(30s)) << "they do not ride";
    if (fault == rig::WireFault::lose_reply) {
      for (const std::string& lock : message.riders()) {
        while (!other.holder(lock)) std::this_thread::sleep_for(1ms);
      }
      proxy().cut();
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto answer = answers[i].get();
      if (!message.riders().contains(all[i].lock)) continue;
      ASSERT_FALSE(answer) << all[i].lock;
      EXPECT_EQ(answer.error().code, ErrorCode::outcome_unknown) << to_string(answer.error());
    }
    for (const Wish& it : all) {
      ASSERT_TRUE(crowd.release(it).get());
      EXPECT_FALSE(other.holder(it.lock)) << it.lock;
      const Wish next{.lock = it.lock};
      EXPECT_TRUE(is_granted(other.acquire(next).get()));
      const auto released = other.release(next).get();
      EXPECT_TRUE(released && *released == ReleaseReply::released);
    }
  }
}

TEST_F(RidersTest, WhoseReplyWasLostFindsItsOwnGrant) {
  Crowd crowd = through_proxy();
  crowd.prepare();
  const auto all = wishes(6);
  SharedMessage message(all);
  proxy().arm(rig::WireFault::cut_after, message.is());
  auto answers = acquire_together(crowd, all);
  ASSERT_TRUE(proxy().wait_for_fault(30s));
  for (AcquireAnswer& it : answers) it.wait();
  for (AcquireAnswer& it : acquire(crowd, all)) EXPECT_TRUE(is_granted(it.get()));
  for (const Wish& it : all) EXPECT_EQ(crowd.holder(it.lock)->request, it.request);
}

TEST_F(RidersTest, WhoIsCancelledOrOutOfTimeLeavesTheOthersAlone) {
  Crowd crowd = through_proxy();
  crowd.prepare();
  Crowd other(etcd.open());
  auto all = wishes(6);
  std::stop_source stop;
  all[2].stop = stop.get_token();
  all[4].timeout = 400ms;
  proxy().hold(true);
  auto answers = acquire(crowd, all);
  stop.request_stop();
  const auto cancelled = answers[2].get();
  const auto late = answers[4].get();
  proxy().hold(false);
  ASSERT_FALSE(cancelled);
  EXPECT_THAT(cancelled.error().code, AnyOf(ErrorCode::cancelled, ErrorCode::outcome_unknown));
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().code, AnyOf(ErrorCode::unavailable, ErrorCode::outcome_unknown));
  for (const std::size_t i : {0, 1, 3, 5}) {
    auto answer = answers[i].get();
    // A machine that hangs for as long as the proxy did is a network that does.
    while (!answer && answer.error().code == ErrorCode::outcome_unknown) {
      answer = crowd.acquire(all[i]).get();
    }
    ASSERT_TRUE(is_granted(answer)) << (answer ? "busy" : to_string(answer.error()));
    EXPECT_EQ(other.holder(all[i].lock)->request, all[i].request);
  }
  for (const std::size_t i : {2, 4}) {
    ASSERT_TRUE(crowd.release(all[i]).get());
    EXPECT_FALSE(other.holder(all[i].lock));
  }
}

// On an alarm's thread, which no call to the server knows of. No answer of the server may be waited
// for there, because that thread may be the one to tell it.
TEST_F(RidersTest, CloseWaitsForTheCompletionOfWhoLeaves) {
  const auto failed_at_once = [](auto answer) {
    return answer.wait_for(0s) == std::future_status::ready && !answer.get();
  };
  Crowd crowd = through_proxy();
  ASSERT_TRUE(is_granted(crowd.acquire({.lock = "held"}).get())) << "so that its lease is needed";
  std::stop_source stop;
  std::latch told(1);
  std::promise<void> ended;
  proxy().hold(true);
  const auto first = crowd.acquire({.lock = "first"});
  crowd.store().acquire({lock_name("leaves"), new_request(), OwnerLabel::parse("crowd").value(),
                         Ttl::of(30s).value(), /*queue=*/false, Mode()},
                        {BootClock::now() + 60s, stop.get_token()}, [&](const auto&) {
                          told.count_down();
                          bool ride_closed = false;
                          bool calls_ended = false;
                          while (!ride_closed && !calls_ended) {
                            ride_closed = failed_at_once(crowd.acquire({.lock = "late"}));
                            calls_ended = failed_at_once(crowd.inspect("late"));
                          }
                          EXPECT_FALSE(calls_ended) << "that is the end of the store";
                          ended.set_value();
                        });
  stop.request_stop();
  told.wait();
  proxy().hold(false);
  crowd.store().close();
  const auto end = ended.get_future();
  EXPECT_EQ(end.wait_for(0s), std::future_status::ready);
  end.wait();
}

TEST_F(RidersTest, FrozenServerCostsNobodyMoreThanItsOwnTime) {
  Crowd crowd(etcd.open());
  crowd.prepare();
  auto all = wishes(5);
  all[2].timeout = 500ms;
  all[3].timeout = 800ms;
  etcd.server().freeze();
  auto answers = acquire(crowd, all);
  for (const std::size_t i : {2, 3}) {
    const auto answer = answers[i].get();
    ASSERT_FALSE(answer);
    EXPECT_THAT(answer.error().code, AnyOf(ErrorCode::unavailable, ErrorCode::outcome_unknown));
  }
  etcd.server().thaw();
  for (const std::size_t i : {0, 1, 4}) {
    auto answer = answers[i].get();
    while (!answer && answer.error().code == ErrorCode::outcome_unknown) {
      answer = crowd.acquire(all[i]).get();
    }
    EXPECT_TRUE(is_granted(answer)) << (answer ? "busy" : to_string(answer.error()));
  }
  for (const std::size_t i : {2, 3}) {
    ASSERT_TRUE(crowd.release(all[i]).get());
    EXPECT_FALSE(crowd.holder(all[i].lock));
  }
}

TEST_F(RidersTest, TwoClientsInOppositeOrderGetEachLockOnce) {
  Crowd one(etcd.open());
  Crowd two(etcd.open());
  one.prepare();
  two.prepare();
  const auto ours = wishes(100);
  auto theirs = wishes(100);
  std::reverse(theirs.begin(), theirs.end());
  auto our_answers = acquire(one, ours);
  auto their_answers = acquire(two, theirs);
  std::map<std::string, RequestId> holders;
  const auto collect = [&](const std::vector<Wish>& all, std::vector<AcquireAnswer>& answers) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto answer = answers[i].get();
      ASSERT_TRUE(answer) << to_string(answer.error());
      if (!is_granted(answer)) continue;
      EXPECT_TRUE(holders.emplace(all[i].lock, all[i].request).second) << all[i].lock;
    }
  };
  collect(ours, our_answers);
  collect(theirs, their_answers);
  EXPECT_THAT(holders, SizeIs(100));
  for (const auto& [lock, request] : holders) EXPECT_EQ(one.holder(lock)->request, request);
}

TEST_F(RidersTest, OneLeaseThatDiedCostsTheNeighboursNothing) {
  Crowd crowd = through_proxy();
  crowd.prepare(30s);
  const Wish other{.lock = "other", .ttl = 40s};
  ASSERT_TRUE(is_granted(crowd.acquire(other).get()));
  const std::string key =
      etcd.server().ctl({"get", "--prefix", etcd.prefix() + "/other/", "-w", "fields"}).out;
  char id[32];
  std::snprintf(id, sizeof id, "%llx", std::stoull(key.substr(key.find("\"Lease\" : ") + 10)));
  ASSERT_EQ(etcd.server().ctl({"lease", "revoke", id}).status, 0);
  auto all = wishes(6);
  all[3].ttl = 40s;
  auto answers = acquire_together(crowd, all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto answer = answers[i].get();
    ASSERT_TRUE(is_granted(answer)) << all[i].lock;
    EXPECT_TRUE(std::get<Granted>(*answer).fresh);
    EXPECT_EQ(crowd.holder(all[i].lock)->request, all[i].request);
  }
}

}  // namespace
}  // namespace leasehold::testing
