// A program with one more command, which is a folder (cli/tests/toy) and one word in the list of
// families: whatever is made from that list has it.
#include "cli/tests/cli_fixture.h"

namespace leasehold::cli {
namespace {

class ToyTest : public CliTest {
 protected:
  Finished toy(Words words) const {
    words.insert(words.begin(), LEASEHOLD_WITH_TOY);
    return finish(std::move(words));
  }
};

TEST_F(ToyTest, Runs) {
  EXPECT_EQ(toy({"toy", "--times", "2"}).out, "beep\nbeep\n");
  EXPECT_EQ(toy({"toy", "--break"}).status, 9);
  const Finished wrong = toy({"toy", "--times", "4"});
  EXPECT_EQ(wrong.status, 64);
  EXPECT_THAT(wrong.err, HasSubstr("--times: '4' is not a whole number from 1 to 3"));
  EXPECT_THAT(toy({"tyo"}).err, HasSubstr("did you mean 'toy'?"));
  EXPECT_EQ(toy({"version"}).out, leasehold({"version"}).out) << "the others are there too";
}

TEST_F(ToyTest, EndsOnlyAsItHasDeclared) {
#ifndef NDEBUG
  const Finished done = toy({"toy", "--surprise"});
  EXPECT_EQ(done.status, 70);
  EXPECT_THAT(done.err, HasSubstr("exit status 8 is not declared"));
#endif
}

TEST_F(ToyTest, IsInAllTexts) {
  EXPECT_THAT(toy({"--help"}).out,
              AllOf(HasSubstr("\n  toy                     Play\n"), HasSubstr(", 9, ")));
  EXPECT_THAT(toy({"toy", "--help"}).out,
              AllOf(HasSubstr("How often to play (1 to 3, default 1)"),
                    HasSubstr("\n  9                       the toy is broken\n")));
  EXPECT_THAT(toy({"man"}).out,
              AllOf(HasSubstr(".SS leasehold toy"), HasSubstr("toy: the toy is")));
  for (const char* shell : {"bash", "zsh", "fish"}) {
    EXPECT_THAT(toy({"completion", shell}).out, AllOf(HasSubstr("toy"), HasSubstr("times")))
        << shell;
  }
}

TEST_F(ToyTest, IsNotInTheProgramThatIsShipped) {
  EXPECT_EQ(leasehold({"toy"}).status, 64);
}

}  // namespace
}  // namespace leasehold::cli
