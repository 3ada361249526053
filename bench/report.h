// One row of the table that `make bench` prints at the end.
#pragma once

#include <string>
#include <vector>

namespace leasehold::bench {

struct Row {
  std::string what;
  std::string measured;
  std::string target;  // empty: for information
  bool ok = true;
};

// Prints the row, and appends it to the file $LEASEHOLD_BENCH_ROWS if that is set.
void report(const Row& row);

// The value below which `fraction` of the values are. Sorts them.
double percentile(std::vector<double>& values, double fraction);

// printf for one number: format(1.25, "%.1f ms").
std::string format(double value, const char* how);

// Ends the program with the message: there is nothing to measure then.
[[noreturn]] void stop(const std::string& message);

template <class Result>
auto must(Result result) {
  if (!result) stop(result.error().message);
  return std::move(*result);
}

}  // namespace leasehold::bench
