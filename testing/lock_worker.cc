// Another process that takes locks, told what to do on its standard input and answering by lines.
//
//   lock_worker URL hold NAME TTL_MS WAIT_MS [MODE]
//     takes it (MODE: Mode::code()), printing "asking", then "held TOKEN" (0: none) or "error
//     CODE"; then obeys "release" and "state"; prints "lost" on loss
//   lock_worker URL count NAME FILE TIMES
//     raises the number in FILE under the lock, TIMES times, printing each token
#include <chrono>
#include <fstream>
#include <iostream>
#include <mutex>
#include <string>

#include "leasehold/client.h"
#include "leasehold/stores.h"
#include "testing/held.h"

namespace {

using namespace leasehold;

void say(const std::string& line) {
  static std::mutex mutex;  // loss is told from another thread
  const std::lock_guard lock(mutex);
  std::cout << line << std::endl;
}

int failed(const Error& error) {
  say("error " + std::string(to_string(error.code)) + " " + error.message);
  return 1;
}

int hold(Client& client, const std::string& name, Millis ttl, Millis wait, Mode mode) {
  say("asking");
  auto held = testing::take(client, name, {.ttl = ttl, .wait = wait, .mode = mode});
  if (!held) return failed(held.error());
  Lease& lease = held->lease;
  const std::stop_callback on_loss(lease.lost(), [] { say("lost"); });
  say("held " + std::to_string(held->number()));
  for (std::string order; std::getline(std::cin, order);) {
    if (order == "state") {
      say(std::string(to_string(lease.state())));
    } else if (order == "release") {
      const auto outcome = lease.release();
      if (!outcome) return failed(outcome.error());
      say(*outcome == ReleaseOutcome::released ? "released" : "too_late");
    }
  }
  return 0;
}

int count(Client& client, const std::string& name, const std::string& file, int times) {
  for (int i = 0; i < times; ++i) {
    auto held = testing::take(client, name,
                              {.ttl = std::chrono::minutes(1), .wait = std::chrono::minutes(5)});
    if (!held) return failed(held.error());
    long number = 0;
    std::ifstream(file) >> number;
    std::ofstream(file, std::ios::trunc) << number + 1;  // two at once would lose one
    std::ofstream(file + ".tokens", std::ios::app) << held->number() << "\n";
    if (auto ok = held->lease.release(); !ok) return failed(ok.error());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6 && argc != 7) return 64;
  register_stores();
  auto client = connect(argv[1]);
  if (!client) return failed(client.error());
  const std::string order = argv[2];
  if (order == "hold") {
    const auto mode = argc == 7 ? Mode::from_code(std::stol(argv[6])) : Mode::exclusive();
    return hold(*client, argv[3], Millis(std::stol(argv[4])), Millis(std::stol(argv[5])),
                mode.value());
  }
  if (order == "count") return count(*client, argv[3], argv[4], std::stoi(argv[5]));
  return 64;
}
