//! The cache shared by all instances: Redis or Valkey, as one server, a cluster or behind sentinels.
//!
//! Ends and counts use the server's clock, the one clock that all instances have in common.
//!
//! Invariant: a command is sent at most once; if it gets no answer, its effect is unknown, and the caller gets
//! [`Unavailable`].

mod breaker;
mod scripts;

use crate::{Bytes, Change, CounterKind, Entry, Hits, Listed, Namespace, PutError, Rate, Unavailable, rate_limit};
use breaker::Breaker;
use fred::{
    clients::Client,
    error::{Error, ErrorKind},
    interfaces::{ClientLike as _, EventInterface as _, KeysInterface as _, LuaInterface as _},
    types::{
        Builder, Expiration, FromValue, InfoKind, Value,
        config::{Config, ReconnectPolicy, UnresponsiveConfig},
        scripts::Script,
    },
};
use gw_types::{Clock, Seconds, Secret};
use scripts::Scripts;
use sha2::{Digest as _, Sha256};
use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{task::AbortHandle, time::sleep};

/// Timeout for one answer; the whole call takes under a second.
const ANSWER: Duration = Duration::from_millis(700);
/// Timeout for a connection, including TLS.
const CONNECT: Duration = Duration::from_secs(3);
/// A connection without any response for this long is closed.
const UNRESPONSIVE: Duration = Duration::from_secs(2);
/// Minimum and maximum time between attempts to reconnect, in milliseconds.
const RECONNECT: (u32, u32) = (100, 1_000);
/// How often an update is retried because of other writers before it fails.
const UPDATES: usize = 1_000;
/// How often a small write checks whether the server accepts writes.
const PROBE: Duration = Duration::from_secs(1);
const PROBE_KEY: &str = "gw:probe";
/// Longer keys are replaced by their digest.
const LONGEST_KEY: usize = 200;

/// Why the connection to a shared cache failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The URL is invalid.
    #[error("the URL of the cache is not one")]
    Url,
    /// The server does not answer, or not like a cache.
    #[error("the cache cannot be reached: {0}")]
    Unreachable(Cow<'static, str>),
    /// The user name or password is missing or wrong.
    #[error("the cache refuses our name or password")]
    Refused,
}

#[derive(Debug)]
pub(crate) struct Redis {
    client: Client,
    breaker: Arc<Breaker>,
    scripts: Scripts,
    writes: Arc<Writes>,
    probe: AbortHandle,
}

/// Whether the server accepts writes: it may answer and still refuse them because its memory or disk is full.
#[derive(Debug, Default)]
struct Writes {
    are_refused: AtomicBool,
}

impl Writes {
    fn observe(&self, done: Result<(), &Error>) {
        let is_refused = match done {
            Ok(()) => false,
            Err(error) if is_write_refusal(error) => true,
            // While the server is unreachable, nothing is known about writes.
            Err(_) => return,
        };
        match (self.are_refused.swap(is_refused, Ordering::Relaxed), is_refused) {
            (false, true) => tracing::error!(
                "the shared cache takes no writes: logins are refused; look at its maxmemory, its disk and its replicas"
            ),
            (true, false) => tracing::info!("the shared cache takes writes again"),
            _ => {}
        }
    }
}

/// Error prefixes of a server that refuses a write.
fn is_write_refusal(error: &Error) -> bool {
    ["OOM ", "MISCONF ", "READONLY ", "NOREPLICAS "]
        .iter()
        .any(|word| error.details().starts_with(word))
}

async fn keep_probing(client: Client, writes: Arc<Writes>) {
    loop {
        let ttl = Some(Expiration::PX(60_000));
        let done: Result<(), Error> = client.set(PROBE_KEY, 1, ttl, None, false).await;
        writes.observe(done.as_ref().copied());
        sleep(PROBE).await;
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.probe.abort();
    }
}

impl Redis {
    pub(crate) async fn connect(url: &Secret, clock: Arc<dyn Clock>) -> Result<Self, ConnectError> {
        let config = Config::from_url(url.expose()).map_err(|_| ConnectError::Url)?;
        let client = Builder::from_config(config)
            .with_connection_config(|connection| {
                connection.connection_timeout = CONNECT;
                connection.internal_command_timeout = CONNECT;
                connection.max_command_attempts = 1;
                connection.reconnect_on_auth_error = true;
                connection.tcp.nodelay = Some(true);
                connection.unresponsive = UnresponsiveConfig {
                    max_timeout: Some(UNRESPONSIVE),
                    interval: UNRESPONSIVE / 4,
                };
            })
            .with_performance_config(|performance| performance.default_command_timeout = ANSWER)
            .set_policy(ReconnectPolicy::new_exponential(0, RECONNECT.0, RECONNECT.1, 2))
            .build()
            .map_err(|_| ConnectError::Url)?;
        let _router = client.init().await.map_err(|error| match error.kind() {
            ErrorKind::Auth => ConnectError::Refused,
            _ => ConnectError::Unreachable(error.details().to_owned().into()),
        })?;
        let breaker = Arc::new(Breaker::new(clock));
        let closed = Arc::clone(&breaker);
        let _listener = client.on_reconnect(move |_| {
            closed.close();
            std::future::ready(Ok(()))
        });
        let writes = Arc::<Writes>::default();
        let probe = tokio::spawn(keep_probing(client.clone(), Arc::clone(&writes))).abort_handle();
        Ok(Self {
            client,
            breaker,
            scripts: Scripts::new(),
            writes,
            probe,
        })
    }

    pub(crate) async fn put(&self, entry: &Entry<'_>, only_new: bool) -> Result<bool, PutError> {
        let ttl = u64::try_from(entry.ttl.as_millis()).unwrap_or(u64::MAX);
        if ttl == 0 {
            return Ok(true);
        }
        let place = Place::new(entry.namespace, entry.key);
        let mut args = vec![
            place.tag.into(),
            place.member.into(),
            ttl.to_string().into(),
            stored(&[], entry.value),
            Value::from(if only_new { "1" } else { "0" }),
            entry.namespace.capacity().to_string().into(),
        ];
        for group in entry.groups {
            args.extend([bounded(group.name).into_owned().into(), group.limit.to_string().into()]);
        }
        let (status, millis): (i64, u64) = self
            .run(&self.scripts.put, vec![place.value, place.index], args)
            .await?;
        let wait = rate_limit::wait(millis.saturating_mul(1_000));
        match status {
            1 => Ok(true),
            0 => Ok(false),
            -2 => Err(PutError::GroupFull { wait }),
            _ => Err(PutError::Full { wait }),
        }
    }

    pub(crate) async fn get(&self, namespace: Namespace, key: &str) -> Result<Option<Bytes>, Unavailable> {
        Ok(self.stored(&Place::new(namespace, key)).await?.map(payload))
    }

    pub(crate) async fn take(&self, namespace: Namespace, key: &str) -> Result<Option<Bytes>, Unavailable> {
        let Place {
            tag,
            member,
            value,
            index,
        } = Place::new(namespace, key);
        self.run(&self.scripts.take, vec![value, index], vec![tag.into(), member.into()])
            .await
    }

    pub(crate) async fn update<R: Send>(
        &self,
        namespace: Namespace,
        key: &str,
        mut work: impl FnMut(&[u8]) -> (Change, R) + Send,
    ) -> Result<Option<R>, Unavailable> {
        let place = Place::new(namespace, key);
        for _ in 0..UPDATES {
            let Some(seen) = self.stored(&place).await? else {
                return Ok(None);
            };
            let value = payload(seen.clone());
            let (change, result) = work(&value);
            let wanted = match change {
                Change::Keep => return Ok(Some(result)),
                Change::Set(new) => {
                    let prefix = seen.get(2..seen.len() - value.len()).unwrap_or_default();
                    stored(prefix, &new)
                }
                Change::Remove => Value::from(""),
            };
            let keys = vec![place.value.clone(), place.index.clone()];
            let args = vec![
                place.tag.clone().into(),
                place.member.clone().into(),
                Value::Bytes(seen),
                wanted,
            ];
            match self.run::<i64>(&self.scripts.change, keys, args).await? {
                1 => return Ok(Some(result)),
                0 => {}
                _ => return Ok(None),
            }
        }
        Err(Unavailable)
    }

    pub(crate) async fn list(&self, namespace: Namespace, offset: usize, limit: usize) -> Result<Listed, Unavailable> {
        let place = Place::new(namespace, "");
        let (first, last) = match offset.saturating_add(limit).checked_sub(1) {
            Some(last) if limit > 0 => (offset, last),
            // An empty range.
            _ => (1, 0),
        };
        let args = vec![
            place.value.into(),
            first.to_string().into(),
            last.to_string().into(),
            place.tag.into(),
        ];
        let items: Vec<Bytes> = self.run(&self.scripts.list, vec![place.index], args).await?;
        let mut items = items.into_iter();
        let total = items
            .next()
            .and_then(|total| str::from_utf8(&total).ok()?.parse().ok())
            .unwrap_or_default();
        let mut entries = Vec::new();
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            entries.push((String::from_utf8_lossy(&key).into_owned(), value));
        }
        Ok(Listed { entries, total })
    }

    pub(crate) async fn hit(&self, kind: CounterKind, key: &str) -> Result<Hits, Unavailable> {
        let args = vec![kind.ttl().as_millis().to_string().into()];
        let (count, rest): (u64, i64) = self.run(&self.scripts.hit, vec![window_key(kind, key)], args).await?;
        Ok(Hits {
            count,
            ends_in: Duration::from_millis(u64::try_from(rest).unwrap_or(0)),
        })
    }

    pub(crate) async fn hits(&self, kind: CounterKind, key: &str) -> Result<Hits, Unavailable> {
        let (count, rest): (u64, i64) = self
            .run(&self.scripts.hits, vec![window_key(kind, key)], Vec::new())
            .await?;
        Ok(Hits {
            count,
            ends_in: Duration::from_millis(u64::try_from(rest).unwrap_or(0)),
        })
    }

    pub(crate) async fn check_rate(&self, rate: Rate, key: &str) -> Result<Result<(), Seconds>, Unavailable> {
        let key = format!("gw:pace:{}:{}", rate.name, bounded(key));
        let args = vec![rate.interval().to_string().into(), rate.ahead().to_string().into()];
        let wait: u64 = self.run(&self.scripts.check_rate, vec![key], args).await?;
        Ok(if wait == 0 { Ok(()) } else { Err(rate_limit::wait(wait)) })
    }

    /// Whether the client is connected, the circuit breaker is closed and the server accepts writes, as far as known.
    pub(crate) fn is_up(&self) -> bool {
        let takes_writes = !self.writes.are_refused.load(Ordering::Relaxed);
        takes_writes && self.breaker.is_closed() && self.client.is_connected()
    }

    /// Checks that the server answers.
    pub(crate) async fn ping(&self) -> Result<(), Unavailable> {
        self.guarded(self.client.ping::<Value>(None)).await.map(|_| ())
    }

    /// Returns the server's eviction policy; `None` if it refuses writes instead when its memory is full.
    pub(crate) async fn eviction_policy(&self) -> Result<Option<String>, Unavailable> {
        let memory: String = self.guarded(self.client.info(Some(InfoKind::Memory))).await?;
        // For a cluster or sentinels, one server answers: all have the same configuration.
        let policy = memory
            .lines()
            .find_map(|line| line.trim().strip_prefix("maxmemory_policy:"))
            .ok_or(Unavailable)?;
        Ok((policy != "noeviction").then(|| policy.to_owned()))
    }

    async fn stored(&self, place: &Place) -> Result<Option<Bytes>, Unavailable> {
        self.guarded(self.client.get(place.value.as_str())).await
    }

    /// Runs a script by its digest; sends it again to a restarted server.
    async fn run<R: FromValue>(&self, script: &Script, keys: Vec<String>, args: Vec<Value>) -> Result<R, Unavailable> {
        let known = async {
            match self
                .client
                .evalsha(script.sha1().clone(), keys.clone(), args.clone())
                .await
            {
                Err(error) if error.details().starts_with("NOSCRIPT") => {
                    let lua = script.lua().cloned().unwrap_or_default();
                    self.client.eval(lua, keys, args).await
                }
                answer => answer,
            }
        };
        self.guarded(known).await
    }

    async fn guarded<T>(&self, command: impl Future<Output = Result<T, Error>>) -> Result<T, Unavailable> {
        if !self.breaker.admits() {
            return Err(Unavailable);
        }
        match command.await {
            Ok(answer) => {
                self.breaker.close();
                Ok(answer)
            }
            Err(error) => {
                if is_write_refusal(&error) {
                    self.writes.observe(Err(&error));
                } else {
                    self.breaker.fail();
                }
                tracing::warn!(kind = error.kind().to_str(), "the shared cache failed");
                Err(Unavailable)
            }
        }
    }
}

/// The server's keys for a value.
struct Place {
    tag: String,
    member: String,
    value: String,
    index: String,
}

impl Place {
    fn new(namespace: Namespace, key: &str) -> Self {
        let tag = format!("{{gw:{}}}", namespace.name());
        let member = bounded(key).into_owned();
        Self {
            value: format!("{tag}:v:{member}"),
            index: format!("{tag}:i"),
            tag,
            member,
        }
    }
}

fn window_key(kind: CounterKind, key: &str) -> String {
    format!("gw:hits:{}:{}", kind.name(), bounded(key))
}

fn bounded(key: &str) -> Cow<'_, str> {
    if key.len() <= LONGEST_KEY {
        Cow::Borrowed(key)
    } else {
        Cow::Owned(hex::encode(Sha256::digest(key)))
    }
}

/// Encodes a value: two bytes of prefix length, the prefix, the value. Earlier versions stored the value's group in the
/// prefix; it is no longer read.
fn stored(prefix: &[u8], value: &[u8]) -> Value {
    let len = u16::try_from(prefix.len()).unwrap_or(0);
    Value::Bytes([&len.to_be_bytes()[..], prefix, value].concat().into())
}

fn payload(mut stored: Bytes) -> Bytes {
    let len = stored
        .first_chunk::<2>()
        .map_or(0, |len| usize::from(u16::from_be_bytes(*len)));
    let start = len.saturating_add(2).min(stored.len());
    stored.split_off(start)
}
