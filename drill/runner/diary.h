// What one thread of a worker writes down.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "leasehold/drill/history_file.h"
#include "leasehold/lease.h"
#include "plan.h"
#include "resource.h"

namespace leasehold::drill {

// What a worker was granted, and for which number.
struct Grant {
  std::string lock;  // as the history has it
  Mode mode;
  std::optional<Slot> slot;
  Pass pass;
  std::int64_t asked = 0;  // or earlier; on the boot clock, as all
  std::int64_t told = 0;
  std::int64_t deadline = 0;
  Millis ttl{};

  std::string resource() const { return resource_name(lock, slot); }
};
// Told now.
Grant grant_of(const Lease& lease, const std::optional<Token>& token, std::int64_t asked);

// All calls fail as HistoryWriter does. Not thread safe: each thread has one, under a name of its
// own.
class Diary {
 public:
  explicit Diary(HistoryWriter history) : history_(std::move(history)) {}

  // The request id is known with the answer only, so both are written then.
  [[nodiscard]] Status granted(const Grant& grant);
  [[nodiscard]] Status gives_back(const Grant& grant);
  [[nodiscard]] Status gave_back(const Grant& grant, const Result<ReleaseOutcome>& how);

  static Record record(Kind kind, Operation operation, const Grant& grant);
  [[nodiscard]] Status put(const Record& it, const Grant& grant);

 private:
  HistoryWriter history_;
};

}  // namespace leasehold::drill
