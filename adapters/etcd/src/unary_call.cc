// One call to a server, from its first attempt to its answer.
#include <grpcpp/alarm.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "grpc_time.h"
#include "transport.h"
#include "wire.pb.h"

namespace leasehold::etcd {
template <class Request, class Response>
class UnaryCall final : public PendingCall,
                        public std::enable_shared_from_this<UnaryCall<Request, Response>> {
 public:
  UnaryCall(Transport& transport, const char* method, Request request, Limits limits,
            Done<Response> done)
      : transport_(transport),
        method_(method),
        request_(std::move(request)),
        limits_(std::move(limits)),
        done_(std::move(done)),
        begun_(BootClock::now()) {}

  void begin() {
    if (limits_.stop.stop_possible()) {
      on_stop_.emplace(limits_.stop, [this] { cancel(); });
    }
    attempt();
  }

  void cancel() override {
    MutexLock lock(mutex_);
    cancelled_ = true;
    if (context_) context_->TryCancel();
    if (pause_) pause_->Cancel();
  }

 private:
  static constexpr Millis kLongestAttempt{2000};
  static constexpr Millis kShortestAttempt{250};
  static constexpr Millis kWaitForConnection{500};
  static constexpr Millis kReachTimeout{1500};
  static constexpr Millis kPause{50};
  static constexpr const char* kProbe = "/etcdserverpb.Maintenance/Status";

  void attempt() {
    const BootClock::duration left = limits_.deadline - BootClock::now();
    Transport::Way way = transport_.way();
    {
      MutexLock lock(mutex_);
      pause_.reset();
      if (!cancelled_ && left.count() > 0) {
        connection_ = std::move(way.connection);
        token_number_ = way.token_number;
        context_.emplace();
        if (!way.token.empty()) context_->AddMetadata("token", way.token);
        const bool all_were_tried = attempts_++ >= transport_.endpoints();
        context_->set_wait_for_ready(all_were_tried);
        context_->set_deadline(grpc_time(all_were_tried ? again_within(left) : try_within(left)));
      } else {
        context_.reset();
      }
    }
    if (!context_) return finish(tl::unexpected(last_failure()));
    // gRPC does not tell whether it has sent a call that failed. So a call is given to it only when
    // there is a connection, and a harmless one goes before it otherwise.
    const auto state = connection_->channel->GetState(/*try_to_connect=*/false);
    if (state == GRPC_CHANNEL_READY) return send();
    probe();
  }

  template <class Sent, class Received>
  void start(const char* method, const Sent& sent, Received& received,
             void (UnaryCall::*then)(const grpc::Status&)) {
    received.Clear();
    std::function<void(grpc::Status)> completed = [self = this->shared_from_this(),
                                                   then](const grpc::Status& status) {
      self->handed_over_.load(std::memory_order_acquire);
      ((*self).*then)(status);
    };
    grpc::Channel* const channel = connection_->channel.get();
    grpc::ClientContext* const context = &*context_;
    handed_over_.store(true, std::memory_order_release);
    grpc::internal::CallbackUnaryCall<Sent, Received>(
        channel, grpc::internal::RpcMethod(method, nullptr, grpc::internal::RpcMethod::NORMAL_RPC),
        context, &sent, &received, std::move(completed));
  }
  void send() { start(method_, request_, response_, &UnaryCall::sent); }
  void probe() { start(kProbe, probe_, probed_, &UnaryCall::probed); }

  static BootClock::duration again_within(BootClock::duration left) {
    return std::min<BootClock::duration>(left / 2, kWaitForConnection);
  }
  BootClock::duration try_within(BootClock::duration left) const {
    const std::size_t untried = transport_.endpoints() - attempts_ + 1;
    if (limits_.patient) return left / static_cast<BootClock::rep>(untried);
    return std::min(left,
                    std::clamp<BootClock::duration>(left / 2, kShortestAttempt, kLongestAttempt));
  }

  void probed(const grpc::Status& status) {
    Failure failure = Failure::of(status);
    if (status.ok() || failure.kind == Failure::Kind::refused) return attempt();
    failure.kind = Failure::Kind::not_sent;
    failed(std::move(failure));
  }

  void sent(const grpc::Status& status) {
    if (status.ok()) return finish(std::move(response_));
    failed(Failure::of(status));
  }

  void failed(Failure failure) {
    note(std::move(failure));
    if (failure_->token_is_refused() && !logged_in_again_) return log_in_again();
    transport_.failed(connection_, *failure_);
    if (!goes_on()) return finish(tl::unexpected(last_failure()));
    if (!failure_->ambiguous()) return attempt();
    MutexLock lock(mutex_);
    pause_.emplace();
    pause_->Set(grpc_time(kPause), [self = this->shared_from_this()](bool) { self->attempt(); });
  }

  // Keeps the words of a server or a socket rather than those of a mere timeout, and never forgets
  // that an earlier attempt may have done it.
  void note(Failure failure) {
    if (failure_ && failure.silence && !failure_->words.empty()) failure.words = failure_->words;
    was_ambiguous_ = was_ambiguous_ || failure.ambiguous();
    failure_ = std::move(failure);
  }

  bool goes_on() {
    const BootTime now = BootClock::now();
    {
      MutexLock lock(mutex_);
      if (cancelled_) return false;
    }
    if (now >= limits_.deadline) return false;
    if (failure_->kind == Failure::Kind::not_sent) {
      return attempts_ < transport_.endpoints() || now < begun_ + patience();
    }
    return limits_.repeat && failure_->ambiguous() && now + kPause < limits_.deadline;
  }

  // Whoever asks wants to hear it before the time is over.
  BootClock::duration patience() const {
    return std::min<BootClock::duration>(kReachTimeout, (limits_.deadline - begun_) / 2);
  }

  Failure last_failure() {
    Failure failure = failure_.value_or(
        Failure{.kind = Failure::Kind::not_sent, .silence = true, .words = "no time was left"});
    if (was_ambiguous_) failure.kind = Failure::Kind::ambiguous;
    MutexLock lock(mutex_);
    if (cancelled_ && failure.kind == Failure::Kind::not_sent) {
      failure.kind = limits_.stop.stop_requested() ? Failure::Kind::stopped : Failure::Kind::closed;
    }
    return failure;
  }

  void log_in_again() {
    logged_in_again_ = true;
    transport_.authenticate(token_number_,
                            [self = this->shared_from_this()](std::optional<Failure> failure) {
                              if (!failure) return self->attempt();
                              failure->kind = Failure::Kind::refused;  // this call was
                              self->finish(tl::unexpected(std::move(*failure)));
                            });
  }

  void finish(tl::expected<Response, Failure> result) {
    on_stop_.reset();
    done_(std::move(result));
    done_ = nullptr;
    {
      MutexLock lock(mutex_);
      context_.reset();
    }
    connection_.reset();
    transport_.leave(*this);
  }

  Transport& transport_;
  const char* method_;
  const Request request_;
  const Limits limits_;
  Done<Response> done_;
  const BootTime begun_;

  // Used by one thread after the other. gRPC orders them, but ThreadSanitizer cannot see into it:
  // so that it can check us, the order is written down here again.
  std::atomic<bool> handed_over_ = false;
  Response response_;
  const wire::StatusRequest probe_;
  wire::StatusResponse probed_;
  ConnectionPointer connection_;
  std::optional<Failure> failure_;
  bool was_ambiguous_ = false;
  bool logged_in_again_ = false;
  std::uint64_t token_number_ = 0;
  std::size_t attempts_ = 0;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;

  Mutex mutex_;  // what cancel() touches from outside
  bool cancelled_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  std::optional<grpc::ClientContext> context_;
  std::optional<grpc::Alarm> pause_ LEASEHOLD_GUARDED_BY(mutex_);
};

template <class Request, class Response>
void Transport::call(const char* method, Request request, Limits limits, Done<Response> done) {
  limits.deadline -= early_by(limits.deadline - BootClock::now());
  auto call = std::make_shared<UnaryCall<Request, Response>>(*this, method, std::move(request),
                                                             std::move(limits), done);
  if (!enter(*call)) {
    done(tl::unexpected(Failure{.kind = Failure::Kind::closed, .silence = false, .words = {}}));
    return;
  }
  call->begin();
}

#define LEASEHOLD_ETCD_CALL(name)                                         \
  template void Transport::call(const char*, wire::name##Request, Limits, \
                                Done<wire::name##Response>);
LEASEHOLD_ETCD_CALL(Alarm)
LEASEHOLD_ETCD_CALL(Authenticate)
LEASEHOLD_ETCD_CALL(LeaseGrant)
LEASEHOLD_ETCD_CALL(LeaseKeepAlive)
LEASEHOLD_ETCD_CALL(LeaseRevoke)
LEASEHOLD_ETCD_CALL(LeaseTimeToLive)
LEASEHOLD_ETCD_CALL(MemberList)
LEASEHOLD_ETCD_CALL(Status)
LEASEHOLD_ETCD_CALL(Txn)
#undef LEASEHOLD_ETCD_CALL

}  // namespace leasehold::etcd
