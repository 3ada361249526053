// The operator's view of the serial queues in one database.
#pragma once

#include <string_view>

#include "leasehold/error.h"

namespace leasehold {

// Blocks on the database; not thread safe.
class SerialQueueAdmin {
 public:
  static constexpr std::string_view kOffer = "serial queue to install";
  virtual ~SerialQueueAdmin() = default;

  // Creates what serial queues need; doing it again changes nothing. After a failure nothing has
  // changed.
  [[nodiscard]] virtual Status install() = 0;
};

}  // namespace leasehold
