#include "fence_admin.h"

#include "fence/attempt.h"
#include "fence_marks.h"
#include "kit/try.h"
#include "leasehold/resp/command.h"

namespace leasehold::redis {
namespace {

class RedisFenceAdmin final : public FenceAdmin {
 public:
  explicit RedisFenceAdmin(std::shared_ptr<Server> server) : server_(std::move(server)) {}

  // A mark comes into being when it is first entered; what can be done before is to see that the
  // server takes the script, and to leave it there.
  Status install() override {
    std::string command;
    resp::append_command(command, {"SCRIPT", "LOAD", fence_script()});
    TRY(server_->run(command, fence::context_of({})));
    return {};
  }

  Result<std::vector<FenceMark>> marks() override { return read_marks(*server_); }

  Status adopt(const ResourceName& resource, const Lineage& lineage,
               TokenNumber at_least) override {
    return adopt_lineage(*server_, resource, lineage, at_least, {});
  }

  Status reset(const ResourceName& resource) override { return reset_mark(*server_, resource, {}); }

 private:
  std::shared_ptr<Server> server_;
};

}  // namespace

Result<std::unique_ptr<FenceAdmin>> open_fence_admin(const Url& url) {
  auto server = TRY(open_fenced_server(url));
  return std::make_unique<RedisFenceAdmin>(std::move(server));
}

}  // namespace leasehold::redis
