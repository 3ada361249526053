// acquire + release on the SQLite store, beside the same two transactions written by hand.
#include <benchmark/benchmark.h>
#include <sqlite3.h>
#include <sys/random.h>
#include <time.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "bench/report.h"
#include "leasehold/client.h"
#include "leasehold/stores.h"
#include "rig/temp_folder.h"

namespace {

using namespace leasehold;
using namespace leasehold::bench;
using namespace std::chrono_literals;

constexpr const char* kLock = "invoice/1234";
constexpr int kBlock = 100;  // pairs of one side before it is the other's turn

// What a careful programmer would write for this one job: no engine, no threads, no renewal, no
// deadline, no waiting, no synced reserve of token numbers.
class ByHand {
 public:
  explicit ByHand(const std::string& path) {
    check(sqlite3_open_v2(path.c_str(), &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr),
          SQLITE_OK);
    check(sqlite3_exec(db_, "PRAGMA synchronous = NORMAL", nullptr, nullptr, nullptr), SQLITE_OK);
    begin_ = prepare("BEGIN IMMEDIATE");
    commit_ = prepare("COMMIT");
    find_ = prepare(
        "SELECT s.id, s.floor, s.ceiling, l.token, l.request, l.owner, l.expires_at, l.kept,"
        " EXISTS(SELECT 1 FROM waiter WHERE lock = ?1)"
        " FROM store s LEFT JOIN lock l ON l.name = ?1");
    grant_ = prepare(
        "INSERT INTO lock(name, token, request, owner, granted_at, expires_at, ttl, kept)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?6 - ?5, 0)"
        " ON CONFLICT(name) DO UPDATE SET token = ?2, request = ?3, owner = ?4, granted_at = ?5,"
        " expires_at = ?6, ttl = ?6 - ?5, kept = 0");
    release_ = prepare(
        "UPDATE lock SET request = NULL, expires_at = 0, last_released = ?2"
        " WHERE name = ?1 AND request = ?2 AND expires_at > ?3 AND kept = 0");
    waiters_ = prepare(
        "SELECT request, owner, wake, alive_until FROM waiter WHERE lock = ?1 ORDER BY place"
        " LIMIT ?2");
  }
  ~ByHand() {
    for (sqlite3_stmt* statement : {begin_, commit_, find_, grant_, release_, waiters_}) {
      sqlite3_finalize(statement);
    }
    sqlite3_close(db_);
  }
  ByHand(const ByHand&) = delete;

  void acquire_and_release() {
    acquire();
    release();
  }

 private:
  void acquire() {
    check(getrandom(request_, sizeof request_, 0), sizeof request_);
    run(begin_);
    bind_text(find_, 1, kLock);
    check(sqlite3_step(find_), SQLITE_ROW);
    const std::int64_t token = sqlite3_column_int64(find_, 3) + 1;
    const bool held =
        sqlite3_column_type(find_, 4) != SQLITE_NULL && sqlite3_column_int64(find_, 6) > now();
    const bool has_waiters = sqlite3_column_int(find_, 8) != 0;
    sqlite3_reset(find_);
    if (held || has_waiters) stop("the lock is not free");
    const std::int64_t at = now();
    bind_text(grant_, 1, kLock);
    sqlite3_bind_int64(grant_, 2, token);
    sqlite3_bind_blob(grant_, 3, request_, sizeof request_, SQLITE_STATIC);
    bind_text(grant_, 4, owner_);
    sqlite3_bind_int64(grant_, 5, at);
    sqlite3_bind_int64(grant_, 6, at + 30'000'000'000);
    run(grant_);
    run(commit_);
  }

  void release() {
    run(begin_);
    bind_text(release_, 1, kLock);
    sqlite3_bind_blob(release_, 2, request_, sizeof request_, SQLITE_STATIC);
    sqlite3_bind_int64(release_, 3, now());
    run(release_);
    check(sqlite3_changes(db_), 1);
    bind_text(waiters_, 1, kLock);
    sqlite3_bind_int64(waiters_, 2, 1);
    run(waiters_);
    run(commit_);
  }

  static std::int64_t now() {
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
  }
  static void check(std::int64_t got, std::int64_t wanted) {
    if (got != wanted) stop("SQLite, by hand, answered " + std::to_string(got));
  }
  static void bind_text(sqlite3_stmt* statement, int index, const std::string& text) {
    sqlite3_bind_text(statement, index, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
  }
  sqlite3_stmt* prepare(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    check(sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr),
          SQLITE_OK);
    return statement;
  }
  static void run(sqlite3_stmt* statement) {
    check(sqlite3_step(statement), SQLITE_DONE);
    sqlite3_reset(statement);
  }

  sqlite3* db_ = nullptr;
  sqlite3_stmt* begin_;
  sqlite3_stmt* commit_;
  sqlite3_stmt* find_;
  sqlite3_stmt* grant_;
  sqlite3_stmt* release_;
  sqlite3_stmt* waiters_;
  std::uint8_t request_[16] = {};
  const std::string owner_ = default_owner_label().str();
};

Client open_store(const std::string& path) {
  return must(connect("sqlite:" + path));
}

void acquire_and_release(Client& client, const LockName& lock) {
  auto lease = must(client.acquire(lock));
  if (must(lease.release()) != ReleaseOutcome::released) stop("a lease was lost");
}

struct Spent {
  double seconds = 0;
  double cpu_seconds = 0;
  Spent& operator+=(const Spent& more) {
    seconds += more.seconds;
    cpu_seconds += more.cpu_seconds;
    return *this;
  }
};

double seconds_on(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

template <class Work>
Spent spent_on(Work work) {
  const double begin = seconds_on(CLOCK_MONOTONIC);
  const double cpu_begin = seconds_on(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < kBlock; ++i) work();
  return {seconds_on(CLOCK_MONOTONIC) - begin, seconds_on(CLOCK_THREAD_CPUTIME_ID) - cpu_begin};
}

// The time shown is the store's; the counters tell the other side's and the ratio.
void side_by_side(benchmark::State& state) {
  const leasehold::rig::TempFolder folder;
  { const Client makes_the_schema = open_store(folder.file("by_hand.db")); }
  ByHand by_hand(folder.file("by_hand.db"));
  Client client = open_store(folder.file("leasehold.db"));
  const LockName lock = must(LockName::parse(kLock));
  Spent ours;
  Spent theirs;
  for (auto _ : state) {
    const Spent once = spent_on([&] { acquire_and_release(client, lock); });
    theirs += spent_on([&] { by_hand.acquire_and_release(); });
    ours += once;
    state.SetIterationTime(once.seconds);
  }
  const double pairs = static_cast<double>(state.iterations()) * kBlock;
  state.counters["store_us"] = ours.seconds / pairs * 1e6;
  state.counters["by_hand_us"] = theirs.seconds / pairs * 1e6;
  state.counters["throughput"] = theirs.seconds / ours.seconds;
  state.counters["throughput_per_cpu"] = theirs.cpu_seconds / ours.cpu_seconds;
}
BENCHMARK(side_by_side)->UseManualTime()->Iterations(20)->Unit(benchmark::kMillisecond);

std::optional<leasehold::rig::TempFolder> shared_folder;
std::optional<Client> shared_client;

// Every thread takes a lock of its own through one client.
void threads_of_one_client(benchmark::State& state) {
  if (state.thread_index() == 0) {
    shared_folder.emplace();
    shared_client.emplace(open_store(shared_folder->file("locks.db")));
  }
  const LockName lock = must(LockName::parse("lock/" + std::to_string(state.thread_index())));
  for (auto _ : state) acquire_and_release(*shared_client, lock);
  state.SetItemsProcessed(state.iterations());
  if (state.thread_index() == 0) {
    shared_client.reset();
    shared_folder.reset();
  }
}
BENCHMARK(threads_of_one_client)->Threads(1)->Threads(4)->Threads(16)->UseRealTime();

// Prints as usual, and reports the medians.
class Reporter : public benchmark::ConsoleReporter {
 public:
  Reporter() : ConsoleReporter(OO_Tabular) {}
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      if (run.aggregate_name == "median") medians_.push_back(run);
    }
  }
  void Finalize() override {
    ConsoleReporter::Finalize();
    for (const Run& run : medians_) tell(run);
  }

 private:
  static void tell(const Run& run) {
    const auto counter = [&](const char* name) { return run.counters.at(name).value; };
    if (run.run_name.function_name != "side_by_side") {
      const std::string threads = run.run_name.threads.substr(std::string("threads:").size());
      report({"acquire + release, threads of one client: " + threads,
              format(counter("items_per_second"), "%.0f per s"), ""});
      return;
    }
    const double ratio = counter("throughput");
    report({"acquire + release, SQLite store", format(counter("store_us"), "%.1f us"), ""});
    report({"the same two transactions by hand", format(counter("by_hand_us"), "%.1f us"), ""});
    report({"throughput beside by hand", format(ratio, "%.2f x"), ">= 0.8 x", ratio >= 0.8});
    report({"the same, per CPU time", format(counter("throughput_per_cpu"), "%.2f x"), ""});
  }
  std::vector<Run> medians_;
};

}  // namespace

int main(int argc, char** argv) {
  leasehold::register_stores();
  std::vector<char*> arguments(argv, argv + argc);
  std::string repetitions = "--benchmark_repetitions=15";
  std::string aggregates = "--benchmark_report_aggregates_only=true";
  arguments.insert(arguments.begin() + 1, {repetitions.data(), aggregates.data()});
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  Reporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  return 0;
}
