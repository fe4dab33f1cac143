-- Extends a lock that is held with a token, and never cuts it short.
--
-- KEYS[1]  the lock
-- ARGV[1]  the token
-- ARGV[2]  the ttl in milliseconds
--
-- Returns 1, or 0 where the lock is not held with that token.
local held = redis.call('GET', KEYS[1])
if not held or string.match(held, '^(%d+):') ~= ARGV[1] then
  return 0
end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
