#include "user_history.h"

#include <stdexcept>

#include "ledger.h"

namespace leasehold::drill {
namespace {

// When the lease ends, by what the store said a moment ago.
std::int64_t deadline_of(const LockStatus::Holder& holder) {
  if (holder.foreign) return 0;
  return now() + std::chrono::nanoseconds(holder.remaining).count();
}

}  // namespace

void UserHistory::took(const std::string& who, const LockStatus& status) {
  const LockStatus::Holder& holder = status.holders.front();
  Held held;
  held.request = history_.request(holder.request);
  if (status.store) held.store = history_.store(*status.store);
  if (!holder.foreign) held.token = holder.token.value();
  held_[who] = held;
  client(who, Kind::invoke, Operation::acquire);
  client(who, Kind::ok, Operation::acquire, deadline_of(holder));
}

void UserHistory::still_has(const std::string& who, const LockStatus& status) {
  client(who, Kind::ok, Operation::renew, deadline_of(status.holders.front()));
}

void UserHistory::gave_back(const std::string& who, Kind answer) {
  if (!held_.contains(who)) return;
  client(who, Kind::invoke, Operation::release);
  client(who, answer, Operation::release);
  held_.erase(who);
}

void UserHistory::wrote(const std::string& who) {
  if (!held_.contains(who)) return;
  resource(who, Kind::accept, Operation::read);
  wrote_late(who);
}

void UserHistory::wrote_late(const std::string& who) {
  resource(who, Kind::accept, Operation::write);
}

void UserHistory::was_refused(const std::string& who) {
  resource(who, Kind::refuse, Operation::write);
}

void UserHistory::froze(const std::string& who) {
  nemesis(who, Kind::fault);
}

void UserHistory::thawed(const std::string& who) {
  nemesis(who, Kind::heal);
}

History UserHistory::take() {
  history_.sort();
  return std::move(history_);
}

void UserHistory::client(const std::string& who, Kind kind, Operation operation,
                         std::int64_t deadline) {
  const Held& held = held_[who];
  Record record;
  record.request = held.request;
  record.store = held.store;
  record.deadline = deadline;
  if (kind != Kind::invoke || operation != Operation::acquire) record.token = held.token;
  record.lock = history_.lock(lock_);
  add(record, who, kind, operation);
}

void UserHistory::resource(const std::string& who, Kind kind, Operation operation) {
  const Held& held = held_[who];
  Record record;
  record.request = held.request;
  record.store = held.store;
  record.token = held.token;
  record.lock = history_.lock(lock_);
  record.value = value_;
  if (kind == Kind::accept && operation == Operation::write) {
    record.base = value_;
    record.value = ++value_;
  }
  add(record, "resource", kind, operation);
}

void UserHistory::nemesis(const std::string& who, Kind kind) {
  add({}, who, kind, Operation::pause);
}

void UserHistory::add(Record record, const std::string& process, Kind kind, Operation operation) {
  record.time = now();
  record.process = history_.process(process);
  record.kind = kind;
  record.operation = operation;
  if (const auto done = history_.append(record); !done) {
    throw std::logic_error(done.error().message);
  }
}

}  // namespace leasehold::drill
