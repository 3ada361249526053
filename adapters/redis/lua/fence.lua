-- The fence of Leasehold for Redis, version 2: runs one command if the token may enter.
--
-- KEYS  1: the mark: 'leasehold:fence:' and the resource's name. Then the keys of the command.
-- ARGV  1: mode: enter, single, read, claim, confirm, adopt, reset
--       2: token, a decimal number without sign and leading zeros
--       3: lineage: 32 lower-case hexadecimal digits, '/', the lock's name; '' in claim and confirm
--       4: request: 32 lower-case hexadecimal digits; '' in adopt
--       5: sequence: a number that orders the writes of one holder, or ''
--       6, ...: the command; none: just enter
--
-- Answers what the command answers; OK without one; REPEATED, and does nothing, if the holder's last
-- write had this sequence number. An error means that the command has done nothing:
--   FENCEDOUT <why> <offered> <mark> [lineage]
--     why: lineage, lower, adopted (lower than what was adopted), twice, single, order, claim
--     mark: the number that the token was compared with
--   FENCEINVALID <sentence>
--   FENCEVERSION <sentence>
--   and the errors of the command itself
--
-- read: beside others who read, with higher or lower tokens; refused below the token of a writer. The
--   command must be one that Redis calls readonly, and there is no sequence. From then on nobody
--   enters with a lower token to write.
-- claim: the token is the number of claims so far (0: none). Answers the number of this one, or
--   FENCEMOVED <number> if there were more.
-- confirm: the token is the number of the claim.
-- adopt: lets the lineage in from the token on, and nobody else; FENCELOWER <mark> if the mark of
--   this lineage is higher.
-- reset: forgets all but the refusals; the other arguments are empty. FENCEUNKNOWN if there is no mark.
local mode, token, lineage, request, sequence = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
if #KEYS < 1 or #ARGV < 5 or #ARGV > 4000 then
  return redis.error_reply('FENCEINVALID there must be a key, five arguments before the command, and ' ..
                           'at most 3995 words of the command')
end
-- What the command would do, as text to compare: itself, or its digest if that is shorter.
local function digest_of_command()
  local words = table.concat(ARGV, '\0', 6)
  return #words > 60 and redis.sha1hex(words) or words
end
-- What an error of the command undoes is the sequence number only: the mark stays.
local function run_numbered(digest, last_sequence, last_digest)
  redis.call('HSET', KEYS[1], 'sequence', sequence, 'digest', digest)
  local reply = redis.pcall(unpack(ARGV, 6))
  if type(reply) == 'table' and reply.err then
    if last_sequence then
      redis.call('HSET', KEYS[1], 'sequence', last_sequence, 'digest', last_digest)
    else
      redis.call('HDEL', KEYS[1], 'sequence', 'digest')
    end
  end
  return reply
end

-- The holder that has entered, again, comes most often, so this is quick: a mark that equals needs no
-- other check, nor does a number that a number of Lua holds exactly and that is higher than the last.
if mode == 'enter' and #ARGV > 5 then
  local last = sequence == '' and
    redis.call('HMGET', KEYS[1], 'version', 'lineage', 'token', 'request', 'reader')
    or redis.call('HMGET', KEYS[1], 'version', 'lineage', 'token', 'request', 'reader', 'sequence',
                  'digest')
  if last[1] == '2' and last[2] == lineage and last[3] == token and last[4] == request and
     not last[5] then
    if sequence == '' then return redis.pcall(unpack(ARGV, 6)) end
    if last[6] and #sequence <= 15 and string.find(sequence, '^[1-9]%d*$') and
       tonumber(last[6]) < tonumber(sequence) then
      return run_numbered(digest_of_command(), last[6], last[7])
    end
  end
end

local mark = redis.call('HMGET', KEYS[1], 'version', 'lineage', 'token', 'request', 'sequence',
                        'digest', 'least', 'claim', 'reader', 'reader_request')
local version, its_lineage, its_token, its_request = mark[1], mark[2], mark[3], mark[4]
local its_sequence, its_digest, least, claim = mark[5], mark[6], mark[7], mark[8]
-- The highest that has entered to read is there only while it is above the last that may have written.
local reader, reader_request = mark[9], mark[10]
local threshold = reader or its_token or least
local same = its_token == token

local function invalid(sentence) return redis.error_reply('FENCEINVALID ' .. sentence) end

-- Numbers are texts of digits: a number of Lua is exact to 2^53 only.
local function below(a, b)
  if #a ~= #b then return #a < #b end
  local high, other = tonumber(string.sub(a, 1, 10)), tonumber(string.sub(b, 1, 10))
  if high ~= other then return high < other end
  return (tonumber(string.sub(a, 11)) or 0) < (tonumber(string.sub(b, 11)) or 0)
end
local function is_number(text)
  return string.find(text, '^[1-9]%d*$') and not below('9223372036854775807', text)
end
local function is_id(text) return #text == 32 and not string.find(text, '[^0-9a-f]') end
-- 1 to 512 bytes of UTF-8 without control characters.
local function is_name(text)
  if #text < 1 or #text > 512 or string.find(text, '%c') or
     string.find(text, '\194[\128-\159]') or string.find(text, '\226\128[\168\169]') then
    return false
  end
  for _, sequences in ipairs({'[\194-\223][\128-\191]', '\224[\160-\191][\128-\191]',
                              '[\225-\236\238\239][\128-\191][\128-\191]',
                              '\237[\128-\159][\128-\191]',
                              '\240[\144-\191][\128-\191][\128-\191]',
                              '[\241-\243][\128-\191][\128-\191][\128-\191]',
                              '\244[\128-\143][\128-\191][\128-\191]'}) do
    text = string.gsub(text, sequences, 'x')
  end
  return not string.find(text, '[\128-\255]')
end

if string.sub(KEYS[1], 1, 16) ~= 'leasehold:fence:' then
  return invalid("the first key must be 'leasehold:fence:' and the name of the resource")
end

local function refuse(why, compared_with)
  redis.pcall('HSET', KEYS[1], 'version', '2')
  redis.pcall('HINCRBY', KEYS[1], 'refused', 1)
  return redis.error_reply('FENCEDOUT ' .. why .. ' ' .. token .. ' ' .. (compared_with or '0') ..
                           (its_lineage and ' ' .. its_lineage or ''))
end

if version and version ~= '2' then
  local newer = is_number(version) and below('2', version)
  return redis.error_reply('FENCEVERSION the mark was written by version ' .. version ..
    ' of the fence, and this is version 2; ' ..
    (newer and 'use a program that is at least as new' or 'what a build before the first release ' ..
     'wrote is not read: to begin afresh, stop all who hold a lock, since the fence forgets who ' ..
     'has entered, and delete the key of the mark'))
end
if not version and not is_name(string.sub(KEYS[1], 17)) then
  return invalid('a resource name has 1 to 512 bytes of UTF-8 without control characters')
end
if mode == 'reset' then
  if not version then return redis.error_reply('FENCEUNKNOWN there is no such mark') end
  redis.call('HDEL', KEYS[1], 'lineage', 'token', 'request', 'sequence', 'digest', 'least', 'claim',
             'reader', 'reader_request')
  return redis.status_reply('OK')
end
local claims, reads = mode == 'claim' or mode == 'confirm', mode == 'read'
if not claims and not reads and mode ~= 'enter' and mode ~= 'single' and mode ~= 'adopt' then
  return invalid('mode must be enter, single, read, claim, confirm, adopt or reset')
end
if not same and not is_number(token) and not (mode == 'claim' and token == '0') then
  return invalid('token must be a whole number from 1 to 9223372036854775807')
end
if request ~= its_request and mode ~= 'adopt' and not is_id(request) then
  return invalid('request must be 32 lower-case hexadecimal digits')
end
if sequence ~= '' and not is_number(sequence) then
  return invalid('sequence must be empty or a whole number from 1 to 9223372036854775807')
end
if claims then
  if lineage ~= '' then return invalid('a claim has no lineage') end
  if its_lineage then return invalid('this resource is used with tokens, not with claims') end
elseif lineage ~= its_lineage and
       not (is_id(string.sub(lineage, 1, 32)) and string.sub(lineage, 33, 33) == '/' and
            is_name(string.sub(lineage, 34))) then
  return invalid('lineage must be 32 lower-case hexadecimal digits, a slash and the lock name')
end

-- What Redis says of a command; of those that are named by two words, where it tells them apart.
local function is_readonly(name, word)
  for _, command in ipairs({name, name .. '|' .. (word or '')}) do
    local told = redis.pcall('COMMAND', 'INFO', command)
    for _, flag in ipairs(not told.err and told[1] and told[1][3] or {}) do
      if (flag.ok or flag) == 'readonly' then return true end
    end
  end
  return false
end
if reads then
  if sequence ~= '' then return invalid('whoever reads has no sequence number') end
  if #ARGV > 5 and not is_readonly(ARGV[6], ARGV[7]) then
    return invalid('whoever enters to read must change nothing, and Redis does not call this ' ..
                   'command readonly')
  end
end

if mode == 'adopt' then
  if its_lineage == lineage then
    if threshold == token then return redis.status_reply('OK') end
    if below(token, threshold) then return redis.error_reply('FENCELOWER ' .. threshold) end
  end
  redis.call('HDEL', KEYS[1], 'token', 'request', 'sequence', 'digest', 'claim', 'reader',
             'reader_request')
  redis.call('HSET', KEYS[1], 'version', '2', 'lineage', lineage, 'least', token)
  return redis.status_reply('OK')
end

if mode == 'claim' then
  local last = claim and its_token or '0'
  if below('9007199254740990', token) then return invalid('no number is left for a claim') end
  local next = string.format('%.0f', tonumber(token) + 1)
  if claim == request and last == next then return next end
  if last ~= token then return redis.error_reply('FENCEMOVED ' .. last) end
  redis.call('HDEL', KEYS[1], 'sequence', 'digest')
  redis.call('HSET', KEYS[1], 'version', '2', 'claim', request, 'token', next)
  return next
end

if mode == 'confirm' then
  if claim ~= request or not same then return refuse('claim', its_token) end
else
  if claim then return invalid('this resource is used with claims, not with tokens') end
  if its_lineage and its_lineage ~= lineage then return refuse('lineage', threshold) end
  if not its_token and least and below(token, least) then return refuse('adopted', least) end
  local highest = reads and its_token or not reads and threshold
  if highest and token ~= highest and below(token, highest) then return refuse('lower', highest) end
  if same and its_request ~= request or reader == token and reader_request ~= request then
    return refuse('twice', token)
  end
end
local digest = sequence ~= '' and #ARGV > 5 and digest_of_command()
if same and not reads then
  if digest and its_sequence == sequence and its_digest == digest then
    return redis.status_reply('REPEATED')
  end
  if mode == 'single' then return refuse('single', token) end
  if digest and its_sequence == sequence then
    return invalid('sequence number ' .. sequence .. ' was used for another write')
  end
  if digest and its_sequence and below(sequence, its_sequence) then
    return refuse('order', token)
  end
end

-- It may enter.
if reads then
  local known = reader or its_token
  if not known or below(known, token) then
    redis.call('HSET', KEYS[1], 'version', '2', 'lineage', lineage, 'reader', token,
               'reader_request', request)
  end
elseif not same then
  if its_sequence or least or reader then
    redis.call('HDEL', KEYS[1], 'sequence', 'digest', 'least', 'reader', 'reader_request')
  end
  its_sequence = nil
  redis.call('HSET', KEYS[1], 'version', '2', 'lineage', lineage, 'token', token,
             'request', request)
end
if #ARGV == 5 then return redis.status_reply('OK') end
if digest then return run_numbered(digest, its_sequence, its_digest) end
return redis.pcall(unpack(ARGV, 6))
