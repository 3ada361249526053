#include "bench/compare.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

#include "bench/report.h"
#include "leasehold/client.h"
#include "leasehold/process/child.h"

namespace leasehold::bench {
namespace {

using Clock = std::chrono::steady_clock;

std::chrono::duration<double, std::micro> processor_time() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto micros = [](timeval time) {
    return 1e6 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec);
  };
  return std::chrono::duration<double, std::micro>(micros(used.ru_utime) + micros(used.ru_stime));
}

struct Turn {
  double done;
  double processor_micros;  // all of them
};

// Workers of one side, connected once, working only in their side's turns.
class Workers {
 public:
  virtual ~Workers() = default;
  virtual Turn take_turn(std::chrono::milliseconds turn) = 0;
  // How many microseconds each thing took that was done. After the last turn.
  virtual std::vector<double> took() = 0;
};

class Threads final : public Workers {
 public:
  Threads(const Side& side, int size)
      : start_(size + 1), end_(size + 1), took_(static_cast<std::size_t>(size)) {
    for (std::vector<double>& took : took_) {
      const int worker = static_cast<int>(&took - took_.data());
      threads_.emplace_back([this, &side, &took, worker] { work(side.worker(worker), took); });
    }
  }
  ~Threads() override {
    over_ = true;
    start_.arrive_and_wait();
  }

  Turn take_turn(std::chrono::milliseconds turn) override {
    done_ = 0;
    turn_over_ = false;
    const auto used = processor_time();
    start_.arrive_and_wait();
    std::this_thread::sleep_for(turn);
    turn_over_ = true;
    end_.arrive_and_wait();
    return {static_cast<double>(done_), (processor_time() - used).count()};
  }

  std::vector<double> took() override {
    std::vector<double> all;
    for (const std::vector<double>& took : took_) all.insert(all.end(), took.begin(), took.end());
    return all;
  }

 private:
  void work(const std::function<bool()>& once, std::vector<double>& took) {
    once();  // what is only done the first time is not measured
    for (;;) {
      start_.arrive_and_wait();
      if (over_) return;
      for (auto began = Clock::now(); !turn_over_;) {
        if (once()) ++done_;
        const auto ended = Clock::now();
        took.push_back(std::chrono::duration<double, std::micro>(ended - began).count());
        began = ended;
      }
      end_.arrive_and_wait();
    }
  }

  std::barrier<> start_;
  std::barrier<> end_;
  std::atomic<bool> over_ = false;
  std::atomic<bool> turn_over_ = false;
  std::atomic<long> done_ = 0;
  std::vector<std::vector<double>> took_;  // by each worker
  std::vector<std::jthread> threads_;
};

class Processes final : public Workers {
 public:
  Processes(const Side& side, int size) {
    process::Command command{.argv = side.process, .in = process::Piped{}, .out = process::Piped{}};
    command.parent_death_signal = SIGKILL;
    for (int i = 0; i < size; ++i) children_.push_back(must(process::Child::start(command)));
  }

  Turn take_turn(std::chrono::milliseconds turn) override {
    const std::string millis = std::to_string(turn.count()) + "\n";
    for (process::Child& child : children_) process::write_all(child.in().get(), millis);
    Turn all{};
    for (process::Child& child : children_) {
      std::istringstream line(process::read_until(child.out().get(), "\n"));
      Turn one{};
      if (!(line >> one.done >> one.processor_micros)) stop("a process has died");
      all.done += one.done;
      all.processor_micros += one.processor_micros;
    }
    return all;
  }

  std::vector<double> took() override {
    std::vector<double> all;
    for (process::Child& child : children_) {
      child.in().reset();
      std::istringstream numbers(process::read_all(child.out().get()));
      for (double micros = 0; numbers >> micros;) all.push_back(micros);
    }
    return all;
  }

 private:
  std::vector<process::Child> children_;
};

// How a side does, turn by turn.
class Team {
 public:
  Team(const Side& side, const Effort& effort) {
    const int size = side.in_flight.value_or(effort.in_flight);
    if (side.process.empty()) {
      workers_ = std::make_unique<Threads>(side, size);
    } else {
      workers_ = std::make_unique<Processes>(side, size);
    }
  }

  void take_turn(std::chrono::milliseconds turn) {
    const auto began = Clock::now();
    const Turn taken = workers_->take_turn(turn);
    per_second_.push_back(taken.done / std::chrono::duration<double>(Clock::now() - began).count());
    processor_micros_.push_back(taken.processor_micros / std::max(taken.done, 1.0));
  }

  double last_rate() const { return per_second_.back(); }
  double rate() { return percentile(per_second_, 0.5); }
  // Of its processes, for each thing that was done.
  double processor_micros() { return percentile(processor_micros_, 0.5); }
  double p99_micros() {
    auto all = workers_->took();
    return percentile(all, 0.99);
  }

 private:
  std::unique_ptr<Workers> workers_;
  std::vector<double> per_second_;
  std::vector<double> processor_micros_;
};

void report_side(const std::string& what, Team& team) {
  report({what, format(team.rate(), "%.0f per s"), ""});
  report({"    processor time each; p99",
          format(team.processor_micros(), "%.1f us; ") + format(team.p99_micros(), "%.0f us"), ""});
}

}  // namespace

void compare(const std::string& what, const Side& ours, const Side& theirs, const Effort& effort,
             std::optional<double> at_least) {
  Team our_team(ours, effort);
  Team their_team(theirs, effort);
  std::vector<double> ratios;
  for (int i = 0; i < effort.turns; ++i) {
    our_team.take_turn(effort.turn);
    their_team.take_turn(effort.turn);
    ratios.push_back(our_team.last_rate() / their_team.last_rate());
  }
  const double ratio = percentile(ratios, 0.5);
  report_side(what, our_team);
  report_side("  " + theirs.name, their_team);
  report({"  ratio", format(ratio, "%.2f x"), at_least ? format(*at_least, ">= %.2f x") : "",
          !at_least || ratio >= *at_least});
}

int take_turns(const Side& side) {
  Threads only(side, 1);
  for (std::int64_t millis = 0; std::cin >> millis;) {
    const Turn turn = only.take_turn(std::chrono::milliseconds(millis));
    std::cout << turn.done << " " << turn.processor_micros << std::endl;
  }
  for (const double micros : only.took()) std::cout << micros << " ";
  return 0;
}

Side one_client(const std::string& url) {
  auto client = std::make_shared<Client>(must(connect(url)));
  return {"Leasehold", [client](int worker) {
            const LockName lock = must(LockName::parse("ours-" + std::to_string(worker)));
            return [client, lock] {
              auto lease = must(client->acquire(lock));
              if (must(lease.release()) != ReleaseOutcome::released) stop("a lease was lost");
              return true;
            };
          }};
}

Side waiting_clients(const std::string& url) {
  auto baton = std::make_shared<Baton>();
  return {"Leasehold", [url, baton](int worker) {
            auto client = std::make_shared<Client>(must(connect(url)));
            const LockName lock = must(LockName::parse("ours-shared"));
            return [client, lock, baton, worker] {
              auto lease = must(client->acquire(lock, {.wait = std::chrono::minutes(5)}));
              const bool handed_over = baton->taken_by(worker);
              if (must(lease.release()) != ReleaseOutcome::released) stop("a lease was lost");
              return handed_over;
            };
          }};
}

void pause_before_polling() {
  thread_local std::minstd_rand random{std::random_device{}()};
  std::this_thread::sleep_for(std::chrono::microseconds(1000 + random() % 9000));
}

Effort effort_of(int argc, char** argv, int in_flight) {
  Effort effort{.in_flight = in_flight};
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") != 0) continue;
    effort.turns = 7;
    effort.turn = std::chrono::milliseconds(100);
  }
  return effort;
}

}  // namespace leasehold::bench
