// What happens next.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "drifting_clock.h"

namespace leasehold::simulation {

enum class EventKind : std::uint8_t {
  call_arrives,    // at the store
  reply_arrives,   // at the client
  call_times_out,  // at the client
  patience_ends,   // of a call that has gathered there
  nudge_arrives,
  ended_arrives,
  tick,
  worker_wakes,
  access_arrives,   // at the resource
  access_answered,  // at the client
  access_times_out,
  client_resumes,
  client_restarts,
  client_reconnects,
  store_restarts,
  store_resumes,
  store_deletes,  // the second half of a release that compares first
  nemesis,
  weather,
};

struct Event {
  Time time = 0;
  std::uint64_t order = 0;   // of two at the same time the one that was planned first
  std::uint32_t what = 0;    // which call, access, request or worker
  std::uint32_t detail = 0;  // which copy, generation or life
  std::uint16_t client = 0;
  EventKind kind = EventKind::tick;
};

class Schedule {
 public:
  void add(Event event) {
    event.order = ++order_;
    heap_.push_back(event);
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  bool empty() const { return heap_.empty(); }
  Event take() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }

 private:
  static bool later(const Event& one, const Event& other) {
    if (one.time != other.time) return one.time > other.time;
    return one.order > other.order;
  }

  std::vector<Event> heap_;
  std::uint64_t order_ = 0;
};

}  // namespace leasehold::simulation
