#include "mark_sweep.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "fence_table.h"
#include "kit/try.h"

namespace leasehold::sqlite {
namespace {

constexpr std::int64_t kRowsPerStep = 500;

// A mark whose time has come; ?3 is the last second that is old.
constexpr const char* kOld =
    "resource > ?1 AND resource <= ?2 AND entered_at <= ?3"
    " AND claim IS NULL AND least IS NULL AND NOT is_reset";
constexpr const char* kHighest = "max(coalesce(token, 0), coalesce(read_token, 0))";

Status check_age(Millis age) {
  if (age > Millis::zero()) return {};
  return fail(ErrorCode::invalid, "marks older than " + std::to_string(age.count()) +
                                      " ms cannot be swept; the age must be positive");
}

Result<std::int64_t> now(Connection connection) {
  const auto row = TRY(connection.run("SELECT CAST(strftime('%s', 'now') AS INTEGER)", {}));
  return row.number(0);
}

// Times are whole seconds. In doubt a mark is younger than it looks.
Result<std::int64_t> last_old_second(Connection connection, Millis age) {
  const auto at = TRY(now(connection));
  return at - std::chrono::ceil<std::chrono::seconds>(age).count() - 1;
}

// Some rows, in the order of their resources: those behind `from`, up to the last one.
struct Step {
  std::string from;
  std::string to;
};

Result<std::optional<Step>> step_behind(Connection connection, const std::string& from) {
  const auto row =
      TRY(connection.run("SELECT max(resource) FROM (SELECT resource FROM main.leasehold_fence"
                         " WHERE resource > ?1 ORDER BY resource LIMIT ?2)",
                         {&from, kRowsPerStep}));
  if (row.is_null(0) || row.text(0) == from) return std::nullopt;
  return Step{from, std::string(row.text(0))};
}

template <class Work>
Status in_steps(Connection connection, const std::stop_token& stop, const Work& work) {
  for (std::string from;;) {
    if (stop.stop_requested()) {
      return fail(ErrorCode::cancelled, "sweeping was stopped; what was swept is swept");
    }
    auto step = TRY(step_behind(connection, from));
    if (!step) return {};
    TRY(work(*step));
    from = std::move(step->to);
  }
}

Status know(Connection connection, const StoreId& store) {
  const std::string id = store.hex();
  return connection
      .run(
          "INSERT INTO main.leasehold_floor(store) SELECT ?1"
          " WHERE NOT EXISTS(SELECT 1 FROM main.leasehold_floor WHERE store = ?1)",
          {&id})
      .map([](const sql::Rows&) {});
}

class MarkSweep {
 public:
  MarkSweep(Connection connection, const SweepOptions& options, std::int64_t last_old)
      : connection_(connection), options_(options), last_old_(last_old) {}

  Result<std::int64_t> run() {
    TRY(let_entries_tell_stores());
    const auto look = [this](const Step& step) { return look_at(step); };
    TRY(in_steps(connection_, options_.stop, look));
    TRY(raise_floors());
    const auto sweep = [this](const Step& step) { return sweep_behind_floors(step); };
    TRY(in_steps(connection_, options_.stop, sweep));
    return swept_;
  }

 private:
  // From the first floor on the entries register their stores, so that none is overlooked that
  // comes in behind the look.
  Status let_entries_tell_stores() {
    return connection_.exec(
        "INSERT INTO main.leasehold_floor(store)"
        " SELECT substr(lineage, 1, 32) FROM main.leasehold_fence WHERE instr(lineage, '/') = 33"
        " AND substr(lineage, 1, 32) NOT GLOB '*[^0-9a-f]*'"
        " AND NOT EXISTS(SELECT 1 FROM main.leasehold_floor) LIMIT 1");
  }

  Status look_at(const Step& step) {
    const auto rows = TRY(connection_.run(
        std::string("SELECT substr(lineage, 1, 32), max(iif(") + kOld + ", " + kHighest +
            ", 0)) FROM main.leasehold_fence WHERE resource > ?1 AND resource <= ?2"
            " AND lineage IS NOT NULL GROUP BY 1",
        {&step.from, &step.to, last_old_}));
    for (int row = 0; row < rows.count(); ++row) {
      const auto store = StoreId::from_hex(rows.text(0, row));
      if (!store) continue;
      std::int64_t& floor = floors_[*store];
      floor = std::max(floor, rows.number(1, row));
    }
    return {};
  }

  Status raise_floors() {
    auto transaction = TRY(Transaction::begin(connection_));
    for (const auto& [store, floor] : floors_) {
      TRY(know(connection_, store));
      const std::string id = store.hex();
      TRY(connection_.run(
          "UPDATE main.leasehold_floor SET floor = ?2 WHERE store = ?1 AND floor < ?2",
          {&id, floor}));
    }
    return transaction.commit();
  }

  // Somebody may have entered since the look: what is old is asked again, and whether the floor
  // covers it.
  Status sweep_behind_floors(const Step& step) {
    const std::string covered =
        std::string(" FROM main.leasehold_fence WHERE ") + kOld +
        " AND (coalesce(lineage, token, read_token) IS NULL OR " + kHighest +
        " <= (SELECT floor FROM main.leasehold_floor WHERE store = substr(lineage, 1, 32)))";
    const sql::Parameters range = {&step.from, &step.to, last_old_};
    const auto any = TRY(connection_.run("SELECT 1" + covered + " LIMIT 1", range));
    if (any.count() != 0) swept_ += TRY(take(covered, range));
    if (options_.progress) options_.progress(swept_);
    return {};
  }

  // How many marks are gone. A row that only counts refusals is none.
  Result<std::int64_t> take(const std::string& rows, const sql::Parameters& range) {
    auto transaction = TRY(Transaction::begin(connection_));
    const auto marks =
        TRY(connection_.run("SELECT count(coalesce(token, read_token))" + rows, range));
    TRY(connection_.run("DELETE" + rows, range));
    TRY(transaction.commit());
    return marks.number(0);
  }

  Connection connection_;
  const SweepOptions& options_;
  const std::int64_t last_old_;
  std::map<StoreId, std::int64_t> floors_;
  std::int64_t swept_ = 0;
};

}  // namespace

Result<std::int64_t> sweep_marks(Connection connection, const SweepOptions& options) {
  TRY(check_age(options.older_than));
  TRY(check_marks_are_kept(connection));
  const auto last_old = TRY(last_old_second(connection, options.older_than));
  return connection.durably([&] { return MarkSweep(connection, options, last_old).run(); });
}

Status admit_store(Connection connection, const StoreId& store) {
  TRY(check_fence(connection));
  return connection.durably([&] { return know(connection, store); });
}

Result<std::vector<FenceFloor>> read_floors(Connection connection) {
  TRY(check_fence(connection));
  const auto rows =
      TRY(connection.run("SELECT store, floor FROM main.leasehold_floor ORDER BY store", {}));
  std::vector<FenceFloor> floors;
  for (int row = 0; row < rows.count(); ++row) {
    const auto store = StoreId::from_hex(rows.text(0, row));
    if (!store) {
      return fail(ErrorCode::unavailable,
                  "a floor of the fence is damaged: it was not written by the fence");
    }
    floors.push_back({*store, rows.number(1, row)});
  }
  return floors;
}

}  // namespace leasehold::sqlite
