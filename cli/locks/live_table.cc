#include "cli/locks/live_table.h"

#include <algorithm>
#include <vector>

#include "cli/command/output.h"
#include "cli/command/text.h"
#include "cli/command/wall_time.h"
#include "cli/locks/lock_table.h"

namespace leasehold::cli {
namespace {

constexpr std::string_view kToTheTop = "\033[H";
constexpr std::string_view kClearRestOfLine = "\033[K\n";
constexpr std::string_view kClearBelow = "\033[J";

}  // namespace

std::optional<Ending> LiveTable::take(const News::Item& item) {
  if (const auto ending = end_for_good(item)) return ending;
  told_ = true;
  why_unseen_ = item ? std::nullopt : std::optional(text_of(item.error()));
  if (!item) return std::nullopt;
  const BootTime now = BootClock::now();
  for (const LockStatus& lock : *item) {
    held_.erase(lock.lock.str());
    if (!lock.holders.empty()) held_.emplace(lock.lock.str(), Seen{lock, now});
  }
  return std::nullopt;
}

std::optional<Ending> LiveTable::draw() const {
  if (!told_) return std::nullopt;
  const std::size_t columns = terminal_columns().value_or(80);
  const std::string text = shortened(heading(), columns) + "\n" + table();
  std::size_t room = std::max<std::size_t>(terminal_rows().value_or(24), 4) - 2;
  std::string screen(kToTheTop);
  std::size_t from = 0;
  while (from < text.size() && room > 0) {
    const std::size_t end = text.find('\n', from);
    screen.append(text, from, end - from).append(kClearRestOfLine);
    from = end + 1;
    --room;
  }
  const auto left = std::count(text.begin() + static_cast<std::ptrdiff_t>(from), text.end(), '\n');
  if (left > 0)
    screen.append("and ").append(std::to_string(left)).append(" more").append(kClearRestOfLine);
  const ExitStatus printed = print(screen.append(kClearBelow));
  return printed == ExitStatus::done ? std::nullopt : std::optional<Ending>(printed);
}

std::string LiveTable::heading() const {
  const std::string time = rfc3339(std::chrono::system_clock::now());
  if (!why_unseen_) return time + "  held: " + std::to_string(held_.size());
  return time + "  cannot be seen: " + visible(*why_unseen_);
}

// What was seen last has grown older since.
std::string LiveTable::table() const {
  const BootTime now = BootClock::now();
  std::vector<LockStatus> locks;
  for (const auto& [name, seen] : held_) {
    locks.push_back(seen.lock);
    for (LockStatus::Holder& holder : locks.back().holders) {
      holder.held_for += std::chrono::floor<Millis>(now - seen.at);
    }
  }
  return lock_table(store_, locks, Columns::of_holders);
}

}  // namespace leasehold::cli
