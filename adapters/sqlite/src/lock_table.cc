#include "lock_table.h"

#include <algorithm>
#include <utility>

#include "kit/try.h"

namespace leasehold::sqlite {

struct LockTable::Found {
  StoreId store;
  std::int64_t last;
  std::int64_t ceiling;
  std::int64_t token;  // 0: not granted in the last minute
  std::optional<StoreId> granted_in;
  std::optional<RequestId> holder;
  std::string owner;
  std::int64_t expires_at;
  bool kept;
  bool has_waiters;
  std::int64_t ttl;
};

LockTable::LockTable(std::unique_ptr<StoreFile> file)
    : file_(std::move(file)),
      numbers_(*file_),
      queue_(*file_),
      records_(*file_),
      free_locks_(*file_),
      find_(
          "SELECT s.id, s.last, s.ceiling, l.token, l.request, l.owner, l.expires_at, l.kept,"
          " EXISTS(SELECT 1 FROM waiter WHERE lock = ?1), l.ttl, l.store"
          " FROM store s LEFT JOIN lock l ON l.name = ?1"),
      count_("UPDATE store SET last = ?1"),
      grant_(
          "INSERT INTO lock(name, token, request, owner, granted_at, expires_at, ttl, kept, store)"
          " VALUES(?1, ?2, ?3, ?4, ?5, ?5 + ?6, ?6, 0, ?7)"
          " ON CONFLICT(name) DO UPDATE SET token = ?2, request = ?3, owner = ?4, granted_at = ?5,"
          " expires_at = ?5 + ?6, ttl = ?6, kept = 0, store = ?7"),
      count_from_("UPDATE lock SET granted_at = ?2, expires_at = ?2 + ttl WHERE name = ?1"),
      renew_(
          "UPDATE lock SET expires_at = ?3 + ?4, ttl = ?4"
          " WHERE name = ?1 AND request = ?2 AND expires_at > ?3 AND kept = 0"),
      release_(
          "UPDATE lock SET request = NULL, expires_at = ?3, last_released = ?2"
          " WHERE name = ?1 AND request = ?2 AND expires_at > ?3 AND kept = 0"),
      keep_(
          "UPDATE lock SET kept = 1, expires_at = ?3 + ?4, ttl = ?4, last_released = ?2"
          " WHERE name = ?1 AND request = ?2 AND expires_at > ?3 AND kept = 0"),
      was_released_("SELECT 1 FROM lock WHERE name = ?1 AND last_released = ?2"),
      force_(
          "UPDATE lock SET request = NULL, expires_at = ?3"
          " WHERE name = ?1 AND request = ?2 AND expires_at > ?3"),
      lock_(
          "SELECT ?1, token, request, owner, granted_at, expires_at, kept, id, ttl, last"
          " FROM store LEFT JOIN lock ON name = ?1"),
      locks_(
          "SELECT name, token, request, owner, granted_at, expires_at, kept, id, ttl, last"
          " FROM lock, store"
          " UNION ALL SELECT DISTINCT lock, NULL, NULL, '', 0, 0, 0, id, 0, last"
          " FROM waiter, store WHERE lock NOT IN (SELECT name FROM lock) ORDER BY 1") {}

Result<std::unique_ptr<LockTable>> LockTable::open(Options options, CallContext context) {
  auto file = TRY(StoreFile::open(std::move(options), std::move(context)));
  return std::make_unique<LockTable>(std::move(file));
}

// ---- acquire -------------------------------------------------------------------------------

Result<AcquireReply> LockTable::acquire(const AcquireCall& call, const std::string& wake_address) {
  if (queue_.is_here(call.request)) {
    // Most asks of a waiter find that nothing has changed. To look keeps nobody from writing.
    auto place = TRY(queue_.look(call));
    if (place && place->signs_elsewhere) return std::move(place->reply);
  }
  for (int attempts = 0;; ++attempts) {
    auto reply = try_acquire(call, wake_address);
    if (!reply) {
      queue_.forget_here(call.request);  // who has a place still will ask again
      return fail(std::move(reply.error()));
    }
    if (*reply) return std::move(**reply);
    auto raised = numbers_.raise_ceiling();
    if (raised) continue;
    // Who is in the way may be raising it.
    if (!file_->worth_stepping_aside(attempts)) return fail(std::move(raised.error()));
  }
}

Result<std::optional<AcquireReply>> LockTable::try_acquire(const AcquireCall& call,
                                                           const std::string& wake_address) {
  auto transaction = TRY(file_->begin());
  auto found = TRY(find(call.lock));

  const std::int64_t at = file_->now();
  const bool held = found.holder && found.expires_at > at;
  if (held && found.holder == call.request && !found.kept) {
    return Granted{TokenNumber::of(found.token).value(), *found.granted_in, call.ttl.length(),
                   /*fresh=*/false};
  }
  if (held && found.expires_at - at > found.ttl) {
    TRY(count_from(at, call.lock, found));
  }
  std::optional<std::string> ahead;
  if (held) {
    ahead = holder_label(found.owner, found.kept);
  } else if (found.has_waiters) {
    auto first = TRY(queue_.first_living(call.lock, call.request));
    if (first) ahead = std::move(first->owner);
  }

  std::optional<AcquireReply> reply;
  if (!ahead) {
    if (found.last >= found.ceiling) return std::nullopt;
    auto granted = TRY(grant(call, found));
    reply = granted;
  } else if (call.queue) {
    TRY(queue_.enqueue(call, wake_address));
    auto place = TRY(queue_.look(call));
    // A free lock waits for somebody who was called just now.
    reply = place ? std::move(place->reply) : Queued{WaiterQueue::kWatchEvery, std::move(*ahead)};
  } else {
    reply = Busy{std::move(*ahead)};
  }
  TRY(transaction.commit());
  return reply;
}

Result<LockTable::Found> LockTable::find(const LockName& lock) {
  auto statement = TRY(sql(find_));
  const Use row(*statement);
  row->bind(1, lock.str());
  const auto there = TRY(row->step());
  const auto store = there ? row->id<StoreId>(0) : std::nullopt;
  const bool counts = row->integer(1) >= 0 && row->integer(2) >= 0 && row->integer(3) >= 0;
  const auto granted_in = row->id<StoreId>(10);
  const bool whole = row->integer(3) == 0 || granted_in.has_value();
  if (!store || !counts || !whole) return fail(file_->damaged());
  return Found{.store = *store,
               .last = row->integer(1),
               .ceiling = row->integer(2),
               .token = row->integer(3),
               .granted_in = granted_in,
               .holder = row->id<RequestId>(4),
               .owner = std::string(row->text(5)),
               .expires_at = row->integer(6),
               .kept = row->integer(7) != 0,
               .has_waiters = row->integer(8) != 0,
               .ttl = row->integer(9)};
}

// A grant that was made or renewed later than now is of a time that this machine does not know: it
// was restored from a snapshot in the same boot, and the file was not. A holder that is in the
// snapshot has at most its TTL left.
Status LockTable::count_from(std::int64_t at, const LockName& lock, Found& found) {
  auto statement = TRY(sql(count_from_));
  found.expires_at = at + found.ttl;
  return statement->bind(1, lock.str()).bind(2, at).run();
}

Result<Granted> LockTable::grant(const AcquireCall& call, const Found& found) {
  const std::int64_t token = found.last + 1;
  const std::int64_t at = file_->now();
  auto count = TRY(sql(count_));
  TRY(count->bind(1, token).run());
  auto statement = TRY(sql(grant_));
  statement->bind(1, call.lock.str()).bind(2, token).bind(3, call.request.bytes());
  statement->bind(4, call.owner.str()).bind(5, at).bind(6, nanos(call.ttl.length()));
  TRY(statement->bind(7, found.store.bytes()).run());
  if (token % FreeLocks::kGrantsPerStep == 0) TRY(free_locks_.sweep_step(at));
  queue_.forget_here(call.request);
  if (found.has_waiters) {
    TRY(queue_.leave(call.request));
  }
  return Granted{TokenNumber::of(token).value(), found.store, call.ttl.length(), /*fresh=*/true};
}

// ---- renew and release ---------------------------------------------------------------------

Result<std::vector<RenewReply>> LockTable::renew(const std::vector<RenewCall>& calls) {
  auto transaction = TRY(file_->begin());
  auto statement = TRY(sql(renew_));
  std::vector<RenewReply> replies;
  replies.reserve(calls.size());
  const std::int64_t at = file_->now();
  for (const RenewCall& call : calls) {
    statement->bind(1, call.lock.str()).bind(2, call.request.bytes());
    statement->bind(3, at).bind(4, nanos(call.ttl.length()));
    TRY(statement->run());
    const bool alive = file_->connection().changes() == 1;
    replies.push_back(alive ? RenewReply::renewed : RenewReply::gone);
  }
  TRY(transaction.commit());
  return replies;
}

// Runs an UPDATE on (lock, request, now); true if it changed the row.
Result<bool> LockTable::run_on(Prepared& which, const LockName& lock, const RequestId& request) {
  auto statement = TRY(sql(which));
  statement->bind(1, lock.str()).bind(2, request.bytes()).bind(3, file_->now());
  TRY(statement->run());
  return file_->connection().changes() == 1;
}

Result<ReleaseReply> LockTable::release(const ReleaseCall& call) {
  auto transaction = TRY(file_->begin());
  const bool keeps = call.keep_for > Millis(0);
  if (keeps) {
    auto keep = TRY(sql(keep_));
    keep->bind(4, nanos(call.keep_for));
  }
  auto released = TRY(run_on(keeps ? keep_ : release_, call.lock, call.request));
  if (!released) {
    auto was_queued = TRY(queue_.leave(call.request));
    auto earlier = sql(was_released_);  // a retry whose first answer was lost
    if (!earlier) return fail(std::move(earlier.error()));
    const Use row(**earlier);
    row->bind(1, call.lock.str()).bind(2, call.request.bytes());
    const auto was_released = TRY(row->step());
    released = was_queued || was_released;
  }
  auto first = TRY(queue_.waiting(call.lock, 1));
  TRY(transaction.commit());
  // The release is done; a waiter that is not reached looks for itself soon.
  if (!keeps) (void)queue_.wake_first(call.lock, std::move(first));
  return released ? ReleaseReply::released : ReleaseReply::not_held;
}

Result<ReleaseReply> LockTable::force_release(const LockName& lock, const RequestId& seen) {
  auto transaction = TRY(file_->begin());
  const auto freed = TRY(run_on(force_, lock, seen));
  auto first = TRY(queue_.waiting(lock, 1));
  TRY(transaction.commit());
  if (freed) (void)queue_.wake_first(lock, std::move(first));
  return freed ? ReleaseReply::released : ReleaseReply::not_held;
}

// ---- looking -------------------------------------------------------------------------------

Result<LockStatus> LockTable::read_status(Statement& row) {
  auto name = LockName::parse(row.text(0));
  if (!name) return fail(file_->damaged());
  LockStatus status{.lock = std::move(*name),
                    .store = row.id<StoreId>(7),
                    .last_token = {},
                    .holder = {},
                    .waiters = {}};
  const auto token = TokenNumber::of(row.integer(1));
  if (token) status.last_token = *token;
  status.counted_to = row.integer(9);
  const auto request = row.id<RequestId>(2);
  const std::int64_t at = file_->now();
  if (token && request && row.integer(5) > at) {
    status.holder =
        LockStatus::Holder{.request = *request,
                           .token = *token,
                           .owner = readable_label(row.text(3)),
                           .held_for = std::max(millis(at - row.integer(4)), Millis(0)),
                           .remaining = millis(std::min(row.integer(5) - at, row.integer(8))),
                           .kept = row.integer(6) != 0};
  }
  auto waiters = TRY(queue_.waiting(status.lock, -1));
  for (Waiter& waiter : waiters) {
    if (queue_.is_alive(waiter, at)) {
      status.waiters.push_back({waiter.request, std::move(waiter.owner)});
    }
  }
  return status;
}

Result<LockStatus> LockTable::inspect(const LockName& lock) {
  auto statement = TRY(sql(lock_));
  const Use row(*statement);
  row->bind(1, lock.str());
  const auto there = TRY(row->step());
  if (!there) return fail(file_->damaged());
  return read_status(*row);
}

Result<std::vector<LockStatus>> LockTable::list() {
  auto statement = TRY(sql(locks_));
  const Use row(*statement);
  std::vector<LockStatus> locks;
  for (;;) {
    const auto there = TRY(row->step());
    if (!there) return locks;
    auto status = TRY(read_status(*row));
    locks.push_back(std::move(status));
  }
}

}  // namespace leasehold::sqlite
