#include "parts.h"

#include <algorithm>
#include <stdexcept>

#include "kit/try.h"
#include "leasehold/url.h"
#include "resource_module.h"
#include "stores/src/module.h"

namespace leasehold::drill {
namespace {

class FilePlace final : public Place {
 public:
  explicit FilePlace(std::string url) : url_(std::move(url)) {}
  std::string url() const override { return url_; }

 private:
  const std::string url_;
};

template <class Part>
const Part* find(const std::vector<Part>& all, const std::string& wanted) {
  const std::string scheme = wanted.substr(0, wanted.find(':'));
  const bool url = is_url(wanted);
  const auto found = std::find_if(all.begin(), all.end(), [&](const Part& it) {
    if (!url) return it.name == wanted;
    return std::find(it.schemes.begin(), it.schemes.end(), scheme) != it.schemes.end();
  });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

void Place::begin(Fault, Millis, Chance&) {
  throw std::logic_error("nothing can be done to this place");
}
bool Place::end(Fault) {
  throw std::logic_error("nothing was done to this place");
}

std::unique_ptr<Place> file_place(const std::string& scheme, const std::string& path) {
  Url url;
  url.scheme = scheme;
  url.path = path;
  return std::make_unique<FilePlace>(url.redacted());
}

bool is_url(const std::string& name_or_url) {
  return name_or_url.find(':') != std::string::npos;
}

const StorePart* store_part(const std::string& name_or_url) {
  return find(parts().stores, name_or_url);
}

const FencePart* fence_part(const std::string& name_or_url) {
  return find(parts().fences, name_or_url);
}

std::function<Result<std::unique_ptr<Resource>>(const ResourceChoice&)> in_drill_module(
    const std::string& technology) {
  return [technology](const ResourceChoice& choice) -> Result<std::unique_ptr<Resource>> {
    const auto module = TRY(load_module({technology, "drill_" + technology, kResourceModuleEntry}));
    return static_cast<const ResourceModuleV1*>(module)->open(choice);
  };
}

Result<std::unique_ptr<Resource>> open_resource(const ResourceChoice& choice) {
  const FencePart* part = fence_part(choice.url);
  if (part == nullptr) {
    const auto url = TRY(Url::parse(choice.url));
    return fail(ErrorCode::unsupported, "a drill has no resource for '" + url.scheme + "'");
  }
  return part->open(choice);
}

}  // namespace leasehold::drill
