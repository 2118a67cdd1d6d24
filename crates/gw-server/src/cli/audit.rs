//! `audit verify`: every chain of the audit store, entry by entry, against what was signed (spec/70 rule 20); the other
//! commands on the audit log are in modules of their own.
//!
//! Reads only and takes no lock, so it runs beside the service. Exit codes: [`super`].

mod notes;
pub(crate) mod re_anchor;

use super::{EXIT_FINDING, complain, say};
use crate::{
    config::{
        Config,
        kind::{DATABASE, signing_key, span},
    },
    serve::{
        CLUSTER, Fault,
        stores::{Ground, checkpoint_key},
    },
    trust::read_heads,
    verification::{ChainReport, Known, Numbers, Pass, SILENCE, compare_numbers, verify_all},
};
use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand, ValueEnum};
use gw_audit::{CheckpointPublicKey, Hash, Stream, verify::Finding};
use gw_store::{Location, Store, audit::AuditStore};
use gw_types::{Secret, Timestamp};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};
use tokio::time::timeout;

const INCOMPLETE: u8 = 3;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Recompute every chain and compare it with what was signed; reads only.
    Verify(Verify),
    /// Say what is whole in a damaged journal and what is lost; with --confirm go on with what is whole.
    Salvage(super::salvage::Salvage),
    /// Erase what the log holds of a person, under a record that says so; chain and proofs stay.
    Erase(super::erase::Erase),
    /// Sign that a chain goes on from what the audit store has, as after a restored backup. The gap stays listed.
    ReAnchor(re_anchor::ReAnchor),
}

#[derive(Debug, Args)]
pub(super) struct Verify {
    /// Which chains: a stream (access, admin, security; also access_logs and rbac_audit_log), or all.
    #[arg(long, default_value = "all")]
    chain: Chains,
    /// The audit store, where it is not AUDIT_DATABASE_URL.
    #[arg(long, value_name = "URL", value_parser = database)]
    database_url: Option<Secret>,
    /// Give up after this long.
    #[arg(long, default_value = "5m", value_parser = |text: &str| span(text, 1, 86_400).ok_or("not a span such as `5m`"))]
    timeout: Duration,
    /// Signed notes that were kept elsewhere: notes, lines of the log that hold them, or a copy of `trusted-heads`. May be
    /// repeated.
    #[arg(long, value_name = "FILE")]
    checkpoint: Vec<PathBuf>,
    /// Public key of the checkpoints (PEM), where the private one is not at hand; may be repeated after a rotation.
    #[arg(long, value_name = "FILE")]
    public_key: Vec<PathBuf>,
    /// Look at entries from this number on only; of those before, the stored hash is taken.
    #[arg(long, value_name = "SIZE", default_value_t = 0)]
    since: u64,
    /// How the findings are written.
    #[arg(long, default_value = "text")]
    format: Format,
}

fn database(text: &str) -> Result<Secret, String> {
    (DATABASE.parse)(text).ok_or_else(|| format!("not {}", DATABASE.rule))
}

#[derive(Clone, Copy, Debug)]
enum Chains {
    All,
    Of(Stream),
}

impl core::str::FromStr for Chains {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self::All),
            "access_logs" => Ok(Self::Of(Stream::Access)),
            "rbac_audit_log" => Ok(Self::Of(Stream::Admin)),
            other => other
                .parse()
                .map(Self::Of)
                .map_err(|_| format!("there is no chain `{other}`")),
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Json,
}

pub(super) async fn run(command: Command, config: Config) -> Result<ExitCode, Fault> {
    match command {
        Command::Verify(options) => verify(&options, &config).await,
        Command::ReAnchor(options) => re_anchor::run(options, &config).await,
        Command::Salvage(options) => super::salvage::run(&options, &config),
        Command::Erase(options) => super::erase::run(options, config).await,
    }
}

async fn verify(options: &Verify, config: &Config) -> Result<ExitCode, Fault> {
    let ground = Ground::read_only(config);
    let mut known = known(options, config).map_err(Fault::Unreadable)?;
    let mut store = ground.audit_store(config).map_err(Fault::Unreadable)?;
    if let Some(url) = &options.database_url {
        store.location = Location::postgres(url.clone()).with_lifetime(config.store.max_lifetime);
    }
    let audit = open(store).await.map_err(Fault::Unreadable)?;
    let pass = Pass {
        cluster: CLUSTER,
        interval: config.audit.checkpoint_interval,
        now: ground.clock.now(),
        since: options.since,
        rest: 0,
        erased: &|_, _| false,
    };
    let work = async {
        for (table, repair) in audit.exhausted_ids().await? {
            complain(format_args!(
                "the ids of table `{table}` of the audit database are used up; put them right: {repair}"
            ));
        }
        tell_foreign("audit", audit.foreign_objects().await?);
        // Another machine has its own policy store, if any.
        if options.database_url.is_none() {
            let store = policy_store(&ground, config).await;
            let numbers = match &store {
                Ok(store) => {
                    let silence = SILENCE.min(options.timeout / 2);
                    known.is_policy_changed = tell_foreign("policy", store.foreign_objects().await?);
                    compare_numbers(&audit, store, &config.audit.journal_dir, silence).await
                }
                Err(error) => Err(anyhow!("{error:#}")),
            };
            known.numbers = numbers.unwrap_or_else(|error| {
                complain(format_args!(
                    "{error:#}; lost journals are found once their writers were silent for 15 minutes"
                ));
                Numbers::default()
            });
        }
        look(&audit, &known, &pass, options).await
    };
    match timeout(options.timeout, work).await {
        Ok(Ok(clean)) => Ok(if clean {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(EXIT_FINDING)
        }),
        Ok(Err(error)) => Err(Fault::Unreadable(error)),
        Err(_) => {
            complain(format_args!("not finished within {} s", options.timeout.as_secs()));
            Ok(ExitCode::from(INCOMPLETE))
        }
    }
}

async fn policy_store(ground: &Ground, config: &Config) -> anyhow::Result<Store> {
    let store = ground
        .policy_store(config)
        .context("the policy store cannot be opened")?;
    Store::open(store).await.context("the policy store cannot be opened")
}

/// Names what is attached to a database that no migration made; whether anything is.
fn tell_foreign(database: &str, found: Vec<String>) -> bool {
    for object in &found {
        complain(format_args!(
            "no migration made this in the {database} database: {object}; find out who did, and remove it"
        ));
    }
    !found.is_empty()
}

async fn open(store: gw_store::StoreConfig) -> anyhow::Result<AuditStore> {
    let audit = AuditStore::open(store)
        .await
        .context("the audit store cannot be opened")?;
    audit
        .check_schema()
        .await
        .context("the audit store's schema is not this version's")?;
    Ok(audit)
}

/// The keys, the trusted heads of this machine's journal, and the notes kept elsewhere.
fn known(options: &Verify, config: &Config) -> anyhow::Result<Known> {
    let heads = match read_heads(&config.audit.journal_dir) {
        Ok(heads) => heads.unwrap_or_default(),
        Err(error) => {
            complain(format_args!("{error:#}; the chains are compared without it"));
            Default::default()
        }
    };
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
    // A journal that cannot be read vouches for nothing.
    let shard = gw_journal::shard_of(&config.audit.journal_dir).ok().flatten();
    Ok(Known {
        keys,
        heads,
        notes,
        shard,
        numbers: Numbers::default(),
        is_policy_changed: false,
    })
}

/// The public half of the key in use.
fn own_key(config: &Config) -> anyhow::Result<CheckpointPublicKey> {
    let secret = checkpoint_key(config)?.context(
        "there is no checkpoint key yet: set AUDIT_CHECKPOINT_KEY, or name the public one with --public-key",
    )?;
    let key = signing_key(secret.expose()).context("the checkpoint key cannot be read")?;
    CheckpointPublicKey::from_bytes(&key.verifying_key().to_bytes()).context("the checkpoint key cannot be used")
}

fn read_key(path: &Path) -> anyhow::Result<CheckpointPublicKey> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
    CheckpointPublicKey::from_pem(&text).with_context(|| format!("{} cannot be used", path.display()))
}

/// Whether all chains are clean.
async fn look(audit: &AuditStore, known: &Known, pass: &Pass<'_>, options: &Verify) -> anyhow::Result<bool> {
    let (mut clean, mut looked_at) = (true, 0);
    let wanted = |chain: gw_audit::ChainId| match options.chain {
        Chains::All => true,
        Chains::Of(stream) => stream == chain.stream,
    };
    verify_all(audit, known, pass, &BTreeMap::new(), wanted, |found| {
        looked_at += 1;
        clean &= found.report.is_clean();
        show(&found, options.format);
    })
    .await?;
    if looked_at == 0 {
        complain("there is no such chain yet");
    }
    Ok(clean)
}

/// One line per chain, and one for each re-anchoring.
fn show(found: &ChainReport, format: Format) {
    let ChainReport {
        chain, report, seed, ..
    } = found;
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
            }
            say("\n");
            for one in &report.discontinuities {
                say(format_args!(
                    "  authorized: re-anchored {} from {} to {} entries, intact up to {}, by {} because: {}; {} findings in it\n",
                    one.time.to_rfc3339(),
                    one.from.0,
                    one.to.0,
                    one.intact,
                    one.actor,
                    one.reason,
                    report.authorized.len(),
                ));
            }
        }
        Format::Json => {
            let list = |findings: &[Finding]| findings.iter().map(shown).collect::<Vec<_>>();
            let re_anchored = report.discontinuities.iter().map(|one| {
                json!({
                    "time": one.time.to_rfc3339(),
                    "from": one.from.0,
                    "to": one.to.0,
                    "intact": one.intact,
                    "actor": one.actor,
                    "reason": one.reason,
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

fn shown(found: &Finding) -> Value {
    json!({
        "reason": found.kind.as_str(),
        "id": found.seq,
        "time": found.time,
        "stored": found.stored,
        "expected": found.expected,
    })
}

fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}
