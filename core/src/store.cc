#include "leasehold/store.h"

namespace leasehold {
namespace {

Error cannot(const Store& store, std::string_view what) {
  return error_at(store.traits().address,
                  Error(ErrorCode::unsupported, "this store cannot " + std::string(what)));
}

}  // namespace

std::string_view to_string(Guarantee guarantee) {
  return guarantee == Guarantee::correctness ? "correctness" : "efficiency";
}

void Store::inspect(LockName, CallContext, Completion<LockStatus> done) {
  done(fail(cannot(*this, "show a lock")));
}

void Store::list(CallContext, Completion<std::vector<LockStatus>> done) {
  done(fail(cannot(*this, "list its locks")));
}

void Store::force_release(LockName, RequestId, CallContext, Completion<ReleaseReply> done) {
  done(fail(cannot(*this, "take a lock away from its holder")));
}

void Store::set_permits(LockName, std::optional<std::int64_t>, CallContext,
                        Completion<std::monostate> done) {
  done(fail(cannot(*this, "set a number of permits")));
}

void Store::rotate_store_id(CallContext, Completion<StoreId> done) {
  done(fail(cannot(*this, "take a new id")));
}

}  // namespace leasehold
