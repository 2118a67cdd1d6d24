//! The journal of this instance, and what it trusts of the audit store.

use super::{
    fault::ServeError,
    journal::{self, Reconciled},
    setup::Setup,
    storage::Storage,
    trust,
};
use crate::{
    config::Config,
    trust::{AuditTrust, HeadsFile},
    workers::{OutboxAlarm, SealingHealth},
};
use gw_audit::{
    SecurityKind,
    verify::{Finding, FindingKind},
};
use gw_journal::{Journal, Recovery};
use gw_store::Feed;
use std::sync::Arc;

/// The journal, the trusted heads, and the state of sealing.
#[derive(Debug)]
pub(super) struct AuditLog {
    pub(super) journal: Arc<Journal>,
    pub(super) trust: Arc<AuditTrust>,
    /// The sealer reports here whether it is in step.
    pub(super) health: Arc<SealingHealth>,
}

impl AuditLog {
    /// Opens the journal, reconciles it with the stores, and compares the audit store with the trusted heads. Raises
    /// `alarm`, and one alarm for each chain that another writer continued. Returns also what a crash left open. Starts
    /// the senders of the configured webhooks.
    ///
    /// # Errors
    /// If the journal is held or damaged, signed entries are missing, or a store or file cannot be read or written.
    pub(super) async fn open(
        setup: &Setup,
        storage: &Storage,
        alarm: Option<OutboxAlarm>,
    ) -> Result<(Self, Recovery), ServeError> {
        let Setup {
            config,
            platform,
            secrets,
        } = setup;
        let Storage { store, audit, .. } = storage;
        let (journal, recovery) = journal::open(config, secrets, platform)?;
        let heads = HeadsFile::open(&config.audit.journal_dir)?;
        let Reconciled {
            journal,
            recovery,
            foreign_chains,
            alarms,
        } = journal::reconcile(journal, recovery, audit, store, &heads, &config.audit.journal_dir).await?;
        let trust = trust::open(config, secrets, platform, heads, &journal, audit, store).await?;
        if let Some(alarm) = alarm {
            trust.alarm.raise_outbox(alarm.reason, alarm.count);
        }
        alarms
            .into_iter()
            .for_each(|alarm| trust.alarm.raise_code(alarm.stream, alarm.reason, alarm.count));
        foreign_chains
            .into_iter()
            .for_each(|chain| trust.alarm.raise(chain, &Finding::new(FindingKind::Fork, None), 0, 0));
        let audit_log = Self {
            journal,
            trust,
            health: Arc::default(),
        };
        Ok((audit_log, recovery))
    }

    /// Records that administrators see their members' transactions in the explorer (K10), if this is configured.
    ///
    /// # Errors
    /// If the journal accepts no record.
    pub(super) fn record_audited_rows(&self, config: &Config) -> anyhow::Result<()> {
        if config.policy_settings.org_admin_view_user_txs && config.explorer.database.is_some() {
            journal::record_event(&self.journal, SecurityKind::AuditedRowsEnabled, 0, None)?;
        }
        Ok(())
    }

    /// From now on, records each jump of a clock that `feed` notices.
    pub(super) fn record_clock_jumps(&self, feed: &Feed) {
        let journal = Arc::clone(&self.journal);
        feed.on_clock_jump(move |jump| journal::note_clock_jump(&journal, jump));
    }
}
