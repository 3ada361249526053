// Bytes on their way to the server and back: as hexadecimal digits, because a parameter ends at a
// zero byte, and text must be what the database's encoding knows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "leasehold/error.h"
#include "leasehold/id.h"

namespace leasehold::postgres {

// For decode($1, 'hex').
inline std::string hex_of(std::string_view bytes) {
  return leasehold::detail::to_hex(
      {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

// Of what encode(…, 'hex') gave.
[[nodiscard]] inline Result<std::string> bytes_of(std::string_view hex) {
  std::string bytes(hex.size() / 2, '\0');
  if (leasehold::detail::from_hex(hex,
                                  {reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()})) {
    return bytes;
  }
  return fail(ErrorCode::internal, "the server's hexadecimal digits are none");
}

}  // namespace leasehold::postgres
