// The kinds of workers, and what they have in common besides their desk.
#pragma once

#include <chrono>
#include <iostream>
#include <thread>

#include "desk.h"
#include "diary.h"
#include "leasehold/client.h"
#include "worker.h"

namespace leasehold::drill {

// Each until stdin ends; fails as run_worker().
[[nodiscard]] Status run_holder(const WorkerPlan& plan, Diary diary);     // of a lock
[[nodiscard]] Status run_candidate(const WorkerPlan& plan, Diary diary);  // of an election
[[nodiscard]] Status run_member(const WorkerPlan& plan, Diary diary);     // of a group

inline constexpr Millis kLongestWait = std::chrono::seconds(5);
inline constexpr Millis kStoreTimeout = std::chrono::seconds(2);

inline void pause_after_failure() {
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

[[nodiscard]] Result<Client> connect_worker(const WorkerPlan& plan);

// Tries again what does not answer. Fails with what another try would not change, and when stdin
// has ended with the last failure.
template <class Try>
auto insist(const Try& attempt) {
  for (;;) {
    auto done = attempt();
    if (done || !std::cin) return done;
    const ErrorCode code = done.error().code;
    if (code == ErrorCode::invalid || code == ErrorCode::unsupported) return done;
    pause_after_failure();
  }
}

}  // namespace leasehold::drill
