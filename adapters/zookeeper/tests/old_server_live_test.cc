// A server that does not know the requests of ZooKeeper 3.5, played by the test.
#include <gmock/gmock.h>
#include <sys/socket.h>

#include <array>

#include "leasehold/zookeeper/fence.h"
#include "proxied_server.h"
#include "testing/scripted_server.h"

namespace leasehold::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string in_bytes(std::int32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes += static_cast<char>(static_cast<std::uint32_t>(number) >> shift);
  }
  return bytes;
}

std::string packet(const std::string& body) {
  return in_bytes(static_cast<std::int32_t>(body.size())) + body;
}

constexpr std::int32_t kUnimplemented = -6;
constexpr std::int32_t kNoNode = -101;

std::int32_t verdict(std::int32_t type) {
  if (type == kCreate2) return kUnimplemented;
  return is_read(type) ? kNoNode : 0;
}

// The next packet, without its length; empty at the end.
std::string receive(int client) {
  std::array<char, 4> length{};
  if (recv(client, length.data(), length.size(), MSG_WAITALL) != 4) return "";
  std::string body(static_cast<std::size_t>(number_at({length.data(), 4}, 0) & 0xffff), '\0');
  const ssize_t got = recv(client, body.data(), body.size(), MSG_WAITALL);
  return got == static_cast<ssize_t>(body.size()) ? body : "";
}

// Opens every session, and answers as a server of 3.4 does with nothing in it: to a `create` that
// wants the node's numbers back, that this is not implemented.
void be_zookeeper_3_4(int client) {
  if (receive(client).empty()) return;
  const std::string id(8, '\1');
  const std::string password = packet(std::string(16, '\2'));
  const std::string writable(1, '\0');
  wire::say(client, packet(in_bytes(0) + in_bytes(4000) + id + password + writable));
  for (std::string request = receive(client); request.size() >= 8; request = receive(client)) {
    const std::string transaction(8, '\0');
    wire::say(client, packet(request.substr(0, 4) + transaction +
                             in_bytes(verdict(number_at(request, 4)))));
  }
}

TEST(ZookeeperOldServer, IsRefusedWithItsAddressAndItsWords) {
  const ScriptedServer server(be_zookeeper_3_4);
  const std::string url = "zookeeper://" + server.address() + "/locks";
  const auto expect_refused = [&](const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::unavailable) << to_string(error);
    EXPECT_THAT(to_string(error),
                AllOf(HasSubstr(server.address()), HasSubstr("ZooKeeper 3.5 or later is needed")));
    EXPECT_EQ(error.store_words, "unimplemented");
  };
  const auto store = zookeeper::adapters().front().open_store(Url::parse(url).value(), {});
  ASSERT_FALSE(store);
  expect_refused(store.error());
  const auto fence = zookeeper::Resources::open(url);
  ASSERT_FALSE(fence);
  expect_refused(fence.error());
}

}  // namespace
}  // namespace leasehold::testing
