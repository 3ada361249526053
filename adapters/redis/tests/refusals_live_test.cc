// Servers that cannot be used: each is told by its address and its own words, in time, and without
// the password.
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <future>
#include <thread>

#include "server_under_test.h"
#include "testing/scripted_server.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

Error refusal(const std::string& text, const OpenOptions& opening = {}) {
  const Url url = Url::parse(text).value();
  for (const Adapter& adapter : redis::adapters()) {
    if (adapter.scheme != url.scheme) continue;
    const BootTime before = BootClock::now();
    const auto store = adapter.open_store(url, opening);
    EXPECT_LT(BootClock::now() - before, 20s) << text;
    if (!store) return store.error();
  }
  ADD_FAILURE() << text << " was opened";
  return Error(ErrorCode::internal, "");
}

bool takes_a_lock(const std::string& url) {
  RawStore store(open_url(url));
  const RequestId request = new_request();
  const auto reply = store.acquire(request);
  return reply && std::holds_alternative<Granted>(*reply) &&
         store.release(request) == ReleaseReply::released;
}

// `unavailable`, with the address in the sentence and what the server or the TLS library said.
void expect_unavailable(const Error& error, const std::string& address, const std::string& words) {
  EXPECT_EQ(error.code, ErrorCode::unavailable) << to_string(error);
  EXPECT_THAT(sentence(error), HasSubstr(address));
  EXPECT_THAT(error.store_words, HasSubstr(words));
}

// Says one answer each time that it hears something, and closes after the last.
class Parrot : public ScriptedServer {
 public:
  explicit Parrot(std::vector<std::string> answers)
      : ScriptedServer([answers = std::move(answers)](int client) {
          for (const std::string& answer : answers) {
            char bytes[1024];
            if (recv(client, bytes, sizeof bytes, 0) <= 0) return;
            wire::say(client, answer);
          }
        }) {}
};

TEST(Refusals, NobodyThere) {
  const rig::Port nobody = rig::Port::take();
  const Error error = refusal("redis://" + nobody.address());
  EXPECT_EQ(error.code, ErrorCode::unavailable);
  EXPECT_THAT(error.address, HasSubstr(nobody.address()));
  EXPECT_THAT(error.store_words, HasSubstr("refused"));
}

TEST(Refusals, NameThatDoesNotResolve) {
  const Error error = refusal("redis://no-such-host.invalid:6379");
  expect_unavailable(error, "no-such-host.invalid:6379", "ame");
}

TEST(Refusals, SilentServerEndsAtTheDeadline) {
  const rig::Port silent = rig::Port::take();
  const kit::Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(silent.number());
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener.get(), 8), 0);
  const Error error = refusal("redis://" + silent.address());
  EXPECT_EQ(error.code, ErrorCode::unavailable);
  EXPECT_THAT(sentence(error), AllOf(HasSubstr(silent.address()), HasSubstr("waiting")));
}

TEST(Refusals, AnotherProtocol) {
  const Parrot web({"HTTP/1.1 400 Bad Request\r\nServer: web\r\n\r\n"});
  const Error error = refusal("redis://" + web.address());
  expect_unavailable(error, web.address(), "HTTP/1.1 400 Bad Request");
  EXPECT_THAT(error.message, HasSubstr("does not speak the Redis protocol"));
}

TEST(Refusals, HostileLengthIsNotAllocated) {
  const Parrot hostile({"*1000000000000\r\n"});
  EXPECT_EQ(refusal("redis://" + hostile.address()).code, ErrorCode::unavailable);
}

TEST(Refusals, OldServer) {
  const Parrot old({"-ERR unknown command 'HELLO'\r\n", "$24\r\n\r\nredis_version:4.0.14\r\n\r\n"});
  const Error error = refusal("redis://" + old.address());
  EXPECT_EQ(error.code, ErrorCode::unavailable);
  EXPECT_THAT(sentence(error), AllOf(HasSubstr(old.address()), HasSubstr("is Redis 4.0.14")));
}

TEST(Refusals, PasswordsAndUsers) {
  rig::RedisServer server({.more = {"--requirepass", "s3cret-word", "--user", "worker", "on",
                                    ">w0rker-word", "~*", "&*", "+@all"},
                           .cli = {"-a", "s3cret-word"}});
  const Error none = refusal(server.url());
  expect_unavailable(none, server.address(), "NOAUTH");
  EXPECT_THAT(none.message, HasSubstr("wants a password"));
  for (const std::string user : {"", "worker"}) {
    const Error wrong = refusal("redis://" + user + ":wr0ng-word@" + server.address());
    expect_unavailable(wrong, server.address(), "WRONGPASS");
    EXPECT_THAT(to_string(wrong), Not(HasSubstr("wr0ng-word")));
  }
  EXPECT_TRUE(takes_a_lock("redis://:s3cret-word@" + server.address()));
  EXPECT_TRUE(takes_a_lock("redis://worker:w0rker-word@" + server.address() + "/2"));
  const auto store = open_url("redis://worker:w0rker-word@" + server.address());
  EXPECT_THAT(store->traits().address, Not(HasSubstr("w0rker-word")));
}

TEST(Refusals, UserWithoutTheRights) {
  rig::RedisServer server(
      {.more = {"--user", "reader", "on", ">word", "~*", "&*", "+@read", "+@connection"}});
  expect_unavailable(refusal("redis://reader:word@" + server.address()), server.address(),
                     "NOPERM");
}

// The one in docs/redis.md.
TEST(Refusals, DocumentedUserIsEnough) {
  rig::RedisServer server(
      {.more = {"--user", "locks", "on", ">word", "~lock:*", "~leasehold:*", "&leasehold:*",
                "+@connection", "+@scripting", "+@read", "+@write", "+@pubsub", "+info", "+time"}});
  Client client(open_url("redis://locks:word@" + server.address()));
  auto lease = client.acquire("job", {.ttl = 24h});
  ASSERT_TRUE(lease) << to_string(lease.error());
  auto waiting = std::async(std::launch::async,
                            [&] { return client.acquire("job", {.ttl = 24h, .wait = 30s}); });
  while (client.inspect(lock_name("job"))->waiters.empty()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(client.list()->size(), 1u);
  EXPECT_EQ(lease->release().value(), ReleaseOutcome::released);
  auto next = waiting.get();
  ASSERT_TRUE(next) << to_string(next.error());
  EXPECT_TRUE(client.record(*next, "key", {"a", "b"}));
  EXPECT_TRUE(client.recall(lock_name("job"), "key").value());
  EXPECT_TRUE(client.force_release(lock_name("job"), next->request()));
  EXPECT_TRUE(client.rotate_store_id());
}

void expect_hand_over(Client& client) {
  auto lease = client.acquire("job");
  ASSERT_TRUE(lease) << to_string(lease.error());
  auto waiting =
      std::async(std::launch::async, [&] { return client.acquire("job", {.wait = 30s}); });
  while (client.inspect(lock_name("job"))->waiters.empty()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(lease->release().value(), ReleaseOutcome::released);
  EXPECT_TRUE(waiting.get());
}

TEST(Refusals, UserWhoMayNotPublishStillHandsOver) {
  rig::RedisServer server(
      {.more = {"--user", "quiet", "on", ">word", "~*", "resetchannels", "+@all"}});
  Client client(open_url("redis://quiet:word@" + server.address()));
  expect_hand_over(client);
}

TEST(Refusals, NoHelloMeansResp2) {
  rig::RedisServer server(
      {.more = {"--rename-command", "HELLO", "", "--requirepass", "s3cret-word"},
       .cli = {"-a", "s3cret-word"}});
  Client client(open_url("redis://:s3cret-word@" + server.address() + "/1"));
  expect_hand_over(client);
  EXPECT_EQ(server.cli({"-n", "1", "EXISTS", "leasehold:token"}), "1");
  expect_unavailable(refusal("redis://:wr0ng-word@" + server.address()), server.address(),
                     "WRONGPASS");
}

TEST(Refusals, ServerThatRepeatsThePasswordIsNotQuoted) {
  rig::RedisServer server(
      {.more = {"--rename-command", "HELLO", "", "--rename-command", "AUTH", ""}});
  for (const std::string& password : {std::string("s3cret-word"), std::string(300, 'p')}) {
    const Error error = refusal("redis://:" + password + "@" + server.address());
    EXPECT_THAT(error.store_words, HasSubstr("unknown command"));
    EXPECT_THAT(to_string(error), Not(HasSubstr(password.substr(0, 11))));
  }
}

TEST(Refusals, ReadOnlyReplica) {
  rig::RedisServer primary({.more = {"--repl-diskless-sync-delay", "0"}});
  rig::RedisServer replica(
      {.more = {"--replicaof", "127.0.0.1 " + std::to_string(primary.port())}});
  const Error error = refusal(replica.url());
  expect_unavailable(error, replica.address(), "READONLY");
  EXPECT_THAT(error.message, HasSubstr("replica"));
}

TEST(Refusals, PrimaryThatBecomesAReplicaAndBack) {
  rig::RedisServer primary({.more = {"--repl-diskless-sync-delay", "0"}});
  rig::RedisServer other;
  RawStore store(open_url(primary.url()));
  const RequestId request = new_request();
  ASSERT_TRUE(store.acquire(request));
  primary.cli({"REPLICAOF", "127.0.0.1", std::to_string(other.port())});
  const auto refused = store.try_renew(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable) << to_string(refused.error());
  primary.cli({"REPLICAOF", "NO", "ONE"});
  EXPECT_TRUE(store.acquire(new_request()));
}

// A server that was started again with much to read answers, but not yet.
TEST(Refusals, ServerThatIsStillLoading) {
  rig::RedisServer server(
      {.durable = false,
       .more = {"--enable-debug-command", "yes", "--loading-process-events-interval-bytes", "1024",
                "--key-load-delay", "1000"}});
  RawStore store(open_url(server.url()));
  const RequestId request = new_request();
  ASSERT_TRUE(store.acquire(request, 10min));
  server.cli({"DEBUG", "POPULATE", "100000"});
  server.cli({"SAVE"});
  server.process().kill();
  server.process().start_without_waiting();
  while (!rig::accepts(server.port())) std::this_thread::sleep_for(1ms);
  ASSERT_THAT(server.cli({"INFO", "persistence"}), HasSubstr("loading:1"));

  const auto renewed = store.try_renew(request);
  ASSERT_FALSE(renewed);
  EXPECT_EQ(renewed.error().code, ErrorCode::unavailable);
  EXPECT_THAT(renewed.error().store_words, HasSubstr("LOADING"));
  const auto acquired = store.acquire(new_request());
  ASSERT_FALSE(acquired);
  EXPECT_EQ(acquired.error().code, ErrorCode::unavailable) << to_string(acquired.error());
  const Error opened = refusal(server.url());
  EXPECT_EQ(opened.code, ErrorCode::unavailable);
  EXPECT_THAT(opened.store_words, HasSubstr("LOADING"));
  EXPECT_THAT(opened.message, HasSubstr("still loading"));

  server.cli({"CONFIG", "SET", "key-load-delay", "0"});
  server.process().wait_until_it_answers();
  EXPECT_EQ(store.renew(request), RenewReply::renewed) << "the lock was in the file";
}

const std::string kSomeId(32, 'a');

TEST(Refusals, StoreOfAnotherFormat) {
  rig::RedisServer server;
  Client client(open_url(server.url()));
  auto held = client.acquire("held");
  ASSERT_TRUE(held);
  const auto refuses = [&](const std::string& value, const std::string& words,
                           const std::string& remedy = "delete the key leasehold:store") {
    server.cli({"SET", "leasehold:store", value});
    const Error error = refusal(server.url());
    EXPECT_EQ(error.code, ErrorCode::unsupported) << to_string(error);
    EXPECT_THAT(sentence(error),
                AllOf(HasSubstr(server.address()), HasSubstr(words), HasSubstr(remedy)));
    EXPECT_EQ(client.acquire("job").error().code, ErrorCode::unsupported) << "begun meanwhile";
    EXPECT_EQ(client.rotate_store_id().error().code, ErrorCode::unsupported);
    EXPECT_EQ(server.cli({"GET", "leasehold:store"}), value) << "left as it is";
    EXPECT_EQ(server.cli({"EXISTS", "lock:job"}), "0");
  };
  refuses(kSomeId, "has format 1");
  refuses("3 " + kSomeId, "has format 3");
  refuses("5 " + kSomeId, "has format 5", "use a program that is at least as new");
  EXPECT_EQ(held->release().value(), ReleaseOutcome::released);
  server.cli({"DEL", "leasehold:store"});
  EXPECT_TRUE(takes_a_lock(server.url())) << "begun afresh";
}

TEST(Refusals, SomethingElseAtTheStoresKey) {
  rig::RedisServer server;
  const auto refuses = [&] {
    const Error error = refusal(server.url());
    expect_unavailable(error, server.address(), "leasehold:store");
    EXPECT_THAT(error.message, HasSubstr("another program has a value of its own"));
  };
  for (const std::string& value : {std::string("theirs"), std::string(), "4 " + kSomeId + "a"}) {
    server.cli({"SET", "leasehold:store", value});
    refuses();
    EXPECT_EQ(server.cli({"GET", "leasehold:store"}), value);
  }
  server.cli({"DEL", "leasehold:store"});
  Client client(open_url(server.url()));
  server.cli({"DEL", "leasehold:store"});
  server.cli({"RPUSH", "leasehold:store", "theirs"});
  refuses();
  EXPECT_EQ(client.acquire("job").error().code, ErrorCode::unavailable);
  EXPECT_FALSE(client.rotate_store_id());
  EXPECT_EQ(server.cli({"LRANGE", "leasehold:store", "0", "-1"}), "theirs");
  EXPECT_EQ(server.cli({"EXISTS", "lock:job"}), "0");
}

TEST(Refusals, Cluster) {
  rig::RedisServer server({.durable = false, .cluster = true});
  const Error error = refusal(server.url());
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_THAT(error.message, HasSubstr("cluster"));
}

TEST(Refusals, NoMemoryLeft) {
  rig::RedisServer server;
  RawStore store(open_url(server.url()));
  server.cli({"CONFIG", "SET", "maxmemory", "1"});
  const auto refused = store.acquire(new_request());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_THAT(refused.error().store_words, HasSubstr("OOM"));
  EXPECT_THAT(refused.error().address, HasSubstr(server.address()));
  server.cli({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_TRUE(store.acquire(new_request())) << "it recovers";
}

TEST(Refusals, DiskThatCannotBeWritten) {
  rig::RedisServer server({.durable = false, .more = {"--save", "1 1", "--dir", "/proc"}});
  server.cli({"SET", "a", "b"});
  while (server.cli({"INFO", "persistence"}).find("rdb_last_bgsave_status:err") ==
         std::string::npos) {
    std::this_thread::sleep_for(20ms);
  }
  expect_unavailable(refusal(server.url()), server.address(), "MISCONF");
}

TEST(Refusals, EvictionIsTold) {
  rig::RedisServer server({.more = {"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}});
  EXPECT_THAT(open_url(server.url())->traits().why, HasSubstr("allkeys-lru"));
  rig::RedisServer careful;
  EXPECT_THAT(open_url(careful.url())->traits().why, Not(HasSubstr("maxmemory")));
}

TEST(Refusals, Tls) {
  rig::RedisServer server({.tls = true});
  const std::string secure = "rediss://" + server.address();
  EXPECT_TRUE(takes_a_lock(secure + "?ca=" + server.ca()));
  EXPECT_TRUE(takes_a_lock("redis://" + server.address() + "?ca=" + server.ca()));
  EXPECT_TRUE(takes_a_lock(secure + "?server_name=localhost&ca=" + server.ca()));

  expect_unavailable(refusal(secure), server.address(), "certificate");
  expect_unavailable(refusal(secure + "?server_name=other.example&ca=" + server.ca()),
                     server.address(), "ostname mismatch");
  const Error plain = refusal("redis://" + server.address());
  expect_unavailable(plain, server.address(), "");

  rig::RedisServer open_server;
  const Error too_secure = refusal("rediss://" + open_server.address() + "?ca=" + server.ca());
  expect_unavailable(too_secure, open_server.address(), "");
  EXPECT_THAT(too_secure.message, HasSubstr("TLS"));
  EXPECT_EQ(refusal(secure + "?ca=/etc/hostname").code, ErrorCode::invalid);
}

TEST(Refusals, ServerThatWantsToKnowItsClients) {
  rig::RedisServer server({.tls = true, .demands_certificates = true});
  rig::RedisServer elsewhere({.tls = true});
  const std::string url = "rediss://" + server.address() + "?ca=" + server.ca();
  EXPECT_TRUE(takes_a_lock(url + "&cert=" + server.certificate() + "&key=" + server.key()));
  // Redis says why and resets the connection, which often overtakes its words.
  expect_unavailable(refusal(url), server.address(), "");
  const std::string stranger = "&cert=" + elsewhere.certificate() + "&key=" + elsewhere.key();
  expect_unavailable(refusal(url + stranger), server.address(), "");
}

TEST(Refusals, TlsHandsOverAndRecovers) {
  rig::RedisServer server({.tls = true});
  const std::string url = "rediss://" + server.address() + "?ca=" + server.ca();
  Client client(open_url(url));
  auto lease = client.acquire("job");
  ASSERT_TRUE(lease);
  auto waiting =
      std::async(std::launch::async, [&] { return client.acquire("job", {.wait = 30s}); });
  while (client.inspect(lock_name("job"))->waiters.empty()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(lease->release().value(), ReleaseOutcome::released);
  auto next = waiting.get();
  ASSERT_TRUE(next);
  server.process().kill();
  server.process().start();
  EXPECT_EQ(next->release(30s).value(), ReleaseOutcome::released);
}

// ---- Redlock: a node that refuses is a lost vote, and without a majority each is quoted ---------

std::string redlock_url(const std::vector<std::string>& nodes, const std::string& login = "",
                        const std::string& options = "") {
  std::string url = "redlock://" + login;
  for (const std::string& it : nodes) url += (it == nodes.front() ? "" : ",") + it;
  return url + "?node_timeout=20000" + options;
}

class ThreeServers {
 public:
  explicit ThreeServers(const rig::RedisServer::Options& options = {}) {
    for (int i = 0; i < 3; ++i) servers_.push_back(std::make_unique<rig::RedisServer>(options));
  }
  const rig::RedisServer& operator[](std::size_t i) const { return *servers_[i]; }
  std::vector<std::string> addresses() const {
    return {servers_[0]->address(), servers_[1]->address(), servers_[2]->address()};
  }
  std::string url(const std::string& login = "", const std::string& options = "") const {
    return redlock_url(addresses(), login, options);
  }

 private:
  std::vector<std::unique_ptr<rig::RedisServer>> servers_;
};

void expect_quoted(const Error& error, const std::vector<std::string>& nodes,
                   const std::string& words) {
  const std::string usable = std::to_string(3 - nodes.size());
  EXPECT_EQ(error.code, ErrorCode::unavailable) << to_string(error);
  EXPECT_THAT(error.message, HasSubstr("only " + usable + " of 3 nodes answered"));
  for (const std::string& it : nodes) {
    EXPECT_THAT(error.address, HasSubstr(it));
    EXPECT_THAT(error.store_words, ContainsRegex(it + ": [^;]*" + words));
  }
}

TEST(RedlockRefusals, PasswordsAndUsers) {
  const ThreeServers servers({.more = {"--requirepass", "s3cret-word", "--user", "worker", "on",
                                       ">w0rker-word", "~*", "&*", "+@all"},
                              .cli = {"-a", "s3cret-word"}});
  expect_quoted(refusal(servers.url()), servers.addresses(), "NOAUTH");
  for (const std::string user : {"", "worker"}) {
    const Error wrong = refusal(servers.url(user + ":wr0ng-word@"));
    expect_quoted(wrong, servers.addresses(), "WRONGPASS");
    EXPECT_THAT(to_string(wrong), Not(HasSubstr("wr0ng-word")));
  }
  EXPECT_TRUE(takes_a_lock(servers.url(":s3cret-word@")));
  const std::string right = servers.url("worker:w0rker-word@");
  EXPECT_TRUE(takes_a_lock(right));
  EXPECT_THAT(open_url(right)->traits().address, Not(HasSubstr("w0rker-word")));
}

TEST(RedlockRefusals, NobodyThere) {
  const rig::Port a = rig::Port::take();
  const rig::Port b = rig::Port::take();
  const rig::RedisServer server;
  expect_quoted(refusal(redlock_url({server.address(), a.address(), b.address()})),
                {a.address(), b.address()}, "onnection refused");
}

TEST(RedlockRefusals, ASilentNodeIsNotWaitedForWhenThereCanBeNoMajority) {
  const rig::Port a = rig::Port::take();
  const rig::Port b = rig::Port::take();
  const ScriptedServer silent(wire::only_listen);
  const std::vector<std::string> nodes = {a.address(), b.address(), silent.address()};
  const Error error = refusal(redlock_url(nodes), {.store_timeout = 1h});
  expect_quoted(error, nodes, "");
  EXPECT_THAT(error.store_words, HasSubstr("had not answered when the others were done"));
}

TEST(RedlockRefusals, AnotherProtocol) {
  const std::vector<std::string> answers = {"HTTP/1.1 400 Bad Request\r\nServer: web\r\n\r\n"};
  const Parrot a(answers);
  const Parrot b(answers);
  const rig::RedisServer server;
  const rig::RedisServer another;
  expect_quoted(refusal(redlock_url({a.address(), server.address(), b.address()})),
                {a.address(), b.address()}, "HTTP/1.1 400 Bad Request");
  EXPECT_TRUE(takes_a_lock(redlock_url({a.address(), server.address(), another.address()})))
      << "one of three is a lost vote";
}

TEST(RedlockRefusals, ReadOnlyReplicas) {
  const rig::RedisServer primary({.more = {"--repl-diskless-sync-delay", "0"}});
  const rig::RedisServer::Options follows{
      .more = {"--replicaof", "127.0.0.1 " + std::to_string(primary.port())}};
  const rig::RedisServer a(follows);
  const rig::RedisServer b(follows);
  expect_quoted(refusal(redlock_url({primary.address(), a.address(), b.address()})),
                {a.address(), b.address()}, "read-only replica .READONLY");
}

TEST(RedlockRefusals, Tls) {
  const ThreeServers servers({.tls = true});
  const rig::TempFolder folder;
  const std::string ca = folder.file("ca.crt");
  std::ofstream all(ca);
  for (std::size_t i = 0; i < 3; ++i) all << std::ifstream(servers[i].ca()).rdbuf();
  all.close();
  EXPECT_TRUE(takes_a_lock(servers.url("", "&ca=" + ca)));
  expect_quoted(refusal(servers.url("", "&tls=on")), servers.addresses(), "certificate");
  expect_quoted(refusal(servers.url("", "&server_name=other.example&ca=" + ca)),
                servers.addresses(), "ostname mismatch");
  expect_quoted(refusal(servers.url()), servers.addresses(), "(closed the connection|speaks TLS)");
}

// What will never vote is refused, though the others are a majority.
TEST(RedlockRefusals, OldServersAndClusters) {
  const rig::RedisServer a;
  const rig::RedisServer b;
  const Parrot old({"-ERR unknown command 'HELLO'\r\n", "$24\r\n\r\nredis_version:4.0.14\r\n\r\n"});
  const Error too_old = refusal(redlock_url({a.address(), b.address(), old.address()}));
  EXPECT_EQ(too_old.code, ErrorCode::unavailable);
  EXPECT_THAT(too_old.message, HasSubstr(old.address() + ": the server is Redis 4.0.14"));
  const rig::RedisServer cluster({.durable = false, .cluster = true});
  const Error of_many = refusal(redlock_url({a.address(), cluster.address(), b.address()}));
  EXPECT_EQ(of_many.code, ErrorCode::unsupported);
  EXPECT_THAT(of_many.message, HasSubstr(cluster.address() + ": the server runs as a cluster"));
}

TEST(RedlockRefusals, NodeOfAnotherFormat) {
  const ThreeServers servers;
  servers[1].cli({"SET", "leasehold:store", kSomeId});
  const Error error = refusal(servers.url());
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_THAT(error.message, AllOf(HasSubstr(servers[1].address()), HasSubstr("has format 1")));
}

TEST(Refusals, Urls) {
  const auto says = [](const std::string& url, const std::string& words) {
    const Error error = refusal(url);
    EXPECT_EQ(error.code, ErrorCode::invalid) << url;
    EXPECT_THAT(error.message, HasSubstr(words)) << url;
  };
  says("redis:", "one server");
  says("redis://a,b", "redlock://");
  says("redis://a/x", "number of the database");
  says("redis://a/-1", "number of the database");
  says("redis://a?colour=blue", "colour");
  says("redis://a?connections=0", "connections");
  says("redis://a?connections=many", "connections");
  says("redis://a?prefix=leasehold:x", "prefix");
  says("redis://a?prefix=lock%0A", "the option prefix has a control character at byte 5");
  says("redis://a?prefix=%FFlock", "the option prefix is not valid UTF-8 at byte 1");
  says("redis://a?prefix=" + std::string(513, 'x'), "at most 512");
  says("redlock://a,b,c?prefix=%1B[2J", "control character");
  says("redis://user@a", "password");
  says("redis://a?node_timeout=5", "node_timeout");
  says("rediss://a?tls=off", "tls=off");
  says("redlock://a", "odd number");
  says("redlock://a,b", "odd number");
  says("redlock://a,b,c,d", "odd number");
  says("redlock://a,b,a", "twice");
  says("redlock://a,b,a:6379", "twice");
  says("redlock://a,b,c?node_timeout=0", "node_timeout");
}

}  // namespace
}  // namespace leasehold::testing
