#include "site.h"

#include <algorithm>

#include "leasehold/url.h"

namespace leasehold::drill {
namespace {

using namespace std::chrono_literals;

std::string file_url(const std::string& path) {
  Url url;
  url.scheme = "sqlite";
  url.path = path;
  return url.redacted();
}

// Files in the drill's own folder: no server that could be hit.
class EmbeddedSite final : public Site {
 public:
  EmbeddedSite(const Plan& plan, const std::string& folder)
      : store_(file_url(folder + "/locks.db")),
        fence_(file_url(folder + "/resource.db")),
        fencing_(plan.fence == "none" ? Fencing::none : Fencing::token) {}

  std::string store_url() const override { return store_; }
  std::string fence_url() const override { return fence_; }
  Fencing fencing() const override { return fencing_; }
  std::string store_name() const override { return "sqlite"; }
  std::string fence_name() const override { return fencing_ == Fencing::none ? "none" : "sqlite"; }
  Millis default_ttl() const override { return 100ms; }

 private:
  const std::string store_;
  const std::string fence_;
  const Fencing fencing_;
};

}  // namespace

Result<std::unique_ptr<Site>> open_site(const Plan& plan, const std::string& folder) {
  if (plan.store == "sqlite") {
    for (const Fault fault : plan.faults) {
      if (fault == Fault::pause || fault == Fault::kill_holder) continue;
      return fail(ErrorCode::unsupported, "the fault '" + std::string(to_string(fault)) +
                                              "' needs a server, and SQLite has none");
    }
    return std::make_unique<EmbeddedSite>(plan, folder);
  }
  return fail(ErrorCode::invalid, "there is no store '" + plan.store + "' for a drill");
}

}  // namespace leasehold::drill
