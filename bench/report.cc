#include "bench/report.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>

namespace leasehold::bench {

void report(const Row& row) {
  const std::string verdict = row.target.empty() ? "" : row.ok ? "ok" : "short";
  const std::string line =
      row.what + "\t" + row.measured + "\t" + (row.target.empty() ? "-" : row.target);
  std::cout << row.what << ": " << row.measured
            << (row.target.empty() ? "" : " (target " + row.target + ": " + verdict + ")")
            << std::endl;
  if (const char* rows = std::getenv("LEASEHOLD_BENCH_ROWS"); rows != nullptr) {
    std::ofstream(rows, std::ios::app) << line << "\t" << verdict << "\n";
  }
}

double percentile(std::vector<double>& values, double fraction) {
  if (values.empty()) stop("nothing was measured");
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(last * fraction + 0.5)];
}

std::string format(double value, const char* how) {
  char text[64];
  std::snprintf(text, sizeof text, how, value);
  return text;
}

void stop(const std::string& message) {
  std::cerr << "bench: " << message << std::endl;
  std::exit(1);
}

}  // namespace leasehold::bench
