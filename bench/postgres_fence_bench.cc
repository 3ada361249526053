// A fenced transaction on PostgreSQL beside the same transaction without a fence: once the smallest
// there is, with one update, and once the five statements of TPC-B. And a fenced statement beside
// the same statement without a fence. Each connection has rows of its own.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "adapters/postgres/rig/server.h"
#include "bench/compare.h"
#include "bench/libpq.h"
#include "bench/report.h"
#include "leasehold/postgres/fence.h"
#include "leasehold/postgres/row_fence.h"

namespace {

using namespace leasehold;
using namespace leasehold::bench;

constexpr int kMostConnections = 16;

void make_tables(const Libpq& connection) {
  connection.run("CREATE TABLE account(id int PRIMARY KEY, cents bigint) WITH (fillfactor = 50)");
  connection.run("INSERT INTO account SELECT i, 0 FROM generate_series(0, 99) i");
  connection.run("CREATE TABLE teller(LIKE account INCLUDING ALL) WITH (fillfactor = 50)");
  connection.run("CREATE TABLE branch(LIKE account INCLUDING ALL) WITH (fillfactor = 50)");
  connection.run("INSERT INTO teller SELECT * FROM account");
  connection.run("INSERT INTO branch SELECT * FROM account");
  connection.run("CREATE TABLE history(id int, cents bigint, at timestamptz)");
  connection.run("CREATE TABLE fenced_account(LIKE account INCLUDING ALL)");
  connection.run("ALTER TABLE fenced_account SET (fillfactor = 50)");
  must(postgres::install_fence(connection.get()).map([] { return 0; }));
  must(postgres::add_fence_columns(connection.get(), "fenced_account").map([] { return 0; }));
  connection.run("INSERT INTO fenced_account SELECT i, 0 FROM generate_series(0, 99) i");
}

Token token_of(int worker) {
  return must(Token::parse("33", std::string(32, 'a') + "/account",
                           "000000000000000000000000000000" + std::to_string(10 + worker)));
}

using Work = std::vector<const char*>;  // statements with the connection's number as $1

const Work kOneUpdate = {"UPDATE account SET cents = cents + 1 WHERE id = $1"};
const Work kFiveStatements = {"UPDATE account SET cents = cents + 1 WHERE id = $1",
                              "SELECT cents FROM account WHERE id = $1",
                              "UPDATE teller SET cents = cents + 1 WHERE id = $1",
                              "UPDATE branch SET cents = cents + 1 WHERE id = $1",
                              "INSERT INTO history VALUES($1, 1, now())"};

Side fenced_transaction(const std::string& url, const Work& work) {
  return {"fenced", [url, &work](int worker) {
            auto mine = std::make_shared<Libpq>(url);
            auto fence =
                must(postgres::Fence::open(mine->get(), "account " + std::to_string(worker)));
            return [mine, fence, &work, token = token_of(worker), id = std::to_string(worker)] {
              const auto done = fence.transaction(token, [&](auto&) -> Status {
                for (const char* sql : work) mine->run(sql, {id.c_str()});
                return {};
              });
              if (!done) stop(done.error().message);
              return true;
            };
          }};
}

// A holder for each transaction, as where a lock is taken, something is done and it is given back.
Side fenced_transaction_of_new_holders(const std::string& url, const Work& work) {
  return {"fenced", [url, &work](int worker) {
            auto mine = std::make_shared<Libpq>(url);
            auto fence = must(postgres::Fence::open(mine->get(), "many " + std::to_string(worker)));
            auto number = std::make_shared<std::int64_t>(
                std::chrono::steady_clock::now().time_since_epoch().count());
            return [mine, fence, &work, number, id = std::to_string(worker)] {
              Token token = token_of(0);
              token.number = TokenNumber::of(++*number).value();
              token.request = RequestId::random(system_random());
              const auto done = fence.transaction(token, [&](auto&) -> Status {
                for (const char* sql : work) mine->run(sql, {id.c_str()});
                return {};
              });
              if (!done) stop(done.error().message);
              return true;
            };
          }};
}

Side bare_transaction(const std::string& url, const Work& work) {
  return {"bare", [url, &work](int worker) {
            auto mine = std::make_shared<Libpq>(url);
            return [mine, &work, id = std::to_string(worker)] {
              mine->run("BEGIN");
              for (const char* sql : work) mine->run(sql, {id.c_str()});
              mine->run("COMMIT");
              return true;
            };
          }};
}

Side fenced_statement(const std::string& url) {
  return {"fenced", [url](int worker) {
            auto mine = std::make_shared<Libpq>(url);
            auto rows = must(postgres::RowFence::open(mine->get(), "fenced_account"));
            return [mine, rows, token = token_of(worker), id = std::to_string(worker),
                    cents = 0]() mutable {
              const auto done = rows.write(id, token, {{"cents", std::to_string(++cents)}});
              if (!done) stop(done.error().message);
              return true;
            };
          }};
}

// The fence's own statement, prepared.
Side prepared_statement(const std::string& url) {
  return {
      "prepared", [url](int worker) {
        auto mine = std::make_shared<Libpq>(url);
        const auto rows = must(postgres::RowFence::open(mine->get(), "fenced_account"));
        mine->prepare("pay", must(rows.write_sql({"cents"})));
        const Token token = token_of(worker);
        return [mine, id = std::to_string(worker), lineage = token.lineage.str(),
                request = token.request.hex(), cents = 0]() mutable {
          const std::string value = std::to_string(++cents);
          mine->execute("pay", {id.c_str(), "33", lineage.c_str(), request.c_str(), value.c_str()});
          return true;
        };
      }};
}

Side bare_prepared_statement(const std::string& url) {
  return {"bare, prepared", [url](int worker) {
            auto mine = std::make_shared<Libpq>(url);
            mine->prepare("pay", "UPDATE account SET cents = $2 WHERE id = $1");
            return [mine, id = std::to_string(worker), cents = 0]() mutable {
              const std::string value = std::to_string(++cents);
              mine->execute("pay", {id.c_str(), value.c_str()});
              return true;
            };
          }};
}

Side bare_statement(const std::string& url) {
  return {"bare", [url](int worker) {
            auto mine = std::make_shared<Libpq>(url);
            return [mine, id = std::to_string(worker), cents = 0]() mutable {
              const std::string value = std::to_string(++cents);
              mine->run("UPDATE account SET cents = $2 WHERE id = $1", {id.c_str(), value.c_str()});
              return true;
            };
          }};
}

}  // namespace

int main(int argc, char** argv) {
  const rig::PostgresServer server({.settings = {"max_connections=100"}});
  const std::string url = server.url("postgres");
  make_tables(Libpq(url));
  for (const int connections : {1, kMostConnections}) {
    const std::string tail = ", connections: " + std::to_string(connections);
    compare("PostgreSQL: fenced transaction, TPC-B" + tail,
            fenced_transaction(url, kFiveStatements), bare_transaction(url, kFiveStatements),
            effort_of(argc, argv, connections), 0.85);
    compare("PostgreSQL: the same, a new holder each" + tail,
            fenced_transaction_of_new_holders(url, kFiveStatements),
            bare_transaction(url, kFiveStatements), effort_of(argc, argv, connections));
    compare("PostgreSQL: fenced transaction, one update" + tail,
            fenced_transaction(url, kOneUpdate), bare_transaction(url, kOneUpdate),
            effort_of(argc, argv, connections), 0.85);
    compare("PostgreSQL: fenced statement" + tail, fenced_statement(url), bare_statement(url),
            effort_of(argc, argv, connections), 0.95);
    compare("PostgreSQL: fenced statement, prepared" + tail, prepared_statement(url),
            bare_prepared_statement(url), effort_of(argc, argv, connections), 0.95);
  }
  return 0;
}
