//! The policy store with its lease, and the audit store (spec/85 section 3, steps 2 and 3).

use super::{fault::ServeError, lease::Lease, outbox_mark::OutboxMarkFile, setup::Setup, stores};
use crate::workers::{self, OutboxAlarm};
use anyhow::Context as _;
use gw_store::{Store, audit::AuditStore};
use std::{future::pending, sync::Arc};

/// The open stores of this instance.
#[derive(Debug)]
pub(super) struct Storage {
    /// The policy store.
    pub(super) store: Store,
    pub(super) audit: AuditStore,
    /// The highest known id of the outbox, kept outside the databases.
    pub(super) outbox_mark: Arc<OutboxMarkFile>,
    /// The lease of the policy store; `None` if the store is embedded.
    lease: Option<Lease>,
}

impl Storage {
    /// Requests wait for answers of the databases from now on.
    pub(super) fn end_patience(&self) {
        self.store.end_patience();
        self.audit.end_patience();
    }

    /// Opens both stores, and takes the lease of the policy store before it opens the audit store. The first instance
    /// resets the tracing toggles. Returns the alarm to raise if the outbox of the policy store was set back.
    ///
    /// # Errors
    /// If a store cannot be opened, another instance holds the lease, or the mark of the outbox cannot be read.
    pub(super) async fn open(setup: &Setup) -> Result<(Self, Option<OutboxAlarm>), ServeError> {
        let Setup {
            config,
            platform,
            secrets,
        } = setup;
        stores::make_private(&config.audit.journal_dir)?;
        let outbox_mark = Arc::new(
            OutboxMarkFile::open(&config.audit.journal_dir).context("the audit outbox mark file cannot be opened")?,
        );
        let store = stores::open_policy(platform, config, secrets.outbox_guard(&outbox_mark)?).await?;
        let lease = match config.store.url {
            Some(_) => Some(Lease::take(&store, config.store.cache_url.is_some()).await?),
            None => None,
        };
        let audit = stores::open_audit(platform, config).await?;
        let alarm = workers::raise_outbox_ids(&store, &audit, &outbox_mark).await?;
        if lease.as_ref().is_none_or(Lease::began_alone) {
            stores::restore_toggles(&store).await?;
        }
        let storage = Self {
            store,
            audit,
            outbox_mark,
            lease,
        };
        Ok((storage, alarm))
    }

    /// Renews the lease until it is lost; never returns if there is none.
    pub(super) async fn lease_lost(&self) -> ServeError {
        match &self.lease {
            Some(lease) => lease.keep().await,
            None => pending().await,
        }
    }

    /// Releases the lease, and finishes every write that has begun (HD21). Nothing may write to the stores any more.
    pub(super) async fn close(self) {
        if let Some(lease) = self.lease {
            lease.release().await;
        }
        // The store may still execute queued work; a write that has begun is finished.
        self.store.drain().await;
    }
}
