// Worker processes that are killed in the middle of their work, and replaced.
#pragma once

#include <poll.h>
#include <signal.h>

#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "leasehold/process/child.h"

namespace leasehold::testing {

// A worker prints one byte or more whenever it begins an operation.
class CrashingWorkers {
 public:
  CrashingWorkers(std::vector<std::string> argv, std::size_t count) : argv_(std::move(argv)) {
    for (std::size_t i = 0; i < count; ++i) workers_.push_back(start());
  }

  // Waits until a worker has begun an operation, and kills it at some point from there on. False if
  // no worker begins anything any more.
  bool kill_one() {
    std::vector<pollfd> events;
    for (process::Child& worker : workers_) events.push_back({worker.out().get(), POLLIN, 0});
    constexpr int kPatienceMs = 30'000;
    if (poll(events.data(), events.size(), kPatienceMs) <= 0) return false;
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (events[i].revents == 0) continue;
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % 4000));
      workers_[i].signal(SIGKILL);
      workers_[i].wait();
      workers_[i] = start();
      return true;
    }
    return false;
  }

 private:
  process::Child start() const {
    process::Command command{.argv = argv_};
    command.out = process::Piped{};
    command.parent_death_signal = SIGKILL;
    auto child = process::Child::start(command);
    if (!child) throw std::runtime_error(child.error().message);
    return std::move(*child);
  }

  const std::vector<std::string> argv_;
  std::vector<process::Child> workers_;
  std::minstd_rand random_{4711};
};

}  // namespace leasehold::testing
