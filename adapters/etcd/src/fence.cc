#include "leasehold/etcd/fence.h"

#include "fence_marks.h"

namespace leasehold::etcd {

Result<Resources> Resources::open(std::string_view url) {
  auto parsed = Url::parse(url);
  if (!parsed) return fail(std::move(parsed.error()));
  if (parsed->scheme != "etcd") {
    return fail(ErrorCode::invalid,
                "the data of this fence is at an etcd:// URL, not at " + parsed->redacted());
  }
  if (auto ok = parsed->read_secrets(); !ok) return fail(std::move(ok.error()));
  auto marks = FenceMarks::open(*parsed);
  if (!marks) return fail(std::move(marks.error()));
  return Resources(std::move(*marks));
}

Result<Fence> Resources::fence(std::string_view resource) const {
  auto name = ResourceName::parse(resource);
  if (!name) return fail(std::move(name.error()));
  return Fence(marks_, std::move(*name));
}

Result<std::vector<FenceMark>> Resources::marks() const {
  return marks_->all(context_of({}));
}

Status Fence::enter(const Token& token, const EnterOptions& options) const {
  const auto done = marks_->pass(resource_, token, {}, options);
  if (!done) return fail(done.error());
  return {};
}

Result<TransactionResult> Fence::transaction(const Token& token,
                                             const std::vector<Operation>& operations,
                                             const EnterOptions& options) const {
  return marks_->pass(resource_, token, operations, options);
}

Result<std::optional<FenceMark>> Fence::mark() const {
  return marks_->read(resource_, context_of({}));
}

}  // namespace leasehold::etcd
