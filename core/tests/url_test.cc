#include "leasehold/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "kit/text/shown_word.h"
#include "leasehold/tls_options.h"
#include "rig/temp_folder.h"

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

TEST(UrlTest, ATildeThatNoShellExpandsIsRefused) {
  for (const auto* text : {"sqlite:~/x.db", "file:~root/x", "sqlite:~"}) {
    const auto url = Url::parse(text);
    ASSERT_FALSE(url) << text;
    EXPECT_THAT(url.error().message, HasSubstr(":$HOME/"));
  }
  EXPECT_EQ(Url::parse("sqlite:%7E/x.db")->path, "~/x.db");
  EXPECT_EQ(Url::parse("sqlite:/home/~/x.db")->path, "/home/~/x.db");
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
  EXPECT_EQ(url->redacted(), "etcd://me@a:1,b,[::1]:3/prefix?ttl=3&x=a%26b");
}

TEST(UrlTest, NoErrorRepeatsAPassword) {
  for (const auto* text :
       {"redis://u:hunter2@:1", "redis://u:hunter2@h:port", "redis://u:hunter2%zz@h",
        "redis://u:hunter2@[::1", "redis://u:hunter2@h/%zz", "redis://u:hunter2@h?=x",
        "redis://u:12/hunter2@h"}) {
    const auto url = Url::parse(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code, ErrorCode::invalid);
    EXPECT_THAT(to_string(url.error()), Not(HasSubstr("hunter2")));
  }
  EXPECT_EQ(Url::parse("redis://u:hunter2@h?password=hunter2")->redacted(), "redis://u@h");
}

// Else its first part would be the password, and what follows the host that is not found.
TEST(UrlTest, APasswordWithASlashAndAnAtSignIsNotCutInTwo) {
  for (const auto* text : {"postgres://u:hun@ter2/x@h/db", "redis://u:12?ter2@h:1",
                           "redis://u:12?a=ter2&a=ter2@h:1"}) {
    const auto url = Url::parse(text);
    ASSERT_FALSE(url) << text;
    EXPECT_THAT(url.error().message, AllOf(HasSubstr("%2F"), HasSubstr("%3F")));
    EXPECT_THAT(url.error().message, Not(HasSubstr("ter2")));
  }
  EXPECT_EQ(Url::parse("postgres://u:hun@ter2%2Fx@h/db")->password, "hun@ter2/x");
}

TEST(UrlTest, PortsAreFromOneTo65535) {
  EXPECT_EQ(Url::parse("redis://h:1,g:65535")->hosts[1].port, "65535");
  for (const auto* text : {"etcd://h:0", "etcd://h:65536", "zookeeper://h:99999"}) {
    const auto url = Url::parse(text);
    ASSERT_FALSE(url) << text;
    EXPECT_THAT(to_string(url.error()), HasSubstr("from 1 to 65535"));
  }
}

TEST(UrlTest, RedactedAddressIsReadAgain) {
  for (const auto* text : {"sqlite:/a%20b%3Fc%25d", "sqlite:////a", "sqlite:x", "sqlite:%7Ex",
                           "etcd://[::1]:2379,b:1/p%0Aq"}) {
    const auto url = Url::parse(text);
    ASSERT_TRUE(url) << text;
    const auto again = Url::parse(url->redacted());
    ASSERT_TRUE(again) << url->redacted();
    EXPECT_EQ(again->path, url->path);
    EXPECT_EQ(again->hosts.size(), url->hosts.size());
  }
}

TEST(UrlTest, RedactedAddressIsReadAgainWithAnAtSignInThePath) {
  for (const auto* text : {"redis://:hunter2@h/a%40b", "x:%2f%2fa@b", "x:a@b", "x://u@h/a%40b",
                           "x://h/?a%40b=c%40d"}) {
    const auto url = Url::parse(text);
    ASSERT_TRUE(url) << text;
    const auto again = Url::parse(url->redacted());
    ASSERT_TRUE(again) << url->redacted();
    EXPECT_EQ(again->path, url->path) << text;
    EXPECT_EQ(again->query, url->query) << text;
  }
}

TEST(UrlTest, AHostCanBePrinted) {
  for (const auto* text : {"x://a\nb/", "x://a b/", "x://a\x7f/", "x://[[a]:1/", "x://a]/"}) {
    const auto url = Url::parse(text);
    ASSERT_FALSE(url) << text;
    EXPECT_THAT(url.error().message, HasSubstr("host")) << text;
  }
  EXPECT_EQ(Url::parse("x://[fe80::1%eth0]:1")->redacted(), "x://[fe80::1%eth0]:1");
}

TEST(UrlTest, PasswordFromAFileOrTheEnvironment) {
  const rig::TempFolder folder;
  std::ofstream(folder.file("secret")) << "hunter2\n";
  std::ofstream(folder.file("empty")) << "\n";
  setenv("LEASEHOLD_TEST_SECRET", "hunter3", 1);

  auto url = Url::parse("redis://u@h?password_file=" + folder.file("secret")).value();
  ASSERT_TRUE(url.read_secrets());
  EXPECT_EQ(url.password, "hunter2");
  EXPECT_TRUE(url.only_options({}));
  EXPECT_EQ(url.redacted(), "redis://u@h?password_file=" + folder.file("secret"));

  url = Url::parse("redis://u@h?password_env=LEASEHOLD_TEST_SECRET").value();
  ASSERT_TRUE(url.read_secrets());
  EXPECT_EQ(url.password, "hunter3");

  ASSERT_EQ(mkfifo(folder.file("pipe").c_str(), 0600), 0);
  for (const std::string& text :
       {"redis://h?password_file=" + folder.file("none"),
        "redis://h?password_file=" + folder.file("pipe"),  // nobody ever writes into it
        std::string("redis://h?password_file=/dev/zero"),
        std::string("redis://h?password_file=/proc/self/mem"),  // reading it fails
        "redis://h?password_file=" + folder.file("empty"),
        std::string("redis://h?password_env=LEASEHOLD_TEST_NOT_SET"),
        std::string("redis://u:hunter2@h?password_env=LEASEHOLD_TEST_SECRET")}) {
    const auto refused = Url::parse(text)->read_secrets();
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, ErrorCode::invalid);
    EXPECT_THAT(refused.error().message, Not(HasSubstr("hunter")));
  }
}

TEST(UrlTest, RefusesWhatIsNoUrl) {
  for (const auto* text : {"", "locks.db", "/var/lib/x", ":x", "SQLITE:x", "sqlite:%",
                           "a://h:", "a://h:123456", "sqlite:%00"}) {
    EXPECT_EQ(Url::parse(text).error().code, ErrorCode::invalid) << text;
  }
}

TEST(ShownWordTest, APasswordIsHiddenThoughItsUrlIsNone) {
  EXPECT_EQ(kit::shown("redis:/u:hunter2@h"), "redis:...");
  EXPECT_EQ(kit::shown("postgres:u:hunter2@h/db"), "postgres:...");
  EXPECT_EQ(kit::shown("redis//u:hunter2@h"), "redis//u:...");
  EXPECT_EQ(kit::shown("u:hunter2@h:6379"), "u:...");
  EXPECT_EQ(kit::shown("host=h password=hunter2"), "host=h password=...");
  EXPECT_EQ(kit::shown("redis://u:hunter2@h:port?x"), "redis://...");
  EXPECT_EQ(kit::shown("h?password=hunter2"), "h?password=...");
  EXPECT_EQ(kit::shown("PGPASSWORD=hunter2"), "PGPASSWORD=...");
  EXPECT_EQ(kit::shown("redis://:hunter2"), "redis://...") << "the host is missing";
  EXPECT_EQ(kit::shown("redis://u:hunter2%40h"), "redis://...");
  for (const char* option : {"PASSWORD", "pwd", "auth", "Token", "client_secret"}) {
    EXPECT_EQ(kit::shown(std::string("redis://h/0?") + option + "=hunter2&tls=on"),
              "redis://h/0?tls=on");
  }
  for (const char* harmless :
       {"sqlite:/a@b", "pass", "a=b", "me@h", "5s", "redis://h:1/0", "a:b c"}) {
    EXPECT_EQ(kit::shown(harmless), harmless);
  }
}

TEST(ShownWordTest, NoPasswordIsLeftInAMessage) {
  using kit::without_passwords;
  EXPECT_EQ(without_passwords("'redis://u:hunter2@h:1/0' and pg://:hunt@er@h."),
            "'redis://u:***@h:1/0' and pg://:***@h.");
  EXPECT_EQ(without_passwords("no colon: a@b, http://127.0.0.1:9000/x is fine"),
            "no colon: a@b, http://127.0.0.1:9000/x is fine");
  EXPECT_EQ(without_passwords("etcd://u@a:1,b:2 has none"), "etcd://u@a:1,b:2 has none");
  EXPECT_EQ(without_passwords("://"), "://");
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += "://";
  EXPECT_EQ(without_passwords(many), many) << "and in no time";
}

TEST(UrlTest, UnknownAndDoubleOptionsAreNamed) {
  const auto url = Url::parse("sqlite:x?colour=red");
  EXPECT_THAT(url->only_options({}).error().message, HasSubstr("colour"));
  EXPECT_THAT(url->only_options({"mode"}).error().message, HasSubstr("takes: mode"));
  EXPECT_TRUE(url->only_options({"colour"}));
  EXPECT_THAT(Url::parse("sqlite:x?a=1&a=2").error().message, HasSubstr("twice"));
}

TEST(TlsOptionsTest, AnyTlsFileTurnsItOn) {
  const rig::TempFolder folder;
  const std::string pem = folder.file("x.pem");
  std::ofstream(pem) << "x";
  const auto of = [](const std::string& query, bool always = false) {
    return TlsOptions::of(Url::parse("etcd://h" + query).value(), always);
  };
  EXPECT_FALSE(of("")->on);
  EXPECT_TRUE(of("", true)->on);
  EXPECT_TRUE(of("?tls=on")->on);
  EXPECT_TRUE(of("?ca=" + pem)->on);
  EXPECT_EQ(of("?cert=" + pem + "&key=" + pem)->key, pem);
  for (const std::string& wrong : {std::string("?tls=maybe"), "?cert=" + pem,
                                   "?ca=" + folder.file("none"), "?tls=off&ca=" + pem}) {
    EXPECT_EQ(of(wrong).error().code, ErrorCode::invalid) << wrong;
  }
  EXPECT_EQ(of("?tls=off", true).error().code, ErrorCode::invalid);
}

}  // namespace
}  // namespace leasehold
