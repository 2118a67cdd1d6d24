//! Lua scripts: atomic operations, with the server's clock.
//!
//! For a namespace the server holds each value under its key, an index of the keys by their end (for capacity and
//! lists), one such index per group, the groups of each key (`m`), and the number of values of each network (`n`). All
//! these keys have the namespace's name as their hash tag, so that in a cluster they are on one node.
//!
//! A key expires one millisecond before the end in the index: the server keeps a key to the end of its expiry
//! millisecond, but from its end on no call may find a value.

use fred::types::scripts::Script;

/// Functions shared by the scripts of namespaces: the time in milliseconds, the groups of a key, and joining and
/// leaving an index.
///
/// The groups of a key are packed in one value, each as its length, a colon and its name; the last one is the network.
macro_rules! of_space {
    ($body:literal) => {
        concat!(
            r"
local function ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
local function payload(stored)
  return string.sub(stored, 3 + string.byte(stored, 1) * 256 + string.byte(stored, 2))
end
local function unpacked(packed)
  local names, at = {}, 1
  while at <= #packed do
    local colon = string.find(packed, ':', at, true)
    local len = tonumber(string.sub(packed, at, colon - 1))
    names[#names + 1] = string.sub(packed, colon + 1, colon + len)
    at = colon + len + 1
  end
  return names
end
local function leave(tag, index, member)
  redis.call('ZREM', index, member)
  local packed = redis.call('HGET', tag .. ':m', member)
  if not packed then return end
  redis.call('HDEL', tag .. ':m', member)
  local names = unpacked(packed)
  for _, name in ipairs(names) do redis.call('ZREM', tag .. ':g:' .. name, member) end
  local network = names[#names]
  if tonumber(redis.call('ZINCRBY', tag .. ':n', -1, network)) <= 0 then
    redis.call('ZREM', tag .. ':n', network)
  end
end
local function prune(tag, index, now)
  if redis.call('EXISTS', tag .. ':m') == 0 then
    redis.call('ZREMRANGEBYSCORE', index, '-inf', now)
    return
  end
  repeat
    local gone = redis.call('ZRANGEBYSCORE', index, '-inf', now, 'LIMIT', 0, 1000)
    for _, member in ipairs(gone) do leave(tag, index, member) end
  until #gone < 1000
end
local function last(key, ends, now)
  if redis.call('PTTL', key) < ends - now then redis.call('PEXPIREAT', key, ends) end
end
local function join(index, member, ends, now)
  redis.call('ZADD', index, ends, member)
  last(index, ends, now)
end
local function first_end(index, now)
  local first = redis.call('ZRANGE', index, 0, 0, 'WITHSCORES')
  return math.max(0, tonumber(first[2] or now) - now)
end
",
            $body
        )
    };
}

/// KEYS: value, index. ARGV: tag, member, lifetime, stored value, whether only new, capacity, then each group and its
/// limit. Returns 1 stored, 0 already exists, -1 full, -2 group full; and the time until there is room, in
/// milliseconds.
const PUT: &str = of_space!(
    r"
local tag, member = ARGV[1], ARGV[2]
local now = ms()
local old = redis.call('GET', KEYS[1])
if old and ARGV[5] == '1' then return { 0, 0 } end
prune(tag, KEYS[2], now)
local wait, packed, network = -1, '', nil
for at = 7, #ARGV, 2 do
  network = ARGV[at]
  packed = packed .. #network .. ':' .. network
  local members = tag .. ':g:' .. network
  if not redis.call('ZSCORE', members, member) and redis.call('ZCARD', members) >= tonumber(ARGV[at + 1]) then
    wait = math.max(wait, first_end(members, now))
  end
end
if wait >= 0 then return { -2, wait } end
if not old and redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[6]) then
  local fullest = network and redis.call('ZREVRANGE', tag .. ':n', 0, 0)[1]
  local oldest = fullest and redis.call('ZRANGE', tag .. ':g:' .. fullest, 0, 0)[1]
  if not oldest then return { -1, first_end(KEYS[2], now) } end
  redis.call('DEL', tag .. ':v:' .. oldest)
  leave(tag, KEYS[2], oldest)
end
leave(tag, KEYS[2], member)
local ends = now + tonumber(ARGV[3])
redis.call('SET', KEYS[1], ARGV[4], 'PXAT', string.format('%.0f', ends - 1))
join(KEYS[2], member, ends, now)
if network then
  for at = 7, #ARGV, 2 do join(tag .. ':g:' .. ARGV[at], member, ends, now) end
  redis.call('HSET', tag .. ':m', member, packed)
  last(tag .. ':m', ends, now)
  redis.call('ZINCRBY', tag .. ':n', 1, network)
  last(tag .. ':n', ends, now)
end
return { 1, 0 }
"
);

/// KEYS: value, index. ARGV: tag, member. Returns the payload, once.
const TAKE: &str = of_space!(
    r"
local stored = redis.call('GET', KEYS[1])
if not stored then return false end
redis.call('DEL', KEYS[1])
leave(ARGV[1], KEYS[2], ARGV[2])
return payload(stored)
"
);

/// KEYS: value, index. ARGV: tag, member, expected value, new value (empty: remove). Returns 1 done, 0 another value is
/// stored, -1 no value is stored.
const CHANGE: &str = of_space!(
    r"
local stored = redis.call('GET', KEYS[1])
if not stored then return -1 end
if stored ~= ARGV[3] then return 0 end
if ARGV[4] == '' then
  redis.call('DEL', KEYS[1])
  leave(ARGV[1], KEYS[2], ARGV[2])
else
  redis.call('SET', KEYS[1], ARGV[4], 'KEEPTTL')
end
return 1
"
);

/// KEYS: index. ARGV: prefix of the values' keys, first, last, tag. Returns the number of values, then keys and
/// payloads in turn.
const LIST: &str = of_space!(
    r"
prune(ARGV[4], KEYS[1], ms())
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

/// KEYS: count. ARGV: length of the window. Returns the count, and the rest of the window in milliseconds.
const HIT: &str = r"
local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return { count, redis.call('PTTL', KEYS[1]) }
";

/// KEYS: count. Returns the count and the rest of the window in milliseconds, without counting.
const HITS: &str = r"
return { tonumber(redis.call('GET', KEYS[1]) or '0'), redis.call('PTTL', KEYS[1]) }
";

/// KEYS: the time when all previous requests would have been due. ARGV: microseconds between two requests, microseconds
/// a key may be ahead. Returns the microseconds to wait; 0: allowed and counted. Computes the same as `Rate::judge`.
const CHECK_RATE: &str = r"
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
    pub(super) hits: Script,
    pub(super) check_rate: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        Self {
            put: Script::from_lua(PUT),
            take: Script::from_lua(TAKE),
            change: Script::from_lua(CHANGE),
            list: Script::from_lua(LIST),
            hit: Script::from_lua(HIT),
            hits: Script::from_lua(HITS),
            check_rate: Script::from_lua(CHECK_RATE),
        }
    }
}
