// Addresses to listen on.
#pragma once

#include <optional>
#include <string>

#include "leasehold/error.h"
#include "net.h"

namespace leasehold::gate {

std::string text_of(const tcp::endpoint& endpoint);

// "127.0.0.1:8080" or "[::1]:8080"; a number, not a host's name. Fails with `invalid`.
[[nodiscard]] Result<tcp::endpoint> parse_endpoint(const std::string& text);

// Fails with `unavailable` if the address cannot be had.
[[nodiscard]] Result<tcp::acceptor> listen_on(asio::io_context& io, const std::string& text);

}  // namespace leasehold::gate
