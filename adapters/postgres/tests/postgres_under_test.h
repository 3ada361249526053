// A database of its own for each test case, on one server for the whole program.
#pragma once

#include <string>

#include "adapters/postgres/rig/server.h"
#include "leasehold/postgres/adapter.h"
#include "testing/store_wire_conformance.h"

namespace leasehold::testing {

// Starts with the first use, and ends with the program.
inline rig::PostgresServer& shared_server() {
  static rig::PostgresServer server;
  return server;
}

inline Result<std::unique_ptr<Store>> open_postgres(const std::string& url,
                                                    const OpenOptions& options = {}) {
  auto parsed = Url::parse(url);
  if (!parsed) return fail(std::move(parsed.error()));
  return postgres::adapters().front().open_store(*parsed, options);
}

// A client's messages that ask the server to do something; not those that connect and take leave.
inline bool is_postgres_request(std::string_view bytes) {
  return !bytes.empty() && std::string_view("PBQ").find(bytes.front()) != std::string_view::npos;
}

class PostgresUnderTest : public ServerUnderTest {
 public:
  explicit PostgresUnderTest(std::string url_options) : options_(std::move(url_options)) {}
  ~PostgresUnderTest() override { shared_server().drop_database(database_); }

  std::string url() override { return shared_server().url(database_) + "?" + options_; }
  std::unique_ptr<Store> open() override { return std::move(open_postgres(url()).value()); }
  std::unique_ptr<Store> open_through_proxies() override {
    return std::move(open_postgres(url_through_proxy()).value());
  }
  std::vector<rig::TcpProxy*> proxies() override { return {&proxy_}; }
  void kill() override { shared_server().kill(); }
  void start() override { shared_server().start(); }
  void sweep(const std::string&) override {
    shared_server().psql(
        "UPDATE leasehold.meta SET sweep_after = '0';"
        "SELECT leasehold.sweep(), leasehold.session_sweep();"
        "UPDATE leasehold.meta SET sweep_after = DEFAULT",
        database_);
  }
  bool grants_outlive_connections() override {
    return options_.find("advisory") == std::string::npos;
  }

  std::string url_through_proxy() const {
    return "postgres://postgres@" + proxy_.address() + "/" + database_ + "?tls=off&" + options_;
  }
  const std::string& database() const { return database_; }
  rig::TcpProxy& proxy() { return proxy_; }

 private:
  const std::string options_;
  const std::string database_ = shared_server().create_database();
  rig::TcpProxy proxy_{shared_server().port(), is_postgres_request};
};

// Of a lock that nobody else wants.
inline void expect_acquire_and_release_in_one_round_trip_each(PostgresUnderTest& server,
                                                              Mode mode = {}) {
  RawStore raw(server.open_through_proxies());
  const RequestId first = new_request();
  ASSERT_TRUE(raw.acquire_as(mode, first));  // connects
  raw.release(first);
  const std::size_t before = server.proxy().round_trips();
  const RequestId request = new_request();
  ASSERT_TRUE(raw.acquire_as(mode, request));
  EXPECT_EQ(server.proxy().round_trips(), before + 1);
  EXPECT_EQ(raw.release(request), ReleaseReply::released);
  EXPECT_EQ(server.proxy().round_trips(), before + 2);
}

}  // namespace leasehold::testing
