#include "testing/fence_conformance.h"

#include <unistd.h>

#include <csignal>

#include "etcd_under_test.h"
#include "leasehold/etcd/fence.h"
#include "leasehold/fence_admin.h"
#include "leasehold/process/child.h"

namespace leasehold::testing {
namespace {

using etcd::Get;
using etcd::Put;
using etcd::Resources;

EnterOptions options_of(EntryMode mode, std::int64_t sequence = 0) {
  return {.entry = mode == EntryMode::once ? Entry::once : Entry::repeatable,
          .sequence = sequence,
          .within = Millis::max()};
}

class EtcdConnection final : public FenceConnection {
 public:
  EtcdConnection(const std::string& url, std::string data)
      : resources_(Resources::open(url).value()),
        other_(Resources::open(url + "-other").value()),
        admin_(etcd::adapters().front().offers.open<FenceAdmin>(Url::parse(url).value()).value()),
        data_(std::move(data)) {}

  Result<std::string> enter_and_read(std::string_view resource, const Token& token,
                                     EntryMode mode) override {
    auto fence = resources_.fence(resource);
    if (!fence) return fail(std::move(fence.error()));
    auto outcome = fence->transaction(token, {Get{key_of(resource)}}, options_of(mode));
    if (!outcome) return fail(std::move(outcome.error()));
    return outcome->values.at(0).value_or("");
  }

  Status enter_and_write(std::string_view resource, const Token& token, std::string_view value,
                         EntryMode mode, std::int64_t sequence) override {
    auto fence = resources_.fence(resource);
    if (!fence) return fail(std::move(fence.error()));
    auto outcome = fence->transaction(token, {Put{key_of(resource), std::string(value)}},
                                      options_of(mode, sequence));
    if (!outcome) return fail(std::move(outcome.error()));
    return {};
  }

  // Through another fence, which nobody else uses.
  Result<std::string> peek(std::string_view resource) override {
    const auto outcome =
        other_.fence("peep").value().transaction(test_token(1, 1), {Get{key_of(resource)}});
    if (!outcome) return fail(outcome.error());
    return outcome->values.at(0).value_or("");
  }
  Result<std::vector<FenceMark>> marks() override { return admin_->marks(); }
  Status adopt(const ResourceName& resource, const Lineage& lineage,
               TokenNumber at_least) override {
    return admin_->adopt(resource, lineage, at_least);
  }

 private:
  std::string key_of(std::string_view resource) const { return data_ + std::string(resource); }

  Resources resources_;
  Resources other_;
  std::unique_ptr<FenceAdmin> admin_;
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
    const auto done = ask("write " + words_of(resource, token) + " " + std::string(value));
    if (!done) return fail(done.error());
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
  FenceWays ways() const override { return {.numbers = true, .names = true}; }

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
