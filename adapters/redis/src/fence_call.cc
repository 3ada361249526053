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

// What an error reply means: the script runs the command last, so that every error that it answers
// by itself came before the command, or is the command's own.
Error meaning(const Server& server, const std::string& words) {
  const std::string_view word = first_word(words);
  if (word == "FENCEDOUT") return Error(ErrorCode::fenced_out, "the fence refused", words);
  if (word == "FENCEINVALID") return Error(ErrorCode::invalid, after_first_word(words), words);
  if (word == "FENCEVERSION") {
    return Error(ErrorCode::unavailable, server.address() + ": " + after_first_word(words), words);
  }
  if (word.starts_with("FENCE")) return Error(ErrorCode::invalid, "the fence refused", words);
  const bool script_broke = words.find("user_script") != std::string::npos;
  Error error = error_of(words);
  if (error.code == ErrorCode::outcome_unknown && !script_broke) {
    return Error(ErrorCode::invalid, server.address() + ": Redis does not accept the command",
                 words);
  }
  if (word == "WRONGTYPE") {
    return Error(ErrorCode::invalid,
                 server.address() + ": the key holds data of another kind than the command is for",
                 words);
  }
  error.message = server.address() + ": " + error.message;
  return error;
}

Result<Value> once(Server& server, const ScriptCall& call, const CallContext& context) {
  auto reply = server.answer(call, context);
  if (reply && reply->is_error()) return fail(meaning(server, reply->text));
  return reply;
}

bool pause(Server& server, const CallContext& context) {
  const CallContext short_one{std::min(context.deadline, BootClock::now() + kPause), context.stop};
  waiting::CallWait wait(short_one, server.closing());
  wait.until_readable(server.closing().fd());
  return !context.stop.stop_requested() && !server.is_closing() &&
         BootClock::now() < context.deadline;
}

Reason reason_of(std::string_view word) {
  if (word == "lineage") return Reason::foreign;
  if (word == "adopted") return Reason::adopted;
  if (word == "lower") return Reason::lower;
  if (word == "twice") return Reason::twice;
  return word == "once" ? Reason::again : Reason::late;
}

Error doubtful(Error last) {
  Error error(
      ErrorCode::outcome_unknown,
      "the reply to the command was lost, and what became of it is not known: " + last.message,
      last.store_words);
  error.refusal = last.refusal;
  return error;
}

}  // namespace

FenceCall::FenceCall(const ResourceName& resource, const Ticket& ticket, const Command& command)
    : call_{script(),
            {fence_key(resource)},
            {ticket.mode, ticket.number, ticket.lineage, ticket.request,
             ticket.sequence == 0 ? "" : std::to_string(ticket.sequence)}},
      has_command_(!command.empty()),
      may_repeat_(command.empty() || ticket.sequence != 0) {
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
    auto reply = once(server, call_, attempt);
    if (reply) return reply;
    const ErrorCode code = reply.error().code;
    in_doubt = in_doubt || code == ErrorCode::outcome_unknown;
    if (!in_doubt) return reply;
    const bool settled = code != ErrorCode::outcome_unknown && code != ErrorCode::unavailable;
    // In once mode the refusal may be the answer to its own entry, whose reply was lost.
    const auto words = script_words(reply.error());
    const bool perhaps_its_own = !words.empty() && words.front() == "once";
    if (settled && !has_command_ && !perhaps_its_own) return reply;
    if (settled || !may_repeat_ || !pause(server, context)) {
      return fail(doubtful(std::move(reply.error())));
    }
  }
}

bool script_said(const Error& error, std::string_view word) {
  return first_word(error.store_words) == word;
}

std::vector<std::string_view> script_words(const Error& error) {
  std::vector<std::string_view> words;
  std::string_view rest = error.store_words;
  while (!rest.empty()) {
    words.push_back(first_word(rest));
    rest.remove_prefix(std::min(rest.size(), words.back().size() + 1));
  }
  if (!words.empty()) words.erase(words.begin());
  return words;
}

Error explained(const ResourceName& resource, const Token& token, Error error) {
  if (!script_said(error, "FENCEDOUT")) return error;
  const auto words = script_words(error);
  const auto mark = TokenNumber::parse(words.size() > 2 ? words[2] : "");
  if (!mark) return error;
  // The lock's name in the lineage may have spaces in it.
  const std::string lineage = words.size() > 3 ? error.store_words.substr(static_cast<std::size_t>(
                                                     words[3].data() - error.store_words.data()))
                                               : "";
  Error refused = fence::refusal(resource, token, reason_of(words[0]), {lineage, mark->value()});
  refused.store_words = error.store_words;
  if (error.code == ErrorCode::fenced_out) return refused;
  Error unknown(error.code, "the reply to the command was lost, and now " + refused.message,
                error.store_words);
  unknown.refusal = refused.refusal;
  return unknown;
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
