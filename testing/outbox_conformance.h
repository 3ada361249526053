// What every outbox must do, and what a relay does with it. An outbox plugs in with an
// OutboxUnderTest and one line:
//
//   INSTANTIATE_TEST_SUITE_P(Sqlite, OutboxConformance, ::testing::Values(make));
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "leasehold/client.h"
#include "leasehold/relay.h"
#include "testing/memory_store.h"

namespace leasehold::testing {

// A database of one test, without an outbox at first.
class OutboxUnderTest {
 public:
  virtual ~OutboxUnderTest() = default;

  virtual std::unique_ptr<Outbox> open() = 0;

  // Puts the entries in one transaction, by the C++ interface, and commits or rolls back.
  virtual Status put(const std::vector<OutboxEntry>& entries, bool commit) = 0;
  // The same outside any transaction.
  virtual Status put_alone(const OutboxEntry& entry) = 0;
  // One row by plain SQL, committed. Empty, or the database's own words.
  virtual std::string put_by_sql(const std::string& key, const std::string& payload) = 0;
  // Marks every message as delivered, by plain SQL.
  virtual std::string deliver_all_by_sql() = 0;
  // How many relays were refused.
  virtual std::int64_t refused() = 0;
};

using MakeOutbox = std::function<std::unique_ptr<OutboxUnderTest>()>;

class OutboxConformance : public ::testing::TestWithParam<MakeOutbox> {
 protected:
  void SetUp() override;

  FencedLease lease();
  void put(const std::string& key, const std::string& payload);
  // Key and payload of what waits: "a:1 a:2".
  std::string waiting();
  OutboxStatus status();

  std::unique_ptr<OutboxUnderTest> database_;
  std::unique_ptr<Outbox> outbox_;
  MemoryStore* store_ = nullptr;  // of client_
  std::unique_ptr<Client> client_;
};

}  // namespace leasehold::testing
