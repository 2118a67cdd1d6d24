//! `audit verify`: compares every chain of the audit store, entry by entry, with the signed notes (spec/70 rule 20).
//! The other commands on the audit log have their own modules.
//!
//! Reads only and takes no lock, so it may run while the service runs. Exit codes: [`super`].

mod notes;
pub(crate) mod re_anchor;

use super::{EXIT_FINDING, eprint_line, say};
use crate::{
    config::{
        Config,
        kind::{DATABASE, signing_key, span},
    },
    serve::{
        CLUSTER, ServeError,
        stores::{Platform, checkpoint_key, outbox_guard},
    },
    trust::read_heads,
    verification::{ChainReport, Known, Numbers, Pass, SILENCE, compare_numbers, verify_all},
    workers::{ADMIN_CHAIN, index_faults},
};
use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand, ValueEnum};
use gw_audit::{Checkpoint, CheckpointPublicKey, Hash, Stream, verify::Finding};
use gw_store::{Store, StoreConfig, audit::AuditStore};
use gw_types::{Secret, Timestamp};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};
use tokio::time::{sleep, timeout};

/// Exit code if the verification did not finish in time.
const EXIT_INCOMPLETE: u8 = 3;

/// Time between the two attempts to read a table.
const SECOND_TRY: Duration = Duration::from_secs(2);

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Recompute every chain and compare it with the signed notes; reads only.
    Verify(Verify),
    /// Report the intact and the lost records of a damaged journal; with --confirm, continue with the intact ones.
    Salvage(super::salvage::Salvage),
    /// Erase the personal values of a user, and record the erasure; chains and proofs stay valid.
    Erase(super::erase::Erase),
    /// Sign that a chain continues from the entries in the audit store, for example after a restored backup. The gap
    /// stays visible in `audit verify`.
    ReAnchor(re_anchor::ReAnchor),
}

#[derive(Debug, Args)]
pub(super) struct Verify {
    /// The chains to verify: a stream (access, admin, security; also access_logs and rbac_audit_log), or all.
    #[arg(long, default_value = "all")]
    chain: Chains,
    /// The audit store, if it is not that of AUDIT_DATABASE_URL.
    #[arg(long, value_name = "URL", value_parser = database)]
    database_url: Option<Secret>,
    /// Stop after this time.
    #[arg(long, default_value = "5m", value_parser = |text: &str| span(text, 1, 86_400).ok_or("not a duration such as \
         `5m`"))]
    timeout: Duration,
    /// A file with signed notes from another place: plain notes, log lines that contain them, or a copy of
    /// `trusted-heads`. May be repeated.
    #[arg(long, value_name = "FILE")]
    checkpoint: Vec<PathBuf>,
    /// Public key of the checkpoints (PEM), if the private key is not available. May be repeated after a rotation.
    #[arg(long, value_name = "FILE")]
    public_key: Vec<PathBuf>,
    /// Verify entries from this number on only; for earlier entries the stored hash is trusted.
    #[arg(long, value_name = "SIZE", default_value_t = 0)]
    since: u64,
    /// Output format of the findings.
    #[arg(long, default_value = "text")]
    format: Format,
}

fn database(text: &str) -> Result<Secret, String> {
    (DATABASE.parse)(text).ok_or_else(|| format!("not {}", DATABASE.rule))
}

#[derive(Clone, Copy, Debug)]
enum Chains {
    All,
    Stream(Stream),
}

impl core::str::FromStr for Chains {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self::All),
            "access_logs" => Ok(Self::Stream(Stream::Access)),
            "rbac_audit_log" => Ok(Self::Stream(Stream::Admin)),
            name => name
                .parse()
                .map(Self::Stream)
                .map_err(|_| format!("there is no chain `{name}`")),
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Json,
}

pub(super) async fn run(command: Command, config: Config) -> Result<ExitCode, ServeError> {
    match command {
        Command::Verify(options) => verify(&options, &config).await,
        Command::ReAnchor(options) => re_anchor::run(options, &config).await,
        Command::Salvage(options) => super::salvage::run(&options, &config),
        Command::Erase(options) => super::erase::run(options, config).await,
    }
}

async fn verify(options: &Verify, config: &Config) -> Result<ExitCode, ServeError> {
    let platform = Platform::read_only(config);
    let mut known = load_known(options, config).map_err(ServeError::Unreadable)?;
    let store = match &options.database_url {
        Some(url) => platform.audit_store_at(config, url),
        None => platform.audit_store(config),
    };
    let audit = open(store.map_err(ServeError::Unreadable)?)
        .await
        .map_err(ServeError::Unreadable)?;
    let pass = Pass {
        cluster: CLUSTER,
        interval: config.audit.checkpoint_interval,
        now: platform.clock.now(),
        since: options.since,
        rest: 0,
        report_index_faults: &|faults| print_index_faults("audit", faults),
    };
    let work = async {
        report_unreadable(&audit).await?;
        // What cannot be read here is a finding of the verification below.
        for (table, repair) in audit.exhausted_ids().await.unwrap_or_default() {
            eprint_line(format_args!(
                "the ids of table `{table}` of the audit database are exhausted; repair it with: {repair}"
            ));
        }
        report_foreign("audit", audit.schema_differences().await.unwrap_or_default());
        // With --database-url the audit store may belong to another machine, whose policy store is not known here.
        if options.database_url.is_none() {
            let store = policy_store(&platform, config).await;
            // Without the key of the outbox, a forged row would make removed values look erased.
            if let Ok(store) = &store
                && checkpoint_key(config)?.is_some()
            {
                match store.waiting_erasures().await {
                    Ok(waiting) => known.waiting_erasures = waiting,
                    Err(error) => eprint_line(format_args!(
                        "the outbox of the policy store cannot be read: {error}; erasures whose record waits there are \
                         reported as missing values"
                    )),
                }
            }
            let numbers = match &store {
                Ok(store) => {
                    let silence = SILENCE.min(options.timeout / 2);
                    known.signed_heads = signed_heads(store, &known.keys).await.unwrap_or_else(|error| {
                        eprint_line(format_args!(
                            "{error:#}; a chain that was removed as a whole is missed only by the trusted heads"
                        ));
                        Vec::new()
                    });
                    known.is_policy_changed =
                        report_foreign("policy", store.schema_differences().await?) | has_index_faults(store).await?;
                    known.is_policy_rewound = is_rewound(&audit, store).await.unwrap_or_else(|error| {
                        eprint_line(format_args!(
                            "the ids of the policy store cannot be compared: {error:#}"
                        ));
                        false
                    });
                    compare_numbers(&audit, store, &config.audit.journal_dir, silence).await
                }
                Err(error) => Err(anyhow!("{error:#}")),
            };
            known.numbers = numbers.unwrap_or_else(|error| {
                eprint_line(format_args!(
                    "{error:#}; without the policy store, a lost journal is reported only after its writer was silent \
                     for 15 minutes"
                ));
                Numbers::default()
            });
        }
        verify_chains(&audit, &known, &pass, options).await
    };
    match timeout(options.timeout, work).await {
        Ok(Ok(clean)) => Ok(if clean {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(EXIT_FINDING)
        }),
        Ok(Err(error)) => Err(ServeError::Unreadable(error)),
        Err(_) => {
            eprint_line(format_args!(
                "the verification did not finish within {} s: raise --timeout, or pass --since",
                options.timeout.as_secs()
            ));
            Ok(ExitCode::from(EXIT_INCOMPLETE))
        }
    }
}

/// Prints the tables that cannot be read. A lock may be gone in a moment, so they are tried twice.
async fn report_unreadable(audit: &AuditStore) -> anyhow::Result<()> {
    if audit.unreadable_tables().await?.is_empty() {
        return Ok(());
    }
    sleep(SECOND_TRY).await;
    for (table, error) in audit.unreadable_tables().await? {
        eprint_line(format_args!(
            "table `{table}` of the audit database cannot be read: {:#}",
            anyhow::Error::from(error)
        ));
    }
    Ok(())
}

async fn policy_store(platform: &Platform, config: &Config) -> anyhow::Result<Store> {
    let store = platform
        .policy_store(config)
        .context("the policy store cannot be opened")?;
    let store = StoreConfig {
        outbox: outbox_guard(config)?,
        ..store
    };
    Store::open(store).await.context("the policy store cannot be opened")
}

/// Whether the audit store has mutations of this policy store with higher ids than the policy store has issued.
async fn is_rewound(audit: &AuditStore, store: &Store) -> anyhow::Result<bool> {
    // The sealed id first: the policy store issues an id before it is sealed.
    let Some(newest) = audit.newest_mutation(ADMIN_CHAIN, None).await? else {
        return Ok(false);
    };
    let mark = store.outbox_mark().await?;
    let Some(sealed) = newest.id.filter(|_| newest.store == Some(mark.store)) else {
        return Ok(false);
    };
    if sealed > mark.last_id {
        eprint_line(format_args!(
            "mutations up to {sealed} of the policy database are sealed, and it has issued ids up to {} only: it is an \
             older copy, or its counter was set back; the mutations in between are not in it",
            mark.last_id
        ));
    }
    Ok(sealed > mark.last_id)
}

/// The signed heads that the policy store keeps: a copy outside the audit store.
///
/// # Errors
/// If the policy store cannot be read.
pub(super) async fn signed_heads(store: &Store, keys: &[CheckpointPublicKey]) -> anyhow::Result<Vec<Checkpoint>> {
    let notes = store
        .signed_heads()
        .await
        .context("the signed heads in the policy store cannot be read")?;
    Ok(notes
        .iter()
        .filter_map(|note| Checkpoint::open(note, keys).ok())
        .collect())
}

/// Prints the objects of a database that are not as the migrations made them. Returns whether there are any.
fn report_foreign(database: &str, objects: Vec<String>) -> bool {
    for object in &objects {
        eprint_line(format_args!(
            "an object of the {database} database is not as the migrations made it: {object}; find out who changed it, \
             and restore or remove it"
        ));
    }
    !objects.is_empty()
}

/// Prints the faults of the indexes of the policy database. Returns whether there are any.
///
/// # Errors
/// If the policy store cannot be read.
async fn has_index_faults(store: &Store) -> anyhow::Result<bool> {
    let faults = index_faults(store).await?;
    print_index_faults("policy", &faults);
    Ok(!faults.is_empty())
}

fn print_index_faults(database: &str, faults: &[String]) {
    for fault in faults {
        eprint_line(format_args!(
            "an index of the {database} database does not agree with the rows of its table: {fault}; find out who \
             changed it, keep a copy of the database, and run REINDEX on the index"
        ));
    }
}

async fn open(store: StoreConfig) -> anyhow::Result<AuditStore> {
    let audit = AuditStore::open(store)
        .await
        .context("the audit store cannot be opened")?;
    audit
        .check_schema()
        .await
        .context("the schema of the audit store does not match this version")?;
    Ok(audit)
}

/// Loads the keys, the trusted heads of this machine's journal, and the notes of `--checkpoint`.
fn load_known(options: &Verify, config: &Config) -> anyhow::Result<Known> {
    // Without damaged heads, last entries that were removed with their notes would not be missed.
    let heads = read_heads(&config.audit.journal_dir)?.unwrap_or_default();
    let keys = if options.public_key.is_empty() {
        let previous = config
            .audit
            .previous_keys
            .iter()
            .filter_map(|key| CheckpointPublicKey::from_bytes(key).ok());
        [own_key(config)?]
            .into_iter()
            .chain(previous)
            .chain(heads.keys())
            .collect()
    } else {
        options
            .public_key
            .iter()
            .map(|path| read_key(path))
            .collect::<anyhow::Result<Vec<_>>>()?
    };
    let mut notes = Vec::new();
    for path in &options.checkpoint {
        notes.extend(notes::read(path, &keys)?);
    }
    // A journal that cannot be read counts as missing.
    let shard = gw_journal::shard_of(&config.audit.journal_dir).ok().flatten();
    Ok(Known {
        keys,
        heads,
        notes,
        signed_heads: Vec::new(),
        shard,
        numbers: Numbers::default(),
        is_policy_changed: false,
        is_policy_rewound: false,
        waiting_erasures: Vec::new(),
    })
}

/// The public half of the current checkpoint key.
pub(super) fn own_key(config: &Config) -> anyhow::Result<CheckpointPublicKey> {
    let secret = checkpoint_key(config)?.context(
        "there is no checkpoint key yet: set AUDIT_CHECKPOINT_KEY, or pass the public key with --public-key",
    )?;
    let key = signing_key(secret.expose()).context("the checkpoint key cannot be read")?;
    CheckpointPublicKey::from_bytes(&key.verifying_key().to_bytes()).context("the checkpoint key cannot be used")
}

fn read_key(path: &Path) -> anyhow::Result<CheckpointPublicKey> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
    CheckpointPublicKey::from_pem(&text).with_context(|| format!("{} holds no valid public key in PEM", path.display()))
}

/// Verifies the selected chains and prints a report for each. Returns whether all are without a finding.
async fn verify_chains(audit: &AuditStore, known: &Known, pass: &Pass<'_>, options: &Verify) -> anyhow::Result<bool> {
    let (mut clean, mut verified) = (true, 0);
    let is_selected = |chain: gw_audit::ChainId| match options.chain {
        Chains::All => true,
        Chains::Stream(stream) => stream == chain.stream,
    };
    verify_all(audit, known, pass, &BTreeMap::new(), is_selected, |chain_report| {
        verified += 1;
        clean &= chain_report.report.is_clean();
        print_report(&chain_report, options.format);
    })
    .await?;
    if verified == 0 {
        eprint_line("there is no such chain yet");
    }
    Ok(clean)
}

/// Prints one line per chain, and in text format one for each re-anchoring.
fn print_report(chain_report: &ChainReport, format: Format) {
    let ChainReport {
        chain, report, seed, ..
    } = chain_report;
    let first = report.findings.first();
    let tail = report.head.map(|head| head.hash.to_string());
    let seed = (*seed != Hash::ZERO).then(|| seed.to_string());
    match format {
        Format::Text => {
            let verdict = if first.is_none() { "OK" } else { "FAIL" };
            let (seed, tail) = (or_dash(seed), or_dash(tail));
            say(format_args!(
                "{verdict} {chain} scanned={} seed={seed} tail={tail}",
                report.scanned
            ));
            if let Some(first) = first {
                let count = u64::try_from(report.findings.len())
                    .unwrap_or(u64::MAX)
                    .saturating_add(report.omitted);
                say(format_args!(
                    " findings={count} first={} id={} time={} stored={} expected={}",
                    first.kind,
                    or_dash(first.seq),
                    or_dash(first.time.map(Timestamp::to_rfc3339)),
                    or_dash(first.stored),
                    or_dash(first.expected),
                ));
                if let Some(place) = first.place {
                    say(format_args!(" table={} row={}", place.table, or_dash(place.id)));
                }
            }
            say("\n");
            for discontinuity in &report.discontinuities {
                say(format_args!(
                    "  authorized: re-anchored {} from {} to {} entries, intact up to {}, by {} because: {}; {} \
                     findings in it\n",
                    discontinuity.time.to_rfc3339(),
                    discontinuity.from.0,
                    discontinuity.to.0,
                    discontinuity.intact,
                    discontinuity.actor,
                    discontinuity.reason,
                    report.authorized.len(),
                ));
            }
        }
        Format::Json => {
            let list = |findings: &[Finding]| findings.iter().map(finding_json).collect::<Vec<_>>();
            let re_anchored = report.discontinuities.iter().map(|discontinuity| {
                json!({
                    "time": discontinuity.time.to_rfc3339(),
                    "from": discontinuity.from.0,
                    "to": discontinuity.to.0,
                    "intact": discontinuity.intact,
                    "actor": discontinuity.actor,
                    "reason": discontinuity.reason,
                })
            });
            let line = json!({
                "chain": chain.to_string(),
                "ok": first.is_none(),
                "scanned": report.scanned,
                "seed": seed,
                "tail": tail,
                "findings": list(&report.findings),
                "omitted": report.omitted,
                "authorized": list(&report.authorized),
                "re_anchored": re_anchored.collect::<Vec<_>>(),
            });
            say(format_args!("{line}\n"));
        }
    }
}

fn finding_json(finding: &Finding) -> Value {
    json!({
        "reason": finding.kind.as_str(),
        "id": finding.seq,
        "time": finding.time,
        "stored": finding.stored,
        "expected": finding.expected,
        "table": finding.place.map(|place| place.table),
        "row": finding.place.and_then(|place| place.id),
    })
}

fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}
