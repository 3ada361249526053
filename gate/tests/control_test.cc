#include "control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "upstream.h"

namespace leasehold::gate {
namespace {

using ::testing::HasSubstr;

TEST(ControlTest, AnErrorIsOneLineWhateverWasAsked) {
  Turns turns(
      {}, [](const ResourceName&, const ResourceState&) { return Version{1}; }, TurnOptions{});
  Version version = 0;
  for (const char* line : {"%0Aok%0A x", "adopt a %1b[2J 7/x", "clear %0A", "", "clear"}) {
    const std::string answer = answer_command(turns, line, version);
    EXPECT_TRUE(answer.starts_with("error invalid ")) << answer;
    EXPECT_EQ(answer.find_first_of("\n\033"), answer.size() - 1) << answer;
  }
}

TEST(UpstreamAddressTest, NothingStandsBetweenTheHostAndThePort) {
  const auto fine = UpstreamAddress::parse("http://[::1]:9000/");
  ASSERT_TRUE(fine);
  EXPECT_EQ(fine->host, "::1");
  EXPECT_EQ(fine->port, "9000");
  const auto wrong = UpstreamAddress::parse("http://[::1]x80");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("between ']' and the port"));
}

TEST(UpstreamAddressTest, AHostCanBePrinted) {
  for (const char* text : {"http://a\nb:80", "http://a b", "http://\x7f", "http://[[a]:80"}) {
    const auto wrong = UpstreamAddress::parse(text);
    ASSERT_FALSE(wrong) << text;
    EXPECT_THAT(wrong.error().message, HasSubstr("has a host with")) << text;
  }
}

}  // namespace
}  // namespace leasehold::gate
