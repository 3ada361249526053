// The proof that a holder carries to the resource.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "leasehold/error.h"
#include "leasehold/id.h"
#include "leasehold/name.h"

namespace leasehold {

// A positive 63-bit number, strictly larger at each grant of a lock.
class TokenNumber {
 public:
  // Fails with `invalid` unless value >= 1.
  [[nodiscard]] static Result<TokenNumber> of(std::int64_t value);
  // Decimal digits only: no sign, no space, no fraction; fails with `invalid`.
  [[nodiscard]] static Result<TokenNumber> parse(std::string_view text);

  std::int64_t value() const { return value_; }
  auto operator<=>(const TokenNumber&) const = default;

 private:
  explicit TokenNumber(std::int64_t value) : value_(value) {}
  std::int64_t value_;
};

// Which counter a number came from. Numbers of different lineages cannot be compared: a fence
// refuses a foreign lineage instead.
struct Lineage {
  StoreId store;
  LockName lock;

  // "<32 hex digits>/<lock name>"; parse fails with `invalid`.
  std::string str() const { return store.hex() + "/" + lock.str(); }
  [[nodiscard]] static Result<Lineage> parse(std::string_view text);
  auto operator<=>(const Lineage&) const = default;
};

// What every fence takes: the number, whose counter it is, and whose grant.
// Deliberately without an order: compare numbers at the fence, after the lineage.
struct Token {
  TokenNumber number;
  Lineage lineage;
  RequestId request;

  // The three strings of LEASEHOLD_TOKEN, LEASEHOLD_LINEAGE and LEASEHOLD_REQUEST; fails with
  // `invalid`, naming the one that is wrong.
  [[nodiscard]] static Result<Token> parse(std::string_view number, std::string_view lineage,
                                           std::string_view request);
  bool operator==(const Token&) const = default;
};

}  // namespace leasehold
