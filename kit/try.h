// Passing errors on.
#pragma once

#include <type_traits>
#include <utility>

#include "leasehold/error.h"

namespace leasehold::kit {

template <class T>
T taken(Result<T>&& result) {
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}
template <class T>
T taken(const Result<T>& result) {
  if constexpr (!std::is_void_v<T>) return *result;
}

}  // namespace leasehold::kit

#define LEASEHOLD_JOINED(a, b) a##b
#define LEASEHOLD_NAMED(a, b) LEASEHOLD_JOINED(a, b)
#define LEASEHOLD_TRY(result, ...)                                                          \
  __extension__({                                                                           \
    auto&& result = (__VA_ARGS__);                                                          \
    if (!result) return ::leasehold::fail(static_cast<decltype(result)&&>(result).error()); \
    ::leasehold::kit::taken(static_cast<decltype(result)&&>(result));                       \
  })

// The value of a Result. If it has none, the function around it returns its error; so that must
// return a Result too, and no coroutine may use it.
#define TRY(...) LEASEHOLD_TRY(LEASEHOLD_NAMED(leasehold_result_, __COUNTER__), __VA_ARGS__)
