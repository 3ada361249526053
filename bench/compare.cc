#include "bench/compare.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "bench/report.h"
#include "leasehold/client.h"

namespace leasehold::bench {
namespace {

using Clock = std::chrono::steady_clock;

std::chrono::duration<double, std::micro> processor_time() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto micros = [](timeval time) { return 1e6 * time.tv_sec + time.tv_usec; };
  return std::chrono::duration<double, std::micro>(micros(used.ru_utime) + micros(used.ru_stime));
}

// Workers of one side, connected once, working only in their side's turns.
class Team {
 public:
  Team(const Side& side, int size)
      : start_(size + 1), end_(size + 1), took_(static_cast<std::size_t>(size)) {
    for (std::vector<double>& took : took_) {
      const int worker = static_cast<int>(&took - took_.data());
      threads_.emplace_back([this, &side, &took, worker] { work(side.worker(worker), took); });
    }
  }
  ~Team() {
    over_ = true;
    start_.arrive_and_wait();
  }

  void take_turn(std::chrono::milliseconds turn) {
    done_ = 0;
    turn_over_ = false;
    const auto began = Clock::now();
    const auto used = processor_time();
    start_.arrive_and_wait();
    std::this_thread::sleep_for(turn);
    turn_over_ = true;
    end_.arrive_and_wait();
    const auto done = static_cast<double>(done_);
    per_second_.push_back(done / std::chrono::duration<double>(Clock::now() - began).count());
    processor_micros_.push_back((processor_time() - used).count() / std::max(done, 1.0));
  }

  double last_rate() const { return per_second_.back(); }
  double rate() { return percentile(per_second_, 0.5); }
  // Of this process, for each that was done.
  double processor_micros() { return percentile(processor_micros_, 0.5); }
  double p99_micros() const {
    std::vector<double> all;
    for (const std::vector<double>& took : took_) all.insert(all.end(), took.begin(), took.end());
    return percentile(all, 0.99);
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
  std::vector<double> per_second_;
  std::vector<double> processor_micros_;
  std::vector<std::vector<double>> took_;  // by each worker, in microseconds
  std::vector<std::jthread> threads_;
};

void report_side(const std::string& what, Team& team) {
  report({what, format(team.rate(), "%.0f per s"), ""});
  report({"    processor time each; p99",
          format(team.processor_micros(), "%.1f us; ") + format(team.p99_micros(), "%.0f us"), ""});
}

}  // namespace

void compare(const std::string& what, const Side& ours, const Side& theirs, const Effort& effort,
             std::optional<double> at_least) {
  Team our_team(ours, effort.in_flight);
  Team their_team(theirs, effort.in_flight);
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
