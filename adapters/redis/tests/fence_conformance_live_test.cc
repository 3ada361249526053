#include "adapters/redis/rig/server.h"
#include "fence/attempt.h"
#include "fence_marks.h"
#include "leasehold/redis/adapter.h"
#include "leasehold/redis/fence.h"
#include "leasehold/resp/command.h"
#include "testing/resources_connection.h"

namespace leasehold::testing {
namespace {

using redis::Fence;
using redis::Resources;

rig::RedisServer& server() {
  static rig::RedisServer shared;
  return shared;
}

std::string data_key(std::string_view resource) {
  return "data:" + std::string(resource);
}

class RedisConnection final : public ResourcesConnection<Resources, Fence> {
 public:
  RedisConnection()
      : ResourcesConnection(redis::adapters().front(), server().url(), server().url()),
        raw_(redis::open_fenced_server(Url::parse(server().url()).value()).value()) {}

  // Past all fences: their marks are all on one server.
  Result<std::string> peek(std::string_view resource) override {
    std::string command;
    resp::append_command(command, {"GET", data_key(resource)});
    const auto reply = TRY(raw_->run(command, fence::context_of({})));
    return reply.text;
  }

 private:
  Result<std::string> read(const Fence& fence, const Token& token, const std::string& resource,
                           const EnterOptions& options) override {
    const auto reply = TRY(fence.run(token, {"GET", data_key(resource)}, options));
    return reply.text;
  }
  Status write(const Fence& fence, const Token& token, const std::string& resource,
               const std::string& value, const EnterOptions& options) override {
    const auto reply = TRY(fence.run(token, {"SET", data_key(resource), value}, options));
    EXPECT_TRUE(reply.repeated || reply.text == "OK");
    return {};
  }

  const std::shared_ptr<redis::Server> raw_;
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
    return {.numbers = true, .names = true, .knows_writes = false, .readers = true};
  }
};

INSTANTIATE_TEST_SUITE_P(Redis, FenceConformance,
                         ::testing::Values(FenceCase{
                             "server", [] { return std::make_unique<RedisFence>(); }}),
                         name_of_fence_case);

}  // namespace
}  // namespace leasehold::testing
