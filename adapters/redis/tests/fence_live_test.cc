// The Redis fence and a real redis-server: the script by hand, lost replies, killed servers,
// claims.
#include "leasehold/redis/fence.h"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "adapters/redis/rig/server.h"
#include "leasehold/fence_admin.h"
#include "leasehold/redis/adapter.h"
#include "leasehold/url.h"
#include "rig/tcp_proxy.h"
#include "testing/fence_live.h"

namespace leasehold::testing {
namespace {

using namespace std::chrono_literals;
using redis::Command;
using redis::Fence;
using redis::Reply;
using redis::Resources;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

bool is_script_call(std::string_view bytes) {
  return bytes.find("\r\nEVAL") != std::string_view::npos;
}

RequestId request_id(int number) {
  return test_token(1, number).request;
}

class RedisFenceLive : public ::testing::Test {
 protected:
  RedisFenceLive() { server().cli({"FLUSHALL"}); }

  static rig::RedisServer& server() {
    static rig::RedisServer shared;
    return shared;
  }
  static std::string cli(std::vector<std::string> words) { return server().cli(std::move(words)); }

  static Fence fence(std::string_view resource = "ledger") {
    return Resources::open(server().url()).value().fence(resource).value();
  }
  Fence fence_through_proxy() {
    return Resources::open("redis://" + proxy_.address()).value().fence("ledger").value();
  }
  static ErrorCode code_of(const Result<Reply>& reply) {
    return reply ? ErrorCode::internal : reply.error().code;
  }

  rig::TcpProxy proxy_{server().port(), is_script_call};
};

// ---- by hand -------------------------------------------------------------------------------

class RedisFenceScript : public RedisFenceLive {
 protected:
  // The script as it is installed, run by redis-cli on the mark `key`, with `rest` as arguments.
  static std::string eval(std::vector<std::string> rest,
                          const std::string& key = "leasehold:fence:ledger") {
    std::ifstream file(LEASEHOLD_FENCE_LUA);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    EXPECT_EQ(text, redis::fence_script());
    std::vector<std::string> words = {"EVAL", text, "2", key, "balance"};
    words.insert(words.end(), rest.begin(), rest.end());
    std::string said = cli(std::move(words));
    while (said.ends_with('\n')) said.pop_back();
    return said;
  }
  static std::string enter(const std::string& number, const std::string& request,
                           std::vector<std::string> command, const std::string& sequence = "") {
    command.insert(command.begin(), {"enter", number, kLineage, request, sequence});
    return eval(std::move(command));
  }

  static constexpr const char* kLineage = "00112233445566778899aabbccddeeff/job";
  const std::string first = std::string(31, '0') + "1";
  const std::string second = std::string(31, '0') + "2";
};

TEST_F(RedisFenceScript, RunsTheCommandAndRefusesTheZombie) {
  EXPECT_EQ(enter("33", first, {"SET", "balance", "100"}), "OK");
  EXPECT_EQ(enter("34", second, {"GET", "balance"}), "100");
  EXPECT_EQ(enter("33", first, {"SET", "balance", "110"}),
            std::string("FENCEDOUT lower 33 34 ") + kLineage);
  EXPECT_EQ(enter("34", second, {"INCRBY", "balance", "5"}), "105");
  EXPECT_EQ(cli({"GET", "balance"}), "105");
  EXPECT_EQ(cli({"HGET", "leasehold:fence:ledger", "refused"}), "1");
}

TEST_F(RedisFenceScript, ReadsAndWritesTheMarkOfTheLibrary) {
  const Token token = test_token(33, 1);
  ASSERT_TRUE(fence().enter(token));
  EXPECT_THAT(enter("99", first, {"SET", "balance", "1"}), StartsWith("FENCEDOUT lineage 99 33 "));
  EXPECT_EQ(eval({"enter", "34", token.lineage.str(), second, "", "SET", "balance", "1"}), "OK");
  EXPECT_EQ(fence().enter(token).error().refusal->mark, 34);
}

TEST_F(RedisFenceScript, BadInputIsToldAndNothingIsWritten) {
  const std::string lineage = kLineage;
  const std::string name513(513, 'n');
  const std::vector<std::vector<std::string>> bad = {
      {"enter"},
      {"enter", "1", lineage, first},
      {"", "1", lineage, first, "", "SET", "balance", "x"},
      {"ENTER", "1", lineage, first, "", "SET", "balance", "x"},
      {"enter", "", lineage, first, "", "SET", "balance", "x"},
      {"enter", "0", lineage, first, "", "SET", "balance", "x"},
      {"enter", "-1", lineage, first, "", "SET", "balance", "x"},
      {"enter", "+1", lineage, first, "", "SET", "balance", "x"},
      {"enter", "01", lineage, first, "", "SET", "balance", "x"},
      {"enter", "1.0", lineage, first, "", "SET", "balance", "x"},
      {"enter", "1e3", lineage, first, "", "SET", "balance", "x"},
      {"enter", "0x10", lineage, first, "", "SET", "balance", "x"},
      {"enter", " 1", lineage, first, "", "SET", "balance", "x"},
      {"enter", "nan", lineage, first, "", "SET", "balance", "x"},
      {"enter", "1' or redis.call('FLUSHALL')", lineage, first, "", "SET", "balance", "x"},
      {"enter", "9223372036854775808", lineage, first, "", "SET", "balance", "x"},
      {"enter", "99999999999999999999", lineage, first, "", "SET", "balance", "x"},
      {"enter", "1", "", first, "", "SET", "balance", "x"},
      {"enter", "1", "job", first, "", "SET", "balance", "x"},
      {"enter", "1", "00112233445566778899AABBCCDDEEFF/job", first, "", "SET", "balance", "x"},
      {"enter", "1", "00112233445566778899aabbccddeeff/", first, "", "SET", "balance", "x"},
      {"enter", "1", "00112233445566778899aabbccddeeff/a\nb", first, "", "SET", "balance", "x"},
      {"enter", "1", "00112233445566778899aabbccddeeff/" + name513, first, "", "SET", "balance",
       "x"},
      {"enter", "1", lineage, "", "", "SET", "balance", "x"},
      {"enter", "1", lineage, "1", "", "SET", "balance", "x"},
      {"enter", "1", lineage, std::string(32, 'g'), "", "SET", "balance", "x"},
      {"enter", "1", lineage, first, "0", "SET", "balance", "x"},
      {"enter", "1", lineage, first, "-1", "SET", "balance", "x"},
      {"enter", "1", lineage, first, "one", "SET", "balance", "x"},
      {"claim", "0", lineage, first, ""},
      {"claim", "x", "", first, ""},
      {"confirm", "0", "", first, "", "SET", "balance", "x"},
      {"adopt", "0", lineage, "", ""},
  };
  for (const auto& words : bad) {
    EXPECT_THAT(eval(words), StartsWith("FENCEINVALID ")) << ::testing::PrintToString(words);
  }
  for (const std::string& name :
       {std::string(), name513, std::string("a\nb"), std::string("a\x7f"), std::string("a\xff"),
        std::string("\xc2\x85"), std::string("\xe2\x80\xa8"), std::string("\xe0\xc3\xa9\xa0\x80"),
        std::string("\xed\xa0\x80"), std::string("\xf4\x90\x80\x80")}) {
    EXPECT_THAT(
        eval({"enter", "1", lineage, first, "", "SET", "balance", "x"}, "leasehold:fence:" + name),
        StartsWith("FENCEINVALID "))
        << ::testing::PrintToString(name);
  }
  EXPECT_THAT(eval({"enter", "1", lineage, first, "", "SET", "balance", "x"}, "elsewhere"),
              StartsWith("FENCEINVALID "));
  EXPECT_EQ(cli({"DBSIZE"}), "0");
}

TEST_F(RedisFenceScript, AMarkOfAnotherVersionIsLeftAlone) {
  for (const auto& [version, words] :
       {std::pair("1", "to begin afresh"), std::pair("3", "use a program that is at least as new"),
        std::pair("10", "use a program that is at least as new")}) {
    cli({"HSET", "leasehold:fence:ledger", "version", version, "token", "1"});
    EXPECT_THAT(enter("33", first, {"SET", "balance", "1"}), StartsWith("FENCEVERSION "));
    EXPECT_EQ(cli({"EXISTS", "balance"}), "0");
    EXPECT_EQ(cli({"HGET", "leasehold:fence:ledger", "token"}), "1");
    const auto refused = fence().run(test_token(33, 1), {"SET", "balance", "1"});
    EXPECT_EQ(code_of(refused), ErrorCode::unavailable);
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr(std::string("version ") + version + " of"), HasSubstr(words)));
    const auto shown = fence().mark();
    EXPECT_EQ(shown.error().code, ErrorCode::unavailable);
    EXPECT_THAT(shown.error().message, HasSubstr(words));
  }
}

TEST_F(RedisFenceScript, WhoeverReadsChangesNothing) {
  cli({"SET", "balance", "7"});
  const auto read = [&](const std::vector<std::string>& command, const std::string& sequence = "") {
    std::vector<std::string> words = {"read", "33", kLineage, first, sequence};
    words.insert(words.end(), command.begin(), command.end());
    return eval(words);
  };
  for (const std::vector<std::string>& command : {std::vector<std::string>{"SET", "balance", "8"},
                                                  {"GETDEL", "balance"},
                                                  {"NOSUCH", "x"},
                                                  {"OBJECT", "NOSUCH"},
                                                  {"SORT", "balance", "STORE", "other"}}) {
    EXPECT_THAT(read(command), StartsWith("FENCEINVALID whoever enters to read")) << command[0];
  }
  EXPECT_THAT(read({"GET", "balance"}, "1"), StartsWith("FENCEINVALID "));
  EXPECT_EQ(cli({"EXISTS", "leasehold:fence:ledger"}), "0") << "nobody has entered";
  EXPECT_EQ(read({"get", "balance"}), "7");
  EXPECT_EQ(read({"OBJECT", "ENCODING", "balance"}), "int");
  EXPECT_EQ(read({}), "OK");
  EXPECT_EQ(fence().mark().value()->reader->number.value(), 33);
  const EnterOptions once{.entry = Entry::single, .access = Access::read};
  EXPECT_EQ(code_of(fence().run(test_token(33, 1), {"GET", "balance"}, once)), ErrorCode::invalid);
}

TEST_F(RedisFenceScript, DataThatIsNoMarkIsLeftAlone) {
  cli({"SET", "leasehold:fence:ledger", "mine"});
  EXPECT_THAT(enter("33", first, {"SET", "balance", "1"}), StartsWith("WRONGTYPE"));
  EXPECT_EQ(cli({"GET", "leasehold:fence:ledger"}), "mine");
  EXPECT_EQ(cli({"EXISTS", "balance"}), "0");
}

TEST_F(RedisFenceScript, InAClusterTheHashTagOfTheResourceIsTheKeys) {
  rig::RedisServer cluster({.durable = false, .cluster = true});
  cluster.cli({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"});
  while (cluster.cli({"CLUSTER", "INFO"}).find("cluster_state:ok") == std::string::npos) {
  }
  const auto write = [&](const std::string& mark, const std::string& key) {
    return cluster.cli({"EVAL", std::string(redis::fence_script()), "2", mark, key, "enter", "33",
                        kLineage, first, "", "SET", key, "1"});
  };
  EXPECT_EQ(write("leasehold:fence:{invoice/1}", "{invoice/1}:total"), "OK");
  EXPECT_EQ(write("leasehold:fence:{invoice/1}/paid", "paid:{invoice/1}"), "OK");
  EXPECT_THAT(write("leasehold:fence:invoice/1", "invoice/1:total"), StartsWith("CROSSSLOT"));
  const auto refused = Resources::open(cluster.url());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
}

// ---- the library ---------------------------------------------------------------------------

TEST_F(RedisFenceLive, EveryKindOfAnswerComesThrough) {
  const Fence door = fence();
  const Token token = test_token(1, 1);
  EXPECT_EQ(door.run(token, {"SET", "k", std::string("a\0\r\nb", 5)})->text, "OK");
  EXPECT_EQ(door.run(token, {"GET", "k"})->text, std::string("a\0\r\nb", 5));
  EXPECT_EQ(door.run(token, {"GET", "none"})->kind, Reply::Kind::nothing);
  EXPECT_EQ(door.run(token, {"RPUSH", "l", "a", "b"})->integer, 2);
  const auto list = door.run(token, {"LRANGE", "l", "0", "-1"});
  ASSERT_TRUE(list);
  ASSERT_EQ(list->items.size(), 2u);
  EXPECT_EQ(list->items[1].text, "b");
}

TEST_F(RedisFenceLive, ACommandThatRedisRefusesHasDoneNothingButEntering) {
  cli({"SET", "k", "text"});
  const Fence door = fence();
  const Token token = test_token(33, 1);
  for (const Command& wrong : {Command{"INCR", "k"}, Command{"LPUSH", "k", "x"}, Command{"NOSUCH"},
                               Command{"SET", "k"}, Command{"SUBSCRIBE", "c"}}) {
    const auto refused = door.run(token, wrong, {.sequence = 1});
    EXPECT_EQ(code_of(refused), ErrorCode::invalid) << to_string(refused.error());
    EXPECT_NE(refused.error().store_words, "");
  }
  EXPECT_EQ(code_of(door.run(token, {})), ErrorCode::invalid);
  EXPECT_EQ(code_of(door.run(token, {"SET", "k", "v"}, {.sequence = -1})), ErrorCode::invalid);
  EXPECT_EQ(code_of(door.run(token, Command(4000, "DEL"))), ErrorCode::invalid);
  EXPECT_EQ(cli({"GET", "k"}), "text");
  EXPECT_EQ(door.mark()->value().mark, token);
  const auto done = door.run(token, {"SET", "k", "v"}, {.sequence = 1});
  ASSERT_TRUE(done) << "the number was not used up";
  EXPECT_FALSE(done->repeated);
}

TEST_F(RedisFenceLive, ASequenceNumberIsUsedOnce) {
  const Fence door = fence();
  const Token token = test_token(33, 1);
  const Command add = {"INCR", "n"};
  EXPECT_EQ(door.run(token, add, {.sequence = 1})->integer, 1);
  EXPECT_TRUE(door.run(token, add, {.sequence = 1})->repeated);
  EXPECT_EQ(door.run(token, add, {.sequence = 10})->integer, 2);
  const auto late = door.run(token, add, {.sequence = 9});
  EXPECT_EQ(code_of(late), ErrorCode::fenced_out);
  EXPECT_THAT(late.error().message, HasSubstr("sequence"));
  const auto other = door.run(token, {"INCR", "m"}, {.sequence = 10});
  EXPECT_EQ(code_of(other), ErrorCode::invalid);
  EXPECT_THAT(other.error().message, HasSubstr("sequence number 10"));
  EXPECT_EQ(door.run(test_token(34, 2), add, {.sequence = 1})->integer, 3)
      << "the next holder counts for itself";
  ASSERT_TRUE(door.enter(test_token(35, 3)));
  EXPECT_EQ(door.run(test_token(35, 3), add, {.sequence = 1})->integer, 4);
  EXPECT_EQ(cli({"EXISTS", "m"}), "0");
}

TEST_F(RedisFenceLive, SequenceNumbersAreExactBeyondTwoToThe53) {
  const Fence door = fence();
  const Token token = test_token(33, 1);
  constexpr std::int64_t edge = (std::int64_t{1} << 53) + 1;
  EXPECT_TRUE(door.run(token, {"INCR", "n"}, {.sequence = edge}));
  EXPECT_EQ(code_of(door.run(token, {"INCR", "n"}, {.sequence = edge - 1})), ErrorCode::fenced_out);
  EXPECT_TRUE(door.run(token, {"INCR", "n"}, {.sequence = edge + 1}));
  EXPECT_EQ(cli({"GET", "n"}), "2");
}

TEST_F(RedisFenceLive, AForgottenScriptIsSentAgain) {
  const Fence door = fence();
  ASSERT_TRUE(door.run(test_token(33, 1), {"SET", "k", "1"}));
  cli({"SCRIPT", "FLUSH"});
  ASSERT_TRUE(door.run(test_token(33, 1), {"SET", "k", "2"}));
  EXPECT_EQ(cli({"GET", "k"}), "2");
}

// ---- lost replies --------------------------------------------------------------------------

TEST_F(RedisFenceLive, AWriteWhoseReplyIsLostIsToldAndDone) {
  const Fence door = fence_through_proxy();
  ASSERT_TRUE(door.enter(test_token(33, 1)));
  proxy_.arm(rig::WireFault::lose_reply);
  const auto lost = door.run(test_token(33, 1), {"INCR", "n"}, {.timeout = 2s});
  EXPECT_EQ(code_of(lost), ErrorCode::outcome_unknown);
  EXPECT_EQ(cli({"GET", "n"}), "1");
}

TEST_F(RedisFenceLive, ALostReplyToASingleEntryIsNotToldAsARefusal) {
  const Fence door = fence_through_proxy();
  ASSERT_TRUE(door.enter(test_token(32, 1)));
  proxy_.arm(rig::WireFault::lose_reply);
  const auto lost = door.enter(test_token(33, 2), {.entry = Entry::single, .timeout = 3s});
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::outcome_unknown) << "it was this very call that entered";
}

TEST_F(RedisFenceLive, ANumberedWriteWhoseReplyIsLostIsDoneOnce) {
  for (const rig::WireFault fault : kWireFaults) {
    cli({"FLUSHALL"});
    const Fence door = fence_through_proxy();
    ASSERT_TRUE(door.enter(test_token(33, 1)));
    proxy_.arm(fault);
    const auto done = door.run(test_token(33, 1), {"INCR", "n"}, {.sequence = 1, .timeout = 3s});
    ASSERT_TRUE(done) << to_string(fault) << ": " << to_string(done.error());
    expect_repeated(done->repeated, fault);
    EXPECT_EQ(cli({"GET", "n"}), "1") << to_string(fault);
    proxy_.disarm();
    proxy_.cut();
  }
}

TEST_F(RedisFenceLive, ACallerMayRepeatWhatIsNotKnown) {
  const Fence door = fence_through_proxy();
  const Token token = test_token(33, 1);
  ASSERT_TRUE(door.enter(token));
  proxy_.hold(true);
  const auto unknown = door.run(token, {"INCR", "n"}, {.sequence = 1, .timeout = 2s});
  EXPECT_EQ(code_of(unknown), ErrorCode::outcome_unknown);
  proxy_.hold(false);
  ASSERT_TRUE(fence().run(token, {"INCR", "n"}, {.sequence = 1}));
  EXPECT_EQ(cli({"GET", "n"}), "1");
  EXPECT_TRUE(fence().run(token, {"SET", "n", "7"}, {.sequence = 2}));
  const std::string late =
      cli({"EVAL", std::string(redis::fence_script()), "2", "leasehold:fence:ledger", "n", "enter",
           "33", token.lineage.str(), token.request.hex(), "1", "INCR", "n"});
  EXPECT_THAT(late, StartsWith("FENCEDOUT order")) << "the first write again, out of the network";
  EXPECT_EQ(cli({"GET", "n"}), "7");
}

TEST_F(RedisFenceLive, OvertakenWhileInDoubtIsNotCalledRefused) {
  const Fence door = fence_through_proxy();
  ASSERT_TRUE(door.enter(test_token(33, 1)));
  proxy_.arm(rig::WireFault::lose_reply);
  const auto successor = successor_after([] { return cli({"GET", "n"}) == "1"; }, fence(), proxy_);
  const auto unknown = door.run(test_token(33, 1), {"INCR", "n"}, {.sequence = 1, .timeout = 6s});
  EXPECT_EQ(code_of(unknown), ErrorCode::outcome_unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("34"));
  EXPECT_EQ(cli({"GET", "n"}), "1") << "it was done, before the other came";
}

TEST_F(RedisFenceLive, AServerThatIsDownIsUnavailable) {
  const Fence door = fence_through_proxy();
  proxy_.refuse(true);
  const auto down = door.run(test_token(33, 1), {"SET", "k", "v"}, {.sequence = 1, .timeout = 1s});
  EXPECT_EQ(code_of(down), ErrorCode::unavailable);
  EXPECT_THAT(down.error().address, HasSubstr(proxy_.address()));
  EXPECT_EQ(Resources::open("redis://" + proxy_.address()).error().code, ErrorCode::unavailable);
}

// ---- killed servers ------------------------------------------------------------------------

TEST_F(RedisFenceLive, AServerKilledAtAnyPointHasMarkAndDataTogether) {
  expect_mark_and_data_together(
      {[] { server().process().kill(); }, [] { server().process().start(); },
       [] {
         return cli({"GET", "k"});
       },
       /*rounds=*/12},
      [] { return fence(); },
      [](const Fence& door, const Token& token, const std::string& value) {
        return door.run(token, {"SET", "k", value}, {.timeout = 500ms}).has_value();
      });
}

// What docs/fence-redis.md says of failover, done on purpose.
TEST(RedisFenceFailover, AMarkThatTheReplicaLacksLetsTheZombieIn) {
  rig::RedisServer primary({.more = {"--repl-diskless-sync-delay", "0"}});
  rig::TcpProxy link(primary.port());
  rig::RedisServer replica({.more = {"--replicaof", "127.0.0.1 " + std::to_string(link.port())}});
  const auto before = Resources::open(primary.url()).value().fence("ledger").value();
  ASSERT_TRUE(before.run(test_token(33, 1), {"SET", "k", "33"}));
  while (replica.cli({"GET", "k"}) != "33") std::this_thread::sleep_for(10ms);
  link.hold(true);  // the replica lags
  ASSERT_TRUE(before.run(test_token(34, 2), {"SET", "k", "34"}));
  primary.process().kill();
  link.refuse(true);
  link.hold(false);
  replica.cli({"REPLICAOF", "NO", "ONE"});
  const auto after = Resources::open(replica.url()).value().fence("ledger").value();
  EXPECT_EQ(after.mark()->value().mark, test_token(33, 1));
  EXPECT_EQ(replica.cli({"GET", "k"}), "33") << "mark and data went back together";
  EXPECT_TRUE(after.run(test_token(33, 1), {"SET", "k", "zombie"}))
      << "if this is refused one day, the documentation can promise more";
}

// ---- claims --------------------------------------------------------------------------------

class RedisClaimLive : public RedisFenceLive {
 protected:
  Resources resources_ = Resources::open(server().url()).value();
  const RequestId first_ = request_id(1);
  const RequestId second_ = request_id(2);
};

TEST_F(RedisClaimLive, TheLastToClaimWins) {
  const auto first = resources_.claim("ledger", first_).value();
  EXPECT_TRUE(first.run({"SET", "k", "1"}));
  const auto second = resources_.claim("ledger", second_).value();
  const auto refused = first.run({"SET", "k", "late"});
  EXPECT_EQ(code_of(refused), ErrorCode::fenced_out);
  EXPECT_THAT(refused.error().message, HasSubstr("another request has claimed it since"));
  EXPECT_EQ(second.run({"GET", "k"})->text, "1");
  EXPECT_TRUE(second.run({"SET", "k", "2"}));
  EXPECT_EQ(cli({"GET", "k"}), "2");
  const auto mark = resources_.fence("ledger")->mark()->value();
  EXPECT_EQ(mark.claim, second_);
  EXPECT_EQ(mark.refused, 1);
  EXPECT_FALSE(mark.mark);
}

TEST_F(RedisClaimLive, WhoClaimsAgainMustReadAgain) {
  const auto before = resources_.claim("ledger", first_).value();
  const auto other = resources_.claim("ledger", second_).value();
  ASSERT_TRUE(other.run({"SET", "k", "theirs"}));
  const auto after = resources_.claim("ledger", first_).value();
  EXPECT_EQ(code_of(before.run({"SET", "k", "from an old read"})), ErrorCode::fenced_out)
      << "the claim is of the same request, but it is another claim";
  EXPECT_EQ(after.run({"GET", "k"})->text, "theirs");
}

TEST_F(RedisClaimLive, ALateClaimTakesNothingOver) {
  const std::string script(redis::fence_script());
  const auto claim = [&](const std::string& seen, const RequestId& request) {
    return cli(
        {"EVAL", script, "1", "leasehold:fence:ledger", "claim", seen, "", request.hex(), ""});
  };
  EXPECT_EQ(claim("0", first_), "1");
  EXPECT_EQ(claim("0", first_), "1") << "the reply was lost, and it asks again";
  EXPECT_EQ(claim("1", second_), "2");
  EXPECT_THAT(claim("0", first_), StartsWith("FENCEMOVED 2"));
  EXPECT_EQ(cli({"HGET", "leasehold:fence:ledger", "claim"}), second_.hex());
}

TEST_F(RedisClaimLive, ALostReplyToAClaimIsHarmless) {
  const auto through_proxy = Resources::open("redis://" + proxy_.address()).value();
  for (const rig::WireFault fault : {rig::WireFault::cut_after, rig::WireFault::lose_reply}) {
    proxy_.arm(fault);
    const auto claim = through_proxy.claim("ledger", first_, {.timeout = 3s});
    ASSERT_TRUE(claim) << to_string(claim.error());
    EXPECT_TRUE(claim->run({"SET", "k", "1"}));
    proxy_.cut();
  }
}

TEST_F(RedisClaimLive, TokensAndClaimsDoNotMix) {
  ASSERT_TRUE(resources_.claim("claimed", first_));
  ASSERT_TRUE(fence("numbered").enter(test_token(1, 1)));
  EXPECT_EQ(fence("claimed").enter(test_token(1, 1)).error().code, ErrorCode::invalid);
  EXPECT_EQ(resources_.claim("numbered", first_).error().code, ErrorCode::invalid);
  EXPECT_EQ(resources_.claim("", first_).error().code, ErrorCode::invalid);
}

// ---- the operator --------------------------------------------------------------------------

Result<std::unique_ptr<FenceAdmin>> open_admin(const std::string& url) {
  return redis::adapters().front().offers.open<FenceAdmin>(Url::parse(url).value());
}

TEST_F(RedisFenceLive, TheOperatorSeesAndAdopts) {
  expect_operator_sees_and_adopts(*open_admin(server().url()).value(), "a*[x]",
                                  [](const std::string& name) { return fence(name); });
}

TEST_F(RedisFenceLive, AServerThatEvictsAnyKeyIsRefused) {
  rig::RedisServer evicting(
      {.durable = false, .more = {"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}});
  const auto refused = Resources::open(evicting.url());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsafe_for_correctness);
  EXPECT_THAT(refused.error().message, HasSubstr("maxmemory-policy"));
  evicting.cli({"CONFIG", "SET", "maxmemory-policy", "volatile-lru"});
  EXPECT_TRUE(Resources::open(evicting.url()));
}

TEST_F(RedisFenceLive, AFullServerRefusesAndStillTellsTheZombie) {
  rig::RedisServer full({.durable = false});
  const auto resources = Resources::open(full.url()).value();
  const auto door = resources.fence("ledger").value();
  ASSERT_TRUE(door.enter(test_token(34, 2)));
  full.cli({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_EQ(code_of(door.run(test_token(35, 3), {"SET", "k", "v"})), ErrorCode::unavailable);
  EXPECT_EQ(code_of(door.run(test_token(33, 1), {"SET", "k", "v"})), ErrorCode::fenced_out);
  full.cli({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_EQ(full.cli({"EXISTS", "k"}), "0");
  EXPECT_EQ(door.mark()->value().mark, test_token(34, 2));
}

TEST_F(RedisFenceLive, WrongUrlsAreInvalid) {
  EXPECT_EQ(Resources::open("nonsense").error().code, ErrorCode::invalid);
  EXPECT_EQ(Resources::open("redis://").error().code, ErrorCode::invalid);
  EXPECT_EQ(Resources::open("redis://a,b").error().code, ErrorCode::invalid);
  EXPECT_EQ(Resources::open("etcd://127.0.0.1:1").error().code, ErrorCode::invalid);
}

}  // namespace
}  // namespace leasehold::testing
