#include "store_model.h"

#include <algorithm>

namespace leasehold::simulation {

using drill::Kind;
using drill::Operation;

std::string name_of_lock(std::uint32_t lock) {
  return std::string(1, static_cast<char>('a' + lock));
}

StoreModel::StoreModel(Recorder& recorder, Chance& chance, const Settings& settings,
                       Mutation mutation)
    : recorder_(recorder),
      chance_(chance),
      settings_(settings),
      mutation_(mutation),
      id_(StoreId::random(chance)),
      ref_(recorder.history().store(id_)),
      process_(recorder.history().process("store")),
      rows_(static_cast<std::size_t>(settings.locks)) {
  for (std::uint32_t lock = 0; lock < rows_.size(); ++lock) {
    lock_refs_.push_back(recorder.history().lock(name_of_lock(lock)));
    Row& row = rows_[lock];
    row.counter = row.ceiling = row.reserved = row.on_disk = settings.first_token;
  }
}

void StoreModel::log(Time now, Kind kind, Operation cause, std::uint32_t lock, RequestRef request,
                     std::int64_t token, Time deadline) {
  drill::Record record;
  record.time = now;
  record.process = process_;
  record.kind = kind;
  record.operation = cause;
  record.lock = lock_refs_[lock];
  record.request = request;
  record.token = token;
  record.deadline = deadline;
  record.store = ref_;
  recorder_.record(record);
}

std::int64_t StoreModel::token_of(Time now, std::uint32_t lock, RequestRef request) const {
  const Row& row = rows_[lock];
  return alive(row, now) && !row.kept && row.holder == request ? row.token : 0;
}

// ---- acquire -------------------------------------------------------------------------------

AcquireAnswer StoreModel::acquire(Time now, const AcquireOrder& order) {
  Row& row = rows_[order.lock];
  notice_expiry(now, order.lock);
  if (row.held && !row.kept && row.holder == order.request) {
    if (!order.late) row.late = false;
    if (mutation_ == Mutation::retry_granted_anew)
      return grant(now, row, order, Operation::acquire);
    if (mutation_ == Mutation::acquire_renews) {
      row.expires = clock(now) + order.ttl;
      log(now, Kind::renew, Operation::acquire, order.lock, row.holder, row.token, now + order.ttl);
    }
    const bool claims_fresh = mutation_ == Mutation::old_grant_told_as_fresh;
    return {AcquireAnswer::Kind::granted, row.token, 0, claims_fresh};
  }
  if (row.held) return wait(now, row, order);
  pass_over_the_dead(now, row);
  const bool first = row.queue.empty() || row.queue.front().request == order.request;
  if (!first) {
    nudge_first(row);
    return wait(now, row, order);
  }
  if (!row.queue.empty()) row.queue.erase(row.queue.begin());
  return grant(now, row, order, Operation::acquire);
}

AcquireAnswer StoreModel::grant(Time now, Row& row, const AcquireOrder& order, Operation cause) {
  row.token = next_token(row);
  row.held = true;
  row.kept = false;
  row.late = order.late;
  row.holder = order.request;
  row.client = order.client;
  row.expires = clock(now) + order.ttl;
  log(now, Kind::grant, cause, index(row), row.holder, row.token, now + order.ttl);
  return {AcquireAnswer::Kind::granted, row.token, 0, /*fresh=*/true};
}

std::int64_t StoreModel::next_token(Row& row) {
  if (mutation_ == Mutation::random_token) {
    return static_cast<std::int64_t>(chance_.below(std::uint64_t{1} << 62)) + 1;
  }
  if (row.counter >= row.ceiling) raise_ceiling(row);
  return ++row.counter;
}

void StoreModel::raise_ceiling(Row& row) {
  row.reserved = std::max(row.reserved, row.counter + kReserve);
  const bool synced = mutation_ != Mutation::counter_lost_in_crash || chance_.one_in(4);
  if (synced) row.on_disk = row.reserved;
  row.ceiling = row.reserved;
}

AcquireAnswer StoreModel::wait(Time now, Row& row, const AcquireOrder& order) {
  if (!order.queue) return {AcquireAnswer::Kind::busy, 0, 0};
  const auto place = std::find_if(row.queue.begin(), row.queue.end(), [&](const Waiter& each) {
    return each.request == order.request;
  });
  if (place == row.queue.end()) {
    row.queue.push_back({order.request, order.client, order.late, now});
  } else {
    place->asked = now;
    if (!order.late) place->late = false;
  }
  const Time left = row.held ? row.expires - clock(now) : 100 * kMillisecond;
  return {AcquireAnswer::Kind::queued, 0, std::clamp(left, kMillisecond, kSecond)};
}

void StoreModel::pass_over_the_dead(Time now, Row& row) const {
  if (mutation_ == Mutation::dead_waiter_blocks) return;
  std::erase_if(row.queue, [&](const Waiter& each) { return now - each.asked > kPatience; });
}

void StoreModel::nudge_first(Row& row) {
  if (row.queue.empty()) return;
  told_.push_back({true, row.queue.front().request, row.queue.front().client});
}

// ---- renew, release, expiry ----------------------------------------------------------------

bool StoreModel::renew(Time now, std::uint32_t lock, RequestRef request, Time ttl) {
  Row& row = rows_[lock];
  notice_expiry(now, lock);
  const bool own = row.holder == request || mutation_ == Mutation::renew_of_any_holder;
  if (row.held && !row.kept && own) {
    row.expires = clock(now) + ttl;
    log(now, Kind::renew, Operation::renew, lock, request, row.token, now + ttl);
    return true;
  }
  if (mutation_ == Mutation::renew_acquires && !row.held) {
    grant(now, row, {lock, request, row.client, ttl, false, false}, Operation::renew);
    return true;
  }
  return false;
}

bool StoreModel::release(Time now, std::uint32_t lock, RequestRef request, Time keep_for) {
  Row& row = rows_[lock];
  notice_expiry(now, lock);
  const bool own = row.holder == request || mutation_ == Mutation::bare_delete;
  if (!row.held || row.kept || !own) {
    leave_queue(row, request);
    return false;
  }
  if (mutation_ == Mutation::compare_then_delete) {
    row.asker = request;
    deferred_.push_back(lock);
    return true;
  }
  if (keep_for > 0) {
    row.kept = true;
    row.expires = clock(now) + keep_for;
    log(now, Kind::release, Operation::release, lock, request, row.token, now + keep_for);
    return true;
  }
  end_grant(now, lock, request, Operation::release);
  return true;
}

void StoreModel::end_grant(Time now, std::uint32_t lock, RequestRef asker, Operation cause) {
  Row& row = rows_[lock];
  log(now, Kind::release, cause, lock, asker, row.token, 0);
  row.held = false;
  if (mutation_ == Mutation::counter_lost_on_release) row.counter = settings_.first_token;
  pass_over_the_dead(now, row);
  nudge_first(row);
}

void StoreModel::delete_whatever(Time now, std::uint32_t lock) {
  if (rows_[lock].held) end_grant(now, lock, rows_[lock].asker, Operation::release);
}

bool StoreModel::force_release(Time now, std::uint32_t lock) {
  notice_expiry(now, lock);
  if (!rows_[lock].held) return false;
  if (settings_.tells_ended) told_.push_back({false, rows_[lock].holder, rows_[lock].client});
  end_grant(now, lock, rows_[lock].holder, Operation::none);
  return true;
}

void StoreModel::leave_queue(Row& row, RequestRef request) {
  const auto left =
      std::erase_if(row.queue, [&](const Waiter& each) { return each.request == request; });
  if (left > 0 && !row.held) nudge_first(row);
}

void StoreModel::notice_expiry(Time now, std::uint32_t lock) {
  Row& row = rows_[lock];
  if (!row.held || alive(row, now)) return;
  log(now, Kind::expire, Operation::none, lock, row.holder, row.token, 0);
  row.held = false;
  if (settings_.tells_ended && !row.kept) told_.push_back({false, row.holder, row.client});
  pass_over_the_dead(now, row);
  nudge_first(row);
}

void StoreModel::crash() {
  for (Row& row : rows_) {
    row.queue.clear();
    if (mutation_ == Mutation::leases_lost_in_crash) row.held = false;
  }
  deferred_.clear();
}

void StoreModel::crash_in_sync() {
  crash();
  for (Row& row : rows_) {
    row.reserved = row.counter + kReserve;
    if (mutation_ == Mutation::unsynced_ceiling) row.ceiling = row.reserved;
  }
}

void StoreModel::lose_power() {
  crash();
  for (Row& row : rows_) row.counter = row.ceiling = row.reserved = row.on_disk;
}

std::vector<Leftover> StoreModel::leftovers(Time now) const {
  std::vector<Leftover> left;
  for (const Row& row : rows_) {
    if (alive(row, now) && !row.kept && !row.late) left.push_back({false, row.holder, index(row)});
    for (const Waiter& each : row.queue) {
      if (!each.late) left.push_back({true, each.request, index(row)});
    }
  }
  return left;
}

}  // namespace leasehold::simulation
