//! What is done in one step, in the server's own language and by its own clock.
//!
//! Of a space the server holds each value under its key, an index of the keys by their end (for room and for lists)
//! and one such index per group. All of them carry the space's name as their hash tag, so that in a cluster they lie on
//! one node. A stored value begins with its group's name, two bytes of length first.
//!
//! A key expires a millisecond before the end noted in the index: the server keeps a key to the end of the millisecond
//! named as its expiry, but at its end nothing may find a value any more.

use fred::types::scripts::Script;

/// Common to the scripts of spaces: the time in milliseconds, and leaving index and group.
macro_rules! of_space {
    ($body:literal) => {
        concat!(
            r"
local function ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
local function group(stored)
  local len = string.byte(stored, 1) * 256 + string.byte(stored, 2)
  return string.sub(stored, 3, 2 + len)
end
local function payload(stored)
  return string.sub(stored, 3 + string.byte(stored, 1) * 256 + string.byte(stored, 2))
end
local function leave(tag, index, member, stored)
  redis.call('ZREM', index, member)
  local name = group(stored)
  if name ~= '' then redis.call('ZREM', tag .. ':g:' .. name, member) end
end
local function join(index, member, ends, now)
  redis.call('ZADD', index, ends, member)
  if redis.call('PTTL', index) < ends - now then redis.call('PEXPIREAT', index, ends) end
end
",
            $body
        )
    };
}

/// KEYS value, index; ARGV tag, member, life, stored, new only, most, most of the group.
/// 1 kept, 0 there already, -1 full, -2 group full.
const PUT: &str = of_space!(
    r"
local tag, member = ARGV[1], ARGV[2]
local now = ms()
local old = redis.call('GET', KEYS[1])
if old and ARGV[5] == '1' then return 0 end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
if not old and redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[6]) then return -1 end
local name = group(ARGV[4])
local members = tag .. ':g:' .. name
if name ~= '' then
  redis.call('ZREMRANGEBYSCORE', members, '-inf', now)
  if not redis.call('ZSCORE', members, member) and redis.call('ZCARD', members) >= tonumber(ARGV[7]) then
    return -2
  end
end
if old then leave(tag, KEYS[2], member, old) end
local ends = now + tonumber(ARGV[3])
redis.call('SET', KEYS[1], ARGV[4], 'PXAT', string.format('%.0f', ends - 1))
join(KEYS[2], member, ends, now)
if name ~= '' then join(members, member, ends, now) end
return 1
"
);

/// KEYS value, index; ARGV tag, member. The payload, once.
const TAKE: &str = of_space!(
    r"
local stored = redis.call('GET', KEYS[1])
if not stored then return false end
redis.call('DEL', KEYS[1])
leave(ARGV[1], KEYS[2], ARGV[2], stored)
return payload(stored)
"
);

/// KEYS value, index; ARGV tag, member, what was seen, what shall be (empty: nothing).
/// 1 done, 0 something else is there, -1 nothing is there.
const CHANGE: &str = of_space!(
    r"
local stored = redis.call('GET', KEYS[1])
if not stored then return -1 end
if stored ~= ARGV[3] then return 0 end
if ARGV[4] == '' then
  redis.call('DEL', KEYS[1])
  leave(ARGV[1], KEYS[2], ARGV[2], stored)
else
  redis.call('SET', KEYS[1], ARGV[4], 'KEEPTTL')
end
return 1
"
);

/// KEYS index; ARGV prefix of the values' keys, first, last. How many there are, then keys and payloads in turn.
const LIST: &str = of_space!(
    r"
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ms())
local found = { tostring(redis.call('ZCARD', KEYS[1])) }
for _, member in ipairs(redis.call('ZRANGE', KEYS[1], ARGV[2], ARGV[3])) do
  local stored = redis.call('GET', ARGV[1] .. member)
  if stored then
    found[#found + 1] = member
    found[#found + 1] = payload(stored)
  end
end
return found
"
);

/// KEYS count; ARGV length of the window. The count, and the rest of the window in milliseconds.
const HIT: &str = r"
local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return { count, redis.call('PTTL', KEYS[1]) }
";

/// KEYS when all so far would have been due; ARGV microseconds between two, microseconds one may be ahead.
/// How many microseconds to wait; 0: allowed and counted. The arithmetic of `Rate::judge`.
const PACE: &str = r"
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local due = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now)
local wait = due - now - tonumber(ARGV[2])
if wait > 0 then return wait end
due = due + tonumber(ARGV[1])
redis.call('SET', KEYS[1], string.format('%.0f', due), 'PX', math.ceil((due - now) / 1000))
return 0
";

/// All scripts, with their digests.
#[derive(Debug)]
pub(super) struct Scripts {
    pub(super) put: Script,
    pub(super) take: Script,
    pub(super) change: Script,
    pub(super) list: Script,
    pub(super) hit: Script,
    pub(super) pace: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        Self {
            put: Script::from_lua(PUT),
            take: Script::from_lua(TAKE),
            change: Script::from_lua(CHANGE),
            list: Script::from_lua(LIST),
            hit: Script::from_lua(HIT),
            pace: Script::from_lua(PACE),
        }
    }
}
