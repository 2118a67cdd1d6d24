//! PostgreSQL's notifications, on a connection of their own (HD23 E-6).
//!
//! A pooler may take LISTEN and never deliver: after each connect a notification to ourselves must arrive before
//! the feed slows its poll down. Nothing depends on notifications for safety, only for speed.

use super::Shared;
use crate::{Location, dialect::CHANNEL};
use gw_types::Secret;
use sea_orm::sqlx::{Error, postgres::PgListener, query};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

/// How long connecting and our own notification may take.
const SELF_TEST: Duration = Duration::from_secs(5);
/// How long to leave a server alone that refused us.
const RETRY: Duration = Duration::from_secs(5);
/// After so much silence the connection has to prove itself again.
const SILENCE: Duration = Duration::from_secs(60);
/// What we send ourselves.
const PING: &str = "ping";

/// The URL to listen on, if this database has notifications.
pub(super) fn url(location: &Location) -> Option<Secret> {
    match location {
        Location::Sqlite { .. } | Location::SqliteReadOnly { .. } => None,
        Location::Postgres { url, direct, .. } => Some(direct.clone().unwrap_or_else(|| url.clone())),
    }
}

/// Has the worker look at each notification, for as long as the task lives.
pub(super) async fn run(shared: Arc<Shared>, url: Secret) {
    loop {
        match tokio::time::timeout(SELF_TEST, connect(&url)).await {
            Ok(Ok(mut connection)) => {
                shared.listening.store(true, Ordering::Relaxed);
                loop {
                    // What was announced before this moment, or while a connection was lost, may have been missed.
                    shared.look.notify_one();
                    // A connection whose packets vanish never fails: silence is no proof, so it is made anew and tested.
                    match tokio::time::timeout(SILENCE, connection.try_recv()).await {
                        Ok(Ok(Some(_))) => {}
                        Ok(Ok(None) | Err(_)) => {
                            tracing::warn!("notifications from the database ended: polling until they are back");
                            break;
                        }
                        Err(_) => break,
                    }
                }
                // The connection may be another one now: it is to prove itself again.
                shared.listening.store(false, Ordering::Relaxed);
            }
            Ok(Err(cause)) => {
                tracing::warn!(error = ?cause, "no notifications from the database: polling");
                tokio::time::sleep(RETRY).await;
            }
            Err(_) => {
                tracing::warn!("notifications do not arrive: polling");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// A listening connection over which our own notification arrived.
async fn connect(url: &Secret) -> Result<PgListener, Error> {
    let mut connection = PgListener::connect(url.expose()).await?;
    connection.listen(CHANNEL).await?;
    query("SELECT pg_notify($1, $2)")
        .bind(CHANNEL)
        .bind(PING)
        .execute(&mut connection)
        .await?;
    while connection.recv().await?.payload() != PING {}
    Ok(connection)
}
