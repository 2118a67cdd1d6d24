//! The subscriptions of one connection, and their delivery.

use super::{
    connection::Connection,
    outbox::Ending,
    stream::{self, News, Stream},
};
use crate::{
    origin::Origin,
    record::{Found, Recorder},
    reply::{LiveFault, Reply},
};
use gw_evm::LiveId;
use gw_policy::Disclosed;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::{Mutex as Turn, Notify};

/// The most of one connection (WS-5); the message of the fault says so.
const PER_CONNECTION: usize = 16;
/// Rest while the node asked for a pause, or the policy cannot be trusted for the moment.
const REST: Duration = Duration::from_secs(1);

/// All of one connection.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    known: Mutex<Vec<Subscription>>,
    /// One was begun: what came since it was made is not waited for.
    begun: Notify,
}

#[derive(Clone, Debug)]
struct Subscription {
    id: LiveId,
    /// Not before its maker was told the id.
    begun: bool,
    stream: Arc<Turn<Stream>>,
}

/// One message of a connection: remembers which subscriptions it made.
#[derive(Debug, Default)]
pub(crate) struct Message {
    of: Arc<Subscriptions>,
    made: Mutex<Vec<LiveId>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Message {
    pub(crate) fn new(of: &Arc<Subscriptions>) -> Self {
        Self {
            of: Arc::clone(of),
            made: Mutex::default(),
        }
    }

    pub(crate) fn subscribe(&self, id: LiveId, stream: Stream) -> Result<(), LiveFault> {
        let mut known = lock(&self.of.known);
        if known.len() >= PER_CONNECTION {
            return Err(LiveFault::TooManySubscriptions);
        }
        known.push(Subscription {
            id,
            begun: false,
            stream: Arc::new(Turn::new(stream)),
        });
        lock(&self.made).push(id);
        Ok(())
    }

    pub(crate) fn unsubscribe(&self, id: Option<LiveId>) -> bool {
        let mut known = lock(&self.of.known);
        let before = known.len();
        known.retain(|subscription| Some(subscription.id) != id);
        known.len() < before
    }

    /// Its answer is on its way: what it made may deliver.
    pub(crate) fn answered(&self) {
        let made = std::mem::take(&mut *lock(&self.made));
        if made.is_empty() {
            return;
        }
        for subscription in &mut *lock(&self.of.known) {
            subscription.begun |= made.contains(&subscription.id);
        }
        self.of.begun.notify_one();
    }
}

impl Subscriptions {
    fn begun(&self) -> Vec<Subscription> {
        lock(&self.known)
            .iter()
            .filter(|subscription| subscription.begun)
            .cloned()
            .collect()
    }

    fn has(&self, id: LiveId) -> bool {
        lock(&self.known).iter().any(|subscription| subscription.id == id)
    }
}

/// Delivers what comes to a connection until it ends.
pub(crate) async fn deliver(connection: &Arc<Connection>) {
    let state = connection.state();
    let mut moves = state.node().head_moves();
    loop {
        let mut again = false;
        for subscription in connection.subscriptions().begun() {
            again |= !one(connection, &subscription).await;
        }
        tokio::select! {
            moved = moves.changed() => if moved.is_err() { return },
            () = connection.subscriptions().begun.notified() => {}
            () = tokio::time::sleep(REST), if again => {}
        }
    }
}

/// Delivers what came to one subscription; whether there was an answer, and not only a pause.
async fn one(connection: &Arc<Connection>, subscription: &Subscription) -> bool {
    let state = connection.state();
    // Each delivery is by the right of its moment (HD20); whoever lost it gets nothing, and the connection ends.
    let Some(origin) = connection.standing() else {
        return true;
    };
    // Without a head there is no news; the next one wakes us.
    if state.node().head().is_none() {
        return true;
    }
    let mut found = Found::default();
    let mut stream = subscription.stream.lock().await;
    // The pause of the key it would be asked by. Whoever may not ask at all is found out below.
    if state.breakers.any_open(state.clock().now())
        && let Ok(judged) = stream.question_now(state, &origin).judge()
        && judged
            .node(state)
            .is_ok_and(|node| state.breakers.is_open(node.key_id(), judged.now))
    {
        return false;
    }
    let next = stream.next();
    let news = match stream.look(state, &origin, &mut found).await {
        Ok(news) => texts(connection, &origin, subscription.id, news, &mut found).await,
        Err(reply) => Err(reply),
    };
    // The connection is one request that does not end.
    origin.hold.trim();
    let texts = match news {
        Ok(texts) if texts.is_empty() => return true,
        Ok(texts) => texts,
        // What may not be read is not there; nor is it tried again before the next block.
        Err(Reply::Denied(_)) => return true,
        // More than a reader could take.
        Err(Reply::Invalid(_)) => {
            connection.outbox().end(Ending::Slow);
            return true;
        }
        Err(_) => {
            // What was not shown is still to come.
            stream.go_back(next);
            return false;
        }
    };
    // WS-5: what is delivered is recorded, and before it leaves.
    let recorded = match Recorder::of_own(state, &origin, DELIVERY) {
        Ok(mut recorder) => {
            recorder.found = found;
            recorder.finish(Reply::Result(Disclosed::NULL), false).await
        }
        Err(reply) => reply,
    };
    let still = connection.standing().is_some();
    if !matches!(recorded, Reply::Result(_)) || !still {
        connection.outbox().end(Ending::Right);
    } else if connection.subscriptions().has(subscription.id) {
        texts.into_iter().for_each(|text| connection.outbox().push(text, None));
    }
    true
}

/// The name of a delivery, on the wire and in its record.
const DELIVERY: &str = "eth_subscription";

/// One notification per item.
async fn texts(
    connection: &Arc<Connection>,
    origin: &Arc<Origin>,
    id: LiveId,
    news: News,
    found: &mut Found,
) -> Result<Vec<String>, Reply> {
    let notification = |item: &Disclosed| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"{DELIVERY}","params":{{"subscription":"{id}","result":{}}}}}"#,
            item.as_str()
        )
    };
    match news {
        News::Logs(rows) => Ok(rows.iter().map(notification).collect()),
        News::Blocks(hashes) => {
            let mut texts = Vec::new();
            for hash in hashes {
                let header = stream::header(connection.state(), origin, hash, found).await?;
                texts.extend(header.as_ref().map(notification));
            }
            Ok(texts)
        }
    }
}
