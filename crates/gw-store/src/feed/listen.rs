//! PostgreSQL's notifications, on a separate connection (HD23 E-6).
//!
//! A pooler may accept LISTEN and never deliver: after each connect a notification to ourselves must arrive before the
//! feed polls more slowly. Safety does not depend on notifications, only speed.

use super::FeedState;
use crate::{Location, dialect::CHANNEL};
use gw_types::Secret;
use sea_orm::sqlx::{Error, postgres::PgListener, query};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

/// Timeout for connecting and receiving our own notification.
const SELF_TEST: Duration = Duration::from_secs(5);
/// Pause after the server refused the connection.
const RETRY: Duration = Duration::from_secs(5);
/// After this much silence the connection is tested again.
const SILENCE: Duration = Duration::from_secs(60);
/// Payload of our own notification.
const PING: &str = "ping";

/// Returns the URL to listen on, if this database has notifications.
pub(super) fn url(location: &Location) -> Option<Secret> {
    match location {
        Location::Sqlite { .. } | Location::SqliteReadOnly { .. } => None,
        Location::Postgres { url, direct, .. } => Some(direct.clone().unwrap_or_else(|| url.clone())),
    }
}

/// Wakes the worker at each notification, for as long as the task lives.
pub(super) async fn run(shared: Arc<FeedState>, url: Secret) {
    loop {
        match tokio::time::timeout(SELF_TEST, connect(&url)).await {
            Ok(Ok(mut connection)) => {
                shared.listening.store(true, Ordering::Relaxed);
                loop {
                    // Notifications before this moment, or while the connection was lost, may have been missed.
                    shared.look.notify_one();
                    // A connection whose packets vanish never fails: after a silence it is opened anew and tested.
                    match tokio::time::timeout(SILENCE, connection.try_recv()).await {
                        Ok(Ok(Some(_))) => {}
                        Ok(Ok(None) | Err(_)) => {
                            tracing::warn!(
                                "the connection for notifications of the policy database was closed: policy is polled \
                                 until it is back"
                            );
                            break;
                        }
                        Err(_) => break,
                    }
                }
                // A new connection must pass the test again.
                shared.listening.store(false, Ordering::Relaxed);
            }
            Ok(Err(cause)) => {
                tracing::warn!(error = ?cause, "notifications of the policy database are unavailable: policy is \
                                                polled");
                tokio::time::sleep(RETRY).await;
            }
            Err(_) => {
                tracing::warn!(
                    "notifications of the policy database do not arrive: policy is polled; the likely cause is a \
                     connection pooler between them"
                );
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Opens a listening connection on which our own notification arrived.
async fn connect(url: &Secret) -> Result<PgListener, Error> {
    let mut connection = PgListener::connect(url.expose()).await?;
    connection.listen(CHANNEL).await?;
    query("SELECT pg_catalog.pg_notify($1, $2)")
        .bind(CHANNEL)
        .bind(PING)
        .execute(&mut connection)
        .await?;
    while connection.recv().await?.payload() != PING {}
    Ok(connection)
}
