#include "turnstile.h"

#include <algorithm>

namespace leasehold::sqlite {

Result<Turnstile::Pass> Turnstile::enter(const CallContext& context) {
  const MutexLock lock(mutex_);
  if (closed_) return fail(ErrorCode::unavailable, "the store is closed");
  if (!occupied_) {
    occupied_ = true;
    return Pass(*this);
  }
  Ticket ticket;
  line_.push_back(&ticket);
  ticket.called.wait_for(mutex_, context.stop, context.deadline - BootClock::now(),
                         [&]() LEASEHOLD_REQUIRES(mutex_) { return ticket.admitted || closed_; });
  if (ticket.admitted) return Pass(*this);
  line_.erase(std::find(line_.begin(), line_.end(), &ticket));
  if (closed_) return fail(ErrorCode::unavailable, "the store is closed");
  if (context.stop.stop_requested()) return fail(ErrorCode::cancelled, "the call was stopped");
  return fail(ErrorCode::unavailable, "other threads of this process kept the database busy");
}

void Turnstile::leave() {
  const MutexLock lock(mutex_);
  if (line_.empty() || closed_) {
    occupied_ = false;
    emptied_.notify_all();
    return;
  }
  line_.front()->admitted = true;
  line_.front()->called.notify_one();
  line_.pop_front();
}

void Turnstile::close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  for (Ticket* ticket : line_) ticket->called.notify_one();
  emptied_.wait(mutex_, [&]() LEASEHOLD_REQUIRES(mutex_) { return !occupied_; });
}

}  // namespace leasehold::sqlite
