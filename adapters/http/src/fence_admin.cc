#include "fence_admin.h"

#include <unistd.h>

#include "control.h"
#include "ledger.h"
#include "text.h"

namespace leasehold::http {
namespace {

class GateFenceAdmin final : public FenceAdmin {
 public:
  explicit GateFenceAdmin(StateFolder folder) : folder_(std::move(folder)) {}

  Status install() override {
    if (access(folder_.ledger().c_str(), F_OK) == 0) {
      auto image = read_ledger(folder_);
      if (!image) return fail(std::move(image.error()));
      return sync_found(folder_);
    }
    auto lock = FolderLock::take(folder_);
    if (!lock) return fail(std::move(lock.error()));
    auto ledger = Ledger::open(folder_, {});
    if (!ledger) return fail(std::move(ledger.error()));
    return (*ledger)->close();
  }

  Result<std::vector<FenceMark>> marks() override {
    auto image = read_ledger(folder_);
    if (!image) return fail(std::move(image.error()));
    std::vector<FenceMark> marks;
    for (const auto& [resource, state] : image->states) {
      marks.push_back(state.mark.shown(resource, state.refused));
    }
    return marks;
  }

  Status adopt(const ResourceName& resource, const Lineage& lineage,
               TokenNumber at_least) override {
    const auto done = command(folder_, "adopt " + percent_encoded(resource.str()) + " " +
                                           std::to_string(at_least.value()) + " " +
                                           percent_encoded(lineage.str()));
    if (!done) return fail(done.error());
    return {};
  }

 private:
  StateFolder folder_;
};

}  // namespace

Result<StateFolder> state_folder_in(const Url& url) {
  if (auto ok = url.only_options({}); !ok) return fail(std::move(ok.error()));
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
  auto folder = state_folder_in(url);
  if (!folder) return fail(std::move(folder.error()));
  return std::make_unique<GateFenceAdmin>(std::move(*folder));
}

}  // namespace leasehold::http
