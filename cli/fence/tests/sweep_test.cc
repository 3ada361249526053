// fence sweep and admit, as an operator of a database with many resources uses them.
#include <nlohmann/json.hpp>

#include "cli/tests/cli_fixture.h"

namespace leasehold::cli {
namespace {

using nlohmann::json;

class FenceSweepTest : public CliTest {
 protected:
  FenceSweepTest() {
    sql("CREATE TABLE orders(id TEXT)");
    EXPECT_EQ(leasehold({"fence", "install", url()}).status, 0);
  }

  std::string url() const { return "sqlite:" + path("app.db"); }
  // What plain SQL does under a lock.
  Finished enter(const std::string& resource, int token, const std::string& store = kStore) const {
    return sql("INSERT INTO leasehold_enter(resource, token, lineage, request) VALUES('" +
               resource + "', " + std::to_string(token) + ", '" + store + "/" + resource + "', '" +
               std::string(31, '0') + "1')");
  }
  Finished sql(const std::string& statement) const {
    return shell("sqlite3 " + path("app.db") + " \"" + statement + "\"");
  }
  json shown() const { return json::parse(leasehold({"fence", "show", url(), "--json"}).out); }
  Finished sweep(const std::string& age) const {
    return leasehold({"fence", "sweep", url(), "--older-than", age});
  }

  static inline const std::string kStore = std::string(32, 'a');
  static inline const std::string kOther = std::string(32, 'b');
};

TEST_F(FenceSweepTest, OldMarksGoAndWhoWasLateIsLateStill) {
  ASSERT_EQ(enter("order/1", 33).status, 0);
  ASSERT_EQ(enter("order/2", 35).status, 0);
  EXPECT_EQ(sweep("1h").out, "0 marks swept\n");
  sql("UPDATE leasehold_fence SET entered_at = 0");
  const Finished done = sweep("30d");
  EXPECT_EQ(done.out, "2 marks swept\n") << done.err;
  const json now = shown();
  EXPECT_EQ(now["fences"].size(), 0u);
  ASSERT_EQ(now["floors"].size(), 1u);
  EXPECT_EQ(now["floors"][0], (json{{"store", kStore}, {"floor", 35}}));
  EXPECT_THAT(leasehold({"fence", "show", url()}).out, HasSubstr("35"));
  EXPECT_NE(enter("order/1", 34).status, 0) << "below the floor of its store";
  EXPECT_EQ(enter("order/1", 36).status, 0);
}

TEST_F(FenceSweepTest, AStoreThatCameLaterIsAdmittedByTheOperator) {
  ASSERT_EQ(enter("order/1", 33).status, 0);
  sql("UPDATE leasehold_fence SET entered_at = 0");
  ASSERT_EQ(sweep("1ms").status, 0);
  EXPECT_NE(enter("order/3", 90, kOther).status, 0);
  const Finished done = leasehold({"fence", "admit", url(), kOther});
  EXPECT_EQ(done.out, "tokens of store " + kOther + " are let in\n") << done.err;
  EXPECT_EQ(enter("order/3", 90, kOther).status, 0);
}

TEST_F(FenceSweepTest, BadInputIsToldAndNothingIsSwept) {
  ASSERT_EQ(enter("order/1", 33).status, 0);
  for (const std::string& age : {"0", "0s", "-1d", "x", "30", ""}) {
    const Finished done = sweep(age);
    EXPECT_EQ(done.status, 64) << age;
    EXPECT_THAT(done.err, HasSubstr("--older-than"));
  }
  const Finished ageless = leasehold({"fence", "sweep", url()});
  EXPECT_EQ(ageless.status, 64);
  EXPECT_THAT(ageless.err, HasSubstr("--older-than is missing"));
  EXPECT_EQ(leasehold({"fence", "admit", url(), "nonsense"}).status, 64);
  EXPECT_EQ(leasehold({"fence", "sweep", "file:" + path("x"), "--older-than", "1h"}).status, 77);
  EXPECT_EQ(shown()["fences"].size(), 1u);
  EXPECT_EQ(shown()["floors"].size(), 0u);
}

}  // namespace
}  // namespace leasehold::cli
