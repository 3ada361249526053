// One lock, its workers, and what the nemesis does to whoever holds it.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "chance.h"
#include "ledger.h"
#include "plan.h"
#include "worker_process.h"

namespace leasehold::drill {

// A pause is a cycle of steps, each begun by what a worker says:
//   a holder has entered and read       it is frozen
//   its lease ends, a successor enters  the holder is thawed, and told to write; either at once,
//                                       before the successor has written, or after that
//   the late write is answered          counted
// Whoever enters meanwhile waits before its write. With permits a successor is who gets the slot of
// the frozen one; the others keep theirs until then. With partitions it is who gets the partition
// that the frozen one was about to write to; work on others goes on. Who only reads goes on by
// itself.
class Arena {
 public:
  using Clock = std::chrono::steady_clock;
  // `number`: which of the lock's workers, from 0 on.
  using StartWorker =
      std::function<Result<WorkerProcess>(const std::string& lock, unsigned number)>;

  Arena(std::string lock, const Plan& plan, Chance& chance, Ledger& ledger, StartWorker start);

  // Fails with `unavailable` if a worker cannot be started.
  [[nodiscard]] Status open();

  std::vector<WorkerProcess>& workers() { return workers_; }

  // Hears what a worker has said. Fails if one has ended by itself.
  [[nodiscard]] Status hear(std::size_t worker);
  // Gives up on what takes too long.
  [[nodiscard]] Status look_at_clock();

  // No more faults from now on.
  void calm_down() { calm_ = true; }
  bool in_cycle() const { return victim_.has_value(); }
  Millis ttl() const { return ttl_; }

 private:
  // What a worker said when it entered last.
  struct Entered {
    std::int64_t granted_at = 0;
    std::int64_t token = 0;
    Piece piece = {};
  };
  enum class Step { waiting_for_successor, successor_writes, late_write };

  [[nodiscard]] Status entered(std::size_t worker);
  void has_read(std::int64_t granted_at);
  void late_write(const std::string& how);
  [[nodiscard]] Status replace(std::size_t worker);
  [[nodiscard]] Status strike_or_go(std::size_t worker);
  [[nodiscard]] Status answered(std::size_t worker, const std::string& how);
  [[nodiscard]] Status kill(std::size_t worker);
  [[nodiscard]] Status end_cycle();
  void entered_elsewhere(std::size_t worker);
  bool came_after_victim(std::size_t worker) const;
  void let_go_at(Piece piece);
  void freeze(std::size_t worker);
  void thaw();
  void go(std::size_t worker) { workers_[worker].go(); }
  std::optional<Fault> next_fault();
  Clock::duration patience() const;

  const std::string lock_;
  const Plan& plan_;
  Chance& chance_;
  Ledger& ledger_;
  const StartWorker start_;
  std::vector<WorkerProcess> workers_;
  std::vector<Entered> entered_;  // by worker
  Millis ttl_{0};
  bool calm_ = false;

  std::optional<std::size_t> victim_;
  Step step_ = Step::waiting_for_successor;
  bool write_first_ = false;  // the successor writes before the holder is thawed
  bool full_ = false;         // a successor has entered while the holder was frozen
  std::size_t successor_ = 0;
  std::int64_t successor_token_ = 0;  // with which it entered then
  Clock::time_point since_{};
  std::int64_t frozen_at_ = 0;           // on the boot clock
  std::deque<std::size_t> at_the_door_;  // have entered, and wait to be let on
};

}  // namespace leasehold::drill
