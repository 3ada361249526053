#include <cstdio>
#include <cstdlib>

#include "engine/engine.h"

namespace leasehold::engine {
namespace {

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "the engine has broken its own rule: %s\n", what);
  std::abort();
}

}  // namespace

void Engine::check(const Acquisition& it) const {
  const bool acquires = it.phase == Phase::acquiring;
  const bool leaves = it.phase == Phase::leaving;
  must(acquires || leaves || it.grant, "who confirms or holds has a grant");
  must(!it.call_in_flight || acquires || leaves, "only who acquires, or leaves, is asked for");
  must(!it.release_in_flight || leaves, "only who leaves is released");
  must(!(it.release_in_flight && it.call_in_flight), "no release overtakes its acquire");
  must(!it.renew_in_flight || !acquires, "who acquires is not renewed");
  must(it.renews || it.phase == Phase::holding || leaves, "only a lease can be no longer renewed");
  must(!it.caller_waits || leaves, "only who leaves owes an answer to a release");
  must(it.wake.has_value() == wakes_.contains({it.wake.value_or(BootTime()), it.request}),
       "a timer stands in the table as it is remembered");
  const auto due = wake_of(it);
  must(!due || (it.wake && *it.wake <= *due), "no timer is late");
}

void Engine::check_invariants() const {
  std::size_t unsettled = 0;
  std::size_t timers = 0;
  for (const auto& [request, it] : acquisitions_) {
    must(request == it.request, "each is found by its own request");
    check(it);
    unsettled += it.phase == Phase::holding ? 0 : 1;
    timers += it.wake ? 1 : 0;
  }
  must(unsettled == unsettled_, "all but those who hold are counted as unsettled");
  must(timers == wakes_.size(), "no timer is left of somebody who is gone");
}

}  // namespace leasehold::engine
