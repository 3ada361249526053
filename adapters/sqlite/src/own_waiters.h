// The requests of this process that have a place in a queue.
#pragma once

#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "leasehold/id.h"
#include "leasehold/name.h"

namespace leasehold::sqlite {

// Not thread safe. Others may have passed over a request that is still here.
class OwnWaiters {
 public:
  bool empty() const { return places_.empty(); }
  std::size_t size() const { return places_.size(); }
  std::size_t locks() const { return waiting_for_.size(); }
  bool has(const RequestId& request) const { return places_.contains(request); }

  // Keeps the place of one that is here already.
  void add(const LockName& lock, const RequestId& request) {
    if (has(request)) return;
    places_[request] = order_.emplace(lock.str(), ++last_).first;
    ++waiting_for_[lock.str()];
  }

  void remove(const RequestId& request) {
    const auto found = places_.find(request);
    if (found == places_.end()) return;
    const auto lock = waiting_for_.find(found->second->first);
    if (--lock->second == 0) waiting_for_.erase(lock);
    order_.erase(found->second);
    places_.erase(found);
  }

  // Whether no other that is here waits longer for the same lock.
  bool is_first(const RequestId& request) const {
    const auto found = places_.find(request);
    if (found == places_.end()) return false;
    const auto place = found->second;
    return place == order_.begin() || std::prev(place)->first != place->first;
  }

 private:
  using Order = std::set<std::pair<std::string, std::uint64_t>>;
  Order order_;
  std::unordered_map<RequestId, Order::const_iterator> places_;
  std::unordered_map<std::string, std::size_t> waiting_for_;  // by lock: how many
  std::uint64_t last_ = 0;
};

}  // namespace leasehold::sqlite
