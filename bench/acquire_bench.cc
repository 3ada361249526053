// acquire + release on the SQLite store: beside the same two transactions written by hand, beside a
// plainer recipe, and with many threads or processes beside one.
//
// The processes are this program again:  acquire_bench --worker SIDE PATH
#include <sqlite3.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>

#include "bench/compare.h"
#include "bench/report.h"
#include "leasehold/client.h"
#include "leasehold/stores.h"
#include "rig/temp_folder.h"

namespace {

using namespace leasehold;
using namespace leasehold::bench;

constexpr int kThreads = 16;
constexpr int kProcesses = 8;

// `same`: the store's statements in its two transactions. `plain`: without a queue and a counter,
// as people write it. No engine, no threads, no renewal, no deadline, no synced reserve of token
// numbers.
enum class Recipe { same, plain };

class ByHand {
 public:
  ByHand(const std::string& path, std::string lock, Recipe recipe)
      : lock_(std::move(lock)), recipe_(recipe) {
    check(sqlite3_open_v2(path.c_str(), &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr),
          SQLITE_OK);
    check(sqlite3_busy_timeout(db_, 10'000), SQLITE_OK);
    check(sqlite3_exec(db_, "PRAGMA synchronous = NORMAL", nullptr, nullptr, nullptr), SQLITE_OK);
    begin_ = prepare("BEGIN IMMEDIATE");
    commit_ = prepare("COMMIT");
    find_ =
        prepare(recipe == Recipe::plain
                    ? "SELECT token, request, expires_at FROM (SELECT 1) LEFT JOIN lock"
                      " ON name = ?1"
                    : "SELECT s.last, l.request, l.expires_at, s.id, s.ceiling, l.owner, l.kept,"
                      " EXISTS(SELECT 1 FROM waiter WHERE lock = ?1),"
                      " EXISTS(SELECT 1 FROM holder WHERE lock = ?1),"
                      " (SELECT permits FROM setting WHERE lock = ?1)"
                      " FROM store s LEFT JOIN lock l ON l.name = ?1");
    count_ = prepare("UPDATE store SET last = ?1");
    grant_ = prepare(
        "INSERT INTO lock(name, token, request, owner, granted_at, expires_at, ttl, kept, store,"
        " note) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?6 - ?5, 0, x'00', '')"
        " ON CONFLICT(name) DO UPDATE SET token = ?2, request = ?3, owner = ?4, granted_at = ?5,"
        " expires_at = ?6, ttl = ?6 - ?5, kept = 0");
    release_ = prepare(
        "UPDATE lock SET request = NULL, expires_at = 0, last_released = ?2"
        " WHERE name = ?1 AND request = ?2 AND expires_at > ?3 AND kept = 0");
    waiters_ = prepare(
        "SELECT request, owner, wake, alive_until FROM waiter WHERE lock = ?1 ORDER BY place"
        " LIMIT 1");
  }
  ~ByHand() {
    for (sqlite3_stmt* statement : {begin_, commit_, find_, count_, grant_, release_, waiters_}) {
      sqlite3_finalize(statement);
    }
    sqlite3_close(db_);
  }
  ByHand(const ByHand&) = delete;

  void acquire() {
    check(getrandom(request_, sizeof request_, 0), sizeof request_);
    run(begin_);
    bind_text(find_, 1, lock_);
    check(sqlite3_step(find_), SQLITE_ROW);
    const std::int64_t token = sqlite3_column_int64(find_, 0) + 1;
    const bool held =
        sqlite3_column_type(find_, 1) != SQLITE_NULL && sqlite3_column_int64(find_, 2) > now();
    sqlite3_reset(find_);
    if (held) stop("the lock is not free");
    if (recipe_ == Recipe::same) {
      sqlite3_bind_int64(count_, 1, token);
      run(count_);
    }
    const std::int64_t at = now();
    bind_text(grant_, 1, lock_);
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
    bind_text(release_, 1, lock_);
    sqlite3_bind_blob(release_, 2, request_, sizeof request_, SQLITE_STATIC);
    sqlite3_bind_int64(release_, 3, now());
    run(release_);
    check(sqlite3_changes(db_), 1);
    if (recipe_ == Recipe::same) {
      bind_text(waiters_, 1, lock_);
      run(waiters_);
    }
    run(commit_);
  }

 private:
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

  const std::string lock_;
  const Recipe recipe_;
  sqlite3* db_ = nullptr;
  sqlite3_stmt* begin_;
  sqlite3_stmt* commit_;
  sqlite3_stmt* find_;
  sqlite3_stmt* count_;
  sqlite3_stmt* grant_;
  sqlite3_stmt* release_;
  sqlite3_stmt* waiters_;
  std::uint8_t request_[16] = {};
  const std::string owner_ = default_owner_label().str();
};

// A new file, with the tables of the store.
std::string new_file(const rig::TempFolder& folder, const std::string& name) {
  must(connect("sqlite:" + folder.file(name)));
  return folder.file(name);
}

Side by_hand(const std::string& path, Recipe recipe) {
  return alone(recipe == Recipe::same ? "the same transactions by hand" : "a plain row by hand",
               [path, recipe, of = std::to_string(getpid())](int worker) {
                 return std::make_shared<ByHand>(path, of + "/" + std::to_string(worker), recipe);
               });
}

Side ours(const std::string& path) {
  return one_client("sqlite:" + path);
}

// A client of its own, which takes a lock of its own.
Side our_process(const std::string& path) {
  return {"Leasehold", [path](int) {
            auto client = std::make_shared<Client>(must(connect("sqlite:" + path)));
            const LockName lock = must(LockName::parse("lock/" + std::to_string(getpid())));
            return [client, lock] {
              auto lease = must(client->acquire(lock));
              if (must(lease.release()) != ReleaseOutcome::released) stop("a lease was lost");
              return true;
            };
          }};
}

Side of_processes(const std::string& name, const std::string& side, const std::string& path) {
  return {name, {}, {"/proc/self/exe", "--worker", side, path}};
}

int work(const std::string& side, const std::string& path) {
  if (side == "same") return take_turns(by_hand(path, Recipe::same));
  if (side == "plain") return take_turns(by_hand(path, Recipe::plain));
  return take_turns(our_process(path));
}

}  // namespace

int main(int argc, char** argv) {
  register_stores();
  if (argc == 4 && std::string(argv[1]) == "--worker") return work(argv[2], argv[3]);
  const rig::TempFolder folder;
  const Effort one = effort_of(argc, argv, 1);
  compare("SQLite: acquire + release, 1 in flight", ours(new_file(folder, "ours.db")),
          by_hand(new_file(folder, "same.db"), Recipe::same), one, 0.85);
  compare("SQLite: the same, beside a plain row", ours(new_file(folder, "ours-too.db")),
          by_hand(new_file(folder, "plain.db"), Recipe::plain), one);
  for (const int threads : {4, kThreads}) {
    Side alone_too = ours(new_file(folder, "one-thread.db"));
    alone_too.name = "one thread";
    alone_too.in_flight = 1;
    compare("SQLite: acquire + release, threads of one client: " + std::to_string(threads),
            ours(new_file(folder, "threads.db")), alone_too, effort_of(argc, argv, threads),
            threads == kThreads ? std::optional(2.0) : std::nullopt);
  }
  const Effort many = effort_of(argc, argv, kProcesses);
  const std::string processes = std::to_string(kProcesses);
  compare("SQLite: acquire + release, processes: " + processes,
          of_processes("Leasehold", "ours", new_file(folder, "ours-8.db")),
          of_processes("the same transactions by hand", "same", new_file(folder, "same-8.db")),
          many, 0.8);
  compare("SQLite: the same, beside a plain row, processes: " + processes,
          of_processes("Leasehold", "ours", new_file(folder, "ours-8-too.db")),
          of_processes("a plain row by hand", "plain", new_file(folder, "plain-8.db")), many);
  return 0;
}
