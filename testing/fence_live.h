// What a fence with a server must do when the server is killed or another holder comes between, and
// for an operator: steps that each fence's tests fill in with operations of their own.
#pragma once

#include <gmock/gmock.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <thread>

#include "leasehold/fence_admin.h"
#include "rig/tcp_proxy.h"
#include "testing/fence_conformance.h"

namespace leasehold::testing {

inline constexpr rig::WireFault kWireFaults[] = {
    rig::WireFault::cut_before, rig::WireFault::cut_during, rig::WireFault::cut_after,
    rig::WireFault::lose_reply};

// Whether the answer to a write is right about what the fault did to it. A server whose client is
// cut off may not have begun.
inline void expect_repeated(bool repeated, rig::WireFault fault) {
  if (fault == rig::WireFault::cut_after) return;
  EXPECT_EQ(repeated, fault == rig::WireFault::lose_reply) << to_string(fault);
}

// Another holder that enters as soon as `written` is true, and then cuts the network of the first.
// The proxy has the write before the server does, and the other must come after it.
template <class Fence>
std::jthread successor_after(std::function<bool()> written, Fence fence, rig::TcpProxy& proxy) {
  return std::jthread([written = std::move(written), fence = std::move(fence), &proxy] {
    while (!written()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(fence.enter(test_token(34, 2)));
    proxy.cut();
  });
}

// Kills the server at some point in a series of writes, `rounds` times: mark and data are of the
// same write, and no write is lost that was reported as done.
struct KilledServer {
  std::function<void()> kill;
  std::function<void()> start;
  std::function<std::string()> value;
  int rounds = 5;
};
template <class Server>
KilledServer killed(Server& server, std::function<std::string()> value) {
  return {[&server] { server.kill(); }, [&server] { server.start(); }, std::move(value)};
}
template <class OpenFence, class Write>
void expect_mark_and_data_together(const KilledServer& server, OpenFence fence, Write write) {
  std::minstd_rand random(7);
  std::int64_t next = 1;
  for (int round = 0; round < server.rounds; ++round) {
    const auto door = fence();
    std::atomic<std::int64_t> acknowledged = next - 1;
    std::jthread writer([&](const std::stop_token& stop) {
      for (std::int64_t number = next; !stop.stop_requested(); ++number) {
        if (write(door, test_token(number, 1), std::to_string(number))) acknowledged = number;
      }
    });
    const std::int64_t enough = next + std::uniform_int_distribution<int>(0, 40)(random);
    while (acknowledged < enough) std::this_thread::yield();
    server.kill();
    writer.request_stop();
    writer.join();
    server.start();
    const auto mark = fence().mark();
    ASSERT_TRUE(mark && *mark && (*mark)->mark);
    const std::int64_t number = (*mark)->mark->number.value();
    EXPECT_EQ(server.value(), std::to_string(number));
    EXPECT_GE(number, acknowledged.load());
    next = number + 1;
  }
}

// With no mark yet. `odd_name` is a resource that sorts before "b".
template <class OpenFence>
void expect_operator_sees_and_adopts(FenceAdmin& admin, const std::string& odd_name,
                                     OpenFence fence) {
  ASSERT_TRUE(admin.install());
  EXPECT_EQ(admin.marks()->size(), 0u);
  ASSERT_TRUE(fence("b").enter(test_token(33, 1)));
  ASSERT_TRUE(fence(odd_name).enter(test_token(34, 1)));
  const auto marks = admin.marks().value();
  ASSERT_EQ(marks.size(), 2u);
  EXPECT_EQ(marks[0].resource.str(), odd_name);
  EXPECT_EQ(marks[1].mark, test_token(33, 1));
  const Lineage restored = test_lineage(2);
  const auto resource = ResourceName::parse("b").value();
  ASSERT_TRUE(admin.adopt(resource, restored, TokenNumber::of(5).value()));
  EXPECT_FALSE(fence("b").enter(test_token(35, 1)));
  EXPECT_TRUE(fence("b").enter(test_token(5, 1, restored)));
  ASSERT_TRUE(admin.reset(resource));
  const FenceMark forgotten = fence("b").mark()->value();
  EXPECT_FALSE(forgotten.mark);
  EXPECT_FALSE(forgotten.lineage);
  EXPECT_EQ(forgotten.refused, 1);
  EXPECT_TRUE(fence("b").enter(test_token(1, 1))) << "the first to come";
  EXPECT_EQ(admin.reset(ResourceName::parse("nobody").value()).error().code, ErrorCode::invalid);
  const auto swept = admin.sweep({.older_than = std::chrono::milliseconds(1)});
  ASSERT_FALSE(swept);
  EXPECT_EQ(swept.error().code, ErrorCode::unsupported);
  EXPECT_EQ(admin.marks()->size(), 2u) << "it forgot nothing";
}

}  // namespace leasehold::testing
