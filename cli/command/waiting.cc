#include "cli/command/waiting.h"

#include <poll.h>
#include <unistd.h>

#include <utility>

#include "cli/command/duration.h"
#include "cli/command/output.h"

namespace leasehold::cli {
namespace {

// Shorter waits need no explanation.
constexpr int kTellAfterMs = 300;

// Signals are not heard meanwhile.
constexpr Millis kAskFor{200};

}  // namespace

Waiting::Waiting(Signals& signals, std::optional<For> told)
    : signals_(signals), told_(std::move(told)) {
  thread_ = std::thread([this] { watch(); });
}

Waiting::~Waiting() {
  end();
  thread_.join();
}

bool Waiting::end() {
  const std::lock_guard lock(taking_);
  ended_ = true;
  over_.raise();
  return cancel_.stop_requested();
}

// False if they are no longer this thread's to take.
bool Waiting::take_signals() {
  const std::lock_guard lock(taking_);
  if (ended_) return false;
  while (const auto number = signals_.next()) {
    if (Signals::asks_to_end(*number)) cancel_.request_stop();
    if (*number == SIGTSTP) stop_as_asked();
  }
  return true;
}

void Waiting::watch() {
  int tell_after = told_ ? kTellAfterMs : -1;
  for (;;) {
    pollfd events[] = {{over_.fd(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}};
    const int ready = poll(events, std::size(events), tell_after);
    if (ready == 0) {
      tell_after = -1;
      tell_holder();
    }
    if (ready > 0 && !take_signals()) return;
  }
}

void Waiting::tell_holder() {
  const LockName& lock = told_->lock;
  const auto status =
      told_->client.inspect(lock, {.store_timeout = kAskFor, .stop = cancel_.get_token()});
  if (!status || status->holders.empty()) return;
  const LockStatus::Holder& holder = status->holders.front();
  const std::string left = (holder.at_most ? "at most " : "") + format_duration(holder.remaining);
  std::string held = "held by " + holder.owner;
  if (!holder.foreign) {
    held += " for " + format_duration(holder.held_for) + ", its lease lasts " + left;
  }
  note_now("waiting for " + in_quotes(lock.str()) + ", " +
           (holder.kept ? "kept after " + holder.owner + " finished, free in " + left : held));
}

}  // namespace leasehold::cli
