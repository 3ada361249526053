#include "leasehold/gate/gate.h"

#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>

#include <set>

#include "admin.h"
#include "control.h"
#include "gate_core.h"
#include "kit/try.h"
#include "listener.h"
#include "probe.h"
#include "session.h"
#include "text.h"

namespace leasehold::gate {
namespace {

using namespace std::chrono_literals;

constexpr auto kTick = 50ms;
constexpr auto kProbePause = 1s;
constexpr int kMaxAdmins = 64;

void keep_within_reason(GateOptions& options) {
  for (Millis GateOptions::*each :
       {&GateOptions::head_timeout, &GateOptions::idle_timeout, &GateOptions::client_timeout,
        &GateOptions::connect_timeout, &GateOptions::answer_timeout, &GateOptions::pool_timeout,
        &GateOptions::drain_timeout}) {
    options.*each = leasehold::detail::within_reason(options.*each);
  }
}

Status check_options(const GateOptions& options) {
  if (options.state.empty()) return fail(ErrorCode::invalid, "the state folder has no name");
  if (options.probe) {
    TRY(check_probe(*options.probe));
  }
  if (options.admin) {
    TRY(parse_endpoint(*options.admin));
  }
  TRY(parse_endpoint(options.listen));
  return {};
}

}  // namespace

class Gate::Impl {
 public:
  Impl(FolderLock lock, StateFolder folder) : folder_(std::move(folder)), lock_(std::move(lock)) {}

  Status prepare(GateOptions options, TicketReader tickets, UpstreamAddress upstream);
  Status run();
  void stop();

  std::string address() const { return text_of(listener_->local_endpoint()); }
  std::optional<std::string> admin_address() const {
    if (!admin_) return std::nullopt;
    return text_of(admin_->local_endpoint());
  }
  bool is_new() const { return ledger_->states().empty(); }

 private:
  Async<void> accept();
  Async<void> accept_admin();
  Async<void> serve(tcp::socket socket, std::string client);
  Async<void> tick();
  Async<void> probe();
  Async<bool> wait_until_durable(Version version);
  void disk_failed(Error error);
  void begin_stop();
  void end();

  StateFolder folder_;
  FolderLock lock_;
  std::unique_ptr<Ledger> ledger_;
  std::unique_ptr<GateCore> core_;
  std::unique_ptr<ControlSocket> control_;
  std::optional<tcp::acceptor> listener_;
  std::optional<tcp::acceptor> admin_;
  std::optional<asio::steady_timer> ticker_;
  std::optional<asio::steady_timer> prober_;
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work_;
  std::set<Session*> sessions_;
  int admins_ = 0;
  std::unique_ptr<Event> room_;  // set when a connection has ended
  Version durable_ = 0;
  NetTime end_by_ = NetTime::max();
  bool ended_ = false;
  std::optional<Error> failure_;
};

Status Gate::Impl::prepare(GateOptions options, TicketReader tickets, UpstreamAddress upstream) {
  LedgerOptions how;
  how.sync = options.sync;
  how.durable = [this](Version version) {
    asio::post(core_->io, [this, version] {
      durable_ = version;
      core_->turns.durable(version);
    });
  };
  how.failed = [this](Error error) {
    asio::post(core_->io, [this, failure = std::move(error)] { disk_failed(failure); });
  };
  auto ledger = TRY(Ledger::open(folder_, std::move(how)));
  ledger_ = std::move(ledger);
  core_ = std::make_unique<GateCore>(std::move(options), std::move(tickets), std::move(upstream),
                                     ledger_->states(),
                                     [this](const ResourceName& name, const ResourceState& state) {
                                       return ledger_->write(name, state);
                                     });
  auto listener = TRY(listen_on(core_->io, core_->options.listen));
  listener_.emplace(std::move(listener));
  if (core_->options.admin) {
    auto admin = TRY(listen_on(core_->io, *core_->options.admin));
    admin_.emplace(std::move(admin));
  }
  control_ = std::make_unique<ControlSocket>(
      *core_, [this](Version version) { return wait_until_durable(version); });
  return control_->listen(folder_);
}

Status Gate::Impl::run() {
  auto& io = core_->io;
  ticker_.emplace(io);
  prober_.emplace(io);
  work_.emplace(io.get_executor());
  asio::co_spawn(io, tick(), asio::detached);
  asio::co_spawn(io, accept(), asio::detached);
  asio::co_spawn(io, control_->serve(), asio::detached);
  if (admin_) asio::co_spawn(io, accept_admin(), asio::detached);
  if (core_->options.probe) asio::co_spawn(io, probe(), asio::detached);
  for (const ResourceName& name : core_->turns.unanswered()) {
    core_->log("unanswered since the last run: resource=" + json_string(name.str()));
  }
  io.run();
  core_->turns.close_all_quiet();
  auto closed = ledger_->close();
  if (failure_) return fail(*failure_);
  return closed;
}

void Gate::Impl::stop() {
  asio::post(core_->io, [this] { begin_stop(); });
}

void Gate::Impl::begin_stop() {
  if (core_->stopping) return;
  core_->stopping = true;
  end_by_ = NetClock::now() + core_->options.drain_timeout;
  std::error_code ignored;
  listener_->close(ignored);
  for (Session* const session : sessions_) session->close_if_idle();
}

// What still waits is turned away, what is on its way is left unanswered.
void Gate::Impl::end() {
  if (ended_) return;
  ended_ = true;
  core_->turns.stop();
  core_->watch.close_all();
  core_->upstream.close_idle();
  control_->close();
  std::error_code ignored;
  listener_->close(ignored);
  if (admin_) admin_->close(ignored);
  ticker_->cancel();
  prober_->cancel();
  if (room_) room_->set();
  work_.reset();
}

void Gate::Impl::disk_failed(Error error) {
  core_->log("the disk failed: " + to_string(error));
  failure_ = std::move(error);
  core_->stopping = true;
  end();
}

Async<void> Gate::Impl::accept() {
  while (listener_->is_open()) {
    if (sessions_.size() >= core_->options.max_connections) {
      room_ = std::make_unique<Event>(core_->io);
      co_await room_->wait();
      continue;
    }
    std::error_code error;
    auto socket =
        co_await listener_->async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (!listener_->is_open()) co_return;
    if (error) {  // no more files, or the client has left again
      co_await pause(core_->io, kPauseWithoutFiles);
      continue;
    }
    const auto client = socket.remote_endpoint(error);
    if (error) continue;
    asio::co_spawn(core_->io, serve(std::move(socket), text_of(client)), asio::detached);
  }
}

Async<void> Gate::Impl::serve(tcp::socket socket, std::string client) {
  Session session(*core_, std::move(socket), std::move(client));
  sessions_.insert(&session);
  try {
    co_await session.serve();
  } catch (const std::exception& error) {
    core_->log(std::string("a connection ended by a defect: ") + error.what());
  }
  sessions_.erase(&session);
  if (room_) room_->set();
}

Async<void> Gate::Impl::accept_admin() {
  while (admin_->is_open()) {
    std::error_code error;
    auto socket = co_await admin_->async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (!admin_->is_open()) co_return;
    if (error) co_await pause(core_->io, kPauseWithoutFiles);
    if (error || admins_ >= kMaxAdmins) continue;
    ++admins_;
    asio::co_spawn(core_->io, serve_admin(*core_, std::move(socket)),
                   [this](const std::exception_ptr&) { --admins_; });
  }
}

Async<void> Gate::Impl::tick() {
  std::error_code error;
  while (!ended_) {
    ticker_->expires_after(kTick);
    co_await ticker_->async_wait(asio::redirect_error(asio::use_awaitable, error));
    const NetTime now = NetClock::now();
    core_->turns.tick(now);
    core_->watch.sweep(now);
    core_->upstream.sweep(now);
    if (core_->stopping && (sessions_.empty() || now >= end_by_)) end();
  }
}

Async<void> Gate::Impl::probe() {
  std::error_code error;
  while (!ended_) {
    prober_->expires_after(kProbePause);
    co_await prober_->async_wait(asio::redirect_error(asio::use_awaitable, error));
    if (!core_->stopping && core_->turns.has_unanswered()) co_await probe_unanswered(*core_);
  }
}

Async<bool> Gate::Impl::wait_until_durable(Version version) {
  while (durable_ < version && !ended_) co_await pause(core_->io, 1ms);
  co_return durable_ >= version;
}

Gate::Gate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Gate::~Gate() = default;

Result<std::unique_ptr<Gate>> Gate::open(GateOptions options) {
  TRY(check_options(options));
  keep_within_reason(options);
  auto tickets = TRY(TicketReader::make(options));
  auto upstream = TRY(UpstreamAddress::parse(options.upstream));
  const StateFolder folder{options.state};
  auto lock = TRY(FolderLock::take(folder));
  auto impl = std::make_unique<Impl>(std::move(lock), folder);
  TRY(impl->prepare(std::move(options), std::move(tickets), std::move(upstream)));
  return std::unique_ptr<Gate>(new Gate(std::move(impl)));
}

std::string Gate::address() const {
  return impl_->address();
}

std::optional<std::string> Gate::admin_address() const {
  return impl_->admin_address();
}

bool Gate::is_new() const {
  return impl_->is_new();
}

Status Gate::run() {
  return impl_->run();
}

void Gate::stop() {
  impl_->stop();
}

Result<std::vector<ResourceName>> unanswered(const std::string& state) {
  const auto answer = TRY(command(StateFolder{state}, "unanswered"));
  std::vector<ResourceName> names;
  std::string_view rest = answer;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    auto name = ResourceName::parse(percent_decoded(rest.substr(0, end)).value_or(""));
    if (name) names.push_back(std::move(*name));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return names;
}

Status clear_unanswered(const std::string& state, const ResourceName& resource) {
  TRY(command(StateFolder{state}, "clear " + percent_encoded(resource.str())));
  return {};
}

}  // namespace leasehold::gate
