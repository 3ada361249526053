// Lua for a lock that several may hold.
#pragma once

namespace leasehold::redis {

// The lock's own key says how it is used: "<request>*shared" or "<request>*permits <number>", with
// the request that came first. It lasts as long as the longest of the grants, and so keeps out who
// asks for the key alone. Who they are is in keys beside it, which mean nothing without it:
//
//   ends     sorted: when the grant of each ends
//   holders  a hash: "<token> <store> <since> <call> <mode> <slot> <owner>", and the note
//   slots    sorted: the slot of each that has a permit
//
// in each under the request, with a '+' before it if it was released and is kept. What another
// program has at one of them keeps new holders out, and lets those who are there leave.
inline constexpr const char* kCrowdFunctions = R"lua(
local most = 9007199254740992

local function is_number_of_permits(text)
  return string.find(text, '^[1-9]%d*$') and tonumber(text) <= 10000
end

-- Nil if it is not the value of a crowd.
local function crowd_at(value, lock, ends, holders, slots)
  if not value or string.sub(value, 33, 33) ~= '*' then return nil end
  local use, number = string.match(value, '^%x+%*(%l+) ?(%d*)$')
  local permits = use == 'permits' and is_number_of_permits(number)
  if not permits and use ~= 'shared' then return nil end
  return {lock = lock, ends = ends, holders = holders, slots = slots,
          used = permits and tonumber(number) or -1}
end

local function end_at(crowd, place)
  local found = redis.pcall('ZRANGE', crowd.ends, place, place, 'WITHSCORES')
  return tonumber(found[2]), found[1]
end

-- Until when; nil if it does not hold.
local function holds(crowd, member)
  local ends = redis.pcall('ZSCORE', crowd.ends, member)
  ends = type(ends) == 'string' and tonumber(ends)
  return ends and ends > now() and ends
end

-- Also if it is not known any more until when.
local function may_leave(crowd, member)
  local ends = holds(crowd, member)
  if ends or not refused(redis.pcall('ZCARD', crowd.ends)) then return ends end
  return redis.pcall('HEXISTS', crowd.holders, member) == 1 and most
end

-- The second result is why it cannot read one.
local function readable_keys(crowd)
  local keys, refusal = {}, nil
  for _, it in ipairs({{'ZCARD', crowd.ends}, {'HLEN', crowd.holders}, {'ZCARD', crowd.slots}}) do
    local reply = redis.pcall(it[1], it[2])
    if refused(reply) then
      refusal = refusal_at(it[2], reply)
    else
      keys[#keys + 1] = it[2]
    end
  end
  return keys, refusal
end

-- The keys beside the lock's last a minute or two longer, so that they need not be told of each end.
local function last_beside(keys, ending, before)
  local minute = math.floor(ending / 60000)
  if minute == math.floor(before / 60000) then return end
  for _, key in ipairs(keys) do
    redis.pcall('PEXPIREAT', key, string.format('%.0f', (minute + 2) * 60000))
  end
end

-- `ends` is what may_leave() has answered. The first write is one that may refuse for all.
local function leave(crowd, member, ends)
  if ends == most then
    redis.call('HDEL', crowd.holders, member)
  else
    redis.call('ZREM', crowd.ends, member)
    redis.pcall('HDEL', crowd.holders, member)
  end
  if crowd.used > 0 then redis.pcall('ZREM', crowd.slots, member) end
end

-- Until when the lock's key lasts: as long as the last of the grants.
local function key_ends(crowd)
  return now() + redis.call('PTTL', crowd.lock)
end

-- After a grant has ended that lasted until `was` (`most`: that is not known any more), or has got
-- another end. True if somebody is left.
local function settle(crowd, was)
  -- Far from the last: that one is still there, and lasts as long as it did.
  if was + 100 < key_ends(crowd) and redis.pcall('ZCARD', crowd.ends) ~= 0 then return true end
  local last = end_at(crowd, -1)
  if last and last > now() then
    if was >= last then redis.pcall('PEXPIREAT', crowd.lock, string.format('%.0f', last)) end
    -- It left long before its end: the keys beside the lock's need not last so long any more.
    if was < most and was - last > 600000 then last_beside(readable_keys(crowd), last, was) end
    return true
  end
  if not last and was == most and redis.pcall('HLEN', crowd.holders) ~= 0 then return true end
  redis.call('DEL', crowd.lock)
  if last then redis.call('DEL', unpack(readable_keys(crowd))) end
  return false
end

-- Tells the first who waits to ask again, if it fits beside those who have the lock; nil: nobody.
local function wake_next(crowd, queue, waiters, permits)
  if redis.call('EXISTS', queue) == 0 then return end
  local room = 0
  if crowd and crowd.used > 0 then
    local count = redis.call('ZCOUNT', crowd.ends, '(' .. string.format('%.0f', now()), '+inf')
    room = (tonumber(redis.call('MGET', permits)[1] or '') or crowd.used) - count
  end
  each_waiter(queue, waiters, nil, function(request, channel, mode)
    local fits = not crowd or (mode < 0 and crowd.used < 0) or (mode > 0 and room > 0)
    return not fits or told(request, channel)
  end)
end
)lua";

// For those who come to a crowd.
inline constexpr const char* kComingFunctions = R"lua(
-- As told(), for one whose time has not come.
local function listens(_, channel)
  if channel == '-' then return true end
  local count = redis.pcall('PUBSUB', 'NUMSUB', channel)
  return refused(count) or tonumber(count[2]) ~= 0
end

-- Counts those who are left, and looks who is the first to end. True if nobody is left, and with
-- them the crowd.
local function drop_ended(crowd)
  crowd.first, crowd.one = end_at(crowd, 0)
  if not crowd.first then return false end  -- it is not known
  while crowd.first and crowd.first <= now() do
    local over = redis.call('ZRANGEBYSCORE', crowd.ends, '-inf', string.format('%.0f', now()),
                            'LIMIT', 0, 100)
    if #over == 0 then return false end
    for _, member in ipairs(over) do leave(crowd, member, 0) end
    crowd.first, crowd.one = end_at(crowd, 0)
  end
  crowd.count = redis.call('ZCARD', crowd.ends)
  if crowd.count == 0 then redis.call('DEL', crowd.lock) end
  return crowd.count == 0
end

local function fits_beside(crowd, mode, set)
  if not crowd.count or crowd.count == 0 or mode == 0 then return false end
  if mode < 0 then return crowd.used < 0 end
  return crowd.used > 0 and crowd.count < (set or crowd.used)
end

-- As the value of a lock that it has alone.
local function value_of_one(crowd)
  local entry = crowd.one and redis.pcall('HGET', crowd.holders, crowd.one)
  if type(entry) ~= 'string' then return nil end
  local kept = string.sub(crowd.one, 1, 1) == '+'
  local token, store, since, call, owner =
      string.match(entry, '^(%d+) (%x+) (%d+) (%d+) %-?%d+ %d+ ([^\n]*)')
  return token and string.sub(crowd.one, -32) .. (kept and '+1' or ' 1') .. call .. ' ' .. token ..
                       ' ' .. format .. ' ' .. store .. ' ' .. since .. ' ' .. owner
end

-- Why nobody can come to them: another program has something in their place.
local function unreadable_part(crowd)
  local ends = redis.pcall('ZCARD', crowd.ends)
  if refused(ends) then return refusal_at(crowd.ends, ends) end
  crowd.count = ends
  if crowd.used < 0 then return nil end
  local slots = redis.pcall('ZCARD', crowd.slots)
  if refused(slots) then return refusal_at(crowd.slots, slots) end
  if slots ~= ends and ends > 0 then return theirs(crowd.slots) end
end

-- What is left where a crowd was whose own key is gone. Answers why it must stay.
local function clear_away(crowd)
  local keys, refusal = readable_keys(crowd)
  if refusal then return refusal end
  redis.call('DEL', unpack(keys))
end

-- The lowest that nobody has: all below `low` are taken.
local function free_slot(crowd)
  local low, high = 0, crowd.count
  while low < high do
    local middle = math.floor((low + high) / 2)
    if redis.call('ZCOUNT', crowd.slots, low, middle) == middle - low + 1 then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

local function begin(crowd, request, ttl)
  local use = crowd.used < 0 and 'shared' or 'permits ' .. crowd.used
  redis.call('SET', crowd.lock, request .. '*' .. use, 'PX', ttl)
  crowd.count, crowd.is_new = 0, true
  return crowd
end

-- Answers its slot, or nothing.
local function join(crowd, request, mode, ending, grant, said)
  local slot = mode > 0 and string.format('%.0f', free_slot(crowd)) or '0'
  redis.call('ZADD', crowd.ends, string.format('%.0f', ending), request)
  redis.call('HSET', crowd.holders, request, grant .. ' ' .. mode .. ' ' .. slot .. ' ' .. said)
  if mode > 0 then redis.call('ZADD', crowd.slots, slot, request) end
  local last = crowd.is_new and 0 or key_ends(crowd)
  if not crowd.is_new and ending > last then
    redis.call('PEXPIREAT', crowd.lock, string.format('%.0f', ending))
  end
  last_beside({crowd.ends, crowd.holders, mode > 0 and crowd.slots or nil}, math.max(ending, last), last)
  return mode > 0 and slot or ''
end
)lua";

// For those who stay in it.
inline constexpr const char* kStayingFunctions = R"lua(
-- `anew`: the keys beside the lock's may have been empty, and so have lost when they expire.
local function stay(crowd, member, ending, anew)
  local last = math.max(key_ends(crowd), 0)
  -- First what a server without memory does not refuse: it refuses nothing after that.
  redis.pcall('PEXPIREAT', crowd.lock, string.format('%.0f', math.max(ending, last)))
  redis.call('ZADD', crowd.ends, string.format('%.0f', ending), member)
  last_beside(readable_keys(crowd), math.max(ending, last), anew and 0 or last)
  settle(crowd, most)
  return 1
end

-- After its release, as one whom nobody renews.
local function keep(crowd, member, ending)
  local entry = redis.pcall('HGET', crowd.holders, member)
  local slot = redis.pcall('ZSCORE', crowd.slots, member)
  leave(crowd, member, 0)
  local kept = '+' .. member
  if type(slot) == 'string' then redis.pcall('ZADD', crowd.slots, slot, kept) end
  if type(entry) == 'string' then redis.pcall('HSET', crowd.holders, kept, entry) end
  stay(crowd, kept, ending, true)
end
)lua";

}  // namespace leasehold::redis
