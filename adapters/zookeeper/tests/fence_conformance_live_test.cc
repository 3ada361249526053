#include "leasehold/zookeeper/fence.h"
#include "one_server.h"
#include "testing/resources_connection.h"

namespace leasehold::testing {
namespace {

using zookeeper::Create;
using zookeeper::Fence;
using zookeeper::Resources;
using zookeeper::Set;

// The data of a resource is a node whose name is the resource's in hexadecimal: names of nodes are
// not as free.
class ZookeeperConnection final : public ResourcesConnection<Resources, Fence> {
 public:
  ZookeeperConnection(const std::string& url, std::string data)
      : ResourcesConnection(zookeeper::adapters().front(), url, url + "-other"),
        data_(std::move(data)) {}

 private:
  std::string path_of(const std::string& resource) const {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(resource.data());
    return data_ + "-" + detail::to_hex({bytes, resource.size()}).substr(0, 500);
  }
  Result<std::string> read(const Fence& fence, const Token& token, const std::string& resource,
                           const EnterOptions& options) override {
    const auto node = TRY(fence.read(token, path_of(resource), options));
    return node ? node->data : std::string();
  }
  Status write(const Fence& fence, const Token& token, const std::string& resource,
               const std::string& value, const EnterOptions& options) override {
    const std::string path = path_of(resource);
    const bool numbered = options.sequence != 0;
    // So that a write that comes again is the same operation.
    if (numbered) (void)peep_hole().transaction(test_token(1, 1), {Create{path, ""}});
    auto done = fence.transaction(token, {Set{path, value}}, options);
    const bool is_missing = !done && !numbered && done.error().code == ErrorCode::invalid;
    if (is_missing) done = fence.transaction(token, {Create{path, value}}, options);
    if (!done) return fail(done.error());
    return {};
  }

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
  FenceWays ways() const override { return {.numbers = true, .names = true, .readers = true}; }

 private:
  const std::string folder_ = fresh_folder();
};

INSTANTIATE_TEST_SUITE_P(Zookeeper, FenceConformance,
                         ::testing::Values(FenceCase{
                             "server", [] { return std::make_unique<ZookeeperFence>(); }}),
                         name_of_fence_case);

}  // namespace
}  // namespace leasehold::testing
