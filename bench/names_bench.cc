// Whether names cost nothing: each lock is taken once and never again, as with a lock per order.
// Neither the time nor what the store keeps may grow with the names that there were.
//
//   names_bench [STORE [NAMES]]      all stores, 200000 names each
//
// A free lock is forgotten after a minute, so that only a run of minutes shows a size that stays:
// names_bench sqlite 5000000
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/postgres/rig/server.h"
#include "adapters/redis/rig/server.h"
#include "bench/report.h"
#include "leasehold/client.h"
#include "leasehold/stores.h"
#include "rig/temp_folder.h"

namespace {

using namespace leasehold;
using namespace leasehold::bench;

constexpr std::int64_t kSlices = 20;
constexpr double kMebibyte = 1024.0 * 1024.0;

struct Slice {
  double median;  // microseconds of an acquire and its release
  double p99;
  double size;  // MiB that the store takes afterwards
};

// Of no order, so that they are everywhere in an index.
std::string name_of(std::int64_t number) {
  return "order/" + std::to_string(static_cast<std::uint64_t>(number) * 11400714819323198485U);
}

Slice take_each(Client& client, std::int64_t from, std::int64_t to,
                const std::function<double()>& size) {
  std::vector<double> micros;
  for (std::int64_t i = from; i < to; ++i) {
    const std::string name = name_of(i);
    const auto began = std::chrono::steady_clock::now();
    auto lease = must(client.acquire(name));
    (void)must(lease.release());
    micros.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began)
            .count());
  }
  return {percentile(micros, 0.5), percentile(micros, 0.99), size()};
}

void measure(const std::string& store, const std::string& url, std::int64_t names,
             const std::function<double()>& size) {
  auto client = must(connect(url));
  std::vector<Slice> slices;
  std::cout << store << "\n     names   median us      p99 us        MiB\n";
  for (std::int64_t i = 0; i < kSlices; ++i) {
    slices.push_back(take_each(client, names * i / kSlices, names * (i + 1) / kSlices, size));
    const Slice& it = slices.back();
    std::printf("%10lld  %10.1f  %10.1f  %9.1f\n",
                static_cast<long long>(names * (i + 1) / kSlices), it.median, it.p99, it.size);
    std::cout << std::flush;
  }
  const double slower = slices.back().median / slices[1].median;
  report({store + ": " + std::to_string(names) + " names, last ones beside first",
          format(slower, "%.2f x the time"), "<= 1.1 x", slower <= 1.1});
  report({store + ": size at the end beside the middle",
          format(slices.back().size / slices[kSlices / 2 - 1].size, "%.2f x"), ""});
}

void measure_sqlite(std::int64_t names) {
  const rig::TempFolder folder;
  const std::string path = folder.file("locks.db");
  measure("SQLite", "sqlite:" + path, names, [&] {
    return static_cast<double>(std::filesystem::file_size(path) +
                               std::filesystem::file_size(path + "-wal")) /
           kMebibyte;
  });
}

void measure_redis(std::int64_t names) {
  const rig::RedisServer server({.durable = false});
  measure("Redis", server.url(), names, [&] {
    const std::string memory = server.cli({"INFO", "memory"});
    const auto at = memory.find("used_memory:");
    return std::strtod(memory.c_str() + at + std::string_view("used_memory:").size(), nullptr) /
           kMebibyte;
  });
}

void measure_postgres(std::int64_t names) {
  rig::PostgresServer server;
  const std::string database = server.create_database();
  measure("PostgreSQL", server.url(database), names, [&] {
    return std::strtod(
               server.psql("SELECT pg_total_relation_size('leasehold.lock')", database).c_str(),
               nullptr) /
           kMebibyte;
  });
}

}  // namespace

int main(int argc, char** argv) {
  register_stores();
  const std::string_view store = argc > 1 ? argv[1] : "all";
  const std::int64_t names = argc > 2 ? std::atoll(argv[2]) : 200'000;
  if (names < kSlices) stop("names_bench: say how many names, at least 20");
  if (store == "all" || store == "sqlite") measure_sqlite(names);
  if (store == "all" || store == "redis") measure_redis(names);
  if (store == "all" || store == "postgres") measure_postgres(names);
  return 0;
}
