// The operator's view of the idempotency keys in one database: see leasehold/postgres/once.h and
// leasehold/sqlite/once.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "leasehold/error.h"

namespace leasehold {

// Each call blocks on the database; not thread safe. After a failure nothing has changed.
class OnceAdmin {
 public:
  static constexpr std::string_view kOffer = "table of idempotency keys";
  virtual ~OnceAdmin() = default;

  // Creates what the keys need; doing it again changes nothing.
  [[nodiscard]] virtual Status install() = 0;

  // Deletes results stored more than `age` ago by the database's clock, and tells how many. A key
  // that is forgotten would run again. `unavailable` if nothing is installed.
  [[nodiscard]] virtual Result<std::int64_t> forget_older_than(std::chrono::seconds age) = 0;
};

}  // namespace leasehold
