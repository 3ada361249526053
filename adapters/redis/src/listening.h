// How the connections behave on which this client only listens.
#pragma once

#include <chrono>
#include <initializer_list>
#include <string>
#include <string_view>

#include "leasehold/resp/command.h"
#include "leasehold/time.h"

namespace leasehold::redis {

inline constexpr Millis kConnectTimeout = std::chrono::seconds(5);
inline constexpr Millis kFirstPause{50};
inline constexpr Millis kLongestPause = std::chrono::seconds(2);
// A connection that is silent for so long is asked whether it lives.
inline constexpr Millis kSilence = std::chrono::seconds(10);

inline std::string command(std::initializer_list<std::string_view> words) {
  std::string text;
  resp::append_command(text, words);
  return text;
}

}  // namespace leasehold::redis
