// What is watched, when to look, and what of that is news: a passive state machine.
//
// Events and the time come in through the methods; when to look, where, and what to tell whom come
// out. It owns no thread, reads no clock and speaks to no store.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leasehold/store.h"

namespace leasehold::watch {

inline constexpr Millis kLookUntold{250};  // where the store tells no changes
inline constexpr Millis kLookTold{1000};   // where it does
inline constexpr Millis kLookManyTold{10'000};
inline constexpr Millis kLookPrefix{1000};
// The same lock is not looked at sooner again, however often it changes.
inline constexpr Millis kBetweenLooks{20};
// So many are looked at one by one, more by one list of all locks.
inline constexpr std::size_t kOneByOne = 8;

using Number = std::uint64_t;

struct Told {
  Number watch;
  Result<std::vector<LockStatus>> what;
};

struct Look {
  std::vector<LockName> locks;
  bool all = false;  // one list instead, which answers for every lock and prefix

  bool empty() const { return locks.empty() && !all; }
};

// The store should tell changes of this lock from now on, or need not any more.
struct Interest {
  LockName lock;
  bool wanted;
};

class Table {
 public:
  Number watch(BootTime now, const LockName& lock, std::optional<Millis> every);
  Number watch_prefix(BootTime now, const std::string& prefix, std::optional<Millis> every);
  void unwatch(Number watch);

  // What the store tells by itself.
  void changed(BootTime now, const LockName& lock);
  void any_changed(BootTime now);
  void tells(BootTime now);                            // from now on it does
  void tells_no_more(BootTime now, const Error& why);  // something may have been missed

  std::optional<BootTime> next_look() const;
  // Empty if it is not yet time. Each look is answered before the next.
  Look begin_look(BootTime now);
  void saw(BootTime now, LockStatus status);
  void saw_all(BootTime now, const std::vector<LockStatus>& in_use);
  // Of this part of the look nothing is known.
  void failed(BootTime now, const Look& look, const Error& why);

  std::vector<Told> take_told() { return std::exchange(told_, {}); }
  bool has_interests() const { return !interests_.empty(); }
  std::vector<Interest> take_interests() { return std::exchange(interests_, {}); }

 private:
  struct Watcher {
    std::optional<Millis> every;
    bool asked = false;     // the look that is out began after it came
    bool wants_all = true;  // it has to be told the whole state
    bool told_failure = false;
  };
  // One lock or one prefix.
  struct Topic {
    std::map<Number, Watcher> watchers = {};
    std::map<std::string, LockStatus> known = {};  // of a prefix: those that are held
    BootTime due = BootTime::max();
    BootTime last_look = BootTime::min();
    bool by_time = false;  // nothing is known to have changed
    bool looking = false;
  };
  using Key = std::pair<bool, std::string>;  // is it a prefix?

  Number add(BootTime now, Key key, std::optional<Millis> every);
  void hurry(Topic& topic, BootTime now);
  bool is_due(const Topic& topic, BootTime now) const { return topic.due <= now; }
  Millis usual(bool prefix) const;
  Millis every(bool prefix, const Topic& topic) const;
  void saw_lock(BootTime now, Topic& topic, LockStatus status);
  void saw_prefix(BootTime now, Topic& topic, const std::vector<LockStatus>& in_use,
                  const std::string& prefix);
  void tell(Topic& topic, const std::vector<LockStatus>& all,
            const std::vector<LockStatus>& changed);
  void tell_failure(Topic& topic, const Error& why, bool only_asked);
  void look_again(BootTime now, bool prefix, Topic& topic);

  std::map<Key, Topic> topics_;
  std::map<Number, Key> by_number_;
  std::size_t locks_ = 0;  // how many topics are locks
  Number last_ = 0;
  bool tells_ = false;
  bool lists_ = true;  // the store can list its locks
  std::vector<Told> told_;
  std::vector<Interest> interests_;
};

}  // namespace leasehold::watch
