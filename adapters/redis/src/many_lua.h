// Lua for calls that go together: locks that are free, or had alone, in few commands for all.
#pragma once

namespace leasehold::redis {

// Anything else is left undone, and its call goes alone. Each lock may be named once.

// KEYS: store, token; of each: lock, queue, permits, released
// ARGV: of each: request, ttl, "<number of the call> <owner>" and the note
// Answers {store, token or 0 (not done), ...}.
inline constexpr const char* kAcquireMany = R"lua(
local nobody = {''}
for i = 3, #KEYS, 4 do nobody[#nobody + 1] = 0 end
local seen = redis.call('MGET', KEYS[1], KEYS[2])
local store, refusal = store_id(KEYS[1], seen[1])
local counts = not seen[2] or string.find(seen[2], '^%d+$')
if refusal or not store or not counts then return nobody end

local free = {}
local in_the_way = redis.call('EXISTS', unpack(KEYS, 3))
for i = 3, #KEYS, 4 do
  if in_the_way == 0 or redis.call('EXISTS', unpack(KEYS, i, i + 3)) == 0 then free[#free + 1] = i end
end
if #free == 0 then return nobody end
local last = redis.pcall('INCRBY', KEYS[2], #free)
if refused(last) or last >= 9007199254740992 then return nobody end

local replies = nobody
replies[1] = store
local common = ' ' .. store .. ' ' .. string.format('%.0f', now()) .. ' '
for place, i in ipairs(free) do
  local token = last - #free + place
  local which = (i - 3) / 4
  local value = ARGV[3 * which + 1] .. ' ' .. string.format('%.0f', token) .. common ..
                ARGV[3 * which + 3]
  local written = redis.pcall('SET', KEYS[i], value, 'PX', ARGV[3 * which + 2])
  if not refused(written) then replies[which + 2] = token end
end
return replies
)lua";

// KEYS: of each: lock, queue. ARGV: of each: request, number of the call.
// Answers 1 (released) or 0 (not done) of each.
inline constexpr const char* kReleaseMany = R"lua(
local locks, queues = {}, {}
for i = 1, #KEYS, 2 do
  locks[#locks + 1] = KEYS[i]
  queues[#queues + 1] = KEYS[i + 1]
end
local values = redis.call('MGET', unpack(locks))
local somebody_waits = redis.call('EXISTS', unpack(queues)) ~= 0
local replies, over = {}, {}
for i, lock in ipairs(locks) do
  replies[i] = 0
  if signed(values[i], ARGV[2 * i - 1], ' ') then
    local call = tonumber(string.match(values[i], '^%x+ %d+ %x+ %d+ (%d+)')) or 0
    local waited_for = somebody_waits and redis.call('EXISTS', queues[i]) ~= 0
    if call <= tonumber(ARGV[2 * i]) and not waited_for then
      replies[i] = 1
      over[#over + 1] = lock
    end
  end
end
if #over > 0 then redis.call('DEL', unpack(over)) end
return replies
)lua";

}  // namespace leasehold::redis
