#include "cli/locks/lock_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "cli/command/duration.h"
#include "cli/command/output.h"
#include "cli/locks/json.h"

namespace leasehold::cli {
namespace {

std::string and_more(std::ptrdiff_t count) {
  return count > 0 ? " and " + std::to_string(count) + " more" : "";
}

bool has_note(const LockStatus::Holder& holder) {
  return !holder.note.empty();
}

// Of the holder that the row names; how many of the others have one too.
std::string notes_of(const LockStatus& lock) {
  if (lock.holders.empty()) return "-";
  const std::string& first = lock.holders.front().note;
  return (first.empty() ? "-" : first) +
         and_more(std::count_if(lock.holders.begin() + 1, lock.holders.end(), has_note));
}

using Row = std::vector<Table::Cell>;

Row titles(Columns columns) {
  Row row = {{"NAME", Colour::bold},
             {"STATE", Colour::bold},
             {"HOLDER", Colour::bold},
             {"TOKEN", Colour::bold},
             {"HELD FOR", Colour::bold}};
  if (columns == Columns::all) {
    row.push_back({"REMAINING", Colour::bold});
    row.push_back({"WAITERS", Colour::bold});
  }
  return row;
}

void add_holder(Row& row, const LockStatus& lock) {
  if (lock.holders.empty()) {
    const std::string token = lock.last_token ? std::to_string(lock.last_token->value()) : "-";
    row.insert(row.end(), {{"-"}, {token}, {"-"}});
    return;
  }
  const LockStatus::Holder& holder = lock.holders.front();
  row.insert(row.end(), {{holder.owner + and_more(std::ssize(lock.holders) - 1)},
                         {holder.foreign ? "-" : std::to_string(holder.token.value())},
                         {holder.foreign ? "-" : format_duration(holder.held_for)}});
}

Row row_of(const StoreTraits& store, const LockStatus& lock, Columns columns) {
  const std::string state = state_of(lock);
  const Colour colour = state == "free"   ? Colour::dim
                        : state == "kept" ? Colour::yellow
                                          : Colour::green;
  Row row = {{pasteable(lock.lock.str())}, {use_of(lock).value_or(state), colour}};
  add_holder(row, lock);
  if (columns == Columns::all) {
    const auto remaining = lock.holders.empty() ? std::nullopt : remaining_of(lock.holders.front());
    row.push_back({remaining.value_or("-")});
    row.push_back({store.queues ? std::to_string(lock.waiters.size()) : "-"});
  }
  return row;
}

}  // namespace

std::string lock_table(const std::optional<StoreTraits>& store,
                       const std::vector<LockStatus>& locks, Columns columns) {
  Table table;
  table.may_shorten(0);
  table.may_shorten(2);
  Row heading = titles(columns);
  const bool noted = std::ranges::any_of(
      locks, [](const LockStatus& lock) { return std::ranges::any_of(lock.holders, has_note); });
  if (noted) {
    table.may_shorten(heading.size());
    heading.push_back({"NOTE", Colour::bold});
  }
  table.add(std::move(heading));
  for (const LockStatus& lock : locks) {
    Row row = row_of(*store, lock, columns);
    if (noted) row.push_back({notes_of(lock)});
    table.add(std::move(row));
  }
  return table.str();
}

}  // namespace leasehold::cli
