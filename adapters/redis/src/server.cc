#include "server.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "keys.h"
#include "kit/text/number.h"
#include "kit/text/other_version.h"
#include "kit/try.h"

namespace leasehold::redis {

using resp::Value;
using waiting::CallWait;

namespace {

// What our scripts answer before the number of the store's format.
constexpr std::string_view kOtherFormat = "FORMAT";

// Replies that begin so are given before a script has written anything.
constexpr std::array<std::string_view, 18> kRefusals = {
    "NOSCRIPT",   "READONLY",    "LOADING",  "MISCONF",   "OOM",       "NOREPLICAS",
    "MASTERDOWN", "NOAUTH",      "NOPERM",   "WRONGPASS", "MOVED",     "ASK",
    "CROSSSLOT",  "CLUSTERDOWN", "TRYAGAIN", "BUSY",      "WRONGTYPE", kOtherFormat,
};

std::string_view first_word(std::string_view words) {
  return words.substr(0, words.find(' '));
}

std::string_view format_in(std::string_view words) {
  return words.substr(std::min(words.size(), kOtherFormat.size() + 1));
}

std::string explained(std::string_view words) {
  const std::string_view word = first_word(words);
  if (word == "READONLY") return "the server is a read-only replica";
  if (word == "LOADING") return "the server is still loading its data";
  if (word == "MISCONF") return "the server cannot save its data, and takes no writes";
  if (word == "OOM") return "the server has no memory left";
  if (word == "NOPERM") return "the user may not do that";
  if (word == "NOAUTH" || word == "WRONGPASS") return "the server wants another password";
  if (word == "BUSY") return "the server is busy with a long script";
  if (word == "WRONGTYPE") {
    return "another program has a value of its own at one of the keys that Leasehold uses "
           "(docs/redis.md lists them)";
  }
  if (word == kOtherFormat) {
    const auto number = [](std::string_view text) {
      return kit::digits_in<std::int64_t>(text).value_or(0);
    };
    return "the store has format " + std::string(format_in(words)) +
           ", and this program knows only format " + std::string(kStoreFormat) +
           kit::remedy_for_version(
               number(format_in(words)), number(kStoreFormat),
               "end the programs that use it and delete the key " + std::string(kStoreKey));
  }
  if (word == "MOVED" || word == "ASK" || word == "CROSSSLOT" || word == "CLUSTERDOWN") {
    return "the server is part of a cluster, which is not supported";
  }
  return "the server refused it";
}

// Another connection may lead to a server that does it: names are resolved again.
bool speaks_for_this_connection(std::string_view word) {
  return word == "READONLY" || word == "LOADING" || word == "MASTERDOWN" || word == "NOAUTH";
}

}  // namespace

bool is_over(const Result<Value>& reply) {
  return !reply || (reply->is_error() && speaks_for_this_connection(first_word(reply->text)));
}

Error error_of(const std::string& words) {
  const std::string_view word = first_word(words);
  const bool refused = std::find(kRefusals.begin(), kRefusals.end(), word) != kRefusals.end();
  Error error =
      refused ? Error(word == kOtherFormat ? ErrorCode::unsupported : ErrorCode::unavailable,
                      explained(words), words)
              : Error(ErrorCode::outcome_unknown, "the server failed, perhaps half way", words);
  error.store_code = word;
  return error;
}

bool is_unknown_script(const Value& reply) {
  return reply.is_error() && first_word(reply.text) == "NOSCRIPT";
}

Result<std::unique_ptr<Server>> Server::make(resp::Endpoint endpoint, std::size_t connections) {
  auto connector = TRY(resp::Connector::make(std::move(endpoint)));
  return std::unique_ptr<Server>(new Server(std::move(connector), connections));
}

Server::Server(std::unique_ptr<resp::Connector> connector, std::size_t connections)
    : connector_(std::move(connector)),
      pool_(connections, [this](const CallContext& context) { return connect(context); }) {}

Result<std::unique_ptr<resp::Connection>> Server::connect(const CallContext& context) {
  return connector_->connect(context, closing_);
}

Result<Server::Pool::Loan> Server::borrow(const CallContext& context, Look look) {
  for (;;) {
    auto loan = pool_.take(context);
    if (!loan || !loan->needs(look) || (*loan)->alive()) return loan;
    drop(*loan);
  }
}

std::optional<Server::Pool::Loan> Server::borrow_idle() {
  for (;;) {
    auto loan = pool_.take_idle();
    if (!loan || (*loan)->alive()) return loan;
    drop(*loan);
  }
}

void Server::drop(Pool::Loan& loan) {
  loan.discard();
  pool_.drop_idle();
}

Result<Value> Server::checked(Result<Value> reply) const {
  if (reply && !reply->is_error()) return reply;
  Error error = reply ? error_of(reply->text) : std::move(reply.error());
  error.address = address();
  error.store_words = connector_->without_secret(std::move(error.store_words));
  return fail(std::move(error));
}

Result<Value> Server::run(const ScriptCall& call, const CallContext& context) {
  auto reply = answer(call, context);
  return reply ? checked(std::move(reply)) : reply;
}

// The other side may have ended a connection that was used a moment ago, which nobody has looked
// at. What could not be sent at all is sent once more, on another.
template <class Ask>
Result<Value> Server::on_a_connection(const CallContext& context, const Ask& ask) {
  for (bool first = true;; first = false) {
    auto loan = TRY(borrow(context, Look::if_rested));
    CallWait wait(context, closing_);
    auto reply = ask(*loan, wait);
    if (is_over(reply)) drop(loan);
    const bool not_sent = !reply && reply.error().code == ErrorCode::unavailable;
    if (reply) return reply;
    if (!first || !not_sent || !wait.lasts({})) return checked(std::move(reply));
  }
}

Result<Value> Server::answer(const ScriptCall& call, const CallContext& context) {
  return on_a_connection(context, [&](resp::Connection& connection, CallWait& wait) {
    auto reply = connection.call(wait, call.command());
    if (reply && is_unknown_script(*reply)) reply = connection.call(wait, call.command(true));
    return reply;
  });
}

Result<Value> Server::run(const std::string& command, const CallContext& context) {
  auto reply = on_a_connection(context, [&](resp::Connection& connection, CallWait& wait) {
    return connection.call(wait, command);
  });
  return reply ? checked(std::move(reply)) : reply;
}

void Server::hurry() {
  is_closing_ = true;
  closing_.raise();
}

void Server::close() {
  hurry();
  pool_.close();
}

}  // namespace leasehold::redis
