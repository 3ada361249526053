// URLs, versions and arrays: what needs no server.
#include "options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "array.h"
#include "rig/temp_folder.h"
#include "server.h"

namespace leasehold::postgres {
namespace {

using ::testing::_;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

Result<Options> options(const std::string& url) {
  return Options::of(Url::parse(url).value());
}

void expect_invalid(const std::string& url, const std::string& field) {
  const auto refused = options(url);
  ASSERT_FALSE(refused) << url;
  EXPECT_EQ(refused.error().code, ErrorCode::invalid) << url;
  EXPECT_THAT(refused.error().message, HasSubstr(field)) << url;
  EXPECT_EQ(to_string(refused.error()).find("hunter2"), std::string::npos) << url;
}

TEST(OptionsTest, WrongUrlsAreInvalidAndNameTheField) {
  expect_invalid("postgres:///", "database");
  expect_invalid("postgres:user:word@host/db", "two slashes");
  expect_invalid("postgres:db", "two slashes");
  expect_invalid("postgres:///db?host=relative", "host");
  expect_invalid("postgres://h/db?host=/run/postgresql", "host");
  expect_invalid("postgres://h/db?port=1", "port");
  expect_invalid("postgres:///db?host=/run&port=65536", "port");
  expect_invalid("postgres:///db?tls=on", "local socket");
  expect_invalid("postgres://u:hunter2@h", "database");
  expect_invalid("postgres://u:hunter2@h/a/b", "database");
  expect_invalid("postgres://u:hunter2@h/db?mode=table", "mode");
  expect_invalid("postgres://u:hunter2@h/db?failover=maybe", "failover");
  expect_invalid("postgres://u:hunter2@h/db?schema=a;b", "schema");
  expect_invalid("postgres://u:hunter2@h/db?schema=pg_x", "schema");
  expect_invalid("postgres://u:hunter2@h/db?schema_owner=a%27b", "schema_owner");
  expect_invalid("postgres://u:hunter2@h/db?connections=0", "connections");
  expect_invalid("postgres://u:hunter2@h/db?sslmode=on", "sslmode");
  expect_invalid("postgres://u:hunter2@h/db?sslmode=require&tls=on", "sslmode");
  expect_invalid("postgres://u:hunter2@h/db?ca=/nowhere", "/nowhere");
}

TEST(OptionsTest, HostsPortsAndDefaults) {
  const auto two = options("postgres://u:p%40@a,b:6000/db").value();
  ASSERT_EQ(two.hosts.size(), 2u);
  EXPECT_EQ(two.hosts[0].address, "a:5432");
  EXPECT_EQ(two.hosts[1].address, "b:6000");
  EXPECT_THAT(two.hosts[0].keywords, Contains(Pair("password", "p@")));
  EXPECT_THAT(two.hosts[0].keywords, Contains(Pair("dbname", "db")));
  EXPECT_EQ(two.mode, LockKind::rows);
  EXPECT_EQ(two.schema, "leasehold");
  EXPECT_FALSE(two.no_failover);
}

TEST(OptionsTest, SocketsAreNamedAsForLibpq) {
  const Host standard = options("postgres://me@/db").value().hosts.at(0);
  EXPECT_THAT(standard.keywords, Contains(Pair("user", "me")));
  for (const char* keyword : {"host", "port"}) {
    EXPECT_THAT(standard.keywords, Not(Contains(Pair(keyword, _)))) << "libpq's own default";
  }
  for (const char* url :
       {"postgres://%2Frun%2Fpg:6000/db", "postgres:///db?host=/run/pg&port=6000"}) {
    const Host named = options(url).value().hosts.at(0);
    EXPECT_EQ(named.address, "/run/pg:6000");
    EXPECT_THAT(named.keywords, Contains(Pair("host", "/run/pg")));
    EXPECT_THAT(named.keywords, Contains(Pair("port", "6000")));
  }
  EXPECT_EQ(options("postgres://me:hunter2@/db").value().address, "postgres://me@/db");
}

TEST(OptionsTest, SslmodeMeansWhatItMeansForLibpq) {
  for (const char* mode : {"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}) {
    const auto read = options(std::string("postgres://h/db?sslmode=") + mode);
    ASSERT_TRUE(read) << mode;
    EXPECT_THAT(read->hosts[0].keywords, Contains(Pair("sslmode", mode)));
  }
}

TEST(OptionsTest, TlsAlwaysVerifiesTheName) {
  const leasehold::rig::TempFolder folder;
  std::ofstream(folder.file("ca.pem")) << "x";
  const auto by_address =
      options("postgres://1.2.3.4/db?server_name=db.example&ca=" + folder.file("ca.pem")).value();
  EXPECT_THAT(by_address.hosts[0].keywords, Contains(Pair("sslmode", "verify-full")));
  EXPECT_THAT(by_address.hosts[0].keywords, Contains(Pair("host", "db.example")));
  EXPECT_THAT(by_address.hosts[0].keywords, Contains(Pair("hostaddr", "1.2.3.4")));
  expect_invalid("postgres://name/db?server_name=other&ca=" + folder.file("ca.pem"), "server_name");
}

TEST(ServerTest, OldVersionsAreRefused) {
  EXPECT_TRUE(check_version(140000));
  EXPECT_TRUE(check_version(180001));
  EXPECT_THAT(check_version(130014).error().message, HasSubstr("PostgreSQL 13;"));
  EXPECT_THAT(check_version(90624).error().message, HasSubstr("PostgreSQL 9.6;"));
  EXPECT_EQ(check_version(130014).error().code, ErrorCode::unavailable);
}

TEST(ArrayTest, ElementsAreQuoted) {
  TextArray array;
  EXPECT_STREQ(array.c_str(), "{}");
  array.add("a");
  array.add("b\"\\,{}");
  EXPECT_STREQ(array.c_str(), "{\"a\",\"b\\\"\\\\,{}\"}");
  EXPECT_EQ(read_flags("{t,f,t}"), (std::vector<bool>{true, false, true}));
}

}  // namespace
}  // namespace leasehold::postgres
