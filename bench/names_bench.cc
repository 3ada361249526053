// Whether names cost nothing: each lock is taken once and never again, as with a lock per order, by
// several threads at full speed. Neither the time nor what the store keeps may grow with the names
// that there were.
//
//   names_bench [STORE [NAMES [FILE]]]      all stores, 200000 names each
//
// A free lock is forgotten after a minute. So a store grows for some two minutes, however little it
// keeps, and only a longer run shows a size that stays: names_bench all 5000000 slices.tsv, which
// also writes the slices to that file (scripts/names_chart draws them).
#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>
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
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kSlices = 100;
constexpr std::int64_t kFirstWarm = 10;  // slices that the later ones are compared with
constexpr std::chrono::seconds kWarmUp{120};
constexpr double kMebibyte = 1024.0 * 1024.0;

// What a store keeps.
struct Kept {
  double mebibytes;
  double names;
};

struct Slice {
  std::int64_t names;  // until its end
  double began;        // seconds since the store's first name
  double per_second;
  double p50, p99;  // microseconds of an acquire
  Kept kept;        // afterwards
};

// Of no order, so that they are everywhere in an index.
std::string name_of(std::int64_t number) {
  return "order/" + std::to_string(static_cast<std::uint64_t>(number) * 11400714819323198485U);
}

std::vector<double> take_each(Client& client, std::atomic<std::int64_t>& next, std::int64_t end) {
  std::vector<double> micros;
  for (std::int64_t number = next++; number < end; number = next++) {
    const std::string name = name_of(number);
    const auto began = Clock::now();
    auto lease = must(client.acquire(name));
    micros.push_back(std::chrono::duration<double, std::micro>(Clock::now() - began).count());
    (void)must(lease.release());
  }
  return micros;
}

// Of all threads together.
std::vector<double> take_slice(Client& client, int threads, std::int64_t from, std::int64_t to) {
  std::atomic<std::int64_t> next = from;
  std::vector<std::vector<double>> micros(static_cast<std::size_t>(threads));
  {
    std::vector<std::jthread> workers;
    for (auto& mine : micros) {
      workers.emplace_back([&] { mine = take_each(client, next, to); });
    }
  }
  std::vector<double> all;
  for (const auto& mine : micros) all.insert(all.end(), mine.begin(), mine.end());
  return all;
}

void print(const Slice& it) {
  std::printf("%10lld  %8.0f  %9.0f  %9.1f  %9.1f  %9.1f  %10.0f\n",
              static_cast<long long>(it.names), it.began, it.per_second, it.p50, it.p99,
              it.kept.mebibytes, it.kept.names);
  std::cout << std::flush;
}

void write(const std::string& file, const std::string& store, const Slice& it) {
  std::ofstream(file, std::ios::app)
      << store << '\t' << it.names << '\t' << format(it.began, "%.1f") << '\t'
      << format(it.per_second, "%.0f") << '\t' << format(it.p50, "%.1f") << '\t'
      << format(it.p99, "%.1f") << '\t' << format(it.kept.mebibytes, "%.1f") << '\t'
      << format(it.kept.names, "%.0f") << '\n';
}

double median_p50(std::vector<Slice>::const_iterator begin,
                  std::vector<Slice>::const_iterator end) {
  std::vector<double> values;
  for (auto it = begin; it != end; ++it) values.push_back(it->p50);
  return percentile(values, 0.5);
}

double largest(std::vector<Slice>::const_iterator begin, std::vector<Slice>::const_iterator end) {
  return std::max_element(
             begin, end,
             [](const Slice& a, const Slice& b) { return a.kept.mebibytes < b.kept.mebibytes; })
      ->kept.mebibytes;
}

// Every later slice is compared with the first warm ones. In a run that is too short to be warm, of
// which the size says nothing, those are the first ones.
void judge(const std::string& what, const std::vector<Slice>& slices) {
  auto warm = std::find_if(slices.begin(), slices.end(),
                           [](const Slice& it) { return it.began >= kWarmUp.count(); });
  const bool is_warm = slices.end() - warm >= 3 * kFirstWarm;
  if (!is_warm) warm = slices.begin() + 1;
  const auto later = warm + kFirstWarm;
  const std::string then = is_warm ? "the first warm ones" : "the first ones, too short a run";

  const double usual = median_p50(warm, later);
  const double last = median_p50(slices.end() - kFirstWarm, slices.end()) / usual;
  report({what + ", acquire p50, last tenth beside " + then, format(last, "%.2f x the time"),
          "<= 1.1 x", last <= 1.1});
  // One slice can be spoilt by what the machine does besides; what grows is in each that follows.
  double worst = 0;
  for (auto it = later; slices.end() - it >= 3; ++it) {
    worst = std::max(worst, median_p50(it, it + 3) / usual);
  }
  report({"  slowest three slices in a row", format(worst, "%.2f x the time"),
          is_warm ? "<= 1.25 x" : "", worst <= 1.25});
  // What is kept are the names of about a minute: it goes up and down with the rate.
  const double growth = largest(later, slices.end()) / largest(warm, later);
  report({"  largest size, later beside then", format(growth, "%.2f x"), is_warm ? "<= 1.25 x" : "",
          growth <= 1.25});
  report({"  size at the end", format(slices.back().kept.mebibytes, "%.0f MiB"), ""});
  report({"  names kept at the end", format(slices.back().kept.names, "%.0f"), ""});
  std::vector<double> rates;
  for (const Slice& it : slices) rates.push_back(it.per_second);
  report({"  acquire + release, median slice", format(percentile(rates, 0.5), "%.0f per s"), ""});
}

struct Run {
  std::int64_t names;
  std::string file;  // empty: none
};

void measure(const std::string& store, const std::string& url, int threads, const Run& run,
             const std::function<Kept()>& kept) {
  auto client = must(connect(url));
  std::vector<Slice> slices;
  std::cout << store << ", threads: " << threads
            << "\n     names  began, s      per s     p50 us     p99 us        MiB  names kept\n";
  const auto start = Clock::now();
  for (std::int64_t i = 0; i < kSlices; ++i) {
    const std::int64_t from = run.names * i / kSlices;
    const std::int64_t to = run.names * (i + 1) / kSlices;
    const auto began = Clock::now();
    std::vector<double> micros = take_slice(client, threads, from, to);
    const std::chrono::duration<double> took = Clock::now() - began;
    slices.push_back({to, std::chrono::duration<double>(began - start).count(),
                      static_cast<double>(to - from) / took.count(), percentile(micros, 0.5),
                      percentile(micros, 0.99), kept()});
    print(slices.back());
    if (!run.file.empty()) write(run.file, store, slices.back());
  }
  judge(store + ": " + std::to_string(run.names) + " names", slices);
}

double rows_of(const std::string& path) {
  sqlite3* db = nullptr;
  sqlite3_stmt* count = nullptr;
  if (sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READONLY, nullptr) != SQLITE_OK ||
      sqlite3_prepare_v2(db, "SELECT count(*) FROM lock", -1, &count, nullptr) != SQLITE_OK ||
      sqlite3_step(count) != SQLITE_ROW) {
    stop("SQLite does not say how many locks there are");
  }
  const double rows = sqlite3_column_double(count, 0);
  sqlite3_finalize(count);
  sqlite3_close(db);
  return rows;
}

// One connection serves all threads of a process.
void measure_sqlite(const Run& run) {
  const rig::TempFolder folder;
  const std::string path = folder.file("locks.db");
  measure("SQLite", "sqlite:" + path, 4, run, [&] {
    const auto bytes = std::filesystem::file_size(path) + std::filesystem::file_size(path + "-wal");
    return Kept{static_cast<double>(bytes) / kMebibyte, rows_of(path)};
  });
}

void measure_redis(const Run& run) {
  const rig::RedisServer server({.durable = false});
  measure("Redis", server.url(), 32, run, [&] {
    const std::string memory = server.cli({"INFO", "memory"});
    const auto at = memory.find("used_memory:");
    const double bytes =
        std::strtod(memory.c_str() + at + std::string_view("used_memory:").size(), nullptr);
    return Kept{bytes / kMebibyte, std::strtod(server.cli({"DBSIZE"}).c_str(), nullptr)};
  });
}

// The whole database, with what waits to be vacuumed. The rows are those of the statistics:
// counting them would tidy the pages that are read.
void measure_postgres(const Run& run) {
  rig::PostgresServer server;
  const std::string database = server.create_database();
  measure("PostgreSQL", server.url(database) + "?connections=32", 32, run, [&] {
    const auto number = [&](const std::string& sql) {
      return std::strtod(server.psql("SELECT " + sql, database).c_str(), nullptr);
    };
    return Kept{number("pg_database_size(current_database())") / kMebibyte,
                number("n_live_tup FROM pg_stat_user_tables"
                       " WHERE relid = 'leasehold.lock'::regclass")};
  });
}

}  // namespace

int main(int argc, char** argv) {
  register_stores();
  const std::string_view store = argc > 1 ? argv[1] : "all";
  const Run run{argc > 2 ? std::atoll(argv[2]) : 200'000, argc > 3 ? argv[3] : ""};
  if (run.names < kSlices) stop("names_bench: say how many names, at least 100");
  if (!run.file.empty()) {
    std::ofstream(run.file) << "store\tnames\tbegan_s\tper_s\tp50_us\tp99_us\tmib\tnames_kept\n";
  }
  if (store == "all" || store == "sqlite") measure_sqlite(run);
  if (store == "all" || store == "redis") measure_redis(run);
  if (store == "all" || store == "postgres") measure_postgres(run);
  return 0;
}
