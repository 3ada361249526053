#include "listener.h"

#include "kit/text/shown_word.h"
#include "kit/try.h"
#include "text.h"

namespace leasehold::gate {

std::string text_of(const tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  const std::string port = std::to_string(endpoint.port());
  return endpoint.address().is_v6() ? "[" + host + "]:" + port : host + ":" + port;
}

Result<tcp::endpoint> parse_endpoint(const std::string& text) {
  const auto wrong = fail(ErrorCode::invalid, "the address '" + kit::shown(text) +
                                                  "' is not like 127.0.0.1:8080 or [::1]:8080");
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return wrong;
  std::string host = text.substr(0, colon);
  const auto port = kit::digits_in<std::int64_t>(std::string_view(text).substr(colon + 1));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  std::error_code error;
  const auto address = asio::ip::make_address(host, error);
  if (error || !port || *port > 65535) return wrong;
  return tcp::endpoint(address, static_cast<asio::ip::port_type>(*port));
}

Result<tcp::acceptor> listen_on(asio::io_context& io, const std::string& text) {
  const auto endpoint = TRY(parse_endpoint(text));
  tcp::acceptor acceptor(io);
  std::error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return fail(ErrorCode::unavailable, "cannot listen on " + text, error.message());
  }
  return acceptor;
}

}  // namespace leasehold::gate
