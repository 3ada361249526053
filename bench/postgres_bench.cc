// acquire + release on PostgreSQL, beside the same two statements with libpq, and beside a lease
// row by hand, which has no queue: one plain statement each. mode=advisory beside lease rows. And
// the hand-off among 32 waiters, beside pg_advisory_lock.
#include <memory>
#include <random>

#include "adapters/postgres/rig/server.h"
#include "bench/compare.h"
#include "bench/libpq.h"
#include "bench/report.h"
#include "leasehold/client.h"
#include "leasehold/stores.h"

namespace {

using namespace leasehold;
using namespace leasehold::bench;

// What the adapter sends, and nothing around it.
Side same_statements(const std::string& url) {
  return {
      "the same statements with libpq", [url](int worker) {
        auto mine = std::make_shared<Libpq>(url);
        mine->prepare("acquire", "SELECT * FROM leasehold.acquire($1, $2, $3, $4, $5, $6)");
        mine->prepare("release", "SELECT leasehold.release($1, $2, $3, $4)");
        return [mine, name = "same-" + std::to_string(worker)] {
          const std::string request = RequestId::random(system_random()).hex();
          mine->execute("acquire", {name.c_str(), request.c_str(), "me", "30000", "f", nullptr});
          mine->execute("release", {name.c_str(), request.c_str(), "0", "f"});
          return true;
        };
      }};
}

// A row with holder, expiry and a counter for the token.
class LeaseRow {
 public:
  static void create_table(const std::string& url) {
    Libpq(url).run(
        "CREATE TABLE by_hand(name text PRIMARY KEY, request text, token bigint, expires "
        "timestamptz)");
  }

  LeaseRow(const std::string& url, std::string name) : connection_(url), name_(std::move(name)) {
    connection_.prepare("acquire",
                        "INSERT INTO by_hand AS l VALUES($1, $2, 1, clock_timestamp() + interval "
                        "'30 s') ON CONFLICT (name) DO UPDATE SET request = $2, token = l.token + "
                        "1, expires = clock_timestamp() + interval '30 s' WHERE l.request IS NULL "
                        "OR l.expires < clock_timestamp() RETURNING token");
    connection_.prepare("release",
                        "UPDATE by_hand SET request = NULL WHERE name = $1 AND request = $2 "
                        "RETURNING 1");
  }

  void acquire() {
    request_ = std::to_string(random_());
    while (connection_.execute("acquire", {name_.c_str(), request_.c_str()}) != 1) {
      pause_before_polling();
    }
  }
  void release() {
    if (connection_.execute("release", {name_.c_str(), request_.c_str()}) != 1) stop("lost");
  }

 private:
  Libpq connection_;
  const std::string name_;
  std::string request_;
  std::mt19937_64 random_{std::random_device{}()};
};

Side lease_row(const std::string& url) {
  return alone("a lease row with libpq", [url](int worker) {
    return std::make_shared<LeaseRow>(url, "lock " + std::to_string(worker));
  });
}

Side polled_row(const std::string& url) {
  return handing_over("a lease row, polling with 1 to 10 ms jitter",
                      [url](int) { return std::make_shared<LeaseRow>(url, "polled"); });
}

// pg_advisory_lock, and a statement while it is held, if there is one.
class AdvisoryLock {
 public:
  AdvisoryLock(const std::string& url, const std::string& key, const std::string& row = "")
      : connection_(url), has_row_(!row.empty()) {
    connection_.prepare("acquire", "SELECT pg_advisory_lock(" + key + ")");
    if (has_row_) connection_.prepare("row", row);
    connection_.prepare("release", "SELECT pg_advisory_unlock(" + key + ")");
  }
  void acquire() {
    connection_.execute("acquire", {});
    if (has_row_) connection_.execute("row", {});
  }
  void release() { connection_.execute("release", {}); }

 private:
  Libpq connection_;
  const bool has_row_;
};

Side advisory_lock(const std::string& url) {
  return handing_over("pg_advisory_lock",
                      [url](int) { return std::make_shared<AdvisoryLock>(url, "42"); });
}

// What makes it a lease, by hand: a token, and when it ends, so that whoever comes after a session
// that died can wait for it. With `durable` they are on the disk before anybody has them.
Side advisory_lock_with_row(const std::string& url, bool durable) {
  const std::string table = durable ? "by_hand_durable" : "by_hand_unlogged";
  Libpq(url).run(std::string("CREATE ") + (durable ? "" : "UNLOGGED ") + "TABLE " + table +
                 "(token bigint, expires timestamptz); INSERT INTO " + table + " VALUES (0)");
  return handing_over(
      durable ? "pg_advisory_lock and a durable token" : "pg_advisory_lock and a row in memory",
      [url, durable, table](int) {
        return std::make_shared<AdvisoryLock>(
            url, durable ? "43" : "44",
            "UPDATE " + table +
                " SET token = token + 1, expires = clock_timestamp() + interval '30 s' "
                "RETURNING token");
      });
}

}  // namespace

int main(int argc, char** argv) {
  register_stores();
  rig::PostgresServer server({.settings = {"max_connections=300"}});
  const std::string url = server.url(server.create_database());
  LeaseRow::create_table(url);
  for (const int in_flight : {1, 50}) {
    compare("PostgreSQL: acquire + release, in flight: " + std::to_string(in_flight),
            one_client(url + "?connections=64"), same_statements(url),
            effort_of(argc, argv, in_flight), 0.9);
    compare("PostgreSQL: the same, beside a plain row, in flight: " + std::to_string(in_flight),
            one_client(url + "?connections=64"), lease_row(url), effort_of(argc, argv, in_flight),
            in_flight == 1 ? 0.9 : 1.5);
  }
  Side rows = one_client(url);
  rows.name = "lease rows";
  compare("PostgreSQL, advisory: acquire + release, in flight: 1",
          one_client(url + "?mode=advisory"), rows, effort_of(argc, argv, 1));
  for (const char* mode : {"rows", "advisory"}) {
    compare(std::string("PostgreSQL, ") + mode + ": hand-offs, waiters: 32",
            waiting_clients(url + "?mode=" + mode), advisory_lock(url), effort_of(argc, argv, 33),
            1.0);
  }
  compare("PostgreSQL, rows: the same, beside polling", waiting_clients(url), polled_row(url),
          effort_of(argc, argv, 33));
  for (const bool durable : {false, true}) {
    compare(std::string("PostgreSQL, advisory: the same, beside a row ") +
                (durable ? "on the disk" : "in memory"),
            waiting_clients(url + "?mode=advisory"), advisory_lock_with_row(url, durable),
            effort_of(argc, argv, 33));
  }
  return 0;
}
