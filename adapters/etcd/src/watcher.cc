#include "watcher.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/client_callback.h>

#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "wire.pb.h"

namespace leasehold::etcd {
namespace {

struct Watch {
  RequestId request;
  Watched which;
  std::int64_t seen;
};

// etcd tells what happens from now on at once, but what came after an earlier revision only when it
// has caught up, which may take 100 ms. A waiter must not lose so much at each hand-over.
std::int64_t start_revision(const Watch& watch) {
  constexpr std::int64_t kNow = 0;
  return watch.which == Watched::own ? watch.seen + 1 : kNow;
}

}  // namespace

struct Watcher::State {
  State(Transport& transport_in, WatchListener& listener_in)
      : transport(transport_in), listener(listener_in) {}

  Transport& transport;
  WatchListener& listener;
  Mutex mutex;
  ConditionVariable ended;
  bool closed LEASEHOLD_GUARDED_BY(mutex) = false;
  std::shared_ptr<Stream> stream LEASEHOLD_GUARDED_BY(mutex);  // the one for new watches
  int streams LEASEHOLD_GUARDED_BY(mutex) = 0;                 // that have not ended yet
  std::int64_t last_number LEASEHOLD_GUARDED_BY(mutex) = 0;
};

// Lives until gRPC has told it that all is over.
class Watcher::Stream final
    : public grpc::ClientBidiReactor<wire::WatchRequest, wire::WatchResponse>,
      public std::enable_shared_from_this<Stream> {
 public:
  Stream(std::shared_ptr<State> state, Transport::Way way)
      : state_(std::move(state)), connection_(std::move(way.connection)) {
    context_.emplace();
    if (!way.token.empty()) context_->AddMetadata("token", way.token);
  }

  void open() {
    self_ = shared_from_this();
    grpc::internal::ClientCallbackReaderWriterFactory<wire::WatchRequest, wire::WatchResponse>::
        Create(connection_->channel.get(),
               grpc::internal::RpcMethod("/etcdserverpb.Watch/Watch", nullptr,
                                         grpc::internal::RpcMethod::BIDI_STREAMING),
               &*context_, this);
    AddHold();  // writes begin on other threads
    StartRead(&response_);
    StartCall();
  }

  const ConnectionPointer& connection() const { return connection_; }
  void break_off() { context_->TryCancel(); }

  // False if the stream is over.
  bool add(std::int64_t number, const WatchedKeys& keys, const Watch& watch) {
    wire::WatchRequest request;
    auto& create = *request.mutable_create();
    create.set_key(keys.key);
    create.set_range_end(keys.range_end);
    create.set_start_revision(start_revision(watch));
    if (!keys.puts) create.add_filters(wire::WatchCreateRequest::NOPUT);
    create.set_watch_id(number);
    MutexLock lock(mutex_);
    if (over_) return false;
    watches_.emplace(number, watch);
    send(std::move(request));
    return true;
  }

  void remove(std::int64_t number) {
    MutexLock lock(mutex_);
    if (watches_.erase(number) == 0 || over_) return;
    send_cancel(number);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return finish();
    if (const auto late = began_late()) {
      state_->listener.watch_began_late(late->request, late->which);
    }
    const auto told = take_told();
    const bool happened = !response_.canceled();
    if (told && happened) state_->listener.key_changed(told->request, told->which);
    if (told && !happened) state_->listener.watch_lost(told->request, told->which);
    response_.Clear();
    StartRead(&response_);
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(mutex_);
    writing_ = false;
    outgoing_.pop_front();
    if (ok && !over_ && !outgoing_.empty()) start_write();
  }

  void OnDone(const grpc::Status& status) override {
    const bool silence = status.error_code() == grpc::StatusCode::UNAVAILABLE;
    if (silence) state_->transport.failed(connection_, Failure::of(status));
    context_.reset();
    connection_.reset();
    const std::shared_ptr<Stream> last = std::move(self_);
    MutexLock lock(state_->mutex);
    --state_->streams;
    state_->ended.notify_all();
  }

 private:
  std::optional<Watch> began_late() {
    if (!response_.created() || response_.canceled()) return std::nullopt;
    MutexLock lock(mutex_);
    const auto found = watches_.find(response_.watch_id());
    if (found == watches_.end() || found->second.which == Watched::own) return std::nullopt;
    const bool in_time = response_.header().revision() == found->second.seen;
    return in_time ? std::nullopt : std::optional(found->second);
  }

  // The watch that this response is of, if it tells something; that ends it, unless it is a lock's.
  std::optional<Watch> take_told() {
    MutexLock lock(mutex_);
    const bool ends = response_.canceled() || response_.events_size() > 0;
    const auto found = watches_.find(response_.watch_id());
    if (!ends || found == watches_.end()) return std::nullopt;
    const Watch watch = found->second;
    if (watch.which == Watched::lock && !response_.canceled()) return watch;
    watches_.erase(found);
    if (!response_.canceled()) send_cancel(response_.watch_id());
    return watch;
  }

  void finish() {
    std::unordered_map<std::int64_t, Watch> lost;
    {
      MutexLock lock(mutex_);
      over_ = true;
      lost.swap(watches_);
    }
    const bool tell = leave_state();
    for (const auto& [number, watch] : lost) {
      if (tell) state_->listener.watch_lost(watch.request, watch.which);
    }
    RemoveHold();
  }

  // False if nobody wants to know any more.
  bool leave_state() {
    MutexLock lock(state_->mutex);
    if (state_->stream.get() == this) state_->stream.reset();
    return !state_->closed;
  }

  void send_cancel(std::int64_t number) LEASEHOLD_REQUIRES(mutex_) {
    wire::WatchRequest request;
    request.mutable_cancel()->set_watch_id(number);
    send(std::move(request));
  }

  void send(wire::WatchRequest request) LEASEHOLD_REQUIRES(mutex_) {
    outgoing_.push_back(std::move(request));
    if (!writing_) start_write();
  }

  void start_write() LEASEHOLD_REQUIRES(mutex_) {
    writing_ = true;
    StartWrite(&outgoing_.front());
  }

  const std::shared_ptr<State> state_;
  ConnectionPointer connection_;
  std::optional<grpc::ClientContext> context_;
  wire::WatchResponse response_;
  std::shared_ptr<Stream> self_;

  Mutex mutex_;
  bool over_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  bool writing_ LEASEHOLD_GUARDED_BY(mutex_) = false;
  std::deque<wire::WatchRequest> outgoing_ LEASEHOLD_GUARDED_BY(mutex_);
  std::unordered_map<std::int64_t, Watch> watches_ LEASEHOLD_GUARDED_BY(mutex_);
};

Watcher::Watcher(Transport& transport, WatchListener& listener)
    : state_(std::make_shared<State>(transport, listener)) {}

Watcher::~Watcher() {
  close();
}

std::int64_t Watcher::watch(const WatchedKeys& keys, std::int64_t seen, const RequestId& request,
                            Watched which) {
  for (;;) {
    std::shared_ptr<Stream> stream;
    std::int64_t number = 0;
    Transport::Way way = state_->transport.way();
    {
      MutexLock lock(state_->mutex);
      if (state_->closed) return 0;
      number = ++state_->last_number;
      if (!state_->stream) {
        state_->stream = std::make_shared<Stream>(state_, std::move(way));
        ++state_->streams;
        state_->stream->open();
      }
      stream = state_->stream;
    }
    if (stream->add(number, keys, {request, which, seen})) return number;
    MutexLock lock(state_->mutex);
    if (state_->stream == stream) state_->stream.reset();
  }
}

void Watcher::cancel(std::int64_t watch) {
  if (watch == 0) return;
  std::shared_ptr<Stream> stream;
  {
    MutexLock lock(state_->mutex);
    stream = state_->stream;
  }
  if (stream) stream->remove(watch);
}

void Watcher::move_to(const ConnectionPointer& connection) {
  MutexLock lock(state_->mutex);
  if (state_->stream && state_->stream->connection() != connection) state_->stream->break_off();
}

void Watcher::close() {
  MutexLock lock(state_->mutex);
  state_->closed = true;
  if (state_->stream) state_->stream->break_off();
  state_->ended.wait(state_->mutex,
                     [this]() LEASEHOLD_REQUIRES(state_->mutex) { return state_->streams == 0; });
}

}  // namespace leasehold::etcd
