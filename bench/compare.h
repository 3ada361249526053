// Two ways to do the same, measured in turns in one run: what the machine does besides hits both.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::bench {

// One way. `worker(i)` is called on the i-th of several threads, and returns what that thread does
// again and again: an acquire and a release, say; it says whether that counts. Every worker may
// have a connection of its own.
struct Side {
  std::string name;
  std::function<std::function<bool()>(int worker)> worker;
  // A command, if every worker is a process of its own: it calls take_turns().
  std::vector<std::string> process = {};
  std::optional<int> in_flight = {};  // if not as many as on the other side
};

// For a process of a Side, whose parent tells it when it is its turn.
int take_turns(const Side& side);

// Which of several workers had the lock last. Thread safe.
class Baton {
 public:
  // True if it came from another: a hand-off. Who takes its own lock again hands nothing over.
  bool taken_by(int worker) { return last_.exchange(worker) != worker; }

 private:
  std::atomic<int> last_ = -1;
};

// Many short turns: what the machine does besides, or a checkpoint of the server, spoils few of
// them.
struct Effort {
  int in_flight = 1;  // threads, each doing one thing at a time
  int turns = 25;     // of each side
  std::chrono::milliseconds turn = std::chrono::milliseconds(200);
};

// Runs both sides in turns, and reports what each did per second and the ratio, ours by theirs: the
// median of the turns. Without `at_least` it is for information.
void compare(const std::string& what, const Side& ours, const Side& theirs, const Effort& effort,
             std::optional<double> at_least = {});

// Threads of one client, each with a lock of its own: acquire and release.
Side one_client(const std::string& url);

// Clients of their own, all waiting for the same lock: acquire and release.
Side waiting_clients(const std::string& url);

// `lock(worker)` gives a shared pointer to something that can acquire() and release(). Each worker
// has a lock of its own,
template <class MakeLock>
Side alone(std::string name, MakeLock lock) {
  return {std::move(name), [lock](int worker) {
            return [mine = lock(worker)] {
              mine->acquire();
              mine->release();
              return true;
            };
          }};
}
// or all want the same one.
template <class MakeLock>
Side handing_over(std::string name, MakeLock lock) {
  return {std::move(name), [lock, baton = std::make_shared<Baton>()](int worker) {
            return [mine = lock(worker), baton, worker] {
              mine->acquire();
              const bool handed_over = baton->taken_by(worker);
              mine->release();
              return handed_over;
            };
          }};
}

// 1 to 10 ms: what a client that polls does between two tries.
void pause_before_polling();

// "--quick" among the arguments: fewer and shorter turns.
Effort effort_of(int argc, char** argv, int in_flight);

}  // namespace leasehold::bench
