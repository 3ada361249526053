#include "leasehold/redis/once.h"

#include "kit/text/number.h"
#include "kit/text/other_version.h"
#include "kit/text/visible_text.h"
#include "kit/try.h"
#include "leasehold/random.h"
#include "open_server.h"
#include "waiting/backoff.h"

namespace leasehold::redis {
namespace {

// A key is a hash: format, request (who works or has worked), parameters, and the result once it is
// there.
constexpr std::int64_t kFormat = 1;

// ARGV: request, parameters, how long to work. Answers {1} (work), {2, result}, {3} (somebody else
// is at work), {4} (other parameters), {5, format} (another one).
const Script& begin_script() {
  static const Script script(R"lua(
local seen = redis.call('HMGET', KEYS[1], 'request', 'parameters', 'result', 'format')
if seen[4] ~= '1' then
  if redis.call('EXISTS', KEYS[1]) == 1 then return {5, seen[4] or '0'} end
  redis.call('HSET', KEYS[1], 'format', '1', 'request', ARGV[1], 'parameters', ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return {1}
end
if seen[2] ~= ARGV[2] then return {4} end
if seen[3] then return {2, seen[3]} end
if seen[1] == ARGV[1] then return {1} end
return {3}
)lua");
  return script;
}

// ARGV: request, parameters, result, how long to keep it. Answers 1, or 0: the key is another's.
const Script& finish_script() {
  static const Script script(R"lua(
local request = redis.call('HGET', KEYS[1], 'request')
if request and request ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'format', '1', 'request', ARGV[1], 'parameters', ARGV[2], 'result',
           ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1
)lua");
  return script;
}

// ARGV: request.
const Script& give_back_script() {
  static const Script script(R"lua(
local seen = redis.call('HMGET', KEYS[1], 'request', 'result')
if seen[1] ~= ARGV[1] or seen[2] then return 0 end
return redis.call('DEL', KEYS[1])
)lua");
  return script;
}

std::string key_of(const OnceKey& key) {
  return "leasehold:result:" + key.str();
}

std::string number(Millis time) {
  return std::to_string(time.count());
}

// A time that the server cannot add to its clock would leave a key that never ends.
constexpr Millis kLongest = std::chrono::hours(24 * 3650);

bool is_lifetime(Millis time) {
  return time >= Millis(1) && time <= kLongest;
}

Error other_format(const OnceKey& key, std::string_view found) {
  return Error(
      ErrorCode::unavailable,
      "what is stored under key " + kit::in_quotes(key.str()) + " has format " +
          kit::visible(found) + ", and this program knows only format " + std::to_string(kFormat) +
          kit::remedy_for_version(
              kit::digits_in<std::int64_t>(found).value_or(0), kFormat,
              "delete the key " + kit::in_quotes(key_of(key)) + "; the work is done again then"));
}

// Every script may be sent again under the same request.
Result<resp::Value> run_twice(Server& server, const ScriptCall& call) {
  auto reply = server.run(call, one_call());
  if (reply) return reply;
  return server.run(call, one_call());
}

}  // namespace

KeyAtWork::KeyAtWork(std::shared_ptr<Server> server, OnceKey key, std::string parameters,
                     const RequestId& request, Millis keep_for)
    : server_(std::move(server)),
      key_(std::move(key)),
      parameters_(std::move(parameters)),
      request_(request),
      keep_for_(keep_for) {}

KeyAtWork::~KeyAtWork() {
  if (!server_) return;
  // If this fails, the key is free again when its time to work is over.
  (void)server_->run(ScriptCall{give_back_script(), {key_of(key_)}, {request_.hex()}}, one_call());
}

Result<OnceResult> KeyAtWork::finish(Result<std::string> result) {
  if (!result) return fail(std::move(result.error()));
  TRY(leasehold::detail::check_once_result(*result));
  const std::shared_ptr<Server> server = std::exchange(server_, nullptr);
  auto stored =
      run_twice(*server, ScriptCall{finish_script(),
                                    {key_of(key_)},
                                    {request_.hex(), parameters_, *result, number(keep_for_)}});
  if (!stored) {
    return fail(ErrorCode::outcome_unknown,
                "the work was done under key " + kit::in_quotes(key_.str()) +
                    ", but its result may not be stored: " + sentence(stored.error()));
  }
  if (stored->integer == 1) return OnceResult{std::move(*result), false};
  return fail(ErrorCode::lost, "the work under key " + kit::in_quotes(key_.str()) +
                                   " took so long that somebody else has begun it too");
}

Result<Once> Once::open(std::string_view url, const OnceLifetimes& lifetimes) {
  if (!is_lifetime(lifetimes.working_for) || !is_lifetime(lifetimes.keep_for)) {
    return fail(ErrorCode::invalid,
                "working_for and keep_for must be at least 1 ms and at most 3650 days, not " +
                    number(lifetimes.working_for) + " ms and " + number(lifetimes.keep_for) +
                    " ms");
  }
  const auto parsed = TRY(server_url(url, "keys in Redis are"));
  auto opened = TRY(open_server(parsed));
  return Once(std::move(opened.server), lifetimes);
}

Result<Once::Begun> Once::begin(std::string_view key, std::string_view parameters,
                                const OnceOptions& options) const {
  auto name = TRY(leasehold::detail::check_once(key, parameters));
  const RequestId request = RequestId::random(system_random());
  const ScriptCall call{begin_script(),
                        {key_of(name)},
                        {request.hex(), std::string(parameters), number(lifetimes_.working_for)}};
  // Redis tells nobody when a work is done, so this asks again.
  for (waiting::Backoff backoff(options.wait, options.stop);;) {
    auto reply = run_twice(*server_, call);
    if (!reply) {
      // The key may have been had, with only the replies lost: the destructor gives it back.
      (void)KeyAtWork(server_, name, std::string(parameters), request, lifetimes_.keep_for);
      reply.error().code = ErrorCode::unavailable;  // the work was not run
      return fail(std::move(reply.error()));
    }
    switch (reply->at(0).integer) {
      case 1:
        return Begun(KeyAtWork(server_, std::move(name), std::string(parameters), request,
                               lifetimes_.keep_for));
      case 2:
        return OnceResult{reply->at(1).text, true};
      case 4:
        return fail(leasehold::detail::other_parameters(name));
      case 5:
        return fail(other_format(name, reply->at(1).text));
      default:
        break;
    }
    if (!backoff.pause()) {
      return fail(
          backoff.give_up("somebody else is at work under key " + kit::in_quotes(name.str())));
    }
  }
}

}  // namespace leasehold::redis
