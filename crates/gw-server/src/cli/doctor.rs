//! `doctor`: what the gateway depends on, one line each, without starting it.
//!
//! Reads only and takes no lock, so it runs beside the service. Everything that `serve` needs has a line here.

use super::{EXIT_FINDING, migrate::schema_state, say};
use crate::{
    config::{Config, Environment, kind::signing_key, registry::Migrate},
    mount,
    serve::{
        Fault, causes, humanity, journal, node,
        stores::{AuditAdmin, Ground, NOTHING_IS_PRUNED, Secrets, audit_admin, checkpoint_key},
    },
    trust::read_heads,
};
use anyhow::{Context as _, anyhow, bail};
use gw_audit::CheckpointPublicKey;
use gw_cache::Cache;
use gw_node::NodeState;
use gw_store::{BootClock, Feed, FeedTiming, Store, audit::AuditStore};
use gw_types::{GroupId, Secret};
use std::{path::Path, process::ExitCode, sync::Arc};

/// The configuration was read to get here, so that line is always good.
pub(super) async fn run(config: Config) -> Result<ExitCode, Fault> {
    let mut report = Report { findings: 0 };
    report.line("configuration", Ok("valid".to_owned()));
    let ground = Ground::read_only(&config);
    report.line("data directory", data_directory(&config));
    report.line("secrets", Secrets::check(&config));
    report.line("policy store", policy_store(&ground, &config).await);
    report.line("upstream keys of groups", group_keys(&ground, &config).await);
    report.line("audit store", audit_store(&ground, &config).await);
    report.line("retention", retention(&ground, &config).await);
    report.line("journal directory", journal_directory(&config));
    if let Some(url) = &config.store.cache_url {
        report.line("shared cache", shared_cache(&ground, url).await);
    }
    match humanity::humanity(&config).await {
        Ok(None) => {}
        Ok(Some(_)) => report.line("humanity credential", Ok("its schema and query can be used".to_owned())),
        Err(fault) => report.line("humanity credential", Err(anyhow!("{fault}"))),
    }
    report.line("node", a_node(&config).await);
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
    fn line(&mut self, what: &str, checked: anyhow::Result<String>) {
        match checked {
            Ok(state) => say(format_args!("✓ {what}: {state}\n")),
            Err(error) => {
                self.findings += 1;
                say(format_args!("✗ {what}: {}\n", causes(&error)));
            }
        }
    }
}

async fn shared_cache(ground: &Ground, url: &Secret) -> anyhow::Result<String> {
    let cache = Cache::connect(url, Arc::clone(&ground.steady)).await?;
    match cache.eviction_policy().await {
        Ok(None) => Ok("reachable, and it evicts nothing".to_owned()),
        Ok(Some(policy)) => bail!(
            "REDIS_URL: `maxmemory-policy {policy}` throws values away to make room; set `maxmemory-policy noeviction`"
        ),
        Err(_) => Ok("reachable; it does not tell its maxmemory-policy, which must be `noeviction`".to_owned()),
    }
}

fn data_directory(config: &Config) -> anyhow::Result<String> {
    let directory = config.data_dir.display();
    if config.store.url.is_some() && config.audit.url.is_some() && config.environment == Environment::Production {
        return Ok("not needed: both stores are databases".to_owned());
    }
    match std::fs::read_dir(&config.data_dir) {
        Ok(_) => Ok(format!("`{directory}` can be read")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let parent = config.data_dir.parent().filter(|parent| !parent.as_os_str().is_empty());
            writable(parent.unwrap_or(Path::new(".")))?;
            Ok(format!("`{directory}` is made by the first start"))
        }
        Err(error) => Err(error).with_context(|| format!("`{directory}` cannot be read")),
    }
}

fn writable(directory: &Path) -> anyhow::Result<()> {
    let metadata = std::fs::metadata(directory).with_context(|| format!("`{}` cannot be read", directory.display()))?;
    if metadata.permissions().readonly() {
        bail!("`{}` cannot be written", directory.display());
    }
    Ok(())
}

async fn policy_store(ground: &Ground, config: &Config) -> anyhow::Result<String> {
    let checked = async {
        Store::open(ground.policy_store(config)?)
            .await?
            .check_schema()
            .await
            .map_err(Into::into)
    };
    schema(config, checked.await)
}

async fn audit_store(ground: &Ground, config: &Config) -> anyhow::Result<String> {
    let opened = async { Ok(AuditStore::open(ground.audit_store(config)?).await?) };
    let audit = match opened.await {
        Ok(audit) => audit,
        Err(error) => return schema(config, Err(error)),
    };
    let state = schema(config, audit.check_schema().await.map_err(Into::into))?;
    if audit.check_schema().await.is_err() {
        return Ok(state);
    }
    let may_rewrite = audit.may_rewrite().await.context("its privileges cannot be read")?;
    if may_rewrite && config.environment == Environment::Production {
        bail!("AUDIT_DATABASE_URL: its role may change or delete sealed entries, which production refuses");
    }
    match checkpoint_key(config)? {
        Some(key) => {
            let key = signing_key(key.expose()).context("the checkpoint key cannot be read")?;
            let key = CheckpointPublicKey::from_bytes(&key.verifying_key().to_bytes())?;
            let heads = read_heads(&config.audit.journal_dir)
                .unwrap_or_default()
                .unwrap_or_default();
            let keys: Vec<_> = heads.keys().chain([key]).collect();
            // What the journal of a stopped service would seal again is not known here.
            journal::nothing_is_missing(&audit, &heads, &[], &keys, |_| 0).await?;
        }
        None => return Ok(format!("{state}; nothing was signed yet")),
    }
    Ok(format!("{state}; no chain is shorter than what was signed"))
}

/// Spec/70 rules 23 to 25: what is pruned, and by whom.
async fn retention(ground: &Ground, config: &Config) -> anyhow::Result<String> {
    let opened = async { Ok::<_, anyhow::Error>(AuditStore::open(ground.audit_store(config)?).await?) };
    let Ok(audit) = opened.await else {
        return Ok("nothing to prune yet".to_owned());
    };
    if audit.check_schema().await.is_err() {
        return Ok("nothing to prune yet".to_owned());
    }
    match audit_admin(ground, config, &audit).await? {
        AuditAdmin::Own => Ok("old entries are pruned".to_owned()),
        AuditAdmin::Missing => Ok(NOTHING_IS_PRUNED.to_owned()),
        AuditAdmin::Other(admin) => {
            let admin = AuditStore::open(*admin)
                .await
                .context("AUDIT_ADMIN_DATABASE_URL cannot be used")?;
            if !admin.may_rewrite().await.context("its privileges cannot be read")? {
                bail!("AUDIT_ADMIN_DATABASE_URL: its role may not delete entries, so nothing is pruned");
            }
            Ok("old entries are pruned by the role of AUDIT_ADMIN_DATABASE_URL".to_owned())
        }
    }
}

/// An old schema is mended by the next start, unless migrations are off.
fn schema(config: &Config, checked: anyhow::Result<()>) -> anyhow::Result<String> {
    match schema_state(checked).map_err(|fault| anyhow!("{fault}"))? {
        None => Ok("reachable, the schema is up to date".to_owned()),
        Some(state) if config.store.migrate == Migrate::Auto => Ok(format!(
            "the schema is {state}; the next start brings it up to date (MIGRATE=auto)"
        )),
        Some(state) => bail!("the schema is {state}, and MIGRATE=off: run `ledger-gateway migrate apply`"),
    }
}

/// G1: whoever's key cannot be decrypted is refused.
async fn group_keys(ground: &Ground, config: &Config) -> anyhow::Result<String> {
    let Some(key) = Secrets::find_key_encryption(config)? else {
        return Ok("none yet".to_owned());
    };
    let opened = async { Ok::<_, anyhow::Error>(Store::open(ground.policy_store(config)?).await?) };
    let Ok(store) = opened.await else {
        return Ok("none yet".to_owned());
    };
    if store.check_schema().await.is_err() {
        return Ok("none yet".to_owned());
    }
    let feed = Feed::start(&store, FeedTiming::default(), Arc::new(BootClock)).await?;
    let (cipher, snapshot) = (node::group_keys(config, &key)?, feed.pin().snapshot);
    let named = |groups: Vec<GroupId>| groups.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let unreadable = node::unreadable_keys(&cipher, &snapshot);
    if !unreadable.is_empty() {
        bail!(
            "RPC_API_KEY_ENCRYPTION_KEY does not decrypt those of: {}",
            named(unreadable)
        );
    }
    let outdated = node::outdated_keys(&cipher, &snapshot);
    if !outdated.is_empty() {
        return Ok(format!(
            "can be decrypted; RPC_API_KEY_ENCRYPTION_KEY_PREVIOUS is needed for: {}",
            named(outdated)
        ));
    }
    Ok("can be decrypted".to_owned())
}

/// HD25: in production a journal must outlive its container.
fn journal_directory(config: &Config) -> anyhow::Result<String> {
    let dir = &config.audit.journal_dir;
    let vanishing = mount::vanishing(dir).context("its file system cannot be told")?;
    match vanishing {
        Some(kind) if config.environment == Environment::Production => bail!("`{}` lies on {kind}", dir.display()),
        Some(kind) => Ok(format!("`{}` lies on {kind}: fit for development only", dir.display())),
        None => Ok(format!("`{}`", dir.display())),
    }
}

async fn a_node(config: &Config) -> anyhow::Result<String> {
    let node = node::connect(config, None).await?;
    let head = node.head().context("it has no head")?;
    let tracing = node
        .trace_form()
        .context("it gives no traces: calls and sends would be refused")?;
    let nodes = node.statuses();
    let well = nodes.iter().filter(|status| status.state == NodeState::Up).count();
    if well < nodes.len() {
        bail!("only {well} of {} nodes can be used", nodes.len());
    }
    let all = if well > 1 {
        format!("; all {well} nodes can be used")
    } else {
        String::new()
    };
    Ok(format!(
        "chain {}, block {}, traces ({tracing:?}){all}",
        node.chain_id(),
        head.number
    ))
}
