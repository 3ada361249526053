#include "waiting.h"

#include <poll.h>
#include <unistd.h>

#include <utility>

#include "duration.h"
#include "output.h"

namespace leasehold::cli {
namespace {

// Shorter waits need no explanation.
constexpr int kTellAfterMs = 300;

}  // namespace

Waiting::Waiting(Client client, LockName lock, Signals& signals)
    : client_(std::move(client)), lock_(std::move(lock)), signals_(signals) {
  thread_ = std::thread([this] { watch(); });
}

Waiting::~Waiting() {
  over_.raise();
  thread_.join();
}

void Waiting::watch() {
  int tell_after = isatty(STDERR_FILENO) == 1 ? kTellAfterMs : -1;
  for (;;) {
    pollfd events[] = {{over_.fd(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}};
    const int ready = poll(events, std::size(events), tell_after);
    if (ready == 0) {
      tell_after = -1;
      tell_holder();
    }
    if (ready > 0 && events[0].revents != 0) return;
    if (ready > 0 && signals_.take_end_request()) cancel_.request_stop();
  }
}

void Waiting::tell_holder() {
  const auto status = client_.inspect(lock_, {.stop = cancel_.get_token()});
  if (!status || !status->holder) return;
  const LockStatus::Holder& holder = *status->holder;
  note_now("waiting for '" + lock_.str() + "', " +
           (holder.kept ? "kept after " + holder.owner + " finished, free in "
                        : "held by " + holder.owner + " for " + format_duration(holder.held_for) +
                              ", its lease lasts ") +
           format_duration(holder.remaining));
}

}  // namespace leasehold::cli
