#include "testing/fence_conformance.h"

#include "fence_marks.h"
#include "leasehold/redis/fence.h"
#include "leasehold/resp/command.h"
#include "rig/redis.h"

namespace leasehold::testing {
namespace {

using redis::Resources;
using redis::Server;

rig::RedisServer& server() {
  static rig::RedisServer shared;
  return shared;
}

std::string data_key(std::string_view resource) {
  return "data:" + std::string(resource);
}

EnterOptions how_of(EntryMode mode, std::int64_t sequence = 0) {
  return {.entry = mode == EntryMode::once ? Entry::once : Entry::repeatable,
          .sequence = sequence,
          .within = Millis::max()};
}

class RedisConnection final : public FenceConnection {
 public:
  RedisConnection()
      : resources_(Resources::open(server().url()).value()),
        raw_(redis::open_fenced_server(Url::parse(server().url()).value()).value()) {}

  Result<std::string> enter_and_read(std::string_view resource, const Token& token,
                                     EntryMode mode) override {
    auto fence = resources_.fence(resource);
    if (!fence) return fail(std::move(fence.error()));
    auto reply = fence->run(token, {"GET", data_key(resource)}, how_of(mode));
    if (!reply) return fail(std::move(reply.error()));
    return reply->text;
  }

  Status enter_and_write(std::string_view resource, const Token& token, std::string_view value,
                         EntryMode mode, std::int64_t sequence) override {
    auto fence = resources_.fence(resource);
    if (!fence) return fail(std::move(fence.error()));
    auto reply =
        fence->run(token, {"SET", data_key(resource), std::string(value)}, how_of(mode, sequence));
    if (!reply) return fail(std::move(reply.error()));
    EXPECT_TRUE(reply->repeated || reply->text == "OK");
    return {};
  }

  Result<std::string> peek(std::string_view resource) override {
    std::string command;
    resp::append_command(command, {"GET", data_key(resource)});
    auto reply = raw_->run(command, redis::context_of({}));
    if (!reply) return fail(std::move(reply.error()));
    return reply->text;
  }
  Result<std::vector<FenceMark>> marks() override { return resources_.marks(); }
  Status adopt(const ResourceName& resource, const Lineage& lineage,
               TokenNumber at_least) override {
    return redis::adopt_lineage(*raw_, resource, lineage, at_least, {});
  }

 private:
  Resources resources_;
  std::shared_ptr<Server> raw_;
};

class RedisFence final : public FenceUnderTest {
 public:
  RedisFence() { server().cli({"FLUSHALL"}); }

  std::unique_ptr<FenceConnection> connect() override {
    return std::make_unique<RedisConnection>();
  }
  void restart() override {
    server().process().kill();
    server().process().start();
  }
  bool update_is_one_transaction() const override { return false; }
  FenceWays ways() const override {
    return {.numbers = true, .names = true, .knows_writes = false};
  }
};

INSTANTIATE_TEST_SUITE_P(Redis, FenceConformance,
                         ::testing::Values(FenceCase{
                             "server", [] { return std::make_unique<RedisFence>(); }}),
                         name_of_fence_case);

}  // namespace
}  // namespace leasehold::testing
