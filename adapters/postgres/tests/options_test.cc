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

using ::testing::Contains;
using ::testing::HasSubstr;
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
  expect_invalid("postgres:///db", "host");
  expect_invalid("postgres://u:hunter2@h", "database");
  expect_invalid("postgres://u:hunter2@h/a/b", "database");
  expect_invalid("postgres://u:hunter2@h/db?mode=table", "mode");
  expect_invalid("postgres://u:hunter2@h/db?failover=maybe", "failover");
  expect_invalid("postgres://u:hunter2@h/db?schema=a;b", "schema");
  expect_invalid("postgres://u:hunter2@h/db?schema=pg_x", "schema");
  expect_invalid("postgres://u:hunter2@h/db?schema_owner=a%27b", "schema_owner");
  expect_invalid("postgres://u:hunter2@h/db?connections=0", "connections");
  expect_invalid("postgres://u:hunter2@h/db?sslmode=disable", "sslmode");
  expect_invalid("postgres://u:hunter2@h/db?ca=/nowhere", "/nowhere");
}

TEST(OptionsTest, HostsPortsAndDefaults) {
  const auto two = options("postgres://u:p%40@a,b:6000/db").value();
  ASSERT_EQ(two.hosts.size(), 2u);
  EXPECT_EQ(two.hosts[0].address, "a:5432");
  EXPECT_EQ(two.hosts[1].address, "b:6000");
  EXPECT_THAT(two.hosts[0].keywords, Contains(Pair("password", "p@")));
  EXPECT_THAT(two.hosts[0].keywords, Contains(Pair("dbname", "db")));
  EXPECT_EQ(two.mode, Mode::rows);
  EXPECT_EQ(two.schema, "leasehold");
  EXPECT_FALSE(two.no_failover);
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
