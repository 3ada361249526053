#include "fence_call.h"

#include <algorithm>

#include "fence/attempt.h"
#include "fence/refusal.h"
#include "keys.h"

namespace leasehold::redis {

using fence::Reason;
using resp::Type;
using resp::Value;

namespace {

constexpr Millis kShortestAttempt{100};
constexpr Millis kPause{20};

const Script& script() {
  static const Script made{std::string(fence_script())};
  return made;
}

std::string_view first_word(std::string_view words) {
  return words.substr(0, words.find(' '));
}

std::string after_first_word(const std::string& words) {
  const auto space = words.find(' ');
  return space == std::string::npos ? "" : words.substr(space + 1);
}

Reason reason_of(std::string_view word) {
  if (word == "lineage") return Reason::foreign;
  if (word == "adopted") return Reason::adopted;
  if (word == "lower") return Reason::lower;
  if (word == "twice") return Reason::twice;
  return word == "single" ? Reason::again : Reason::late;
}

std::int64_t number_of(std::string_view digits) {
  const auto number = TokenNumber::parse(digits);
  return number ? number->value() : 0;
}

// "FENCEDOUT <why> <offered> <mark> [lineage]", where the name of a lock may have spaces in it, or
// "FENCEMOVED <mark>" and "FENCELOWER <mark>".
Refusal refusal_in(std::string_view words) {
  std::vector<std::string_view> before;
  const std::size_t count = words.starts_with(kRefused) ? 4 : 2;
  while (before.size() < count && !words.empty()) {
    before.push_back(first_word(words));
    words.remove_prefix(std::min(words.size(), before.back().size() + 1));
  }
  before.resize(count);
  Refusal refusal;
  refusal.mark = number_of(before.back());
  if (count == 2) return refusal;
  refusal.why = reason_of(before[1]);
  refusal.offered = number_of(before[2]);
  refusal.lineage = words;
  return refusal;
}

Error script_error(ErrorCode code, std::string message, const std::string& words) {
  Error error(code, std::move(message), words);
  error.store_code = first_word(words);
  return error;
}

}  // namespace

Error meaning_of(const std::string& words) {
  const std::string_view word = first_word(words);
  if (word == kRefused || word == kMoved || word == kLower) {
    Error error = script_error(word == kRefused ? ErrorCode::fenced_out : ErrorCode::invalid,
                               "the fence refused", words);
    error.refusal = refusal_in(words);
    return error;
  }
  if (word == "FENCEINVALID") {
    return script_error(ErrorCode::invalid, after_first_word(words), words);
  }
  if (word == "FENCEVERSION") {
    return script_error(ErrorCode::unavailable, after_first_word(words), words);
  }
  if (word.starts_with("FENCE")) {
    return script_error(ErrorCode::invalid, "the fence refused", words);
  }
  const bool script_broke = words.find("user_script") != std::string::npos;
  Error error = error_of(words);
  if (error.code == ErrorCode::outcome_unknown && !script_broke) {
    return script_error(ErrorCode::invalid, "Redis does not accept the command", words);
  }
  if (word == "WRONGTYPE") {
    return script_error(ErrorCode::invalid,
                        "the key holds data of another kind than the command is for", words);
  }
  return error;
}

namespace {

Result<Value> attempt_once(Server& server, const ScriptCall& call, const CallContext& context) {
  auto reply = server.answer(call, context);
  if (reply && reply->is_error()) return fail(error_at(server.address(), meaning_of(reply->text)));
  return reply;
}

bool pause(Server& server, const CallContext& context) {
  const CallContext short_one{std::min(context.deadline, BootClock::now() + kPause), context.stop};
  waiting::CallWait wait(short_one, server.closing());
  wait.until_readable(server.closing().fd());
  return !context.stop.stop_requested() && !server.is_closing() &&
         BootClock::now() < context.deadline;
}

Error doubtful(Error error) {
  error.code = ErrorCode::outcome_unknown;
  error.message =
      "the reply to the command was lost, and what became of it is not known: " + error.message;
  return error;
}

}  // namespace

FenceCall::FenceCall(const ResourceName& resource, const Ticket& ticket, const Command& command)
    : call_{script(),
            {fence_key(resource)},
            {ticket.mode, ticket.number, ticket.lineage, ticket.request,
             ticket.sequence == 0 ? "" : std::to_string(ticket.sequence)}},
      has_command_(!command.empty()),
      may_repeat_(command.empty() || ticket.sequence != 0 || ticket.mode == "read") {
  if (command.size() > 1) call_.keys.push_back(command[1]);
  call_.arguments.insert(call_.arguments.end(), command.begin(), command.end());
}

Result<Value> FenceCall::run(Server& server, const EnterOptions& options) const {
  const CallContext context = fence::context_of(options);
  bool in_doubt = false;
  for (;;) {
    CallContext attempt = context;
    const auto left = context.deadline - BootClock::now();
    if (may_repeat_) {
      const auto most = std::max<BootClock::duration>(left / 3, kShortestAttempt);
      attempt.deadline = std::min(context.deadline, BootClock::now() + most);
    }
    auto reply = attempt_once(server, call_, attempt);
    if (reply) return reply;
    const ErrorCode code = reply.error().code;
    in_doubt = in_doubt || code == ErrorCode::outcome_unknown;
    if (!in_doubt) return reply;
    const bool settled = code != ErrorCode::outcome_unknown && code != ErrorCode::unavailable;
    // With single entry the refusal may be the answer to its own entry, whose reply was lost.
    const auto& refusal = reply.error().refusal;
    const bool perhaps_its_own = refusal && refusal->why == Reason::again;
    if (settled && !has_command_ && !perhaps_its_own) return reply;
    if (settled || !may_repeat_ || !pause(server, context)) {
      return fail(doubtful(std::move(reply.error())));
    }
  }
}

Error explained(const ResourceName& resource, const Token& token, Error error) {
  const bool refused = error.store_code == kRefused && error.refusal->mark > 0;
  if (!refused) return error;
  Error told = fence::refusal(resource, token, error.refusal->why,
                              {error.refusal->lineage, error.refusal->mark});
  error.message = error.code == ErrorCode::fenced_out
                      ? told.message
                      : "the reply to the command was lost, and now " + told.message;
  error.refusal = std::move(told.refusal);
  error.address.clear();  // the sentence names the resource
  return error;
}

Status check_call(const Command& command, const EnterOptions& options) {
  if (command.empty() || command.front().empty()) {
    return fail(ErrorCode::invalid, "a command must have at least its name");
  }
  return fence::check_sequence(options.sequence);
}

Reply reply_of(Value value) {
  Reply reply;
  switch (value.type) {
    case Type::null:
      return reply;
    case Type::integer:
    case Type::boolean:
      reply.kind = Reply::Kind::integer;
      reply.integer = value.integer;
      return reply;
    case Type::array:
    case Type::map:
    case Type::set:
    case Type::push:
      reply.kind = Reply::Kind::list;
      for (Value& item : value.items) reply.items.push_back(reply_of(std::move(item)));
      return reply;
    case Type::real:
      reply.kind = Reply::Kind::text;
      reply.text = std::to_string(value.real);
      return reply;
    default:
      reply.kind = Reply::Kind::text;
      reply.repeated = value.type == Type::simple && value.text == "REPEATED";
      if (!reply.repeated) reply.text = std::move(value.text);
      if (reply.repeated) reply.kind = Reply::Kind::nothing;
      return reply;
  }
}

}  // namespace leasehold::redis
