// Read, change, write unless somebody else has written since; else again. A way not to need a lock,
// where all that is to be kept right is one value.
//
// The stores' cells: VersionedRow of postgres and sqlite; Cell of etcd, zookeeper and redis.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>

#include "leasehold/error.h"
#include "leasehold/time.h"

namespace leasehold {

struct CompareAndSetOptions {
  // How often to try, at least once. Each try reads again and calls the change again.
  int attempts = 100;
  // When to stop trying again. A try that has begun is not cut short.
  Millis wait{5000};
  std::stop_token stop{};
};

template <class Value>
struct Changed {
  Value value;        // what was written
  int conflicts = 0;  // how often somebody else was faster; many: use a queue or a lock instead
};

// One value at a store. read() gives a Seen: its `value`, and what the store needs to know that
// nobody has written since. write() is one atomic step: true if it wrote, false if somebody else
// had written, in which case nothing has changed.
template <class Cell>
concept VersionedCell = requires(const Cell& cell, const typename Cell::Seen& seen,
                                 const typename Cell::Value& value) {
  { cell.read() } -> std::same_as<Result<typename Cell::Seen>>;
  { cell.write(seen, value) } -> std::same_as<Result<bool>>;
};

// Between two tries of one call of compare_and_set().
class CompareAndSetTries {
 public:
  explicit CompareAndSetTries(const CompareAndSetOptions& options);
  ~CompareAndSetTries();
  // Somebody else was faster: waits a little before the next try, or says why there is none.
  [[nodiscard]] Status wait_for_next();
  int conflicts() const { return conflicts_; }

 private:
  class Pauses;
  const int most_;
  int conflicts_ = 0;
  std::unique_ptr<Pauses> pauses_;
};

// Calls change(seen.value), which gives a Result<Value>, until its value was written over the one
// that it was given. The change may be called many times: it must have no effect but its result.
//
// Blocks for as long as the store and the change do, and between tries up to 50 ms. As thread safe
// as the cell.
//
// Fails with
// - `busy`: in all attempts somebody else was faster; `timeout`: until the time was over;
//   `cancelled`: stop was requested. Nothing was written.
// - `outcome_unknown`: the reply to a write was lost. It is not tried again, since it may have been
//   done. Read, and decide.
// - `invalid`: options.attempts is not positive.
// - the change's own error, which ends it, or the cell's. Nothing was written.
template <VersionedCell Cell, class Change>
requires std::is_invocable_r_v<
    Result<typename Cell::Value>, Change&,
    decltype(std::declval<const typename Cell::Seen&>()
                 .value)> [[nodiscard]] Result<Changed<typename Cell::Value>>
compare_and_set(const Cell& cell, Change&& change, const CompareAndSetOptions& options = {}) {
  if (options.attempts < 1) {
    return fail(ErrorCode::invalid, "the number of attempts must be at least 1, not " +
                                        std::to_string(options.attempts));
  }
  CompareAndSetTries tries(options);
  for (;;) {
    auto seen = cell.read();
    if (!seen) return fail(std::move(seen.error()));
    Result<typename Cell::Value> wanted = std::invoke(change, std::as_const(seen->value));
    if (!wanted) return fail(std::move(wanted.error()));
    auto written = cell.write(*seen, *wanted);
    if (!written) return fail(std::move(written.error()));
    if (*written) return Changed<typename Cell::Value>{std::move(*wanted), tries.conflicts()};
    if (auto ok = tries.wait_for_next(); !ok) return fail(std::move(ok.error()));
  }
}

}  // namespace leasehold
