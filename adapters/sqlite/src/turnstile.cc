#include "turnstile.h"

#include <algorithm>

#include "kit/try.h"

namespace leasehold::sqlite {

Result<Turnstile::Pass> Turnstile::enter(const CallContext& context) {
  Ticket ticket;
  std::list<Ticket*>::const_iterator place;
  {
    const MutexLock lock(mutex_);
    if (closed_) return fail(ErrorCode::unavailable, "the store is closed");
    if (!std::exchange(occupied_, true)) return Pass(*this);
    auto& tickets = line_of(context);
    place = tickets.insert(tickets.end(), &ticket);
  }
  {
    const std::stop_callback on_stop(context.stop, [&] { ticket.called.ring(); });
    ticket.called.wait_until(context.deadline);
  }
  const MutexLock lock(mutex_);
  if (ticket.admitted) return Pass(*this);
  line_of(context).erase(place);
  if (closed_) return fail(ErrorCode::unavailable, "the store is closed");
  if (context.stop.stop_requested()) return fail(ErrorCode::cancelled, "the call was stopped");
  return fail(ErrorCode::unavailable, "other threads of this process kept the database busy");
}

Status Turnstile::Pass::step_aside(const CallContext& context, Pause pause) {
  Turnstile& turnstile = *std::exchange(turnstile_, nullptr);
  turnstile.leave();
  turnstile.rest(context, pause);
  auto again = TRY(turnstile.enter(context));
  turnstile_ = std::exchange(again.turnstile_, nullptr);
  return {};
}

void Turnstile::rest(const CallContext& context, Pause pause) {
  Ticket ticket;
  std::list<Ticket*>::const_iterator place;
  {
    const MutexLock lock(mutex_);
    if (closed_) return;
    place = resting_.insert(resting_.end(), &ticket);
  }
  {
    const std::stop_callback on_stop(context.stop, [&] { ticket.called.ring(); });
    ticket.called.wait_until(std::min<BootTime>(context.deadline, BootClock::now() + pause));
  }
  const MutexLock lock(mutex_);
  resting_.erase(place);
}

void Turnstile::leave() {
  const MutexLock lock(mutex_);
  auto& tickets = urgent_.empty() ? ordinary_ : urgent_;
  if (tickets.empty() || closed_) {
    occupied_ = false;
    emptied_.notify_all();
    return;
  }
  Ticket& next = *tickets.front();
  tickets.pop_front();
  next.admitted = true;
  next.called.ring();
}

std::size_t Turnstile::in_line() {
  const MutexLock lock(mutex_);
  return urgent_.size() + ordinary_.size() + resting_.size();
}

void Turnstile::close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  for (const auto* tickets : {&urgent_, &ordinary_, &resting_}) {
    for (Ticket* ticket : *tickets) ticket->called.ring();
  }
  emptied_.wait(mutex_, [&]() LEASEHOLD_REQUIRES(mutex_) { return !occupied_; });
}

}  // namespace leasehold::sqlite
