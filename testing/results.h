// Checking in a test what a call returned; a failure shows the error's own words.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "leasehold/error.h"

namespace leasehold::testing {

// Every byte there is, and what some encodings would take for one.
inline std::string any_bytes() {
  std::string bytes = "\\x41";
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  return bytes;
}

template <class T>
::testing::AssertionResult good(const Result<T>& result) {
  if (result) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << to_string(result.error());
}

template <class T>
::testing::AssertionResult bad(const Result<T>& result, ErrorCode code) {
  if (result) return ::testing::AssertionFailure() << "it succeeded";
  if (result.error().code == code) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << to_string(result.error());
}

}  // namespace leasehold::testing
