-- Frees a lock that is held with a token.
--
-- KEYS[1]  the lock
-- ARGV[1]  the token
--
-- Returns 1, or 0 where the lock is not held with that token.
local held = redis.call('GET', KEYS[1])
if not held or string.match(held, '^(%d+):') ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])
