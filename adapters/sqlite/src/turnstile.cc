#include "turnstile.h"

namespace leasehold::sqlite {

Result<Turnstile::Pass> Turnstile::enter(const CallContext& context, Line line) {
  const MutexLock lock(mutex_);
  if (closed_) return fail(ErrorCode::unavailable, "the store is closed");
  if (!occupied_) {
    occupied_ = true;
    return Pass(*this);
  }
  Ticket ticket;
  auto& tickets = line == Line::urgent ? urgent_ : ordinary_;
  const auto place = tickets.insert(tickets.end(), &ticket);
  ticket.called.wait_for(mutex_, context.stop, context.deadline - BootClock::now(),
                         [&]() LEASEHOLD_REQUIRES(mutex_) { return ticket.admitted || closed_; });
  if (ticket.admitted) return Pass(*this);
  tickets.erase(place);
  if (closed_) return fail(ErrorCode::unavailable, "the store is closed");
  if (context.stop.stop_requested()) return fail(ErrorCode::cancelled, "the call was stopped");
  return fail(ErrorCode::unavailable, "other threads of this process kept the database busy");
}

void Turnstile::leave() {
  const MutexLock lock(mutex_);
  auto& tickets = urgent_.empty() ? ordinary_ : urgent_;
  if (tickets.empty() || closed_) {
    occupied_ = false;
    emptied_.notify_all();
    return;
  }
  tickets.front()->admitted = true;
  tickets.front()->called.notify_one();
  tickets.pop_front();
}

std::size_t Turnstile::in_line() {
  const MutexLock lock(mutex_);
  return urgent_.size() + ordinary_.size();
}

void Turnstile::close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  for (const auto* tickets : {&urgent_, &ordinary_}) {
    for (Ticket* ticket : *tickets) ticket->called.notify_one();
  }
  emptied_.wait(mutex_, [&]() LEASEHOLD_REQUIRES(mutex_) { return !occupied_; });
}

}  // namespace leasehold::sqlite
