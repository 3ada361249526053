#include "cli/command/exit_status.h"

#include "cli/command/arguments.h"
#include "cli/tests/cli_fixture.h"

namespace leasehold::cli {
namespace {

TEST(ExitStatusOf, EveryErrorCode) {
  EXPECT_EQ(exit_status(ErrorCode::busy), 75);
  EXPECT_EQ(exit_status(ErrorCode::timeout), 75);
  EXPECT_EQ(exit_status(ErrorCode::cancelled), 130);
  EXPECT_EQ(exit_status(ErrorCode::unavailable), 69);
  EXPECT_EQ(exit_status(ErrorCode::outcome_unknown), 74);
  EXPECT_EQ(exit_status(ErrorCode::fenced_out), 76);
  EXPECT_EQ(exit_status(ErrorCode::lost), 76);
  EXPECT_EQ(exit_status(ErrorCode::unsafe_for_correctness), 77);
  EXPECT_EQ(exit_status(ErrorCode::unsupported), 77);
  EXPECT_EQ(exit_status(ErrorCode::invalid), 64);
  EXPECT_EQ(exit_status(ErrorCode::internal), 70);
}

// The program as a build with these commands documents it.
std::string meaning_in(const Words& commands, const std::string& status) {
  CommandDoc program;
  program.path = "leasehold";
  for (const std::string& name : commands) program.children.emplace_back().name = name;
  for (const ExitStatusDoc& one : exit_status_docs(program)) {
    if (one.status == status) return one.meaning;
  }
  return "";
}

TEST(ExitStatusDocs, OnlyOfCommandsThatAreThere) {
  EXPECT_EQ(meaning_in({"run", "demo"}, "1"), "");
  EXPECT_EQ(meaning_in({"run", "demo"}, "3"), "");
  EXPECT_THAT(meaning_in({"run", "drill"}, "3"), HasSubstr("drill: too few faults"));
  EXPECT_THAT(meaning_in({"run", "demo"}, "130"), Not(HasSubstr("probe")));
  EXPECT_THAT(meaning_in({"outbox"}, "65"), HasSubstr("outbox relay: "));
  EXPECT_THAT(meaning_in({}, "69"), HasSubstr("not available")) << "of any command";
}

}  // namespace
}  // namespace leasehold::cli
