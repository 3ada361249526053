#include "upstream.h"

#include <algorithm>
#include <asio/connect.hpp>

#include "kit/text/shown_word.h"
#include "text.h"

namespace leasehold::gate {
namespace {

constexpr std::size_t kMaxIdle = 256;

bool is_host_char(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte > ' ' && byte != 0x7f && c != '[' && c != ']';
}

}  // namespace

Result<UpstreamAddress> UpstreamAddress::parse(const std::string& url) {
  constexpr std::string_view scheme = "http://";
  const auto wrong = [&](const std::string& why) {
    return fail(ErrorCode::invalid, "the upstream '" + kit::shown(url) + "' " + why +
                                        "; write it like http://127.0.0.1:9000");
  };
  if (starts_with_word(url, "https://")) return wrong("wants TLS, which the gate does not speak");
  if (!starts_with_word(url, scheme)) return wrong("is not an http:// URL");
  std::string_view rest = std::string_view(url).substr(scheme.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find_first_of("/?#") != std::string_view::npos) return wrong("has a path");
  if (rest.find('@') != std::string_view::npos) {
    return wrong("has a user, which the gate cannot use");
  }
  UpstreamAddress address;
  if (rest.starts_with('[')) {
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos) return wrong("has no ']'");
    address.host = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    if (!rest.empty() && !rest.starts_with(':')) return wrong("has text between ']' and the port");
  } else {
    const std::size_t colon = rest.find(':');
    address.host = rest.substr(0, colon);
    rest.remove_prefix(std::min(colon, rest.size()));
  }
  address.port = rest.empty() ? "80" : std::string(rest.substr(1));
  const auto port = kit::digits_in<std::uint16_t>(address.port);
  if (address.host.empty()) return wrong("has no host");
  if (!std::all_of(address.host.begin(), address.host.end(), is_host_char)) {
    return wrong("has a host with a space, a control character or a bracket in it");
  }
  if (!port || *port == 0) return wrong("has no port from 1 to 65535");
  return address;
}

Upstream::Upstream(asio::io_context& io, Watch& watch, UpstreamAddress address,
                   Millis connect_timeout, Millis pool_timeout)
    : io_(io),
      watch_(watch),
      address_(std::move(address)),
      connect_timeout_(connect_timeout),
      pool_timeout_(pool_timeout) {}

std::unique_ptr<Connection> Upstream::take_idle() {
  while (!idle_.empty()) {
    auto connection = std::move(idle_.back().connection);
    idle_.pop_back();
    if (connection->is_quiet()) return connection;
  }
  return nullptr;
}

Async<std::vector<tcp::endpoint>> Upstream::resolve(std::error_code& failed) {
  std::vector<tcp::endpoint> endpoints;
  const auto numeric = asio::ip::make_address(address_.host, failed);
  if (!failed) {
    const auto port = kit::digits_in<std::uint16_t>(address_.port).value();
    endpoints.emplace_back(numeric, port);
    co_return endpoints;
  }
  failed.clear();
  tcp::resolver resolver(io_);
  const auto found = co_await resolver.async_resolve(
      address_.host, address_.port, asio::redirect_error(asio::use_awaitable, failed));
  for (const auto& entry : found) endpoints.push_back(entry.endpoint());
  co_return endpoints;
}

Async<std::unique_ptr<Connection>> Upstream::connect(std::string& error) {
  std::error_code failed;
  const auto endpoints = co_await resolve(failed);
  if (failed) {
    error = address_.host + ": " + failed.message();
    co_return nullptr;
  }
  for (const tcp::endpoint& endpoint : endpoints) {
    if (watch_.is_closed()) {
      error = "the gate is stopping";
      co_return nullptr;
    }
    auto connection = std::make_unique<Connection>(tcp::socket(io_), watch_);
    const NetTime by = NetClock::now() + connect_timeout_;
    failed = co_await connection->connect(endpoint, by);
    if (!failed) co_return connection;
    error = address_.str() + ": " + (connection->timed_out() ? "timed out" : failed.message());
  }
  co_return nullptr;
}

void Upstream::give_back(std::unique_ptr<Connection> connection) {
  if (idle_.size() >= kMaxIdle) idle_.pop_front();
  idle_.push_back({std::move(connection), NetClock::now()});
}

void Upstream::sweep(NetTime now) {
  while (!idle_.empty() && idle_.front().since + pool_timeout_ <= now) idle_.pop_front();
}

}  // namespace leasehold::gate
