#include "signs_of_life.h"

#include <algorithm>

namespace leasehold::zookeeper {
namespace {

constexpr Millis kHalfATick{1000};
constexpr std::size_t kMostSigns = 64;

}  // namespace

Millis handed_on_within(Millis session) {
  return std::min(kHalfATick, session / 4);
}

Millis heartbeat_of(Millis session) {
  return session / 24;
}

Millis certain_part_of(Millis session) {
  return session - handed_on_within(session) - 2 * heartbeat_of(session);
}

Millis session_for(Ttl ttl) {
  const Millis length = ttl.length();
  Millis session = std::max(length * 3 / 2, Millis(1));
  if (session > 4 * kHalfATick) session = (length + kHalfATick) * 12 / 11;
  while (certain_part_of(session) < length) ++session;
  return session;
}

Millis most_left(Millis session) {
  return session + 2 * handed_on_within(session);
}

void SignsOfLife::opened(BootTime sent, Millis session) {
  session_ = session;
  last_ = sent;
  signs_ = {{sent, sent}};
}

void SignsOfLife::answered(BootTime sent, BootTime now) {
  const bool of_use = signs_.empty() || sent - signs_.back().sent >= heartbeat_of(session_) / 2;
  if (!of_use) return;
  signs_.push_back({sent, now + handed_on_within(session_)});
  if (signs_.size() > kMostSigns) signs_.pop_front();
}

void SignsOfLife::confirmed(BootTime sent, BootTime now) {
  while (signs_.size() > 1 && signs_[1].known <= sent) signs_.pop_front();
  if (!signs_.empty() && signs_.front().known <= sent) last_ = std::max(last_, signs_.front().sent);
  answered(sent, now);
}

}  // namespace leasehold::zookeeper
