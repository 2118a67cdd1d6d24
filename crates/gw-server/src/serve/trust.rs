//! Reads the trusted heads at start, compares them with the audit store, and passes them to the sealer and the
//! verifier.

use super::{
    CLUSTER,
    fault::ServeError,
    journal,
    stores::{Platform, Secrets},
};
use crate::{
    config::{Config, kind::signing_key},
    trust::{AuditTrust, HeadsFile, TamperAlarm, adopt},
    webhook::Webhook,
    workers::{ADMIN_CHAIN, Verification, is_changed, is_index_faulty},
};
use anyhow::Context as _;
use gw_audit::{
    ChainId, Checkpoint, CheckpointKey, CheckpointPublicKey, ShardId, Stream,
    verify::{Finding, FindingKind},
};
use gw_journal::Journal;
use gw_store::{Store, StoreError, audit::AuditStore};
use std::sync::Arc;

/// Outbox rows per query.
const OUTBOX_PAGE: u64 = 5000;

/// Applies re-anchorings to the trusted heads, checks that the audit store has all signed entries, and signs the sealed
/// entries of abandoned shards.
///
/// # Errors
/// If signed entries are missing in the audit store, or a store or file cannot be read or written.
pub(super) async fn open(
    config: &Config,
    secrets: &Secrets,
    platform: &Platform,
    file: HeadsFile,
    journal: &Arc<Journal>,
    audit: &AuditStore,
    store: &Store,
) -> Result<Arc<AuditTrust>, ServeError> {
    if file.is_new() {
        tracing::warn!(
            "there are no trusted heads of the audit log on this machine: the newest signed notes in the audit store \
             are trusted from now on; if this is not a first start, compare them with notes from the log"
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
    let configured_keys = keys.clone();
    keys.extend(file.heads().keys());
    let stored = audit
        .discontinuities()
        .await
        .context("the re-anchorings in the audit store cannot be read")?;
    let adopted = file.update(|heads| {
        let remembered = configured_keys.iter().filter(|key| heads.remember_key(key)).count() > 0;
        adopt(heads, &stored, CLUSTER, &keys) || remembered
    });
    adopted.context("the trusted heads cannot be written")?;
    let restored_size = admin_size_after_restore(store, audit)
        .await
        .context("the kept outbox rows cannot be compared with the audit store")?;
    let signed_heads = store
        .signed_heads()
        .await
        .context("the signed heads in the policy store cannot be read")?;
    let signed_heads: Vec<_> = signed_heads
        .iter()
        .filter_map(|note| Checkpoint::open(note, &keys).ok())
        .collect();
    let will_restore = journal::will_restore(journal, restored_size);
    journal::nothing_is_missing(audit, &file.heads(), &signed_heads, &keys, will_restore).await?;
    let webhook = |name, url: &Option<url::Url>| url.as_ref().map(|url| Webhook::start(name, url)).transpose();
    let tamper_webhook = webhook("AUDIT_TAMPER_WEBHOOK_URL", &config.audit.tamper_webhook)?;
    let witness = webhook("AUDIT_WITNESS_URL", &config.audit.witness)?;
    let alarm = TamperAlarm::new(Arc::clone(journal), Arc::clone(&platform.clock), tamper_webhook);
    let interval = config.audit.checkpoint_interval;
    let trust = AuditTrust::new(file, alarm, CLUSTER, Arc::clone(&platform.clock), witness, interval);
    let is_audit_changed = !audit
        .schema_differences()
        .await
        .context("the schema of the audit store cannot be read")?
        .is_empty();
    if is_changed(store).await? | is_index_faulty(store).await? | is_audit_changed {
        trust
            .alarm
            .raise(ADMIN_CHAIN, &Finding::new(FindingKind::SchemaChanged, None), 0, 0);
    }
    sign_abandoned(&trust, secrets, journal, audit)
        .await
        .context("the entries of an abandoned shard cannot be compared and signed")?;
    Ok(Arc::new(trust))
}

/// Signs the chains of shards that this machine's journal no longer continues, as far as they are sealed. No other
/// instance signs them. A chain whose entries in the store are not those of the journal is not signed but raises the
/// alarm; verification reports it until it is re-anchored.
async fn sign_abandoned(
    trust: &AuditTrust,
    secrets: &Secrets,
    journal: &Journal,
    audit: &AuditStore,
) -> anyhow::Result<()> {
    let heads = trust.file.heads();
    let is_abandoned = |chain: ChainId| {
        chain.shard != journal.shard() && chain.stream != Stream::Admin && heads.discontinuities(chain).is_empty()
    };
    let key = signing_key(secrets.checkpoint.expose()).context("the checkpoint key cannot be read")?;
    let key = CheckpointKey::from_seed(&key.to_bytes());
    let mut keys = vec![key.public()];
    keys.extend(heads.keys());
    for (chain, head) in heads
        .heads()
        .filter(|(chain, head)| head.note.is_none() && is_abandoned(*chain))
    {
        let Some(edge) = head.edge() else { continue };
        let last = edge.size().checked_sub(1);
        let stored = match last {
            Some(last) => audit.computed_hash(chain, last).await?,
            None => None,
        };
        if edge.last().is_some() && stored != edge.last() {
            let kind = match stored {
                Some(_) => FindingKind::AnchorMismatch,
                None => FindingKind::ChainTruncated,
            };
            let finding = Finding {
                stored,
                expected: edge.last(),
                ..Finding::new(kind, last)
            };
            trust.alarm.raise(chain, &finding, 0, 0);
            continue;
        }
        // Another process signed the chain up to here, if this directory is an older copy.
        let notes = match audit.newest_checkpoints(chain).await {
            Ok(notes) => notes,
            Err(StoreError::NotFound(_)) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let is_of_chain = |note: &Checkpoint| note.origin == chain.origin(CLUSTER) && note.era() >= head.era;
        let mut signed = notes.iter().filter_map(|note| Checkpoint::open(&note.note, &keys).ok());
        if signed.any(|note| is_of_chain(&note) && note.size >= edge.size()) {
            continue;
        }
        let checkpoint = Checkpoint::new(chain.origin(CLUSTER), edge.size(), edge.frontier().root()).in_era(head.era);
        let note = checkpoint.sign(&key);
        audit.insert_checkpoint(chain, checkpoint.size, &note).await?;
        trust.note_signed(chain, &edge, &checkpoint, &note, &key);
    }
    Ok(())
}

/// The number of entries that the administrative chain will have once the outbox rows kept in the policy store are
/// sealed again.
async fn admin_size_after_restore(store: &Store, audit: &AuditStore) -> anyhow::Result<u64> {
    let head = audit.head(ADMIN_CHAIN).await?;
    let sealed = head.map_or(1, |head| head.size);
    let mark = store.outbox_mark().await?;
    let (mut after, mut missing) = (0, 0);
    loop {
        let kept_rows = store.kept_outbox(after, OUTBOX_PAGE).await?;
        let Some(last) = kept_rows.last().map(|row| row.id) else {
            break;
        };
        let rows: Vec<_> = kept_rows.iter().map(|row| (row.id, row.created_at)).collect();
        missing += match head {
            Some(_) => audit.missing_ids(ADMIN_CHAIN, mark.store, &rows).await?.len(),
            // A new audit store has no such chain yet.
            None => rows.len(),
        };
        after = last;
    }
    let waiting = store.outbox(0, OUTBOX_PAGE).await?.len();
    Ok(sealed.saturating_add(u64::try_from(missing.saturating_add(waiting)).unwrap_or(u64::MAX)))
}

/// The inputs of the verifier.
pub(super) fn verification(
    config: &Config,
    secrets: &Secrets,
    platform: &Platform,
    audit: AuditStore,
    store: Store,
    trust: Arc<AuditTrust>,
    shard: ShardId,
) -> anyhow::Result<Verification> {
    Ok(Verification {
        audit,
        store: Some(store),
        trust,
        shard,
        clock: Arc::clone(&platform.clock),
        key: public_key(secrets)?,
        every: config.audit.verify_interval,
        checkpoints: config.audit.checkpoint_interval,
    })
}

fn public_key(secrets: &Secrets) -> anyhow::Result<CheckpointPublicKey> {
    let key = signing_key(secrets.checkpoint.expose()).context("the checkpoint key cannot be read")?;
    CheckpointPublicKey::from_bytes(&key.verifying_key().to_bytes()).context("the checkpoint key cannot be used")
}
