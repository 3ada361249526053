#include "leasehold/store.h"

namespace leasehold {
namespace {

Error cannot(const Store& store, std::string_view what) {
  return Error(ErrorCode::unsupported,
               "the store " + store.traits().address + " cannot " + std::string(what));
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

void Store::rotate_lineage(CallContext, Completion<StoreId> done) {
  done(fail(cannot(*this, "begin a new lineage")));
}

void Store::recall(LockName, std::string, CallContext, Completion<std::optional<OnceRecord>> done) {
  done(fail(cannot(*this, "remember what was done once")));
}

void Store::record(LockName, RequestId, std::string, OnceRecord, CallContext,
                   Completion<std::monostate> done) {
  done(fail(cannot(*this, "remember what was done once")));
}

}  // namespace leasehold
