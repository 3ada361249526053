#include "leasehold/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leasehold {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(UrlTest, FilePaths) {
  EXPECT_EQ(Url::parse("sqlite:/var/lib/x.db")->path, "/var/lib/x.db");
  EXPECT_EQ(Url::parse("sqlite:///var/lib/x.db")->path, "/var/lib/x.db");
  EXPECT_EQ(Url::parse("sqlite:x.db")->path, "x.db");
  EXPECT_EQ(Url::parse("sqlite:/with%20space")->path, "/with space");
}

TEST(UrlTest, ManyHostsUserPasswordAndOptions) {
  const auto url = Url::parse("etcd://me:s%3Acret@a:1,b,[::1]:3/prefix?ttl=3&x=a%26b");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->user, "me");
  EXPECT_EQ(url->password, "s:cret");
  ASSERT_EQ(url->hosts.size(), 3u);
  EXPECT_EQ(url->hosts[1].host, "b");
  EXPECT_EQ(url->hosts[1].port, "");
  EXPECT_EQ(url->hosts[2].host, "::1");
  EXPECT_EQ(url->hosts[2].port, "3");
  EXPECT_EQ(url->query.at("x"), "a&b");
  EXPECT_EQ(url->redacted(), "etcd://a:1,b,[::1]:3/prefix");
}

TEST(UrlTest, NoErrorRepeatsAPassword) {
  for (const auto* text :
       {"redis://u:hunter2@:1", "redis://u:hunter2@h:port", "redis://u:hunter2%zz@h",
        "redis://u:hunter2@[::1", "redis://u:hunter2@h/%zz", "redis://u:hunter2@h?=x"}) {
    const auto url = Url::parse(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code, ErrorCode::invalid);
    EXPECT_THAT(to_string(url.error()), Not(HasSubstr("hunter2")));
  }
  EXPECT_THAT(Url::parse("redis://u:hunter2@h")->redacted(), Not(HasSubstr("hunter2")));
}

TEST(UrlTest, RedactedAddressIsReadAgain) {
  for (const auto* text :
       {"sqlite:/a%20b%3Fc%25d", "sqlite:////a", "sqlite:x", "etcd://[::1]:2379,b:1/p%0Aq"}) {
    const auto url = Url::parse(text);
    ASSERT_TRUE(url) << text;
    const auto again = Url::parse(url->redacted());
    ASSERT_TRUE(again) << url->redacted();
    EXPECT_EQ(again->path, url->path);
    EXPECT_EQ(again->hosts.size(), url->hosts.size());
  }
}

TEST(UrlTest, RefusesWhatIsNoUrl) {
  for (const auto* text : {"", "locks.db", "/var/lib/x", ":x", "SQLITE:x", "sqlite:%",
                           "a://h:", "a://h:123456", "sqlite:%00"}) {
    EXPECT_EQ(Url::parse(text).error().code, ErrorCode::invalid) << text;
  }
}

TEST(UrlTest, UnknownAndDoubleOptionsAreNamed) {
  const auto url = Url::parse("sqlite:x?colour=red");
  EXPECT_THAT(url->only_options({}).error().message, HasSubstr("colour"));
  EXPECT_THAT(url->only_options({"mode"}).error().message, HasSubstr("takes: mode"));
  EXPECT_TRUE(url->only_options({"colour"}));
  EXPECT_THAT(Url::parse("sqlite:x?a=1&a=2").error().message, HasSubstr("twice"));
}

}  // namespace
}  // namespace leasehold
