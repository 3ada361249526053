#include "leasehold/redis/values.h"

#include "keys.h"
#include "kit/try.h"
#include "leasehold/resp/command.h"
#include "open_server.h"

namespace leasehold::redis {
namespace {

// KEYS: the value. ARGV: '1' if there was one, what it was, the new one.
const Script& replace_script() {
  static const Script script(R"lua(
local now = redis.call('GET', KEYS[1])
if ARGV[1] == '1' then
  if now ~= ARGV[2] then return 0 end
elseif now then
  return 0
end
local left = redis.call('PTTL', KEYS[1])
redis.call('SET', KEYS[1], ARGV[3])
if left >= 0 then redis.call('PEXPIRE', KEYS[1], math.max(left, 1)) end
return 1
)lua");
  return script;
}

}  // namespace

Result<Values> Values::open(std::string_view url) {
  const auto parsed = TRY(server_url(url, "values in Redis are"));
  auto opened = TRY(open_server(parsed));
  return Values(std::move(opened.server));
}

Result<Cell> Values::at(std::string_view key) const {
  if (key.empty() || key.starts_with(kOwnKeys)) {
    return fail(ErrorCode::invalid, "the key of a value must not be empty, nor begin with '" +
                                        std::string(kOwnKeys) + "': such keys are Leasehold's own");
  }
  return Cell(server_, std::string(key));
}

Result<Cell::Seen> Cell::read() const {
  std::string command;
  resp::append_command(command, {"GET", key_});
  auto reply = server_->run(command, one_call());
  if (!reply) {
    // Reading changes nothing, whether or not it was done.
    if (reply.error().code == ErrorCode::outcome_unknown) {
      reply.error().code = ErrorCode::unavailable;
    }
    return fail(std::move(reply.error()));
  }
  if (reply->type == resp::Type::null) return Seen{};
  return Seen{std::move(reply->text)};
}

Result<bool> Cell::write(const Seen& seen, const std::string& value) const {
  const auto reply = TRY(
      server_->run(ScriptCall{replace_script(),
                              {key_},
                              {seen.value ? "1" : "0", seen.value.value_or(std::string()), value}},
                   one_call()));
  return reply.integer == 1;
}

}  // namespace leasehold::redis
