// Lua for calls that go together: locks that are free, or had alone, in few commands for all.
#pragma once

namespace leasehold::redis {

// Anything else is left undone, and its call goes alone. Each lock may be named once.

// KEYS: each lock
// ARGV: "0" and the number of these calls in 16 digits, "<format> <store>" as far as is known;
//       of each: request, ttl, owner and note
// Answers the token of each, or 0 (not done).
inline constexpr const char* kAcquireMany = R"lua(
local replies, names = {}, {}
for i, lock in ipairs(KEYS) do
  replies[i] = 0
  names[4 * i - 3] = lock
  names[4 * i - 2] = 'leasehold:queue:' .. lock
  names[4 * i - 1] = 'leasehold:permits:' .. lock
  names[4 * i] = 'leasehold:released:' .. ARGV[3 * i]
end
if redis.pcall('GET', 'leasehold:store') ~= ARGV[2] then return replies end

local free = {}
local in_the_way = redis.call('EXISTS', unpack(names))
for i = 1, #KEYS do
  if in_the_way == 0 or redis.call('EXISTS', unpack(names, 4 * i - 3, 4 * i)) == 0 then free[#free + 1] = i end
end
if #free == 0 then return replies end
local last = redis.pcall('INCRBY', 'leasehold:token', #free)
if type(last) ~= 'number' then return replies end
if last < #free or last >= 100000000000000 then  -- as Lua writes numbers, 14 digits are exact
  redis.call('DECRBY', 'leasehold:token', #free)
  return replies
end

for place, i in ipairs(free) do
  local token = last - #free + place
  local ttl = ARGV[3 * i + 1]
  local value = ARGV[3 * i] .. ' ' .. ARGV[1] .. ' ' .. token .. ' ' .. ARGV[2] .. ' -' .. ttl .. ' ' ..
                ARGV[3 * i + 2]
  local written = redis.pcall('SET', KEYS[i], value, 'PX', ttl)
  if written.ok then replies[i] = token end
end
return replies
)lua";

// KEYS: each lock. ARGV: "0" and the number of these calls in 16 digits, each request and a space.
// Answers 1 (released) or 0 (not done) of each.
inline constexpr const char* kReleaseMany = R"lua(
local values = redis.call('MGET', unpack(KEYS))
local replies, over = {}, {}
for i, lock in ipairs(KEYS) do
  local value = values[i]
  replies[i] = 0
  -- With the digit before it the number is also larger if somebody may wait.
  if value and string.sub(value, 1, 33) == ARGV[i + 1] and string.sub(value, 34, 50) - ARGV[1] <= 0 then
    replies[i] = 1
    over[#over + 1] = lock
  end
end
if #over > 0 then redis.call('DEL', unpack(over)) end
return replies
)lua";

}  // namespace leasehold::redis
