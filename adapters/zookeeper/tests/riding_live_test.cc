// What goes without a list, and what goes together, seen on the wire and by other programs.
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <map>

#include "ended_session.h"
#include "leasehold/client.h"
#include "proxied_server.h"
#include "testing/raw_store.h"

#define THREADED
#include <zookeeper/zookeeper.h>

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Lt;

rig::IsRequest of_type(std::int32_t wanted) {
  return [wanted](std::string_view bytes) {
    bool found = false;
    for_each_request(bytes, [&](std::int32_t type) { found |= type == wanted; });
    return found;
  };
}

bool is_granted(const Result<AcquireReply>& reply) {
  return reply && std::holds_alternative<Granted>(*reply);
}

void take_and_give_back(RawStore& store, int times) {
  for (int i = 0; i < times; ++i) {
    const RequestId request = new_request();
    ASSERT_TRUE(is_granted(store.acquire(request)));
    ASSERT_EQ(store.release(request), ReleaseReply::released);
  }
}

// Another program, which does as it likes.
class Stranger {
 public:
  Stranger()
      : handle_(zookeeper_init2(long_server().address().c_str(), nullptr, 20'000, nullptr, nullptr,
                                0, [](const char*) {})) {}
  ~Stranger() { zookeeper_close(handle_); }
  Stranger(const Stranger&) = delete;

  void remove(const std::string& path) {
    EXPECT_EQ(zoo_delete(handle_, path.c_str(), -1), ZOK) << path;
  }
  void make(const std::string& path) {
    EXPECT_EQ(zoo_create(handle_, path.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, nullptr, 0), ZOK)
        << path;
  }
  // Returns its number.
  int stand_in(const std::string& folder) {
    char path[256];
    EXPECT_EQ(zoo_create(handle_, (folder + "/lock-").c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE,
                         ZOO_EPHEMERAL | ZOO_SEQUENCE, path, sizeof path),
              ZOK);
    return std::stoi(std::string(path).substr(folder.size() + 6));
  }

 private:
  zhandle_t* const handle_;
};

// ---- without a list -------------------------------------------------------------------------

TEST(ZookeeperQuietLock, IsListedTwiceAndThenNoMore) {
  ProxiedZookeeper server(of_type(kGetChildren));
  RawStore store(server.open_through_proxies());
  take_and_give_back(store, 5);
  EXPECT_EQ(server.proxy().requests(), 2u);
}

TEST(ZookeeperQuietLock, IsListedWhenAnotherProgramHasCome) {
  ProxiedZookeeper server;
  Stranger stranger;
  RawStore store(server.open());
  take_and_give_back(store, 4);
  EXPECT_EQ(stranger.stand_in(server.folder() + "/job"), 4);
  EXPECT_TRUE(std::holds_alternative<Busy>(store.acquire(new_request()).value()));
}

// A lease in the folder of leases takes no number of the lock's own.
TEST(ZookeeperQuietLock, IsListedWhereSemaphoresAre) {
  ProxiedZookeeper server;
  Stranger stranger;
  RawStore store(server.open());
  take_and_give_back(store, 1);
  const std::string leases = server.folder() + "/job/leases";
  stranger.make(leases);
  take_and_give_back(store, 4);
  stranger.stand_in(leases);
  EXPECT_TRUE(std::holds_alternative<Busy>(store.acquire(new_request()).value()));
}

TEST(ZookeeperQuietLock, IsListedWhileItsHolderIsThisClient) {
  ProxiedZookeeper server;
  RawStore store(server.open());
  take_and_give_back(store, 3);
  ASSERT_TRUE(is_granted(store.acquire(new_request())));
  EXPECT_TRUE(std::holds_alternative<Busy>(store.acquire(new_request()).value()));
}

// Its next number is what it was in the old one.
void expect_a_new_folder_to_be_noticed(ProxiedZookeeper& server, RawStore& store,
                                       const std::function<void()>& after) {
  Stranger stranger;
  take_and_give_back(store, 4);
  const std::string folder = server.folder() + "/job";
  stranger.remove(folder);
  stranger.make(folder);
  while (stranger.stand_in(folder) < 3) continue;
  after();
  const auto reply = store.acquire(new_request());
  ASSERT_TRUE(reply) << to_string(reply.error());
  EXPECT_TRUE(std::holds_alternative<Busy>(*reply));
}

TEST(ZookeeperQuietLock, IsListedInAFolderThatWasMadeAnew) {
  ProxiedZookeeper server;
  RawStore store(server.open());
  expect_a_new_folder_to_be_noticed(server, store, [] {});
}

TEST(ZookeeperQuietLock, IsListedInAFolderThatWasMadeAnewWhileItWasCutOff) {
  ProxiedZookeeper server;
  RawStore store(server.open_through_proxies());
  server.proxy().wait_for_connection();
  const std::size_t before = server.proxy().connections();
  // So that the watch has nothing to tell but on the next connection.
  const auto cut = [&] {
    server.proxy().cut();
    wait_until([&] { return server.proxy().connections() > before; });
    wait_until([&] { return store.inspect().has_value(); });
  };
  expect_a_new_folder_to_be_noticed(server, store, cut);
}

// ---- together -------------------------------------------------------------------------------

// Calls that are made one right after the other, without waiting.
class Crowd {
 public:
  explicit Crowd(std::unique_ptr<Store> opened) : store_(std::move(opened)) {
    store_->start(events_);
  }
  ~Crowd() { store_->close(); }

  struct Member {
    LockName lock;
    RequestId request = new_request();
  };
  std::vector<Result<AcquireReply>> acquire(const std::vector<Member>& members, Mode mode = {}) {
    return ask<AcquireReply>(members, [&](const Member& it, auto done) {
      store_->acquire({it.lock, it.request, OwnerLabel::parse("raw").value(), Ttl::of(30s).value(),
                       /*queue=*/false, mode},
                      context(), std::move(done));
    });
  }
  std::vector<Result<ReleaseReply>> release(const std::vector<Member>& members) {
    return ask<ReleaseReply>(members, [&](const Member& it, auto done) {
      store_->release({it.lock, it.request}, context(), std::move(done));
    });
  }

 private:
  static CallContext context() { return {BootClock::now() + 30s, {}}; }
  template <class Reply, class Call>
  static std::vector<Result<Reply>> ask(const std::vector<Member>& members, Call call) {
    using Answer = std::promise<Result<Reply>>;
    std::vector<std::shared_ptr<Answer>> answers;
    for (const Member& it : members) {
      answers.push_back(std::make_shared<Answer>());
      call(it,
           [answer = answers.back()](Result<Reply> reply) { answer->set_value(std::move(reply)); });
    }
    std::vector<Result<Reply>> replies;
    for (const auto& it : answers) replies.push_back(it->get_future().get());
    return replies;
  }

  SeenEvents events_;
  std::unique_ptr<Store> store_;
};

std::vector<Crowd::Member> crowd_of(std::size_t size) {
  std::vector<Crowd::Member> members;
  for (std::size_t i = 0; i < size; ++i) {
    members.push_back({lock_name("order " + std::to_string(i))});
  }
  return members;
}

TEST(ZookeeperRide, ManyLocksAreTakenAndGivenBackInFewTransactions) {
  constexpr std::size_t kCalls = 20;
  ProxiedZookeeper server(of_type(kMulti));
  Crowd crowd(server.open_through_proxies());
  RawStore other(server.open());
  std::map<LockName, std::int64_t> last;
  for (int round = 0; round < 4; ++round) {
    const std::size_t before = server.proxy().requests();
    const auto members = crowd_of(kCalls);
    const auto replies = crowd.acquire(members);
    for (std::size_t i = 0; i < kCalls; ++i) {
      ASSERT_TRUE(is_granted(replies[i]));
      const auto& [lock, request] = members[i];
      const std::int64_t token = std::get<Granted>(*replies[i]).token.value();
      EXPECT_GT(token, std::exchange(last[lock], token));
      const auto rival = other.acquire_another(lock, new_request());
      EXPECT_TRUE(rival && std::holds_alternative<Busy>(*rival)) << "it has its own";
    }
    for (const auto& it : crowd.release(members)) EXPECT_EQ(it, ReleaseReply::released);
    // Unless the machine stalls between two calls, there are two.
    EXPECT_THAT(server.proxy().requests() - before, AllOf(Ge(1u), Lt(kCalls)));
  }
}

TEST(ZookeeperRide, EachFindsItsOwnAfterABatchThatWasCutOff) {
  for (const rig::WireFault fault : {rig::WireFault::cut_before, rig::WireFault::cut_after}) {
    SCOPED_TRACE(rig::to_string(fault));
    ProxiedZookeeper server;
    Crowd crowd(server.open_through_proxies());
    RawStore other(server.open());
    Client observer(server.open());
    const auto members = crowd_of(20);
    server.proxy().delay(20ms);  // the first few are out while the others come
    server.proxy().arm(fault, of_type(kMulti));
    for (const auto& it : crowd.acquire(members)) {
      if (!it) EXPECT_EQ(it.error().code, ErrorCode::outcome_unknown) << to_string(it.error());
    }
    ASSERT_TRUE(server.proxy().wait_for_fault(30s));
    std::vector<Result<AcquireReply>> again;
    wait_until([&] {
      again = crowd.acquire(members);
      return std::all_of(again.begin(), again.end(), is_granted);
    });
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto status = observer.inspect(members[i].lock);
      ASSERT_TRUE(status && status->holder()) << "it is granted";
      EXPECT_EQ(status->holder()->request, members[i].request);
      EXPECT_EQ(status->holder()->token, std::get<Granted>(*again[i]).token);
      EXPECT_TRUE(status->waiters.empty()) << "it has one node";
    }
    server.proxy().arm(fault, of_type(kMulti));
    (void)crowd.release(members);
    ASSERT_TRUE(server.proxy().wait_for_fault(30s));
    for (const auto& it : members) {
      wait_until([&] { return is_granted(other.acquire_another(it.lock, new_request())); });
    }
  }
}

// The operator has taken its folder away, or its node.
TEST(ZookeeperRide, RefusedOneIsNotItsNeighbours) {
  ProxiedZookeeper server;
  Stranger stranger;
  Crowd crowd(server.open());
  RawStore other(server.open());
  auto members = crowd_of(20);
  for (const auto& it : crowd.acquire(members)) ASSERT_TRUE(is_granted(it));
  for (const auto& it : crowd.release(members)) ASSERT_EQ(it, ReleaseReply::released);
  stranger.remove(server.folder() + "/order%2013");
  members = crowd_of(20);
  for (const auto& it : crowd.acquire(members)) EXPECT_TRUE(is_granted(it));
  ASSERT_EQ(other.release_another(members[14].lock, members[14].request), ReleaseReply::released);
  const auto replies = crowd.release(members);
  for (std::size_t i = 0; i < replies.size(); ++i) {
    EXPECT_EQ(replies[i], i == 14 ? ReleaseReply::not_held : ReleaseReply::released);
    EXPECT_TRUE(is_granted(other.acquire_another(members[i].lock, new_request()))) << "an orphan";
  }
}

TEST(ZookeeperRide, WhoSharesALockHasATokenOfItsOwn) {
  ProxiedZookeeper server;
  Crowd crowd(server.open());
  std::vector<Crowd::Member> members = crowd_of(15);
  for (int i = 0; i < 5; ++i) members.push_back({lock_name("order 1")});
  const auto replies = crowd.acquire(members, Mode::shared());
  std::int64_t last = 0;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    ASSERT_TRUE(is_granted(replies[i]));
    if (members[i].lock != members[1].lock) continue;
    const std::int64_t token = std::get<Granted>(*replies[i]).token.value();
    EXPECT_GT(token, std::exchange(last, token));
  }
}

}  // namespace
}  // namespace leasehold::testing
