#include <unistd.h>

#include <csignal>

#include "etcd_under_test.h"
#include "leasehold/etcd/fence.h"
#include "leasehold/process/child.h"
#include "testing/resources_connection.h"

namespace leasehold::testing {
namespace {

using etcd::Fence;
using etcd::Get;
using etcd::Put;
using etcd::Resources;

class EtcdConnection final : public ResourcesConnection<Resources, Fence> {
 public:
  EtcdConnection(const std::string& url, std::string data)
      : ResourcesConnection(etcd::adapters().front(), url, url + "-other"),
        data_(std::move(data)) {}

 private:
  Result<std::string> read(const Fence& fence, const Token& token, const std::string& resource,
                           const EnterOptions& options) override {
    const auto done = TRY(fence.transaction(token, {Get{data_ + resource}}, options));
    return done.values.at(0).value_or("");
  }
  Status write(const Fence& fence, const Token& token, const std::string& resource,
               const std::string& value, const EnterOptions& options) override {
    TRY(fence.transaction(token, {Put{data_ + resource, value}}, options));
    return {};
  }

  const std::string data_;
};

// What a forked child uses: a program of its own that dies with it.
class WorkerConnection final : public FenceConnection {
 public:
  WorkerConnection(const std::string& url, const std::string& data) : worker_(start(url, data)) {}

  Result<std::string> enter_and_read(std::string_view resource, const Token& token,
                                     EntryMode) override {
    return ask("read " + words_of(resource, token));
  }
  Status enter_and_write(std::string_view resource, const Token& token, std::string_view value,
                         EntryMode, std::int64_t) override {
    TRY(ask("write " + words_of(resource, token) + " " + std::string(value)));
    return {};
  }
  Result<std::string> peek(std::string_view) override { return not_here(); }
  Result<std::vector<FenceMark>> marks() override { return not_here(); }
  Status adopt(const ResourceName&, const Lineage&, TokenNumber) override { return not_here(); }

 private:
  static process::Child start(const std::string& url, const std::string& data) {
    process::Command command;
    command.argv = {LEASEHOLD_ETCD_FENCE_WORKER, url, data};
    command.in = process::Piped{};
    command.out = process::Piped{};
    command.parent_death_signal = SIGKILL;
    return process::Child::start(command).value();
  }
  static std::string words_of(std::string_view resource, const Token& token) {
    return std::string(resource) + " " + std::to_string(token.number.value()) + " " +
           token.lineage.str() + " " + token.request.hex();
  }
  static tl::unexpected<Error> not_here() {
    return fail(ErrorCode::unsupported, "not in a forked child");
  }

  Result<std::string> ask(const std::string& order) {
    process::write_all(worker_.in().get(), order + "\n");
    std::string said = process::read_until(worker_.out().get(), "\n");
    if (said.ends_with('\n')) said.pop_back();
    if (said.starts_with("ok ")) return said.substr(3);
    if (said == "refused") return fail(ErrorCode::fenced_out, said);
    return fail(ErrorCode::internal, said);
  }

  process::Child worker_;
};

class EtcdFence final : public FenceUnderTest {
 public:
  std::unique_ptr<FenceConnection> connect() override {
    const std::string data = under_.prefix() + "-data/";
    if (getpid() != made_by_) return std::make_unique<WorkerConnection>(under_.url(), data);
    return std::make_unique<EtcdConnection>(under_.url(), data);
  }
  void restart() override {
    under_.kill();
    under_.start();
  }
  bool update_is_one_transaction() const override { return false; }
  FenceWays ways() const override { return {.numbers = true, .names = true, .readers = true}; }

 private:
  EtcdUnderTest under_;
  const pid_t made_by_ = getpid();
};

INSTANTIATE_TEST_SUITE_P(Etcd, FenceConformance,
                         ::testing::Values(FenceCase{"server",
                                                     [] { return std::make_unique<EtcdFence>(); }}),
                         name_of_fence_case);

}  // namespace
}  // namespace leasehold::testing
