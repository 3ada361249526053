#include "serial_scripts.h"

namespace leasehold::redis {
namespace {

constexpr const char* kFunctions = R"lua(
local ready, busy, owners, attempts, aside, ids = unpack(KEYS)

local format = redis.pcall('HGET', ids, 'format')
if format and format ~= '1' then
  return redis.error_reply('QUEUEFORMAT ' .. (format.err and '0' or format))
end

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function list_of(entity) return ARGV[1] .. entity end

-- The entity is nobody's any more; it waits if there is something to do.
local function let_go(entity, due)
  redis.call('ZREM', busy, entity)
  redis.call('HDEL', owners, entity)
  if redis.call('EXISTS', list_of(entity)) == 1 then redis.call('ZADD', ready, due, entity) end
end

local function is_owner(entity, owner) return redis.call('HGET', owners, entity) == owner end
)lua";

// ARGV: 2 entity, 3 payload. The operation's id.
constexpr const char* kPush = R"lua(
local entity = ARGV[2]
local id = redis.call('HINCRBY', ids, 'last', 1)
if id == 1 then redis.call('HSET', ids, 'format', '1') end
redis.call('RPUSH', list_of(entity), string.format('%d', id) .. ' ' .. ARGV[3])
if not redis.call('ZSCORE', busy, entity) and redis.call('HEXISTS', aside, entity) == 0 then
  redis.call('ZADD', ready, 'NX', now(), entity)
end
return id
)lua";

// ARGV: 2 owner, 3 ttl. Entity, operation and its failures; or nothing.
constexpr const char* kTake = R"lua(
local at = now()
for _, entity in ipairs(redis.call('ZRANGEBYSCORE', busy, '-inf', at)) do let_go(entity, at) end
local entity = redis.call('ZRANGEBYSCORE', ready, '-inf', at, 'LIMIT', 0, 1)[1]
if not entity then return false end
redis.call('ZREM', ready, entity)
redis.call('ZADD', busy, at + ARGV[3], entity)
redis.call('HSET', owners, entity, ARGV[2])
return {entity, redis.call('LINDEX', list_of(entity), 0), redis.call('HGET', attempts, entity) or '0'}
)lua";

// ARGV: 2 entity, 3 owner, 4 ttl. 1, or 0 if it is another's.
constexpr const char* kRenew = R"lua(
if not is_owner(ARGV[2], ARGV[3]) then return 0 end
redis.call('ZADD', busy, now() + ARGV[4], ARGV[2])
return 1
)lua";

// ARGV: 2 entity, 3 owner. 1, or 0 if it is another's.
constexpr const char* kDone = R"lua(
if not is_owner(ARGV[2], ARGV[3]) then return 0 end
redis.call('LPOP', list_of(ARGV[2]))
redis.call('HDEL', attempts, ARGV[2])
let_go(ARGV[2], now())
return 1
)lua";

// ARGV: 2 entity, 3 owner, 4 pause, 5 most attempts, 6 error. 1, 2 if it is set aside now, or 0 if
// it is another's.
constexpr const char* kFailed = R"lua(
local entity = ARGV[2]
if not is_owner(entity, ARGV[3]) then return 0 end
local is_last = redis.call('HINCRBY', attempts, entity, 1) >= tonumber(ARGV[5])
let_go(entity, now() + ARGV[4])
if not is_last then return 1 end
redis.call('ZREM', ready, entity)
redis.call('HSET', aside, entity, ARGV[6])
return 2
)lua";

// ARGV: 2 entity, 3 '1' to drop the operation. 1, or 0 if it is not set aside.
constexpr const char* kResolve = R"lua(
if redis.call('HDEL', aside, ARGV[2]) == 0 then return 0 end
redis.call('HDEL', attempts, ARGV[2])
if ARGV[3] == '1' then redis.call('LPOP', list_of(ARGV[2])) end
let_go(ARGV[2], now())
return 1
)lua";

// At one moment: an entity moves between the three.
constexpr const char* kCount = R"lua(
return redis.call('ZCARD', ready) + redis.call('ZCARD', busy) + redis.call('HLEN', aside)
)lua";

Script with_functions(const char* body) {
  return Script(std::string(kFunctions) + body);
}

}  // namespace

const SerialScripts& SerialScripts::all() {
  static const SerialScripts scripts{.push = with_functions(kPush),
                                     .take = with_functions(kTake),
                                     .renew = with_functions(kRenew),
                                     .done = with_functions(kDone),
                                     .failed = with_functions(kFailed),
                                     .resolve = with_functions(kResolve),
                                     .count = with_functions(kCount)};
  return scripts;
}

}  // namespace leasehold::redis
