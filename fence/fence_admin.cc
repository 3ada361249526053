#include "leasehold/fence_admin.h"

namespace leasehold {
namespace {

tl::unexpected<Error> missing(const char* what) {
  return fail(ErrorCode::unsupported, std::string("the fence of this resource cannot ") + what);
}

}  // namespace

Status FenceAdmin::check_marks() {
  return {};
}

Status FenceAdmin::reset(const ResourceName&) {
  return missing("forget a mark");
}

Result<std::int64_t> FenceAdmin::sweep(const SweepOptions&) {
  return missing("sweep its marks");
}

Status FenceAdmin::admit(const StoreId&) {
  return missing("be swept, and admits every store");
}

Result<std::vector<FenceFloor>> FenceAdmin::floors() {
  return std::vector<FenceFloor>{};
}

Status FenceAdmin::remove() {
  return missing("be removed");
}

Status FenceAdmin::guard(const std::string&, const ResourceName&) {
  return missing("guard a table");
}

Status FenceAdmin::unguard(const std::string&) {
  return missing("guard a table");
}

Result<std::vector<GuardedTable>> FenceAdmin::guards() {
  return std::vector<GuardedTable>{};
}

}  // namespace leasehold
