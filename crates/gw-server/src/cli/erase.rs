//! `audit erase`: what the audit log holds of a person is erased, and an entry says so (spec/70 rule 5).
//!
//! Without `--confirm` nothing changes. With it, first the record is written on the path of all mutations, then salts and
//! values go by the role that may (AUDIT_ADMIN_DATABASE_URL). A crash in between leaves values; run it again.

use super::{complain, say};
use crate::{
    config::Config,
    serve::{
        Fault,
        stores::{AuditAdmin, Ground, NOTHING_IS_PRUNED, audit_admin, migrate_audit, open_policy, outbox_guard, reach},
    },
};
use anyhow::{Context as _, anyhow};
use clap::Args;
use gw_audit::{ChainId, ErasureRecord};
use gw_store::{
    Actor, Store,
    audit::{AuditStore, ErasurePlan},
    record::Holds,
};
use gw_types::ExternalId;
use std::{collections::BTreeMap, process::ExitCode, time::Duration};
use tokio::time::{Instant, sleep};

/// Not finished: the record waits to be sealed.
const EXIT_INCOMPLETE: u8 = 3;
/// How long a running service gets to seal the record.
const SEALING: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub(super) struct Erase {
    /// Whose personal values: a DID.
    #[arg(long, value_name = "DID", value_parser = |text: &str| ExternalId::new(text).map_err(|error| error.to_string()))]
    external_id: ExternalId,
    /// Who erases, for the audit log.
    #[arg(long, value_name = "NAME", value_parser = said)]
    actor: String,
    /// Why, for the audit log. Do not name the person.
    #[arg(long, value_name = "TEXT", value_parser = said)]
    reason: String,
    /// Only say what would be erased; the default.
    #[arg(long, conflicts_with = "confirm")]
    dry_run: bool,
    /// Erase. There is no way back.
    #[arg(long)]
    confirm: bool,
}

fn said(text: &str) -> Result<String, &'static str> {
    let text = text.trim();
    match text.chars().count() {
        1..=500 => Ok(text.to_owned()),
        _ => Err("must have 1 to 500 characters"),
    }
}

pub(super) async fn run(options: Erase, config: Config) -> Result<ExitCode, Fault> {
    if !options.confirm {
        return dry_run(&options, &config).await.map_err(Fault::Unreadable);
    }
    let ground = Ground::hold(&config).map_err(Fault::into_busy)?;
    Ok(erase(&options, &config, &ground).await?)
}

/// Reads only and takes no lock, so it runs beside the service.
async fn dry_run(options: &Erase, config: &Config) -> anyhow::Result<ExitCode> {
    let ground = Ground::read_only(config);
    let store = Store::open(ground.policy_store(config)?)
        .await
        .context("the policy store cannot be opened")?;
    let audit = AuditStore::open(ground.audit_store(config)?)
        .await
        .context("the audit store cannot be opened")?;
    audit
        .check_schema()
        .await
        .context("the audit store's schema is not this version's")?;
    let holds = holds(&audit, &store).await?;
    show(&audit.plan_erasure(&options.external_id, &holds).await?);
    say("nothing was changed; `--confirm` erases\n");
    Ok(ExitCode::SUCCESS)
}

async fn erase(options: &Erase, config: &Config, ground: &Ground) -> anyhow::Result<ExitCode> {
    let store = open_policy(ground, config, outbox_guard(config)?).await?;
    let audit = migrate_audit(ground, config).await?;
    let admin = match audit_admin(ground, config, &audit).await? {
        AuditAdmin::Own => audit.clone(),
        AuditAdmin::Other(other) => {
            let open = async || AuditStore::open((*other).clone()).await.map_err(Into::into);
            reach("the audit store of AUDIT_ADMIN_DATABASE_URL", open).await?
        }
        AuditAdmin::Missing => return Err(anyhow!("{NOTHING_IS_PRUNED}; nothing can be erased either")),
    };
    let who = &options.external_id;
    let holds = holds(&admin, &store).await?;
    let plan = admin.plan_erasure(who, &holds).await?;
    show(&plan);
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
        .context("the record of the erasure was not written, so nothing was erased")?;
    // Beside a running service the record is sealed first, so that no verification meets a value that is gone without a
    // word. On a file there is none beside this command: the next start seals it.
    if config.audit.url.is_some() && !sealed(&audit, &records, sealed_before).await? {
        complain("the record is written and waits to be sealed: start the service, then run this command again");
        return Ok(ExitCode::from(EXIT_INCOMPLETE));
    }
    let count = admin
        .erase(who, &plan)
        .await
        .context("not everything is erased: run this command again")?;
    say(format_args!("{count} entries erased\n"));
    Ok(ExitCode::SUCCESS)
}

/// What must be kept by the table of holds, or by the log.
async fn holds(audit: &AuditStore, store: &Store) -> anyhow::Result<Holds> {
    let known = audit
        .known_holds(store)
        .await
        .context("the legal holds cannot be read")?;
    for hold in &known.changed {
        complain(format_args!(
            "legal hold {hold} was placed and not lifted, and `legal_holds` of the policy database does not have it so: somebody \
             changed the table; what the hold names is kept"
        ));
    }
    Ok(known.holds)
}

fn records(plan: &ErasurePlan, reason: &str) -> Vec<ErasureRecord> {
    let mut chains: BTreeMap<ChainId, Vec<u64>> = BTreeMap::new();
    for (chain, seq) in &plan.entries {
        chains.entry(*chain).or_default().push(*seq);
    }
    chains
        .into_iter()
        .flat_map(|(chain, seqs)| ErasureRecord::of(chain, seqs, reason))
        .collect()
}

/// Waits until a running service has sealed the records.
async fn sealed(audit: &AuditStore, records: &[ErasureRecord], after: i64) -> anyhow::Result<bool> {
    let begin = Instant::now();
    loop {
        let mut all = true;
        for record in records {
            all &= audit.has_sealed_erasure(&record.erased.chain, after).await?;
        }
        if all || begin.elapsed() > SEALING {
            return Ok(all);
        }
        sleep(LOOK).await;
    }
}

fn show(plan: &ErasurePlan) {
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
            "{} entries stay as they are: a legal hold keeps them\n",
            plan.held
        ));
    }
    if plan.unreadable > 0 {
        say(format_args!(
            "{} entries cannot be read and stay: run `audit verify`\n",
            plan.unreadable
        ));
    }
}
