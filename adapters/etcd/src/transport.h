// Calls to the servers of one etcd cluster: which server, which connection, who we are, and when to
// try again. Nothing here blocks, except close().
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_set>
#include <vector>

#include <tl/expected.hpp>

#include "failure.h"
#include "leasehold/detail/thread_safety.h"
#include "leasehold/time.h"
#include "options.h"
#include "wire.pb.h"

namespace leasehold::etcd {

template <class Response>
using Done = std::function<void(tl::expected<Response, Failure>)>;

struct Limits {
  BootTime deadline;
  std::stop_token stop = {};
  bool repeat = false;  // it may be done twice: after an ambiguous failure it is tried again
};

class Transport;

// One way to one server. When it is silent, it is left for a new one. gRPC's threads must not be
// the last to let go of a channel, because the end of the last channel waits for their end: whoever
// has one of these returns it before its call is over.
struct Connection {
  std::size_t endpoint;
  std::shared_ptr<grpc::Channel> channel;
};
using ConnectionPointer = std::shared_ptr<const Connection>;

class PendingCall {
 public:
  virtual ~PendingCall() = default;
  virtual void cancel() = 0;
};

// Thread safe. Completions come on gRPC's threads, or at once on the caller's when it is closed.
class Transport {
 public:
  // Reads the TLS files; fails with `invalid`. Connects when it is first used.
  [[nodiscard]] static Result<std::unique_ptr<Transport>> make(const Options& options);
  ~Transport() { close(); }

  // A call that was certainly not sent goes to the next server by itself.
  template <class Request, class Response>
  void call(const char* method, Request request, Limits limits, Done<Response> done);

  // Ends all calls; each has been answered when it returns. Later ones are answered at once.
  void close();

  // How the next call goes: by which connection, and with which token (none: empty).
  struct Way {
    ConnectionPointer connection;
    std::string token;
    std::uint64_t token_number;
  };
  Way way() const;
  ConnectionPointer current() const { return way().connection; }
  std::size_t endpoints() const { return endpoints_.size(); }

  // Logs in, if there is a user and nobody has done so since token number `refused`.
  void authenticate(std::uint64_t refused, std::function<void(std::optional<Failure>)> done);

  // What a call has found out about its connection.
  void failed(const ConnectionPointer& connection, const Failure& failure);

  // Closes the connections that were left. To be called now and then, not on a thread of gRPC.
  void tidy();

 private:
  template <class Request, class Response>
  friend class UnaryCall;

  Transport(const Options& options, std::shared_ptr<grpc::ChannelCredentials> credentials);
  ConnectionPointer connect(std::size_t endpoint) const;
  void log_in();
  bool enter(PendingCall& call);
  void leave(PendingCall& call);

  const std::vector<std::string> endpoints_;
  const std::string user_;
  const std::string password_;
  const std::string server_name_;
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;

  mutable Mutex mutex_;
  ConditionVariable left_;
  bool closed_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  std::unordered_set<PendingCall*> pending_ LEASEHOLD_GUARDED_BY(mutex_);
  std::vector<ConnectionPointer> connections_ LEASEHOLD_GUARDED_BY(mutex_);
  std::vector<ConnectionPointer> left_behind_ LEASEHOLD_GUARDED_BY(mutex_);
  std::size_t preferred_ LEASEHOLD_GUARDED_BY(mutex_) = 0;
  std::string token_ LEASEHOLD_GUARDED_BY(mutex_);
  std::uint64_t token_number_ LEASEHOLD_GUARDED_BY(mutex_) = 0;
  std::vector<std::function<void(std::optional<Failure>)>> want_token_ LEASEHOLD_GUARDED_BY(mutex_);
};

// gRPC's own clock, so that a moved wall clock moves no deadline.
gpr_timespec grpc_time(BootClock::duration from_now);

// One call, from its first attempt to its answer.
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
  static constexpr Millis kReachWithin{1500};
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
        context_->set_deadline(grpc_time(attempt_within(left, all_were_tried)));
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

  static BootClock::duration attempt_within(BootClock::duration left, bool all_were_tried) {
    if (all_were_tried) return std::min<BootClock::duration>(left / 2, kWaitForConnection);
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
    return std::min<BootClock::duration>(kReachWithin, (limits_.deadline - begun_) / 2);
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

// A little before the deadline: at the deadline itself the caller stops listening, and would not
// hear what is known.
inline BootTime earlier_than(BootTime deadline) {
  const BootClock::duration left = deadline - BootClock::now();
  return deadline -
         std::min<BootClock::duration>(std::max(left, BootClock::duration(0)) / 10, Millis(100));
}

template <class Request, class Response>
void Transport::call(const char* method, Request request, Limits limits, Done<Response> done) {
  limits.deadline = earlier_than(limits.deadline);
  auto call = std::make_shared<UnaryCall<Request, Response>>(*this, method, std::move(request),
                                                             std::move(limits), done);
  if (!enter(*call)) {
    done(tl::unexpected(Failure{.kind = Failure::Kind::closed, .silence = false, .words = {}}));
    return;
  }
  call->begin();
}

}  // namespace leasehold::etcd
