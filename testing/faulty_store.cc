#include "testing/faulty_store.h"

#include <chrono>
#include <stdexcept>

namespace leasehold::testing {

void Faults::next(Operation operation, Fault fault, int times) {
  const MutexLock lock(mutex_);
  planned_[operation].insert(planned_[operation].end(), static_cast<std::size_t>(times), fault);
}

void Faults::always(Operation operation, Fault fault) {
  const MutexLock lock(mutex_);
  standing_.insert_or_assign(operation, fault);
}

void Faults::never(Operation operation) {
  const MutexLock lock(mutex_);
  standing_.erase(operation);
  planned_.erase(operation);
}

int Faults::calls(Operation operation) {
  const MutexLock lock(mutex_);
  return calls_[operation];
}

void Faults::wait_for_calls(Operation operation, int count, Millis patience) {
  const MutexLock lock(mutex_);
  wait_for(calls_, operation, count, patience);
}

void Faults::wait_for_answers(Operation operation, int count, Millis patience) {
  const MutexLock lock(mutex_);
  wait_for(answers_, operation, count, patience);
}

void Faults::wait_for(std::map<Operation, int>& which, Operation operation, int count,
                      Millis patience) {
  const bool came = changed_.wait_for(mutex_, patience, [&] { return which[operation] >= count; });
  if (!came) throw std::runtime_error("the calls that were waited for did not come");
}

void Faults::answered(Operation operation) {
  const MutexLock lock(mutex_);
  ++answers_[operation];
  changed_.notify_all();
}

void Faults::let_go() {
  const MutexLock lock(mutex_);
  let_go_ = true;
  changed_.notify_all();
}

void Faults::wait_until_one_hangs() {
  const MutexLock lock(mutex_);
  changed_.wait(mutex_, [&]() LEASEHOLD_REQUIRES(mutex_) { return hanging_ > 0; });
}

std::optional<Fault> Faults::take(Operation operation) {
  const MutexLock lock(mutex_);
  ++calls_[operation];
  changed_.notify_all();
  auto& planned = planned_[operation];
  if (!planned.empty()) {
    const Fault fault = planned.front();
    planned.pop_front();
    return fault;
  }
  const auto standing = standing_.find(operation);
  if (standing == standing_.end()) return std::nullopt;
  return standing->second;
}

void Faults::hang() {
  const MutexLock lock(mutex_);
  ++hanging_;
  changed_.notify_all();
  changed_.wait(mutex_, [&]() LEASEHOLD_REQUIRES(mutex_) { return let_go_; });
  --hanging_;
}

namespace {

class FaultyStore final : public Store {
 public:
  FaultyStore(std::unique_ptr<Store> inner, std::shared_ptr<Faults> faults)
      : inner_(std::move(inner)), faults_(std::move(faults)) {}

  const StoreTraits& traits() const override { return inner_->traits(); }
  void start(StoreEvents& events) override { inner_->start(events); }
  void close() override {
    faults_->let_go();
    inner_->close();
  }
  void acquire(AcquireCall call, CallContext context, Completion<AcquireReply> done) override {
    with_fault(Operation::acquire, std::move(done), [&](Completion<AcquireReply> then) {
      inner_->acquire(std::move(call), std::move(context), std::move(then));
    });
  }
  void renew(std::vector<RenewCall> calls, CallContext context,
             Completion<std::vector<RenewReply>> done) override {
    with_fault(Operation::renew, std::move(done), [&](Completion<std::vector<RenewReply>> then) {
      inner_->renew(std::move(calls), std::move(context), std::move(then));
    });
  }
  void release(ReleaseCall call, CallContext context, Completion<ReleaseReply> done) override {
    with_fault(Operation::release, std::move(done), [&](Completion<ReleaseReply> then) {
      inner_->release(std::move(call), std::move(context), std::move(then));
    });
  }
  void force_release(LockName lock, RequestId seen, CallContext context,
                     Completion<ReleaseReply> done) override {
    with_fault(Operation::force_release, std::move(done), [&](Completion<ReleaseReply> then) {
      inner_->force_release(std::move(lock), seen, std::move(context), std::move(then));
    });
  }
  void inspect(LockName lock, CallContext context, Completion<LockStatus> done) override {
    with_fault(Operation::inspect, std::move(done), [&](Completion<LockStatus> then) {
      inner_->inspect(std::move(lock), std::move(context), std::move(then));
    });
  }
  void list(CallContext context, Completion<std::vector<LockStatus>> done) override {
    with_fault(Operation::list, std::move(done), [&](Completion<std::vector<LockStatus>> then) {
      inner_->list(std::move(context), std::move(then));
    });
  }
  void set_permits(LockName lock, std::optional<std::int64_t> permits, CallContext context,
                   Completion<std::monostate> done) override {
    inner_->set_permits(std::move(lock), permits, std::move(context), std::move(done));
  }
  void rotate_store_id(CallContext context, Completion<StoreId> done) override {
    inner_->rotate_store_id(std::move(context), std::move(done));
  }
  OnceRecords* once_records() override { return inner_->once_records(); }
  ChangeHints* change_hints() override { return inner_->change_hints(); }

 private:
  template <class Reply, class Send>
  void with_fault(Operation operation, Completion<Reply> done, Send send) {
    const auto fault = faults_->take(operation);
    if (!fault) {
      return send([faults = faults_, operation, done = std::move(done)](Result<Reply> reply) {
        faults->answered(operation);
        done(std::move(reply));
      });
    }
    switch (*fault) {
      case Fault::lose_reply:
        return send([done = std::move(done)](Result<Reply>) {
          done(fail(ErrorCode::outcome_unknown, "the reply was lost"));
        });
      case Fault::lose_request:
        return done(fail(ErrorCode::outcome_unknown, "the request was lost"));
      case Fault::refuse:
        return done(fail(ErrorCode::unavailable, "the store is down"));
      case Fault::hang:
        faults_->hang();
        return send(std::move(done));
    }
  }

  std::unique_ptr<Store> inner_;
  std::shared_ptr<Faults> faults_;
};

}  // namespace

std::unique_ptr<Store> with_faults(std::unique_ptr<Store> store, std::shared_ptr<Faults> faults) {
  return std::make_unique<FaultyStore>(std::move(store), std::move(faults));
}

}  // namespace leasehold::testing
