#include "cli/hold/session.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>
#include <vector>

#include "cli/command/output.h"
#include "cli/command/store_choice.h"
#include "kit/try.h"

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;

Json in_millis(BootClock::duration span) {
  return std::chrono::floor<Millis>(span).count();
}

Json or_null(const std::optional<std::string>& text) {
  return text ? Json(*text) : Json(nullptr);
}

// How often the lease is looked at while its renewal is due.
Millis pace(Millis ttl) {
  return std::clamp<Millis>(ttl / 100, 5ms, 100ms);
}

}  // namespace

Ending HoldSession::go() {
  auto held = take();
  const bool failed = !held && held.error().code != ErrorCode::cancelled;
  if (stop_ && !failed) return stopped_before_it_was_held();  // what was granted is given back
  if (!held) return report(held.error());
  return keep(*held);
}

// ---- taking --------------------------------------------------------------------------------

Result<HoldSession::Held> HoldSession::take() {
  std::optional<Result<Held>> held;
  Flag answered;
  std::stop_source cancel;
  std::thread taking([&] {
    held.emplace(open_and_take(cancel.get_token()));
    answered.raise();
  });
  for (pollfd answer{answered.fd(), POLLIN, 0}; poll(&answer, 1, 0) == 0;) {
    wait({answered.fd()});
    if (stop_) cancel.request_stop();
  }
  taking.join();
  return std::move(*held);
}

Result<HoldSession::Held> HoldSession::open_and_take(const std::stop_token& stop) const {
  LeaseOptions wanted = options_;
  auto client = TRY(await_store(wanted.store, {.owner = owner_, .stop = stop}, wanted.wait));
  auto taken = TRY(take_lease(client, lock_, wanted, stop));
  return Held{std::move(client), std::move(taken)};
}

Ending HoldSession::stopped_before_it_was_held() const {
  const std::string before = " before lock " + in_quotes(lock_.str()) + " was held";
  if (stop_ == Stop::asked) note_now("it was to be released" + before);
  if (stop_ == Stop::input_ended) note_now("standard input ended" + before);
  if (stop_ == Stop::signal) note_now("a signal came" + before);
  if (stop_ == Stop::unheard) note_now("standard output cannot be written" + before);
  return stop_ == Stop::asked || stop_ == Stop::input_ended ? ExitStatus::cancelled
                                                            : status_of_stop();
}

// ---- holding -------------------------------------------------------------------------------

Ending HoldSession::keep(Held& held) {
  const Lease& lease = held.taken.lease;
  if (!options_.no_heartbeat) heartbeat_ = options_.heartbeat.value_or(lease.ttl() / 3);
  const std::stop_callback told(lease.lost(), [this] { lost_.raise(); });
  if (lease.state() == LeaseState::lost) return lost(held);
  heard_ = BootClock::now();
  tell_state(held);
  for (;;) {
    if (const auto ending = check(held)) return *ending;
    if (stop_) return give_back(held);
    timer_.set(next_look(held));
    wait({lost_.fd(), timer_.fd()});
  }
}

std::optional<Ending> HoldSession::check(Held& held) {
  Lease& lease = held.taken.lease;
  if (lease.state() == LeaseState::lost) return lost(held);
  const bool silent = heartbeat_ && BootClock::now() >= heard_ + *heartbeat_;
  if (silent && !missed_) {
    missed_ = true;
    lease.stop_renewing();
  } else if (!silent && missed_) {
    missed_ = false;
    stale_deadline_ = lease.deadline();
    lease.resume_renewing();
  }
  if (const Told now = state_of(held); now != told_) {
    told_ = now;
    tell_state(held);
  }
  return std::nullopt;
}

HoldSession::Told HoldSession::state_of(const Held& held) const {
  const Lease& lease = held.taken.lease;
  if (missed_) return Told::no_heartbeat;
  if (lease.state() == LeaseState::uncertain) return Told::store_silent;
  return lease.deadline() == stale_deadline_ ? told_ : Told::held;
}

// A lease that is held has been renewed when a third of its time is over.
BootTime HoldSession::next_look(const Held& held) const {
  const Lease& lease = held.taken.lease;
  const BootTime soon = BootClock::now() + pace(lease.ttl());
  BootTime next = missed_ ? lease.deadline() : soon;
  if (told_ == Told::held) next = std::max(soon, lease.deadline() - lease.ttl() * 2 / 3);
  if (heartbeat_ && !missed_) next = std::min(next, heard_ + *heartbeat_);
  return std::min(next, lease.deadline());
}

Ending HoldSession::lost(const Held& held) {
  const bool by_time = BootClock::now() >= held.taken.lease.deadline();
  const auto trouble = held.client.renewal_error();
  std::string cause = "pause";
  std::string words = "this process or its machine stood still";
  if (!by_time) {
    cause = "gone";
    words = "the store says that it is over";
  } else if (missed_) {
    cause = "heartbeat";
    words = "no heartbeat came, so it was not renewed";
  } else if (trouble) {
    cause = "store";
    words = text_of(*trouble);
  }
  tell({{"event", "lost"}, {"cause", cause}, {"message", kit::without_passwords(words)}});
  note_now("the lease on " + in_quotes(lock_.str()) + " was lost: " + words);
  return ExitStatus::lost;
}

ExitStatus HoldSession::status_of_stop() const {
  switch (*stop_) {
    case Stop::asked:
    case Stop::input_ended:
      return ExitStatus::done;
    case Stop::signal:
      return ExitStatus::cancelled;
    case Stop::unheard:
      return ExitStatus::outcome_unknown;
    case Stop::wrong_word:
      return ExitStatus::wrong_input;
  }
  return ExitStatus::internal;
}

Ending HoldSession::give_back(Held& held) {
  if (stop_ == Stop::unheard) {
    note_now("standard output cannot be written any more; giving lock " + in_quotes(lock_.str()) +
             " back");
  }
  const ExitStatus status = status_of_stop();
  const auto outcome = held.taken.lease.release();
  if (!outcome) {
    report_not_released(held.taken.lease, outcome.error());
    return exit_status(outcome.error().code);
  }
  if (*outcome == ReleaseOutcome::too_late) return lost(held);
  tell({{"event", "released"}});
  return status;
}

// ---- what comes ----------------------------------------------------------------------------

void HoldSession::wait(std::initializer_list<int> others) {
  const auto unless_stopped = [this](int fd) { return stop_ ? -1 : fd; };
  std::vector<pollfd> events = {{unless_stopped(signals_.fd()), POLLIN, 0},
                                {unless_stopped(STDIN_FILENO), POLLIN, 0},
                                {unless_stopped(STDOUT_FILENO), 0, 0}};  // only whether it hung up
  for (const int fd : others) events.push_back({fd, POLLIN, 0});
  if (poll(events.data(), events.size(), -1) < 0) return;  // EINTR
  if (events[0].revents != 0) take_signals();
  if (events[1].revents != 0) listen();
  if (events[2].revents != 0 && !stop_) stop_ = Stop::unheard;
}

void HoldSession::take_signals() {
  while (const auto number = signals_.next()) {
    if (Signals::asks_to_end(*number)) stop_ = Stop::signal;
    if (*number == SIGTSTP) stop_as_asked();
  }
}

void HoldSession::listen() {
  char buffer[4096];
  const ssize_t got = read(STDIN_FILENO, buffer, sizeof buffer);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got > 0) lines_.add({buffer, static_cast<std::size_t>(got)});
  while (!stop_) {
    const auto word = lines_.next();
    if (!word) {
      note_now(text_of(word.error()));
      stop_ = Stop::wrong_word;
      return;
    }
    if (!*word) break;
    hear(**word);
  }
  if (got <= 0 && !stop_) stop_ = Stop::input_ended;
}

void HoldSession::hear(ParentWord word) {
  heard_ = BootClock::now();
  if (word == ParentWord::release) stop_ = Stop::asked;
}

// ---- what is told --------------------------------------------------------------------------

// Whoever does not read must not keep this from ending a lease in time.
void HoldSession::tell(const Json& event) {
  if (full_ || stop_ == Stop::unheard) return;
  const auto written = process::write_within(STDOUT_FILENO, json_line(event), process::within(0s));
  full_ = written == process::Written::not_in_time;
  if (written == process::Written::failed && !stop_) stop_ = Stop::unheard;
}

void HoldSession::tell_state(const Held& held) {
  const Lease& lease = held.taken.lease;
  if (told_ == Told::held) {
    const std::optional<Token>& token = held.taken.token;
    return tell({{"event", "held"},
                 {"lock", lock_.str()},
                 {"token", or_null(token ? std::optional(std::to_string(token->number.value()))
                                         : std::nullopt)},
                 {"lineage", or_null(token ? std::optional(token->lineage.str()) : std::nullopt)},
                 {"request", lease.request().hex()},
                 {"slot", lease.slot() ? Json(lease.slot()->number) : Json(nullptr)},
                 {"remaining_ms", in_millis(lease.remaining())},
                 {"ttl_ms", lease.ttl().count()},
                 {"heartbeat_ms", heartbeat_ ? Json(heartbeat_->count()) : Json(nullptr)}});
  }
  std::string cause = "heartbeat";
  std::string words = "no heartbeat came; the lease is not renewed any more";
  if (told_ == Told::store_silent) {
    const auto trouble = held.client.renewal_error();
    cause = "store";
    words = trouble ? text_of(*trouble) : "the last renewal failed";
  }
  tell({{"event", "uncertain"},
        {"cause", cause},
        {"remaining_ms", in_millis(lease.remaining())},
        {"message", kit::without_passwords(words)}});
}

}  // namespace leasehold::cli
