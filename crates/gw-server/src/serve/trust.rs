//! Trusted heads at start: read, compared with the audit store, and handed to sealer and verifier.

use super::{
    CLUSTER,
    fault::Fault,
    journal,
    stores::{Ground, Secrets},
};
use crate::{
    config::{Config, kind::signing_key},
    trust::{HeadsFile, TamperAlarm, Trust, adopt},
    webhook::Webhook,
    workers::Verification,
};
use anyhow::Context as _;
use gw_audit::CheckpointPublicKey;
use gw_journal::Journal;
use gw_store::audit::AuditStore;
use std::sync::Arc;

/// Opens the file, takes over what was re-anchored, and refuses a store that lacks what was signed.
pub(super) async fn open(
    config: &Config,
    secrets: &Secrets,
    ground: &Ground,
    journal: &Arc<Journal>,
    audit: &AuditStore,
) -> Result<Arc<Trust>, Fault> {
    let file = HeadsFile::open(&config.audit.journal_dir)?;
    if file.is_new() {
        tracing::warn!(
            "nothing is known here of the audit log's chains: the newest notes in the audit store are trusted from now on"
        );
    }
    let mut keys = vec![public_key(secrets)?];
    keys.extend(config.audit.previous_keys.iter().filter_map(|key| CheckpointPublicKey::from_bytes(key).ok()));
    let own = keys.clone();
    keys.extend(file.heads().keys());
    let stored = audit.discontinuities().await.context("the re-anchorings in the audit store cannot be read")?;
    let adopted = file.update(|heads| {
        let remembered = own.iter().filter(|key| heads.remember_key(key)).count() > 0;
        adopt(heads, &stored, CLUSTER, &keys) || remembered
    });
    adopted.context("the trusted heads cannot be written")?;
    journal::nothing_is_missing(audit, &file.heads(), &keys, journal::will_restore(journal)).await?;
    let webhook = |name, url: &Option<url::Url>| url.as_ref().map(|url| Webhook::start(name, url)).transpose();
    let tampering = webhook("AUDIT_TAMPER_WEBHOOK_URL", &config.audit.tamper_webhook)?;
    let witness = webhook("AUDIT_WITNESS_URL", &config.audit.witness)?;
    let alarm = TamperAlarm::new(Arc::clone(journal), Arc::clone(&ground.clock), tampering);
    let interval = config.audit.checkpoint_interval;
    Ok(Arc::new(Trust::new(file, alarm, CLUSTER, Arc::clone(&ground.clock), witness, interval)))
}

/// What the verifier takes.
pub(super) fn verification(
    config: &Config,
    secrets: &Secrets,
    ground: &Ground,
    audit: AuditStore,
    trust: Arc<Trust>,
) -> anyhow::Result<Verification> {
    Ok(Verification {
        audit,
        trust,
        clock: Arc::clone(&ground.clock),
        key: public_key(secrets)?,
        every: config.audit.verify_interval,
        checkpoints: config.audit.checkpoint_interval,
    })
}

fn public_key(secrets: &Secrets) -> anyhow::Result<CheckpointPublicKey> {
    let key = signing_key(secrets.checkpoint.expose()).context("the checkpoint key cannot be read")?;
    CheckpointPublicKey::from_bytes(&key.verifying_key().to_bytes()).context("the checkpoint key cannot be used")
}
