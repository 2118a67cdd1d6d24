//! `audit verify`: every chain of the audit store, entry by entry, against what was signed (spec/70 rule 20).
//!
//! Reads only and takes no lock, so it runs beside the service. Exit codes: [`super`].

use super::{EXIT_FINDING, complain, say};
use crate::{
    config::{
        Config,
        kind::{signing_key, span},
    },
    serve::{
        CLUSTER, Fault,
        stores::{Ground, checkpoint_key},
    },
};
use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use gw_audit::{
    ChainId, CheckpointPublicKey, Stream,
    verify::{Finding, FindingKind, Report, Row, Trust, Walk},
};
use gw_store::audit::AuditStore;
use serde_json::json;
use std::{path::PathBuf, process::ExitCode, time::Duration};
use tokio::time::timeout;

/// Rows read at once.
const PAGE: u64 = 2000;
const INCOMPLETE: u8 = 3;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Recompute every chain and compare it with its signed checkpoints; reads only.
    Verify(Verify),
    /// Say what is whole in a damaged journal and what is lost; with --confirm go on with what is whole.
    Salvage(super::salvage::Salvage),
    /// Erase what the log holds of a person, under a record that says so; chain and proofs stay.
    Erase(super::erase::Erase),
}

#[derive(Debug, Args)]
pub(super) struct Verify {
    /// Which chains: a stream (access, admin, security; also access_logs and rbac_audit_log), or all.
    #[arg(long, default_value = "all")]
    chain: Chains,
    /// Give up after this long.
    #[arg(long, default_value = "5m", value_parser = |text: &str| span(text, 1, 86_400).ok_or("not a span such as `5m`"))]
    timeout: Duration,
    /// Public key of the checkpoints (PEM), where the private one is not at hand; may be repeated after a rotation.
    #[arg(long, value_name = "FILE")]
    public_key: Vec<PathBuf>,
    /// How the findings are written.
    #[arg(long, default_value = "text")]
    format: Format,
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
            other => other.parse().map(Self::Of).map_err(|_| format!("there is no chain `{other}`")),
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Json,
}

pub(super) async fn run(command: Command, config: Config) -> Result<ExitCode, Fault> {
    let options = match command {
        Command::Verify(options) => options,
        Command::Salvage(options) => return super::salvage::run(&options, &config),
        Command::Erase(options) => return super::erase::run(options, config).await,
    };
    let ground = Ground::read_only(&config);
    let keys = if options.public_key.is_empty() {
        own_key(&config).map(|key| vec![key])
    } else {
        options.public_key.iter().map(read_key).collect()
    }
    .map_err(Fault::Unreadable)?;
    let audit = open(&ground, &config).await.map_err(Fault::Unreadable)?;
    match timeout(options.timeout, verify(&audit, &keys, &options)).await {
        Ok(Ok(clean)) => Ok(if clean { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FINDING) }),
        Ok(Err(error)) => Err(Fault::Unreadable(error)),
        Err(_) => {
            complain(format_args!("not finished within {} s", options.timeout.as_secs()));
            Ok(ExitCode::from(INCOMPLETE))
        }
    }
}

async fn open(ground: &Ground, config: &Config) -> anyhow::Result<AuditStore> {
    let audit = AuditStore::open(ground.audit_store(config)?).await.context("the audit store cannot be opened")?;
    audit.check_schema().await.context("the audit store's schema is not this version's")?;
    Ok(audit)
}

/// The public half of the key in use.
fn own_key(config: &Config) -> anyhow::Result<CheckpointPublicKey> {
    let secret = checkpoint_key(config)?.context(
        "there is no checkpoint key yet: set AUDIT_CHECKPOINT_KEY, or name the public one with --public-key",
    )?;
    let key = signing_key(secret.expose()).context("the checkpoint key cannot be read")?;
    CheckpointPublicKey::from_bytes(&key.verifying_key().to_bytes()).context("the checkpoint key cannot be used")
}

fn read_key(path: &PathBuf) -> anyhow::Result<CheckpointPublicKey> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
    CheckpointPublicKey::from_pem(&text).with_context(|| format!("{} cannot be used", path.display()))
}

/// Whether all chains are clean.
async fn verify(audit: &AuditStore, keys: &[CheckpointPublicKey], options: &Verify) -> anyhow::Result<bool> {
    let mut clean = true;
    let mut looked_at = 0;
    for (chain, _) in audit.chains().await? {
        if matches!(options.chain, Chains::Of(stream) if stream != chain.stream) {
            continue;
        }
        looked_at += 1;
        let report = walk(audit, chain, keys).await.with_context(|| format!("chain {} cannot be read", name(chain)))?;
        clean &= report.findings.is_empty();
        show(chain, &report, options.format);
    }
    if looked_at == 0 {
        complain("there is no such chain yet");
    }
    Ok(clean)
}

async fn walk(audit: &AuditStore, chain: ChainId, keys: &[CheckpointPublicKey]) -> anyhow::Result<Report> {
    let notes = audit.checkpoints(chain).await?;
    let trust = Trust { cluster: CLUSTER, keys };
    let mut walk = Walk::new(chain, trust, notes.iter().map(String::as_str));
    let mut disagreeing = Vec::new();
    let mut next = 0;
    let mut caught_up = false;
    // Entries and the end move in one transaction: what is sealed meanwhile is read, too, and an end that lies further
    // than the entries is a chain cut short.
    let stored = loop {
        let rows = audit.rows(chain, next, PAGE).await?;
        for row in &rows {
            let (hash, bytes, openings) = (Some(row.hash), &*row.bytes, &*row.openings);
            walk.row(&Row { seq: row.seq, hash, bytes, openings, columns: None });
            if !row.columns_agree {
                let kind = FindingKind::HashMismatch;
                disagreeing.push(Finding { kind, seq: Some(row.seq), time: None, stored: hash, expected: None });
            }
            next = row.seq.saturating_add(1);
        }
        if rows.is_empty() {
            let stored = audit.head(chain).await?;
            if caught_up || stored.map_or(0, |head| head.size) <= next {
                break stored;
            }
        }
        caught_up = rows.is_empty();
    };
    let mut report = walk.finish(stored);
    report.findings.extend(disagreeing);
    Ok(report)
}

fn name(chain: ChainId) -> String {
    format!("{}/{}", chain.stream, chain.shard)
}

/// One line per chain.
fn show(chain: ChainId, report: &Report, format: Format) {
    let first = report.findings.first();
    let tail = report.head.map(|head| head.hash.to_string());
    match format {
        Format::Text => {
            let verdict = if first.is_none() { "OK" } else { "FAIL" };
            say(format_args!(
                "{verdict} {} scanned={} tail={}",
                name(chain),
                report.scanned,
                tail.as_deref().unwrap_or("-")
            ));
            if let Some(found) = first {
                say(format_args!(
                    " findings={} first={} id={} time={} stored={} expected={}",
                    report.findings.len(),
                    found.kind,
                    or_dash(found.seq),
                    or_dash(found.time.map(|time| time.to_rfc3339())),
                    or_dash(found.stored),
                    or_dash(found.expected),
                ));
            }
            say("\n");
        }
        Format::Json => {
            let findings: Vec<_> = report
                .findings
                .iter()
                .map(|found| {
                    json!({
                        "reason": found.kind.to_string(),
                        "id": found.seq,
                        "time": found.time,
                        "stored": found.stored,
                        "expected": found.expected,
                    })
                })
                .collect();
            let line = json!({"chain": name(chain), "ok": first.is_none(), "scanned": report.scanned, "tail": tail, "findings": findings});
            say(format_args!("{line}\n"));
        }
    }
}

fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}
