#include "transport.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <random>
#include <utility>

#include "kit/system/file_content.h"
#include "kit/try.h"
#include "wire.pb.h"

namespace leasehold::etcd {
namespace {

constexpr auto kLogInTimeout = std::chrono::seconds(4);
constexpr Millis kUsualConnect = std::chrono::seconds(2);
constexpr Millis kLongestConnect = std::chrono::seconds(10);
// Where Debian, and most others, keep the certificates that the machine trusts.
constexpr const char* kSystemCertificates = "/etc/ssl/certs/ca-certificates.crt";

Result<std::string> content_of(const std::string& path) {
  auto text = kit::content_of_file(path);
  if (text && !text->empty()) return text;
  return fail(ErrorCode::invalid, "the TLS file '" + path + "' cannot be used: it " +
                                      (text ? "is empty" : text.error().message));
}

Result<std::shared_ptr<grpc::ChannelCredentials>> credentials_of(const TlsOptions& tls) {
  if (!tls.on) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  auto roots = TRY(content_of(tls.ca.empty() ? kSystemCertificates : tls.ca));
  options.pem_root_certs = std::move(roots);
  if (!tls.certificate.empty()) {
    auto certificate = TRY(content_of(tls.certificate));
    auto key = TRY(content_of(tls.key));
    options.pem_cert_chain = std::move(certificate);
    options.pem_private_key = std::move(key);
  }
  auto credentials = grpc::SslCredentials(options);
  if (!credentials) return fail(ErrorCode::invalid, "the TLS files of the URL cannot be used");
  return credentials;
}

grpc::ChannelArguments arguments_for(const std::string& server_name, Millis connect_timeout) {
  grpc::ChannelArguments arguments;
  if (!server_name.empty()) arguments.SetSslTargetNameOverride(server_name);
  arguments.SetMaxReceiveMessageSize(-1);
  // Each Connection is a socket of its own, so that a silent one can be left.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  // This one bounds a connect, too.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(connect_timeout.count()));
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1000);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // What was sent and what was not is decided here.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // A server whose machine is gone says nothing, and nor does a waiter's watch. etcd drops clients
  // that ping more often than every five seconds.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 3'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  return arguments;
}

}  // namespace

Result<std::unique_ptr<Transport>> Transport::make(const Options& options, Millis connect_timeout) {
  auto credentials = TRY(credentials_of(options.tls));
  return std::unique_ptr<Transport>(
      new Transport(options, std::move(credentials),
                    std::clamp(connect_timeout, kUsualConnect, kLongestConnect)));
}

Transport::Transport(const Options& options, std::shared_ptr<grpc::ChannelCredentials> credentials,
                     Millis connect_timeout)
    : connect_timeout_(connect_timeout),
      endpoints_(options.endpoints),
      user_(options.user),
      password_(options.password),
      server_name_(options.tls.server_name),
      credentials_(std::move(credentials)) {
  for (std::size_t i = 0; i < endpoints_.size(); ++i) connections_.push_back(connect(i));
  preferred_ = std::random_device{}() % endpoints_.size();  // so that clients spread
}

ConnectionPointer Transport::connect(std::size_t endpoint) const {
  return std::make_shared<Connection>(Connection{
      endpoint, grpc::CreateCustomChannel("dns:///" + endpoints_[endpoint], credentials_,
                                          arguments_for(server_name_, connect_timeout_))});
}

Transport::Way Transport::way() const {
  MutexLock lock(mutex_);
  return {connections_[preferred_], token_, token_number_};
}

void Transport::failed(const ConnectionPointer& connection, const Failure& failure) {
  if (failure.kind == Failure::Kind::refused) return;
  MutexLock lock(mutex_);
  if (closed_ || connections_[connection->endpoint] != connection) return;
  if (failure.connection_is_suspect()) {
    left_behind_.push_back(
        std::exchange(connections_[connection->endpoint], connect(connection->endpoint)));
  }
  if (preferred_ == connection->endpoint) preferred_ = (preferred_ + 1) % endpoints_.size();
}

void Transport::tidy() {
  std::vector<ConnectionPointer> unused;
  MutexLock lock(mutex_);
  const auto in_use = std::partition(left_behind_.begin(), left_behind_.end(),
                                     [](const auto& it) { return it.use_count() > 1; });
  unused.assign(in_use, left_behind_.end());
  left_behind_.erase(in_use, left_behind_.end());
}

void Transport::authenticate(std::uint64_t refused,
                             std::function<void(std::optional<Failure>)> done) {
  authenticate(refused, {.deadline = BootClock::now() + kLogInTimeout, .stop = {}, .repeat = true},
               std::move(done));
}

void Transport::authenticate(std::uint64_t refused, const Limits& limits,
                             std::function<void(std::optional<Failure>)> done) {
  if (user_.empty()) {
    return done(Failure{.kind = Failure::Kind::refused,
                        .silence = false,
                        .words = "the server wants a user and a password; the URL has none"});
  }
  bool somebody_did = false;
  {
    MutexLock lock(mutex_);
    somebody_did = token_number_ != refused;
    if (!somebody_did) {
      want_token_.push_back(std::move(done));
      if (want_token_.size() > 1) return;  // it is under way
      token_.clear();
    }
  }
  if (somebody_did) return done(std::nullopt);
  log_in(limits);
}

void Transport::log_in(const Limits& limits) {
  wire::AuthenticateRequest request;
  request.set_name(user_);
  request.set_password(password_);
  call<wire::AuthenticateRequest, wire::AuthenticateResponse>(
      "/etcdserverpb.Auth/Authenticate", std::move(request), limits,
      [this](tl::expected<wire::AuthenticateResponse, Failure> response) {
        std::vector<std::function<void(std::optional<Failure>)>> waiting;
        {
          MutexLock lock(mutex_);
          waiting.swap(want_token_);
          if (response) {
            token_ = response->token();
            ++token_number_;
          }
        }
        for (auto& it : waiting) {
          it(response ? std::nullopt : std::optional<Failure>(response.error()));
        }
      });
}

bool Transport::enter(PendingCall& call) {
  MutexLock lock(mutex_);
  if (closed_) return false;
  pending_.insert(&call);
  return true;
}

void Transport::leave(PendingCall& call) {
  MutexLock lock(mutex_);
  pending_.erase(&call);
  if (closed_ && pending_.empty()) left_.notify_all();
}

void Transport::close() {
  MutexLock lock(mutex_);
  closed_ = true;
  for (PendingCall* call : pending_) call->cancel();
  left_.wait(mutex_, [this]() LEASEHOLD_REQUIRES(mutex_) { return pending_.empty(); });
}

}  // namespace leasehold::etcd
