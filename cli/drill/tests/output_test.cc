// What `leasehold drill` prints and writes.
#include <nlohmann/json.hpp>

#include "cli/tests/cli_fixture.h"

namespace leasehold::cli {
namespace {

using Json = nlohmann::json;
using DrillOutputTest = CliTest;

const Words kShort{"drill", "--locks", "1", "--workers", "2", "--cycles", "3", "--duration", "60s"};

Words with(Words more) {
  Words words = kShort;
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_F(DrillOutputTest, IsATableAndASentence) {
  const Finished done = leasehold(kShort);
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.out,
              AllOf(HasSubstr("store sqlite, fence sqlite"), HasSubstr("stale writes accepted  0"),
                    HasSubstr("\nNothing stale was accepted and no update was lost: ")));
}

TEST_F(DrillOutputTest, CanBeJsonAndFiles) {
  const Finished done = leasehold(
      with({"--fence", "none", "--json", "--junit", path("j.xml"), "--html", path("p.html")}));
  EXPECT_EQ(done.status, 1) << done.err;
  const Json said = Json::parse(done.out);
  EXPECT_EQ(said["verdict"], "damage");
  EXPECT_THAT(read("j.xml"), HasSubstr("<testsuite name=\"leasehold drill: sqlite, fence none"));
  EXPECT_THAT(read("p.html"),
              HasSubstr("<dd id=\"stale_accepted\">" + said["stale_accepted"].dump() + "</dd>"));
}

TEST_F(DrillOutputTest, AFileThatCannotBeWrittenIsToldBeforeTheDrill) {
  const Finished done = leasehold({"drill", "--duration", "24h", "--html", path("no/p.html")});
  EXPECT_EQ(done.status, 74);
  EXPECT_THAT(done.err, HasSubstr("cannot write '" + path("no/p.html") + "'"));
}

TEST_F(DrillOutputTest, SeveralDrillsHaveOneTableOnly) {
  const Finished done = leasehold({"drill", "--store", "all", "--json"});
  EXPECT_EQ(done.status, 64);
  EXPECT_THAT(done.err, HasSubstr("tell of one drill, not of several"));
}

}  // namespace
}  // namespace leasehold::cli
