#include "watch/watch_hub.h"

#include <algorithm>
#include <exception>

#include "blocking_answer.h"

namespace leasehold::detail {
namespace {

using namespace std::chrono_literals;

// How long the store may say nothing before that is told.
constexpr Millis kSilence = 2s;
constexpr Millis kSilenceOfAll = 10s;
// The wait below stands still while the machine is suspended.
constexpr Millis kLongestRest = 1s;

// Looking changes nothing, so a store that fails unexpectedly is asked again.
template <class Reply, class Send>
Result<Reply> ask(Send send) {
  try {
    return wait_for_answer<Reply>(send);
  } catch (const std::exception& thrown) {
    return fail(ErrorCode::unavailable, "the store failed unexpectedly", thrown.what());
  }
}

bool is_of_the_store(const Error& why) {
  return why.code != ErrorCode::invalid && why.code != ErrorCode::unsupported;
}

}  // namespace

// ---- one observer --------------------------------------------------------------------------

bool Observer::add(News news) {
  MutexLock lock(mutex);
  if (stopped) return false;
  if (!news) {
    // What was not told yet is out of date, and will be told again.
    failure = std::move(news.error());
    states.clear();
    has_states = false;
  } else {
    has_states = true;
    for (LockStatus& status : *news) {
      std::string name = status.lock.str();
      states.insert_or_assign(std::move(name), std::move(status));
    }
  }
  return !std::exchange(posted, true);
}

std::optional<Observer::News> Observer::take() {
  if (stopped) return std::nullopt;
  if (failure) {
    News news = fail(std::move(*failure));
    failure.reset();
    return news;
  }
  if (!std::exchange(has_states, false)) return std::nullopt;
  std::vector<LockStatus> all;
  for (auto& [name, status] : states) all.push_back(std::move(status));
  states.clear();
  return News(std::move(all));
}

void Observer::deliver() {
  Callback call;
  for (;;) {
    std::optional<News> news;
    {
      MutexLock lock(mutex);
      if (call) callback = std::move(call);
      runs_on = {};
      news = take();
      if (!news) {
        posted = false;
        // Whoever stopped it from inside did not wait for this; what it has captured goes now.
        if (stopped) call = std::move(callback);
        changed.notify_all();
        break;
      }
      runs_on = std::this_thread::get_id();
      call = std::move(callback);
    }
    call(*news);
  }
}

void Observer::stop() {
  Callback dropped;
  MutexLock lock(mutex);
  stopped = true;
  if (runs_on == std::this_thread::get_id()) return;
  changed.wait(mutex, [this]() LEASEHOLD_REQUIRES(mutex) { return runs_on == std::thread::id(); });
  dropped.swap(callback);
}

// ---- all of them ---------------------------------------------------------------------------

std::shared_ptr<Observer> WatchHub::add(const Watched& what, std::optional<Millis> every,
                                        Observer::Callback callback) {
  auto observer = std::make_shared<Observer>(std::move(callback));
  callbacks_.start();
  MutexLock lock(mutex_);
  if (!looker_.joinable() && !stopping_) looker_ = std::thread([this] { work(); });
  const BootTime now = clock_.now();
  const auto* name = std::get_if<LockName>(&what);
  observer->number = name != nullptr ? table_.watch(now, *name, every)
                                     : table_.watch_prefix(now, std::get<Prefix>(what).text, every);
  observers_.emplace(observer->number, observer);
  changed_.notify_all();
  return observer;
}

void WatchHub::remove(const std::shared_ptr<Observer>& observer) {
  {
    MutexLock lock(mutex_);
    table_.unwatch(observer->number);
    observers_.erase(observer->number);
    changed_.notify_all();
  }
  observer->stop();
}

template <class Event>
void WatchHub::feed(Event event) {
  MutexLock lock(mutex_);
  event(table_, clock_.now());
  settle();
}

void WatchHub::settle() {
  for (watch::Told& told : table_.take_told()) {
    const auto found = observers_.find(told.watch);
    if (found == observers_.end() || !found->second->add(std::move(told.what))) continue;
    callbacks_.post([observer = found->second] { observer->deliver(); });
  }
  changed_.notify_all();
}

void WatchHub::changed(const LockName& lock) {
  feed([&](watch::Table& table, BootTime now) { table.changed(now, lock); });
}

void WatchHub::any_changed() {
  feed([](watch::Table& table, BootTime now) { table.any_changed(now); });
}

void WatchHub::tells() {
  feed([](watch::Table& table, BootTime now) { table.tells(now); });
}

void WatchHub::tells_no_more(const Error& why) {
  feed([&](watch::Table& table, BootTime now) { table.tells_no_more(now, why); });
}

void WatchHub::stop() {
  std::thread ending;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
    ending.swap(looker_);
  }
  if (ending.joinable()) ending.join();
  callbacks_.stop();
}

// ---- looking -------------------------------------------------------------------------------

void WatchHub::work() {
  while (await_look()) {
    tell_interests();
    watch::Look what;
    feed([&](watch::Table& table, BootTime now) { what = table.begin_look(now); });
    look(what);
  }
}

// False if there will be none.
bool WatchHub::await_look() {
  MutexLock lock(mutex_);
  for (;;) {
    if (stopping_) return false;
    const auto next = table_.next_look();
    const bool idle = !next || *next == BootTime::max();
    const auto rest = idle ? BootClock::duration(kLongestRest) : *next - clock_.now();
    if (rest <= BootClock::duration::zero() || table_.has_interests()) return true;
    const auto woken = [this, next]() LEASEHOLD_REQUIRES(mutex_) {
      return stopping_ || table_.has_interests() || table_.next_look() != next;
    };
    if (idle) {
      changed_.wait(mutex_, woken);
    } else {
      changed_.wait_for(mutex_, std::min<BootClock::duration>(rest, kLongestRest), woken);
    }
  }
}

void WatchHub::tell_interests() {
  std::vector<watch::Interest> interests;
  {
    MutexLock lock(mutex_);
    if (stopping_) return;
    interests = table_.take_interests();
  }
  ChangeHints* hints = store_.change_hints();
  if (hints == nullptr) return;
  for (const watch::Interest& it : interests) {
    if (it.wanted) {
      hints->watch(it.lock);
    } else {
      hints->unwatch(it.lock);
    }
  }
}

void WatchHub::look(const watch::Look& what) {
  if (!what.all) return look_one_by_one(what);
  auto seen = ask<std::vector<LockStatus>>([&](auto done) {
    store_.list({clock_.now() + kSilenceOfAll, {}}, std::move(done));
  });
  feed([&](watch::Table& table, BootTime now) {
    if (seen) {
      table.saw_all(now, *seen);
    } else {
      table.failed(now, what, seen.error());
    }
  });
}

// A store that does not answer is not asked for each lock in turn.
void WatchHub::look_one_by_one(const watch::Look& what) {
  watch::Look left = what;
  for (const LockName& lock : what.locks) {
    auto seen = ask<LockStatus>([&](auto done) {
      store_.inspect(lock, {clock_.now() + kSilence, {}}, std::move(done));
    });
    const bool all_fail = !seen && is_of_the_store(seen.error());
    feed([&](watch::Table& table, BootTime now) {
      if (seen) {
        table.saw(now, std::move(*seen));
      } else {
        table.failed(now, all_fail ? left : watch::Look{{lock}}, seen.error());
      }
    });
    if (all_fail) return;
    std::erase(left.locks, lock);
  }
}

}  // namespace leasehold::detail
