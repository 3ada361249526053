// 128-bit identities. Each kind is a type of its own, so that two kinds cannot be swapped.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "leasehold/random.h"

namespace leasehold {

namespace detail {
std::string to_hex(std::span<const std::uint8_t> bytes);
bool from_hex(std::string_view text, std::span<std::uint8_t> bytes);
}  // namespace detail

template <class Kind>
class Id128 {
 public:
  using Bytes = std::array<std::uint8_t, 16>;

  explicit Id128(const Bytes& bytes) : bytes_(bytes) {}

  static Id128 random(Random& random) {
    const auto halves = random.next_two();
    Bytes bytes;
    std::memcpy(bytes.data(), halves.data(), bytes.size());
    return Id128(bytes);
  }
  // Exactly 32 hexadecimal digits, else nothing.
  static std::optional<Id128> from_hex(std::string_view text) {
    Bytes bytes;
    if (!detail::from_hex(text, bytes)) return std::nullopt;
    return Id128(bytes);
  }
  // Exactly 16 bytes, else nothing.
  static std::optional<Id128> from_bytes(std::span<const std::uint8_t> raw) {
    if (raw.size() != 16) return std::nullopt;
    Bytes bytes;
    std::memcpy(bytes.data(), raw.data(), bytes.size());
    return Id128(bytes);
  }

  const Bytes& bytes() const { return bytes_; }
  std::string hex() const { return detail::to_hex(bytes_); }

  auto operator<=>(const Id128&) const = default;

 private:
  Bytes bytes_;
};

// Signs one acquisition. A retry carries the same id; renew and release touch only this id's grant.
using RequestId = Id128<struct RequestKind>;

// Names one life of a store: made at first use, rotated by the operator after a restore.
using StoreId = Id128<struct StoreKind>;

}  // namespace leasehold

template <class Kind>
struct std::hash<leasehold::Id128<Kind>> {
  std::size_t operator()(const leasehold::Id128<Kind>& id) const noexcept {
    std::size_t value;  // the bits are random already
    std::memcpy(&value, id.bytes().data(), sizeof value);
    return value;
  }
};
