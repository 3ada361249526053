#include "keys.h"

#include <gmock/gmock.h>

#include "metrics.h"
#include "options.h"
#include "transactions.h"
#include "version.h"

namespace leasehold::etcd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

LockName lock(std::string_view name) {
  return LockName::parse(name).value();
}

TEST(KeysTest, NoLockLiesInsideAnothersFolder) {
  const Keys keys("p/");
  EXPECT_EQ(keys.folder(lock("a")), "p/a/");
  EXPECT_EQ(keys.folder(lock("a/b")), "p/a%2Fb/");
  EXPECT_EQ(keys.folder(lock("%2F")), "p/%252F/");
  EXPECT_FALSE(keys.folder(lock("a/b")).starts_with(keys.folder(lock("a"))));
}

TEST(KeysTest, NamesComeBack) {
  const Keys keys("p/");
  for (const std::string name : {"a", "a/b", "%2e", "Überweisung/☕", "x y", "!lineage", "\""}) {
    const RequestId request = RequestId::random(system_random());
    const std::string key = keys.own(lock(name), request);
    const auto place = keys.parse(key);
    ASSERT_TRUE(place) << name;
    EXPECT_EQ(place->lock.str(), name);
    EXPECT_EQ(request_of(place->leaf, 7), request);
    EXPECT_GE(key, keys.locks_begin());
    EXPECT_LT(key, keys.locks_end());
  }
  EXPECT_TRUE(keys.parse("p/a%2Fb")->outside);
  EXPECT_FALSE(keys.parse("p/a%2Fb/")->outside);
  EXPECT_FALSE(keys.parse("p/!once/a"));
  EXPECT_FALSE(keys.parse("p/!lineage"));
  EXPECT_FALSE(keys.parse("q/a/1"));
  for (const char* not_ours : {"p/%41/1", "p/a%2f/1"}) EXPECT_FALSE(keys.parse(not_ours));
  EXPECT_LT(keys.lineage(), keys.locks_begin());
  EXPECT_LT(keys.once(lock("a"), "k"), keys.locks_begin());
}

TEST(KeysTest, ForeignHoldersHaveAnIdOfTheirOwn) {
  EXPECT_EQ(request_of("694d7f", 12), request_of("694d7f", 12));
  EXPECT_NE(request_of("694d7f", 12), request_of("694d7f", 13));
}

TEST(KeysTest, TheKeysNameTellsTheMode) {
  const Keys keys("p/");
  const RequestId request = RequestId::random(system_random());
  for (const Mode mode : {Mode::exclusive(), Mode::shared(), Mode::permit_of(10'000)}) {
    const std::string key = keys.own(lock("a"), request, mode);
    const auto leaf = Leaf::parse(keys.parse(key)->leaf);
    ASSERT_TRUE(leaf) << key;
    EXPECT_EQ(leaf->request, request);
    EXPECT_EQ(leaf->mode, mode);
    EXPECT_EQ(request_of(keys.parse(key)->leaf, 7), request);
  }
  EXPECT_FALSE(
      keys.own(lock("a"), request, Mode::permit_of(40)).starts_with(keys.permits(lock("a"), 4)));
  const std::string hex = request.hex();
  for (const std::string& foreign :
       {"permit-" + hex, "permit-0-" + hex, "permit-04-" + hex, "permit-10001-" + hex,
        "permit--1-" + hex, "shared-" + hex + "0", "Shared-" + hex, std::string()}) {
    EXPECT_FALSE(Leaf::parse(foreign)) << foreign;
    EXPECT_EQ(mode_of(foreign), Mode::exclusive()) << foreign;
  }
}

TEST(KeysTest, SlotsAndSetPermitsComeBack) {
  const Keys keys("p/");
  const auto slot = Keys::parse_numbered(keys.slot(lock("a/b"), Slot{17}), keys.slots());
  ASSERT_TRUE(slot);
  EXPECT_EQ(slot->lock.str(), "a/b");
  EXPECT_EQ(slot->number, 17);
  const auto set = Keys::parse_numbered(keys.set_permits(lock("a"), 4), keys.set_permits());
  ASSERT_TRUE(set);
  EXPECT_EQ(set->number, 4);
  for (const char* foreign : {"p/!slot/a", "p/!slot/a/", "p/!slot/a/-1", "p/!slot/a/01",
                              "p/!slot/a/1/2", "p/!slot/%41/1", "p/!permits/a/1", "q/!slot/a/1"}) {
    EXPECT_FALSE(Keys::parse_numbered(foreign, keys.slots())) << foreign;
  }
  EXPECT_FALSE(keys.parse(keys.slot(lock("a"), Slot{0}))) << "no request";
  EXPECT_FALSE(keys.parse(keys.set_permits(lock("a"), 4)));
  const RequestId request = RequestId::random(system_random());
  const std::string value = slot_value(request, Mode::permit_of(4));
  EXPECT_EQ(slot_owner(value), leaf_of(request, Mode::permit_of(4)));
  EXPECT_FALSE(slot_owner("2" + value.substr(1)));
}

TEST(KeysTest, ValuesComeBack) {
  for (const std::string note : {"", "10.0.0.7:9000, version 2.1"}) {
    const OwnValue value{OwnValue::State::kept, 1763190000000, "host:1:a program", note};
    const auto again = OwnValue::parse(value.str());
    ASSERT_TRUE(again);
    EXPECT_EQ(again->state, value.state);
    EXPECT_EQ(again->since_ms, value.since_ms);
    EXPECT_EQ(again->owner, value.owner);
    EXPECT_EQ(again->note, note);
  }
  for (const char* foreign : {"", "1", "1 held", "1 held x y", "1 lent 1 me"}) {
    EXPECT_FALSE(OwnValue::parse(foreign)) << foreign;
  }
  EXPECT_FALSE(OwnValue::parse("1 held -9223372036854775808 me")) << "a time is not negative";
  EXPECT_EQ(OwnValue::parse("1 held 1 \033[2J")->owner, "(an unreadable label)");
  EXPECT_EQ(OwnValue::parse("1 held 1 me\n\033[2J")->note, "(an unreadable note)");
  EXPECT_EQ(owner_of("p/a/\033[2J", std::nullopt),
            "another program (etcd key (an unreadable label))");
}

TEST(KeysTest, WhatAnotherVersionWroteIsNeverMisread) {
  for (const char* other : {"held 1763190000000 host:1:program", "2 held 1763190000000 host:1:p"}) {
    EXPECT_FALSE(OwnValue::parse(other)) << other;
  }
  const std::string key =
      Keys("p/").own(lock("a"), RequestId::from_hex(std::string(32, 'a')).value());
  EXPECT_EQ(owner_of(key, std::nullopt), "another version of Leasehold (etcd key " + key + ")");
}

TEST(KeysTest, RecordsComeBack) {
  const auto record = decode_record(encode_record({"a\nb", "3\nc"}));
  ASSERT_TRUE(record);
  EXPECT_EQ(record->parameters, "a\nb");
  EXPECT_EQ(record->result, "3\nc");
  EXPECT_FALSE(decode_record("9\nshort"));
}

TEST(VersionTest, OldServersAndKnownFaultsAreFound) {
  EXPECT_LT(*Version::parse("3.3.27"), kOldestVersion);
  EXPECT_GE(*Version::parse("3.4.0"), kOldestVersion);
  EXPECT_GE(*Version::parse("3.10.1-rc.0"), kOldestVersion);
  EXPECT_FALSE(Version::parse(""));
  EXPECT_FALSE(Version::parse("3.4"));
  EXPECT_FALSE(Version::parse("three.4.1"));
  EXPECT_FALSE(known_fault({3, 4, 23}).empty());
  EXPECT_FALSE(known_fault({3, 5, 13}).empty());
  EXPECT_TRUE(known_fault({3, 4, 32}).empty());
  EXPECT_TRUE(known_fault({3, 5, 14}).empty());
  EXPECT_TRUE(known_fault({3, 6, 0}).empty());
}

TEST(VersionTest, OldServersAreRefusedWithTheirVersion) {
  for (const std::string old : {"2.3.8", "3.3.27", "three", ""}) {
    const auto refused = fault_of("etcd://a:2379", old);
    ASSERT_FALSE(refused) << old;
    EXPECT_EQ(refused.error().code, ErrorCode::unavailable) << old;
    EXPECT_THAT(to_string(refused.error()),
                AllOf(HasSubstr("etcd://a:2379"), HasSubstr("version 3.4 or later")));
    EXPECT_EQ(refused.error().store_words, "version " + old);
  }
  EXPECT_THAT(fault_of("etcd://a:2379", "3.4.23").value(), HasSubstr("etcd 3.4.23: after a crash"));
  EXPECT_EQ(fault_of("etcd://a:2379", "3.6.0").value(), "");
}

Result<Options> options_of(const std::string& url) {
  return Options::of(Url::parse(url).value());
}

TEST(OptionsTest, UrlsAreRead) {
  const auto plain = options_of("etcd://a,b:1,[::1]");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->endpoints, (std::vector<std::string>{"a:2379", "b:1", "[::1]:2379"}));
  EXPECT_EQ(plain->prefix, "leasehold/");
  EXPECT_EQ(options_of("etcd://a/app/locks")->prefix, "app/locks/");
  EXPECT_EQ(options_of("etcd://a//app")->prefix, "/app/");
}

TEST(OptionsTest, WrongUrlsAreInvalid) {
  for (const char* url : {"etcd:", "etcd://user@a", "etcd://a?colour=red", "etcd://a?tls=maybe",
                          "etcd://a?ca=/no/such/file", "etcd://a/locks%0A", "etcd://a/%FF"}) {
    const auto options = options_of(url);
    ASSERT_FALSE(options) << url;
    EXPECT_EQ(options.error().code, ErrorCode::invalid) << url;
  }
}

wire::TxnResponse answer_to_a_put_and_a_get() {
  wire::TxnResponse response;
  response.set_succeeded(true);
  response.mutable_header()->set_revision(7);
  response.add_responses()->mutable_put();
  wire::KeyValue& kv = *response.add_responses()->mutable_range()->add_kvs();
  kv.set_key("k");
  kv.set_create_revision(5);
  kv.set_mod_revision(6);
  return response;
}

TEST(ExpectedAnswerTest, IsWhatWasAskedForAndNothingElse) {
  wire::TxnRequest request;
  *request.add_success() = put("k", "", 1);
  *request.add_success() = get("k");
  *request.add_failure() = get("k");
  const ExpectedAnswer expected(request);
  EXPECT_TRUE(expected.is(answer_to_a_put_and_a_get()));

  wire::TxnResponse response = answer_to_a_put_and_a_get();
  response.mutable_responses()->RemoveLast();
  EXPECT_FALSE(expected.is(response)) << "one is missing";
  response = answer_to_a_put_and_a_get();
  response.add_responses()->mutable_range();
  EXPECT_FALSE(expected.is(response)) << "one is too many";
  response = answer_to_a_put_and_a_get();
  response.mutable_responses(0)->mutable_delete_range();
  EXPECT_FALSE(expected.is(response)) << "another kind";
  response = answer_to_a_put_and_a_get();
  response.set_succeeded(false);
  EXPECT_FALSE(expected.is(response)) << "of the other branch";
  response = answer_to_a_put_and_a_get();
  response.mutable_responses(1)->mutable_range()->mutable_kvs(0)->set_create_revision(0);
  EXPECT_FALSE(expected.is(response)) << "a key that was never created";
  response = answer_to_a_put_and_a_get();
  response.clear_header();
  EXPECT_FALSE(expected.is(response)) << "no revision";
}

TEST(VersionTest, FaultsAreThoseOfTheVersionsThatHaveThem) {
  const auto sources_of = [](const Version& version) {
    std::string all;
    for (const KnownFault& fault : known_faults()) {
      if (fault.mended_in(version)) all += std::string(fault.source) + "\n";
    }
    return all;
  };
  EXPECT_THAT(sources_of({3, 5, 2}), HasSubstr("pull 13908"));
  EXPECT_THAT(sources_of({3, 5, 3}), Not(HasSubstr("pull 13908")));
  EXPECT_THAT(sources_of({3, 4, 23}), AllOf(HasSubstr("issue 17780"), HasSubstr("issue 15247"),
                                            Not(HasSubstr("pull 13908"))));
  EXPECT_THAT(sources_of({3, 4, 31}), AllOf(HasSubstr("17780"), Not(HasSubstr("15247"))));
  EXPECT_THAT(sources_of({3, 5, 13}), AllOf(HasSubstr("17780"), Not(HasSubstr("15247"))));
  EXPECT_THAT(sources_of({3, 4, 20}), HasSubstr("14423"));
  EXPECT_THAT(sources_of({3, 4, 21}), Not(HasSubstr("14423")));
  EXPECT_THAT(sources_of({3, 5, 5}), AllOf(HasSubstr("14733"), Not(HasSubstr("14424"))));
  EXPECT_THAT(sources_of({3, 6, 8}), HasSubstr("GHSA-q8m4-xhhv-38mg"));
  EXPECT_EQ(sources_of({3, 6, 9}), "");
  EXPECT_EQ(sources_of({3, 5, 28}), "");
  for (const KnownFault& fault : known_faults()) {
    for (const auto& line : fault.lines) {
      if (line.mended == Version{}) continue;
      EXPECT_EQ(fault.mended_in(line.from), line.mended) << fault.what;
      EXPECT_FALSE(fault.mended_in(line.mended)) << fault.what;
    }
  }
}

TEST(MetricsTest, NumbersAndQuantilesAreRead) {
  const Metrics metrics = Metrics::parse(
      "# HELP quota bytes\nquota 2.147483648e+09\nwith{a=\"b\"} 3\nbroken\nword x\n"
      "sync_bucket{le=\"0.001\"} 90\nsync_bucket{le=\"0.002\"} 98\n"
      "sync_bucket{le=\"0.004\"} 99\nsync_bucket{le=\"+Inf\"} 100\nsync_count 100\n"
      "none_bucket{le=\"+Inf\"} 0\n");
  EXPECT_EQ(metrics.value("quota"), 2147483648.0);
  EXPECT_EQ(metrics.value("with"), std::nullopt);
  EXPECT_EQ(metrics.value("word"), std::nullopt);
  EXPECT_EQ(metrics.quantile("sync", 0.5), 0.001);
  EXPECT_EQ(metrics.quantile("sync", 0.99), 0.004);
  EXPECT_EQ(metrics.quantile("none", 0.99), std::nullopt);
  EXPECT_EQ(metrics.quantile("missing", 0.99), std::nullopt);
}

TEST(MetricsTest, TheDateOfAPageIsRead) {
  const auto date = date_of("HTTP/1.0 200 OK\r\nDate: Thu, 01 Jan 1970 00:01:40 GMT\r\n");
  ASSERT_TRUE(date);
  EXPECT_EQ(date->time_since_epoch(), std::chrono::seconds(100));
  EXPECT_FALSE(date_of("HTTP/1.0 200 OK\r\n"));
  EXPECT_FALSE(date_of("Date: yesterday\r\n"));
  EXPECT_FALSE(date_of("Date: Fri, 31 Dec 9999 23:59:59 GMT\r\n")) << "nanoseconds end in 2262";
}

}  // namespace
}  // namespace leasehold::etcd
