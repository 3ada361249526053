// `leasehold outbox relay`: the lease, the target and the loop put together.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/command/exit_status.h"
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

// What it ends with if the outbox was to be emptied.
inline constexpr ExitStatus kSetAside{65};
inline constexpr ExitStatus kNotEmpty{66};

ExitStatus relay_outbox(const OutboxRelayOptions& options);

}  // namespace leasehold::cli
