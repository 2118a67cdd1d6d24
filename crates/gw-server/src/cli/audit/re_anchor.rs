//! `audit re-anchor`: a chain goes on from what the audit store has, and everybody can see that it did (spec/70 rule 22).
//!
//! Shows what would be signed unless `--confirm` is given. Holds the data directory like the service, so an embedded store
//! is re-anchored while the service is stopped; on PostgreSQL the chain must have no living writer.

use crate::{
    cli::{EXIT_USAGE, complain, say},
    config::{Config, kind::signing_key},
    serve::{
        CLUSTER, Fault,
        stores::{Ground, checkpoint_key, migrate_audit},
    },
    trust::{HeadsFile, adopt},
    workers::ADMIN_CHAIN,
};
use anyhow::{Context as _, bail};
use clap::Args;
use gw_audit::{
    ChainId, Checkpoint, CheckpointKey, CheckpointPublicKey, Content, Discontinuity, Hash, Head, Header, Record,
    StoredEntry, TrustedHead,
    outbox::is_alarm,
    tree::{self, Frontier},
    verify::OutboxIds,
};
use gw_store::{
    StoreError,
    audit::{AuditStore, SealedRow},
};
use gw_types::Timestamp;
use std::{collections::BTreeMap, process::ExitCode, time::Duration};
use tokio::time::{Instant, sleep};

/// Rows read at once.
const PAGE: u64 = 5000;
/// How long the claim of a writer that was stopped may last, and the rest between two looks.
const CLAIM: Duration = Duration::from_secs(20);
const BETWEEN: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct ReAnchor {
    /// The chain, as `audit verify` names it: `<stream>/<shard>`.
    #[arg(long)]
    pub(crate) chain: ChainId,
    /// Who decided it.
    #[arg(long)]
    pub(crate) actor: String,
    /// Why; it stays in the log for ever.
    #[arg(long)]
    pub(crate) reason: String,
    /// Only show what would be signed; that is so without --confirm, too.
    #[arg(long, conflicts_with = "confirm")]
    pub(crate) dry_run: bool,
    /// Sign it.
    #[arg(long)]
    pub(crate) confirm: bool,
}

/// A chain as the store has it.
#[derive(Default)]
struct Remains {
    frontier: Frontier,
    head: Option<Head>,
    /// The sizes of the signed notes that still hold.
    intact: u64,
    /// The last entry that tells of an outbox whose rows were changed or removed.
    outbox: Option<u64>,
}

pub(super) async fn run(options: ReAnchor, config: &Config) -> Result<ExitCode, Fault> {
    if let Err(error) = Discontinuity::check_texts(&options.actor, &options.reason) {
        complain(error);
        return Ok(ExitCode::from(EXIT_USAGE));
    }
    let ground = Ground::hold(config).map_err(Fault::into_busy)?;
    let secret = checkpoint_key(config)?.context("there is no checkpoint key: set AUDIT_CHECKPOINT_KEY")?;
    let key = signing_key(secret.expose()).context("the checkpoint key cannot be read")?;
    let key = CheckpointKey::from_seed(&key.to_bytes());
    let audit = migrate_audit(&ground, config).await?;
    let file = HeadsFile::open(&config.audit.journal_dir)?;
    let mut keys = vec![key.public()];
    keys.extend(
        config
            .audit
            .previous_keys
            .iter()
            .filter_map(|key| CheckpointPublicKey::from_bytes(key).ok()),
    );
    let discontinuity = prepare(&audit, &file, keys, &options, ground.clock.now()).await?;
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
        bail!("there is no chain `{chain}`: `audit verify` names them");
    }
    let mut notes: BTreeMap<u64, Hash> = BTreeMap::new();
    let era = trusted.map_or(0, |head| head.era);
    if state.is_some() {
        for note in audit.checkpoints_after(chain, 0).await? {
            if let Ok(note) = Checkpoint::open(&note.note, &keys)
                && note.era() == era
            {
                notes.insert(note.size, note.root);
            }
        }
    }
    notes.extend(trusted.and_then(|head| Some((head.size, head.root()?))));
    let remains = match state {
        Some(_) => read(audit, chain, &notes).await?,
        None => Remains::default(),
    };
    let from = notes
        .last_key_value()
        .map_or((0, tree::empty_root()), |(size, root)| (*size, *root));
    // What was found of the outbox stands in a chain that is as it was signed.
    let accepted = stored
        .iter()
        .filter_map(|(_, note)| Discontinuity::open(note, CLUSTER, &keys).ok());
    let accepted: Vec<_> = accepted.filter(|one| one.chain == chain).collect();
    let accepted_at = accepted.iter().map(|one| one.time).max();
    let accepted = accepted.iter().map(|one| one.to.0).max().unwrap_or(0);
    let told = if chain == ADMIN_CHAIN {
        audit.foreign_entries().await?
    } else {
        Vec::new()
    };
    let is_told = told
        .iter()
        .any(|(_, at)| accepted_at.is_none_or(|accepted| accepted < *at));
    let is_open = is_told || remains.outbox.is_some_and(|seq| seq >= accepted);
    if from.0 <= remains.frontier.size() && remains.intact >= from.0 && !is_open {
        bail!("chain `{chain}` continues what was signed of it: there is nothing to re-anchor");
    }
    Ok(Discontinuity {
        chain,
        era: era.saturating_add(1),
        from,
        to: (remains.frontier.size(), remains.frontier.root()),
        peaks: remains.frontier.peaks().to_vec(),
        last: remains.head.map(|head| head.hash),
        intact: remains.intact,
        issued: state
            .and_then(|state| state.issued)
            .map_or(0, |last| last.saturating_add(1))
            .max(from.0),
        time: now,
        actor: options.actor.clone(),
        reason: options.reason.clone(),
    })
}

/// The chain's rows as leaves; a number without a row is a leaf of zeros.
async fn read(audit: &AuditStore, chain: ChainId, notes: &BTreeMap<u64, Hash>) -> anyhow::Result<Remains> {
    let mut remains = Remains::default();
    let mut outbox = OutboxIds::default();
    let mut next = 0;
    loop {
        let rows = audit.rows(chain, next, PAGE).await?;
        if rows.is_empty() {
            let gaps = outbox.gaps().into_iter().map(|(_, seq)| seq).max();
            remains.outbox = remains.outbox.max(gaps);
            return Ok(remains);
        }
        for row in rows {
            while remains.frontier.size() < row.seq {
                remains.push(Hash::ZERO, notes);
            }
            if tells_of_outbox(&row, &mut outbox) {
                remains.outbox = Some(row.seq);
            }
            let hash = tree::leaf(&row.bytes);
            let time = Header::read(&row.bytes).map(|(header, _)| header.time);
            let before = remains.head.map_or(Timestamp::from_micros(0), |head| head.time);
            remains.head = Some(Head {
                size: row.seq.saturating_add(1),
                hash,
                time: time.unwrap_or(before).max(before),
            });
            remains.push(hash, notes);
            next = row.seq.saturating_add(1);
        }
    }
}

/// Whether an entry tells of outbox rows that were changed or removed.
fn tells_of_outbox(row: &SealedRow, outbox: &mut OutboxIds) -> bool {
    let content = StoredEntry::new(row.bytes.clone(), row.openings.clone())
        .ok()
        .and_then(|entry| entry.content().ok());
    match content {
        Some(Content::Record(Record::Admin(entry))) => outbox.see(row.seq, &entry).is_some(),
        Some(Content::Record(Record::Security(event))) => is_alarm(&event),
        _ => false,
    }
}

impl Remains {
    fn push(&mut self, leaf: Hash, notes: &BTreeMap<u64, Hash>) {
        self.frontier.push(leaf);
        // Trees grow: what one note covers is as it was, once a later one holds.
        if notes
            .get(&self.frontier.size())
            .is_some_and(|root| *root == self.frontier.root())
        {
            self.intact = self.frontier.size();
        }
    }
}

/// The record, the end of the chain and a checkpoint of it; the record first, for it explains the rest.
pub(crate) async fn confirm(
    audit: &AuditStore,
    file: &HeadsFile,
    key: &CheckpointKey,
    discontinuity: &Discontinuity,
) -> anyhow::Result<()> {
    let chain = discontinuity.chain;
    let note = discontinuity.sign(CLUSTER, key);
    let known = audit
        .chain_states()
        .await?
        .into_iter()
        .find(|state| state.chain == chain);
    let remains = match known {
        Some(_) => Some(read(audit, chain, &BTreeMap::new()).await?),
        None => None,
    };
    if remains
        .as_ref()
        .is_some_and(|remains| remains.frontier.root() != discontinuity.to.1)
    {
        bail!("the chain changed meanwhile: look again");
    }
    if let Some(remains) = &remains {
        move_end(audit, chain, remains.head).await?;
    }
    audit
        .insert_discontinuity(chain, &note)
        .await
        .context("the record cannot be kept")?;
    file.update(|heads| heads.re_anchor(&note, discontinuity))
        .context("the trusted heads cannot be written")?;
    say(format_args!("\n{note}\n"));
    if remains.is_some() && discontinuity.to.0 > 0 {
        let (size, root) = discontinuity.to;
        let checkpoint = Checkpoint::new(chain.origin(CLUSTER), size, root).in_era(discontinuity.era);
        let note = checkpoint.sign(key);
        audit
            .insert_checkpoint(chain, size, &note)
            .await
            .context("the checkpoint cannot be kept")?;
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

/// Moves the end of the chain once nobody holds it: the claim of a stopped writer lasts a while, a living one's does not end.
async fn move_end(audit: &AuditStore, chain: ChainId, head: Option<Head>) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        match audit.move_end(chain, "re-anchor", head).await {
            Ok(()) => return Ok(()),
            Err(StoreError::OtherInstance(_)) if began.elapsed() < CLAIM => {
                if began.elapsed() < BETWEEN {
                    complain("waiting for the claim of the chain's writer to end");
                }
                sleep(BETWEEN).await;
            }
            Err(error @ StoreError::OtherInstance(_)) => {
                return Err(anyhow::Error::from(error).context("a running instance writes the chain: stop it first"));
            }
            Err(error) => return Err(anyhow::Error::from(error).context("the end of the chain cannot be moved")),
        }
    }
}
