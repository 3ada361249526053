// Moments of the wall clock, as people and other programs write them.
#pragma once

#include <chrono>
#include <string>

namespace leasehold::cli {

// RFC 3339 in UTC, with milliseconds: "2026-11-17T23:34:55.123Z".
std::string rfc3339(std::chrono::system_clock::time_point moment);

}  // namespace leasehold::cli
