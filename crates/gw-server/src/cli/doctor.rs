//! `doctor`: what the gateway depends on, one line each, without starting it.

use super::say;
use crate::{
    config::{Config, Environment},
    mount,
    serve::{
        Fault, node,
        stores::{Ground, Secrets},
    },
};
use anyhow::{Context as _, bail};
use gw_cache::Cache;
use gw_node::NodeState;
use gw_store::{BootClock, Feed, FeedTiming, Store, StoreError};
use gw_types::GroupId;
use std::{process::ExitCode, sync::Arc};

/// The configuration was read to get here, so that line is always good.
pub(super) async fn run(config: Config) -> Result<ExitCode, Fault> {
    let mut visit = Visit { ill: 0 };
    visit.note("configuration", Ok("valid".to_owned()));
    match Ground::hold(&config) {
        Ok(ground) => {
            visit.note("data directory", Ok(format!("`{}` can be held", config.data_dir.display())));
            let secrets = Secrets::complete(&config, &*ground.entropy);
            visit.note("policy store", policy_store(&ground, &config).await);
            if let Ok(secrets) = &secrets {
                visit.note("upstream keys of groups", group_keys(&ground, &config, secrets).await);
            }
            visit.note("secrets", secrets.map(|_| "complete".to_owned()));
            if let Some(url) = &config.store.cache_url {
                let reached = Cache::connect(url, Arc::clone(&ground.clock)).await;
                visit.note("shared cache", reached.map(|_| "reachable".to_owned()).map_err(Into::into));
            }
        }
        Err(fault) => visit.note("data directory", Err(anyhow::anyhow!("{fault}"))),
    }
    visit.note("journal directory", journal_directory(&config));
    visit.note("node", a_node(&config).await);
    Ok(if visit.ill == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Visit {
    ill: usize,
}

impl Visit {
    fn note(&mut self, what: &str, found: anyhow::Result<String>) {
        match found {
            Ok(found) => say(format_args!("✓ {what}: {found}\n")),
            Err(error) => {
                self.ill += 1;
                say(format_args!("✗ {what}: {error:#}\n"));
            }
        }
    }
}

async fn policy_store(ground: &Ground, config: &Config) -> anyhow::Result<String> {
    let store = Store::open(ground.policy_store(config)?).await?;
    match store.check_schema().await {
        Ok(()) => Ok("reachable, the schema is up to date".to_owned()),
        Err(StoreError::Schema(state)) => Ok(format!("reachable, the schema is {state}")),
        Err(error) => Err(error.into()),
    }
}

/// G1: whoever's key cannot be decrypted is refused.
async fn group_keys(ground: &Ground, config: &Config, secrets: &Secrets) -> anyhow::Result<String> {
    let store = Store::open(ground.policy_store(config)?).await?;
    if store.check_schema().await.is_err() {
        return Ok("none yet".to_owned());
    }
    let feed = Feed::start(&store, FeedTiming::default(), Arc::new(BootClock)).await?;
    let (cipher, snapshot) = (node::group_keys(config, secrets)?, feed.pin().snapshot);
    let named = |groups: Vec<GroupId>| groups.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let unreadable = node::unreadable_keys(&cipher, &snapshot);
    if !unreadable.is_empty() {
        bail!("RPC_API_KEY_ENCRYPTION_KEY does not decrypt those of: {}", named(unreadable));
    }
    let outdated = node::outdated_keys(&cipher, &snapshot);
    if !outdated.is_empty() {
        return Ok(format!("can be decrypted; RPC_API_KEY_ENCRYPTION_KEY_PREVIOUS is needed for: {}", named(outdated)));
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
    let tracing = node.trace_form().context("it gives no traces: calls and sends would be refused")?;
    let nodes = node.statuses();
    let well = nodes.iter().filter(|status| status.state == NodeState::Up).count();
    if well < nodes.len() {
        bail!("only {well} of {} nodes can be used", nodes.len());
    }
    let all = if well > 1 { format!("; all {well} nodes can be used") } else { String::new() };
    Ok(format!("chain {}, block {}, traces ({tracing:?}){all}", node.chain_id(), head.number))
}
