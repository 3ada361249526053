#include "claims.h"

#include <algorithm>

namespace leasehold::etcd {

std::vector<std::int64_t> take_watches(Claim& claim) {
  return {std::exchange(claim.predecessor_watch, 0), std::exchange(claim.permits_watch, 0),
          std::exchange(claim.own_watch, 0)};
}

std::optional<Claim> Claims::find(const RequestId& request) const {
  MutexLock guard(mutex_);
  const auto found = claims_.find(request);
  if (found == claims_.end()) return std::nullopt;
  return found->second;
}

void Claims::changed(const RequestId& request, const Claim& claim) {
  if (claim.state == Claim::State::waiting) {
    waiting_.insert(request);
  } else {
    waiting_.erase(request);
  }
  none_expires_before_ = std::min(none_expires_before_, claim.expires);
}

void Claims::erase(const RequestId& request) {
  MutexLock guard(mutex_);
  claims_.erase(request);
  waiting_.erase(request);
}

std::vector<std::pair<RequestId, Claim>> Claims::expire(BootTime now, Millis again) {
  std::vector<std::pair<RequestId, Claim>> expired;
  MutexLock guard(mutex_);
  if (now < none_expires_before_) return expired;
  none_expires_before_ = BootTime::max();
  for (auto& [request, claim] : claims_) {
    if (claim.expires <= now) {
      expired.emplace_back(request, claim);
      claim.state = Claim::State::over;
      claim.expires = now + again;
      waiting_.erase(request);
    }
    none_expires_before_ = std::min(none_expires_before_, claim.expires);
  }
  return expired;
}

std::vector<RequestId> Claims::waiting() const {
  MutexLock guard(mutex_);
  return {waiting_.begin(), waiting_.end()};
}

std::vector<RequestId> Claims::waiting_on(LeaseId lease) const {
  std::vector<RequestId> requests;
  MutexLock guard(mutex_);
  for (const RequestId& request : waiting_) {
    if (claims_.at(request).lease == lease) requests.push_back(request);
  }
  return requests;
}

bool Claims::any_waiting() const {
  MutexLock guard(mutex_);
  return !waiting_.empty();
}

bool Claims::empty() const {
  MutexLock guard(mutex_);
  return claims_.empty();
}

bool Claims::any_held_on(LeaseId lease) const {
  MutexLock guard(mutex_);
  return std::any_of(claims_.begin(), claims_.end(), [&](const auto& entry) {
    return entry.second.lease == lease && entry.second.state == Claim::State::held;
  });
}

}  // namespace leasehold::etcd
