#include "testing/fence_conformance.h"

#include "leasehold/fence_admin.h"
#include "leasehold/zookeeper/fence.h"
#include "one_server.h"

namespace leasehold::testing {
namespace {

using zookeeper::Create;
using zookeeper::Fence;
using zookeeper::Resources;
using zookeeper::Set;

EnterOptions options_of(EntryMode mode, std::int64_t sequence = 0) {
  return {.entry = mode == EntryMode::once ? Entry::once : Entry::repeatable,
          .sequence = sequence,
          .within = Millis::max()};
}

// The data of a resource is a node whose name is the resource's in hexadecimal: names of nodes are
// not as free.
class ZookeeperConnection final : public FenceConnection {
 public:
  ZookeeperConnection(const std::string& url, std::string data)
      : resources_(Resources::open(url).value()),
        other_(Resources::open(url + "-other").value()),
        admin_(
            zookeeper::adapters().front().offers.open<FenceAdmin>(Url::parse(url).value()).value()),
        data_(std::move(data)) {}

  Result<std::string> enter_and_read(std::string_view resource, const Token& token,
                                     EntryMode mode) override {
    auto fence = resources_.fence(resource);
    if (!fence) return fail(std::move(fence.error()));
    return read(*fence, resource, token, options_of(mode));
  }

  Status enter_and_write(std::string_view resource, const Token& token, std::string_view value,
                         EntryMode mode, std::int64_t sequence) override {
    auto fence = resources_.fence(resource);
    if (!fence) return fail(std::move(fence.error()));
    const std::string path = path_of(resource);
    const auto write = [&](const zookeeper::Operation& operation) {
      return fence->transaction(token, {operation}, options_of(mode, sequence));
    };
    // So that a write that comes again is the same operation.
    if (sequence != 0)
      (void)other_.fence("peep").value().transaction(test_token(1, 1), {Create{path, ""}});
    auto done = write(Set{path, std::string(value)});
    const bool is_missing = !done && sequence == 0 && done.error().code == ErrorCode::invalid;
    if (is_missing) done = write(Create{path, std::string(value)});
    if (!done) return fail(done.error());
    return {};
  }

  // Through another fence, which nobody else uses.
  Result<std::string> peek(std::string_view resource) override {
    return read(other_.fence("peep").value(), resource, test_token(1, 1), {});
  }
  Result<std::vector<FenceMark>> marks() override { return admin_->marks(); }
  Status adopt(const ResourceName& resource, const Lineage& lineage,
               TokenNumber at_least) override {
    return admin_->adopt(resource, lineage, at_least);
  }

 private:
  std::string path_of(std::string_view resource) const {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(resource.data());
    return data_ + "-" + detail::to_hex({bytes, resource.size()}).substr(0, 500);
  }
  Result<std::string> read(const Fence& fence, std::string_view resource, const Token& token,
                           const EnterOptions& options) {
    const auto node = fence.read(token, path_of(resource), options);
    if (!node) return fail(node.error());
    return *node ? (*node)->data : std::string();
  }

  Resources resources_;
  Resources other_;
  std::unique_ptr<FenceAdmin> admin_;
  const std::string data_;
};

class ZookeeperFence final : public FenceUnderTest {
 public:
  std::unique_ptr<FenceConnection> connect() override {
    return std::make_unique<ZookeeperConnection>("zookeeper://" + one_server().address() + folder_,
                                                 "/data-" + folder_.substr(7));
  }
  void restart() override {
    one_server().kill();
    one_server().start();
  }
  bool update_is_one_transaction() const override { return false; }
  FenceWays ways() const override { return {.numbers = true, .names = true}; }

 private:
  const std::string folder_ = fresh_folder();
};

INSTANTIATE_TEST_SUITE_P(Zookeeper, FenceConformance,
                         ::testing::Values(FenceCase{
                             "server", [] { return std::make_unique<ZookeeperFence>(); }}),
                         name_of_fence_case);

}  // namespace
}  // namespace leasehold::testing
