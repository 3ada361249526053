#include "cli/command/exit_status.h"

#include "cli/command/arguments.h"
#include "cli/tests/cli_fixture.h"

namespace leasehold::cli {
namespace {

TEST(ExitStatusOf, EveryErrorCode) {
  EXPECT_EQ(exit_status(ErrorCode::busy), ExitStatus{75});
  EXPECT_EQ(exit_status(ErrorCode::timeout), ExitStatus{75});
  EXPECT_EQ(exit_status(ErrorCode::cancelled), ExitStatus{130});
  EXPECT_EQ(exit_status(ErrorCode::unavailable), ExitStatus{69});
  EXPECT_EQ(exit_status(ErrorCode::outcome_unknown), ExitStatus{74});
  EXPECT_EQ(exit_status(ErrorCode::fenced_out), ExitStatus{76});
  EXPECT_EQ(exit_status(ErrorCode::lost), ExitStatus{76});
  EXPECT_EQ(exit_status(ErrorCode::unsafe_for_correctness), ExitStatus{77});
  EXPECT_EQ(exit_status(ErrorCode::unsupported), ExitStatus{77});
  EXPECT_EQ(exit_status(ErrorCode::invalid), ExitStatus{64});
  EXPECT_EQ(exit_status(ErrorCode::internal), ExitStatus{70});
}

std::string meaning_in(const CommandDoc& doc, const std::string& status) {
  for (const ExitStatusDoc& one : doc.exit_statuses) {
    if (one.status == status) return one.meaning;
  }
  return "";
}

TEST(ExitStatusDocs, AreWhatTheCommandsTell) {
  CommandLine line("toy", "A toy");
  Arguments& play = line.root().subcommand("play", "Play");
  play.ends_with(ExitStatus{1}, "out of breath");
  play.ends_with(ExitStatus::done, "played");
  play.also_ends_with(ExitStatus::wrong_input, "no such game");
  Arguments& box = line.root().subcommand("box", "A box");
  box.uses_store();
  box.subcommand("open", "Open it").ends_with(ExitStatus::by_signal, "it bites");

  const CommandDoc all = line.document();
  EXPECT_EQ(meaning_in(all, "0"), "done; play: played");
  EXPECT_EQ(meaning_in(all, "1"), "play: out of breath");
  EXPECT_EQ(meaning_in(all, "3"), "") << "of no command here";
  EXPECT_EQ(meaning_in(all, "128+n"), "box open: it bites");
  EXPECT_THAT(meaning_in(all, "69"), HasSubstr("not available")) << "of any command";

  const CommandDoc& of_play = all.children[0];
  EXPECT_EQ(meaning_in(of_play, "0"), "played");
  EXPECT_THAT(meaning_in(of_play, "64"), AllOf(HasSubstr("wrong input"), HasSubstr("; no such")));
  EXPECT_EQ(meaning_in(of_play, "69"), "") << "it opens no store";
  EXPECT_EQ(meaning_in(of_play, "128+n"), "") << "another command's";
  EXPECT_EQ(meaning_in(all.children[1], "128+n"), "") << "of one below it";
  const CommandDoc& of_open = all.children[1].children[0];
  EXPECT_THAT(meaning_in(of_open, "69"), HasSubstr("not available")) << "told above it";
  EXPECT_EQ(meaning_in(of_open, "128+n"), "it bites");
}

TEST(ExitStatusDocs, TellWhatMayHappen) {
  CommandLine line("toy", "A toy");
  Arguments& play = line.root().subcommand("play", "Play");
  play.ends_with(ExitStatus{1}, "out of breath");
  ASSERT_TRUE(line.parse({"play"}));
  EXPECT_TRUE(play.may_end_with(ExitStatus{1}));
  EXPECT_TRUE(play.may_end_with(ExitStatus::done));
  EXPECT_FALSE(play.may_end_with(ExitStatus::busy));
  EXPECT_FALSE(play.may_end_with(ExitStatus::unavailable)) << "it opens no store";
}

}  // namespace
}  // namespace leasehold::cli
