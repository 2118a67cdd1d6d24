//! `audit erase`: erases the personal values of a user from the audit log, and records the erasure (spec/70 rule 5).
//!
//! Without `--confirm` nothing changes. With it, the command first writes the record through the audit outbox, as every
//! mutation does. Then it deletes salts and values under the role of AUDIT_ADMIN_DATABASE_URL. After a crash in
//! between, values remain: run the command again.

use super::{audit::own_key, eprint_line, say};
use crate::{
    config::Config,
    serve::{
        CLUSTER, ServeError,
        stores::{
            AuditAdmin, NOTHING_IS_PRUNED, Platform, audit_admin, migrate_audit, open_policy, outbox_guard, reach,
        },
    },
};
use anyhow::{Context as _, anyhow};
use clap::Args;
use gw_audit::{ChainId, CheckpointPublicKey, ErasureRecord};
use gw_store::{
    Actor, IndexCheck, Store,
    audit::{AuditStore, ErasurePlan},
    record::Holds,
};
use gw_types::ExternalId;
use std::{collections::BTreeMap, process::ExitCode, time::Duration};
use tokio::time::{Instant, sleep};

/// Exit code if nothing was erased yet, because the record waits to be sealed.
const EXIT_INCOMPLETE: u8 = 3;
/// How long to wait for a running service to seal the record.
const SEALING_TIMEOUT: Duration = Duration::from_secs(30);
/// Limit of the comparison of rows with indexes.
const INDEX_CHECK: Duration = Duration::from_secs(60);
/// Pause between two checks whether the record is sealed.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub(super) struct Erase {
    /// The DID of the user whose personal values are erased.
    #[arg(long, value_name = "DID",
        value_parser = |text: &str| ExternalId::new(text).map_err(|error| error.to_string()))]
    external_id: ExternalId,
    /// The person who runs the command; recorded in the audit log.
    #[arg(long, value_name = "NAME", value_parser = parse_label)]
    actor: String,
    /// The reason; recorded in the audit log. Do not name the user.
    #[arg(long, value_name = "TEXT", value_parser = parse_label)]
    reason: String,
    /// Only show what would be erased; the default.
    #[arg(long, conflicts_with = "confirm")]
    dry_run: bool,
    /// Erase the values. This cannot be undone.
    #[arg(long)]
    confirm: bool,
}

fn parse_label(text: &str) -> Result<String, &'static str> {
    let text = text.trim();
    match text.chars().count() {
        1..=500 => Ok(text.to_owned()),
        _ => Err("must have 1 to 500 characters"),
    }
}

pub(super) async fn run(options: Erase, config: Config) -> Result<ExitCode, ServeError> {
    if !options.confirm {
        return dry_run(&options, &config).await.map_err(ServeError::Unreadable);
    }
    let platform = Platform::hold(&config).map_err(ServeError::into_busy)?;
    Ok(erase(&options, &config, &platform).await?)
}

/// Reads only and takes no lock, so it may run while the service runs.
async fn dry_run(options: &Erase, config: &Config) -> anyhow::Result<ExitCode> {
    let platform = Platform::read_only(config);
    let store = Store::open(platform.policy_store(config)?)
        .await
        .context("the policy store cannot be opened")?;
    let audit = AuditStore::open(platform.audit_store(config)?)
        .await
        .context("the audit store cannot be opened")?;
    audit
        .check_schema()
        .await
        .context("the schema of the audit store does not match this version")?;
    let holds = load_holds(&audit, &store, config).await?;
    print_plan(&audit.plan_erasure(&options.external_id, &holds).await?);
    say("nothing was changed; `--confirm` erases\n");
    Ok(ExitCode::SUCCESS)
}

async fn erase(options: &Erase, config: &Config, platform: &Platform) -> anyhow::Result<ExitCode> {
    let store = open_policy(platform, config, outbox_guard(config)?).await?;
    let audit = migrate_audit(platform, config).await?;
    let admin = match audit_admin(platform, config, &audit).await? {
        AuditAdmin::Own => audit.clone(),
        AuditAdmin::Other(admin_config) => {
            let open = async || AuditStore::open((*admin_config).clone()).await.map_err(Into::into);
            reach("the audit store of AUDIT_ADMIN_DATABASE_URL", open).await?
        }
        AuditAdmin::Missing => return Err(anyhow!("nothing can be erased: {NOTHING_IS_PRUNED}")),
    };
    let external_id = &options.external_id;
    let holds = load_holds(&admin, &store, config).await?;
    let plan = admin.plan_erasure(external_id, &holds).await?;
    print_plan(&plan);
    if plan.entries.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let sealed_before = audit.last_id().await?;
    let records = records(&plan, &options.reason);
    let mut tx = store
        .begin(&Actor::named(format!("system:cli:{}", options.actor)))
        .await?;
    records.iter().for_each(|record| tx.note_erasure(record));
    tx.commit()
        .await
        .context("the record of the erasure could not be written, so nothing was erased")?;
    // The record must be sealed before the values are deleted, or a verification would report missing values. On
    // PostgreSQL a running service seals it. An embedded store is locked by this command, so the next start seals it.
    if config.audit.url.is_some() && !wait_until_sealed(&audit, &records, sealed_before).await? {
        eprint_line(
            "the record is written but not sealed, so nothing was erased: start the service, then run this command \
             again",
        );
        return Ok(ExitCode::from(EXIT_INCOMPLETE));
    }
    let count = admin
        .erase(external_id, &plan)
        .await
        .context("not all values are erased: run this command again")?;
    say(format_args!("{count} entries erased\n"));
    Ok(ExitCode::SUCCESS)
}

/// The legal holds of the policy database, plus those that only the audit log still shows.
///
/// # Errors
/// If one of the databases can hide a hold or an entry; nothing may be erased then.
async fn load_holds(audit: &AuditStore, store: &Store, config: &Config) -> anyhow::Result<Holds> {
    if let IndexCheck::Faulty(faults) = audit.check_indexes(INDEX_CHECK).await? {
        return Err(anyhow!(
            "the indexes of the audit database do not agree with its rows, so nothing is erased: {}",
            faults.join("; ")
        ));
    }
    let previous = config.audit.previous_keys.iter();
    let keys: Vec<_> = own_key(config)
        .ok()
        .into_iter()
        .chain(previous.filter_map(|key| CheckpointPublicKey::from_bytes(key).ok()))
        .collect();
    let known_holds = audit
        .known_holds(store, CLUSTER, &keys)
        .await
        .context("the legal holds cannot be read")?;
    for hold in &known_holds.changed {
        eprint_line(format_args!(
            "legal hold {hold} is active in the audit log, but missing or different in table `legal_holds` of the \
             policy database: the table was changed outside the gateway or restored from an older copy; the entries \
             under the hold are kept; restore the row from the audit entry of its placement"
        ));
    }
    Ok(known_holds.holds)
}

fn records(plan: &ErasurePlan, reason: &str) -> Vec<ErasureRecord> {
    let mut chains: BTreeMap<ChainId, Vec<u64>> = BTreeMap::new();
    for (chain, seq) in &plan.entries {
        chains.entry(*chain).or_default().push(*seq);
    }
    chains
        .into_iter()
        .flat_map(|(chain, seqs)| ErasureRecord::for_entries(chain, seqs, reason))
        .collect()
}

/// Waits until a running service has sealed the records. Returns `false` if it has not in time.
async fn wait_until_sealed(audit: &AuditStore, records: &[ErasureRecord], after: i64) -> anyhow::Result<bool> {
    let begin = Instant::now();
    loop {
        let mut all_sealed = true;
        for record in records {
            all_sealed &= audit.has_sealed_erasure(&record.erased.chain, after).await?;
        }
        if all_sealed || begin.elapsed() > SEALING_TIMEOUT {
            return Ok(all_sealed);
        }
        sleep(POLL_INTERVAL).await;
    }
}

fn print_plan(plan: &ErasurePlan) {
    let mut chains: BTreeMap<ChainId, u64> = BTreeMap::new();
    for (chain, _) in &plan.entries {
        *chains.entry(*chain).or_default() += 1;
    }
    for (chain, count) in chains {
        say(format_args!(
            "{}/{}: {count} entries hold personal values\n",
            chain.stream, chain.shard
        ));
    }
    if plan.entries.is_empty() {
        say("nothing to erase\n");
    }
    if plan.held > 0 {
        say(format_args!(
            "{} entries are kept: they are under a legal hold\n",
            plan.held
        ));
    }
    if plan.unreadable > 0 {
        say(format_args!(
            "{} entries are kept: they cannot be read, run `audit verify`\n",
            plan.unreadable
        ));
    }
}
