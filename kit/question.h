// Errors of calls that change nothing.
#pragma once

#include <utility>

#include "leasehold/error.h"

namespace leasehold::kit {

// It is all the same whether a question was asked: its lost answer is `unavailable`.
template <class T>
Result<T> question(Result<T> answer) {
  if (!answer && answer.error().code == ErrorCode::outcome_unknown) {
    answer.error().code = ErrorCode::unavailable;
  }
  return answer;
}

}  // namespace leasehold::kit
