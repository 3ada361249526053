// What a store that answers on the thread of its caller implements.
#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "leasehold/store.h"
#include "store_base/doubts.h"

namespace leasehold {

struct InspectCall {
  LockName lock;
};
struct ListCall {};
struct ForceReleaseCall {
  LockName lock;
  RequestId seen;
};
struct SetPermitsCall {
  LockName lock;
  std::optional<std::int64_t> permits;
};
struct RotateCall {};
struct RecallCall {
  LockName lock;
  std::string key;
};
struct RecordCall {
  LockName lock;
  RequestId request;
  std::string key;
  OnceRecord what;
};
struct ListKeysCall {
  LockName lock;
};
struct ForgetCall {
  LockName lock;
  std::string key;
};

// `lost`: the lease under which a result was to be recorded has ended.
Error not_recorded(const LockName& lock);

// One call, and its answer once that is there.
template <class Call, class Reply>
struct Asked {
  Call call;
  CallContext context;
  std::optional<Result<Reply>> reply = {};
};
using AnyAsked =
    std::variant<Asked<AcquireCall, AcquireReply>*,
                 Asked<std::vector<RenewCall>, std::vector<RenewReply>>*,
                 Asked<ReleaseCall, ReleaseReply>*, Asked<InspectCall, LockStatus>*,
                 Asked<ListCall, std::vector<LockStatus>>*, Asked<ForceReleaseCall, ReleaseReply>*,
                 Asked<SetPermitsCall, std::monostate>*, Asked<RotateCall, StoreId>*,
                 Asked<RecallCall, std::optional<OnceRecord>>*, Asked<RecordCall, std::monostate>*,
                 Asked<ListKeysCall, std::vector<std::string>>*, Asked<ForgetCall, bool>*>;

// Keeps the rules of Store that are the same for every such store:
// - The completion is called exactly once, also if the store throws: then it is `outcome_unknown`.
// - An error has the store's address.
// - What was not done because of the stop token is `cancelled`, not `unavailable`.
// - A call past its deadline, or after close(), is `unavailable` and not begun. close() returns
//   when every completion has returned; so no completion may call it.
// - An acquire that ended by `outcome_unknown`, or by an exception, is in doubt until the
//   release of its request is done.
// An adapter has one small method for each kind of call, which may block until the call's deadline
// or stop token, and fails as Store says. Its destructor calls close().
class BlockingStore : public Store, protected OnceRecords {
 public:
  void start(StoreEvents& events) final { events_ = &events; }
  void close() final;
  void acquire(AcquireCall call, CallContext context, Completion<AcquireReply> done) final;
  void renew(std::vector<RenewCall> calls, CallContext context,
             Completion<std::vector<RenewReply>> done) final;
  void release(ReleaseCall call, CallContext context, Completion<ReleaseReply> done) final;
  void inspect(LockName lock, CallContext context, Completion<LockStatus> done) final;
  void list(CallContext context, Completion<std::vector<LockStatus>> done) final;
  void force_release(LockName lock, RequestId seen, CallContext context,
                     Completion<ReleaseReply> done) final;
  void set_permits(LockName lock, std::optional<std::int64_t> permits, CallContext context,
                   Completion<std::monostate> done) final;
  void rotate_store_id(CallContext context, Completion<StoreId> done) final;

 protected:
  // For once_records() of a store that has the methods for them.
  OnceRecords* own_once_records() { return this; }
  StoreEvents& events() const { return *events_; }
  // A store may doubt more than the base does.
  Doubts& doubts() { return doubts_; }

  // Gives each of them its reply, on this thread. All are different calls; each has a context of
  // its own. By default one after the other by the methods below.
  virtual void answer(std::span<const AnyAsked> batch);

 private:
  virtual Result<AcquireReply> do_acquire(const AcquireCall& call, const CallContext& context) = 0;
  virtual Result<std::vector<RenewReply>> do_renew(const std::vector<RenewCall>& calls,
                                                   const CallContext& context) = 0;
  virtual Result<ReleaseReply> do_release(const ReleaseCall& call, const CallContext& context) = 0;
  // Ends what runs, soon, and the threads of the store. Called once; no call begins any more.
  virtual void do_close() = 0;

  // Not every store offers these: `unsupported` by default.
  virtual Result<LockStatus> do_inspect(const InspectCall&, const CallContext&) {
    return not_offered();
  }
  virtual Result<std::vector<LockStatus>> do_list(const CallContext&) { return not_offered(); }
  virtual Result<ReleaseReply> do_force_release(const ForceReleaseCall&, const CallContext&) {
    return not_offered();
  }
  virtual Status do_set_permits(const SetPermitsCall&, const CallContext&) { return not_offered(); }
  virtual Result<StoreId> do_rotate_store_id(const CallContext&) { return not_offered(); }
  virtual Result<std::optional<OnceRecord>> do_recall(const RecallCall&, const CallContext&) {
    return not_offered();
  }
  virtual Status do_record(const RecordCall&, const CallContext&) { return not_offered(); }
  virtual Result<std::vector<std::string>> do_list_keys(const ListKeysCall&, const CallContext&) {
    return not_offered();
  }
  virtual Result<bool> do_forget(const ForgetCall&, const CallContext&) { return not_offered(); }
  static tl::unexpected<Error> not_offered() {
    return fail(ErrorCode::unsupported, "this store does not offer that");
  }

  void recall(LockName lock, std::string key, CallContext context,
              Completion<std::optional<OnceRecord>> done) final;
  void record(LockName lock, RequestId request, std::string key, OnceRecord what,
              CallContext context, Completion<std::monostate> done) final;
  void list_keys(LockName lock, CallContext context,
                 Completion<std::vector<std::string>> done) final;
  void forget(LockName lock, std::string key, CallContext context, Completion<bool> done) final;

  struct Alone;  // answers one call by its method
  class Visit;   // one call, from its beginning to the end of its completion
  template <class Call, class Reply>
  void ask(Call call, CallContext context, const Completion<Reply>& done);

  void note(const AcquireCall& call, const Result<AcquireReply>& reply);
  void note(const ReleaseCall& call, const Result<ReleaseReply>& reply);
  void note(const auto&, const auto&) {}

  StoreEvents* events_ = nullptr;
  Doubts doubts_;
  // Twice the number of calls, and one more when it is closed.
  std::atomic<int> calls_ = 0;
};

}  // namespace leasehold
