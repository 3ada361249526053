// Users, wrong addresses, wrong URLs, and programs that are not Leasehold.
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <thread>

#include "leasehold/client.h"
#include "leasehold/process/child.h"
#include "proxied_server.h"
#include "testing/raw_store.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

Result<std::unique_ptr<Store>> try_open(const std::string& url) {
  return zookeeper::adapters().front().open_store(Url::parse(url).value(), {});
}

// ---- users ----------------------------------------------------------------------------------

TEST(ZookeeperAccess, NodesOfAUserAreItsOwn) {
  const std::string folder = fresh_folder();
  const std::string host = long_server().address();
  RawStore mine(open_zookeeper("zookeeper://ann:s3cret@" + host + folder));
  const RequestId request = new_request();
  ASSERT_TRUE(mine.acquire(request));

  const auto wrong_password = try_open("zookeeper://ann:wr0ng@" + host + folder);
  ASSERT_FALSE(wrong_password);
  EXPECT_EQ(wrong_password.error().code, ErrorCode::unavailable);
  EXPECT_THAT(wrong_password.error().address, HasSubstr(host));
  EXPECT_EQ(wrong_password.error().store_words, "not authenticated");
  EXPECT_THAT(to_string(wrong_password.error()), Not(HasSubstr("wr0ng")));
  const auto nobody = try_open("zookeeper://" + host + folder);
  ASSERT_FALSE(nobody) << "without a user";
  EXPECT_EQ(nobody.error().code, ErrorCode::unavailable);
  EXPECT_THAT(nobody.error().address, HasSubstr(host));
  EXPECT_EQ(nobody.error().store_words, "not authenticated");

  RawStore again(open_zookeeper("zookeeper://ann:s3cret@" + host + folder));
  EXPECT_THAT(again.traits().address, Not(HasSubstr("s3cret")));
  EXPECT_TRUE(std::holds_alternative<Busy>(again.acquire(new_request()).value()));
  EXPECT_EQ(again.force_release(request).value(), ReleaseReply::released);
}

// ---- zkCli ----------------------------------------------------------------------------------

// The shell that comes with ZooKeeper.
class ZkCli {
 public:
  ZkCli() : child_(start()) { ask("ls /", "]"); }

  void tell(const std::string& command) { process::write_all(child_.in().get(), command + "\n"); }
  // What it prints, up to `end`.
  std::string ask(const std::string& command, const std::string& end) {
    tell(command);
    return process::read_until(child_.out().get(), end, process::within(60s));
  }
  // The path of a new ephemeral sequential node.
  std::string create(const std::string& folder, const std::string& name = "lock-") {
    tell("create -e -s " + folder + "/" + name + " someone");
    const std::string said = process::read_until(child_.err().get(), "\n", process::within(60s));
    const std::size_t at = said.find(folder);  // "Created /folder/lock-0000000001"
    if (at == std::string::npos) throw std::runtime_error("zkCli says: " + said);
    return said.substr(at, said.find('\n', at) - at);
  }

 private:
  static process::Child start() {
    process::Command command;
    command.argv = {"java",
                    "-Xmx64m",
                    "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
                    "-cp",
                    "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar",
                    "org.apache.zookeeper.ZooKeeperMain",
                    "-server",
                    long_server().address()};
    command.in = process::Piped{};
    command.out = process::Piped{};
    command.err = process::Piped{};
    command.parent_death_signal = SIGKILL;
    auto child = process::Child::start(command);
    if (!child) throw std::runtime_error(child.error().message);
    return std::move(*child);
  }
  process::Child child_;
};

TEST(ZookeeperAccess, SharesALockWithAnyProgramThatUsesTheRecipe) {
  const std::string folder = fresh_folder();
  RawStore store(open_zookeeper("zookeeper://" + long_server().address() + folder));
  const std::string lock = store.inspect()->known_as;
  EXPECT_EQ(lock, folder + "/job");
  const RequestId first = new_request();
  ASSERT_TRUE(store.acquire(first));

  ZkCli cli;
  const std::string theirs = cli.create(lock);
  EXPECT_THAT(theirs, HasSubstr(lock + "/lock-"));
  // Leasehold holds: the other program sees a lower number than its own.
  const std::string listed = cli.ask("ls " + lock, "]");
  EXPECT_THAT(listed, HasSubstr("_c_"));
  EXPECT_THAT(listed, HasSubstr("-lock-0000000000"));
  EXPECT_EQ(store.inspect()->waiters.size(), 1u);
  ASSERT_EQ(store.release(first), ReleaseReply::released);

  // The other program holds: Leasehold is told so, waits, and is woken.
  const auto status = store.inspect();
  ASSERT_TRUE(status && status->holder());
  EXPECT_THAT(status->holder()->owner, HasSubstr("another program"));
  const auto busy = store.acquire(new_request());
  ASSERT_TRUE(busy && std::holds_alternative<Busy>(*busy));
  EXPECT_THAT(std::get<Busy>(*busy).ahead, HasSubstr("lock-00000"));
  const RequestId waiter = new_request();
  ASSERT_TRUE(std::holds_alternative<Queued>(store.acquire(waiter, 30s, true).value()));
  cli.tell("delete " + theirs);
  ASSERT_TRUE(store.events.wait_for_nudge(waiter, 30s));
  ASSERT_TRUE(std::holds_alternative<Granted>(store.acquire(waiter, 30s, true).value()));
  ASSERT_EQ(store.release(waiter), ReleaseReply::released);

  // An operator may end it as well.
  cli.create(lock);
  const auto held = store.inspect();
  ASSERT_TRUE(held && held->holder());
  EXPECT_EQ(store.force_release(held->holder()->request).value(), ReleaseReply::released);
  EXPECT_TRUE(std::holds_alternative<Granted>(store.acquire(new_request()).value()));
}

// Curator's InterProcessMutex writes a uuid before the number, and its address into the node. The
// uuids are in the other order than the numbers.
TEST(ZookeeperAccess, QueuesWithCuratorsNodes) {
  const std::string folder = fresh_folder();
  RawStore store(open_zookeeper("zookeeper://" + long_server().address() + folder));
  const std::string lock = store.inspect()->known_as;
  const RequestId first = new_request();
  ASSERT_TRUE(std::holds_alternative<Granted>(store.acquire(first).value()));
  ZkCli cli;
  const std::string early = cli.create(lock, "_c_ffffffff-2222-4333-8444-555555555555-lock-");
  const std::string late = cli.create(lock, "_c_00000000-2222-4333-8444-555555555555-lock-");
  EXPECT_EQ(store.inspect()->waiters.size(), 2u);
  ASSERT_EQ(store.release(first), ReleaseReply::released);

  const RequestId waiter = new_request();
  ASSERT_TRUE(std::holds_alternative<Queued>(store.acquire(waiter, 30s, true).value()));
  const auto status = store.inspect();
  ASSERT_TRUE(status && status->holder());
  EXPECT_THAT(status->holder()->owner, HasSubstr("another program"));
  EXPECT_THAT(status->holder()->owner, HasSubstr("_c_ffffffff"));
  ASSERT_EQ(status->waiters.size(), 2u);

  // What zkCli has answered to is done.
  cli.tell("delete " + early);
  cli.ask("get " + late, "someone");
  EXPECT_TRUE(std::holds_alternative<Queued>(store.acquire(waiter, 30s, true).value()))
      << "the other one is still before it";
  cli.tell("delete " + late);
  ASSERT_TRUE(store.events.wait_for_nudge(waiter, 30s));
  EXPECT_TRUE(std::holds_alternative<Granted>(store.acquire(waiter, 30s, true).value()));
}

// ---- wrong addresses ------------------------------------------------------------------------

void expect_unavailable(const std::string& url, const std::string& message,
                        const std::string& words) {
  const BootTime before = BootClock::now();
  const auto store = try_open(url);
  ASSERT_FALSE(store) << url;
  EXPECT_EQ(store.error().code, ErrorCode::unavailable) << to_string(store.error());
  EXPECT_THAT(store.error().message, HasSubstr(message));
  EXPECT_THAT(to_string(store.error()), HasSubstr(words));
  EXPECT_THAT(to_string(store.error()), HasSubstr("127.0.0.1"));
  EXPECT_THAT(to_string(store.error()), Not(HasSubstr("s3cret")));
  EXPECT_LT(BootClock::now() - before, 30s);
}

TEST(ZookeeperAccess, NobodyThere) {
  const rig::Port port = rig::Port::take();
  // Said as soon as it is known, not at the end of the time allowed.
  expect_unavailable("zookeeper://ann:s3cret@" + port.address() + "/locks",
                     "no ZooKeeper server opened a session", "Connection refused");
}

TEST(ZookeeperAccess, AnotherProtocolOnThePort) {
  const rig::Port port = rig::Port::take();
  const kit::Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port.number());
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener.get(), 16), 0);
  const std::jthread web([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (!process::wait_readable(listener.get(), process::within(50ms))) continue;
      const kit::Fd client(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      process::write_all(client.get(), "HTTP/1.1 400 Bad Request\r\n\r\n");
    }
  });
  expect_unavailable("zookeeper://" + port.address() + "/locks",
                     "no answer within the time allowed", "HTTP/1.1 400 Bad Request");
}

TEST(ZookeeperAccess, UnknownHost) {
  const auto store = try_open("zookeeper://no-such-host.invalid:2181/locks");
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::unavailable);
  EXPECT_THAT(to_string(store.error()), HasSubstr("no-such-host.invalid"));
}

TEST(ZookeeperAccess, CallsAfterCloseAreRefusedAtOnce) {
  auto store = open_zookeeper("zookeeper://" + long_server().address() + fresh_folder());
  SeenEvents events;
  store->start(events);
  store->close();
  std::optional<ErrorCode> code;
  store->acquire({lock_name("job"), new_request(), OwnerLabel::parse("x").value(),
                  Ttl::of(30s).value(), false},
                 {BootClock::now() + 10s, {}}, [&](Result<AcquireReply> reply) {
                   code = reply ? ErrorCode::internal : reply.error().code;
                 });
  EXPECT_EQ(code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace leasehold::testing
