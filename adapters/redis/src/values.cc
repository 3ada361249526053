#include "leasehold/redis/values.h"

#include <memory>
#include <utility>

#include "keys.h"
#include "kit/question.h"
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

class ServerValues final : public KeyedStore<SeenValue> {
 public:
  explicit ServerValues(std::shared_ptr<Server> server) : server_(std::move(server)) {}

  Status check(const std::string& key) const override {
    if (!key.empty() && !key.starts_with(kOwnKeys)) return {};
    return fail(ErrorCode::invalid, "the key of a value must not be empty, nor begin with '" +
                                        std::string(kOwnKeys) + "': such keys are Leasehold's own");
  }

  Result<SeenValue> read(const std::string& key) override {
    std::string command;
    resp::append_command(command, {"GET", key});
    auto reply = TRY(kit::question(server_->run(command, one_call())));
    if (reply.type == resp::Type::null) return SeenValue{};
    return SeenValue{std::move(reply.text)};
  }

  Result<bool> write(const std::string& key, const SeenValue& seen,
                     const std::string& value) override {
    const ScriptCall call{replace_script(),
                          {key},
                          {seen.value ? "1" : "0", seen.value.value_or(std::string()), value}};
    const auto reply = TRY(server_->run(call, one_call()));
    return reply.integer == 1;
  }

 private:
  const std::shared_ptr<Server> server_;
};

}  // namespace

Result<Values> Values::open(std::string_view url) {
  const auto parsed = TRY(server_url(url, "values in Redis are"));
  auto opened = TRY(open_server(parsed));
  return Values(std::make_shared<ServerValues>(std::move(opened.server)));
}

}  // namespace leasehold::redis
