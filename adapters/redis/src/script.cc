#include "script.h"

#include <openssl/evp.h>

#include <array>
#include <initializer_list>
#include <span>

#include "crowd_lua.h"
#include "keys.h"
#include "leasehold/id.h"
#include "leasehold/resp/command.h"
#include "many_lua.h"

namespace leasehold::redis {
namespace {

// The value of a lock key: "<request> <waited><call> <token> <format> <store> <since> <owner>"
// while it is held, and with a '+' in place of the first space when it was released and is kept.
// `call` is the number of the last call that asked for it, in 16 digits. `waited`: the digit 1 if
// somebody may wait for the lock, else 0. So who releases it sees at one glance that nobody waits,
// and that no call came later. `store` is the store's id at the grant. `since` is in milliseconds
// of the server's clock; until the key gets another end it is its TTL with a '-' instead, which
// spares each grant a look at the clock. A note follows the owner after a line break. If several
// may hold the lock, see crowd_lua.h.
//
// A waiter's entry: "<asked> <channel> <mode> <owner>", and its note as above; the channel is '-'
// where it cannot be told.
//
// Nothing is written before what may refuse was asked, so that an error means: not done.
// A script runs from its beginning at each call, so what nearly all calls need comes first: even a
// function that is not called costs as much as a small command.

// KEYS: lock
// ARGV: request, ttl, "0" and the number of this call in 16 digits, "<format> <store>" as far as
//       the caller knows, owner and note; mode, unless it is exclusive; channel, if it would wait
// Answers the token, as a number, if the lock is free and nothing is known of it.
constexpr const char* kAcquireAtOnce = R"lua(
if (ARGV[6] or '0') == '0' and redis.pcall('GET', 'leasehold:store') == ARGV[4] and
   redis.call('EXISTS', KEYS[1], 'leasehold:queue:' .. KEYS[1], 'leasehold:permits:' .. KEYS[1],
              'leasehold:released:' .. ARGV[1]) == 0 then
  local token = redis.pcall('INCR', 'leasehold:token')
  if type(token) == 'number' then
    if token > 0 and token < 100000000000000 then  -- as Lua writes numbers, 14 digits are exact
      redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. ARGV[3] .. ' ' .. token .. ' ' .. ARGV[4] .. ' -' ..
                 ARGV[2] .. ' ' .. ARGV[5], 'PX', ARGV[2])
      return token
    end
    redis.call('DECR', 'leasehold:token')
  end
end

-- What nobody needs above. From here on these are
-- KEYS: lock, token, store, released, queue, waiters, permits, ends, holders, slots
-- ARGV: request, owner and note, ttl, '1' to queue, channel, store id for a new store, number of
--       this call, mode
local function beside(word) return 'leasehold:' .. word .. ':' .. KEYS[1] end
local ARGV = {ARGV[1], ARGV[5], ARGV[2], ARGV[7] and '1' or '0', ARGV[7] or '-', ARGV[1],
              string.sub(ARGV[3], 2), ARGV[6] or '0'}
local KEYS = {KEYS[1], 'leasehold:token', 'leasehold:store', 'leasehold:released:' .. ARGV[1],
              beside('queue'), beside('waiters'), beside('permits'), beside('ends'),
              beside('holders'), beside('slots')}
)lua";

// KEYS: lock
// ARGV: request and a space, "0" and the number of this call in 16 digits; unless both are '0':
//       keep for, how long to remember the release
// Answers 1 (released, or left the queue) or 0.
constexpr const char* kReleaseAtOnce = R"lua(
local value = redis.pcall('GET', KEYS[1])
-- With the digit before it the number is also larger if somebody may wait.
if not ARGV[3] and type(value) == 'string' and string.sub(value, 1, 33) == ARGV[1] and
   string.sub(value, 34, 50) - ARGV[2] <= 0 then
  redis.call('DEL', KEYS[1])
  return 1
end
if type(value) == 'table' then
  if string.sub(value.err, 1, 9) ~= 'WRONGTYPE' then return value end
  value = false
end

-- What nobody needs above. From here on these are
-- KEYS: lock, queue, waiters, released, permits, ends, holders, slots
-- ARGV: request, keep for, how long to remember the release ('0': not), number of this call
local function beside(word) return 'leasehold:' .. word .. ':' .. KEYS[1] end
local ARGV = {string.sub(ARGV[1], 1, 32), ARGV[3] or '0', ARGV[4] or '0', string.sub(ARGV[2], 2)}
local KEYS = {KEYS[1], beside('queue'), beside('waiters'), 'leasehold:released:' .. ARGV[1],
              beside('permits'), beside('ends'), beside('holders'), beside('slots')}
)lua";

// `format` is put before it.
constexpr const char* kFunctions = R"lua(
local the_time
local function now()
  if the_time then return the_time end
  local time = redis.call('TIME')
  the_time = time[1] * 1000 + math.floor(time[2] / 1000)
  return the_time
end

local function signed(value, request, sign)
  return value and string.sub(value, 1, 33) == request .. sign
end

local function refused(reply)
  return type(reply) == 'table' and reply.err
end

-- The value of a lock that one has alone, with the time since when, before its key gets another end.
local function dated(key, value)
  local head, ttl, rest = string.match(value, '^(%x+[ +]%d+ %d+ %d+ %x+ )%-(%d+)( .*)$')
  if not head then return value end
  return head .. string.format('%.0f', now() + redis.call('PTTL', key) - ttl) .. rest
end

local function theirs(key)
  return redis.error_reply('WRONGTYPE another program has a value of its own at ' .. key)
end

-- A refusal for the reason that the value at the key is another program's names the key.
local function refusal_at(key, reply)
  local word = string.match(reply.err, '^%S*')
  if word == 'ERR' or word == 'WRONGTYPE' then return theirs(key) end
  return reply
end

)lua";

constexpr const char* kQueueFunctions = R"lua(
-- A waiter that has not asked for so long is passed over; one that cannot be told asks often.
local life, deaf_life = 6000, 1500

-- Calls `visit` with those who wait and live, in their order and up to `asking`, until it answers
-- true. The dead lose their places. True if it came to `asking`. Where another program has a value
-- of its own, nobody waits.
local function each_waiter(queue, waiters, asking, visit)
  local place = 0
  while true do
    local request = redis.pcall('ZRANGE', queue, place, place)[1]
    if not request then return false end
    if request == asking then return true end
    local entry = redis.pcall('HGET', waiters, request) or ''
    if refused(entry) then return false end
    local asked, channel, mode, owner = string.match(entry, '^(%d+) (%S+) (%-?%d+) ([^\n]*)')
    local silent = asked and now() - asked
    local limit = channel == '-' and deaf_life or life
    if asked and silent < limit and silent > -limit then
      if visit(request, channel, tonumber(mode), owner) then return false end
      place = place + 1
    else
      redis.call('ZREM', queue, request)
      redis.call('HDEL', waiters, request)
    end
  end
end

-- False if nobody was there to be told: it may be dead, or have lost only its subscription. An error
-- is no proof of death: this user may not be allowed to publish.
local function told(request, channel)
  return channel == '-' or redis.pcall('PUBLISH', channel, request) ~= 0
end
)lua";

constexpr const char* kStoreFunctions = R"lua(
-- The id in the value of the store's key, "<format> <id>"; nil if there is none. The second result
-- refuses what is not in this format. The first builds wrote the id alone.
local function store_id(key, value)
  if not value then
    if redis.call('EXISTS', key) == 1 then return nil, theirs(key) end
    return nil
  end
  local its, id = string.match(value, '^(%d%d?%d?) (%x+)$')
  if its == format and #id == 32 then return id end
  if #value == 32 and string.find(value, '^%x+$') then its = '1' end
  if not its or its == format then return nil, theirs(key) end
  return nil, redis.error_reply('FORMAT ' .. its)
end
)lua";

constexpr const char* kLookingFunctions = R"lua(
-- What stands in for a value of another program.
local unreadable = '?'

local function is_ours(value)
  if crowd_at(value) then return true end
  local request, store = string.match(value, '^(%x+)[ +]%d+ %d+ ' .. format .. ' (%x+) %-?%d+ ')
  return request and #request == 32 and #store == 32
end
)lua";

// Another program may have anything at a lock's key, of any size: only a part of it is read.
constexpr const char* kForeignFunctions = R"lua(
-- All of a value that is ours; empty if it is no string.
local function beginning(key)
  if redis.call('TYPE', key).ok ~= 'string' then return '' end
  return redis.call('GETRANGE', key, 0, 2047)
end

-- Stands for the holder of a lock when it is another program; nil if there is nothing at the key.
-- A forced release compares it, so that of two that have the lock one after the other each must have
-- its own. What programs lock by is short and partly random: then the whole of it is taken. What is
-- larger is data, which does not change hands: its kind and size are enough, and both ends of a text.
local counts = {hash = 'HLEN', list = 'LLEN', set = 'SCARD', zset = 'ZCARD', stream = 'XLEN'}
local function fingerprint(key)
  local kind = redis.call('TYPE', key).ok
  if kind == 'none' then return nil end
  if kind == 'string' then
    return redis.sha1hex(redis.call('STRLEN', key) .. ' ' .. redis.call('GETRANGE', key, 0, 4095) ..
                         redis.call('GETRANGE', key, -4096, -1))
  end
  local count = counts[kind] and redis.call(counts[kind], key)
  local few = count and count <= 1000
  local size = redis.pcall('MEMORY', 'USAGE', key, 'SAMPLES', few and 0 or 5)
  if refused(size) then size = 0 end
  if few and size <= 65536 then return redis.sha1hex(redis.call('DUMP', key)) end
  return redis.sha1hex(kind .. ' ' .. (count or 0) .. ' ' .. size)
end
)lua";

// Answers {1, token, store, 1 if granted now, 0 if before, slot}, {2, recheck, value, owner}
// (queued), {3, value, owner} (busy), {4, mode, 1 if an operator set it} (the lock is used so).
constexpr const char* kAcquireAlone = R"lua(
-- As digits: INCR counts in 64 bits, and a number of Lua is exact below 2^53 only. The second result
-- is why there is none.
local function next_token(key, last)
  if last and not string.find(last, '^%d+$') then return nil, theirs(key) end
  local token = redis.pcall('INCR', key)
  if refused(token) then return nil, refusal_at(key, token) end
  if token < 9007199254740992 then return string.format('%.0f', token) end
  return redis.call('GET', key)
end

local mode = tonumber(ARGV[8])
local seen = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[7])
local value, set, released = seen[1], seen[5], seen[4]
local store, refusal = store_id(KEYS[3], seen[3])
if refusal then return refusal end
if signed(value, ARGV[1], ' ') then
  local call, token, its_store = string.match(value, '^%x+ %d(%d+) (%d+) %d+ (%x+)')
  if call and tonumber(call) < tonumber(ARGV[7]) then
    redis.pcall('SETRANGE', KEYS[1], 34, ARGV[7])
  end
  return {1, token, its_store, 0, ''}
end
local too_late = released and tonumber(ARGV[7]) <= (tonumber(released) or 0)  -- by its release
local said = ARGV[2]

-- Gives it the lock: `write` is told the token and the store, and answers the slot.
local function grant(write)
  local token, refusal = next_token(KEYS[2], seen[2])
  if refusal then return refusal end
  local slot = write(token, store or ARGV[6])
  if not store then
    store = ARGV[6]
    redis.call('SET', KEYS[3], format .. ' ' .. store)
  end
  return {1, token, store, 1, slot}
end
local others = 0
local function take_alone(token, its_store)
  local waited = others == 0 and ' 0' or ' 1'
  redis.call('SET', KEYS[1], ARGV[1] .. waited .. ARGV[7] .. ' ' .. token .. ' ' .. format .. ' ' ..
             its_store .. ' -' .. ARGV[3] .. ' ' .. said, 'PX', ARGV[3])
  return ''
end

if not value then
  others = mode == 0 and redis.call('EXISTS', KEYS[1], KEYS[5], KEYS[7]) or
           redis.call('EXISTS', KEYS[1], KEYS[5], KEYS[7], KEYS[8], KEYS[9], KEYS[10])
end
if mode == 0 and not value and others == 0 and not too_late then return grant(take_alone) end
)lua";

constexpr const char* kAcquire = R"lua(
-- What has a place was judged when it came: the permits may have been set since.
local function has_place()
  return type(redis.pcall('ZSCORE', KEYS[5], ARGV[1])) == 'string'
end
local function conflict(mode, used, set)
  local mixes = mode == used or (mode <= 0 and used <= 0)
  if mixes or has_place() then return nil end
  return {4, used, set and 1 or 0}
end

local function crowd_of(used)
  return {lock = KEYS[1], ends = KEYS[8], holders = KEYS[9], slots = KEYS[10], used = used}
end

local crowd = crowd_at(value, KEYS[1], KEYS[8], KEYS[9], KEYS[10])
if crowd then
  local entries = redis.pcall('HMGET', crowd.holders, ARGV[1], '+' .. ARGV[1])
  if refused(entries) and mode ~= 0 then return refusal_at(crowd.holders, entries) end
  if entries[1] and holds(crowd, ARGV[1]) then
    local head, call, rest = string.match(entries[1], '^(%d+ %x+ %d+ )(%d+)( .*)$')
    if head and tonumber(call) < tonumber(ARGV[7]) then
      redis.pcall('HSET', crowd.holders, ARGV[1], head .. ARGV[7] .. rest)
    end
    local token, its_store, its_mode, slot =
        string.match(entries[1], '^(%d+) (%x+) %d+ %d+ (%-?%d+) (%d+)')
    if not token then return theirs(crowd.holders) end
    return {1, token, its_store, 0, tonumber(its_mode) > 0 and slot or ''}
  end
  if entries[2] and holds(crowd, '+' .. ARGV[1]) then return {3, '', ''} end
end
if too_late then return {3, '', ''} end
if set then
  if not is_number_of_permits(set) then return theirs(KEYS[7]) end
  set = tonumber(set)
  local refusal = conflict(mode, set, true)
  if refusal then return refusal end
end

-- Readers need not know who has ended, and look now and then.
local counts = crowd and (mode >= 0 or crowd.used > 0 or now() % 10 == 0)
if counts and drop_ended(crowd) then value, crowd, others = nil, nil, 1 end
if value and not set and is_ours(value) then
  local refusal = conflict(mode, crowd and crowd.used or 0)
  if refusal then return refusal end
end

local ahead, has_place_before, somebody_waits = nil, false, false
local room = set or mode
if crowd then
  local refusal = mode ~= 0 and unreadable_part(crowd)
  if refusal then return refusal end
  if fits_beside(crowd, mode, set) then
    value, somebody_waits = nil, redis.call('EXISTS', KEYS[5]) == 1
    room = (set or crowd.used) - (crowd.count or 0)
  else
    value = value_of_one(crowd) or unreadable
  end
elseif not value then
  somebody_waits = others > 0
  if others > 0 and redis.call('EXISTS', KEYS[1]) == 1 then
    value = unreadable  -- no string
  elseif others > 0 then
    if not set and redis.call('EXISTS', KEYS[7]) == 1 then return theirs(KEYS[7]) end
    local refusal = mode ~= 0 and clear_away(crowd_of(mode))
    if refusal then return refusal end
  end
end

if not value and somebody_waits then
  local used
  local reaches = crowd and crowd.used < 0 and listens or told
  somebody_waits = false
  has_place_before = each_waiter(KEYS[5], KEYS[6], ARGV[1], function(request, channel, its, owner)
    somebody_waits = true
    local passes = mode < 0 and its < 0
    if passes or not reaches(request, channel) then return false end
    if mode > 0 and its > 0 and (set or its == mode) then
      room = room - 1
      if room > 0 then return false end
    end
    ahead, used = owner, its
    return true
  end)
  local refusal = ahead and not set and conflict(mode, used)
  if refusal then return refusal end
end

if not value and not ahead then
  local function join_others(token, its_store)
    local grant = token .. ' ' .. its_store .. ' ' .. string.format('%.0f', now()) .. ' ' .. ARGV[7]
    crowd = crowd or begin(crowd_of(mode < 0 and mode or set or mode), ARGV[1], ARGV[3])
    return join(crowd, ARGV[1], mode, now() + ARGV[3], grant, said)
  end
  local reply = grant(mode == 0 and take_alone or join_others)
  if refused(reply) then return reply end
  if has_place_before then
    redis.call('ZREM', KEYS[5], ARGV[1])
    redis.pcall('HDEL', KEYS[6], ARGV[1])
  end
  -- Each one that comes in calls the next, if that fits too.
  if mode ~= 0 and (has_place_before or somebody_waits) then
    pcall(wake_next, crowd, KEYS[5], KEYS[6], KEYS[7])
  end
  return reply
end

if value then value = is_ours(value) and string.match(value, '^[^\n]*') or unreadable end
if ARGV[4] ~= '1' then return {3, value or '', ahead or ''} end
local rank = redis.pcall('ZRANK', KEYS[5], ARGV[1])
if refused(rank) then return refusal_at(KEYS[5], rank) end
-- So that who releases it looks who waits.
if value and not crowd and string.sub(value, 34, 34) == '0' then redis.pcall('SETRANGE', KEYS[1], 33, '1') end
local entered = redis.pcall('HSET', KEYS[6], ARGV[1],
                            string.format('%.0f', now()) .. ' ' .. ARGV[5] .. ' ' .. ARGV[8] ..
                                ' ' .. said)
if refused(entered) then return refusal_at(KEYS[6], entered) end
if not rank then
  local behind = redis.call('ZRANGE', KEYS[5], -1, -1, 'WITHSCORES')[2] or 0
  redis.call('ZADD', KEYS[5], behind + 1, ARGV[1])
  rank = redis.call('ZCARD', KEYS[5]) - 1
end
redis.call('PEXPIRE', KEYS[5], 10 * life)
redis.call('PEXPIRE', KEYS[6], 10 * life)
local recheck = 2000
if ARGV[5] == '-' then recheck = 250 end
-- The first two look again when the lease runs out, and soon in any case: another program may have
-- deleted the key. The second in case that the first is dead.
if rank < 2 then
  recheck = math.min(recheck, 1000)
  local left = redis.call('PTTL', KEYS[1])
  if crowd and mode > 0 and crowd.first then left = math.max(crowd.first - now(), 0) end
  if left >= 0 then recheck = math.min(recheck, left + 1) end
end
-- Other programs do not queue, and their release tells nobody: to get a turn among them the first
-- must look as often as they do.
if rank == 0 and value == unreadable then recheck = math.min(recheck, 50) end
return {2, recheck, value or '', ahead or ''}
)lua";

// KEYS: lock, ends, holders and slots of each. ARGV: request, ttl of each. Answers 1 (renewed) or 0
// for each.
constexpr const char* kRenewAlone = R"lua(
local locks = {}
for i = 1, #KEYS, 4 do locks[#locks + 1] = KEYS[i] end
local values = redis.call('MGET', unpack(locks))
local replies, others = {}, {}
for i = 1, #locks do
  replies[i] = 0
  if signed(values[i], ARGV[2 * i - 1], ' ') then
    local value = dated(locks[i], values[i])
    -- First what a server without memory does not refuse: it refuses nothing after that.
    replies[i] = redis.call('PEXPIRE', locks[i], ARGV[2 * i])
    if value ~= values[i] then redis.pcall('SET', locks[i], value, 'PX', ARGV[2 * i]) end
  elseif values[i] then
    others[#others + 1] = i
  end
end
if #others == 0 then return replies end
)lua";

constexpr const char* kRenew = R"lua(
for _, i in ipairs(others) do
  local request, ttl = ARGV[2 * i - 1], ARGV[2 * i]
  local crowd = crowd_at(values[i], locks[i], KEYS[4 * i - 2], KEYS[4 * i - 1], KEYS[4 * i])
  if crowd and holds(crowd, request) then replies[i] = stay(crowd, request, now() + ttl) end
end
return replies
)lua";

// What comes after the key was deleted must not fail: another program may have something of its own
// where the queue is. Waiters that nobody wakes look by themselves.
constexpr const char* kReleaseAlone = R"lua(
if ARGV[3] ~= '0' then
  local before = tonumber(redis.call('MGET', KEYS[4])[1] or 0) or 0
  local call = before > tonumber(ARGV[4]) and string.format('%.0f', before) or ARGV[4]
  redis.call('SET', KEYS[4], call, 'PX', ARGV[3])
end
if signed(value, ARGV[1], ' ') then
  -- Overtaken by an acquire that came later, of a client that asks again after taking a vote back.
  local call = tonumber(string.match(value, '^%x+ %d(%d+)')) or 0
  if call > tonumber(ARGV[4]) then return 0 end
  if ARGV[2] ~= '0' then
    redis.call('SET', KEYS[1], ARGV[1] .. '+' .. string.sub(dated(KEYS[1], value), 34), 'PX', ARGV[2])
  else
    redis.call('DEL', KEYS[1])
    if redis.call('EXISTS', KEYS[2]) == 1 then pcall(each_waiter, KEYS[2], KEYS[3], nil, told) end
  end
  return 1
end
if signed(value, ARGV[1], '+') then return 1 end
)lua";

constexpr const char* kRelease = R"lua(
local crowd = crowd_at(value, KEYS[1], KEYS[6], KEYS[7], KEYS[8])
local ends = crowd and may_leave(crowd, ARGV[1])
if ends then
  local entry = ARGV[3] ~= '0' and redis.pcall('HGET', crowd.holders, ARGV[1])
  local call = type(entry) == 'string' and tonumber(string.match(entry, '^%d+ %x+ %d+ (%d+)')) or 0
  if call > tonumber(ARGV[4]) then return 0 end
  if ARGV[2] ~= '0' then
    if not holds(crowd, ARGV[1]) then return theirs(crowd.ends) end
    keep(crowd, ARGV[1], now() + ARGV[2])
  else
    leave(crowd, ARGV[1], ends)
    pcall(wake_next, settle(crowd, ends) and crowd, KEYS[2], KEYS[3], KEYS[5])
  end
  return 1
end
if crowd and may_leave(crowd, '+' .. ARGV[1]) then return 1 end
if redis.pcall('ZREM', KEYS[2], ARGV[1]) ~= 1 then return 0 end
redis.pcall('HDEL', KEYS[3], ARGV[1])
-- It may have been the one that was woken, or that kept others back.
if crowd or not value then pcall(wake_next, crowd, KEYS[2], KEYS[3], KEYS[5]) end
return 1
)lua";

// KEYS: lock, queue, waiters, permits, ends, holders, slots. ARGV: request. Answers 1 or 0.
constexpr const char* kForceRelease = R"lua(
local value = beginning(KEYS[1])
local crowd = crowd_at(value, KEYS[1], KEYS[5], KEYS[6], KEYS[7])
for _, member in ipairs(crowd and {ARGV[1], '+' .. ARGV[1]} or {}) do
  local ends = may_leave(crowd, member)
  if ends then
    leave(crowd, member, ends)
    pcall(wake_next, settle(crowd, ends) and crowd, KEYS[2], KEYS[3], KEYS[4])
    return 1
  end
end
local seen = signed(value, ARGV[1], ' ') or signed(value, ARGV[1], '+') or
             string.sub(fingerprint(KEYS[1]) or '', 1, 32) == ARGV[1]
if not seen then return 0 end
redis.call('DEL', KEYS[1])
pcall(each_waiter, KEYS[2], KEYS[3], nil, told)
return 1
)lua";

// KEYS: store, lock, queue, waiters, permits, ends, holders, slots. ARGV: number, or '' to forget
// it. Answers {1}, or {4, mode} (the lock is used so).
constexpr const char* kSetPermits = R"lua(
local seen = redis.call('MGET', KEYS[1], KEYS[2], KEYS[5])
local _, refusal = store_id(KEYS[1], seen[1])
if refusal then return refusal end
local value, before = seen[2], seen[3]
local is_theirs = before and not is_number_of_permits(before)
if is_theirs or (not before and redis.call('EXISTS', KEYS[5]) == 1) then return theirs(KEYS[5]) end
local crowd = crowd_at(value, KEYS[2], KEYS[6], KEYS[7], KEYS[8])
if crowd and drop_ended(crowd) then value, crowd = nil, nil end
local function say(permits)
  local left = redis.call('PTTL', KEYS[2])
  if left > 0 then
    redis.call('SET', KEYS[2], string.sub(value, 1, 33) .. 'permits ' .. permits, 'PX', left)
  end
end
if ARGV[1] == '' then
  redis.call('DEL', KEYS[5])
  -- From now on the number counts again that those who hold it have named.
  local named
  for _, entry in ipairs(crowd and crowd.used > 0 and redis.pcall('HVALS', crowd.holders) or {}) do
    local its = tonumber(string.match(entry, '^%d+ %x+ %d+ %d+ (%d+)'))
    if its and its > 0 and (not named or its < named) then named = its end
  end
  if named then
    say(string.format('%.0f', named))
    crowd.used = named
    pcall(wake_next, crowd, KEYS[3], KEYS[4], KEYS[5])
  end
  return {1}
end
-- Another program has the lock alone, too.
local alone = value or redis.call('EXISTS', KEYS[2]) == 1
local used = crowd and crowd.used or alone and 0 or 1
if used > 0 and not crowd then
  each_waiter(KEYS[3], KEYS[4], nil, function(_, _, mode)
    used = mode
    return mode <= 0
  end)
end
if used <= 0 then return {4, used} end
redis.call('SET', KEYS[5], ARGV[1])
if crowd then say(ARGV[1]) end
pcall(wake_next, crowd, KEYS[3], KEYS[4], KEYS[5])
return {1}
)lua";

// KEYS: lock, store, queue, waiters, permits, ends, holders.
// Answers {value, fingerprint ('': the key is not there), what is left, now, store, life,
// {request, entry, ...}, {holder, end, entry, ...}, permits that were set}.
constexpr const char* kInspect = R"lua(
local waiting = {}
for _, request in ipairs(redis.pcall('ZRANGE', KEYS[3], 0, -1)) do
  local entry = redis.pcall('HGET', KEYS[4], request)
  if refused(entry) then break end
  waiting[#waiting + 1] = request
  waiting[#waiting + 1] = entry or ''
end
local seen = redis.call('MGET', KEYS[2], KEYS[5])
local store = store_id(KEYS[2], seen[1])
local value, id = beginning(KEYS[1]), fingerprint(KEYS[1]) or ''
local crowd, beside = crowd_at(value, KEYS[1], KEYS[6], KEYS[7]), {}
if crowd then
  local ends = redis.pcall('ZRANGE', crowd.ends, 0, -1, 'WITHSCORES')
  local at = now()
  for i = 1, #ends, 2 do
    if tonumber(ends[i + 1]) > at then
      local entry = redis.pcall('HGET', crowd.holders, ends[i])
      beside[#beside + 1] = ends[i]
      beside[#beside + 1] = ends[i + 1]
      beside[#beside + 1] = type(entry) == 'string' and entry or ''
    end
  end
  -- All are over, as the key will be in a moment.
  if #ends > 0 and #beside == 0 then value, id = '', '' end
end
return {value, id, redis.call('PTTL', KEYS[1]), now(), store or '', life, waiting, beside,
        seen[2] and is_number_of_permits(seen[2]) and seen[2] or ''}
)lua";

// KEYS: any. Answers the numbers, from 1 on, of those that are locks of ours.
constexpr const char* kFindOurs = R"lua(
local ours = {}
for i, key in ipairs(KEYS) do
  if is_ours(beginning(key)) then ours[#ours + 1] = i end
end
return ours
)lua";

// KEYS: lock, once, ends. ARGV: request, key, what. Answers 1, or 0 if the request has not the
// lock.
constexpr const char* kRecord = R"lua(
local value = redis.call('MGET', KEYS[1])[1]
local crowd = crowd_at(value, KEYS[1], KEYS[3])
if not signed(value, ARGV[1], ' ') and not (crowd and holds(crowd, ARGV[1])) then return 0 end
redis.call('HSETNX', KEYS[2], ARGV[2], ARGV[3])
return 1
)lua";

// KEYS: store. ARGV: id for a new store, 'begin', 'rotate' or 'look'. Answers the id. To begin
// writes in any case, because it is how a client finds out at its start whether it may.
constexpr const char* kBegin = R"lua(
local id, refusal = store_id(KEYS[1], redis.call('MGET', KEYS[1])[1])
if refusal then return refusal end
if ARGV[2] == 'look' then return id or '' end
if not id or ARGV[2] == 'rotate' then id = ARGV[1] end
redis.call('SET', KEYS[1], format .. ' ' .. id)
return id
)lua";

std::string sha1(const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr);
  return leasehold::detail::to_hex(std::span<const std::uint8_t>(digest.data(), size));
}

Script script_of(std::initializer_list<std::string> parts) {
  std::string source;
  for (const std::string& part : parts) source += part;
  return Script(std::move(source));
}

std::string functions() {
  return "local format = '" + std::string(kStoreFormat) + "'" + kFunctions;
}

}  // namespace

Script::Script(std::string source) : source_(std::move(source)), sha_(sha1(source_)) {}

const Scripts& Scripts::all() {
  static const Scripts scripts{
      .acquire =
          script_of({kAcquireAtOnce, functions(), kStoreFunctions, kAcquireAlone, kQueueFunctions,
                     kCrowdFunctions, kComingFunctions, kLookingFunctions, kAcquire}),
      .acquire_many = script_of({kAcquireMany}),
      .renew = script_of(
          {functions(), kRenewAlone, kQueueFunctions, kCrowdFunctions, kStayingFunctions, kRenew}),
      .release = script_of({kReleaseAtOnce, functions(), kQueueFunctions, kReleaseAlone,
                            kCrowdFunctions, kStayingFunctions, kRelease}),
      .release_many = script_of({kReleaseMany}),
      .force_release = script_of(
          {functions(), kQueueFunctions, kCrowdFunctions, kForeignFunctions, kForceRelease}),
      .set_permits = script_of({functions(), kStoreFunctions, kQueueFunctions, kCrowdFunctions,
                                kComingFunctions, kSetPermits}),
      .inspect = script_of({functions(), kStoreFunctions, kQueueFunctions, kCrowdFunctions,
                            kForeignFunctions, kInspect}),
      .find_ours = script_of({functions(), kQueueFunctions, kCrowdFunctions, kLookingFunctions,
                              kForeignFunctions, kFindOurs}),
      .record = script_of({functions(), kQueueFunctions, kCrowdFunctions, kRecord}),
      .begin = script_of({functions(), kStoreFunctions, kBegin})};
  return scripts;
}

void ScriptCall::append_to(std::string& commands, bool in_full) const {
  resp::CommandWriter writer(commands, 3 + keys.size() + arguments.size());
  writer.arg(in_full ? "EVAL" : "EVALSHA").arg(in_full ? script.source() : script.sha());
  writer.arg(static_cast<std::int64_t>(keys.size()));
  for (const std::string& key : keys) writer.arg(key);
  for (const std::string& argument : arguments) writer.arg(argument);
}

std::string ScriptCall::command(bool in_full) const {
  std::string text;
  text.reserve(512);
  append_to(text, in_full);
  return text;
}

}  // namespace leasehold::redis
