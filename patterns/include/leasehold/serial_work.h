// The serial queues at one URL, for a program that works at whatever the URL names. The rules are
// those of leasehold/postgres/serial_queue.h and leasehold/redis/serial_queue.h.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/serial_queue.h"
#include "leasehold/time.h"

namespace leasehold {

// Each call blocks on the server; not thread safe. `unavailable` if the queues are not installed.
class SerialWork {
 public:
  static constexpr std::string_view kOffer = "serial queue";
  virtual ~SerialWork() = default;

  struct Problem {
    EntityName entity;
    std::string last_error;
  };
  struct Overview {
    std::int64_t waiting = 0;      // operations; or, where only these are counted,
    bool counts_entities = false;  // entities that have some
    std::vector<Problem> set_aside;
  };

  // Adds an operation; its id.
  [[nodiscard]] virtual Result<std::int64_t> push(const QueueName& queue, const EntityName& entity,
                                                  std::string_view payload) = 0;

  // Done, or an error that is counted. It must end soon after `lost` is requested: then the entity
  // may be another worker's.
  using Work = std::function<Status(const Operation&, std::stop_token lost)>;

  // Takes one operation that is due, runs the work and tells what came of it. The work must end
  // within `longest`; a worker that is silent for longer, or somewhat longer, loses its entity.
  [[nodiscard]] virtual Result<Handled> handle_one(const QueueName& queue, const Work& work,
                                                   Millis longest,
                                                   const HandleOptions& options) = 0;

  [[nodiscard]] virtual Result<Overview> look_at(const QueueName& queue) = 0;

  // Of an entity that is set aside, else `invalid`: tries its first operation again, or never.
  [[nodiscard]] virtual Status retry(const QueueName& queue, const EntityName& entity) = 0;
  [[nodiscard]] virtual Status skip(const QueueName& queue, const EntityName& entity) = 0;
};

}  // namespace leasehold
