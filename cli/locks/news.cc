#include "cli/locks/news.h"

#include <poll.h>
#include <unistd.h>

#include <iterator>

#include "cli/command/output.h"
#include "cli/command/store_choice.h"
#include "cli/command/wall_time.h"
#include "cli/locks/json.h"

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;

constexpr Millis kRedrawEvery = 1s;

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

std::string timed(const std::string& text) {
  return rfc3339(std::chrono::system_clock::now()) + "  " + visible(text) + "\n";
}

std::optional<Ending> print_line(const std::string& line) {
  const ExitStatus printed = print(line);
  return printed == ExitStatus::done ? std::nullopt : std::optional<Ending>(printed);
}

// True if one of them asks to end.
bool take_signals(Signals& signals) {
  while (const auto number = signals.next()) {
    if (Signals::asks_to_end(*number)) return true;
    if (*number == SIGTSTP) stop_as_asked();
  }
  return false;
}

}  // namespace

Ending follow(Signals& signals, News& news, const Tell& tell, const Redraw& redraw) {
  for (;;) {
    pollfd events[] = {{signals.fd(), POLLIN, 0},
                       {news.fd(), POLLIN, 0},
                       {STDOUT_FILENO, 0, 0}};  // only whether it hung up
    const int limit = redraw ? static_cast<int>(kRedrawEvery.count()) : -1;
    if (poll(events, std::size(events), limit) < 0) continue;  // EINTR
    for (const News::Item& item : news.take()) {
      if (const auto ending = tell(item)) return *ending;
    }
    if (events[2].revents != 0) return ExitStatus::outcome_unknown;
    if (take_signals(signals)) return ExitStatus::cancelled;
    if (!redraw) continue;
    if (const auto ending = redraw()) return *ending;
  }
}

std::optional<Ending> end_for_good(const News::Item& item) {
  const bool for_good = !item && item.error().code == ErrorCode::unsupported;
  return for_good ? std::optional<Ending>(report(item.error())) : std::nullopt;
}

std::optional<Ending> tell_as_lines(const News::Item& item, bool json) {
  if (const auto ending = end_for_good(item)) return ending;
  if (!item) {
    const std::string why = text_of(item.error());
    return print_line(json ? unseen_json(why) : timed("cannot be seen: " + why));
  }
  for (const LockStatus& lock : *item) {
    const auto ending = print_line(
        json ? seen_json(lock) : timed(pasteable(lock.lock.str()) + "  " + seen_text(lock)));
    if (ending) return ending;
  }
  return std::nullopt;
}

Result<Client> open_to_watch(const std::optional<std::string>& store) {
  return is_not_there_yet(store) ? open_store(store) : open_existing_store(store);
}

}  // namespace leasehold::cli
