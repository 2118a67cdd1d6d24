//! `audit re-anchor`: signs that a chain continues from the entries in the audit store. The signed record of it stays
//! visible (spec/70 rule 22).
//!
//! Without `--confirm` it only shows what would be signed. The command locks the data directory as the service does, so
//! an embedded store is re-anchored while the service is stopped. On PostgreSQL no running instance may write the
//! chain.

use crate::{
    cli::{EXIT_USAGE, eprint_line, say},
    config::{Config, kind::signing_key},
    serve::{
        CLUSTER, ServeError,
        stores::{Platform, checkpoint_key, migrate_audit},
    },
    trust::{HeadsFile, adopt},
    workers::ADMIN_CHAIN,
};
use anyhow::{Context as _, bail};
use clap::Args;
use gw_audit::{
    ChainId, Checkpoint, CheckpointKey, CheckpointPublicKey, Content, Discontinuity, Hash, Head, Header, Record,
    StoredEntry, TrustedHead,
    outbox::alarm_kind,
    tree::{self, Frontier},
    verify::{OutboxIds, is_plausible_issued},
};
use gw_store::{
    StoreError,
    audit::{AuditStore, SealedRow},
};
use gw_types::Timestamp;
use std::{collections::BTreeMap, process::ExitCode, time::Duration};
use tokio::time::{Instant, sleep};

/// Rows per query.
const PAGE: u64 = 5000;
/// Most missing entries in a row. A row behind more of them is not an entry of the chain.
const MAX_GAP: u64 = 1 << 24;
/// How long to wait for the claim of a stopped writer to expire.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(20);
/// Pause between two attempts to move the end of the chain.
const RETRY_DELAY: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct ReAnchor {
    /// The chain, as shown by `audit verify`: `<stream>/<shard>`.
    #[arg(long)]
    pub(crate) chain: ChainId,
    /// The person who decided it; recorded permanently.
    #[arg(long)]
    pub(crate) actor: String,
    /// The reason; recorded permanently.
    #[arg(long)]
    pub(crate) reason: String,
    /// Only show what would be signed; the default.
    #[arg(long, conflicts_with = "confirm")]
    pub(crate) dry_run: bool,
    /// Sign the record.
    #[arg(long)]
    pub(crate) confirm: bool,
}

/// The state of a chain as computed from its rows in the store.
#[derive(Default)]
struct StoredState {
    frontier: Frontier,
    head: Option<Head>,
    /// The largest size at which the rows still match a signed note.
    intact: u64,
    /// The last entry that reports changed or removed outbox rows, or a journal that was put back or copied.
    outbox: Option<u64>,
}

pub(super) async fn run(options: ReAnchor, config: &Config) -> Result<ExitCode, ServeError> {
    if let Err(error) = Discontinuity::check_texts(&options.actor, &options.reason) {
        eprint_line(error);
        return Ok(ExitCode::from(EXIT_USAGE));
    }
    let platform = Platform::hold(config).map_err(ServeError::into_busy)?;
    let secret = checkpoint_key(config)?.context("there is no checkpoint key: set AUDIT_CHECKPOINT_KEY")?;
    let key = signing_key(secret.expose()).context("the checkpoint key cannot be read")?;
    let key = CheckpointKey::from_seed(&key.to_bytes());
    let audit = migrate_audit(&platform, config).await?;
    let file = HeadsFile::open(&config.audit.journal_dir)?;
    let mut keys = vec![key.public()];
    keys.extend(
        config
            .audit
            .previous_keys
            .iter()
            .filter_map(|key| CheckpointPublicKey::from_bytes(key).ok()),
    );
    let discontinuity = prepare(&audit, &file, keys, &options, platform.clock.now()).await?;
    say(format_args!(
        "chain {}: from {} entries as signed to {} entries as stored; as signed up to {}\n",
        discontinuity.chain, discontinuity.from.0, discontinuity.to.0, discontinuity.intact
    ));
    if !options.confirm {
        say("nothing was changed: --confirm signs it\n");
        return Ok(ExitCode::SUCCESS);
    }
    confirm(&audit, &file, &key, &discontinuity).await?;
    say("signed; `audit verify` lists it from now on\n");
    Ok(ExitCode::SUCCESS)
}

/// Compares the chain in the store with its signed notes, and returns the record to sign.
///
/// # Errors
/// If there is no such chain, or nothing to re-anchor.
pub(crate) async fn prepare(
    audit: &AuditStore,
    file: &HeadsFile,
    mut keys: Vec<CheckpointPublicKey>,
    options: &ReAnchor,
    now: Timestamp,
) -> anyhow::Result<Discontinuity> {
    let chain = options.chain;
    keys.extend(file.heads().keys());
    let stored = audit.discontinuities().await?;
    file.update(|heads| adopt(heads, &stored, CLUSTER, &keys))?;
    let heads = file.heads();
    let trusted = heads.head(chain);
    let state = audit
        .chain_states()
        .await?
        .into_iter()
        .find(|state| state.chain == chain);
    if state.is_none() && trusted.is_none() {
        bail!("there is no chain `{chain}`: run `audit verify` for a list");
    }
    let mut notes: BTreeMap<u64, Hash> = BTreeMap::new();
    let era = trusted.map_or(0, |head| head.era);
    if state.is_some() {
        for note in audit.checkpoints_after(chain, 0).await?.notes {
            if let Ok(note) = Checkpoint::open(&note.note, &keys)
                && note.era() == era
            {
                notes.insert(note.size, note.root);
            }
        }
    }
    notes.extend(trusted.and_then(|head| Some((head.size, head.root()?))));
    let stored_state = match state {
        Some(_) => read(audit, chain, &notes).await?,
        None => StoredState::default(),
    };
    let from = notes
        .last_key_value()
        .map_or((0, tree::empty_root()), |(size, root)| (*size, *root));
    // A finding about the outbox is recorded in the chain itself, so the chain may match its signed notes and still
    // need a re-anchoring, unless an earlier one has covered the finding.
    let earlier: Vec<_> = stored
        .iter()
        .filter_map(|(_, note)| Discontinuity::open(note, CLUSTER, &keys).ok())
        .filter(|discontinuity| discontinuity.chain == chain)
        .collect();
    let accepted_at = earlier.iter().map(|discontinuity| discontinuity.time).max();
    let accepted_size = earlier
        .iter()
        .map(|discontinuity| discontinuity.to.0)
        .max()
        .unwrap_or(0);
    let foreign_entries = if chain == ADMIN_CHAIN {
        audit.foreign_entries().await?
    } else {
        Vec::new()
    };
    let has_foreign_entries = foreign_entries
        .iter()
        .any(|(_, at)| accepted_at.is_none_or(|accepted| accepted < *at));
    let has_open_finding = has_foreign_entries || stored_state.outbox.is_some_and(|seq| seq >= accepted_size);
    if from.0 <= stored_state.frontier.size() && stored_state.intact >= from.0 && !has_open_finding {
        bail!("chain `{chain}` continues its last signed note: there is nothing to re-anchor");
    }
    Ok(Discontinuity {
        chain,
        era: era.saturating_add(1),
        from,
        to: (stored_state.frontier.size(), stored_state.frontier.root()),
        peaks: stored_state.frontier.peaks().to_vec(),
        last: stored_state.head.map(|head| head.hash),
        intact: stored_state.intact,
        issued: state
            .and_then(|state| {
                let sealed = state.head.map_or(0, |head| head.size);
                state.issued.filter(|issued| is_plausible_issued(*issued, sealed))
            })
            .map_or(0, |last| last.saturating_add(1))
            .max(from.0),
        time: now,
        actor: options.actor.clone(),
        reason: options.reason.clone(),
    })
}

/// Reads all rows of a chain as leaves of its tree. A missing row counts as a leaf of zeros.
async fn read(audit: &AuditStore, chain: ChainId, notes: &BTreeMap<u64, Hash>) -> anyhow::Result<StoredState> {
    let mut stored_state = StoredState::default();
    let mut outbox = OutboxIds::default();
    let mut next = 0;
    loop {
        let rows = audit.rows(chain, next, PAGE).await?;
        if rows.is_empty() {
            let gaps = outbox.gaps().into_iter().map(|(_, seq)| seq).max();
            stored_state.outbox = stored_state.outbox.max(gaps);
            return Ok(stored_state);
        }
        for row in rows {
            if row.seq.saturating_sub(stored_state.frontier.size()) > MAX_GAP {
                bail!(
                    "row {} of `entries` has number {}, which no writer gave it: remove the row, and run this command \
                     again",
                    row.id,
                    row.seq
                );
            }
            while stored_state.frontier.size() < row.seq {
                stored_state.push(Hash::ZERO, notes);
            }
            if is_outbox_finding(&row, &mut outbox) {
                stored_state.outbox = Some(row.seq);
            }
            let hash = tree::leaf(&row.bytes);
            let time = Header::read(&row.bytes).map(|(header, _)| header.time);
            let before = stored_state.head.map_or(Timestamp::from_micros(0), |head| head.time);
            stored_state.head = Some(Head {
                size: row.seq.saturating_add(1),
                hash,
                time: time.unwrap_or(before).max(before),
            });
            stored_state.push(hash, notes);
            next = row.seq.saturating_add(1);
        }
    }
}

/// Whether an entry reports changed or removed outbox rows, or a journal that was put back or copied.
fn is_outbox_finding(row: &SealedRow, outbox: &mut OutboxIds) -> bool {
    let content = StoredEntry::new(row.bytes.clone(), row.openings.clone())
        .ok()
        .and_then(|entry| entry.content().ok());
    match content {
        Some(Content::Record(Record::Admin(entry))) => outbox.see(row.seq, &entry).is_some(),
        Some(Content::Record(Record::Security(event))) => alarm_kind(&event).is_some(),
        _ => false,
    }
}

impl StoredState {
    fn push(&mut self, leaf: Hash, notes: &BTreeMap<u64, Hash>) {
        self.frontier.push(leaf);
        // The tree is append-only: if a later note matches, the entries of all earlier notes are unchanged, too.
        if notes
            .get(&self.frontier.size())
            .is_some_and(|root| *root == self.frontier.root())
        {
            self.intact = self.frontier.size();
        }
    }
}

/// Moves the end of the chain, signs and stores the record, and signs a checkpoint of the chain.
///
/// # Errors
/// If the chain has changed since `prepare`, a running instance writes it, or a store or file cannot be written.
pub(crate) async fn confirm(
    audit: &AuditStore,
    file: &HeadsFile,
    key: &CheckpointKey,
    discontinuity: &Discontinuity,
) -> anyhow::Result<()> {
    let chain = discontinuity.chain;
    let note = discontinuity.sign(CLUSTER, key);
    let chain_state = audit
        .chain_states()
        .await?
        .into_iter()
        .find(|state| state.chain == chain);
    let stored_state = match chain_state {
        Some(_) => Some(read(audit, chain, &BTreeMap::new()).await?),
        None => None,
    };
    if stored_state
        .as_ref()
        .is_some_and(|stored_state| stored_state.frontier.root() != discontinuity.to.1)
    {
        bail!("the chain has changed in the meantime: run this command again");
    }
    if let Some(stored_state) = &stored_state {
        move_end(audit, chain, stored_state.head).await?;
    }
    audit
        .insert_discontinuity(chain, &note)
        .await
        .context("the record cannot be written to the audit store")?;
    file.update(|heads| heads.re_anchor(&note, discontinuity))
        .context("the trusted heads cannot be written")?;
    say(format_args!("\n{note}\n"));
    if stored_state.is_some() && discontinuity.to.0 > 0 {
        let (size, root) = discontinuity.to;
        let checkpoint = Checkpoint::new(chain.origin(CLUSTER), size, root).in_era(discontinuity.era);
        let note = checkpoint.sign(key);
        audit
            .insert_checkpoint(chain, size, &note)
            .await
            .context("the checkpoint cannot be written to the audit store")?;
        file.update(|heads| {
            let edge = heads.head(chain).and_then(TrustedHead::edge);
            edge.is_some_and(|edge| {
                heads.advance(chain, TrustedHead::new(Some(note.clone()), &edge, discontinuity.era))
            })
        })?;
        say(format_args!("{note}\n"));
    }
    Ok(())
}

/// Moves the end of the chain as soon as no writer claims it. The claim of a stopped writer expires after a while; a
/// running writer renews its claim.
async fn move_end(audit: &AuditStore, chain: ChainId, head: Option<Head>) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        match audit.move_end(chain, "re-anchor", head).await {
            Ok(()) => return Ok(()),
            Err(StoreError::OtherInstance(_)) if began.elapsed() < CLAIM_TIMEOUT => {
                if began.elapsed() < RETRY_DELAY {
                    eprint_line("waiting for the claim of the chain's last writer to expire");
                }
                sleep(RETRY_DELAY).await;
            }
            Err(error @ StoreError::OtherInstance(_)) => {
                return Err(anyhow::Error::from(error).context("a running instance writes the chain: stop it first"));
            }
            Err(error) => return Err(anyhow::Error::from(error).context("the end of the chain cannot be moved")),
        }
    }
}
