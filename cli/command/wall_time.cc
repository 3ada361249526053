#include "cli/command/wall_time.h"

#include <cstdio>
#include <ctime>

namespace leasehold::cli {

std::string rfc3339(std::chrono::system_clock::time_point moment) {
  using namespace std::chrono;
  const auto whole = floor<seconds>(moment);
  const std::time_t time = system_clock::to_time_t(whole);
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", utc.tm_year + 1900,
                utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                static_cast<int>(duration_cast<milliseconds>(moment - whole).count()));
  return text;
}

}  // namespace leasehold::cli
