// The front page: everybody asks for it, and rendering it takes long. When it is not in the cache,
// one process renders it and the others wait for that one, instead of all rendering it at once.
// Twice would do no harm, so no fence is needed.
// Failure injected (story.sh): the process that renders hangs and is killed, while others wait. One
// of them renders, and all have the page.
#include <signal.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "../sqlite_database.h"
#include "leasehold/single_flight.h"
#include "leasehold/sqlite/adapter.h"

using leasehold::CachedValue;
using leasehold::Result;
using leasehold::Status;

namespace {

using namespace std::chrono_literals;

// Yours has calls to Redis or memcached here. In this one a page is fresh until it is deleted.
class PageTable final : public leasehold::ValueCache {
 public:
  explicit PageTable(sqlite3* db) : db_(db) {}

  Result<std::optional<CachedValue>> get(const std::string& key) override {
    std::string page;
    auto ok = example::run(db_, "SELECT html FROM page WHERE name = ?", {key}, &page);
    if (!ok) return leasehold::fail(ok.error());
    if (page.empty()) return std::nullopt;
    return CachedValue{.value = page, .fresh_for = 1h};
  }
  Status put(const std::string& key, const CachedValue& value) override {
    return example::run(db_, "INSERT OR REPLACE INTO page VALUES(?, ?)", {key, value.value});
  }

 private:
  sqlite3* db_;
};

Status show(leasehold::Client& locks, sqlite3* db, const std::string& name) {
  const auto render = [&](std::stop_token) -> Result<std::string> {
    auto noted = example::run(db, "INSERT INTO rendering VALUES(?)", {name});
    if (!noted) return leasehold::fail(noted.error());
    if (example::fault("hang")) raise(SIGSTOP);
    std::this_thread::sleep_for(200ms);  // as rendering does: the others come meanwhile
    return "<p>made by " + name + "</p>";
  };
  PageTable cache(db);
  leasehold::SingleFlight flight(locks, cache);
  auto page = flight.fetch(leasehold::LockName::parse("page/front").value(), render,
                           {.lock = {.ttl = 500ms, .wait = 60s}});
  if (!page) return leasehold::fail(page.error());
  std::cout << page->value << '\n';
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: front_page LOCKS-FILE CACHE-FILE NAME\n";
    return 2;
  }
  leasehold::Registry::standard().add(leasehold::sqlite::adapters());
  auto locks = leasehold::connect(std::string("sqlite:") + argv[1]);
  if (!locks) return example::told(leasehold::fail(locks.error()));
  auto db = example::open(argv[2]);
  if (!db) return example::told(leasehold::fail(db.error()));
  auto done = example::run(db->get(),
                           "CREATE TABLE IF NOT EXISTS page(name TEXT PRIMARY KEY, html TEXT);"
                           "CREATE TABLE IF NOT EXISTS rendering(process TEXT)");
  if (done) done = show(*locks, db->get(), argv[3]);
  return example::told(done);
}
