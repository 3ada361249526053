// How long a lease lasts without renewal.
#pragma once

#include <compare>

#include "leasehold/error.h"
#include "leasehold/time.h"

namespace leasehold {

class Ttl {
 public:
  static constexpr Millis kMin{100};
  static constexpr Millis kMax = std::chrono::hours(24);

  // Fails with `invalid` outside 100 ms to 24 h.
  [[nodiscard]] static Result<Ttl> of(Millis length);

  Millis length() const { return length_; }
  auto operator<=>(const Ttl&) const = default;

 private:
  explicit Ttl(Millis length) : length_(length) {}
  Millis length_;
};

}  // namespace leasehold
