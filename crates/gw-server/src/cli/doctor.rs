//! `doctor`: checks everything that the gateway depends on, without starting it, and prints one line per check.
//!
//! Reads only and takes no lock, so it may run while the service runs. Every dependency of `serve` has a line.

use super::{EXIT_FINDING, audit::signed_heads, migrate::schema_state, say};
use crate::{
    config::{Config, Environment, kind::signing_key, registry::Migrate},
    filesystem,
    serve::{
        ServeError, causes, humanity, journal, node,
        stores::{AuditAdmin, NOTHING_IS_PRUNED, Platform, Secrets, audit_admin, checkpoint_key},
    },
    trust::read_heads,
    workers::index_faults,
};
use anyhow::{Context as _, anyhow, bail};
use gw_audit::CheckpointPublicKey;
use gw_cache::Cache;
use gw_node::NodeState;
use gw_store::{BootClock, Feed, FeedTiming, Store, audit::AuditStore};
use gw_types::{GroupId, Secret};
use std::{path::Path, process::ExitCode, sync::Arc};

/// Runs all checks. The configuration was loaded before this call, so its line always passes.
pub(super) async fn run(config: Config) -> Result<ExitCode, ServeError> {
    let mut report = Report { findings: 0 };
    report.add("configuration", Ok("valid".to_owned()));
    let platform = Platform::read_only(&config);
    report.add("data directory", data_directory(&config));
    report.add("secrets", Secrets::check(&config));
    report.add("policy store", policy_store(&platform, &config).await);
    report.add("upstream keys of groups", group_keys(&platform, &config).await);
    report.add("audit store", audit_store(&platform, &config).await);
    report.add("retention", retention(&platform, &config).await);
    report.add("journal directory", journal_directory(&config));
    if let Some(url) = &config.store.cache_url {
        report.add("shared cache", shared_cache(&platform, url).await);
    }
    match humanity::humanity(&config).await {
        Ok(None) => {}
        Ok(Some(_)) => report.add("humanity credential", Ok("its schema and query are valid".to_owned())),
        Err(error) => report.add("humanity credential", Err(anyhow!("{error}"))),
    }
    report.add("node", check_node(&config).await);
    Ok(if report.findings == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(EXIT_FINDING)
    })
}

struct Report {
    findings: usize,
}

impl Report {
    fn add(&mut self, name: &str, result: anyhow::Result<String>) {
        match result {
            Ok(state) => say(format_args!("✓ {name}: {state}\n")),
            Err(error) => {
                self.findings += 1;
                say(format_args!("✗ {name}: {}\n", causes(&error)));
            }
        }
    }
}

async fn shared_cache(platform: &Platform, url: &Secret) -> anyhow::Result<String> {
    let cache = Cache::connect(url, Arc::clone(&platform.steady)).await?;
    match cache.eviction_policy().await {
        Ok(None) => Ok("reachable, eviction is off".to_owned()),
        Ok(Some(policy)) => bail!(
            "REDIS_URL: `maxmemory-policy {policy}` evicts values when memory is full; set `maxmemory-policy \
             noeviction`"
        ),
        Err(_) => Ok("reachable; its maxmemory-policy cannot be read, make sure that it is `noeviction`".to_owned()),
    }
}

fn data_directory(config: &Config) -> anyhow::Result<String> {
    let directory = config.data_dir.display();
    if config.store.url.is_some() && config.audit.url.is_some() && config.environment == Environment::Production {
        return Ok("not needed: both stores are PostgreSQL databases".to_owned());
    }
    match std::fs::read_dir(&config.data_dir) {
        Ok(_) => Ok(format!("`{directory}` is readable")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let parent = config.data_dir.parent().filter(|parent| !parent.as_os_str().is_empty());
            check_writable(parent.unwrap_or(Path::new(".")))?;
            Ok(format!("`{directory}` does not exist yet; the first start creates it"))
        }
        Err(error) => Err(error).with_context(|| format!("`{directory}` cannot be read")),
    }
}

fn check_writable(directory: &Path) -> anyhow::Result<()> {
    let metadata = std::fs::metadata(directory).with_context(|| format!("`{}` cannot be read", directory.display()))?;
    if metadata.permissions().readonly() {
        bail!("`{}` is not writable", directory.display());
    }
    Ok(())
}

async fn policy_store(platform: &Platform, config: &Config) -> anyhow::Result<String> {
    let opened = async { Ok(Store::open(platform.policy_store(config)?).await?) };
    let store = match opened.await {
        Ok(store) => store,
        Err(error) => return schema_result(config, Err(error)),
    };
    let check = store.check_schema().await;
    let is_current = check.is_ok();
    let state = schema_result(config, check.map_err(Into::into))?;
    if is_current && let Some(fault) = index_faults(&store).await?.into_iter().next() {
        bail!("an index does not agree with the rows of its table: {fault}: find out who changed it, and run REINDEX");
    }
    Ok(state)
}

async fn audit_store(platform: &Platform, config: &Config) -> anyhow::Result<String> {
    let opened = async { Ok(AuditStore::open(platform.audit_store(config)?).await?) };
    let audit = match opened.await {
        Ok(audit) => audit,
        Err(error) => return schema_result(config, Err(error)),
    };
    let state = schema_result(config, audit.check_schema().await.map_err(Into::into))?;
    if audit.check_schema().await.is_err() {
        return Ok(state);
    }
    let may_rewrite = audit
        .may_rewrite()
        .await
        .context("the privileges of its role cannot be read")?;
    if may_rewrite && config.environment == Environment::Production {
        bail!("AUDIT_DATABASE_URL: its role may change or delete sealed entries, which is not allowed in production");
    }
    match checkpoint_key(config)? {
        Some(key) => {
            let key = signing_key(key.expose()).context("the checkpoint key cannot be read")?;
            let key = CheckpointPublicKey::from_bytes(&key.verifying_key().to_bytes())?;
            let heads = read_heads(&config.audit.journal_dir)?.unwrap_or_default();
            let keys: Vec<_> = heads.keys().chain([key]).collect();
            // A policy store that cannot be opened or is older has its own line.
            let signed = match Store::open(platform.policy_store(config)?).await {
                Ok(store) if store.check_schema().await.is_ok() => signed_heads(&store, &keys).await?,
                Ok(_) | Err(_) => Vec::new(),
            };
            // How many entries the journal would seal again is not known without opening it.
            journal::nothing_is_missing(&audit, &heads, &signed, &keys, |_| 0).await?;
            can_be_verified(&audit).await?;
        }
        None => return Ok(format!("{state}; no entry is signed yet")),
    }
    Ok(format!("{state}; no signed entry is missing"))
}

/// Fails if a table or a row of the audit store cannot be read: then it is not known whether entries are missing.
async fn can_be_verified(audit: &AuditStore) -> anyhow::Result<()> {
    if let Some((table, error)) = audit.unreadable_tables().await?.into_iter().next() {
        return Err(anyhow::Error::from(error).context(format!(
            "whether signed entries are missing is not known: table `{table}` cannot be read"
        )));
    }
    let chains = audit
        .malformed_chains()
        .await?
        .into_iter()
        .map(|row| ("chains", row.id));
    let notes = audit.malformed_discontinuities().await?;
    if let Some((table, row)) = chains
        .chain(notes.into_iter().map(|row| ("discontinuities", row)))
        .next()
    {
        bail!("row {row} of `{table}` is malformed: run `ledger-gateway audit verify`");
    }
    Ok(())
}

/// Whether old entries are pruned, and by which database role (spec/70 rules 23 to 25).
async fn retention(platform: &Platform, config: &Config) -> anyhow::Result<String> {
    let opened = async { Ok::<_, anyhow::Error>(AuditStore::open(platform.audit_store(config)?).await?) };
    let Ok(audit) = opened.await else {
        return Ok("nothing to prune yet".to_owned());
    };
    if audit.check_schema().await.is_err() {
        return Ok("nothing to prune yet".to_owned());
    }
    match audit_admin(platform, config, &audit).await? {
        AuditAdmin::Own => Ok("old entries are pruned".to_owned()),
        AuditAdmin::Missing => Ok(NOTHING_IS_PRUNED.to_owned()),
        AuditAdmin::Other(admin) => {
            let admin = AuditStore::open(*admin)
                .await
                .context("the database of AUDIT_ADMIN_DATABASE_URL cannot be opened")?;
            if !admin
                .may_rewrite()
                .await
                .context("the privileges of its role cannot be read")?
            {
                bail!("AUDIT_ADMIN_DATABASE_URL: its role may not delete entries, so nothing is pruned");
            }
            Ok("old entries are pruned by the role of AUDIT_ADMIN_DATABASE_URL".to_owned())
        }
    }
}

/// The result of a schema check. An outdated schema is a finding only if MIGRATE=off; else the next start updates it.
fn schema_result(config: &Config, check: anyhow::Result<()>) -> anyhow::Result<String> {
    match schema_state(check).map_err(|error| anyhow!("{error}"))? {
        None => Ok("reachable, the schema is up to date".to_owned()),
        Some(state) if config.store.migrate == Migrate::Auto => Ok(format!(
            "the schema is {state}; the next start updates it (MIGRATE=auto)"
        )),
        Some(state) => bail!("the schema is {state}, and MIGRATE=off: run `ledger-gateway migrate apply`"),
    }
}

/// Whether the upstream keys of all groups can be decrypted. Requests of a group whose key cannot be are refused (G1).
async fn group_keys(platform: &Platform, config: &Config) -> anyhow::Result<String> {
    let Some(key) = Secrets::find_key_encryption(config)? else {
        return Ok("none yet".to_owned());
    };
    let opened = async { Ok::<_, anyhow::Error>(Store::open(platform.policy_store(config)?).await?) };
    let Ok(store) = opened.await else {
        return Ok("none yet".to_owned());
    };
    if store.check_schema().await.is_err() {
        return Ok("none yet".to_owned());
    }
    let feed = Feed::start(&store, FeedTiming::default(), Arc::new(BootClock)).await?;
    let (cipher, snapshot) = (node::group_keys(config, &key)?, feed.pin().snapshot);
    let list = |groups: Vec<GroupId>| groups.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let unreadable = node::unreadable_keys(&cipher, &snapshot);
    if !unreadable.is_empty() {
        bail!(
            "RPC_API_KEY_ENCRYPTION_KEY does not decrypt the keys of these groups: {}",
            list(unreadable)
        );
    }
    let outdated = node::outdated_keys(&cipher, &snapshot);
    if !outdated.is_empty() {
        return Ok(format!(
            "can be decrypted; RPC_API_KEY_ENCRYPTION_KEY_PREVIOUS is still needed for these groups: {}",
            list(outdated)
        ));
    }
    Ok("can be decrypted".to_owned())
}

/// The least free space of the journal's disk, in bytes. Below it, a start may find no room for new records.
const LEAST_FREE_BYTES: u64 = 1 << 20;

/// In production the journal must survive its container (HD25); and its disk must have room.
fn journal_directory(config: &Config) -> anyhow::Result<String> {
    let dir = &config.audit.journal_dir;
    // Before the first start there is no directory.
    if let Ok(free) = gw_journal::free_bytes(dir)
        && free < LEAST_FREE_BYTES
    {
        bail!(
            "the disk of `{}` is full ({free} bytes are free): calls are refused until sealed records make room; free \
             disk space, or see that the audit store is reachable",
            dir.display()
        );
    }
    let volatile = filesystem::volatile_kind(dir).context("its file system cannot be read")?;
    match volatile {
        Some(kind) if config.environment == Environment::Production => bail!("`{}` lies on {kind}", dir.display()),
        Some(kind) => Ok(format!("`{}` lies on {kind}: fit for development only", dir.display())),
        None => Ok(format!("`{}`", dir.display())),
    }
}

async fn check_node(config: &Config) -> anyhow::Result<String> {
    let node = node::connect(config, None).await?;
    let head = node.head().context("it has no newest block yet")?;
    let tracing = node
        .trace_form()
        .context("it supports no tracing method: calls and sends would be refused")?;
    let nodes = node.statuses();
    let usable = nodes.iter().filter(|status| status.state == NodeState::Up).count();
    if usable < nodes.len() {
        bail!("only {usable} of {} nodes are usable", nodes.len());
    }
    let count = if usable > 1 {
        format!("; all {usable} nodes are usable")
    } else {
        String::new()
    };
    Ok(format!(
        "chain {}, block {}, traces ({tracing:?}){count}",
        node.chain_id(),
        head.number
    ))
}
