#include "cli/run/partition_session.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "cli/command/output.h"
#include "cli/command/range.h"
#include "leasehold/process/group.h"
#include "leasehold/process/terminal.h"

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;

// "host:pid", as in the label of an owner.
std::string usual_member() {
  const std::string owner = default_owner_label().str();
  return owner.substr(0, owner.rfind(':'));
}

}  // namespace

PartitionSession::PartitionSession(const PartitionRunOptions& options, LockName group,
                                   Client client, Signals& signals)
    : options_(options),
      group_name_(std::move(group)),
      member_name_(options.member.value_or(usual_member())),
      client_(std::move(client)),
      signals_(signals),
      desk_({options.grace, options.drain}),
      group_(signals) {}

Ending PartitionSession::go() {
  Waiting joining(signals_);
  auto member = Partitions::join(client_, group_name_,
                                 {.count = options_.count,
                                  .member = member_name_,
                                  .note = options_.note.value_or(""),
                                  .ttl = options_.ttl,
                                  .look_every = options_.look_every,
                                  .stop = joining.stop()},
                                 desk_);
  if (joining.end() || (member && signals_.take_end_request())) return not_started();
  if (!member) return report(member.error());
  member_ = std::move(*member);
  say("joined " + in_quotes(group_name_.str()) + " as " + in_quotes(member_name_));
  const Ending ending = work();
  desk_.close();
  member_->leave();
  say("left " + in_quotes(group_name_.str()));
  return ending;
}

process::Command PartitionSession::command() const {
  process::Command command{.argv = options_.command,
                           .environment = environment_under(group_name_, client_),
                           .in = process::Piped{},
                           .out = process::Piped{}};
  command.environment.emplace_back("LEASEHOLD_MEMBER", member_name_);
  command.environment.emplace_back("LEASEHOLD_COUNT", std::to_string(options_.count));
  return command;
}

Ending PartitionSession::work() {
  if (const auto started = group_.start(command()); !started) {
    note_now(started.error().message);
    return started.error().ending;
  }
  const int in = group_.child().in().get();
  fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK);  // nobody else has this end
  watch_until_end();
  const auto left = desk_.end_of_work() - BootClock::now();
  const auto patience = std::min<BootClock::duration>(grace_of(options_.grace, options_.ttl), left);
  const auto status = group_.end_rest(
      process::within(group_.killed() ? BootClock::duration::zero() : patience), desk_.lost_fd());
  if (group_.termed() || group_.killed()) return ExitStatus::lost;
  if (status.known()) return Ending::passed_on(status.shell_status());
  note_now("the command has ended, but the system did not tell how");
  return ExitStatus::internal;
}

void PartitionSession::watch_until_end() {
  for (;;) {
    look();
    process::Child& child = group_.child();
    pollfd events[] = {{child.pidfd(), POLLIN, 0},
                       {signals_.fd(), POLLIN, 0},
                       {timer_.fd(), POLLIN, 0},
                       {desk_.fd(), POLLIN, 0},
                       {child.out() ? child.out().get() : -1, POLLIN, 0},
                       {child.in() && !to_command_.empty() ? child.in().get() : -1, POLLOUT, 0}};
    if (poll(events, std::size(events), -1) < 0) continue;  // EINTR
    if (events[4].revents != 0) hear_command();
    if (events[0].revents != 0) return;
    if (events[5].revents != 0) write_to_command();
    while (const auto number = signals_.next()) on_signal(*number);
  }
}

void PartitionSession::look() {
  const BootTime now = BootClock::now();
  const auto look = desk_.look(now);
  for (const Json& event : look.events) tell_command(event);
  if (look.signal) end_command(*look.signal, look.why);
  if (stopped_since_ && now >= *stopped_since_ + options_.ttl) {
    end_command(SIGKILL, "it was stopped by a signal for " + written(options_.ttl));
  }
  if (kill_at_ && now >= *kill_at_) end_command(SIGKILL, "it did not end after SIGTERM");
  tell_trouble();
  BootTime next = now + options_.look_every;
  if (look.again) next = std::min(next, *look.again);
  if (kill_at_ && !group_.killed()) next = std::min(next, *kill_at_);
  timer_.set(next);
}

void PartitionSession::tell_trouble() {
  const auto trouble = member_->trouble();
  std::string text = trouble ? text_of(*trouble) : "";
  if (text == trouble_) return;
  trouble_ = std::move(text);
  if (!trouble_.empty()) group_.tell("member " + in_quotes(member_name_) + ": " + trouble_);
}

// ---- the conversation ----------------------------------------------------------------------

void PartitionSession::tell_command(const Json& event) {
  say("partition " + event.at("partition").dump() + ": " + event.at("event").get<std::string>());
  to_command_ += json_line(event);
  write_to_command();
}

// A command that has closed its stdin hears nothing, and is ended when it must give something up.
void PartitionSession::write_to_command() {
  process::Fd& in = group_.child().in();
  while (in && !to_command_.empty()) {
    const ssize_t put = write(in.get(), to_command_.data(), to_command_.size());
    if (put >= 0) to_command_.erase(0, static_cast<std::size_t>(put));
    if (put < 0 && errno == EAGAIN) return;
    if (put < 0 && errno != EINTR) in.reset();
  }
  if (!in) to_command_.clear();
}

void PartitionSession::hear_command() {
  process::Fd& out = group_.child().out();
  char buffer[4096];
  const ssize_t got = read(out.get(), buffer, sizeof buffer);
  if (got < 0 && errno == EINTR) return;
  if (got <= 0) return out.reset();
  answers_.add({buffer, static_cast<std::size_t>(got)});
  while (const auto answer = answers_.next()) {
    if (answer->done && desk_.stopped(*answer->done)) {
      say("partition " + std::to_string(*answer->done) + ": done");
    } else if (!std::exchange(told_wrong_answer_, true)) {
      group_.tell("the command wrote " + in_quotes(answer->line) +
                  " to its standard output, which answers nothing that it was told; only 'done "
                  "NUMBER' belongs there. More such lines are not shown");
    }
  }
}

// ---- signals, and the end ------------------------------------------------------------------

void PartitionSession::on_signal(int number) {
  if (number == SIGCHLD) return on_child_change();
  if (number == SIGCONT) look();  // the command may have to be ended before it goes on
  group_.pass_on(number);
}

void PartitionSession::on_child_change() {
  process::Child& child = group_.child();
  process::reap_all_but(child.pid());
  const auto stopped_by = child.take_stop();
  if (stopped_by) stopped_since_ = BootClock::now();
  if (child.take_continue()) stopped_since_.reset();
  const bool by_terminal = stopped_by == SIGTSTP && process::Terminal::controlling();
  if (by_terminal && CommandGroup::stop_around()) on_signal(SIGCONT);
}

void PartitionSession::end_command(int number, const std::string& why) {
  if (number == SIGTERM && !kill_at_) {
    kill_at_ = BootClock::now() + grace_of(options_.grace, options_.ttl);
  }
  const auto trouble = client_.renewal_error();
  group_.end(number, why + (trouble ? "; " + text_of(*trouble) : ""));
}

}  // namespace leasehold::cli
