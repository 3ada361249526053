#include "listener.h"

#include <poll.h>

#include <chrono>
#include <cstdio>
#include <system_error>
#include <utility>

namespace leasehold::postgres {
namespace {

using namespace std::chrono_literals;

constexpr Millis kConnectTimeout = 5s;
constexpr Millis kRetryAfter = 500ms;

std::string channel_of(std::int64_t presence) {
  char text[40];
  std::snprintf(text, sizeof text, "leasehold_%llx", static_cast<unsigned long long>(presence));
  return text;
}

std::optional<RequestId> request_in(std::string payload) {
  std::erase(payload, '-');
  return RequestId::from_hex(payload);
}

}  // namespace

Listener::Listener(Connect connect, Nudge nudge, Random& random, const waiting::Alarm& closing)
    : connect_(std::move(connect)),
      nudge_(std::move(nudge)),
      presence_(static_cast<std::int64_t>(random.next())),
      closing_(closing) {}

std::optional<std::int64_t> Listener::presence(const CallContext& context) {
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
  return presence_;
}

void Listener::waits(const RequestId& request) {
  MutexLock lock(mutex_);
  waiting_.insert(request);
}

void Listener::waits_no_more(const RequestId& request) {
  MutexLock lock(mutex_);
  waiting_.erase(request);
}

void Listener::set(State state) {
  MutexLock lock(mutex_);
  state_ = state;
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
    const auto ok = session.run("SELECT pg_advisory_lock(" + std::to_string(presence_) +
                                    "); LISTEN \"" + channel_of(presence_) + "\"",
                                wait);
    if (!ok) return false;
  }
  set(State::listening);
  if (std::exchange(has_listened_, true)) nudge_all();
  const CallContext for_ever{BootTime::max(), {}};
  while (session.healthy()) {
    while (const auto payload = session.next_notification()) {
      if (const auto request = request_in(*payload)) nudge_(*request);
      if (stopping(0ms)) return true;
      (void)session.healthy();  // reads what came meanwhile
    }
    waiting::CallWait wait(for_ever, closing_);
    if (!wait.until_readable(session.fd())) return true;
  }
  return true;
}

void Listener::nudge_all() {
  std::set<RequestId> all;
  {
    MutexLock lock(mutex_);
    all = waiting_;
  }
  for (const RequestId& request : all) {
    if (stopping(0ms)) return;
    nudge_(request);
  }
}

}  // namespace leasehold::postgres
