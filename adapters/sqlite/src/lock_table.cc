#include "lock_table.h"

#include <algorithm>
#include <utility>

#include "kit/try.h"
#include "store_base/mode_conflict.h"

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
  bool has_many;
  std::optional<Mode> set;  // by an operator

  bool is_held(std::int64_t at) const { return holder && expires_at > at; }
};

struct LockTable::Way {
  std::optional<std::string> ahead = {};  // who keeps the request from being granted
  std::optional<Slot> slot = {};
  static constexpr std::int64_t kAnyNumber = Mode::kMostPermits + 1;
  std::int64_t room = 1;  // for how many, with this one
};

LockTable::LockTable(std::unique_ptr<StoreFile> file)
    : file_(std::move(file)),
      numbers_(*file_),
      queue_(*file_),
      records_(*file_),
      many_(*file_),
      free_locks_(*file_, {.table = "lock",
                           .key = "name",
                           .cursor = "swept_to",
                           // What ended at a time to come ended before this machine was restored
                           // from a snapshot.
                           .is_over = "expires_at <= ?2 - ?3 OR"
                                      " (request IS NULL AND expires_at > ?2)"}),
      find_(
          "SELECT s.id, s.last, s.ceiling, l.token, l.request, l.owner, l.expires_at, l.kept,"
          " EXISTS(SELECT 1 FROM waiter WHERE lock = ?1), l.ttl, l.store,"
          " EXISTS(SELECT 1 FROM holder WHERE lock = ?1),"
          " (SELECT permits FROM setting WHERE lock = ?1)"
          " FROM store s LEFT JOIN lock l ON l.name = ?1"),
      count_("UPDATE store SET last = ?1"),
      grant_(
          "INSERT INTO lock(name, token, request, owner, granted_at, expires_at, ttl, kept, store,"
          " note) VALUES(?1, ?2, ?3, ?4, ?5, ?5 + ?6, ?6, 0, ?7, ?8)"
          " ON CONFLICT(name) DO UPDATE SET token = ?2, request = ?3, owner = ?4, granted_at = ?5,"
          " expires_at = ?5 + ?6, ttl = ?6, kept = 0, store = ?7, note = ?8"),
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
      set_(
          "INSERT INTO setting(lock, permits) VALUES(?1, ?2)"
          " ON CONFLICT(lock) DO UPDATE SET permits = ?2"),
      unset_("DELETE FROM setting WHERE lock = ?1"),
      lock_(
          "SELECT ?1, token, request, owner, granted_at, expires_at, kept, id, ttl, last, note,"
          " permits FROM store LEFT JOIN lock ON name = ?1 LEFT JOIN setting s ON s.lock = ?1"),
      locks_(
          "SELECT n.name, token, request, owner, granted_at, expires_at, kept, id, ttl, last, note,"
          " permits"
          " FROM (SELECT name FROM lock UNION SELECT lock FROM waiter UNION SELECT lock FROM holder"
          "  UNION SELECT lock FROM setting) n, store"
          " LEFT JOIN lock l ON l.name = n.name LEFT JOIN setting s ON s.lock = n.name"
          " ORDER BY 1") {}

Result<std::unique_ptr<LockTable>> LockTable::open(Options options, CallContext context) {
  auto file = TRY(StoreFile::open(std::move(options), std::move(context)));
  return std::make_unique<LockTable>(std::move(file));
}

// ---- calls that come together --------------------------------------------------------------

// What one transaction does.
struct LockTable::Doing {
  // A waiter that may have its turn.
  struct Next {
    const LockName& lock;
    std::vector<Waiter> first;
  };

  const std::string& wake_address;
  std::optional<std::int64_t> counted_to = {};  // what was drawn, and is written at the end
  std::vector<AnyAsked> done = {};  // each with its reply, which counts when it is committed
  std::vector<AnyAsked> need_numbers = {};
  std::vector<Next> next = {};

  void call_later(const LockName& lock, std::vector<Waiter> first) {
    if (!first.empty()) next.push_back({lock, std::move(first)});
  }
};

namespace {

// It is this call's alone, and leaves nothing in the transaction that others must not see. What the
// database tells has other codes.
bool is_refusal(const Error& error) {
  return error.code == ErrorCode::invalid;
}

bool is_wanted(Rider& rider) {
  return rider.has_begun() || rider.begin();
}

}  // namespace

Status LockTable::answer(std::span<const AnyAsked> batch, const std::string& wake_address) {
  std::vector<AnyAsked> open;
  open.reserve(batch.size());
  for (const AnyAsked& one : batch) {
    auto* const* acquire = std::get_if<AskedAcquire*>(&one);
    if (acquire == nullptr || !answer_by_look(**acquire)) open.push_back(one);
  }
  while (!open.empty()) {
    TRY(answer_by_transaction(open, wake_address));
    if (open.empty()) return {};
    for (const AnyAsked& one : batch) std::visit([](auto* asked) { asked->wake(); }, one);
    TRY(numbers_.raise_ceiling());
  }
  return {};
}

// Most asks of a waiter find that nothing has changed. To look keeps nobody from writing.
bool LockTable::answer_by_look(AskedAcquire& asked) {
  if (!queue_.is_here(asked.call.request)) return false;
  auto place = queue_.look(asked.call);
  if (place && !(*place && (*place)->signs_elsewhere)) return false;
  asked.answer(place ? Result<AcquireReply>(std::move((*place)->reply))
                     : fail(std::move(place.error())));
  return true;
}

// Leaves those in `open` that need numbers. If it fails, nothing of any is done.
Status LockTable::answer_by_transaction(std::vector<AnyAsked>& open,
                                        const std::string& wake_address) {
  auto transaction = file_->begin();
  if (!transaction) {
    for (const AnyAsked& one : std::exchange(open, {})) {
      std::visit([&](auto* asked) { asked->answer(fail(transaction.error())); }, one);
    }
    return {};
  }
  Doing doing{wake_address};
  doing.done.reserve(open.size());
  Status committed;
  for (const AnyAsked& one : open) {
    if (committed) committed = std::visit([&](auto* it) { return perform(*it, doing); }, one);
  }
  if (committed && doing.counted_to) committed = count_to(*doing.counted_to);
  if (committed) committed = transaction->commit();
  if (!committed && committed.error().code != ErrorCode::outcome_unknown) {
    for (const AnyAsked& one : open) std::visit([&](auto* asked) { undo(*asked); }, one);
    return committed;
  }
  open = std::move(doing.need_numbers);
  const auto tell = [&](auto* asked) {
    if (!committed && *asked->reply) asked->reply = fail(committed.error());
    asked->answered();
  };
  for (const AnyAsked& one : doing.done) std::visit(tell, one);
  if (!committed) return {};
  for (Doing::Next& it : doing.next) {
    // What freed the lock is done; a waiter that is not reached looks for itself soon.
    (void)queue_.wake_first(it.lock, std::move(it.first));
  }
  return {};
}

Status LockTable::perform(AskedAcquire& asked, Doing& doing) {
  if (!is_wanted(asked)) return {};
  auto reply = reply_to(asked.call, doing);
  if (reply && !*reply) {
    doing.need_numbers.emplace_back(&asked);
    return {};
  }
  if (!reply) {
    if (!is_refusal(reply.error())) return fail(std::move(reply.error()));
    undo(asked);
    asked.reply = fail(std::move(reply.error()));
  } else {
    asked.reply = std::move(**reply);
  }
  doing.done.emplace_back(&asked);
  return {};
}

Status LockTable::perform(auto& asked, Doing& doing) {
  if (!is_wanted(asked)) return {};
  asked.reply = TRY(reply_to(asked.call, doing));
  doing.done.emplace_back(&asked);
  return {};
}

void LockTable::undo(AskedAcquire& asked) {
  asked.reply.reset();
  queue_.forget_here(asked.call.request);  // who has a place still will ask again
}

template <class Call, class Reply>
Result<Reply> LockTable::answer_alone(const Call& call, const std::string& wake_address) {
  Asked<Call, Reply> asked(call, {BootTime::max(), {}});
  const AnyAsked one = &asked;
  for (int attempts = 0;; ++attempts) {
    auto done = answer({&one, 1}, wake_address);
    if (asked.reply) return std::move(*asked.reply);
    // Who is in the way may be raising the ceiling.
    if (!file_->worth_stepping_aside(attempts)) return fail(std::move(done.error()));
  }
}

Result<AcquireReply> LockTable::acquire(const AcquireCall& call, const std::string& wake_address) {
  return answer_alone<AcquireCall, AcquireReply>(call, wake_address);
}

Result<std::vector<RenewReply>> LockTable::renew(const std::vector<RenewCall>& calls) {
  return answer_alone<std::vector<RenewCall>, std::vector<RenewReply>>(calls, {});
}

Result<ReleaseReply> LockTable::release(const ReleaseCall& call) {
  return answer_alone<ReleaseCall, ReleaseReply>(call, {});
}

// ---- acquire -------------------------------------------------------------------------------

Result<std::optional<AcquireReply>> LockTable::reply_to(const AcquireCall& call, Doing& doing) {
  auto found = TRY(find(call.lock));
  found.last = doing.counted_to.value_or(found.last);
  const std::int64_t at = file_->now();
  const auto mine = TRY(own_grant(call, found, at));
  if (mine) return *mine;
  if (found.is_held(at) && found.expires_at - at > found.ttl) {
    TRY(count_from(at, call.lock, found));
  }
  auto way = TRY(way_of(call, found, at));
  if (!way.ahead) {
    if (found.last >= found.ceiling) return std::nullopt;
    auto granted = TRY(grant(call, found, way));
    doing.counted_to = granted.token.value();
    if (found.has_waiters && way.room > 1) doing.call_later(call.lock, TRY(next_beside(call)));
    return granted;
  }
  if (!call.queue) return Busy{std::move(*way.ahead)};
  TRY(queue_.enqueue(call, doing.wake_address));
  auto place = TRY(queue_.look(call));
  if (place) return std::move(place->reply);
  // A free lock waits for somebody who was called just now.
  return Queued{WaiterQueue::kWatchEvery, std::move(*way.ahead)};
}

// What the request has been granted before.
Result<std::optional<Granted>> LockTable::own_grant(const AcquireCall& call, const Found& found,
                                                    std::int64_t at) {
  if (found.is_held(at) && found.holder == call.request && !found.kept) {
    return Granted{TokenNumber::of(found.token).value(), *found.granted_in, call.ttl.length(),
                   /*fresh=*/false};
  }
  if (!found.has_many) return std::nullopt;
  const auto mine = TRY(many_.find(call.request, at));
  if (!mine) return std::nullopt;
  return Granted{mine->token, mine->store, call.ttl.length(), /*fresh=*/false, mine->slot};
}

Result<LockTable::Way> LockTable::way_of(const AcquireCall& call, const Found& found,
                                         std::int64_t at) {
  if (found.set) TRY(check_use(call, *found.set, /*set=*/true));
  if (found.is_held(at)) {
    TRY(check_use(call, Mode::exclusive()));
    return Way{.ahead = holder_label(found.owner, found.kept)};
  }
  auto way = call.mode.is_permit() ? TRY(free_permit(call, found, at))
             : found.has_many      ? TRY(way_beside(call, at))
                                   : Way{.room = call.mode.is_exclusive() ? 1 : Way::kAnyNumber};
  if (way.ahead || !found.has_waiters) return way;
  const std::int64_t passed = call.mode.is_permit() ? way.room : 1;
  const auto numbers = found.set ? WaiterQueue::Numbers::any : WaiterQueue::Numbers::same;
  auto first = TRY(queue_.first_living(call.lock, call.request, call.mode, passed, numbers));
  if (!first) return way;
  TRY(check_use(call, first->mode));
  way.ahead = std::move(first->owner);
  return way;
}

// At a lock that others share.
Result<LockTable::Way> LockTable::way_beside(const AcquireCall& call, std::int64_t at) {
  if (call.mode.is_exclusive()) {
    auto all = TRY(many_.all(call.lock, at));
    if (all.empty()) return Way{};
    TRY(check_use(call, all.front().mode));
    return Way{.ahead = all.front().label()};
  }
  auto one = TRY(many_.any(call.lock, at));
  if (one) TRY(check_use(call, one->mode));
  return Way{.room = Way::kAnyNumber};
}

Result<LockTable::Way> LockTable::free_permit(const AcquireCall& call, const Found& found,
                                              std::int64_t at) {
  const std::int64_t permits = found.set.value_or(call.mode).permits();
  if (!found.has_many) return Way{.slot = Slot{0}, .room = permits};
  auto all = TRY(many_.all(call.lock, at));
  if (!all.empty()) TRY(check_use(call, found.set ? call.mode : all.front().mode));
  const auto used = static_cast<std::int64_t>(all.size());
  if (used >= permits) return Way{.ahead = all.front().label()};
  Slot lowest;
  for (const ManyHolders::Holder& holder : all) {
    if (holder.slot == lowest) ++lowest.number;
  }
  return Way{.slot = lowest, .room = permits - used};
}

// A request that has a place was judged when it came: the permits may have been set since.
Status LockTable::check_use(const AcquireCall& call, Mode used, bool set) {
  if (call.mode.mixes_with(used) || TRY(queue_.has_place(call.request))) return {};
  return fail(mode_conflict(call.lock, call.mode, used, set));
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
  return Found{
      .store = *store,
      .last = row->integer(1),
      .ceiling = row->integer(2),
      .token = row->integer(3),
      .granted_in = granted_in,
      .holder = row->id<RequestId>(4),
      .owner = std::string(row->text(5)),
      .expires_at = row->integer(6),
      .kept = row->integer(7) != 0,
      .has_waiters = row->integer(8) != 0,
      .ttl = row->integer(9),
      .has_many = row->integer(11) != 0,
      .set = row->is_null(12) ? std::nullopt : std::optional(Mode::permit_of(row->integer(12)))};
}

// A grant that was made or renewed later than now is of a time that this machine does not know: it
// was restored from a snapshot in the same boot, and the file was not. A holder that is in the
// snapshot has at most its TTL left.
Status LockTable::count_from(std::int64_t at, const LockName& lock, Found& found) {
  auto statement = TRY(sql(count_from_));
  found.expires_at = at + found.ttl;
  return statement->bind(1, lock.str()).bind(2, at).run();
}

Result<Granted> LockTable::grant(const AcquireCall& call, const Found& found, const Way& way) {
  const std::int64_t token = found.last + 1;
  const std::int64_t at = file_->now();
  const Granted granted{TokenNumber::of(token).value(), found.store, call.ttl.length(),
                        /*fresh=*/true, way.slot};
  TRY(call.mode.is_exclusive() ? write_holder(call, granted, at) : many_.add(call, granted, at));
  if (token % Sweep::kGrantsPerStep == 0) {
    TRY(free_locks_.step(at));
    TRY(many_.sweep_step(at));
  }
  queue_.forget_here(call.request);
  if (found.has_waiters) {
    TRY(queue_.leave(call.request));
  }
  return granted;
}

Status LockTable::count_to(std::int64_t token) {
  auto statement = TRY(sql(count_));
  return statement->bind(1, token).run();
}

Status LockTable::write_holder(const AcquireCall& call, const Granted& granted, std::int64_t at) {
  auto statement = TRY(sql(grant_));
  statement->bind(1, call.lock.str()).bind(2, granted.token.value());
  statement->bind(3, call.request.bytes()).bind(4, call.owner.str()).bind(5, at);
  statement->bind(6, nanos(call.ttl.length())).bind(7, granted.store.bytes());
  return statement->bind(8, call.note.str()).run();
}

// Each one that is granted beside others calls the next, if that fits too.
Result<std::vector<Waiter>> LockTable::next_beside(const AcquireCall& call) {
  auto first = TRY(queue_.waiting(call.lock, 1));
  if (!first.empty() && first.front().mode.is_exclusive()) first.clear();
  return first;
}

// ---- renew and release ---------------------------------------------------------------------

Result<std::vector<RenewReply>> LockTable::reply_to(const std::vector<RenewCall>& calls, Doing&) {
  auto statement = TRY(sql(renew_));
  std::vector<RenewReply> replies;
  replies.reserve(calls.size());
  const std::int64_t at = file_->now();
  for (const RenewCall& call : calls) {
    statement->bind(1, call.lock.str()).bind(2, call.request.bytes());
    statement->bind(3, at).bind(4, nanos(call.ttl.length()));
    TRY(statement->run());
    const bool alive = file_->connection().changes() == 1 || TRY(many_.renew(call, at));
    replies.push_back(alive ? RenewReply::renewed : RenewReply::gone);
  }
  return replies;
}

// Runs an UPDATE on (lock, request, now); true if it changed the row.
Result<bool> LockTable::run_on(Prepared& which, const LockName& lock, const RequestId& request) {
  auto statement = TRY(sql(which));
  statement->bind(1, lock.str()).bind(2, request.bytes()).bind(3, file_->now());
  TRY(statement->run());
  return file_->connection().changes() == 1;
}

Result<ReleaseReply> LockTable::reply_to(const ReleaseCall& call, Doing& doing) {
  const bool keeps = call.keep_for > Millis(0);
  if (keeps) {
    auto keep = TRY(sql(keep_));
    keep->bind(4, nanos(call.keep_for));
  }
  const bool alone = TRY(run_on(keeps ? keep_ : release_, call.lock, call.request));
  const bool released = alone || TRY(release_beside(call)) || TRY(queue_.leave(call.request)) ||
                        TRY(was_released(call));
  auto first = TRY(alone ? queue_.waiting(call.lock, 1) : next_that_fits(call.lock));
  if (!keeps) doing.call_later(call.lock, std::move(first));
  return released ? ReleaseReply::released : ReleaseReply::not_held;
}

Result<bool> LockTable::release_beside(const ReleaseCall& call) {
  if (call.keep_for > Millis(0)) return many_.keep(call, file_->now());
  return many_.release(call.request, file_->now());
}

// A retry whose first answer was lost.
Result<bool> LockTable::was_released(const ReleaseCall& call) {
  auto statement = TRY(sql(was_released_));
  const Use row(*statement);
  return row->bind(1, call.lock.str()).bind(2, call.request.bytes()).step();
}

// The first who waits, if it may be granted now.
Result<std::vector<Waiter>> LockTable::next_that_fits(const LockName& lock) {
  auto first = TRY(queue_.waiting(lock, 1));
  if (first.empty()) return first;
  const std::int64_t at = file_->now();
  const auto found = TRY(find(lock));
  const Mode mode = first.front().mode;
  bool fits = !found.is_held(at);
  if (fits && found.has_many && mode.kind() != Mode::Kind::shared) {
    const auto used = static_cast<std::int64_t>(TRY(many_.all(lock, at)).size());
    fits = used < (mode.is_permit() ? found.set.value_or(mode).permits() : 1);
  }
  if (!fits) first.clear();
  return first;
}

Result<ReleaseReply> LockTable::force_release(const LockName& lock, const RequestId& seen) {
  auto transaction = TRY(file_->begin());
  const bool freed =
      TRY(run_on(force_, lock, seen)) || TRY(many_.force_release(seen, file_->now()));
  auto first = TRY(next_that_fits(lock));
  TRY(transaction.commit());
  if (freed) (void)queue_.wake_first(lock, std::move(first));
  return freed ? ReleaseReply::released : ReleaseReply::not_held;
}

// ---- permits -------------------------------------------------------------------------------

Status LockTable::set_permits(const LockName& lock, std::optional<std::int64_t> permits) {
  auto transaction = TRY(file_->begin());
  if (permits) TRY(check_has_permits(lock));
  auto statement = TRY(sql(permits ? set_ : unset_));
  statement->bind(1, lock.str());
  if (permits) statement->bind(2, *permits);
  TRY(statement->run());
  auto first = TRY(next_that_fits(lock));
  TRY(transaction.commit());
  (void)queue_.wake_first(lock, std::move(first));
  return after_commit(file_->settle_patiently([&]() -> Status {
    auto testimony = TRY(file_->connection().prepare("UPDATE store SET reserved = reserved"));
    return file_->settle(testimony);
  }));
}

// Or is not in use. Who gives no sign loses its place here: it may thaw, and would be granted
// beside permits.
Status LockTable::check_has_permits(const LockName& lock) {
  const std::int64_t at = file_->now();
  const auto found = TRY(find(lock));
  std::optional<Mode> used;
  if (found.is_held(at)) used = Mode::exclusive();
  if (const auto holder = TRY(many_.any(lock, at)); holder) used = holder->mode;
  if (!used) {
    const auto waiters = TRY(queue_.drop_all_silent(lock));
    if (!waiters.empty()) used = waiters.back().mode;
  }
  if (!used || used->is_permit()) return {};
  return fail(in_use_without_permits(lock, *used));
}

// ---- looking -------------------------------------------------------------------------------

namespace {

LockStatus::Holder shown(ManyHolders::Holder holder, std::int64_t at) {
  return {.request = holder.request,
          .token = holder.token,
          .owner = readable_label(holder.owner),
          .held_for = std::max(millis(at - holder.granted_at), Millis(0)),
          .remaining = millis(std::min(holder.expires_at - at, holder.ttl)),
          .kept = holder.kept,
          .mode = holder.mode,
          .slot = holder.slot,
          .note = readable_note(holder.note)};
}

}  // namespace

Result<LockStatus> LockTable::read_status(Statement& row) {
  auto name = LockName::parse(row.text(0));
  const auto store = row.id<StoreId>(7);
  if (!name || !store) return fail(file_->damaged());
  LockStatus status{
      .lock = std::move(*name), .store = store, .last_token = {}, .holders = {}, .waiters = {}};
  const auto token = TokenNumber::of(row.integer(1));
  if (token) status.last_token = *token;
  status.counted_to = row.integer(9);
  if (!row.is_null(11)) status.set_permits = row.integer(11);
  const auto request = row.id<RequestId>(2);
  const std::int64_t at = file_->now();
  if (token && request && row.integer(5) > at) {
    status.holders.push_back(shown({.request = *request,
                                    .mode = Mode::exclusive(),
                                    .slot = {},
                                    .token = *token,
                                    .store = *store,
                                    .owner = std::string(row.text(3)),
                                    .note = std::string(row.text(10)),
                                    .granted_at = row.integer(4),
                                    .expires_at = row.integer(5),
                                    .ttl = row.integer(8),
                                    .kept = row.integer(6) != 0},
                                   at));
  }
  for (ManyHolders::Holder& holder : TRY(many_.look(status.lock, at))) {
    status.last_token = std::max(status.last_token, std::optional(holder.token));
    status.holders.push_back(shown(std::move(holder), at));
  }
  auto waiters = TRY(queue_.waiting(status.lock, -1));
  for (Waiter& waiter : waiters) {
    if (queue_.is_alive(waiter, at)) {
      status.waiters.push_back(
          {waiter.request, std::move(waiter.owner), waiter.mode, readable_note(waiter.note)});
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
