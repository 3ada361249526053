// The etcd fence and a real server: lost replies, operations that etcd refuses, marks by hand.
#include "leasehold/etcd/fence.h"

#include <gmock/gmock.h>

#include "etcd_under_test.h"
#include "leasehold/client.h"
#include "leasehold/fence_admin.h"
#include "testing/fence_live.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using etcd::Delete;
using etcd::Fence;
using etcd::Get;
using etcd::Operation;
using etcd::Put;
using etcd::Resources;
using etcd::TransactionResult;
using ::testing::AllOf;
using ::testing::HasSubstr;

class EtcdFenceLive : public ::testing::Test {
 protected:
  EtcdFenceLive() : under_(), key_(under_.prefix() + "-data/balance") {}

  Fence fence(std::string_view resource = "ledger") {
    return Resources::open(under_.url()).value().fence(resource).value();
  }
  Fence fence_through_proxy() {
    return Resources::open("etcd://" + proxy().address() + "/" + under_.prefix())
        .value()
        .fence("ledger")
        .value();
  }
  rig::TcpProxy& proxy() { return *under_.proxies().front(); }
  std::string value() {
    const auto got = under_.server().ctl({"get", "--print-value-only", key_});
    return got.out.substr(0, got.out.find('\n'));
  }
  std::string mark_key() const { return under_.prefix() + "/!fence/ledger"; }
  // How often the key was put since it was created.
  std::string puts_of(const std::string& key) {
    const std::string json = under_.server().ctl({"get", "-w", "json", key}).out;
    const std::string name = "\"version\":";
    const auto at = json.find(name);
    if (at == std::string::npos) return "0";
    const auto from = at + name.size();
    return json.substr(from, json.find_first_not_of("0123456789", from) - from);
  }
  static ErrorCode code_of(const Result<TransactionResult>& outcome) {
    return outcome ? ErrorCode::internal : outcome.error().code;
  }

  EtcdUnderTest under_;
  const std::string key_;
};

TEST_F(EtcdFenceLive, ReadsWritesAndDeletesTogether) {
  const Fence door = fence();
  const Token token = test_token(33, 1);
  const std::string other = key_ + "/other";
  const std::string bytes("a\0\nb", 4);
  ASSERT_TRUE(door.transaction(token, {Put{key_, bytes}, Put{other, "x"}}));
  const auto read = door.transaction(token, {Get{key_}, Get{"none"}, Get{other}});
  ASSERT_TRUE(read);
  EXPECT_THAT(read->values, ::testing::ElementsAre(std::optional(bytes), std::nullopt,
                                                   std::optional<std::string>("x")));
  const auto mixed =
      door.transaction(token, {Delete{other}, Get{other}, Put{key_, "2"}, Get{key_}});
  ASSERT_TRUE(mixed);
  EXPECT_EQ(mixed->values, (std::vector<std::optional<std::string>>{std::nullopt, "2"}));
}

TEST(EtcdFenceFull, RefusalOfAFullServerIsDefinite) {
  const rig::EtcdServer server({.more = {"--quota-backend-bytes", "2000000"}});
  const std::string url = "etcd://" + server.address();
  const Fence door = Resources::open(url).value().fence("ledger").value();
  ASSERT_TRUE(door.transaction(test_token(33, 1), {Put{"key", "before"}}));
  fill_up(server);
  const auto full = door.transaction(test_token(34, 2), {Put{"key", "after"}});
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::unavailable) << to_string(full.error());
  EXPECT_THAT(full.error().store_words, HasSubstr("database space exceeded"));
  const auto read = door.transaction(test_token(33, 1), {Get{"key"}});
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->values.at(0), "before");
  const auto stale = door.transaction(test_token(32, 3), {Get{"key"}});
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code, ErrorCode::fenced_out) << "though it cannot be counted";
}

TEST_F(EtcdFenceLive, WhatEtcdRefusesChangesNothing) {
  const Fence door = fence();
  const Token token = test_token(33, 1);
  ASSERT_TRUE(door.transaction(token, {Put{key_, "1"}}));
  const std::vector<Operation> too_many = [&] {
    std::vector<Operation> all;
    for (int i = 0; i < 200; ++i) all.push_back(Put{key_ + std::to_string(i), "x"});
    return all;
  }();
  const std::vector<std::vector<Operation>> refused = {
      too_many,
      {Put{key_, "2"}, Put{key_, "3"}},
      {Put{key_, std::string(4 << 20, 'x')}},
      {Put{"", "2"}},
      {Put{key_, "2"}, Delete{""}},
      {Put{key_, "2"}, Delete{mark_key()}},
      {Put{under_.prefix() + "/!refused/ledger", ""}}};
  for (const auto& operations : refused) {
    const auto outcome = door.transaction(test_token(34, 2), operations);
    EXPECT_EQ(code_of(outcome), ErrorCode::invalid) << to_string(outcome.error());
  }
  EXPECT_EQ(code_of(door.transaction(token, {Put{key_, "2"}}, {.sequence = -1})),
            ErrorCode::invalid);
  EXPECT_EQ(value(), "1");
  EXPECT_EQ(door.mark()->value().mark, token);
}

TEST_F(EtcdFenceLive, ASequenceNumberIsUsedOnce) {
  const Fence door = fence();
  const Token token = test_token(33, 1);
  EXPECT_FALSE(door.transaction(token, {Put{key_, "1"}}, {.sequence = 1})->repeated);
  EXPECT_TRUE(door.transaction(token, {Put{key_, "1"}}, {.sequence = 1})->repeated);
  EXPECT_EQ(code_of(door.transaction(token, {Put{key_, "2"}}, {.sequence = 1})),
            ErrorCode::invalid);
  for (const Operation& other : {Operation(Put{key_ + "2", "1"}), Operation(Delete{key_})}) {
    EXPECT_EQ(code_of(door.transaction(token, {other}, {.sequence = 1})), ErrorCode::invalid);
  }
  EXPECT_FALSE(door.transaction(token, {Put{key_, "3"}}, {.sequence = 3})->repeated);
  EXPECT_EQ(code_of(door.transaction(token, {Put{key_, "2"}}, {.sequence = 2})),
            ErrorCode::fenced_out);
  EXPECT_EQ(value(), "3");
  EXPECT_EQ(puts_of(key_), "2");
}

TEST_F(EtcdFenceLive, AWriteWhoseReplyIsLostIsDoneOnce) {
  for (const rig::WireFault fault : kWireFaults) {
    const Fence door = fence_through_proxy();
    const Token token = test_token(33, 1);
    const std::string before = puts_of(key_);
    // The transaction that writes, not the one that reads the mark.
    proxy().arm(fault, [this](std::string_view bytes) {
      return bytes.find(key_) != std::string_view::npos;
    });
    const auto done = door.transaction(token, {Put{key_, "1"}}, {.timeout = 15s});
    ASSERT_TRUE(proxy().wait_for_fault(1s));
    ASSERT_TRUE(done) << to_string(fault) << ": " << to_string(done.error());
    expect_repeated(done->repeated, fault);
    EXPECT_EQ(std::stoi(puts_of(key_)), std::stoi(before) + 1) << to_string(fault);
    proxy().disarm();
    proxy().cut();
  }
}

TEST_F(EtcdFenceLive, OvertakenWhileInDoubtIsNotCalledRefused) {
  const Fence door = fence_through_proxy();
  proxy().arm(rig::WireFault::lose_reply, [this](std::string_view bytes) {
    return bytes.find(key_) != std::string_view::npos;
  });
  const auto successor = successor_after([&] { return value() == "1"; }, fence(), proxy());
  const auto unknown = door.transaction(test_token(33, 1), {Put{key_, "1"}}, {.timeout = 15s});
  EXPECT_EQ(code_of(unknown), ErrorCode::outcome_unknown);
  EXPECT_EQ(value(), "1") << "it was done, before the other came";
}

TEST_F(EtcdFenceLive, AHangingNetworkIsOutcomeUnknownOrUnavailableAndRepeatingIsSafe) {
  const Fence door = fence_through_proxy();
  const Token token = test_token(33, 1);
  ASSERT_TRUE(door.enter(token));
  proxy().hold(true);
  const auto hung = door.transaction(token, {Put{key_, "1"}}, {.sequence = 1, .timeout = 1s});
  EXPECT_FALSE(hung);
  EXPECT_THAT(code_of(hung), ::testing::AnyOf(ErrorCode::outcome_unknown, ErrorCode::unavailable));
  proxy().hold(false);
  ASSERT_TRUE(fence().transaction(token, {Put{key_, "1"}}, {.sequence = 1}));
  EXPECT_EQ(value(), "1");
  EXPECT_EQ(puts_of(key_), "1");
}

TEST_F(EtcdFenceLive, AServerKilledAtAnyPointHasMarkAndDataTogether) {
  expect_mark_and_data_together(
      killed(under_, [&] { return value(); }), [&] { return fence(); },
      [&](const Fence& door, const Token& token, const std::string& value) {
        return door.transaction(token, {Put{key_, value}}, {.timeout = 1s}).has_value();
      });
}

TEST_F(EtcdFenceLive, AMarkThatIsNotOursIsLeftAlone) {
  for (const auto& [foreign, words] : {std::pair("leasehold-fence 1\n", "to begin afresh"),
                                       std::pair("leasehold-fence 3\n", "at least as new"),
                                       std::pair("something else", "damaged")}) {
    under_.server().ctl({"put", mark_key(), foreign});
    const auto refused = fence().transaction(test_token(33, 1), {Put{key_, "1"}});
    EXPECT_EQ(code_of(refused), ErrorCode::unavailable);
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr("the mark of resource 'ledger'"), HasSubstr(words)));
    EXPECT_EQ(fence().mark().error().code, ErrorCode::unavailable);
    EXPECT_EQ(value(), "");
  }
}

TEST_F(EtcdFenceLive, TheMarkCanBeReadByHand) {
  ASSERT_TRUE(fence().enter(test_token(33, 1)));
  const std::string text = under_.server().ctl({"get", "--print-value-only", mark_key()}).out;
  EXPECT_THAT(text, HasSubstr("leasehold-fence 2\n"));
  EXPECT_THAT(text, HasSubstr("token 33\n"));
  EXPECT_FALSE(fence().enter(test_token(32, 2)));
  EXPECT_EQ(puts_of(under_.prefix() + "/!refused/ledger"), "1");
}

TEST_F(EtcdFenceLive, TheOperatorSeesAndAdopts) {
  const auto admin =
      etcd::adapters().front().offers.open<FenceAdmin>(Url::parse(under_.url()).value()).value();
  expect_operator_sees_and_adopts(*admin, "a/b",
                                  [&](const std::string& name) { return fence(name); });
}

TEST_F(EtcdFenceLive, LocksAndMarksDoNotMeet) {
  ASSERT_TRUE(fence("job").enter(test_token(33, 1)));
  Client client(under_.open());
  EXPECT_TRUE(client.list()->empty()) << "a mark is no lock";
  auto lease = client.acquire_fenced("job");
  ASSERT_TRUE(lease);
  const auto refused = fence("job").enter(lease->token());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("lineage"));
  EXPECT_TRUE(fence("fresh").enter(lease->token()));
}

TEST_F(EtcdFenceLive, WrongUrlsAndMissingServersAreTold) {
  EXPECT_EQ(Resources::open("nonsense").error().code, ErrorCode::invalid);
  EXPECT_EQ(Resources::open("etcd://").error().code, ErrorCode::invalid);
  EXPECT_EQ(Resources::open("redis://127.0.0.1:1").error().code, ErrorCode::invalid);
  const rig::Port nobody = rig::Port::take();
  EXPECT_EQ(Resources::open("etcd://" + nobody.address()).error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace leasehold::testing
