// What the tests of every serial queue share: an operation as a worker does it that may be killed
// at any point, and what became of one.
#pragma once

#include <chrono>
#include <functional>
#include <iostream>
#include <random>
#include <string>
#include <thread>

#include "leasehold/serial_queue.h"
#include "testing/entity_locks.h"

namespace leasehold::testing {

// "entity:payload" of an operation that was done, or what else has happened.
inline std::string told(const Result<Handled>& handled) {
  if (!handled) return to_string(handled.error());
  switch (handled->what) {
    case Handled::What::nothing:
      return "nothing";
    case Handled::What::done:
      return handled->operation->entity.str() + ":" + handled->operation->payload;
    case Handled::What::failed:
      return "failed";
    case Handled::What::set_aside:
      return "set aside";
    case Handled::What::lost:
      return "lost";
  }
  return "";
}

// Says "." when it begins an operation, takes some time around it, and notices another worker at
// the same entity.
class SlowWorker {
 public:
  SlowWorker(const std::string& folder, const std::vector<std::string>& entities)
      : locks_(folder, entities) {}

  Status work(const Operation& operation, const std::function<Status()>& act) {
    locks_.enter(operation.entity.str());
    std::cout << "." << std::flush;
    rest();
    auto done = act();
    rest();
    locks_.leave(operation.entity.str());
    return done;
  }

  // Handles operations by `one` for as long as it can; the exit status.
  template <class HandleOne>
  static int work_on(const HandleOne& one) {
    const auto ended = work_loop(one, {.poll = Millis(2)});
    if (!ended) std::cerr << to_string(ended.error()) << "\n";
    return 1;
  }

 private:
  void rest() { std::this_thread::sleep_for(std::chrono::microseconds(random_() % 2000)); }

  EntityLocks locks_;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace leasehold::testing
