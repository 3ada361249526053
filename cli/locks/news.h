// What a watch of locks tells, for a command that goes on until a signal comes.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command/events.h"
#include "cli/command/exit_status.h"
#include "cli/command/signals.h"
#include "leasehold/client.h"

namespace leasehold::cli {

// What observers have told and was not taken yet. Thread safe.
class News {
 public:
  using Item = Result<std::vector<LockStatus>>;

  int fd() const { return told_.fd(); }
  void add(Item item) {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
    told_.raise();
  }
  std::deque<Item> take() {
    const std::lock_guard lock(mutex_);
    told_.clear();
    return std::exchange(items_, {});
  }

 private:
  std::mutex mutex_;
  Flag told_;
  std::deque<Item> items_;
};

// Tells what is new until a signal asks to end, nobody reads stdout any more, or `tell` says how it
// ends. `redraw` if given: after that, after each second, and when the program goes on after a
// stop.
using Tell = std::function<std::optional<Ending>(const News::Item&)>;
using Redraw = std::function<std::optional<Ending>()>;
Ending follow(Signals& signals, News& news, const Tell& tell, const Redraw& redraw = {});

// One line for each lock, or why none can be seen; with `json` an object each.
std::optional<Ending> tell_as_lines(const News::Item& item, bool json);

// If the locks can never be seen: says so, and that is the end.
std::optional<Ending> end_for_good(const News::Item& item);

// For a watch, which may come before the first who takes a lock and so makes the default store.
Result<Client> open_to_watch(const std::optional<std::string>& store);

}  // namespace leasehold::cli
