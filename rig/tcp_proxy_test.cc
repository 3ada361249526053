#include "rig/tcp_proxy.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <thread>

#include "kit/threads/thread_safety.h"
#include "testing/scripted_server.h"

namespace leasehold::rig {
namespace {

using namespace std::chrono_literals;
using kit::Fd;

// Sends everything back, and remembers it. One connection after the other.
class EchoServer {
 public:
  std::uint16_t port() const { return server_.port(); }
  void wait_for(const std::string& text) {
    MutexLock lock(mutex_);
    changed_.wait(mutex_, [&]() LEASEHOLD_REQUIRES(mutex_) { return got_ == text; });
  }
  std::string got() {
    MutexLock lock(mutex_);
    return got_;
  }
  void wait_for_end_of_a_connection() {
    MutexLock lock(mutex_);
    changed_.wait(mutex_, [&]() LEASEHOLD_REQUIRES(mutex_) { return ended_ > 0; });
  }

 private:
  void echo(int connection) {
    char buffer[1024];
    for (ssize_t got = 0; (got = read(connection, buffer, sizeof buffer)) > 0;) {
      const std::string_view bytes(buffer, static_cast<std::size_t>(got));
      {
        MutexLock lock(mutex_);
        got_ += bytes;
        changed_.notify_all();
      }
      testing::wire::say(connection, bytes);
    }
    MutexLock lock(mutex_);
    ++ended_;
    changed_.notify_all();
  }

  Mutex mutex_;
  ConditionVariable changed_;
  std::string got_ LEASEHOLD_GUARDED_BY(mutex_);
  int ended_ LEASEHOLD_GUARDED_BY(mutex_) = 0;
  const testing::ScriptedServer server_{[this](int connection) { echo(connection); }};
};

class TcpProxyTest : public ::testing::Test {
 protected:
  static void say(const Fd& fd, const std::string& text) {
    ASSERT_EQ(send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // What comes next; "reset" or "end" if the connection is over.
  static std::string hear(const Fd& fd) {
    char buffer[1024];
    const ssize_t got = read(fd.get(), buffer, sizeof buffer);
    if (got < 0) return "reset";
    return got == 0 ? "end" : std::string(buffer, static_cast<std::size_t>(got));
  }
  static bool silent(const Fd& fd) {
    pollfd readable{fd.get(), POLLIN, 0};
    return poll(&readable, 1, 100) == 0;
  }

  EchoServer echo;
  TcpProxy proxy{echo.port(), [](std::string_view bytes) { return bytes != "ping"; }};
};

TEST_F(TcpProxyTest, PassesBytesAndCountsRequests) {
  const Fd client = connect_to(proxy.port());
  for (const char* text : {"one", "ping", "two"}) {
    say(client, text);
    EXPECT_EQ(hear(client), text);
  }
  EXPECT_EQ(proxy.requests(), 2u);
  EXPECT_EQ(proxy.round_trips(), 2u);
  EXPECT_EQ(proxy.connections(), 1u);
}

TEST_F(TcpProxyTest, CutBeforeKeepsTheRequestFromTheServer) {
  const Fd client = connect_to(proxy.port());
  proxy.arm(WireFault::cut_before);
  say(client, "ping");
  EXPECT_EQ(hear(client), "ping") << "not a request";
  say(client, "request");
  EXPECT_EQ(hear(client), "reset");
  EXPECT_TRUE(proxy.wait_for_fault(0ms));
  echo.wait_for_end_of_a_connection();
  EXPECT_EQ(echo.got(), "ping");
}

TEST_F(TcpProxyTest, CutDuringLetsHalfThrough) {
  const Fd client = connect_to(proxy.port());
  proxy.arm(WireFault::cut_during);
  say(client, "request!");
  EXPECT_EQ(hear(client), "reset");
  echo.wait_for("requ");
  echo.wait_for_end_of_a_connection();
  EXPECT_EQ(echo.got(), "requ");
}

TEST_F(TcpProxyTest, CutAfterLetsAllThroughAndNoReply) {
  const Fd client = connect_to(proxy.port());
  proxy.arm(WireFault::cut_after);
  say(client, "request");
  EXPECT_EQ(hear(client), "reset");
  echo.wait_for("request");
}

TEST_F(TcpProxyTest, LoseReplyIsSilentUntilTheCut) {
  const Fd client = connect_to(proxy.port());
  proxy.arm(WireFault::lose_reply,
            [](std::string_view bytes) { return bytes.starts_with("chosen"); });
  say(client, "other");
  EXPECT_EQ(hear(client), "other");
  say(client, "chosen");
  EXPECT_TRUE(proxy.wait_for_fault(10s));
  echo.wait_for("otherchosen");
  EXPECT_TRUE(silent(client));
  proxy.cut();
  EXPECT_EQ(hear(client), "reset");
  const Fd next = connect_to(proxy.port());
  say(next, "again");
  EXPECT_EQ(hear(next), "again") << "a fault happens once";
}

TEST_F(TcpProxyTest, RefuseHoldAndDelay) {
  const Fd old = connect_to(proxy.port());
  say(old, "x");
  EXPECT_EQ(hear(old), "x");
  proxy.refuse(true);
  EXPECT_EQ(hear(old), "reset");
  EXPECT_EQ(hear(connect_to(proxy.port())), "reset");
  proxy.refuse(false);

  const Fd client = connect_to(proxy.port());
  proxy.hold(true);
  say(client, "held");
  EXPECT_TRUE(silent(client));
  proxy.hold(false);
  EXPECT_EQ(hear(client), "held") << "nothing was lost";

  proxy.delay(50ms);
  const BootTime began = BootClock::now();
  say(client, "late");
  EXPECT_EQ(hear(client), "late");
  EXPECT_GE(BootClock::now() - began, 100ms);
}

TEST_F(TcpProxyTest, RetargetLeadsNewConnectionsElsewhere) {
  const Fd old = connect_to(proxy.port());
  say(old, "old");
  EXPECT_EQ(hear(old), "old");
  EchoServer other;
  proxy.retarget(other.port());
  say(old, "still");
  EXPECT_EQ(hear(old), "still");
  const Fd client = connect_to(proxy.port());
  say(client, "new");
  EXPECT_EQ(hear(client), "new");
  EXPECT_EQ(echo.got(), "oldstill");
  EXPECT_EQ(other.got(), "new");
}

TEST_F(TcpProxyTest, NobodyBehindItLooksLikeNoServer) {
  const Port unused = Port::take();
  const TcpProxy to_nobody(unused.number());
  EXPECT_EQ(hear(connect_to(to_nobody.port())), "reset");
}

}  // namespace
}  // namespace leasehold::rig
