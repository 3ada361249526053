// The calls of a batch that one statement can decide.
#pragma once

#include <span>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "array.h"
#include "connection.h"
#include "store_base/blocking_store.h"

namespace leasehold::postgres {

// Exclusive acquires and plain releases, the first of each lock. What is not among them, or gets no
// answer, goes on its own.
class Together {
 public:
  Together(std::span<const AnyAsked> batch, Doubts& doubts);

  // Whether it is worth a statement.
  bool is_several() const { return acquires_.size() + releases_.size() > 1; }

  static constexpr const char* kSql =
      "SELECT o_place, o_token, o_store FROM @S.acquire_many($1, $2, $3, $4, $5)"
      " UNION ALL SELECT o_place, NULL, NULL FROM @S.release_many($6, $7)";
  bool is_empty() const { return acquires_.empty() && releases_.empty(); }
  struct Arguments {
    TextArray locks, requests, owners, ttls, notes;
    TextArray released_locks, released_requests;
  };
  // Of those that begin: who has gone since is not among them.
  Arguments begin();

  void answer(const Rows& rows);
  // Nobody knows whether it was done.
  void answer(const Error& error);

 private:
  void add(AskedAcquire& asked);
  void add(AskedRelease& asked);
  void add(AskedRenew& asked);

  Doubts& doubts_;
  std::unordered_set<std::string_view> locks_;
  std::vector<AskedAcquire*> acquires_;
  std::vector<AskedRelease*> releases_;
};

}  // namespace leasehold::postgres
