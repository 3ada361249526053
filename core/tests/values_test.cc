#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <type_traits>

#include "kit/text/visible_text.h"
#include "kit/threads/thread_safety.h"
#include "leasehold/name.h"
#include "leasehold/registry.h"
#include "leasehold/token.h"
#include "leasehold/ttl.h"
#include "testing/virtual_time.h"

namespace leasehold {
namespace {

using namespace std::chrono_literals;
using leasehold::testing::SeededRandom;
using ::testing::HasSubstr;

static_assert(!std::is_convertible_v<LockName, ResourceName>);
static_assert(!std::is_constructible_v<RequestId, StoreId>);
static_assert(!std::is_convertible_v<std::int64_t, TokenNumber>);
static_assert(!std::is_constructible_v<LockName, const char*>);

TEST(Storable, TextIsUtf8WithoutZeroBytesAndNotTooLong) {
  EXPECT_EQ(kit::storable("caf\xc3\xa9\n"), "caf\xc3\xa9\n");
  EXPECT_EQ(kit::storable(std::string_view("a\0\xe9\xe2\x82", 5)), "a\\x00\\xe9\\xe2\\x82");
  for (const char* piece : {"x", "\xff", "\xe2\x82\xac"}) {
    std::string text;
    while (text.size() < 20000) text += piece;
    const std::string kept = kit::storable(text);
    EXPECT_LE(kept.size(), 8192u);
    EXPECT_GT(kept.size(), 8180u);
    EXPECT_TRUE(kept.ends_with("\u2026"));
    EXPECT_EQ(kit::storable(kept), kept);
  }
}

TEST(LockNameTest, TakesUpTo512BytesOfUtf8) {
  EXPECT_TRUE(LockName::parse("invoice/1234"));
  EXPECT_TRUE(LockName::parse("Überweisung/☕"));
  EXPECT_TRUE(LockName::parse(std::string(512, 'x')));
}

TEST(LockNameTest, RefusesWithTheFieldTheLimitAndWhatWasGiven) {
  EXPECT_THAT(LockName::parse("").error().message, HasSubstr("lock name is empty"));
  const auto long_name = LockName::parse(std::string(513, 'x'));
  EXPECT_EQ(long_name.error().code, ErrorCode::invalid);
  EXPECT_THAT(long_name.error().message, HasSubstr("513"));
  EXPECT_THAT(long_name.error().message, HasSubstr("512"));
  EXPECT_THAT(ResourceName::parse("").error().message, HasSubstr("resource name"));
}

TEST(LockNameTest, RefusesControlCharactersAndWrongUtf8) {
  using namespace std::string_view_literals;
  for (const auto text : {"a\nb"sv, "a\0b"sv, "\x7f"sv, "\xc2\x85"sv, "\xe2\x80\xa8"sv}) {
    EXPECT_THAT(LockName::parse(text).error().message, HasSubstr("control character"));
  }
  for (const auto text : {"\xff"sv, "\xc0\xaf"sv, "\xed\xa0\x80"sv, "\xe2\x98"sv, "\x80"sv,
                          "\xf4\x90\x80\x80"sv, "\xe2\x28\xa1"sv}) {
    EXPECT_THAT(LockName::parse(text).error().message, HasSubstr("UTF-8"));
  }
}

TEST(OwnerLabelTest, DefaultNamesHostProcessAndProgram) {
  EXPECT_THAT(default_owner_label().str(), HasSubstr(":" + std::to_string(getpid()) + ":"));
}

TEST(OwnerLabelTest, WhatAnotherProgramWroteCanBeShown) {
  EXPECT_EQ(readable_label("host:1:program"), "host:1:program");
  for (const auto* text : {"", "\033[2J", "a\nb", "\xff"}) {
    EXPECT_EQ(readable_label(text), "(an unreadable label)");
  }
}

TEST(TtlTest, FromATenthOfASecondToADay) {
  EXPECT_TRUE(Ttl::of(100ms));
  EXPECT_TRUE(Ttl::of(24h));
  EXPECT_EQ(Ttl::of(99ms).error().code, ErrorCode::invalid);
  EXPECT_THAT(Ttl::of(24h + 1ms).error().message, HasSubstr("86400001 ms"));
  EXPECT_FALSE(Ttl::of(-1s));
}

// ---- time ----------------------------------------------------------------------------------

TEST(TimeTest, DeadlineOfAnyLengthIsInTheFuture) {
  constexpr BootTime now(std::chrono::hours(1));
  const BootTime in_ten_years = now + std::chrono::years(10);
  EXPECT_EQ(now + Millis(5), BootTime(std::chrono::hours(1) + Millis(5)));
  EXPECT_EQ(now + Millis::max(), in_ten_years);
  EXPECT_GT(now + std::chrono::hours::max(), now + std::chrono::years(9));
  EXPECT_EQ(now + BootClock::duration::max(), in_ten_years);
  EXPECT_GT(now + Millis::max() + Millis::max() + Millis::max(), in_ten_years);
  EXPECT_GT(BootTime::max() + Millis::max(), in_ten_years);
  EXPECT_LT(now + Millis::min(), now);
}

TEST(TimeTest, WaitForEverEndsWithWhatItWaitsFor) {
  Mutex mutex;
  ConditionVariable changed;
  bool ready = false;
  std::jthread other([&] {
    const MutexLock lock(mutex);
    ready = true;
    changed.notify_one();
  });
  const MutexLock lock(mutex);
  EXPECT_TRUE(changed.wait_for(mutex, Millis::max(), [&] { return ready; }));
}

TEST(TokenNumberTest, IsAPositive63BitInteger) {
  EXPECT_EQ(TokenNumber::parse("9223372036854775807")->value(), INT64_MAX);
  EXPECT_EQ(TokenNumber::parse("9007199254740993")->value(), 9007199254740993);
  for (const auto* text : {"", "0", "-1", "+1", " 1", "1 ", "1.0", "1e3", "0x1",
                           "9223372036854775808", "99999999999999999999999"}) {
    EXPECT_EQ(TokenNumber::parse(text).error().code, ErrorCode::invalid) << text;
  }
  EXPECT_FALSE(TokenNumber::of(0));
}

TEST(TokenTest, TravelsAsThreeStrings) {
  SeededRandom random(1);
  const Lineage lineage{StoreId::random(random), LockName::parse("a/b").value()};
  const RequestId request = RequestId::random(random);
  const auto token = Token::parse("34", lineage.str(), request.hex());
  ASSERT_TRUE(token);
  EXPECT_EQ(*token, (Token{TokenNumber::of(34).value(), lineage, request}));
  EXPECT_THAT(Token::parse("x", lineage.str(), request.hex()).error().message,
              HasSubstr("token number"));
  EXPECT_THAT(Token::parse("34", "abc", request.hex()).error().message, HasSubstr("lineage"));
  EXPECT_FALSE(Token::parse("34", lineage.store.hex() + "/", request.hex()));
  EXPECT_THAT(Token::parse("34", lineage.str(), "12").error().message, HasSubstr("request id"));
}

TEST(IdTest, HexRoundTrip) {
  SeededRandom random(3);
  const RequestId id = RequestId::random(random);
  EXPECT_EQ(RequestId::from_hex(id.hex()), id);
  EXPECT_EQ(RequestId::from_bytes(id.bytes()), id);
  EXPECT_FALSE(RequestId::from_hex("12"));
  EXPECT_FALSE(RequestId::from_hex(std::string(32, 'g')));
  EXPECT_NE(RequestId::random(system_random()), RequestId::random(system_random()));
}

struct Abacus {
  static constexpr std::string_view kOffer = "abacus";
  std::string host;
};

TEST(RegistryTest, OpensWhatAnAdapterOffers) {
  Registry registry;
  registry.add(
      {{.scheme = "one", .open_store = {}, .offers = Offers().with<Abacus>([](const Url& url) {
          return std::make_unique<Abacus>(Abacus{url.hosts.at(0).host});
        })},
       {.scheme = "two", .open_store = {}}});
  EXPECT_EQ(registry.open<Abacus>("one://h").value()->host, "h");
  const auto none = registry.open<Abacus>("two://h");
  EXPECT_EQ(none.error().code, ErrorCode::unsupported);
  EXPECT_EQ(none.error().message, "there is no abacus for 'two'");
}

TEST(RegistryTest, DescribesWhatItLoadsLater) {
  Registry registry;
  int loaded = 0;
  const auto load = [&]() -> Result<std::vector<Adapter>> {
    ++loaded;
    return {
        {{.scheme = "one", .open_store = {}, .offers = Offers().with<Abacus>([](const Url& url) {
            return std::make_unique<Abacus>(Abacus{url.hosts.at(0).host});
          })}}};
  };
  Technology one{.name = "one", .title = "One", .schemes = {{"one", {{"abacus", "one://h"}}}}};
  registry.add(one, load);
  registry.add(one, load);
  ASSERT_EQ(registry.technologies().size(), 1u) << "doing it again changes nothing";
  EXPECT_EQ(registry.technologies().front().use("abacus")->example, "one://h");
  EXPECT_EQ(registry.technologies().front().use(kStoreUse), nullptr);
  EXPECT_FALSE(registry.has_store("one"));
  EXPECT_EQ(registry.technology_of("one")->title, "One");
  EXPECT_FALSE(registry.technology_of("two"));
  EXPECT_EQ(loaded, 0);
  EXPECT_EQ(registry.open<Abacus>("one://h").value()->host, "h");
  EXPECT_EQ(loaded, 1);

  one.schemes.front().uses.push_back({"store", "one://h"});
  registry.add(one, load);
  EXPECT_EQ(registry.open<Abacus>("one://h").error().code, ErrorCode::internal)
      << "it is said to be a store, and is none";
  one.schemes.front().uses = {{"sextant", "one://h"}};
  registry.add(one, load);
  EXPECT_EQ(registry.open<Abacus>("one://h").error().code, ErrorCode::internal)
      << "it is said to open something else";
  one.schemes.front().name = "two";
  registry.add(one, load);
  EXPECT_EQ(registry.open<Abacus>("two://h").error().code, ErrorCode::internal);
}

TEST(TechnologyTest, TakesTheOptionsThatItDescribes) {
  const Technology it{
      .name = "one",
      .title = "One",
      .schemes = {{.name = "one",
                   .uses = {{"store", "one://h"}, {"abacus", "one://h"}},
                   .options = {{"colour", "of all"}, {"beads", "how many", "abacus"}},
                   .tls = true}}};
  const auto check = [&](const std::string& url, std::string_view use) {
    return it.check_options(Url::parse(url).value(), use);
  };
  EXPECT_TRUE(check("one://h?colour=red&ca=/x&password_env=X", kStoreUse));
  EXPECT_TRUE(check("one://h?beads=7", "abacus"));
  EXPECT_THAT(check("one://h?beads=7", kStoreUse).error().message,
              HasSubstr("one takes: colour, tls, ca, cert, key, server_name, password_file"));
  EXPECT_EQ(check("two://h", kStoreUse).error().code, ErrorCode::internal);
}

TEST(RegistryTest, NamesWhatItKnows) {
  Registry registry;
  EXPECT_THAT(registry.open_store("etcd://h", {}).error().message, HasSubstr("register_stores"));
  std::string opened;
  registry.add(
      {{.scheme = "one",
        .open_store = [&](const Url& url, const OpenOptions&) -> Result<std::unique_ptr<Store>> {
          opened = url.hosts.at(0).host;
          return nullptr;
        }},
       {.scheme = "two", .open_store = {}}});
  EXPECT_TRUE(registry.open_store("one://h", {}));
  EXPECT_EQ(opened, "h");
  const auto missing = registry.open_store("etcd://h", {});
  EXPECT_EQ(missing.error().code, ErrorCode::unsupported);
  EXPECT_THAT(missing.error().message, HasSubstr("there are: one; for fences alone: two"));
  EXPECT_TRUE(registry.has_store("one"));
  EXPECT_FALSE(registry.has_store("two"));
  EXPECT_FALSE(registry.has_store("etcd"));
  registry.leave_out({.name = "etcd", .title = "etcd", .schemes = {{.name = "etcd", .uses = {}}}});
  EXPECT_THAT(registry.open_store("etcd://h", {}).error().message,
              HasSubstr("was made without the adapter of 'etcd'; there are: one"));
  EXPECT_EQ(registry.open<Abacus>("two://h").error().code, ErrorCode::unsupported);
  EXPECT_EQ(registry.open_store("two://h", {}).error().code, ErrorCode::unsupported);
  EXPECT_EQ(registry.open_store("one", {}).error().code, ErrorCode::invalid);
  const auto no_kind = registry.open_store("localhost:6379", {});
  EXPECT_EQ(no_kind.error().code, ErrorCode::invalid);
  EXPECT_THAT(no_kind.error().message, HasSubstr("as in redis://localhost:6379"));
}

TEST(ErrorTest, OneLineWithTheStoresWords) {
  EXPECT_EQ(to_string(Error(ErrorCode::unavailable, "cannot open /x", "disk I/O error")),
            "unavailable: cannot open /x (disk I/O error)");
}

}  // namespace
}  // namespace leasehold
