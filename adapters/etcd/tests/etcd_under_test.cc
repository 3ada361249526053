#include "etcd_under_test.h"

#include "leasehold/id.h"
#include "leasehold/url.h"

namespace leasehold::testing {
namespace {

EtcdServer& shared_server() {
  static EtcdServer server;
  return server;
}

std::string new_prefix() {
  return "case-" + RequestId::random(system_random()).hex().substr(0, 8);
}

}  // namespace

bool is_http2_request(std::string_view bytes) {
  constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  constexpr std::size_t kFrameHeader = 9;
  if (bytes.starts_with(kPreface)) bytes.remove_prefix(kPreface.size());
  while (bytes.size() >= kFrameHeader) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
    const std::size_t length = byte(0) << 16 | byte(1) << 8 | byte(2);
    const bool data = byte(3) == 0 && length > 0;
    const bool headers = byte(3) == 1;
    if (data || headers) return true;
    bytes.remove_prefix(std::min(bytes.size(), kFrameHeader + length));
  }
  return false;
}

Result<std::unique_ptr<Store>> open_etcd(const std::string& url) {
  auto parsed = Url::parse(url);
  if (!parsed) return fail(std::move(parsed.error()));
  return etcd::adapters().front().open_store(*parsed, IfMissing::create);
}

EtcdUnderTest::EtcdUnderTest()
    : server_(shared_server()), prefix_(new_prefix()), proxy_(server_.port(), is_http2_request) {}

std::unique_ptr<Store> EtcdUnderTest::open() {
  return std::move(open_etcd(url()).value());
}

std::unique_ptr<Store> EtcdUnderTest::open_through_proxies() {
  return std::move(open_etcd("etcd://" + proxy_.address() + "/" + prefix_).value());
}

}  // namespace leasehold::testing
