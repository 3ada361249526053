// Beside clients that other people wrote; docs/together.md tells users what is seen here.
#include <gmock/gmock.h>

#include <chrono>
#include <future>
#include <thread>

#include "one_server.h"
#include "testing/peer_conformance.h"
#include "testing/raw_store.h"
#include "testing/results.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

rig::ZookeeperServer& server() {
  static rig::ZookeeperServer server({.min_session_ms = 1000, .max_session_ms = 40'000});
  return server;
}

const std::vector<std::string> kKazoo = python_peer(LEASEHOLD_PEERS "/kazoo_lock.py");
const std::vector<std::string> kCurator = {"java",
                                           "-Xmx64m",
                                           "-XX:+UseSerialGC",
                                           "-XX:TieredStopAtLevel=1",
                                           "-cp",
                                           LEASEHOLD_CURATOR_CLASSES ":" LEASEHOLD_CURATOR_JARS,
                                           "Peer"};

std::string url_of(const std::string& folder, const std::string& options = "",
                   const std::string& address = server().address()) {
  return "zookeeper://" + address + folder + options;
}

PeerCase works(const std::string& name, std::vector<std::string> program, const std::string& kind,
               const std::string& options) {
  return {name, [=](const std::string& lock) {
            const std::string folder = fresh_folder();
            const std::string url = url_of(folder, options);
            return Meeting{.open = [url] { return open_zookeeper(url); },
                           .url = url,
                           .lock = lock,
                           .program = program,
                           .address = server().address(),
                           .name = folder + "/" + lock,
                           .kind = kind,
                           .shortest_ttl = 1s};
          }};
}

// Its locks are kazoo's, in a folder that is always the same.
PeerCase tooz() {
  return {"tooz", [](const std::string& lock) {
            const std::string url = url_of("/tooz/locks", "?recipe=kazoo");
            return Meeting{.open = [url] { return open_zookeeper(url); },
                           .url = url,
                           .lock = lock,
                           .program = tooz_peer(),
                           .address = "kazoo://" + server().address() + "?timeout={seconds}",
                           .name = lock,
                           .shortest_ttl = 1s};
          }};
}

INSTANTIATE_TEST_SUITE_P(Zookeeper, PeerConformance,
                         ::testing::Values(works("kazoo", kKazoo, "default", "?recipe=kazoo"),
                                           works("kazoo_with_patterns", kKazoo, "patterns", ""),
                                           works("kazoo_write", kKazoo, "write", "?recipe=kazoo"),
                                           tooz(), works("curator_mutex", kCurator, "mutex", "")),
                         name_of_peer_case);

class Peer {
 public:
  Peer(std::vector<std::string> program, const std::string& path, const std::string& kind,
       const std::string& address = server().address())
      : worker_(started(std::move(program), path, kind, address)) {
    EXPECT_EQ(worker_.line(), "ready");
  }
  std::string ask(const std::string& order) {
    tell(order);
    return answer();
  }
  void tell(const std::string& order) { worker_.tell(order); }
  std::string answer() { return worker_.line(); }
  int status() { return worker_.wait(); }

 private:
  static Worker started(std::vector<std::string> argv, const std::string& path,
                        const std::string& kind, const std::string& address) {
    argv.insert(argv.end(), {address, path, "10000", kind});
    return Worker::start(std::move(argv));
  }
  Worker worker_;
};

// Several readers hold it together, so that the suite is not for them.
TEST(ZookeeperPeers, KazoosReaderAndLeaseholdSeeEachOther) {
  const std::string folder = fresh_folder();
  Peer reader(kKazoo, folder + "/job", "read");
  RawStore mine(open_zookeeper(url_of(folder, "?recipe=kazoo")));
  ASSERT_EQ(reader.ask("try"), "held");
  EXPECT_TRUE(std::holds_alternative<Busy>(mine.acquire(new_request()).value()));
  ASSERT_EQ(reader.ask("give"), "free");
  const RequestId request = new_request();
  EXPECT_TRUE(std::holds_alternative<Granted>(mine.acquire(request).value()));
  EXPECT_EQ(reader.ask("try"), "busy");
  EXPECT_EQ(mine.release(request), ReleaseReply::released);
  EXPECT_EQ(reader.ask("try"), "held");
}

// The uuid in its nodes is that of the Lock object.
TEST(ZookeeperPeers, ForceReleaseDoesNotHitKazoosNextStay) {
  const std::string folder = fresh_folder();
  Peer kazoo(kKazoo, folder + "/job", "default");
  RawStore mine(open_zookeeper(url_of(folder, "?recipe=kazoo")));
  ASSERT_EQ(kazoo.ask("try"), "held");
  const RequestId seen = mine.inspect()->holder()->request;
  ASSERT_EQ(kazoo.ask("give"), "free");
  ASSERT_EQ(kazoo.ask("try"), "held");
  EXPECT_EQ(mine.force_release(seen).value(), ReleaseReply::not_held);
  EXPECT_EQ(mine.force_release(mine.inspect()->holder()->request).value(), ReleaseReply::released);
}

// It counts the nodes, and makes its own afterwards: it sees who was there long enough before.
TEST(ZookeeperPeers, KazoosSemaphoreIsSeenAndSeesWhoWasThereBefore) {
  for (const std::string recipe : {"", "?recipe=kazoo"}) {
    const std::string folder = fresh_folder();
    Peer semaphore(kKazoo, folder + "/job", "semaphore");
    RawStore mine(open_zookeeper(url_of(folder, recipe)));
    ASSERT_EQ(semaphore.ask("try"), "held");
    EXPECT_TRUE(std::holds_alternative<Busy>(mine.acquire(new_request()).value())) << recipe;
    ASSERT_EQ(semaphore.ask("give"), "free");
    EXPECT_TRUE(std::holds_alternative<Granted>(mine.acquire(new_request()).value())) << recipe;
    EXPECT_EQ(semaphore.ask("try"), "busy") << recipe;
  }
}

// ---- modes ----------------------------------------------------------------------------------

class ModesBesideAMutex : public ::testing::TestWithParam<std::string> {
 protected:
  std::vector<std::string> program() const { return GetParam() == "mutex" ? kCurator : kKazoo; }

  const std::string folder = fresh_folder();
  Peer peer{program(), folder + "/job", GetParam()};
  RawStore mine{open_zookeeper(url_of(folder))};
  const std::vector<Mode> modes = {Mode::shared(), Mode::permit_of(2)};
};
INSTANTIATE_TEST_SUITE_P(ZookeeperPeers, ModesBesideAMutex, ::testing::Values("mutex", "patterns"),
                         [](const auto& of) { return of.param; });

TEST_P(ModesBesideAMutex, ItWaitsForEachOfThoseWhoHoldTogether) {
  for (const Mode mode : modes) {
    SCOPED_TRACE(to_string(mode));
    const RequestId one = new_request();
    const RequestId two = new_request();
    ASSERT_TRUE(std::holds_alternative<Granted>(mine.acquire_as(mode, one).value()));
    ASSERT_TRUE(std::holds_alternative<Granted>(mine.acquire_as(mode, two).value()));
    EXPECT_EQ(peer.ask("try"), "busy");
    EXPECT_EQ(mine.release(two), ReleaseReply::released);
    EXPECT_EQ(peer.ask("try"), "busy") << "one is still there";
    peer.tell("take");
    while (mine.inspect()->waiters.empty()) std::this_thread::sleep_for(2ms);  // no event tells it
    EXPECT_TRUE(std::holds_alternative<Busy>(mine.acquire_as(mode, new_request()).value()))
        << "nobody overtakes it";
    EXPECT_EQ(mine.release(one), ReleaseReply::released);
    EXPECT_EQ(peer.answer(), "held");
    EXPECT_EQ(peer.ask("give"), "free");
  }
}

TEST_P(ModesBesideAMutex, IsWaitedForAsAnExclusiveHolder) {
  ASSERT_EQ(peer.ask("try"), "held");
  const Mode shared = Mode::shared();
  EXPECT_TRUE(std::holds_alternative<Busy>(mine.acquire_as(shared, new_request()).value()));
  const auto refused = mine.acquire_as(Mode::permit_of(2), new_request());
  ASSERT_TRUE(bad(refused, ErrorCode::invalid));
  EXPECT_THAT(refused.error().message, HasSubstr("without permits (exclusive)"));
  EXPECT_TRUE(bad(mine.set_permits(2), ErrorCode::invalid));
  const RequestId readers[] = {new_request(), new_request()};
  for (const RequestId& it : readers) {
    ASSERT_TRUE(std::holds_alternative<Queued>(mine.acquire_as(shared, it, true).value()));
  }
  ASSERT_EQ(peer.ask("give"), "free");
  for (const RequestId& it : readers) {
    EXPECT_TRUE(mine.events.wait_for_nudge(it, 30s));
    EXPECT_TRUE(std::holds_alternative<Granted>(mine.acquire_as(shared, it, true).value()));
  }
}

TEST_P(ModesBesideAMutex, ItTakesALockWithSetPermitsInItsTurn) {
  const Mode two = Mode::permit_of(2);
  ASSERT_TRUE(good(mine.set_permits(2)));
  ASSERT_EQ(peer.ask("try"), "held") << "it does not know of permits";
  const RequestId request = new_request();
  ASSERT_TRUE(std::holds_alternative<Queued>(mine.acquire_as(two, request, true).value()));
  ASSERT_EQ(peer.ask("give"), "free");
  EXPECT_TRUE(mine.events.wait_for_nudge(request, 30s));
  EXPECT_TRUE(std::holds_alternative<Granted>(mine.acquire_as(two, request, true).value()));
}

// ---- those that do not look for Leasehold ---------------------------------------------------

void expect_that_only_leasehold_looks(Peer& peer, const std::string& folder,
                                      const std::string& node) {
  RawStore mine(open_zookeeper(url_of(folder)));
  // While the other holds: busy, shown, waited for.
  ASSERT_EQ(peer.ask("try"), "held");
  const auto busy = mine.acquire(new_request());
  ASSERT_TRUE(good(busy));
  ASSERT_TRUE(std::holds_alternative<Busy>(*busy));
  EXPECT_THAT(std::get<Busy>(*busy).ahead, HasSubstr(node));
  const auto status = mine.inspect();
  ASSERT_TRUE(good(status));
  ASSERT_TRUE(status->holder());
  EXPECT_TRUE(status->holder()->foreign);
  EXPECT_THAT(status->holder()->owner, HasSubstr(node));
  const RequestId waits = new_request();
  ASSERT_TRUE(std::holds_alternative<Queued>(mine.acquire(waits, 30s, true).value()));
  EXPECT_EQ(mine.inspect()->waiters.size(), 1u);
  ASSERT_EQ(peer.ask("give"), "free");
  EXPECT_TRUE(mine.events.wait_for_nudge(waits, 30s));
  const std::int64_t token = mine.token(waits);

  // While Leasehold holds, the other takes it all the same. That changes nothing for who holds.
  ASSERT_EQ(peer.ask("try"), "held") << "if it is busy now, docs/together.md may say more";
  EXPECT_EQ(mine.token(waits), token);
  EXPECT_EQ(mine.renew(waits), RenewReply::renewed);
  EXPECT_EQ(mine.release(waits), ReleaseReply::released);

  // An operator can take it from the other.
  const auto theirs = mine.inspect();
  ASSERT_TRUE(theirs->holder());
  EXPECT_EQ(mine.force_release(theirs->holder()->request).value(), ReleaseReply::released);
  EXPECT_TRUE(std::holds_alternative<Granted>(mine.acquire(new_request()).value()));
}

TEST(ZookeeperPeers, KazooAtItsDefaultsDoesNotLook) {
  const std::string folder = fresh_folder();
  Peer peer(kKazoo, folder + "/job", "default");
  expect_that_only_leasehold_looks(peer, folder, "__lock__");
}

TEST(ZookeeperPeers, CuratorsOtherLocksDoNotLook) {
  Peer peer(kCurator, "/unused", "mutex");
  for (const auto& [kind, node] :
       {std::pair{"semaphore", "leases/"}, std::pair{"semaphore_v2", "leases/"},
        std::pair{"read", "__READ__"}, std::pair{"write", "__WRIT__"}}) {
    SCOPED_TRACE(kind);
    const std::string folder = fresh_folder();
    ASSERT_EQ(peer.ask("lock " + folder + "/job " + kind), "ready");
    expect_that_only_leasehold_looks(peer, folder, node);
  }
}

// It takes a name without its own "lock-" as it stands, and puts it behind all numbers.
TEST(ZookeeperPeers, CuratorPassesTheKazooRecipe) {
  const std::string folder = fresh_folder();
  RawStore mine(open_zookeeper(url_of(folder, "?recipe=kazoo")));
  const auto request = RequestId::from_hex("abcdef0123456789abcdef0123456789").value();
  ASSERT_TRUE(std::holds_alternative<Granted>(mine.acquire(request).value()));
  Peer curator(kCurator, folder + "/job", "mutex");
  EXPECT_EQ(curator.ask("try"), "held") << "if it is busy now, docs/together.md may say more";
}

// ---- the lock's folder ----------------------------------------------------------------------

// The peer has seen the folder that Leasehold made, and uses it again later. Returns its answer, or
// its status if there is none.
std::string used_again_later(const std::string& options) {
  static rig::ZookeeperServer tidy({.max_session_ms = 40'000, .container_check_ms = 100});
  const std::string folder = fresh_folder();
  RawStore mine(open_zookeeper(url_of(folder, options, tidy.address())));
  const RequestId request = new_request();
  EXPECT_TRUE(good(mine.acquire(request)));
  const std::string kind = options.empty() ? "patterns" : "default";
  Peer peer(kKazoo, folder + "/job", kind, tidy.address());
  EXPECT_EQ(peer.ask("try"), "busy");
  EXPECT_EQ(mine.release(request), ReleaseReply::released);
  // When another folder, emptied later, has been removed, this one would have been as well.
  RawStore other(open_zookeeper(url_of(fresh_folder(), "", tidy.address())));
  for (int rounds = 0; rounds < 2; ++rounds) {
    const RequestId passing = new_request();
    EXPECT_TRUE(good(other.acquire(passing)));
    EXPECT_EQ(other.release(passing), ReleaseReply::released);
    while (other.inspect()->counted_to) std::this_thread::sleep_for(10ms);  // no event tells it
  }
  const std::string answer = peer.ask("try");
  return answer.empty() ? std::to_string(peer.status()) : answer;
}

TEST(ZookeeperPeers, FolderOfTheKazooRecipeStaysForItsObjects) {
  EXPECT_EQ(used_again_later("?recipe=kazoo"), "held");
}

TEST(ZookeeperPeers, OtherFoldersAreRemovedUnderKazoosObjects) {
  EXPECT_EQ(used_again_later(""), "44") << "if it works now, docs/together.md may say less";
}

}  // namespace
}  // namespace leasehold::testing
