#include <gmock/gmock.h>

#include "leasehold/url.h"
#include "node_names.h"
#include "options.h"

namespace leasehold::zookeeper {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> ordered(const std::vector<std::string>& names) {
  std::vector<std::string> result;
  for (const Child& it : in_order(names)) result.push_back(it.name);
  return result;
}

TEST(NodeNames, EveryTextHasANameOfItsOwnAndComesBack) {
  for (const std::string text :
       {"job", "a/b", "%2F", "..", ".", ".lineage", "a.b", "Ü☕", "a b", "_c_x-lock-0000000001"}) {
    const std::string name = encode(text);
    EXPECT_THAT(name, Not(HasSubstr("/")));
    EXPECT_FALSE(name.starts_with('.')) << name;
    EXPECT_EQ(decode(name), text);
  }
  EXPECT_EQ(encode("a/b"), "a%2Fb");
  EXPECT_EQ(encode("job-1_x.y"), "job-1_x.y");
  EXPECT_FALSE(decode(".once"));
  EXPECT_FALSE(decode("a%2"));
  EXPECT_FALSE(decode("a%zz"));
  EXPECT_FALSE(decode("%41")) << "encode() leaves an A as it is";
}

TEST(NodeNames, PrefixIsThatOfTheRecipe) {
  const auto id = RequestId::from_hex("00112233445566778899aabbccddeeff").value();
  EXPECT_EQ(node_prefix(id, Recipe::curator), "_c_00112233-4455-6677-8899-aabbccddeeff-lock-");
  EXPECT_EQ(node_prefix(id, Recipe::kazoo), "00112233445566778899aabbccddeeff__lock__");
  for (const Recipe recipe : {Recipe::curator, Recipe::kazoo}) {
    EXPECT_EQ(in_order({node_prefix(id, recipe) + "0000000007"})[0].request, id);
  }
}

TEST(NodeNames, ModeStandsBeforeTheLock) {
  const auto id = RequestId::from_hex("00112233445566778899aabbccddeeff").value();
  const std::string begin = "_c_00112233-4455-6677-8899-aabbccddeeff-";
  const std::pair<Mode, std::string> prefixes[] = {
      {Mode::exclusive(), begin + "lock-"},
      {Mode::shared(), begin + "shared-lock-"},
      {Mode::permit_of(10'000), begin + "permit-of-10000-lock-"}};
  for (const auto& [mode, prefix] : prefixes) {
    EXPECT_EQ(node_prefix(id, Recipe::curator, mode), prefix);
    EXPECT_TRUE(prefix.starts_with(request_prefix(id, Recipe::curator)));
    const auto child = in_order({prefix + "0000000007"})[0];
    EXPECT_EQ(child.mode, mode) << prefix;
    EXPECT_EQ(child.request, id);
  }
}

TEST(NodeNames, WhatIsNotOursIsExclusive) {
  const std::string begin = "_c_00112233-4455-6677-8899-aabbccddeeff-";
  for (const std::string& name :
       {begin + "permit-of-0-lock-0000000007", begin + "permit-of--1-lock-0000000007",
        begin + "permit-of-10001-lock-0000000007", begin + "permit-of-4-lease-0000000007",
        begin + "permit-of-99999999999999999999-lock-0000000007", begin + "sharedlock-0000000007",
        begin + "__READ__0000000007", begin + "later-lock-0000000007",
        std::string("shared-lock-0000000007"), std::string("_c_shared-lock-0000000007"),
        std::string("00112233445566778899aabbccddeeff__lock__shared-lock-0000000007")}) {
    EXPECT_EQ(mode_of(name), Mode::exclusive()) << name;
  }
}

TEST(NodeNames, NumberOfPermitsIsAChildThatDoesNotStandInTheQueue) {
  EXPECT_EQ(permits_name(10'000), "permits-10000");
  EXPECT_EQ(permits_in("permits-10000"), 10'000);
  EXPECT_THAT(ordered({"permits-10000"}), ElementsAre());
  for (const char* name : {"permits-", "permits-0", "permits--1", "permits-10001", "permits-04",
                           "permits-4x", "permits-99999999999999999999", "permit-4"}) {
    EXPECT_FALSE(permits_in(name)) << name;
  }
}

TEST(NodeNames, OtherFormatsOfAStoreAreToldApart) {
  const auto id = StoreId::from_hex("00112233445566778899aabbccddeeff").value();
  EXPECT_EQ(lineage_text(id), "leasehold 2 00112233445566778899aabbccddeeff");
  EXPECT_EQ(lineage_in(lineage_text(id)), id);
  const std::pair<std::string, const char*> others[] = {
      {id.hex(), "earlier build"},
      {"leasehold 3 " + id.hex(), "later version of Leasehold, in format 3; this program knows"},
      {"leasehold 2 x", "does not hold what Leasehold writes"},
      {"leasehold 1 " + id.hex(), "does not hold what Leasehold writes"},
      {"", "does not hold what Leasehold writes"}};
  for (const auto& [text, why] : others) {
    EXPECT_FALSE(lineage_in(text)) << text;
    EXPECT_THAT(why_not_ours("/x/.lineage", text).message, HasSubstr(why)) << text;
  }
}

TEST(NodeNames, LeaseOfASemaphoreStandsBeforeTheQueue) {
  EXPECT_THAT(ordered({"lock-0000000001", "leases/x-lease-0000000009", "leases",
                       "leases/x-lease-0000000003", "locks", "00112233445566778899aa1234567890"}),
              ElementsAre("00112233445566778899aa1234567890", "leases/x-lease-0000000003",
                          "leases/x-lease-0000000009", "lock-0000000001"));
}

TEST(NodeNames, AnotherProgramIsShownWithWhatItSays) {
  EXPECT_EQ(who("n", Label{5000, "host:1:app"}.str()), "host:1:app");
  EXPECT_EQ(who("n", "10.0.0.7"), "another program (node n, which says '10.0.0.7')");
  EXPECT_EQ(who("n", ""), "another program (node n)");
  EXPECT_EQ(who("n", "\x1b[2J"), "another program (node n)");
}

TEST(NodeNames, OrderIsByTheNumberWhateverStandsBeforeIt) {
  EXPECT_THAT(ordered({"lock-0000000010", "_c_00112233-4455-6677-8899-aabbccddeeff-lock-0000000002",
                       "x-0000000003", "n_0000000001", "readme", "12"}),
              ElementsAre("n_0000000001", "_c_00112233-4455-6677-8899-aabbccddeeff-lock-0000000002",
                          "x-0000000003", "lock-0000000010"));
}

TEST(NodeNames, OrderGoesOnWhenTheNumberWraps) {
  EXPECT_THAT(ordered({"lock--2147483647", "lock-2147483647", "lock--2147483648"}),
              ElementsAre("lock-2147483647", "lock--2147483648", "lock--2147483647"));
  EXPECT_THAT(ordered({"lock-0000000000", "lock--000000001"}),
              ElementsAre("lock--000000001", "lock-0000000000"));
}

TEST(NodeNames, ForeignNodesHaveDifferentIds) {
  const auto both = in_order({"lock-0000000001", "lock-0000000002"});
  EXPECT_NE(both[0].request, both[1].request);
  EXPECT_EQ(both[0].request, in_order({"lock-0000000001"})[0].request) << "always the same";
}

TEST(NodeNames, LabelsComeBackAndForeignDataIsNone) {
  for (const char* note : {"", "10.0.0.7:9000, version 2.1"}) {
    const auto label = Label::parse(Label{1500, "web 1", note}.str());
    ASSERT_TRUE(label);
    EXPECT_EQ(label->owner, "web 1");
    EXPECT_EQ(label->session_ms, 1500);
    EXPECT_EQ(label->note, note);
  }
  for (const char* text :
       {"", "10.0.0.1", "leasehold 1 5 a", "leasehold 3 5 a", "leasehold 2 ", "leasehold 2 5",
        "leasehold 2 5 a\n", "leasehold 2 5 a\nb\nc", "leasehold 2 -5 a"}) {
    EXPECT_FALSE(Label::parse(text)) << text;
  }
}

Error error_of(const std::string& url) {
  auto options = Options::of(Url::parse(url).value());
  EXPECT_FALSE(options) << url;
  return options ? Error(ErrorCode::internal, "") : options.error();
}

TEST(ZookeeperUrl, SaysWhatItSays) {
  const auto options =
      Options::of(Url::parse("zookeeper://ann:s3cret@a:1,b,[::1]:3/x/y/").value()).value();
  EXPECT_EQ(options.hosts, "a:1,b:2181,[::1]:3");
  EXPECT_EQ(options.base, "/x/y");
  EXPECT_EQ(options.credentials, "ann:s3cret");
  EXPECT_THAT(options.address, Not(HasSubstr("s3cret")));
  EXPECT_EQ(Options::of(Url::parse("zookeeper://a").value())->base, "/leasehold");
  EXPECT_EQ(Options::of(Url::parse("zookeeper://a/").value())->base, "/leasehold");
}

TEST(ZookeeperUrl, WrongOnesAreRefusedByName) {
  EXPECT_THAT(error_of("zookeeper:///x").message, HasSubstr("host"));
  EXPECT_THAT(error_of("zookeeper://a/x//y").message, HasSubstr("path"));
  EXPECT_THAT(error_of("zookeeper://a/x/../y").message, HasSubstr("path"));
  EXPECT_THAT(error_of("zookeeper://a/zookeeper/x").message, HasSubstr("/zookeeper"));
  EXPECT_THAT(error_of("zookeeper://ann@a/x").message, HasSubstr("password"));
  EXPECT_THAT(error_of("zookeeper://a/x?colour=red").message, HasSubstr("colour"));
  EXPECT_EQ(error_of("zookeeper://a/x?recipe=pie").message,
            "the option recipe is curator or kazoo, not 'pie'");
  const Error tls = error_of("zookeeper://ann:s3cret@a/x?tls=on");
  EXPECT_EQ(tls.code, ErrorCode::unsupported);
  EXPECT_THAT(tls.message, HasSubstr("no TLS"));
  EXPECT_THAT(to_string(tls), Not(HasSubstr("s3cret")));
}

}  // namespace
}  // namespace leasehold::zookeeper
