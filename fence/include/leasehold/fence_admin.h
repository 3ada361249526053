// The operator's view of the fences at one resource server or file.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "leasehold/error.h"
#include "leasehold/name.h"
#include "leasehold/technology.h"
#include "leasehold/time.h"
#include "leasehold/token.h"

namespace leasehold {

struct FenceMark {
  ResourceName resource;
  std::optional<Token> mark;       // nothing has entered yet: none
  std::optional<Lineage> lineage;  // the only lineage that may enter; none: the first to come
  std::int64_t refused = 0;        // stale or foreign tokens turned away
  std::optional<RequestId> claim;  // who last claimed it, in claim mode
  // The highest that has entered to read, if it is above `mark`: a lower one cannot write.
  std::optional<Token> reader = {};

  const std::optional<Token>& highest() const { return reader ? reader : mark; }
};

// What sweeping has left of the marks of one store: where a resource has no mark, tokens of that
// store are refused up to this number. 0: none are, and the store is known.
struct FenceFloor {
  StoreId store;
  std::int64_t floor = 0;
  bool operator==(const FenceFloor&) const = default;
};

struct SweepOptions {
  Millis older_than;  // marks with which nobody has entered for so long, by the database's clock
  std::function<void(std::int64_t swept)> progress = {};  // after each step, with the sum so far
  std::stop_token stop = {};
};

// A table whose writers must enter first, or their writes are refused.
struct GuardedTable {
  std::string table;
  ResourceName resource;
  // Whether all its triggers, and those of the tables below it, are there, enabled and the fence's.
  // False: somebody may write who has not entered; guarding it again puts them right.
  bool armed = true;
};

// Each call blocks on the resource; not thread safe. After a failure nothing has changed. What not
// every fence has is `unsupported` where it is missing.
class FenceAdmin {
 public:
  static constexpr std::string_view kOffer = kFenceOffer;
  virtual ~FenceAdmin() = default;

  // Creates what the fence needs; doing it again changes nothing, but puts back what keeps the
  // marks.
  [[nodiscard]] virtual Status install() = 0;

  // All marks, by resource name. `unavailable` if the fence is not installed.
  [[nodiscard]] virtual Result<std::vector<FenceMark>> marks() = 0;

  // `unavailable` if somebody has taken away what keeps a mark from being lowered or deleted by
  // accident; install() puts it right.
  [[nodiscard]] virtual Status check_marks();

  // Lets `lineage` in from `at_least` on, and nobody else: deliberately, after a store was
  // replaced. `invalid` if that would let stale holders in: it is below the mark of this lineage,
  // or, where there is no mark, not above the floor of its store.
  [[nodiscard]] virtual Status adopt(const ResourceName& resource, const Lineage& lineage,
                                     TokenNumber at_least) = 0;

  // Forgets mark, lineage and claim of one resource, so that the first to come is let in, be it a
  // stale holder: deliberately, when the resource itself was made again. The refusals stay.
  // `invalid` if the fence does not know the resource.
  [[nodiscard]] virtual Status reset(const ResourceName& resource);

  // Deletes old marks, in small steps, so that a fence of many resources does not grow for ever;
  // how many. It first raises the floor of their stores, so that whoever was below such a mark is
  // still refused. Once a mark was swept, a resource without one also refuses the tokens of every
  // store that is neither of a mark that was there then nor admitted. Marks of claims, of adopted
  // lineages and of resources that were reset stay. `invalid` for an age of 0 or less. `cancelled`
  // after a stop request: what was swept is swept, and the fence in order.
  [[nodiscard]] virtual Result<std::int64_t> sweep(const SweepOptions& options);

  // Lets the tokens of a store in where there is no mark, as far as its floor does: deliberately,
  // when a store is new, or was restored. Doing it again changes nothing.
  [[nodiscard]] virtual Status admit(const StoreId& store);

  // By store id. None: the fence was never swept.
  [[nodiscard]] virtual Result<std::vector<FenceFloor>> floors();

  // Undoes install(): all marks and all guards are gone afterwards. Nothing to undo: does nothing.
  [[nodiscard]] virtual Status remove();

  // From now on every write to `table` is refused in a transaction that has not entered `resource`.
  // Doing it again changes nothing. `invalid` if there is no such table, or another resource guards
  // it already.
  [[nodiscard]] virtual Status guard(const std::string& table, const ResourceName& resource);
  // `invalid` if the table is not guarded.
  [[nodiscard]] virtual Status unguard(const std::string& table);
  // By table name; none where a fence has no such thing.
  [[nodiscard]] virtual Result<std::vector<GuardedTable>> guards();
};

}  // namespace leasehold
