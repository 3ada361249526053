#include "leasehold/resp/connection.h"

#include <sys/socket.h>

#include <cerrno>
#include <optional>
#include <system_error>

#include "kit/try.h"
#include "leasehold/resp/command.h"
#include "leasehold/resp/parser.h"
#include "net/resolver.h"
#include "net/socket.h"
#include "tls.h"

namespace leasehold::resp {

using kit::Fd;
using waiting::Alarm;
using waiting::CallWait;

namespace {

constexpr std::size_t kReadSize = 16 * 1024;

std::string system_words(int code) {
  return std::generic_category().message(code);
}

// How a TLS server answers plain bytes: an alert record.
bool looks_like_tls(std::string_view beginning) {
  return beginning.starts_with("\x15\x03");
}

}  // namespace

// The socket, TLS on it where it is wanted, and the parser behind them.
class Connection::Wire {
 public:
  explicit Wire(Fd fd) : fd_(std::move(fd)) {}
  // What a failed connection has not sent yet must not be sent after its caller has gone.
  ~Wire() {
    const linger at_once{1, 0};
    if (failed_) setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  Wire(const Wire&) = delete;

  Status begin_tls(const TlsContext& context, const std::string& name, CallWait& wait) {
    auto session = TRY(TlsSession::make(context, name));
    tls_ = std::move(session);
    for (;;) {
      const auto step = tls_->handshake();
      if (auto ok = flush_tls(wait); step && !ok) return ok;  // an alert goes out too
      if (!step) return fail(step.error());
      if (*step == TlsSession::Step::done) return {};
      TRY(receive_encrypted(wait));
    }
  }

  bool alive() const {
    char byte = 0;
    const ssize_t got = recv(fd_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
  }

  Status send(CallWait& wait, std::string_view plain) {
    if (!tls_) return send_raw(wait, plain);
    TRY(tls_->encrypt(plain));
    return flush_tls(wait);
  }

  Result<Value> receive(CallWait& wait) {
    auto value = receive_value(wait);
    failed_ = !value.has_value();
    return value;
  }
  bool until_readable(CallWait& wait) { return wait.until_readable(fd_.get()); }

  Greeting greeting;

 private:
  Result<Value> receive_value(CallWait& wait) {
    for (;;) {
      Value value;
      switch (parser_.next(value)) {
        case Parser::Step::value:
          return value;
        case Parser::Step::malformed:
          return fail(not_resp());
        case Parser::Step::more:
          break;
      }
      TRY(receive_more(wait));
    }
  }

  Status send_raw(CallWait& wait, std::string_view bytes) {
    bool some_left = false;
    while (!bytes.empty()) {
      const ssize_t sent =
          ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) {
        some_left = true;
        bytes.remove_prefix(static_cast<std::size_t>(sent));
        continue;
      }
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) {
        return fail(some_left ? ErrorCode::outcome_unknown : ErrorCode::unavailable,
                    "the connection broke", system_words(errno));
      }
      if (!wait.until_writable(fd_.get())) return fail(wait.ended("sending", some_left));
    }
    return {};
  }

  Status flush_tls(CallWait& wait) {
    output_.clear();
    tls_->take_output(output_);
    return send_raw(wait, output_);
  }

  Result<std::size_t> receive_raw(CallWait& wait, std::span<char> room) {
    for (bool soon = wait.lasts(2 * net::kShortWait);; soon = false) {
      if (!soon && !wait.until_readable(fd_.get())) {
        return fail(wait.ended("waiting for an answer", true));
      }
      const ssize_t got = recv(fd_.get(), room.data(), room.size(), soon ? 0 : MSG_DONTWAIT);
      if (got > 0) return static_cast<std::size_t>(got);
      if (got < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK)) continue;
      return fail(ErrorCode::outcome_unknown, "the server closed the connection",
                  got == 0 ? "" : system_words(errno));
    }
  }

  Status receive_encrypted(CallWait& wait) {
    std::array<char, kReadSize> bytes;
    const auto got = TRY(receive_raw(wait, bytes));
    tls_->feed({bytes.data(), got});
    return {};
  }

  Status receive_more(CallWait& wait) {
    if (!tls_) {
      const auto got = TRY(receive_raw(wait, parser_.room(kReadSize)));
      parser_.came(got);
      return {};
    }
    for (;;) {  // a record may be incomplete, or none of ours
      plain_.clear();
      auto ended = tls_->decrypt(plain_);
      if (!ended) {
        ended.error().code = ErrorCode::outcome_unknown;
        return fail(std::move(ended.error()));
      }
      if (!plain_.empty()) {
        parser_.feed(plain_);
        return {};
      }
      if (*ended) return fail(ErrorCode::outcome_unknown, "the server closed the connection");
      TRY(receive_encrypted(wait));
    }
  }

  Error not_resp() const {
    const bool tls = looks_like_tls(parser_.unread());
    return Error(ErrorCode::outcome_unknown,
                 tls ? "the server speaks TLS at this port; rediss:// or tls=on asks for it"
                     : "the server does not speak the Redis protocol (" + parser_.problem() + ")",
                 tls ? "" : parser_.begins());
  }

  Fd fd_;
  bool failed_ = false;
  std::unique_ptr<TlsSession> tls_;
  Parser parser_;
  std::string output_;
  std::string plain_;
};

Connection::Connection(std::unique_ptr<Wire> wire) : wire_(std::move(wire)) {}
Connection::~Connection() = default;

const Greeting& Connection::greeting() const {
  return wire_->greeting;
}
bool Connection::alive() const {
  return wire_->alive();
}
Status Connection::send(CallWait& wait, std::string_view commands) {
  return wire_->send(wait, commands);
}
Result<Value> Connection::receive(CallWait& wait) {
  return wire_->receive(wait);
}
bool Connection::until_readable(CallWait& wait) {
  return wire_->until_readable(wait);
}

Result<Value> Connection::reply(CallWait& wait) {
  for (;;) {
    auto value = wire_->receive(wait);
    if (!value || value->type != Type::push) return value;
  }
}

Result<Value> Connection::call(CallWait& wait, std::string_view command) {
  TRY(send(wait, command));
  return reply(wait);
}

// ---- connecting ----------------------------------------------------------------------------

struct Connector::State {
  Endpoint endpoint;
  std::string address;
  std::unique_ptr<TlsContext> tls;
  net::Resolver resolver;

  Result<std::unique_ptr<Connection>> connect(const CallContext& context, const Alarm& closing);
  Status greet(Connection& connection, Greeting& greeting, CallWait& wait) const;
  Status greet_in_resp2(Connection& connection, CallWait& wait) const;
  Status check(const Value& reply) const;
  std::string without_secret(std::string words) const;
};

Connector::Connector(std::unique_ptr<State> state) : state_(std::move(state)) {}
Connector::~Connector() = default;
const std::string& Connector::address() const {
  return state_->address;
}
std::string Connector::without_secret(std::string words) const {
  return state_->without_secret(std::move(words));
}

Result<std::unique_ptr<Connector>> Connector::make(Endpoint endpoint) {
  auto state = std::make_unique<State>();
  const bool v6 = endpoint.address.host.find(':') != std::string::npos;
  state->address = (v6 ? "[" + endpoint.address.host + "]" : endpoint.address.host) + ":" +
                   endpoint.address.port;
  if (endpoint.tls.on) {
    auto tls = TRY(TlsContext::make(endpoint.tls));
    state->tls = std::move(tls);
  }
  state->endpoint = std::move(endpoint);
  return std::unique_ptr<Connector>(new Connector(std::move(state)));
}

Result<std::unique_ptr<Connection>> Connector::connect(const CallContext& context,
                                                       const Alarm& closing) {
  auto made = state_->connect(context, closing);
  if (made) return made;
  Error error = std::move(made.error());
  // Nothing was sent yet but the greeting and the login.
  if (error.code == ErrorCode::outcome_unknown) {
    error.code = context.stop.stop_requested() ? ErrorCode::cancelled : ErrorCode::unavailable;
  }
  error.address = state_->address;
  error.store_words = state_->without_secret(std::move(error.store_words));
  return fail(std::move(error));
}

Result<std::unique_ptr<Connection>> Connector::State::connect(const CallContext& context,
                                                              const Alarm& closing) {
  const auto addresses = TRY(resolver.resolve(endpoint.address, context, closing));
  auto fd = TRY(net::connect_to_any(addresses, context, closing));
  auto wire = std::make_unique<Connection::Wire>(std::move(fd));
  CallWait wait(context, closing);
  if (tls) {
    const std::string& name =
        endpoint.tls.server_name.empty() ? endpoint.address.host : endpoint.tls.server_name;
    if (auto ok = wire->begin_tls(*tls, name, wait); !ok) {
      ok.error().message = "TLS: " + ok.error().message;
      return fail(std::move(ok.error()));
    }
  }
  Greeting& greeting = wire->greeting;
  auto connection = std::make_unique<Connection>(std::move(wire));
  TRY(greet(*connection, greeting, wait));
  return connection;
}

Status Connector::State::greet(Connection& connection, Greeting& greeting, CallWait& wait) const {
  const std::string user = endpoint.user.empty() ? "default" : endpoint.user;
  const std::string database = std::to_string(endpoint.database);
  std::string hello;
  if (endpoint.password.empty()) {
    append_command(hello, {"HELLO", "3", "SETNAME", "leasehold"});
  } else {
    append_command(hello, {"HELLO", "3", "AUTH", user, endpoint.password, "SETNAME", "leasehold"});
  }
  if (endpoint.database != 0) append_command(hello, {"SELECT", database});
  const auto sent = connection.send(wait, hello);
  // A server that sends an error and closes at once may fail send(), and its error can still be
  // read.
  const auto welcome = connection.reply(wait);
  if (!welcome) return fail(sent ? welcome.error() : sent.error());
  std::optional<Value> selected;
  if (endpoint.database != 0) {
    auto reply = connection.reply(wait);
    if (!reply && !welcome->is_error()) return fail(std::move(reply.error()));
    if (reply) selected = std::move(*reply);
  }
  const bool knows_no_hello =
      welcome->is_error() && (welcome->text.find("unknown command") != std::string::npos ||
                              welcome->text.starts_with("NOPROTO"));
  if (knows_no_hello) return greet_in_resp2(connection, wait);
  TRY(check(*welcome));
  greeting.protocol = 3;
  greeting.version = welcome->under("version").text;
  greeting.mode = welcome->under("mode").text;
  return selected ? check(*selected) : Status();
}

Status Connector::State::greet_in_resp2(Connection& connection, CallWait& wait) const {
  std::string commands;
  int replies = 0;
  if (!endpoint.password.empty()) {
    ++replies;
    if (endpoint.user.empty()) {
      append_command(commands, {"AUTH", endpoint.password});
    } else {
      append_command(commands, {"AUTH", endpoint.user, endpoint.password});
    }
  }
  if (endpoint.database != 0) {
    ++replies;
    append_command(commands, {"SELECT", std::to_string(endpoint.database)});
  }
  TRY(connection.send(wait, commands));
  Status all;
  for (; replies > 0; --replies) {
    const auto reply = TRY(connection.reply(wait));
    if (auto ok = check(reply); !ok && all) all = std::move(ok);
  }
  return all;
}

Status Connector::State::check(const Value& reply) const {
  if (!reply.is_error()) return {};
  const bool wants_password = reply.text.starts_with("NOAUTH") && endpoint.password.empty();
  return fail(ErrorCode::unavailable,
              wants_password ? "the server wants a password, and none was given"
                             : "the server refused the connection",
              reply.text);
}

// A server that does not know a command repeats its arguments, cut short.
std::string Connector::State::without_secret(std::string words) const {
  if (endpoint.password.empty()) return words;
  if (const auto at = words.find(", with args beginning with"); at != std::string::npos) {
    words.resize(at);
  }
  for (auto at = words.find(endpoint.password); at != std::string::npos;
       at = words.find(endpoint.password, at + 3)) {
    words.replace(at, endpoint.password.size(), "***");
  }
  return words;
}

}  // namespace leasehold::resp
