#include "fence_admin.h"

#include <utility>

#include "adapters/files/description.h"
#include "kit/text/visible_text.h"
#include "kit/try.h"

namespace leasehold::files {
namespace {

class FilesFenceAdmin final : public FenceAdmin {
 public:
  explicit FilesFenceAdmin(FileUrl url) : url_(std::move(url)) {}

  Status install() override { return install_fence(url_.path, url_.options); }

  Result<std::vector<FenceMark>> marks() override {
    const auto fence = TRY(Fence::open(url_.path, url_.options));
    auto mark = TRY(fence.mark());
    return std::vector<FenceMark>{std::move(mark)};
  }

  Status adopt(const ResourceName& resource, const Lineage& lineage,
               TokenNumber at_least) override {
    const auto fence = TRY(Fence::open(url_.path, url_.options));
    const std::string name = fence.path().filename().native();
    if (resource.str() != name) {
      return fail(ErrorCode::invalid, "the resource at this URL is called '" + name + "', not " +
                                          kit::in_quotes(resource.str()));
    }
    return adopt_lineage(url_.path, lineage, at_least, url_.options);
  }

 private:
  FileUrl url_;
};

}  // namespace

Result<FileUrl> FileUrl::of(const Url& url) {
  TRY(technology().check_options(url, FenceAdmin::kOffer));
  if (!url.hosts.empty() || !url.user.empty()) {
    return fail(ErrorCode::invalid,
                "a file URL has no host; write file:/path/to/it, with one slash");
  }
  if (url.path.empty()) {
    return fail(ErrorCode::invalid, "a file URL needs the path of the file or folder");
  }
  FileUrl found{url.path, {}};
  if (!url.query.contains("filesystem")) return found;
  if (url.option("filesystem") != "local") {
    return fail(ErrorCode::invalid,
                "filesystem can only be 'local'; '" + url.option("filesystem") + "' was given");
  }
  found.options.filesystem = Filesystem::vouched_for;
  return found;
}

Result<std::unique_ptr<FenceAdmin>> open_fence_admin(const Url& url) {
  auto checked = TRY(FileUrl::of(url));
  return std::make_unique<FilesFenceAdmin>(std::move(checked));
}

}  // namespace leasehold::files
