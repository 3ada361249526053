#include "script.h"

#include <openssl/evp.h>

#include <array>
#include <span>

#include "leasehold/id.h"
#include "leasehold/resp/command.h"

namespace leasehold::redis {
namespace {

// The value of a lock key: "<request> <token> <since> <call> <owner>" while it is held, and with a
// '+' in place of the first space when it was released and is kept. `since` is in milliseconds of
// the server's clock; `call` is the number of the last call that asked for it.
//
// A waiter's entry: "<asked> <channel> <owner>"; the channel is '-' where it cannot be told.
//
// Nothing is written before what may refuse was asked, so that an error means: not done.
constexpr const char* kFunctions = R"lua(
-- A waiter that has not asked for so long is passed over; one that cannot be told asks often.
local life, deaf_life = 6000, 1500

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function signed(value, request, sign)
  return value and string.sub(value, 1, 33) == request .. sign
end

-- What stands in for a value that is no string, or empty: another program's.
local unreadable = '?'

local function is_ours(value)
  return string.find(value, '^' .. string.rep('%x', 32) .. '[ +]')
end

-- A hash of what is at the key, whatever its type; nil if there is nothing.
local function fingerprint(key, value)
  value = value or redis.call('DUMP', key)
  return value and redis.sha1hex(value)
end

-- The first in the queue who lives is told to ask again; its owner is returned. Nil if there is
-- none, or if it is `asking` (then the second result is true). The dead before it lose their places.
local function wake_first(queue, waiters, asking)
  local place = 0
  while true do
    local first = redis.call('ZRANGE', queue, place, place)[1]
    if not first then return nil, false end
    if first == asking then return nil, true end
    local entry = redis.call('HGET', waiters, first) or ''
    local asked, channel, owner = string.match(entry, '^(%d+) (%S+) (.*)$')
    local silent = asked and now() - asked
    local limit = channel == '-' and deaf_life or life
    if asked and silent < limit and silent > -limit then
      -- An error is no proof of death: this user may not be allowed to publish.
      if channel == '-' or redis.pcall('PUBLISH', channel, first) ~= 0 then return owner end
      place = place + 1  -- it cannot be told now, but may only have lost its subscription
    else
      redis.call('ZREM', queue, first)
      redis.call('HDEL', waiters, first)
    end
  end
end
)lua";

// KEYS: lock, token, store, released, queue, waiters
// ARGV: request, owner, ttl, '1' to queue, channel, store id for a new store, life of the counter,
//       number of this call
// Answers {1, token, store, 1 if granted now, 0 if before}, {2, recheck, value, owner} (queued),
// {3, value, owner} (busy).
constexpr const char* kAcquire = R"lua(
local seen = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
local value, last, store, released = seen[1], seen[2], seen[3], seen[4]
if signed(value, ARGV[1], ' ') then
  local head, call, owner = string.match(value, '^(%x+ %d+ %d+ )(%d+)( .*)$')
  local left = redis.call('PTTL', KEYS[1])
  if head and tonumber(call) < tonumber(ARGV[8]) and left > 0 then
    redis.pcall('SET', KEYS[1], head .. ARGV[8] .. owner, 'PX', left)
  end
  return {1, string.match(value, '^%x+ (%d+)'), store or ARGV[6], 0}
end
-- Overtaken by a release that came later.
if released and tonumber(ARGV[8]) <= (tonumber(released) or 0) then return {3, '', ''} end
local ahead, was_first = nil, false
if not value then ahead, was_first = wake_first(KEYS[5], KEYS[6], ARGV[1]) end

if not value and not ahead then
  local token = tonumber(last) or 0
  if not (token >= 0 and token < 9007199254740991) then token = 0 end
  token = string.format('%.0f', token + 1)
  local entry = ARGV[1] .. ' ' .. token .. ' ' .. string.format('%.0f', now()) .. ' ' ..
                ARGV[8] .. ' ' .. ARGV[2]
  if redis.call('SET', KEYS[1], entry, 'NX', 'PX', ARGV[3]) then
    redis.call('SET', KEYS[2], token, 'PX', ARGV[7])
    if not store then
      store = ARGV[6]
      redis.call('SET', KEYS[3], store)
    end
    if was_first then
      redis.call('ZREM', KEYS[5], ARGV[1])
      redis.call('HDEL', KEYS[6], ARGV[1])
    end
    return {1, token, store, 1}
  end
  value = unreadable
end

if value == '' then value = unreadable end
if ARGV[4] ~= '1' then return {3, value or '', ahead or ''} end
local rank = redis.call('ZRANK', KEYS[5], ARGV[1])
if not rank then
  local behind = redis.call('ZRANGE', KEYS[5], -1, -1, 'WITHSCORES')[2] or 0
  redis.call('ZADD', KEYS[5], behind + 1, ARGV[1])
  rank = redis.call('ZCARD', KEYS[5]) - 1
end
redis.call('HSET', KEYS[6], ARGV[1], string.format('%.0f', now()) .. ' ' .. ARGV[5] .. ' ' .. ARGV[2])
redis.call('PEXPIRE', KEYS[5], 10 * life)
redis.call('PEXPIRE', KEYS[6], 10 * life)
local recheck = 2000
if ARGV[5] == '-' then recheck = 250 end
-- The first two look again when the lease runs out, and soon in any case: another program may have
-- deleted the key. The second in case that the first is dead.
if rank < 2 then
  recheck = math.min(recheck, 1000)
  local left = redis.call('PTTL', KEYS[1])
  if left >= 0 then recheck = math.min(recheck, left + 1) end
end
-- Other programs do not queue, and their release tells nobody: to get a turn among them the first
-- must look as often as they do.
if rank == 0 and value and not is_ours(value) then recheck = math.min(recheck, 50) end
return {2, recheck, value or '', ahead or ''}
)lua";

// KEYS: locks. ARGV: request, ttl of each. Answers 1 (renewed) or 0 for each.
constexpr const char* kRenew = R"lua(
local values = redis.call('MGET', unpack(KEYS))
local replies = {}
for i = 1, #KEYS do
  replies[i] = 0
  if signed(values[i], ARGV[2 * i - 1], ' ') then
    replies[i] = redis.call('PEXPIRE', KEYS[i], ARGV[2 * i])
  end
end
return replies
)lua";

// What comes after the key was deleted must not fail: another program may have something of its own
// where the queue is. Waiters that nobody wakes look by themselves.
// KEYS: lock, queue, waiters, released
// ARGV: request, keep for, how long to remember the release ('0': not), number of this call
// Answers 1 (released, or left the queue) or 0.
constexpr const char* kRelease = R"lua(
local value = redis.call('MGET', KEYS[1])[1]
if ARGV[3] ~= '0' then
  local before = tonumber(redis.call('MGET', KEYS[4])[1] or 0) or 0
  local call = before > tonumber(ARGV[4]) and string.format('%.0f', before) or ARGV[4]
  redis.call('SET', KEYS[4], call, 'PX', ARGV[3])
end
if signed(value, ARGV[1], ' ') then
  -- Overtaken by an acquire that came later, of a client that asks again after taking a vote back.
  local call = tonumber(string.match(value, '^%x+ %d+ %d+ (%d+)')) or 0
  if call > tonumber(ARGV[4]) then return 0 end
  if ARGV[2] ~= '0' then
    redis.call('SET', KEYS[1], ARGV[1] .. '+' .. string.sub(value, 34), 'PX', ARGV[2])
  else
    redis.call('DEL', KEYS[1])
    pcall(wake_first, KEYS[2], KEYS[3])
  end
  return 1
end
if signed(value, ARGV[1], '+') then return 1 end
if redis.pcall('ZREM', KEYS[2], ARGV[1]) ~= 1 then return 0 end
redis.pcall('HDEL', KEYS[3], ARGV[1])
if not value then pcall(wake_first, KEYS[2], KEYS[3]) end  -- it may have been the one that was woken
return 1
)lua";

// KEYS: lock, queue, waiters. ARGV: request. Answers 1 or 0.
constexpr const char* kForceRelease = R"lua(
local value = redis.call('MGET', KEYS[1])[1]
local seen = signed(value, ARGV[1], ' ') or signed(value, ARGV[1], '+') or
             string.sub(fingerprint(KEYS[1], value) or '', 1, 32) == ARGV[1]
if not seen then return 0 end
redis.call('DEL', KEYS[1])
pcall(wake_first, KEYS[2], KEYS[3])
return 1
)lua";

// KEYS: lock, token, store, queue, waiters.
// Answers {value, fingerprint ('': the key is not there), what is left, now, token, store, life,
// {request, entry, ...}}.
constexpr const char* kInspect = R"lua(
local seen = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3])
local waiting = {}
for _, request in ipairs(redis.call('ZRANGE', KEYS[4], 0, -1)) do
  waiting[#waiting + 1] = request
  waiting[#waiting + 1] = redis.call('HGET', KEYS[5], request) or ''
end
return {seen[1] or '', fingerprint(KEYS[1], seen[1]) or '', redis.call('PTTL', KEYS[1]),
        now(), seen[2] or '', seen[3] or '', life, waiting}
)lua";

// KEYS: lock, queue, lock, queue ... Answers the numbers, from 1 on, of those that are in use.
constexpr const char* kFindUsed = R"lua(
local used = {}
for i = 1, #KEYS, 2 do
  if redis.call('EXISTS', KEYS[i], KEYS[i + 1]) > 0 then used[#used + 1] = (i + 1) / 2 end
end
return used
)lua";

// KEYS: lock, once. ARGV: request, key, what. Answers 1, or 0 if the request has not the lock.
constexpr const char* kRecord = R"lua(
if not signed(redis.call('MGET', KEYS[1])[1], ARGV[1], ' ') then return 0 end
redis.call('HSETNX', KEYS[2], ARGV[2], ARGV[3])
return 1
)lua";

// KEYS: store. ARGV: id for a new store. Answers the id. Writes in any case, because it is how a
// client finds out at its start whether it may.
constexpr const char* kBegin = R"lua(
local id = redis.call('GET', KEYS[1]) or ARGV[1]
redis.call('SET', KEYS[1], id)
return id
)lua";

std::string sha1(const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr);
  return leasehold::detail::to_hex(std::span<const std::uint8_t>(digest.data(), size));
}

Script with_functions(const char* body) {
  return Script(std::string(kFunctions) + body);
}

}  // namespace

Script::Script(std::string source) : source_(std::move(source)), sha_(sha1(source_)) {}

const Scripts& Scripts::all() {
  static const Scripts scripts{.acquire = with_functions(kAcquire),
                               .renew = with_functions(kRenew),
                               .release = with_functions(kRelease),
                               .force_release = with_functions(kForceRelease),
                               .inspect = with_functions(kInspect),
                               .find_used = Script(kFindUsed),
                               .record = with_functions(kRecord),
                               .begin = Script(kBegin)};
  return scripts;
}

std::string ScriptCall::command(bool in_full) const {
  std::string text;
  text.reserve(512);
  resp::CommandWriter writer(text, 3 + keys.size() + arguments.size());
  writer.arg(in_full ? "EVAL" : "EVALSHA").arg(in_full ? script.source() : script.sha());
  writer.arg(static_cast<std::int64_t>(keys.size()));
  for (const std::string& key : keys) writer.arg(key);
  for (const std::string& argument : arguments) writer.arg(argument);
  return text;
}

}  // namespace leasehold::redis
