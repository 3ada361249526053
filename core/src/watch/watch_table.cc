#include "watch/watch_table.h"

#include <algorithm>
#include <string_view>

namespace leasehold::watch {
namespace {

bool same_holder(const LockStatus::Holder& one, const LockStatus::Holder& other) {
  return one.request == other.request && one.token == other.token && one.kept == other.kept;
}

bool differs(const LockStatus& before, const LockStatus& now) {
  const bool same = std::equal(before.holders.begin(), before.holders.end(), now.holders.begin(),
                               now.holders.end(), same_holder);
  // Somebody came and went. A store that has forgotten the token tells nothing by that.
  const bool grant_between =
      before.last_token && now.last_token && *before.last_token != *now.last_token;
  return !same || grant_between;
}

LockStatus free_lock(LockName lock) {
  return {.lock = std::move(lock),
          .store = std::nullopt,
          .last_token = std::nullopt,
          .holders = {},
          .waiters = {}};
}

// When the first of the holders is over if it is not renewed.
std::optional<Millis> soonest_end(const LockStatus& status) {
  std::optional<Millis> soonest;
  for (const LockStatus::Holder& holder : status.holders) {
    if (holder.remaining <= Millis(0)) continue;
    soonest = std::min(soonest.value_or(Millis::max()), holder.remaining);
  }
  return soonest;
}

}  // namespace

// ---- watchers ------------------------------------------------------------------------------

Number Table::watch(BootTime now, const LockName& lock, std::optional<Millis> every) {
  return add(now, {false, lock.str()}, every);
}

Number Table::watch_prefix(BootTime now, const std::string& prefix, std::optional<Millis> every) {
  return add(now, {true, prefix}, every);
}

Number Table::add(BootTime now, Key key, std::optional<Millis> every) {
  const auto [found, is_new] = topics_.try_emplace(key);
  const Number number = ++last_;
  found->second.watchers.emplace(number, Watcher{.every = every});
  by_number_.emplace(number, key);
  if (is_new && !key.first) {
    ++locks_;
    interests_.push_back({LockName::parse(key.second).value(), true});
  }
  found->second.due = now;
  found->second.by_time = false;
  return number;
}

void Table::unwatch(Number watch) {
  const auto key = by_number_.find(watch);
  if (key == by_number_.end()) return;
  const auto topic = topics_.find(key->second);
  by_number_.erase(key);
  topic->second.watchers.erase(watch);
  if (!topic->second.watchers.empty()) return;
  if (!topic->first.first) {
    --locks_;
    interests_.push_back({LockName::parse(topic->first.second).value(), false});
  }
  topics_.erase(topic);
}

// ---- what the store tells ------------------------------------------------------------------

void Table::hurry(Topic& topic, BootTime now) {
  const BootTime soon = std::max(now, topic.last_look + kBetweenLooks);
  topic.due = std::min(topic.due, soon);
  topic.by_time = false;
}

void Table::changed(BootTime now, const LockName& lock) {
  for (auto& [key, topic] : topics_) {
    const bool meant = key.first ? lock.str().starts_with(key.second) : lock.str() == key.second;
    if (meant) hurry(topic, now);
  }
}

void Table::any_changed(BootTime now) {
  for (auto& [key, topic] : topics_) hurry(topic, now);
}

void Table::tells(BootTime now) {
  tells_ = true;
  any_changed(now);
}

void Table::tells_no_more(BootTime now, const Error& why) {
  if (!std::exchange(tells_, false)) return;
  for (auto& [key, topic] : topics_) {
    if (!key.first) tell_failure(topic, why, /*only_asked=*/false);
    hurry(topic, now);
  }
}

// ---- looking -------------------------------------------------------------------------------

Millis Table::usual(bool prefix) const {
  if (prefix) return kLookPrefix;
  if (!tells_) return kLookUntold;
  return locks_ > kOneByOne ? kLookManyTold : kLookTold;
}

Millis Table::every(bool prefix, const Topic& topic) const {
  Millis soonest = Millis::max();
  for (const auto& [number, watcher] : topic.watchers) {
    soonest = std::min(soonest, watcher.every.value_or(usual(prefix)));
  }
  return soonest;
}

std::optional<BootTime> Table::next_look() const {
  std::optional<BootTime> next;
  for (const auto& [key, topic] : topics_) next = std::min(next.value_or(topic.due), topic.due);
  return next;
}

Look Table::begin_look(BootTime now) {
  std::vector<std::pair<const Key, Topic>*> due;
  bool prefix = false;
  bool by_time = false;
  for (auto& entry : topics_) {
    if (!is_due(entry.second, now)) continue;
    due.push_back(&entry);
    prefix = prefix || entry.first.first;
    by_time = by_time || entry.second.by_time;
  }
  Look look;
  if (due.empty()) return look;
  const bool many = due.size() > kOneByOne || (by_time && locks_ > kOneByOne);
  look.all = prefix || (many && lists_);
  // A list answers for those too that are not due yet.
  if (look.all) {
    due.clear();
    for (auto& entry : topics_) due.push_back(&entry);
  }
  for (auto* entry : due) {
    auto& [key, topic] = *entry;
    topic.due = BootTime::max();
    topic.last_look = now;
    topic.looking = true;
    for (auto& [number, watcher] : topic.watchers) watcher.asked = true;
    if (!look.all) look.locks.push_back(LockName::parse(key.second).value());
  }
  return look;
}

void Table::look_again(BootTime now, bool prefix, Topic& topic) {
  topic.looking = false;
  Millis pause = every(prefix, topic);
  for (const auto& [name, status] : topic.known) {
    const auto end = soonest_end(status);
    if (end) pause = std::min(pause, std::max(*end, kBetweenLooks));
  }
  if (now + pause >= topic.due) return;  // it was told meanwhile that something has changed
  topic.due = now + pause;
  topic.by_time = true;
}

void Table::saw(BootTime now, LockStatus status) {
  const auto found = topics_.find({false, status.lock.str()});
  if (found == topics_.end() || !found->second.looking) return;
  saw_lock(now, found->second, std::move(status));
}

void Table::saw_lock(BootTime now, Topic& topic, LockStatus status) {
  const std::string name = status.lock.str();
  const auto known = topic.known.find(name);
  const bool news = known == topic.known.end() || differs(known->second, status);
  const std::vector<LockStatus> all{status};
  tell(topic, all, news ? all : std::vector<LockStatus>());
  if (known != topic.known.end() && !status.last_token) {
    status.last_token = known->second.last_token;
  }
  topic.known.insert_or_assign(name, std::move(status));
  look_again(now, /*prefix=*/false, topic);
}

void Table::saw_all(BootTime now, const std::vector<LockStatus>& in_use) {
  std::map<std::string_view, const LockStatus*> by_name;
  for (const LockStatus& status : in_use) by_name.emplace(status.lock.str(), &status);
  for (auto& [key, topic] : topics_) {
    if (!topic.looking) continue;
    if (key.first) {
      saw_prefix(now, topic, in_use, key.second);
      continue;
    }
    const auto found = by_name.find(key.second);
    saw_lock(
        now, topic,
        found == by_name.end() ? free_lock(LockName::parse(key.second).value()) : *found->second);
  }
}

void Table::saw_prefix(BootTime now, Topic& topic, const std::vector<LockStatus>& in_use,
                       const std::string& prefix) {
  std::map<std::string, LockStatus> held;
  for (const LockStatus& status : in_use) {
    const bool meant = status.lock.str().starts_with(prefix) && !status.holders.empty();
    if (meant) held.emplace(status.lock.str(), status);
  }
  std::vector<LockStatus> all;
  std::vector<LockStatus> changed;
  for (const auto& [name, status] : held) {
    const auto known = topic.known.find(name);
    all.push_back(status);
    if (known == topic.known.end() || differs(known->second, status)) changed.push_back(status);
  }
  for (const auto& [name, status] : topic.known) {
    if (held.contains(name)) continue;
    all.push_back(free_lock(status.lock));
    changed.push_back(all.back());
  }
  tell(topic, all, changed);
  topic.known = std::move(held);
  look_again(now, /*prefix=*/true, topic);
}

void Table::failed(BootTime now, const Look& look, const Error& why) {
  const bool never = why.code == ErrorCode::unsupported;
  if (never && look.all) lists_ = false;
  for (auto& [key, topic] : topics_) {
    const bool meant =
        look.all || (!key.first && std::any_of(look.locks.begin(), look.locks.end(),
                                               [&name = key.second](const LockName& lock) {
                                                 return lock.str() == name;
                                               }));
    if (!meant || !topic.looking) continue;
    // It can still be looked at by itself.
    if (never && look.all && !key.first) {
      topic.looking = false;
      hurry(topic, now);
      continue;
    }
    tell_failure(topic, why, /*only_asked=*/true);
    look_again(now, key.first, topic);
    if (never) topic.due = BootTime::max();
  }
}

// ---- telling -------------------------------------------------------------------------------

void Table::tell(Topic& topic, const std::vector<LockStatus>& all,
                 const std::vector<LockStatus>& changed) {
  for (auto& [number, watcher] : topic.watchers) {
    if (!std::exchange(watcher.asked, false)) continue;
    watcher.told_failure = false;
    const bool wants_all = std::exchange(watcher.wants_all, false);
    if (wants_all || !changed.empty()) told_.push_back({number, wants_all ? all : changed});
  }
}

void Table::tell_failure(Topic& topic, const Error& why, bool only_asked) {
  for (auto& [number, watcher] : topic.watchers) {
    const bool asked = std::exchange(watcher.asked, false);
    if (only_asked && !asked) continue;
    watcher.wants_all = true;
    if (std::exchange(watcher.told_failure, true)) continue;
    told_.push_back({number, {}});  // in two steps: gcc 12 warns of one
    told_.back().what = fail(why);
  }
}

}  // namespace leasehold::watch
