#include "cli/run/partition_desk.h"

#include <signal.h>

#include <algorithm>

#include "cli/command/output.h"
#include "cli/command/range.h"
#include "cli/run/command_group.h"
#include "cli/run/session.h"

namespace leasehold::cli {
namespace {

Json in_millis(BootClock::duration span) {
  return std::max<Millis::rep>(std::chrono::floor<Millis>(span).count(), 0);
}

}  // namespace

// ---- the member's thread -------------------------------------------------------------------

void PartitionDesk::gained(const OwnedPartition& partition) {
  const MutexLock lock(mutex_);
  held_.try_emplace(partition.number, partition, *this);
  changed_.raise();
}

void PartitionDesk::will_give_up(int partition) {
  const MutexLock lock(mutex_);
  held_.at(partition).leaving = true;
  changed_.raise();
}

void PartitionDesk::give_up(int partition) {
  const MutexLock lock(mutex_);
  const auto found = held_.find(partition);
  given_.wait(mutex_,
              [&]() LEASEHOLD_REQUIRES(mutex_) { return closed_ || !found->second.at_work; });
  held_.erase(found);
}

// ---- the command's -------------------------------------------------------------------------

PartitionDesk::Look PartitionDesk::look(BootTime now) {
  changed_.clear();
  lost_.clear();
  Look look;
  const MutexLock lock(mutex_);
  for (auto& [partition, held] : held_) look_at(partition, held, now, look);
  return look;
}

void PartitionDesk::look_at(int partition, Held& held, BootTime now, Look& look) const {
  const Lease& lease = held.lease;
  const Millis ttl = lease.ttl();
  const BootTime end = lease.deadline();
  const bool lost = lease.state() == LeaseState::lost;
  const BootTime late = end - grace_of(limits_.grace, ttl);
  const bool must_go = held.leaving || lost || now >= late;
  const auto look_again = [&](BootTime at) { look.again = std::min(look.again.value_or(at), at); };

  if (!held.at_work) {
    if (held.leaving || lost) return;
    if (now >= end - ttl / 2) return look_again(now + ttl / 10);  // until it has been renewed
    held.at_work = true;
    held.asked.reset();
    look.events.push_back(gained_event(partition, held, now));
  }
  if (!must_go && !held.asked) return look_again(late);
  const BootTime kill_time = end - kill_margin(ttl);
  if (!held.asked) {
    held.asked = now;
    look.events.push_back(
        {{"event", "give_up"},
         {"partition", partition},
         {"within_ms", in_millis(std::min<BootTime>(now + limits_.drain, kill_time) - now)}});
  }
  const std::string which = "partition " + std::to_string(partition);
  const BootTime term_time = *held.asked + limits_.drain;
  if (lost || now >= kill_time) {
    look.signal = SIGKILL;
    look.why = which + " was not stopped, and its lease " + (lost ? "was lost" : "ends");
  } else if (now >= term_time && !look.signal) {
    look.signal = SIGTERM;
    look.why = which + " was not stopped within " + written(limits_.drain);
    look_again(kill_time);
  } else {
    look_again(std::min(term_time, kill_time));
  }
}

Json PartitionDesk::gained_event(int partition, const Held& held, BootTime now) const {
  const auto of_token = [&](auto text) { return held.token ? Json(text(*held.token)) : Json(); };
  return {{"event", "gained"},
          {"partition", partition},
          {"lock", held.lease.lock().str()},
          {"token", of_token([](const Token& it) { return std::to_string(it.number.value()); })},
          {"lineage", of_token([](const Token& it) { return it.lineage.str(); })},
          {"request", held.lease.request().hex()},
          {"remaining_ms", in_millis(held.lease.deadline() - now)},
          {"ttl_ms", held.lease.ttl().count()}};
}

bool PartitionDesk::stopped(int partition) {
  const MutexLock lock(mutex_);
  const auto found = held_.find(partition);
  if (found == held_.end() || !found->second.at_work || !found->second.asked) return false;
  found->second.at_work = false;
  changed_.raise();
  given_.notify_all();
  return true;
}

BootTime PartitionDesk::end_of_work() {
  const MutexLock lock(mutex_);
  BootTime first = BootTime::max();
  for (const auto& [partition, held] : held_) {
    if (!held.at_work) continue;
    first = std::min(first, held.lease.deadline() - kill_margin(held.lease.ttl()));
  }
  return first;
}

void PartitionDesk::close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  given_.notify_all();
}

}  // namespace leasehold::cli
