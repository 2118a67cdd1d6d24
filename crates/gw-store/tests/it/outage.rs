//! RL14 and RL1 on PostgreSQL: the connection to the database is cut, or its packets vanish. Also tests that waiting is
//! not an outage.

use crate::world::{World, config, did};
use gw_audit::{ChainId, ShardId, Stream};
use gw_store::{Actor, AuditStore, BootClock, Feed, FeedTiming, Location, Store, StoreError, record::NewUser};
use gw_testkit::{Last, port, postgres};
use gw_types::Seconds;
use gw_types::Secret;
use gw_types::testing::ManualClock;
use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, UnixStream},
    sync::watch,
    task::JoinHandle,
};

/// Much longer than an answer may take, and much shorter than the timeouts of pool and server.
const SOON: Duration = Duration::from_secs(12);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Open,
    /// Requests arrive, responses do not.
    Deaf,
    /// Nothing arrives in either direction; connections stay open.
    Lost,
    /// Connections are closed and refused.
    Cut,
}

/// A relay to the private server, which itself listens only on a Unix socket.
struct Relay {
    address: SocketAddr,
    socket: PathBuf,
    way: Arc<watch::Sender<Way>>,
    listening: Option<JoinHandle<()>>,
}

impl Relay {
    async fn to(socket: PathBuf) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port::reserve())).await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut relay = Self {
            address,
            socket,
            way: Arc::new(watch::Sender::new(Way::Open)),
            listening: None,
        };
        relay.listen(listener);
        relay
    }

    fn listen(&mut self, listener: TcpListener) {
        let (socket, way) = (self.socket.clone(), Arc::clone(&self.way));
        self.listening = Some(tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, socket.clone(), way.subscribe()));
            }
        }));
    }

    async fn set(&mut self, way: Way) {
        self.way.send_replace(way);
        match (way, self.listening.take()) {
            (Way::Cut, Some(listening)) => {
                listening.abort();
                let _ = listening.await;
            }
            (Way::Cut, None) => {}
            (_, Some(listening)) => self.listening = Some(listening),
            (_, None) => {
                let listener = TcpListener::bind(self.address).await.unwrap();
                self.listen(listener);
            }
        }
    }
}

async fn pass(client: TcpStream, socket: PathBuf, mut way: watch::Receiver<Way>) {
    let Ok(server) = UnixStream::connect(socket).await else {
        return;
    };
    let ((mut asks, mut hears), (mut answers, mut asked)) = (client.into_split(), server.into_split());
    let (mut to, mut from) = (way.clone(), way.clone());
    let there = async {
        let mut chunk = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = asks.read(&mut chunk).await {
            if to.wait_for(|way| matches!(way, Way::Open | Way::Deaf)).await.is_err()
                || asked.write_all(&chunk[..read]).await.is_err()
            {
                return;
            }
        }
    };
    let back = async {
        let mut chunk = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = answers.read(&mut chunk).await {
            if from.wait_for(|way| *way == Way::Open).await.is_err() || hears.write_all(&chunk[..read]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = there => {}
        () = back => {}
        _ = way.wait_for(|way| *way == Way::Cut) => {}
    }
}

/// A store behind a relay, its feed, and a store with a direct connection.
struct Far {
    relay: Relay,
    store: Store,
    feed: Feed,
    near: Store,
}

async fn far() -> Option<Far> {
    let database = postgres::database().unwrap_or_else(|cause| panic!("{cause}"))?;
    // postgres://gateway@localhost/NAME?host=DIRECTORY
    let (front, directory) = database.url.split_once("?host=").unwrap();
    let name = front.rsplit('/').next().unwrap();
    let relay = Relay::to(PathBuf::from(directory).join(".s.PGSQL.5432")).await;
    let url = format!("postgres://gateway@{}/{name}?sslmode=disable", relay.address);
    let near = open(&database.url, 1).await;
    near.migrate().await.unwrap();
    let store = open(&url, 2).await;
    let timing = FeedTiming {
        max_skew: Duration::MAX,
        ..FeedTiming::default()
    };
    let feed = Feed::start(&store, timing, Arc::new(BootClock)).await.unwrap();
    Some(Far {
        relay,
        store,
        feed,
        near,
    })
}

async fn open(url: &str, seed: u64) -> Store {
    let location = Location::postgres(Secret::new(url));
    Store::open(config(&location, &Arc::new(ManualClock::default()), seed))
        .await
        .unwrap()
}

async fn add(store: &Store, name: &str) -> Result<(), StoreError> {
    let mut tx = store.begin(&Actor::system()).await?;
    tx.create_user(NewUser {
        external_id: did(name),
        kyc: false,
        auth_tenant_id: None,
        groups: Vec::new(),
    })
    .await?;
    tx.commit().await.map(drop)
}

async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, work)
        .await
        .unwrap_or_else(|_| panic!("{what}: not soon"))
}

impl Far {
    async fn has(&self, name: &str) -> bool {
        self.near.load().await.unwrap().user_by_external(&did(name)).is_some()
    }

    /// Waits until the store and its feed work again.
    async fn heals(&self, name: &str) {
        let works = async {
            while let Err(error) = add(&self.store, name).await {
                assert!(error.is_unavailable(), "{error:?}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            while !self.feed.pin().fresh {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), works)
            .await
            .expect("it never came back");
        assert!(self.feed.pin().snapshot.same_rows(&self.near.load().await.unwrap()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl14_while_the_database_is_away_everything_says_so_soon() {
    for away in [Way::Cut, Way::Lost] {
        let Some(mut far) = far().await else { return };
        add(&far.store, "before").await.unwrap();
        far.relay.set(away).await;
        // More mutations than the pool has connections, sequentially and concurrently.
        for _ in 0..3 {
            let refused = soon("a mutation", add(&far.store, "never")).await;
            assert!(
                refused.as_ref().is_err_and(StoreError::is_unavailable),
                "{away:?}: {refused:?}"
            );
        }
        let crowd = (0..12).map(|_| {
            let store = far.store.clone();
            tokio::spawn(async move { soon("one of a crowd", add(&store, "never")).await })
        });
        for one in crowd.collect::<Vec<_>>() {
            let refused = one.await.unwrap();
            assert!(
                refused.as_ref().is_err_and(StoreError::is_unavailable),
                "{away:?}: {refused:?}"
            );
        }
        let refused = soon("a query", far.store.load()).await;
        assert!(refused.is_err_and(|error| error.is_unavailable()), "{away:?}");
        assert!(soon("a ping", far.store.ping()).await.is_err(), "{away:?}");
        far.relay.set(Way::Open).await;
        far.heals("after").await;
        assert!(far.has("before").await && far.has("after").await);
    }
}

/// The commit was sent and its response is lost: the change may be committed, and the caller is not told either way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl1_a_commit_whose_answer_is_lost_is_not_acknowledged() {
    for (way, stands) in [(Way::Deaf, true), (Way::Cut, false)] {
        let Some(mut far) = far().await else { return };
        let mut tx = far.store.begin(&Actor::system()).await.unwrap();
        let new = NewUser {
            external_id: did("lost"),
            kyc: false,
            auth_tenant_id: None,
            groups: Vec::new(),
        };
        tx.create_user(new).await.unwrap();
        far.relay.set(way).await;
        let answer = soon("the commit", tx.commit()).await;
        assert!(
            answer.as_ref().is_err_and(StoreError::is_unavailable),
            "{way:?}: {answer:?}"
        );
        far.relay.set(Way::Open).await;
        far.heals("after").await;
        // Entries are written before the commit is sent: if their response was already lost, nothing was committed.
        assert!(far.has("lost").await <= stands, "{way:?}");
    }
}

/// The message of a commit; the text alone is also part of `READ COMMITTED`.
const COMMIT: &str = "COMMIT\0";

/// A migrated database: a store behind a relay, and a store with a direct connection.
async fn one_connection() -> Option<(gw_testkit::Relay, Store, Store)> {
    let database = postgres::database().unwrap_or_else(|cause| panic!("{cause}"))?;
    let relay = gw_testkit::Relay::to(&format!("{}&sslmode=disable", database.url)).await;
    let near = open(&database.url, 1).await;
    near.migrate().await.unwrap();
    let store = open(&relay.url(), 2).await;
    Some((relay, store, near))
}

/// The connection of one commit falls silent, and the database answers everybody else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl14_a_silent_connection_holds_its_own_commit_only_and_not_for_long() {
    for last in [Last::Delivered, Last::Lost] {
        let Some((relay, store, near)) = one_connection().await else {
            return;
        };
        add(&store, "before").await.unwrap();
        relay.silence_at(COMMIT, last);
        let answer = soon("the commit", add(&store, "silent")).await;
        assert!(relay.is_silenced());
        let stands = near.load().await.unwrap().user_by_external(&did("silent")).is_some();
        assert_eq!(stands, last == Last::Delivered);
        match last {
            Last::Delivered => answer.expect("another connection has seen the commit"),
            Last::Lost => {
                assert!(matches!(answer, Err(StoreError::Unconfirmed(_))), "{answer:?}");
                assert!(!store.takes_writes(), "readiness is told");
            }
        }
        // The lock is released, not only its holder given up.
        for (store, name) in [(&near, "near"), (&store, "after")] {
            soon("the next mutation", add(store, name)).await.unwrap();
        }
        assert!(store.takes_writes());
    }
}

/// The same for a statement: before the mutation holds the lock on the epoch row, and after.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl14_a_silent_connection_holds_its_own_statement_only_and_not_for_long() {
    for (text, last) in [
        ("READ COMMITTED", Last::Lost),
        ("pg_backend_pid", Last::Delivered),
        ("audit_outbox", Last::Delivered),
        ("audit_outbox", Last::Lost),
    ] {
        let Some((relay, store, near)) = one_connection().await else {
            return;
        };
        relay.silence_at(text, last);
        let answer = soon("the mutation", add(&store, "silent")).await;
        assert!(
            answer.as_ref().is_err_and(StoreError::is_unavailable),
            "{text} {last:?}: {answer:?}"
        );
        assert!(relay.is_silenced());
        for (store, name) in [(&near, "near"), (&store, "after")] {
            soon("the next mutation", add(store, name)).await.unwrap();
        }
        assert!(
            near.load().await.unwrap().user_by_external(&did("silent")).is_none(),
            "{text} {last:?}"
        );
    }
}

/// An instance stops in the middle of a mutation; the others get the lock within seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl14_a_frozen_instance_does_not_keep_its_lock() {
    let Some((_relay, store, near)) = one_connection().await else {
        return;
    };
    let frozen = store.begin(&Actor::system()).await.unwrap();
    soon("a mutation of another instance", async {
        while let Err(error) = add(&near, "other").await {
            assert!(error.is_unavailable(), "{error:?}");
        }
    })
    .await;
    let answer = soon("the mutation that was frozen", frozen.commit()).await;
    assert!(answer.as_ref().is_err_and(StoreError::is_unavailable), "{answer:?}");
    soon("the next mutation", add(&store, "after")).await.unwrap();
}

/// The connection of one commit to the audit store falls silent: sealing goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl14_a_silent_connection_to_the_audit_store_does_not_stop_its_chain() {
    for last in [Last::Delivered, Last::Lost] {
        let Some(database) = postgres::database().unwrap_or_else(|cause| panic!("{cause}")) else {
            return;
        };
        let relay = gw_testkit::Relay::to(&format!("{}&sslmode=disable", database.url)).await;
        let location = Location::postgres(Secret::new(relay.url()));
        let audit = AuditStore::open(config(&location, &Arc::new(ManualClock::default()), 3))
            .await
            .unwrap();
        audit.migrate().await.unwrap();
        let chain = ChainId {
            stream: Stream::Access,
            shard: ShardId(uuid::Uuid::from_u128(1)),
        };
        relay.silence_at(COMMIT, last);
        let answer = soon("the claim", audit.claim(chain, "one", Seconds(15))).await;
        assert!(relay.is_silenced());
        match last {
            Last::Delivered => drop(answer.expect("another connection has seen the commit")),
            Last::Lost => assert!(matches!(answer, Err(StoreError::Unconfirmed(_))), "{answer:?}"),
        }
        soon("the next claim", audit.claim(chain, "one", Seconds(15)))
            .await
            .unwrap();
    }
}

/// One mutation takes long, and many wait for it: the database answers, so they keep waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl14_a_crowd_that_waits_its_turn_is_no_outage() {
    let Some(far) = far().await else { return };
    let first = far.store.begin(&Actor::system()).await.unwrap();
    let crowd: Vec<_> = (0..12)
        .map(|n| {
            let store = far.store.clone();
            tokio::spawn(async move { add(&store, &format!("crowd{n}")).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(3)).await;
    first.rollback().await.unwrap();
    for one in crowd {
        one.await.unwrap().expect("its turn came");
    }
}

/// Spec/70: `audit verify` and `doctor` read while the service runs and writes, and after it ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl14_a_file_is_read_beside_its_writer() {
    let world = World::sqlite().await;
    add(&world.store, "one").await.unwrap();
    let reader = world.read_only_store().await;
    reader.check_schema().await.unwrap();
    let knows = async |name| reader.load().await.unwrap().user_by_external(&did(name)).is_some();
    assert!(knows("one").await);
    add(&world.store, "two").await.unwrap();
    assert!(knows("two").await, "an open reader follows");
    add(&reader, "never").await.expect_err("it cannot write");
    add(&world.store, "three")
        .await
        .expect("and does not keep the writer from writing");
}
