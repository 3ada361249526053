// Values under keys, for compare_and_set(): what the Cell and Values of etcd, ZooKeeper and Redis
// have in common.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "leasehold/compare_and_set.h"
#include "leasehold/error.h"

namespace leasehold {

// What an adapter implements for the classes below, which have the contracts. Thread safe.
template <class ASeen>
class KeyedStore {
 public:
  using Seen = ASeen;  // its `value` is an optional string: nothing, if there is no such key

  virtual ~KeyedStore() = default;
  [[nodiscard]] virtual Status check(const std::string& key) const = 0;
  [[nodiscard]] virtual Result<Seen> read(const std::string& key) = 0;
  [[nodiscard]] virtual Result<bool> write(const std::string& key, const Seen& seen,
                                           const std::string& value) = 0;
};

// One key. A small value that may be copied; thread safe. Calls block, up to five seconds each.
template <class ASeen>
class KeyedCell {
 public:
  using Value = std::string;  // any bytes
  using Seen = ASeen;

  KeyedCell(std::shared_ptr<KeyedStore<Seen>> store, std::string key)
      : store_(std::move(store)), key_(std::move(key)) {}

  // Fails with `unavailable`.
  [[nodiscard]] Result<Seen> read() const { return store_->read(key_); }

  // True: written. False: somebody else has written, created or deleted it since; nothing has
  // changed. Fails with `invalid` or `unavailable` if nothing was written, also because the store
  // does not accept it, and `outcome_unknown` if the reply was lost.
  [[nodiscard]] Result<bool> write(const Seen& seen, const std::string& value) const {
    return store_->write(key_, seen, value);
  }

 private:
  std::shared_ptr<KeyedStore<Seen>> store_;
  std::string key_;
};

// The values of one server or cluster. Thread safe; moved and copied like a pointer. A forked child
// must open its own.
template <class Seen>
class KeyedValues {
 public:
  explicit KeyedValues(std::shared_ptr<KeyedStore<Seen>> store) : store_(std::move(store)) {}

  // Fails with `invalid` for a key that the store does not take, or that is Leasehold's own.
  [[nodiscard]] Result<KeyedCell<Seen>> at(std::string_view key) const {
    std::string own(key);
    if (auto good = store_->check(own); !good) return fail(std::move(good.error()));
    return KeyedCell<Seen>(store_, std::move(own));
  }

 private:
  std::shared_ptr<KeyedStore<Seen>> store_;
};

}  // namespace leasehold
