// Takes a fenced lease on a lock in an SQLite file, and prints its token: larger at each run.
#include <chrono>
#include <iostream>

#include "leasehold/client.h"
#include "leasehold/sqlite/adapter.h"

int main(int argc, char** argv) {
  using std::chrono::seconds;
  if (argc != 2) {
    std::cerr << "usage: consumer FILE\n";
    return 2;
  }
  leasehold::Registry::standard().add(leasehold::sqlite::adapter());

  auto locks = leasehold::connect(std::string("sqlite:") + argv[1]);
  if (!locks) {
    std::cerr << to_string(locks.error()) << '\n';
    return 1;
  }
  auto lease = locks->acquire_fenced("example", {.ttl = seconds(30), .wait = seconds(5)});
  if (!lease) {
    std::cerr << to_string(lease.error()) << '\n';
    return 1;
  }
  std::cout << lease->token().number.value() << '\n';

  auto released = lease->release();
  if (!released || *released != leasehold::ReleaseOutcome::released) {
    std::cerr << "the lease ended before the work was done\n";
    return 1;
  }
  return 0;
}
