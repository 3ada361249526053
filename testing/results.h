// Asking in a test what a call gave, with its own words where it is not what was wanted.
#pragma once

#include <gtest/gtest.h>

#include "leasehold/error.h"

namespace leasehold::testing {

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
