#include "key_watcher.h"

#include <algorithm>
#include <chrono>
#include <system_error>

#include "listening.h"

namespace leasehold::redis {

using waiting::CallWait;

// One key changes with every grant to a single holder, the other when one of several comes or goes.
void KeyWatcher::watch(const LockName& lock) {
  const LockKeys keys = LockKeys::of(prefix_, lock);
  if (!keys.usable()) return;
  MutexLock guard(mutex_);
  if (server_.is_closing()) return;
  by_key_.emplace(keys.lock, lock);
  by_key_.emplace(keys.holders(), lock);
  new_.insert(lock);
  poke_.request_stop();
  if (thread_.joinable()) return;
  try {
    thread_ = std::thread([this] { listen(); });
  } catch (const std::system_error&) {
    return;  // whoever watches looks without being told
  }
}

void KeyWatcher::unwatch(const LockName& lock) {
  const LockKeys keys = LockKeys::of(prefix_, lock);
  MutexLock guard(mutex_);
  by_key_.erase(keys.lock);
  by_key_.erase(keys.holders());
  new_.erase(lock);
}

void KeyWatcher::join() {
  std::thread ending;
  {
    MutexLock lock(mutex_);
    ending.swap(thread_);
  }
  if (ending.joinable()) ending.join();
}

std::set<LockName> KeyWatcher::all() {
  MutexLock lock(mutex_);
  new_.clear();
  std::set<LockName> locks;
  for (const auto& [key, name] : by_key_) locks.insert(name);
  return locks;
}

std::set<LockName> KeyWatcher::take_new() {
  MutexLock lock(mutex_);
  return std::exchange(new_, {});
}

std::stop_token KeyWatcher::poked() {
  MutexLock lock(mutex_);
  if (new_.empty()) poke_ = std::stop_source();
  return poke_.get_token();
}

void KeyWatcher::listen() {
  Millis pause = kFirstPause;
  while (!server_.is_closing()) {
    if (auto connection = server_.connect({BootClock::now() + kConnectTimeout, {}})) {
      const End end = hear(**connection);
      if (end == End::never) return;
      if (end == End::failed) pause = kFirstPause;
    }
    const CallContext rest{BootClock::now() + pause, {}};
    CallWait(rest, server_.closing()).until_readable(-1);
    pause = std::min(2 * pause, kLongestPause);
  }
}

bool KeyWatcher::begin_tracking(resp::Connection& connection) {
  const CallContext context{BootClock::now() + kConnectTimeout, {}};
  CallWait wait(context, server_.closing());
  const auto reply = connection.call(wait, command({"CLIENT", "TRACKING", "ON"}));
  return reply && !reply->is_error();
}

bool KeyWatcher::read_keys(resp::Connection& connection, const std::set<LockName>& locks,
                           bool tell) {
  std::string commands;
  for (const LockName& lock : locks) {
    const LockKeys keys = LockKeys::of(prefix_, lock);
    resp::append_command(commands, {"EXISTS", keys.lock, keys.holders()});
    readings_.push_back({lock, tell});
  }
  if (commands.empty()) return true;
  const CallContext context{BootClock::now() + kConnectTimeout, {}};
  CallWait wait(context, server_.closing());
  return connection.send(wait, commands).has_value();
}

// False if the server refuses to be asked.
bool KeyWatcher::heard(const resp::Value& value, std::set<LockName>& changed) {
  if (value.type != resp::Type::push) {
    // A pong is no integer.
    if (value.type != resp::Type::integer || readings_.empty()) return !value.is_error();
    const Reading reading = std::move(readings_.front());
    readings_.pop_front();
    if (reading.tell) events_().changed(reading.lock);
    return true;
  }
  if (value.at(0).text != "invalidate") return true;
  if (value.at(1).type == resp::Type::null) changed.merge(all());  // all keys are gone
  MutexLock lock(mutex_);
  for (const resp::Value& key : value.at(1).items) {
    const auto found = by_key_.find(key.text);
    if (found != by_key_.end()) changed.insert(found->second);
  }
  return true;
}

// Until the connection fails.
KeyWatcher::End KeyWatcher::hear(resp::Connection& connection) {
  readings_.clear();
  if (connection.greeting().protocol < 3) return End::never;
  if (!begin_tracking(connection)) return End::failed_at_once;
  if (!read_keys(connection, all(), /*tell=*/false)) return End::failed_at_once;
  bool tells = false;
  bool asked = false;
  Error why(ErrorCode::unavailable, "the connection that tells changes was closed");
  for (;;) {
    // All that is watched has been read: from now on nothing is missed.
    if (!tells && readings_.empty()) {
      tells = true;
      events_().tells_changes();
    }
    const CallContext context{BootClock::now() + kSilence, poked()};
    CallWait wait(context, server_.closing());
    const auto value = connection.receive(wait);
    if (server_.is_closing()) return End::failed;
    std::set<LockName> changed = take_new();
    if (value) {
      asked = false;
      if (!heard(*value, changed)) break;
    } else if (!wait.stopped()) {
      const bool silent = BootClock::now() >= context.deadline;
      const bool ask = silent && !std::exchange(asked, true);
      const CallContext soon{BootClock::now() + kConnectTimeout, {}};
      CallWait ping(soon, server_.closing());
      if (!ask || !connection.send(ping, command({"PING"}))) {
        why = error_at(server_.address(), value.error());
        break;
      }
    }
    // What the server has told of it forgets, so it is read anew, and only then looked at.
    if (!read_keys(connection, changed, /*tell=*/true)) break;
  }
  why.code = ErrorCode::unavailable;
  if (tells && !server_.is_closing()) events_().tells_no_changes(why);
  return tells ? End::failed : End::failed_at_once;
}

}  // namespace leasehold::redis
