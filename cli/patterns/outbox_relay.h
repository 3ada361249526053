// `leasehold outbox relay`: the lease, the target and the loop put together.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "leasehold/outbox.h"
#include "leasehold/relay.h"

namespace leasehold::cli {

struct OutboxRelayOptions {
  std::string url;
  std::optional<std::string> command;
  std::optional<std::string> target;
  std::optional<std::string> content_type;
  std::optional<std::string> lock;
  std::optional<std::string> lock_store;
  Millis ttl = std::chrono::seconds(30);
  Millis wait{0};
  bool verbose = false;
  RelayOptions relay;
};

[[nodiscard]] Result<std::unique_ptr<Outbox>> open_outbox(const std::string& url);

// Gives the program's exit status.
int relay_outbox(const OutboxRelayOptions& options);

}  // namespace leasehold::cli
