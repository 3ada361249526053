#include "etcd_under_test.h"

#include <algorithm>

#include "leasehold/id.h"
#include "leasehold/url.h"

namespace leasehold::testing {
namespace {

rig::EtcdServer& shared_server() {
  static rig::EtcdServer server;
  return server;
}

std::string new_prefix() {
  return "case-" + RequestId::random(system_random()).hex().substr(0, 8);
}

// gRPC's messages in the DATA frames of one write.
std::vector<std::string_view> messages_in(std::string_view bytes) {
  constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  constexpr std::size_t kFrameHeader = 9;
  constexpr std::size_t kMessageHeader = 5;
  std::vector<std::string_view> messages;
  if (bytes.starts_with(kPreface)) bytes.remove_prefix(kPreface.size());
  while (bytes.size() >= kFrameHeader) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
    const std::size_t length = byte(0) << 16 | byte(1) << 8 | byte(2);
    const bool data = byte(3) == 0;
    bytes.remove_prefix(kFrameHeader);
    const std::string_view payload = bytes.substr(0, length);
    if (data && payload.size() >= kMessageHeader) {
      messages.push_back(payload.substr(kMessageHeader));
    }
    bytes.remove_prefix(payload.size());
  }
  return messages;
}

// LeaseGrantRequest: field 1 with at most three bytes; a keep-alive has a longer number there.
bool grants_lease(std::string_view message) {
  return message.size() <= 4 && message.starts_with('\x08');
}

}  // namespace

void fill_up(const rig::EtcdServer& server) {
  const std::string much(100'000, 'x');
  int next = 0;
  while (server.ctl({"put", "filler " + std::to_string(next), much}).status == 0) ++next;
}

bool is_any_message(std::string_view bytes) {
  return !messages_in(bytes).empty();
}

bool is_lease_grant(std::string_view bytes) {
  const auto messages = messages_in(bytes);
  return std::any_of(messages.begin(), messages.end(), grants_lease);
}

bool is_lock_request(std::string_view bytes) {
  const auto prepares = [](std::string_view message) {
    const bool opens_connection = message.empty();
    return opens_connection || grants_lease(message);
  };
  const auto messages = messages_in(bytes);
  return !std::all_of(messages.begin(), messages.end(), prepares);
}

Result<std::unique_ptr<Store>> open_etcd(const std::string& url, const OpenOptions& opening) {
  auto parsed = Url::parse(url);
  if (!parsed) return fail(std::move(parsed.error()));
  return etcd::adapters().front().open_store(*parsed, opening);
}

EtcdUnderTest::EtcdUnderTest()
    : server_(shared_server()), prefix_(new_prefix()), proxy_(server_.port(), is_lock_request) {}

std::unique_ptr<Store> EtcdUnderTest::open() {
  return std::move(open_etcd(url()).value());
}

std::unique_ptr<Store> EtcdUnderTest::open_through_proxies() {
  return std::move(open_etcd("etcd://" + proxy_.address() + "/" + prefix_).value());
}

}  // namespace leasehold::testing
