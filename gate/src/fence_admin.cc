#include "fence_admin.h"

#include <unistd.h>

#include "control.h"
#include "gate/description.h"
#include "kit/try.h"
#include "ledger.h"
#include "text.h"

namespace leasehold::gate {
namespace {

class GateFenceAdmin final : public FenceAdmin {
 public:
  explicit GateFenceAdmin(StateFolder folder) : folder_(std::move(folder)) {}

  Status install() override {
    if (access(folder_.ledger().c_str(), F_OK) == 0) {
      TRY(read_ledger(folder_));
      return sync_found(folder_);
    }
    const auto lock = TRY(FolderLock::take(folder_));
    auto ledger = TRY(Ledger::open(folder_, {}));
    return ledger->close();
  }

  Result<std::vector<FenceMark>> marks() override {
    auto image = TRY(read_ledger(folder_));
    std::vector<FenceMark> marks;
    for (const auto& [resource, state] : image.states) {
      marks.push_back(state.mark.shown(resource, state.refused));
    }
    return marks;
  }

  Status adopt(const ResourceName& resource, const Lineage& lineage,
               TokenNumber at_least) override {
    TRY(command(folder_, "adopt " + percent_encoded(resource.str()) + " " +
                             std::to_string(at_least.value()) + " " +
                             percent_encoded(lineage.str())));
    return {};
  }

 private:
  StateFolder folder_;
};

}  // namespace

Result<StateFolder> state_folder_in(const Url& url) {
  TRY(technology().check_options(url, FenceAdmin::kOffer));
  if (!url.hosts.empty()) {
    return fail(ErrorCode::invalid,
                "a gate URL has no host; write gate:/path/of/the/state/folder, with one slash");
  }
  if (url.path.empty()) {
    return fail(ErrorCode::invalid, "a gate URL needs the path of the gate's state folder");
  }
  return StateFolder{url.path};
}

Result<std::unique_ptr<FenceAdmin>> open_fence_admin(const Url& url) {
  auto folder = TRY(state_folder_in(url));
  return std::make_unique<GateFenceAdmin>(std::move(folder));
}

}  // namespace leasehold::gate
