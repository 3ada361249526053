// What every store must do. A store plugs in with a StoreUnderTest and one line:
//
//   INSTANTIATE_TEST_SUITE_P(Sqlite, StoreConformance, ::testing::Values(StoreCase{"file", make}),
//                            name_of_store_case);
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "leasehold/client.h"
#include "leasehold/store.h"
#include "rig/temp_folder.h"
#include "testing/faulty_store.h"

namespace leasehold::testing {

// The server or file of one test, with no lock taken yet.
class StoreUnderTest {
 public:
  virtual ~StoreUnderTest() = default;

  // For other processes, which connect() to it.
  virtual std::string url() = 0;

  // A new, independent connection; never null.
  virtual std::unique_ptr<Store> open() = 0;

  // Where a lease of half a minute lasts that long, although nobody renews it.
  virtual std::unique_ptr<Store> open_patient() { return open(); }

  // A connection like open()'s, but its calls are answered as answer_after() says.
  virtual std::unique_ptr<Store> open_slow() = 0;
  // From now on only after this time; zero: at once.
  virtual void answer_after(Millis time) = 0;

  // Ends whatever keeps the locks and starts it again: kills and starts a server, drops caches.
  // Called while no connection is open.
  virtual void restart() = 0;

  // What time does to this lock, which is free: the store forgets it. Nothing is to be done where
  // that comes with its end.
  virtual void sweep([[maybe_unused]] const std::string& lock) {}

  // So that not thousands can wait.
  virtual bool has_session_per_waiter() const { return false; }
  // How many may wait at once.
  virtual int crowd() const { return 10'000; }
};

struct StoreCase {
  std::string name;
  std::function<std::unique_ptr<StoreUnderTest>()> make;
};
inline std::string name_of_store_case(const ::testing::TestParamInfo<StoreCase>& info) {
  return info.param.name;
}
inline std::ostream& operator<<(std::ostream& out, const StoreCase& it) {
  return out << it.name;
}

// So many threads take "job" so often each, and work on what only the lock protects.
void expect_threads_exclude_each_other(Client& client, int threads, int times);

class StoreConformance : public ::testing::TestWithParam<StoreCase> {
 protected:
  StoreConformance() : store(GetParam().make()) {}

  Client client() { return Client(store->open()); }
  Client faulty_client(const std::shared_ptr<Faults>& faults) {
    return Client(with_faults(store->open(), faults));
  }
  // Whether the store gives tokens that are worth something.
  bool fenced();
  void expect_larger(std::int64_t later, std::int64_t earlier);
  LockStatus status(Client& client, const std::string& lock);
  // Returns when this many wait for the lock.
  void wait_for_waiters(Client& client, const std::string& lock, std::size_t count);

  rig::TempFolder folder;
  std::unique_ptr<StoreUnderTest> store;
};

}  // namespace leasehold::testing
