// Relaying an outbox: one at a time, under a fenced lease.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>

#include "leasehold/lease.h"
#include "leasehold/outbox.h"

namespace leasehold {

// What has just happened to a message.
struct RelayEvent {
  enum class Kind { delivered, failed, not_now, set_aside };
  Kind kind;
  const OutboxMessage& message;
  const Error* error = nullptr;  // none when delivered
};

struct RelayOptions {
  int attempts = 10;                     // counted failures until a message is set aside
  Millis timeout{30'000};                // of one delivery
  Millis poll{1'000};                    // how often to look for new messages
  Millis first_pause{1'000};             // of a key after a failure; doubles with each
  Millis longest_pause{60'000};          //
  Millis keep = std::chrono::hours(24);  // how long delivered messages stay in the table
  bool until_empty = false;              // return when nothing waits but what is set aside
  // With until_empty: return also when all that waits pauses after a failure, and nothing was
  // delivered or set aside for so long. Nothing: go on trying.
  std::optional<Millis> give_up_after{};
  std::stop_token stop{};  // return after the delivery that is going on
  std::function<void(const RelayEvent&)> tell{};
};

struct RelayReport {
  std::int64_t delivered = 0;
  std::int64_t failed = 0;  // counted failures
  std::int64_t set_aside = 0;
  bool emptied = false;  // with until_empty: nothing waits but what is set aside
};

// Enters the outbox with the lease's token, then delivers what waits: one message at a time, of
// each key the next only when the one before was delivered, marked and committed. A key whose
// message failed pauses, the others go on, however many pause or fail again and again. Each
// delivery is marked in a transaction of its own, so that a crash repeats one message at most.
//
// Blocks until options.stop, until_empty, give_up_after or a failure:
// - `lost`: the lease is over; the delivery that was going on was told to stop, nothing counted.
//   Or less than a sixth of it is left: no delivery is begun then.
// - `fenced_out`: another relay has entered. What this one delivered last will come again.
// - as Outbox: the database failed. The message that was delivered last may come again.
[[nodiscard]] Result<RelayReport> relay(Outbox& outbox, OutboxTarget& target,
                                        const FencedLease& lease, const RelayOptions& options = {});

}  // namespace leasehold
