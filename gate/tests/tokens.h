// Names and tokens for tests.
#pragma once

#include "fence/mark.h"
#include "leasehold/token.h"

namespace leasehold::gate {

inline ResourceName name(std::string_view text) {
  return ResourceName::parse(text).value();
}

inline Lineage test_lineage(std::uint8_t store = 1, std::string_view lock = "invoice/1234") {
  StoreId::Bytes bytes{};
  bytes.back() = store;
  return Lineage{StoreId(bytes), LockName::parse(lock).value()};
}

inline Token test_token(std::int64_t number, std::uint8_t request,
                        const Lineage& lineage = test_lineage()) {
  RequestId::Bytes bytes{};
  bytes.front() = request;
  return Token{TokenNumber::of(number).value(), lineage, RequestId(bytes)};
}

inline fence::Mark held_by(const Token& token, std::int64_t sequence = 0) {
  return {.lineage = token.lineage,
          .holder = fence::Mark::Holder{token.number, token.request, sequence}};
}

}  // namespace leasehold::gate
