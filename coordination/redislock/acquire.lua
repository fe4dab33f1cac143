-- Grants a lock that is free.
--
-- KEYS[1]  the lock: "<token>:<nonce>:<owner>", until it expires
-- KEYS[2]  the last token of this lock; it stays
-- ARGV[1]  the nonce of this call: a call that is sent twice is granted once
-- ARGV[2]  the owner
-- ARGV[3]  the ttl in milliseconds
--
-- Returns the token, or nothing where the lock is held.
local held = redis.call('GET', KEYS[1])
if held then
  local token, nonce = string.match(held, '^(%d+):(%w+):')
  if nonce == ARGV[1] then
    return token
  end
  return false
end

-- One more than the last, and no less than the time in microseconds: a counter that was lost is no way back.
local token = redis.call('INCR', KEYS[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if token < now then
  token = now
  redis.call('SET', KEYS[2], string.format('%.0f', token))
end
if token >= 2 ^ 53 then
  return redis.error_reply('ERR token ' .. string.format('%.0f', token) .. ' is past what Lua can count')
end
local text = string.format('%.0f', token)
redis.call('SET', KEYS[1], text .. ':' .. ARGV[1] .. ':' .. ARGV[2], 'PX', ARGV[3])
return text
