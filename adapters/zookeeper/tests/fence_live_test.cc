// The ZooKeeper fence and a real server: lost replies, operations that ZooKeeper refuses, hostile
// paths.
#include "leasehold/zookeeper/fence.h"

#include <gmock/gmock.h>

#include "leasehold/client.h"
#include "leasehold/fence_admin.h"
#include "proxied_server.h"
#include "testing/fence_live.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using zookeeper::Check;
using zookeeper::Create;
using zookeeper::Delete;
using zookeeper::Fence;
using zookeeper::Operation;
using zookeeper::Resources;
using zookeeper::Set;
using zookeeper::TransactionResult;

bool is_transaction(std::string_view bytes) {
  bool any = false;
  for_each_request(bytes, [&](std::int32_t type) { any |= type == kMulti; });
  return any;
}

class ZookeeperFenceLive : public ::testing::Test {
 protected:
  ZookeeperFenceLive() {
    // A node for the data of this case.
    EXPECT_TRUE(fence("setup").transaction(test_token(1, 1), {Create{path_, "0"}}));
  }

  Fence fence(std::string_view resource = "ledger") {
    return Resources::open(under_.url()).value().fence(resource).value();
  }
  Fence fence_through_proxy() {
    return Resources::open(under_.proxied_url()).value().fence("ledger").value();
  }
  std::optional<Fence::Node> data(const std::string& path) {
    return fence("looking").read(test_token(1, 1), path).value();
  }
  std::string value() { return data(path_).value_or(Fence::Node{"none"}).data; }
  std::int32_t writes() { return data(path_).value().version; }
  static ErrorCode code_of(const Result<TransactionResult>& done) {
    return done ? ErrorCode::internal : done.error().code;
  }

  ProxiedZookeeper under_{is_transaction};
  rig::TcpProxy& proxy_ = under_.proxy();
  const std::string path_ = "/data" + std::to_string(reinterpret_cast<std::uintptr_t>(this)) + "-" +
                            under_.folder().substr(7);
};

TEST_F(ZookeeperFenceLive, CreatesSetsDeletesAndChecksTogether) {
  const Fence door = fence();
  const Token token = test_token(33, 1);
  const std::string bytes("a\0\nb", 4);
  ASSERT_TRUE(door.transaction(token, {Set{path_, bytes}, Create{path_ + "/child", "x"}}));
  EXPECT_EQ(door.read(token, path_)->value().data, bytes);
  EXPECT_EQ(door.read(token, path_ + "/child")->value().version, 0);
  ASSERT_TRUE(
      door.transaction(token, {Check{path_, 1}, Delete{path_ + "/child", 0}, Set{path_, "2", 1}}));
  EXPECT_FALSE(door.read(token, path_ + "/child")->has_value());
  EXPECT_EQ(value(), "2");
}

TEST_F(ZookeeperFenceLive, WhatZookeeperRefusesChangesNothing) {
  const Fence door = fence();
  const Token token = test_token(33, 1);
  ASSERT_TRUE(door.transaction(token, {Set{path_, "1"}}));
  const std::vector<std::vector<Operation>> refused = {
      {Set{path_, "2"}, Create{path_, ""}},
      {Set{path_, "2"}, Set{path_ + "/none", ""}},
      {Set{path_, "2"}, Delete{path_ + "/none"}},
      {Set{path_, "2"}, Create{path_ + "/none/child"}},
      {Set{path_, "2", 7}},
      {Set{path_, "2"}, Check{path_, 7}},
      {Set{path_, "2", -2}},
      {Set{path_, std::string(1'100'000, 'x')}}};
  for (const auto& operations : refused) {
    const auto done = door.transaction(test_token(34, 2), operations);
    EXPECT_EQ(code_of(done), ErrorCode::invalid) << to_string(done.error());
  }
  EXPECT_EQ(code_of(door.transaction(token, {Set{path_, "2"}}, {.sequence = -1})),
            ErrorCode::invalid);
  EXPECT_EQ(value(), "1");
  EXPECT_EQ(door.mark()->value().mark, token) << "the mark was not raised either";
}

TEST_F(ZookeeperFenceLive, HostilePathsAreInvalid) {
  const Fence door = fence();
  const std::vector<std::string> hostile = {"",
                                            "/",
                                            "data",
                                            "//",
                                            path_ + "/",
                                            path_ + "//x",
                                            path_ + "/.",
                                            path_ + "/..",
                                            "/../" + path_.substr(1),
                                            "/./x",
                                            path_ + std::string("\0", 1),
                                            path_ + std::string("\0/x", 3),
                                            path_ + "/\n",
                                            path_ + "/\x7f",
                                            path_ + "/\xff",
                                            "/zookeeper/quota",
                                            "/zookeeper",
                                            under_.folder() + "/.fence",
                                            under_.folder() + "/.fence/ledger"};
  for (const std::string& path : hostile) {
    EXPECT_EQ(code_of(door.transaction(test_token(33, 1), {Set{path, "x"}})), ErrorCode::invalid)
        << ::testing::PrintToString(path);
  }
  EXPECT_EQ(door.read(test_token(33, 1), "/..").error().code, ErrorCode::invalid);
  EXPECT_FALSE(door.mark()->has_value());
  EXPECT_EQ(value(), "0");
}

TEST_F(ZookeeperFenceLive, ASequenceNumberIsUsedOnce) {
  const Fence door = fence();
  const Token token = test_token(33, 1);
  EXPECT_FALSE(door.transaction(token, {Set{path_, "1"}}, {.sequence = 1})->repeated);
  EXPECT_TRUE(door.transaction(token, {Set{path_, "1"}}, {.sequence = 1})->repeated);
  for (const Operation& other : {Operation(Set{path_, "2"}), Operation(Set{path_ + "2", "1"}),
                                 Operation(Set{path_, "1", 1}), Operation(Create{path_, "1"})}) {
    EXPECT_EQ(code_of(door.transaction(token, {other}, {.sequence = 1})), ErrorCode::invalid);
  }
  EXPECT_FALSE(door.transaction(token, {Set{path_, "3"}}, {.sequence = 3})->repeated);
  EXPECT_EQ(code_of(door.transaction(token, {Set{path_, "2"}}, {.sequence = 2})),
            ErrorCode::fenced_out);
  EXPECT_EQ(value(), "3");
  EXPECT_EQ(writes(), 2);
}

TEST_F(ZookeeperFenceLive, AWriteWhoseReplyIsLostIsDoneOnce) {
  int expected = 0;
  for (const rig::WireFault fault : kWireFaults) {
    const Fence door = fence_through_proxy();
    const Token token = test_token(33, 1);
    ASSERT_TRUE(door.enter(token));
    proxy_.arm(fault);
    const auto done = door.transaction(token, {Set{path_, "1"}}, {.timeout = 30s});
    ASSERT_TRUE(proxy_.wait_for_fault(1s));
    ASSERT_TRUE(done) << to_string(fault) << ": " << to_string(done.error());
    expect_repeated(done->repeated, fault);
    EXPECT_EQ(writes(), ++expected) << to_string(fault);
    proxy_.disarm();
    proxy_.cut();
  }
}

TEST_F(ZookeeperFenceLive, OvertakenWhileInDoubtIsNotCalledRefused) {
  const Fence door = fence_through_proxy();
  ASSERT_TRUE(door.enter(test_token(33, 1)));
  proxy_.arm(rig::WireFault::lose_reply);
  const auto successor = successor_after([&] { return value() == "1"; }, fence(), proxy_);
  const auto unknown = door.transaction(test_token(33, 1), {Set{path_, "1"}}, {.timeout = 30s});
  EXPECT_EQ(code_of(unknown), ErrorCode::outcome_unknown);
  EXPECT_EQ(value(), "1") << "it was done, before the other came";
}

TEST_F(ZookeeperFenceLive, AHangingNetworkIsToldAndRepeatingIsSafe) {
  const Fence door = fence_through_proxy();
  const Token token = test_token(33, 1);
  ASSERT_TRUE(door.enter(token));
  proxy_.hold(true);
  const auto hung = door.transaction(token, {Set{path_, "1"}}, {.sequence = 1, .timeout = 1s});
  EXPECT_THAT(code_of(hung), ::testing::AnyOf(ErrorCode::outcome_unknown, ErrorCode::unavailable));
  proxy_.hold(false);
  ASSERT_TRUE(fence().transaction(token, {Set{path_, "1"}}, {.sequence = 1}));
  EXPECT_EQ(writes(), 1);
}

TEST_F(ZookeeperFenceLive, AServerKilledAtAnyPointHasMarkAndDataTogether) {
  expect_mark_and_data_together(
      killed(under_, [&] { return value(); }), [&] { return fence(); },
      [&](const Fence& door, const Token& token, const std::string& value) {
        return door.transaction(token, {Set{path_, value}}, {.timeout = 1s}).has_value();
      });
}

TEST_F(ZookeeperFenceLive, AMarkThatIsNotOursIsLeftAlone) {
  ASSERT_TRUE(fence().enter(test_token(33, 1)));
  // Written by a fence whose folder is another, so that it does not know this one's as its own.
  const Fence other = Resources::open(under_.url() + "-other").value().fence("other").value();
  const std::string mark = under_.folder() + "/.fence/ledger";
  for (const auto& [foreign, words] :
       {std::pair("leasehold-fence 1\n", "to begin afresh"),
        std::pair("leasehold-fence 3\n", "at least as new"), std::pair("something else", "damaged"),
        std::pair("", "damaged")}) {
    ASSERT_TRUE(other.transaction(test_token(1, 1), {Set{mark, foreign}}));
    const auto refused = fence().transaction(test_token(34, 2), {Set{path_, "1"}});
    EXPECT_EQ(code_of(refused), ErrorCode::unavailable);
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr("the mark of resource 'ledger'"), HasSubstr(words)));
    EXPECT_EQ(fence().mark().error().code, ErrorCode::unavailable);
  }
  EXPECT_EQ(value(), "0");
}

TEST_F(ZookeeperFenceLive, ASessionThatHasEndedIsOpenedAgain) {
  const Fence door = fence_through_proxy();
  ASSERT_TRUE(door.enter(test_token(33, 1)));
  under_.kill();
  under_.start();
  EXPECT_TRUE(door.transaction(test_token(33, 1), {Set{path_, "1"}}, {.timeout = 30s}));
  EXPECT_EQ(value(), "1");
}

TEST_F(ZookeeperFenceLive, TheOperatorSeesAndAdopts) {
  const std::string url = under_.url() + "-fresh";
  const auto admin =
      zookeeper::adapters().front().offers.open<FenceAdmin>(Url::parse(url).value()).value();
  const auto resources = Resources::open(url).value();
  EXPECT_EQ(admin->marks()->size(), 0u);
  expect_operator_sees_and_adopts(
      *admin, "a/../b", [&](const std::string& name) { return resources.fence(name).value(); });
}

TEST_F(ZookeeperFenceLive, LocksAndMarksDoNotMeet) {
  Client client(under_.open());
  EXPECT_TRUE(client.list()->empty()) << "a mark is no lock";
  auto lease = client.acquire_fenced("setup", {.wait = 10s});
  ASSERT_TRUE(lease);
  EXPECT_THAT(fence("setup").enter(lease->token()).error().message, HasSubstr("lineage"));
  EXPECT_TRUE(fence("fresh").enter(lease->token()));
}

TEST(ZookeeperFence, WrongUrlsAndMissingServersAreTold) {
  EXPECT_EQ(Resources::open("nonsense").error().code, ErrorCode::invalid);
  EXPECT_EQ(Resources::open("zookeeper://").error().code, ErrorCode::invalid);
  EXPECT_EQ(Resources::open("etcd://127.0.0.1:1").error().code, ErrorCode::invalid);
  const rig::Port nobody = rig::Port::take();
  EXPECT_EQ(Resources::open("zookeeper://" + nobody.address()).error().code,
            ErrorCode::unavailable);
}

}  // namespace
}  // namespace leasehold::testing
