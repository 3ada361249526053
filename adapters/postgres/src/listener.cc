#include "listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <system_error>
#include <utility>

#include "array.h"

namespace leasehold::postgres {
namespace {

using namespace std::chrono_literals;

constexpr Millis kConnectTimeout = 5s;
constexpr Millis kRetryAfter = 500ms;
// A statement keeps the server from tidying up after others, so it is a short one.
constexpr Millis kDoze = 200ms;
// One by one, the statement looks at them.
constexpr std::size_t kMostThatDoze = 4;

std::string channel_of(std::int64_t number) {
  char text[40];
  std::snprintf(text, sizeof text, "leasehold_%llx", static_cast<unsigned long long>(number));
  return text;
}

TextArray array_of(const std::set<RequestId>& requests) {
  TextArray array;
  for (const RequestId& request : requests) array.add(request.hex());
  return array;
}

std::optional<RequestId> request_in(std::string payload) {
  std::erase(payload, '-');
  return RequestId::from_hex(payload);
}

}  // namespace

Listener::Listener(Statements statements, Connect connect, Nudge nudge, Random& random,
                   const waiting::Alarm& closing)
    : statements_(std::move(statements)),
      connect_(std::move(connect)),
      nudge_(std::move(nudge)),
      number_(static_cast<std::int64_t>(random.next())),
      closing_(closing),
      poke_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

std::optional<Listener::Presence> Listener::presence(const CallContext& context) {
  MutexLock lock(mutex_);
  if (state_ == State::idle && !stopped_) {
    try {
      state_ = State::connecting;
      thread_ = std::thread([this] { listen(); });
    } catch (const std::system_error&) {  // no thread can be made
      state_ = State::failed;
    }
  }
  changed_.wait_for(
      mutex_, context.stop, context.deadline - BootClock::now(),
      [this]() LEASEHOLD_REQUIRES(mutex_) { return state_ != State::connecting || stopped_; });
  if (state_ != State::listening) return std::nullopt;
  return Presence{number_, pid_};
}

void Listener::doze() {
  {
    MutexLock lock(mutex_);
    to_doze_ = true;
  }
  const std::uint64_t one = 1;
  (void)!write(poke_.get(), &one, sizeof one);
}

void Listener::waits(const RequestId& request) {
  MutexLock lock(mutex_);
  waiting_.insert(request);
}

void Listener::waits_no_more(const RequestId& request) {
  MutexLock lock(mutex_);
  waiting_.erase(request);
}

void Listener::set(State state, int pid) {
  MutexLock lock(mutex_);
  state_ = state;
  pid_ = pid;
  changed_.notify_all();
}

void Listener::stop() {
  std::thread ending;
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
    ending = std::move(thread_);
  }
  if (ending.joinable()) ending.join();
}

bool Listener::stopping(Millis wait) const {
  pollfd closing{closing_.fd(), POLLIN, 0};
  return poll(&closing, 1, static_cast<int>(wait.count())) > 0;
}

void Listener::listen() {
  while (!stopping(0ms)) {
    const bool had_listened = listen_once();
    set(State::failed);
    if (!had_listened && stopping(kRetryAfter)) return;
  }
}

// Returns when the connection has failed; false if it could not even be made.
bool Listener::listen_once() {
  const CallContext soon{BootClock::now() + kConnectTimeout, {}};
  auto connection = connect_(soon);
  if (!connection) return false;
  Connection& session = **connection;
  {
    waiting::CallWait wait(soon, closing_);
    // The lock may still be with the session before this one, which the server has yet to miss.
    const auto ok = session.run("SELECT pg_advisory_lock(" + std::to_string(number_) +
                                    "); LISTEN \"" + channel_of(number_) + "\"",
                                wait);
    if (!ok) return false;
  }
  set(State::listening, session.announced_pid());
  if (std::exchange(has_listened_, true)) nudge(all_that_wait());
  watch(session);
  return true;
}

// Returns when the connection has failed, or the client is being closed.
void Listener::watch(Connection& session) {
  bool dozes = false;
  while (session.healthy()) {
    if (!nudge_notified(session)) return;
    if (dozes && session.has_answer()) {
      dozes = false;
      if (!end_doze(session)) return;
    } else if (!dozes && wants_to_doze()) {
      if (!send_doze(session)) return;
      dozes = true;
    } else if (!await(session)) {
      return;
    }
  }
}

// False if the client is being closed.
bool Listener::nudge_notified(Connection& session) {
  while (const auto payload = session.next_notification()) {
    if (const auto request = request_in(*payload)) nudge_(*request);
    if (stopping(0ms)) return false;
    (void)session.healthy();  // reads what came meanwhile
  }
  return true;
}

bool Listener::wants_to_doze() {
  MutexLock lock(mutex_);
  const bool wants = std::exchange(to_doze_, false);
  return wants && !waiting_.empty() && waiting_.size() <= kMostThatDoze;
}

bool Listener::send_doze(Connection& session) {
  const CallContext soon{BootClock::now() + kConnectTimeout, {}};
  waiting::CallWait wait(soon, closing_);
  return session
      .send(statements_.doze,
            {std::to_string(number_).c_str(), array_of(all_that_wait()).c_str(),
             std::to_string(kDoze.count()).c_str()},
            wait)
      .has_value();
}

// False when the connection has failed.
bool Listener::end_doze(Connection& session) {
  const CallContext soon{BootClock::now() + kConnectTimeout, {}};
  waiting::CallWait wait(soon, closing_);
  const auto rows = session.receive(wait);
  if (session.broken()) return false;
  // To be rung too early or too late to say so in an answer is an error.
  if (!rows || rows->text(0) == "ask") return nudge_first(session);
  if (rows->text(0) == "doze") doze();
  return true;
}

// Who is rung does not know for which request. False when the connection has failed, or the client
// is being closed.
bool Listener::nudge_first(Connection& session) {
  const std::set<RequestId> all = all_that_wait();
  if (all.size() <= 1) return nudge(all);
  const CallContext soon{BootClock::now() + kConnectTimeout, {}};
  waiting::CallWait wait(soon, closing_);
  const auto rows = session.run(statements_.first_in_line,
                                {std::to_string(number_).c_str(), array_of(all).c_str()}, wait);
  if (!rows) return !session.broken() && nudge(all);
  std::set<RequestId> first;
  for (int row = 0; row < rows->count(); ++row) {
    if (const auto request = rows->id<RequestId>(0, row)) first.insert(*request);
  }
  return nudge(first);
}

// Until there is something to read, or to do.
bool Listener::await(const Connection& session) {
  std::array<pollfd, 3> polled = {
      {{closing_.fd(), POLLIN, 0}, {poke_.get(), POLLIN, 0}, {session.fd(), POLLIN, 0}}};
  if (poll(polled.data(), polled.size(), -1) < 0) return true;
  std::uint64_t pokes = 0;
  if (polled[1].revents != 0) (void)!read(poke_.get(), &pokes, sizeof pokes);
  return polled[0].revents == 0;
}

std::set<RequestId> Listener::all_that_wait() {
  MutexLock lock(mutex_);
  return waiting_;
}

// False if the client is being closed.
bool Listener::nudge(const std::set<RequestId>& requests) {
  for (const RequestId& request : requests) {
    if (stopping(0ms)) return false;
    nudge_(request);
  }
  return true;
}

}  // namespace leasehold::postgres
