#include "bench/compare.h"

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

// Workers of one side, connected once, working only in their side's turns.
class Team {
 public:
  Team(const Side& side, int size) : start_(size + 1), end_(size + 1) {
    for (int i = 0; i < size; ++i) {
      threads_.emplace_back([this, &side, i] {
        const auto work = side.worker(i);
        work();  // what is only done the first time is not measured
        for (;;) {
          start_.arrive_and_wait();
          if (over_) return;
          while (!turn_over_) {
            if (work()) ++done_;
          }
          end_.arrive_and_wait();
        }
      });
    }
  }
  ~Team() {
    over_ = true;
    start_.arrive_and_wait();
  }

  double per_second(std::chrono::milliseconds turn) {
    done_ = 0;
    turn_over_ = false;
    const auto began = Clock::now();
    start_.arrive_and_wait();
    std::this_thread::sleep_for(turn);
    turn_over_ = true;
    end_.arrive_and_wait();
    return static_cast<double>(done_) / std::chrono::duration<double>(Clock::now() - began).count();
  }

 private:
  std::barrier<> start_;
  std::barrier<> end_;
  std::atomic<bool> over_ = false;
  std::atomic<bool> turn_over_ = false;
  std::atomic<long> done_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace

void compare(const std::string& what, const Side& ours, const Side& theirs, const Effort& effort,
             std::optional<double> at_least) {
  Team our_team(ours, effort.in_flight);
  Team their_team(theirs, effort.in_flight);
  std::vector<double> our_rates;
  std::vector<double> their_rates;
  std::vector<double> ratios;
  for (int i = 0; i < effort.turns; ++i) {
    our_rates.push_back(our_team.per_second(effort.turn));
    their_rates.push_back(their_team.per_second(effort.turn));
    ratios.push_back(our_rates.back() / their_rates.back());
  }
  const double ratio = percentile(ratios, 0.5);
  report({what, format(percentile(our_rates, 0.5), "%.0f per s"), ""});
  report({"  " + theirs.name, format(percentile(their_rates, 0.5), "%.0f per s"), ""});
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
