#include <poll.h>
#include <unistd.h>

#include <deque>
#include <iterator>
#include <mutex>
#include <utility>

#include "cli/command/arguments.h"
#include "cli/command/events.h"
#include "cli/command/output.h"
#include "cli/command/signals.h"
#include "cli/command/store_choice.h"
#include "cli/command/subcommand.h"
#include "cli/command/wall_time.h"
#include "cli/locks/json.h"
#include "kit/try.h"

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;

constexpr Range<Millis> kLooks{10ms, 1h};

std::string holder_text(const LockStatus::Holder& holder) {
  std::string text = holder.owner;
  if (!holder.foreign) text += ", token " + std::to_string(holder.token.value());
  if (holder.slot) text += ", slot " + std::to_string(holder.slot->number);
  if (!holder.note.empty()) text += ", note " + in_quotes(holder.note);
  return text;
}

std::string seen_text(const LockStatus& lock) {
  if (lock.holders.empty()) {
    return "free" +
           (lock.last_token ? ", last token " + std::to_string(lock.last_token->value()) : "");
  }
  const std::string use = use_of(lock).value_or(state_of(lock));
  std::string holders;
  for (const LockStatus::Holder& holder : lock.holders) {
    holders += (holders.empty() ? "" : "; ") + holder_text(holder);
  }
  return use + (use == "held" ? " by " : use == "kept" ? " after " : ": ") + holders;
}

// What observers have told and was not printed yet.
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

class WatchLocks final : public Subcommand {
 public:
  void declare(Arguments& arguments) override {
    arguments.positional("NAME", name_, "The lock's name, or with --prefix how it begins");
    declare_store(arguments, store_);
    arguments.flag("--prefix", prefix_,
                   "All locks whose name begins with NAME; '' is every lock of the store");
    arguments.duration("--look-every", look_every_,
                       "How often to ask the store although it told nothing", kLooks,
                       "1s where the store tells changes by itself, else 250ms");
    arguments.flag("--json", json_, "For programs: one JSON object on each line");
    arguments.description(
        "Prints a line with the state of the lock, and one more whenever those who hold it have "
        "changed, until a signal comes. A line says so when the store cannot be seen, and another "
        "one has the state when it can be seen again. Between two looks a holder may come and go; "
        "then only its token is missing in the order.");
    arguments.ends_with(ExitStatus::cancelled, "a signal came");
    arguments.example("leasehold watch leader", "who holds it, now and from now on");
    arguments.example("leasehold watch invoice/ --prefix --json",
                      "the same of many, for a program");
  }

  Ending execute() override {
    Signals signals;
    News news;
    auto client = open();
    if (!client) return report(client.error());
    const auto watching = watch(*client, news);
    if (!watching) return report(watching.error());
    return tell(signals, news);
  }

 private:
  // Who watches may come before the first who takes a lock.
  Result<Client> open() const {
    return is_not_there_yet(store_) ? open_store(store_) : open_existing_store(store_);
  }

  Result<leasehold::Watch> watch(Client& client, News& news) const {
    const WatchOptions options{look_every_};
    if (prefix_) {
      return client.watch_prefix(
          name_, [&news](const auto& now) { news.add(now); }, options);
    }
    auto lock = TRY(chosen_lock(name_));
    return client.watch(
        lock,
        [&news](const Result<LockStatus>& now) {
          if (!now) return news.add(fail(now.error()));
          news.add(std::vector<LockStatus>{*now});
        },
        options);
  }

  Ending tell(Signals& signals, News& news) const {
    for (;;) {
      pollfd events[] = {{signals.fd(), POLLIN, 0},
                         {news.fd(), POLLIN, 0},
                         {STDOUT_FILENO, 0, 0}};              // only whether it hung up
      if (poll(events, std::size(events), -1) < 0) continue;  // EINTR
      for (const News::Item& item : news.take()) {
        if (const auto ending = tell(item)) return *ending;
      }
      if (events[2].revents != 0) return ExitStatus::outcome_unknown;
      while (const auto number = signals.next()) {
        if (Signals::asks_to_end(*number)) return ExitStatus::cancelled;
        if (*number == SIGTSTP) stop_as_asked();
      }
    }
  }

  std::optional<Ending> tell(const News::Item& item) const {
    if (!item) {
      const bool for_good = item.error().code == ErrorCode::unsupported;
      if (for_good) return report(item.error());
      return print_line(json_ ? unseen_json(text_of(item.error()))
                              : timed("cannot be seen: " + text_of(item.error())));
    }
    for (const LockStatus& lock : *item) {
      const auto ending = print_line(
          json_ ? seen_json(lock) : timed(pasteable(lock.lock.str()) + "  " + seen_text(lock)));
      if (ending) return ending;
    }
    return std::nullopt;
  }

  static std::string timed(const std::string& text) {
    return rfc3339(std::chrono::system_clock::now()) + "  " + visible(text) + "\n";
  }

  static std::optional<Ending> print_line(const std::string& line) {
    const ExitStatus printed = print(line);
    return printed == ExitStatus::done ? std::nullopt : std::optional<Ending>(printed);
  }

  std::string name_;
  std::optional<std::string> store_;
  bool prefix_ = false;
  std::optional<Millis> look_every_;
  bool json_ = false;
};

}  // namespace

SubcommandEntry watch_command() {
  return {"watch", "Tell who holds a lock, as it changes", make<WatchLocks>};
}

}  // namespace leasehold::cli
