// Serial queues: operations of one entity run strictly one after the other, in the order of their
// commits; many entities run side by side, in as many workers as there are. A way not to need a
// lock per entity: what would wait for the lock waits in the queue.
//
// These are the words that all serial queues share. What a crash means is said by each:
// leasehold/postgres/serial_queue.h and leasehold/redis/serial_queue.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "leasehold/error.h"
#include "leasehold/name.h"
#include "leasehold/time.h"

namespace leasehold {

struct QueueNameKind {
  static constexpr std::string_view field = "queue name";
};
using QueueName = Name<QueueNameKind>;
struct EntityNameKind {
  static constexpr std::string_view field = "entity name";
};
using EntityName = Name<EntityNameKind>;

inline constexpr std::size_t kMaxOperationPayload = std::size_t(1) << 20;  // bytes
// `invalid`, with both numbers.
[[nodiscard]] Status check_operation_payload(std::string_view payload);

struct Operation {
  std::int64_t id = 0;
  EntityName entity;
  std::string payload;
  std::int64_t attempts = 0;  // failures before this one
};

struct HandleOptions {
  int attempts = 10;             // failures until an operation is set aside with its entity
  Millis first_pause{1'000};     // of an entity after a failure; doubles with each
  Millis longest_pause{60'000};  //
};

// The pause after the failure that follows `before` others.
Millis pause_after(std::int64_t before, const HandleOptions& options);

struct Handled {
  enum class What {
    nothing,    // no operation is due
    done,       //
    failed,     // the work said so, or could not be committed; tried again after a pause
    set_aside,  // the same, for the last time: the entity waits for retry() or skip()
    lost,       // Redis: the entity was another worker's before the end; it is done again
  };
  What what = What::nothing;
  std::optional<Operation> operation;  // unless `nothing`
  std::optional<Error> error;          // of the work, or of its commit
};

struct WorkLoopOptions {
  Millis poll{200};          // how often to look when nothing is due
  std::stop_token stop{};    // return after the operation that is being done
  bool until_empty = false;  // return as soon as nothing is due
  std::function<void(const Handled&)> tell{};
};

// Calls handle_one() until told to stop, and waits a little whenever there is nothing to do.
// Fails as handle_one() does: then the connection or the server has failed.
[[nodiscard]] Status work_loop(const std::function<Result<Handled>()>& handle_one,
                               const WorkLoopOptions& options = {});

}  // namespace leasehold
