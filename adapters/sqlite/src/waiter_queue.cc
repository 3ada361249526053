#include "waiter_queue.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "kit/try.h"
#include "store_base/busy_label.h"

namespace leasehold::sqlite {
namespace {

// A waiter whose process gives no sign of life, or that does not come when it is called, for so
// long is passed over.
constexpr Millis kWaiterLife = std::chrono::seconds(6);

// How often those ask who are not on watch: they are woken when their time has come.
constexpr Millis kAskEvery = std::chrono::seconds(10);
// Those on watch may be many, if each waits for another lock: together they ask that rarely.
constexpr Millis kBetweenAsks{1};

constexpr std::string_view kColumns =
    "SELECT request, owner, wake, alive_until, mode, note FROM waiter";
constexpr std::string_view kBefore =
    " WHERE lock = ?1"
    " AND place < ifnull((SELECT place FROM waiter WHERE request = ?2), 9223372036854775807)";

std::string select(std::string_view rest) {
  return std::string(kColumns).append(rest);
}

// In alive_until: its process gives the signs of life. Above it: by when a waiter that was called
// is to come. Below it, with a minus: by when its socket, which was missing, is to be there again.
constexpr std::int64_t kNotCalled = 0;

}  // namespace

std::string holder_label(std::string_view owner, bool kept) {
  return busy_label(readable_label(owner), kept);
}

WaiterQueue::WaiterQueue(StoreFile& file)
    : file_(file),
      wake_folder_(file.options().path, *file.options().clock),
      waiters_of_(select(" WHERE lock = ?1 ORDER BY place LIMIT ?2")),
      before_(select(std::string(kBefore) + " ORDER BY place LIMIT ?3")),
      unshared_before_(select(std::string(kBefore) + " AND mode <> -1 ORDER BY place LIMIT ?3")),
      place_("SELECT 1 FROM waiter WHERE request = ?1"),
      enqueue_(
          "INSERT INTO waiter(lock, request, owner, wake, alive_until, mode, note)"
          " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)"
          " ON CONFLICT(request) DO UPDATE SET alive_until = ?5, wake = ?4"),
      look_(
          "SELECT l.owner, l.kept, l.expires_at, w.alive_until,"
          " w.place IN (SELECT place FROM waiter WHERE lock = ?1 ORDER BY place LIMIT 2)"
          " FROM lock l JOIN waiter w ON w.request = ?2"
          " WHERE l.name = ?1 AND l.request IS NOT NULL AND l.expires_at > ?3"
          " AND l.expires_at - ?3 <= l.ttl"),
      // A permit is to be had when the first of them ends, else all have to.
      look_at_many_(
          "SELECT h.owner, h.kept, h.expires_at, w.alive_until,"
          " w.place IN (SELECT place FROM waiter WHERE lock = ?1 ORDER BY place LIMIT 2)"
          " FROM waiter w JOIN holder h ON h.lock = ?1"
          " WHERE w.request = ?2 AND h.expires_at > ?3 AND h.expires_at - ?3 <= h.ttl"
          " AND (SELECT count(*) FROM holder WHERE lock = ?1 AND expires_at > ?3) >="
          "  iif(w.mode > 0, ifnull((SELECT permits FROM setting WHERE lock = ?1), w.mode), 1)"
          " ORDER BY iif(w.mode > 0, h.expires_at, -h.expires_at) LIMIT 1"),
      call_("UPDATE waiter SET alive_until = ?2 WHERE request = ?1"),
      addresses_("SELECT DISTINCT wake FROM waiter WHERE lock = ?1 AND alive_until = 0"),
      miss_("UPDATE waiter SET alive_until = ?3 WHERE lock = ?1 AND wake = ?2 AND alive_until = 0"),
      drop_("DELETE FROM waiter WHERE request = ?1"),
      drop_at_("DELETE FROM waiter WHERE wake = ?1") {}

Result<std::vector<Waiter>> WaiterQueue::read(Statement& row) {
  std::vector<Waiter> waiters;
  while (TRY(row.step())) {
    const auto request = row.id<RequestId>(0);
    const auto mode = Mode::from_code(row.integer(4));
    if (!request || !mode) return fail(file_.damaged());
    waiters.push_back({*request, std::string(row.text(1)), std::string(row.text(2)), row.integer(3),
                       *mode, std::string(row.text(5))});
  }
  return waiters;
}

Result<std::vector<Waiter>> WaiterQueue::waiting(const LockName& lock, std::int64_t limit) {
  auto statement = TRY(sql(waiters_of_));
  const Use row(*statement);
  row->bind(1, lock.str()).bind(2, limit);
  return read(*row);
}

// Those who share pass each other.
Result<std::vector<Waiter>> WaiterQueue::before(const LockName& lock, const RequestId& asking,
                                                Mode mode, std::int64_t limit) {
  const bool shares = mode.kind() == Mode::Kind::shared;
  auto statement = TRY(sql(shares ? unshared_before_ : before_));
  const Use row(*statement);
  row->bind(1, lock.str()).bind(2, asking.bytes()).bind(3, limit);
  return read(*row);
}

Result<bool> WaiterQueue::has_place(const RequestId& request) {
  auto statement = TRY(sql(place_));
  const Use row(*statement);
  return row->bind(1, request.bytes()).step();
}

// By the last sign of its process. One of a time to come says nothing: see LockTable::count_from.
bool WaiterQueue::gave_sign(const Waiter& waiter, bool if_unknown) {
  const auto sign = wake_folder_.last_sign(waiter.wake);
  const BootTime at = file_.options().clock->now();
  return sign ? *sign <= at && at < *sign + kWaiterLife : if_unknown;
}

// Nobody says that he will live longer than that; if so, it is of a time to come: see
// LockTable::count_from.
bool WaiterQueue::is_alive(const Waiter& waiter, std::int64_t at) {
  const std::int64_t until = std::abs(waiter.alive_until);
  const bool in_time = until > at && until - at <= nanos(kWaiterLife);
  if (waiter.alive_until > kNotCalled) return in_time;
  return gave_sign(waiter, /*if_unknown=*/waiter.alive_until == kNotCalled || in_time);
}

Result<std::vector<Waiter>> WaiterQueue::drop_all_silent(const LockName& lock) {
  auto all = TRY(waiting(lock, -1));
  const std::int64_t at = file_.now();
  std::vector<Waiter> alive;
  for (Waiter& waiter : all) {
    if (is_alive(waiter, at)) {
      alive.push_back(std::move(waiter));
    } else {
      TRY(drop_silent(waiter, /*dead=*/false));
    }
  }
  return alive;
}

// Tells the waiter that the lock may be free.
WaiterQueue::Life WaiterQueue::wake(const Waiter& waiter) {
  if (wake_folder_.wake(waiter.wake, waiter.request) == WakeFolder::Reach::gone) return Life::dead;
  if (!is_alive(waiter, file_.now())) return Life::silent;
  return waiter.alive_until <= kNotCalled ? Life::idle : Life::coming;
}

Result<std::optional<Waiter>> WaiterQueue::first_living(const LockName& lock,
                                                        const RequestId& asking, Mode mode,
                                                        std::int64_t room, Numbers numbers) {
  const auto is_of_another_use = [&](const Waiter& waiter) {
    if (!mode.is_permit()) return false;
    return numbers == Numbers::any ? !waiter.mode.is_permit() : waiter.mode != mode;
  };
  for (;;) {
    auto ahead = TRY(before(lock, asking, mode, room));
    const auto other = std::find_if(ahead.begin(), ahead.end(), is_of_another_use);
    if (other != ahead.end()) {
      if (TRY(call(*other, lock))) return std::move(*other);
      continue;
    }
    if (static_cast<std::int64_t>(ahead.size()) < room) return std::nullopt;
    bool all_may_come = true;
    for (Waiter& waiter : ahead) {
      all_may_come = TRY(call(waiter, lock));
      if (!all_may_come) break;
    }
    if (all_may_come) return std::move(ahead.front());
  }
}

// False if it will not come; it has lost its place then.
Result<bool> WaiterQueue::call(const Waiter& waiter, const LockName& lock) {
  const Life life = wake(waiter);
  if (life == Life::idle) {
    TRY(miss_sockets_beside(waiter, lock));
    TRY(give_time(waiter));
  }
  if (may_come(life)) return true;
  TRY(drop_silent(waiter, life == Life::dead));
  return false;
}

// Where one socket is missing, others may be: their time begins now too, else each dead waiter
// would hold up the lock for as long.
Status WaiterQueue::miss_sockets_beside(const Waiter& waiter, const LockName& lock) {
  if (wake_folder_.last_sign(waiter.wake)) return {};
  auto all = TRY(sql(addresses_));
  std::vector<std::string> missing;
  {
    const Use row(*all);
    row->bind(1, lock.str());
    for (;;) {
      const auto there = TRY(row->step());
      if (!there) break;
      const std::string address(row->text(0));
      if (!wake_folder_.last_sign(address)) missing.push_back(address);
    }
  }
  auto miss = TRY(sql(miss_));
  for (const std::string& address : missing) {
    miss->bind(1, lock.str()).bind(2, address).bind(3, -(file_.now() + nanos(kWaiterLife)));
    TRY(miss->run());
  }
  return {};
}

// To come, from now on: its process may live, and yet nobody may ask for it any more.
Status WaiterQueue::give_time(const Waiter& waiter) {
  auto statement = TRY(sql(call_));
  statement->bind(1, waiter.request.bytes()).bind(2, file_.now() + nanos(kWaiterLife));
  return statement->run();
}

Status WaiterQueue::enqueue(const AcquireCall& call, const std::string& wake_address) {
  auto insert = TRY(sql(enqueue_));
  insert->bind(1, call.lock.str()).bind(2, call.request.bytes()).bind(3, call.owner.str());
  insert->bind(4, wake_address).bind(6, call.mode.code()).bind(7, call.note.str());
  insert->bind(5, wake_address.empty() ? file_.now() + nanos(kWaiterLife) : kNotCalled);
  own_.add(call.lock, call.request);
  return insert->run();
}

Result<std::optional<WaiterQueue::Seen>> WaiterQueue::look(const AcquireCall& call) {
  auto seen = TRY(look_at(look_, call));
  if (seen) return seen;
  seen = TRY(look_at(look_at_many_, call));
  // One that shares is kept back by those who wait before it, and they may be dead.
  const bool watches = call.mode.kind() == Mode::Kind::shared && seen && seen->on_watch;
  return watches ? std::nullopt : std::move(seen);
}

Result<std::optional<WaiterQueue::Seen>> WaiterQueue::look_at(Prepared& which,
                                                              const AcquireCall& call) {
  auto statement = TRY(sql(which));
  const Use row(*statement);
  const std::int64_t at = file_.now();
  row->bind(1, call.lock.str()).bind(2, call.request.bytes()).bind(3, at);
  const auto there = TRY(row->step());
  if (!there) return std::nullopt;
  const bool signs_elsewhere = row->integer(3) == kNotCalled;
  // The first two look again when the lease runs out: the second in case that the first is dead.
  const bool near = row->integer(4) != 0;
  const Millis until_free = millis(row->integer(2) - at) + Millis(1);
  const bool on_watch = near || own_.is_first(call.request);
  const Millis recheck = signs_elsewhere ? time_to_rest(on_watch) : kWatchEvery;
  return Seen{Queued{near ? std::min(recheck, until_free) : recheck,
                     holder_label(row->text(0), row->integer(1) != 0)},
              signs_elsewhere, on_watch};
}

Millis WaiterQueue::time_to_rest(bool on_watch) const {
  const std::size_t asking = on_watch ? own_.locks() : own_.size();
  return std::max(on_watch ? kWatchEvery : kAskEvery,
                  kBetweenAsks * static_cast<Millis::rep>(asking));
}

// The places of a process that is dead or gives no sign go together, in every queue.
Status WaiterQueue::drop_silent(const Waiter& waiter, bool dead) {
  const bool alone = !dead && (waiter.wake.empty() || gave_sign(waiter, /*if_unknown=*/false));
  if (alone) {
    auto dropped = leave(waiter.request);
    return dropped ? Status() : fail(std::move(dropped.error()));
  }
  auto statement = TRY(sql(drop_at_));
  TRY(statement->bind(1, waiter.wake).run());
  if (dead) wake_folder_.remove(waiter.wake);
  return {};
}

Result<bool> WaiterQueue::leave(const RequestId& request) {
  own_.remove(request);
  auto statement = TRY(sql(drop_));
  TRY(statement->bind(1, request.bytes()).run());
  return file_.connection().changes() == 1;
}

Status WaiterQueue::wake_first(const LockName& lock, std::vector<Waiter> first) {
  while (!first.empty()) {
    const Waiter& waiter = first.front();
    const Life life = wake(waiter);
    if (may_come(life)) return {};
    TRY(drop_silent(waiter, life == Life::dead));
    auto next = TRY(waiting(lock, 1));
    first = std::move(next);
  }
  return {};
}

}  // namespace leasehold::sqlite
