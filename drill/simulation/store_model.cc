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
  }
  const std::int64_t first = settings.first_token;
  counter_ = {first, first, first, first};
}

void StoreModel::log(Time now, Kind kind, Operation cause, const Row& row, const Holder& holder,
                     RequestRef asker, Time deadline) {
  drill::Record record;
  record.time = now;
  record.process = process_;
  record.kind = kind;
  record.operation = cause;
  record.lock = lock_refs_[index(row)];
  record.request = asker;
  record.token = holder.token;
  record.deadline = deadline;
  record.store = ref_;
  record.set_mode(holder.mode, holder.slot);
  recorder_.record(record);
}

void StoreModel::log(Time now, Kind kind, const Row& row, const Waiter& waiter) {
  drill::Record record;
  record.time = now;
  record.process = process_;
  record.kind = kind;
  record.lock = lock_refs_[index(row)];
  record.request = waiter.request;
  record.store = ref_;
  record.set_mode(waiter.mode);
  recorder_.record(record);
}

StoreModel::Holder* StoreModel::holder_of(Row& row, RequestRef request) {
  const auto found = std::find_if(row.holders.begin(), row.holders.end(), [&](const Holder& each) {
    return each.request == request && !each.kept;
  });
  return found == row.holders.end() ? nullptr : &*found;
}

// `whoever`: the bug that takes any grant for this request's.
StoreModel::Holder* StoreModel::own_grant(Row& row, RequestRef request, Mutation whoever) {
  if (mutation_ != whoever) return holder_of(row, request);
  return row.holders.empty() || row.holders.front().kept ? nullptr : &row.holders.front();
}

std::int64_t StoreModel::token_of(Time now, std::uint32_t lock, RequestRef request) const {
  for (const Holder& each : rows_[lock].holders) {
    if (each.request == request && !each.kept && alive(each, now)) return each.token;
  }
  return 0;
}

// ---- acquire -------------------------------------------------------------------------------

AcquireAnswer StoreModel::acquire(Time now, const AcquireOrder& order) {
  Row& row = rows_[order.lock];
  notice_expiry(now, order.lock);
  if (Holder* own = holder_of(row, order.request)) {
    if (!order.late) own->late = false;
    if (mutation_ == Mutation::retry_granted_anew) {
      row.holders.erase(row.holders.begin() + (own - row.holders.data()));
      return grant(now, row, order, Operation::acquire);
    }
    if (mutation_ == Mutation::acquire_renews) {
      own->expires = clock(now) + order.ttl;
      log(now, Kind::renew, Operation::acquire, row, *own, own->request, now + order.ttl);
    }
    const bool claims_fresh = mutation_ == Mutation::old_grant_told_as_fresh;
    return {AcquireAnswer::Kind::granted, own->token, 0, claims_fresh, own->slot};
  }
  pass_over_the_dead(now, row);
  if (!fits_beside_holders(row, order.mode)) return wait(now, row, order);
  if (!fits_beside_queue(row, order.mode, order.request)) {
    nudge_first(row);
    return wait(now, row, order);
  }
  std::erase_if(row.queue, [&](const Waiter& each) { return each.request == order.request; });
  return grant(now, row, order, Operation::acquire);
}

bool StoreModel::fits_beside_holders(const Row& row, Mode mode) const {
  if (mode.is_permit()) {
    const std::int64_t too_many = mutation_ == Mutation::one_permit_too_many ? 1 : 0;
    return static_cast<std::int64_t>(row.holders.size()) < mode.permits() + too_many;
  }
  if (mode.is_exclusive()) return row.holders.empty();
  if (mutation_ == Mutation::reader_beside_writer) return true;
  return std::all_of(row.holders.begin(), row.holders.end(),
                     [](const Holder& each) { return each.mode == Mode::shared(); });
}

bool StoreModel::fits_beside_queue(const Row& row, Mode mode, RequestRef request) const {
  if (mutation_ == Mutation::overtaking) return true;
  const auto own = std::find_if(row.queue.begin(), row.queue.end(),
                                [&](const Waiter& each) { return each.request == request; });
  if (mode.is_permit()) {
    const auto before = own - row.queue.begin();
    return static_cast<std::int64_t>(row.holders.size()) + before < mode.permits() || before == 0;
  }
  if (mode.is_exclusive()) return own == row.queue.begin();
  return std::all_of(row.queue.begin(), own,
                     [](const Waiter& each) { return each.mode == Mode::shared(); });
}

std::optional<Slot> StoreModel::lowest_free_slot(const Row& row, Mode mode) const {
  if (!mode.is_permit()) return std::nullopt;
  Slot slot;
  if (mutation_ == Mutation::slot_given_twice) return slot;
  const auto taken = [&](const Holder& each) { return each.slot == slot; };
  while (std::any_of(row.holders.begin(), row.holders.end(), taken)) ++slot.number;
  return slot;
}

AcquireAnswer StoreModel::grant(Time now, Row& row, const AcquireOrder& order, Operation cause) {
  if (!row.holders.empty()) ++granted_beside_;
  const auto slot = lowest_free_slot(row, order.mode);
  const Holder& holder =
      row.holders.emplace_back(Holder{order.mode, slot, order.request, order.client, order.late,
                                      next_token(), clock(now) + order.ttl});
  log(now, Kind::grant, cause, row, holder, holder.request, now + order.ttl);
  nudge_first(row);
  return {AcquireAnswer::Kind::granted, holder.token, 0, /*fresh=*/true, slot};
}

std::int64_t StoreModel::next_token() {
  if (mutation_ == Mutation::random_token) {
    return static_cast<std::int64_t>(chance_.below(std::uint64_t{1} << 62)) + 1;
  }
  if (counter_.last >= counter_.ceiling) raise_ceiling();
  return ++counter_.last;
}

void StoreModel::raise_ceiling() {
  counter_.reserved = std::max(counter_.reserved, counter_.last + kReserve);
  const bool synced = mutation_ != Mutation::counter_lost_in_crash || chance_.one_in(4);
  if (synced) counter_.on_disk = counter_.reserved;
  counter_.ceiling = counter_.reserved;
}

AcquireAnswer StoreModel::wait(Time now, Row& row, const AcquireOrder& order) {
  if (!order.queue) return {AcquireAnswer::Kind::busy, 0, 0};
  const auto place = std::find_if(row.queue.begin(), row.queue.end(), [&](const Waiter& each) {
    return each.request == order.request;
  });
  if (place == row.queue.end()) {
    row.queue.push_back({order.mode, order.request, order.client, order.late, now});
    log(now, Kind::queue, row, row.queue.back());
  } else {
    place->asked = now;
    if (!order.late) place->late = false;
  }
  Time left = row.holders.empty() ? 100 * kMillisecond : kSecond;
  for (const Holder& each : row.holders) left = std::min(left, each.expires - clock(now));
  return {AcquireAnswer::Kind::queued, 0, std::clamp(left, kMillisecond, kSecond)};
}

void StoreModel::pass_over_the_dead(Time now, Row& row) {
  if (mutation_ == Mutation::dead_waiter_blocks) return;
  std::erase_if(row.queue, [&](const Waiter& each) {
    const bool dead = now - each.asked > kPatience;
    if (dead) log(now, Kind::leave, row, each);
    return dead;
  });
}

// Whoever comes in or goes calls the next one, if it fits.
void StoreModel::nudge_first(Row& row) {
  if (row.queue.empty() || !fits_beside_holders(row, row.queue.front().mode)) return;
  told_.push_back({true, row.queue.front().request, row.queue.front().client});
}

// ---- renew, release, expiry ----------------------------------------------------------------

bool StoreModel::renew(Time now, std::uint32_t lock, RequestRef request, Time ttl) {
  Row& row = rows_[lock];
  notice_expiry(now, lock);
  if (Holder* own = own_grant(row, request, Mutation::renew_of_any_holder)) {
    own->expires = clock(now) + ttl;
    log(now, Kind::renew, Operation::renew, row, *own, request, now + ttl);
    return true;
  }
  if (mutation_ == Mutation::renew_acquires && row.holders.empty()) {
    grant(now, row, {lock, {}, request, 0, ttl, false, false}, Operation::renew);
    return true;
  }
  return false;
}

bool StoreModel::release(Time now, std::uint32_t lock, RequestRef request, Time keep_for) {
  Row& row = rows_[lock];
  notice_expiry(now, lock);
  Holder* own = own_grant(row, request, Mutation::bare_delete);
  if (own == nullptr) {
    leave_queue(now, row, request);
    return false;
  }
  if (mutation_ == Mutation::compare_then_delete) {
    row.asker = request;
    deferred_.push_back(lock);
    return true;
  }
  if (keep_for > 0) {
    own->kept = true;
    own->expires = clock(now) + keep_for;
    log(now, Kind::release, Operation::release, row, *own, request, now + keep_for);
    return true;
  }
  end_grant(now, row, *own, request, Operation::release);
  return true;
}

void StoreModel::end_grant(Time now, Row& row, const Holder& holder, RequestRef asker,
                           Operation cause) {
  log(now, Kind::release, cause, row, holder, asker);
  row.holders.erase(row.holders.begin() + (&holder - row.holders.data()));
  if (mutation_ == Mutation::counter_lost_on_release) counter_.last = settings_.first_token;
  pass_over_the_dead(now, row);
  nudge_first(row);
}

void StoreModel::delete_whatever(Time now, std::uint32_t lock) {
  Row& row = rows_[lock];
  if (row.holders.empty()) return;
  end_grant(now, row, row.holders.front(), row.asker, Operation::release);
}

bool StoreModel::force_release(Time now, std::uint32_t lock) {
  Row& row = rows_[lock];
  notice_expiry(now, lock);
  if (row.holders.empty()) return false;
  const Holder& seen = row.holders[chance_.below(row.holders.size())];
  if (settings_.tells_ended) told_.push_back({false, seen.request, seen.client});
  end_grant(now, row, seen, seen.request, Operation::none);
  return true;
}

void StoreModel::leave_queue(Time now, Row& row, RequestRef request) {
  const auto place = std::find_if(row.queue.begin(), row.queue.end(),
                                  [&](const Waiter& each) { return each.request == request; });
  if (place == row.queue.end()) return;
  log(now, Kind::leave, row, *place);
  row.queue.erase(place);
  nudge_first(row);
}

void StoreModel::forget_queue(Time now, Row& row) {
  for (const Waiter& each : row.queue) log(now, Kind::leave, row, each);
  row.queue.clear();
}

void StoreModel::notice_expiry(Time now, std::uint32_t lock) {
  Row& row = rows_[lock];
  const auto ended = std::erase_if(row.holders, [&](const Holder& each) {
    if (alive(each, now)) return false;
    log(now, Kind::expire, Operation::none, row, each, each.request);
    if (settings_.tells_ended && !each.kept) told_.push_back({false, each.request, each.client});
    return true;
  });
  if (ended == 0) return;
  pass_over_the_dead(now, row);
  nudge_first(row);
}

void StoreModel::crash(Time now) {
  for (Row& row : rows_) {
    forget_queue(now, row);
    if (mutation_ == Mutation::leases_lost_in_crash) row.holders.clear();
  }
  deferred_.clear();
}

void StoreModel::crash_in_sync(Time now) {
  crash(now);
  counter_.reserved = counter_.last + kReserve;
  if (mutation_ == Mutation::unsynced_ceiling) counter_.ceiling = counter_.reserved;
}

void StoreModel::lose_power(Time now) {
  crash(now);
  counter_.last = counter_.ceiling = counter_.reserved = counter_.on_disk;
}

std::vector<Leftover> StoreModel::leftovers(Time now) const {
  std::vector<Leftover> left;
  for (const Row& row : rows_) {
    for (const Holder& each : row.holders) {
      if (alive(each, now) && !each.kept && !each.late) {
        left.push_back({false, each.request, index(row)});
      }
    }
    for (const Waiter& each : row.queue) {
      if (!each.late) left.push_back({true, each.request, index(row)});
    }
  }
  return left;
}

}  // namespace leasehold::simulation
