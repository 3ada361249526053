#include "fence_sweep.h"

#include <algorithm>
#include <map>
#include <string>

#include "array.h"
#include "fence_functions.h"
#include "kit/try.h"

namespace leasehold::postgres {
namespace {

class Sweep {
 public:
  Sweep(Session session, const SweepOptions& options)
      : session_(session), options_(options), age_(bounded(options.older_than)) {}

  Status raise_floors() {
    auto floors = TRY(needed_floors());
    TextArray stores;
    TextArray numbers;
    for (const auto& [store, number] : floors) {
      stores.add(store);
      numbers.add(std::to_string(number));
    }
    TRY(session_.run_read_committed("SELECT leasehold_fence.raise_floors($1, $2)",
                                    {stores.c_str(), numbers.c_str()}));
    return {};
  }

  Result<std::int64_t> delete_marks() {
    std::int64_t swept = 0;
    TRY(for_each_page("SELECT last, swept FROM leasehold_fence.sweep_marks($1, $2)",
                      [&](const Rows& page) {
                        swept += page.number(1);
                        if (options_.progress) options_.progress(swept);
                        return std::string(page.text(0));
                      }));
    return swept;
  }

  Status delete_refusals() {
    return for_each_page("SELECT leasehold_fence.sweep_refusals($1, $2)",
                         [](const Rows& page) { return std::string(page.text(0)); });
  }

 private:
  // By store; 0 where none of its marks is old.
  Result<std::map<std::string, std::int64_t>> needed_floors() {
    std::map<std::string, std::int64_t> floors;
    TRY(for_each_page("SELECT store, highest, last FROM leasehold_fence.survey($1, $2)",
                      [&](const Rows& page) {
                        std::string last;
                        for (int row = 0; row < page.count(); ++row) {
                          last = std::max(last, std::string(page.text(2, row)));
                          if (page.is_null(0, row)) continue;
                          auto& floor = floors[std::string(page.text(0, row))];
                          floor = std::max(floor, page.number(1, row));
                        }
                        return last;
                      }));
    return floors;
  }

  // `take` answers with where the next page begins: empty after the last.
  template <class Take>
  Status for_each_page(const char* sql, const Take& take) {
    std::string after;
    do {
      if (options_.stop.stop_requested()) return fail(ErrorCode::cancelled, "stop was requested");
      after = take(TRY(session_.run_read_committed(sql, {after.c_str(), age_.c_str()})));
    } while (!after.empty());
    return {};
  }

  Session session_;
  const SweepOptions& options_;
  const std::string age_;
};

}  // namespace

Result<std::int64_t> sweep_marks(Session session, const SweepOptions& options) {
  if (options.older_than <= Millis::zero()) {
    return fail(ErrorCode::invalid, "marks are swept that are older than " +
                                        std::to_string(options.older_than.count()) +
                                        " ms; it must be more than 0");
  }
  TRY(session.check_outside());
  TRY(check_fence(session));
  Sweep sweep(session, options);
  TRY(sweep.raise_floors());
  auto swept = TRY(sweep.delete_marks());
  TRY(sweep.delete_refusals());
  return swept;
}

Status admit_store(Session session, const StoreId& store) {
  TRY(check_fence(session));
  TRY(session.run("SELECT leasehold_fence.admit($1)", {store.hex().c_str()}));
  return {};
}

Result<std::vector<FenceFloor>> read_floors(Session session) {
  TRY(check_fence(session));
  const auto rows = TRY(session.run("SELECT store, floor FROM leasehold_fence.floors()", {}));
  std::vector<FenceFloor> floors;
  for (int row = 0; row < rows.count(); ++row) {
    const auto store = StoreId::from_hex(rows.text(0, row));
    if (!store) {
      return fail(ErrorCode::unavailable, "the floor of store '" + std::string(rows.text(0, row)) +
                                              "' is damaged: it was not written by the fence");
    }
    floors.push_back({*store, rows.number(1, row)});
  }
  return floors;
}

}  // namespace leasehold::postgres
