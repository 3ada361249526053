// What a store that answers on the thread of its caller implements.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "leasehold/store.h"
#include "store_base/doubts.h"
#include "store_base/line.h"

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

template <class Call, class Reply>
struct Asked;
using AskedAcquire = Asked<AcquireCall, AcquireReply>;
using AskedRenew = Asked<std::vector<RenewCall>, std::vector<RenewReply>>;
using AskedRelease = Asked<ReleaseCall, ReleaseReply>;
using AnyAsked = std::variant<AskedAcquire*, AskedRenew*, AskedRelease*>;

struct AskedRider : Rider {
  using Rider::Rider;
  virtual AnyAsked asked() = 0;
};

// One call of a batch. Only `reply` changes: the batch writes it before answered(), and its caller
// reads it after that. One that has gone reads nothing.
template <class Call, class Reply>
struct Asked final : AskedRider {
  Asked(Call what, CallContext limits) : AskedRider(std::move(limits)), call(std::move(what)) {}
  AnyAsked asked() override { return this; }

  void answer(Result<Reply> with) {
    reply = std::move(with);
    answered();
  }

  const Call call;
  std::optional<Result<Reply>> reply = {};
};

// Until when somebody who rides wants an answer. No stop ends a batch of several.
CallContext limits_of(std::span<const AnyAsked> batch);

// Keeps the rules of Store that are the same for every such store:
// - The completion is called exactly once, also if the store throws: then it is `outcome_unknown`.
// - An error has the store's address.
// - What was not done because of the stop token is `cancelled`, not `unavailable`.
// - A call past its deadline, or after close(), is `unavailable` and not begun. close() returns
//   when every completion has returned; so no completion may call it.
// - An acquire that ended by `outcome_unknown`, or by an exception, is in doubt until the
//   release of its request is done.
// - If they go together: while an acquire, a renewal or a release is on its way, others gather
//   (Line). Each keeps its own deadline, stop and answer.
// An adapter has one small method for each kind of call, which may block until the call's deadline
// or stop token, and fails as Store says. Its destructor calls close().
class BlockingStore : public Store, protected OnceRecords {
 public:
  enum class Calls { apart, together };
  // `together`: the store has an answer() that is quicker than its methods one after the other.
  explicit BlockingStore(Calls calls = Calls::apart, Millis patience = Line::kPatience);

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
  // How many wait for the next batch.
  std::size_t gathered() const { return line_ ? line_->gathered() : 0; }

  // Does what begin()s, and answers it, on this thread: calls that arrived in this order, but
  // renewals first. May block until limits_of() them. What has no answer at the end was certainly
  // not done: it goes on its own, by its method below. If this throws, the outcome of what has
  // begun is unknown. By default each by its method.
  virtual void answer(std::span<const AnyAsked> batch);
  // The same for a store that can send a batch before the one before it was answered: what is left
  // to do is the trip, which may throw as answer() may. Nothing: all is done.
  virtual std::unique_ptr<Line::Trip> depart(std::span<const AnyAsked> batch) {
    answer(batch);
    return nullptr;
  }

  // An acquire was told that it waits, the first time or again. On its caller's thread, while
  // others may go.
  virtual Result<AcquireReply> queued(const AcquireCall&, const CallContext&, Queued place) {
    return place;
  }

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

  class Visit;   // one call, from its beginning to the end of its completion
  struct Alone;  // answers one call by its method
  template <class Call, class Reply>
  void ask(Call call, CallContext context, const Completion<Reply>& done);
  template <class Call, class Reply>
  void ask_with_others(Call call, CallContext context, const Completion<Reply>& done);
  template <class Call, class Reply>
  Result<Reply> ride(const std::shared_ptr<Asked<Call, Reply>>& asked, BootTime now);
  template <class Reply, class Call>
  Result<Reply> alone(const Call& call, const CallContext& context);
  template <class Call, class Reply>
  void finish(const Call& call, const CallContext& context, Result<Reply> reply,
              const Completion<Reply>& done);
  class Trip;
  std::unique_ptr<Line::Trip> carry(const Line::Batch& batch);

  void note(const AcquireCall& call, const Result<AcquireReply>& reply);
  void note(const ReleaseCall& call, const Result<ReleaseReply>& reply);
  void note(const auto&, const auto&) {}

  StoreEvents* events_ = nullptr;
  Doubts doubts_;
  const std::unique_ptr<Line> line_;  // none: each call goes on its own
  // Twice the number of calls, and one more when it is closed.
  std::atomic<int> calls_ = 0;
};

}  // namespace leasehold
