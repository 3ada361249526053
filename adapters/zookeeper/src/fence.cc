#include "leasehold/zookeeper/fence.h"

#include "fence_marks.h"
#include "kit/try.h"

namespace leasehold::zookeeper {

Result<Resources> Resources::open(std::string_view url) {
  auto parsed = TRY(Url::parse(url));
  if (parsed.scheme != "zookeeper") {
    return fail(ErrorCode::invalid,
                "the data of this fence is at a zookeeper:// URL, not at " + parsed.redacted());
  }
  TRY(parsed.read_secrets());
  auto marks = TRY(FenceMarks::open(parsed));
  return Resources(std::move(marks));
}

Result<Fence> Resources::fence(std::string_view resource) const {
  auto name = TRY(ResourceName::parse(resource));
  return Fence(marks_, std::move(name));
}

Result<std::vector<FenceMark>> Resources::marks() const {
  return marks_->all(context_of({}));
}

Status Fence::enter(const Token& token, const EnterOptions& options) const {
  TRY(marks_->pass(resource_, token, {}, options));
  return {};
}

Result<TransactionResult> Fence::transaction(const Token& token,
                                             const std::vector<Operation>& operations,
                                             const EnterOptions& options) const {
  return marks_->pass(resource_, token, operations, options);
}

Result<std::optional<Fence::Node>> Fence::read(const Token& token, const std::string& path,
                                               const EnterOptions& options) const {
  TRY(check_path(path));
  TRY(enter(token, options));
  return marks_->read_data(path, context_of(options));
}

Result<std::optional<FenceMark>> Fence::mark() const {
  return marks_->read(resource_, context_of({}));
}

}  // namespace leasehold::zookeeper
