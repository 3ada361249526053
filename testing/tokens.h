// Tokens as a test wants them: a number, and a digit for whose it is.
#pragma once

#include <string>

#include "leasehold/token.h"

namespace leasehold::testing {

inline RequestId request_of(char digit) {
  return RequestId::from_hex(std::string(32, digit)).value();
}

inline Lineage lineage_of(char digit = 'a') {
  return Lineage::parse(std::string(32, digit) + "/invoice/1234").value();
}

inline Token token_of(std::int64_t number, char request, char store = 'a') {
  return Token{TokenNumber::of(number).value(), lineage_of(store), request_of(request)};
}

}  // namespace leasehold::testing
