#include "leasehold/token.h"

#include "kit/text/number.h"
#include "kit/try.h"

namespace leasehold {

Result<TokenNumber> TokenNumber::of(std::int64_t value) {
  if (value < 1) {
    return fail(ErrorCode::invalid, "token number is " + std::to_string(value) +
                                        "; it must be from 1 to 9223372036854775807");
  }
  return TokenNumber(value);
}

Result<TokenNumber> TokenNumber::parse(std::string_view text) {
  const auto value = kit::digits_in<std::int64_t>(text);
  if (!value) {
    return fail(ErrorCode::invalid, "token number is '" + std::string(text.substr(0, 40)) +
                                        "'; it must be a whole number from 1 to "
                                        "9223372036854775807");
  }
  return of(*value);
}

Result<Lineage> Lineage::parse(std::string_view text) {
  constexpr std::size_t hex_digits = 32;
  const auto store = StoreId::from_hex(text.substr(0, hex_digits));
  if (!store || text.size() <= hex_digits || text[hex_digits] != '/') {
    return fail(ErrorCode::invalid,
                "lineage must be 32 hexadecimal digits, a slash and the lock name");
  }
  auto lock = TRY(LockName::parse(text.substr(hex_digits + 1)));
  return Lineage{*store, std::move(lock)};
}

Result<Token> Token::parse(std::string_view number, std::string_view lineage,
                           std::string_view request) {
  auto parsed_number = TRY(TokenNumber::parse(number));
  auto parsed_lineage = TRY(Lineage::parse(lineage));
  const auto parsed_request = RequestId::from_hex(request);
  if (!parsed_request) {
    return fail(ErrorCode::invalid, "request id must be 32 hexadecimal digits");
  }
  return Token{parsed_number, std::move(parsed_lineage), *parsed_request};
}

}  // namespace leasehold
