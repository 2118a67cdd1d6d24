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
    workers::{ADMIN_CHAIN, Verification},
};
use anyhow::Context as _;
use gw_audit::{
    ChainId, Checkpoint, CheckpointKey, CheckpointPublicKey, ShardId, Stream,
    verify::{Finding, FindingKind},
};
use gw_journal::Journal;
use gw_store::{Store, audit::AuditStore};
use std::sync::Arc;

/// Kept outbox rows read at once.
const KEPT_PAGE: u64 = 5000;

/// Takes over what was re-anchored, refuses a store that lacks what was signed, and signs what was sealed by shards that
/// were given up.
pub(super) async fn open(
    config: &Config,
    secrets: &Secrets,
    ground: &Ground,
    file: HeadsFile,
    journal: &Arc<Journal>,
    audit: &AuditStore,
    store: &Store,
) -> Result<Arc<Trust>, Fault> {
    if file.is_new() {
        tracing::warn!(
            "nothing is known here of the audit log's chains: the newest notes in the audit store are trusted from now on"
        );
    }
    let mut keys = vec![public_key(secrets)?];
    keys.extend(
        config
            .audit
            .previous_keys
            .iter()
            .filter_map(|key| CheckpointPublicKey::from_bytes(key).ok()),
    );
    let own = keys.clone();
    keys.extend(file.heads().keys());
    let stored = audit
        .discontinuities()
        .await
        .context("the re-anchorings in the audit store cannot be read")?;
    let adopted = file.update(|heads| {
        let remembered = own.iter().filter(|key| heads.remember_key(key)).count() > 0;
        adopt(heads, &stored, CLUSTER, &keys) || remembered
    });
    adopted.context("the trusted heads cannot be written")?;
    let admin = outbox_restores(store, audit)
        .await
        .context("what the outbox keeps cannot be compared")?;
    let noted = store
        .signed_heads()
        .await
        .context("the signed heads in the policy store cannot be read")?;
    let noted: Vec<_> = noted
        .iter()
        .filter_map(|note| Checkpoint::open(note, &keys).ok())
        .collect();
    let will_restore = journal::will_restore(journal, admin);
    journal::nothing_is_missing(audit, &file.heads(), &noted, &keys, will_restore).await?;
    let webhook = |name, url: &Option<url::Url>| url.as_ref().map(|url| Webhook::start(name, url)).transpose();
    let tampering = webhook("AUDIT_TAMPER_WEBHOOK_URL", &config.audit.tamper_webhook)?;
    let witness = webhook("AUDIT_WITNESS_URL", &config.audit.witness)?;
    let alarm = TamperAlarm::new(Arc::clone(journal), Arc::clone(&ground.clock), tampering);
    let interval = config.audit.checkpoint_interval;
    let trust = Trust::new(file, alarm, CLUSTER, Arc::clone(&ground.clock), witness, interval);
    if !audit
        .foreign_objects()
        .await
        .context("the schema of the audit store cannot be read")?
        .is_empty()
    {
        trust
            .alarm
            .raise(ADMIN_CHAIN, &Finding::of(FindingKind::SchemaChanged, None), 0, 0);
    }
    sign_given_up(&trust, secrets, journal, audit)
        .await
        .context("a shard that was given up cannot be signed")?;
    Ok(Arc::new(trust))
}

/// Signs the chains of shards that no journal here goes on with, as far as they were seen in the store. Nobody else will.
async fn sign_given_up(trust: &Trust, secrets: &Secrets, journal: &Journal, audit: &AuditStore) -> anyhow::Result<()> {
    let heads = trust.file.heads();
    let is_given_up = |chain: ChainId| {
        chain.shard != journal.shard() && chain.stream != Stream::Admin && heads.discontinuities(chain).is_empty()
    };
    let key = signing_key(secrets.checkpoint.expose()).context("the checkpoint key cannot be read")?;
    let key = CheckpointKey::from_seed(&key.to_bytes());
    for (chain, head) in heads
        .heads()
        .filter(|(chain, head)| head.note.is_none() && is_given_up(*chain))
    {
        let Some(edge) = head.edge() else { continue };
        let checkpoint = Checkpoint::new(chain.origin(CLUSTER), edge.size(), edge.frontier().root()).in_era(head.era);
        let note = checkpoint.sign(&key);
        audit.insert_checkpoint(chain, checkpoint.size, &note).await?;
        trust.note_signed(chain, &edge, &checkpoint, &note, &key);
    }
    Ok(())
}

/// How many entries the administrative chain will have when the rows that the policy store keeps are sealed again.
async fn outbox_restores(store: &Store, audit: &AuditStore) -> anyhow::Result<u64> {
    let head = audit.head(ADMIN_CHAIN).await?;
    let sealed = head.map_or(1, |head| head.size);
    let mark = store.outbox_mark().await?;
    let (mut after, mut lost) = (0, 0);
    loop {
        let kept = store.kept_outbox(after, KEPT_PAGE).await?;
        let Some(last) = kept.last().map(|row| row.id) else {
            break;
        };
        let rows: Vec<_> = kept.iter().map(|row| (row.id, row.created_at)).collect();
        lost += match head {
            Some(_) => audit.missing_ids(ADMIN_CHAIN, mark.store, &rows).await?.len(),
            // A store made anew has no such chain yet.
            None => rows.len(),
        };
        after = last;
    }
    let waiting = store.outbox(0, KEPT_PAGE).await?.len();
    Ok(sealed.saturating_add(u64::try_from(lost.saturating_add(waiting)).unwrap_or(u64::MAX)))
}

/// What the verifier takes.
pub(super) fn verification(
    config: &Config,
    secrets: &Secrets,
    ground: &Ground,
    audit: AuditStore,
    store: Store,
    trust: Arc<Trust>,
    shard: ShardId,
) -> anyhow::Result<Verification> {
    Ok(Verification {
        audit,
        store: Some(store),
        trust,
        shard,
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
