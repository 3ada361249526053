#include "subscriber.h"

#include <algorithm>
#include <chrono>
#include <system_error>

#include "calls.h"
#include "listening.h"

namespace leasehold::redis {

using waiting::CallWait;

void Subscriber::begin(const CallContext& context) {
  MutexLock lock(mutex_);
  if (!thread_.joinable() && !server_.is_closing()) {
    try {
      thread_ = std::thread([this] { listen(); });
    } catch (const std::system_error&) {
      return;  // it waits without being told
    }
    ears_ = Ears::opening;
    began_ = true;
  }
  changed_.wait_for(mutex_, context.stop, context.deadline - BootClock::now(),
                    [this] { return ears_ != Ears::opening; });
}

std::string Subscriber::channel() const {
  return ears_ == Ears::open ? name_ : kNoChannel;
}

void Subscriber::join() {
  std::thread ending;
  {
    MutexLock lock(mutex_);
    ending.swap(thread_);
  }
  if (ending.joinable()) ending.join();
}

void Subscriber::set(Ears ears) {
  MutexLock lock(mutex_);
  ears_ = ears;
  changed_.notify_all();
}

void Subscriber::listen() {
  Millis pause = kFirstPause;
  while (!server_.is_closing()) {
    if (auto connection = server_.connect({BootClock::now() + kConnectTimeout, {}})) {
      hear(**connection);
      pause = kFirstPause;
    }
    set(Ears::closed);
    const CallContext rest{BootClock::now() + pause, {}};
    CallWait(rest, server_.closing()).until_readable(-1);
    pause = std::min(2 * pause, kLongestPause);
  }
  set(Ears::closed);
}

// Until the connection fails.
void Subscriber::hear(resp::Connection& connection) {
  {
    const CallContext context{BootClock::now() + kConnectTimeout, {}};
    CallWait wait(context, server_.closing());
    if (!connection.send(wait, command({"SUBSCRIBE", name_}))) return;
    const auto subscribed = connection.receive(wait);  // a push, in RESP3
    if (!subscribed || subscribed->at(0).text != "subscribe") return;
  }
  set(Ears::open);
  bool asked = false;
  for (;;) {
    const CallContext context{BootClock::now() + kSilence, {}};
    CallWait wait(context, server_.closing());
    auto heard = connection.receive(wait);
    if (server_.is_closing()) return;
    if (!heard) {
      const bool silent = BootClock::now() >= context.deadline;
      if (!silent || asked) return;
      asked = true;
      if (!connection.send(wait, command({"PING"}))) return;
      continue;
    }
    asked = false;
    if (heard->at(0).text != "message") continue;
    const auto request = RequestId::from_hex(heard->at(2).text);
    if (request) on_wake_(*request);
  }
}

}  // namespace leasehold::redis
