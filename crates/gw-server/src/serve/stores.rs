//! Opening what is kept: the data directory, the policy store and the secrets in use (spec/85 section 3, steps 1-3).

use super::{
    fault::{Fault, causes},
    outbox_mark::OutboxMarkFile,
};
use crate::{
    ambient::{SteadyClock, SystemClock, SystemEntropy},
    config::{Config, Environment, kind::signing_key, registry::Migrate},
    secrets::{self, KeptSecrets},
};
use anyhow::{Context as _, bail};
use gw_cache::{Cache, ConnectError};
use gw_http::TokenSecrets;
use gw_store::{
    Actor, DirectoryLock, Location, OutboxGuard, OutboxWitness, Store, StoreConfig, StoreError,
    audit::{AuditStore, OutboxKey},
};
use gw_types::{Clock, Entropy, Secret};
use std::{
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::time::sleep;

/// Tries to reach a database that is not there yet, and the rest between them.
const TRIES: u32 = 15;
const BETWEEN: Duration = Duration::from_secs(2);
/// The same for the cache.
const CACHE_TRIES: u32 = 10;
/// Between two tries whether a full disk has room again.
const ROOM_PROBE: Duration = Duration::from_secs(1);

const POLICY_FILE: &str = "gateway.db";
const AUDIT_FILE: &str = "audit.db";
/// The names under which a development machine keeps its secrets.
const ACCESS_SECRET: &str = "access-token";
const REFRESH_SECRET: &str = "refresh-token";
const KEY_ENCRYPTION_SECRET: &str = "node-key-encryption";
const CHECKPOINT_SECRET: &str = "audit-checkpoint";

/// The ground everything stands on: time, chance, and the directory this process holds.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    pub(crate) clock: Arc<dyn Clock>,
    /// For what lives for a while: no jump of the local clock prolongs or ends it.
    pub(crate) steady: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    directory: DataDirectory,
}

/// What this process may do with the data directory.
#[derive(Clone, Debug)]
enum DataDirectory {
    /// Nothing is kept on this machine.
    Unused,
    /// Held by this process: it may write.
    Held(Arc<DirectoryLock>),
    /// Only read; a running service may hold it.
    ReadOnly(PathBuf),
}

impl Ground {
    /// Holds the data directory, if anything is kept in it.
    pub(crate) fn hold(config: &Config) -> Result<Self, Fault> {
        let embedded = config.store.url.is_none() || config.audit.url.is_none();
        let generates = config.environment != Environment::Production;
        let directory = if embedded || generates {
            make_private(&config.data_dir)?;
            DataDirectory::Held(Arc::new(DirectoryLock::acquire(&config.data_dir)?))
        } else {
            DataDirectory::Unused
        };
        Ok(Self::on(directory))
    }

    /// For commands that change nothing: no lock is taken, so they run beside the service, and nothing is created.
    pub(crate) fn read_only(config: &Config) -> Self {
        Self::on(DataDirectory::ReadOnly(config.data_dir.clone()))
    }

    fn on(directory: DataDirectory) -> Self {
        Self {
            clock: Arc::new(SystemClock),
            steady: Arc::new(SteadyClock::default()),
            entropy: Arc::new(SystemEntropy),
            directory,
        }
    }

    fn location(&self, config: &Config, url: Option<&Secret>, file: &str) -> anyhow::Result<Location> {
        match (url, &self.directory) {
            (Some(url), _) => Ok(Location::postgres(url.clone()).with_lifetime(config.store.max_lifetime)),
            (None, DataDirectory::Held(directory)) => Ok(Location::Sqlite {
                directory: Arc::clone(directory),
                file: file.to_owned(),
            }),
            (None, DataDirectory::ReadOnly(directory)) => {
                let file = directory.join(file);
                if !file.exists() {
                    return Err(NoStoreYet { file }.into());
                }
                Ok(Location::SqliteReadOnly { file })
            }
            (None, DataDirectory::Unused) => bail!("an embedded store needs the data directory"),
        }
    }

    /// Where the policy store lies.
    pub(crate) fn policy_store(&self, config: &Config) -> anyhow::Result<StoreConfig> {
        self.store_config(config, self.location(config, config.store.url.as_ref(), POLICY_FILE)?)
    }

    /// Where the audit store lies.
    pub(crate) fn audit_store(&self, config: &Config) -> anyhow::Result<StoreConfig> {
        self.store_config(config, self.location(config, config.audit.url.as_ref(), AUDIT_FILE)?)
    }

    fn store_config(&self, config: &Config, location: Location) -> anyhow::Result<StoreConfig> {
        Ok(StoreConfig {
            location,
            connections: config.store.max_connections,
            clock: Arc::clone(&self.clock),
            entropy: Arc::clone(&self.entropy),
            outbox: OutboxGuard::default(),
        })
    }
}

/// A reading command found no database file: the service was never started here.
#[derive(Debug, thiserror::Error)]
#[error("`{}` does not exist: the service was never started with this data directory", file.display())]
pub(crate) struct NoStoreYet {
    file: PathBuf,
}

/// Makes a directory that others cannot read, where there is none yet: links, grants and calls lie in it.
pub(crate) fn make_private(path: &Path) -> anyhow::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.with_context(|| format!("`{}` cannot be made", path.display()))
}

/// Opens the policy store and brings its schema up to date, or compares it (`MIGRATE=off`).
pub(crate) async fn open_policy(ground: &Ground, config: &Config, outbox: OutboxGuard) -> anyhow::Result<Store> {
    let open = async || {
        let settings = StoreConfig {
            outbox: outbox.clone(),
            ..ground.policy_store(config)?
        };
        Store::open(settings).await.map_err(Into::into)
    };
    let store = reach("the policy store", open).await?;
    match config.store.migrate {
        Migrate::Auto => store
            .migrate()
            .await
            .context("the policy store's schema cannot be brought up to date")?,
        Migrate::Off => store
            .check_schema()
            .await
            .context("the policy store's schema is not this version's")?,
    }
    Ok(store)
}

/// Opens the audit store and brings its schema up to date, or compares it. For commands: the role that migrates owns the
/// tables, so it may rewrite them, too.
pub(crate) async fn migrate_audit(ground: &Ground, config: &Config) -> anyhow::Result<AuditStore> {
    let open = async || AuditStore::open(ground.audit_store(config)?).await.map_err(Into::into);
    let audit = reach("the audit store", open).await?;
    match config.store.migrate {
        Migrate::Auto => audit
            .migrate()
            .await
            .context("the audit store's schema cannot be brought up to date")?,
        Migrate::Off => audit
            .check_schema()
            .await
            .context("the audit store's schema is not this version's")?,
    }
    Ok(audit)
}

/// Opens the audit store for sealing.
pub(crate) async fn open_audit(ground: &Ground, config: &Config) -> anyhow::Result<AuditStore> {
    let audit = migrate_audit(ground, config).await?;
    // Spec/70 rule 25: what seals must not be able to rewrite.
    let may_rewrite = audit
        .may_rewrite()
        .await
        .context("the audit store's privileges cannot be read")?;
    if may_rewrite && config.environment == Environment::Production {
        bail!("AUDIT_DATABASE_URL: its role may change or delete sealed entries, which production refuses");
    }
    Ok(audit)
}

/// By which credential the audit log is pruned and erased from.
#[derive(Debug)]
pub(crate) enum AuditAdmin {
    /// The one that seals may delete, too: a file, or a database of a development machine.
    Own,
    /// AUDIT_ADMIN_DATABASE_URL.
    Other(Box<StoreConfig>),
    /// None: nothing is pruned.
    Missing,
}

/// Finds the credential that may delete from the audit log (spec/70 rule 25).
pub(crate) async fn audit_admin(ground: &Ground, config: &Config, audit: &AuditStore) -> anyhow::Result<AuditAdmin> {
    if let Some(url) = &config.audit.retention.admin_url {
        let location = Location::postgres(url.clone()).with_lifetime(config.store.max_lifetime);
        let few = StoreConfig {
            connections: 2,
            ..ground.store_config(config, location)?
        };
        return Ok(AuditAdmin::Other(Box::new(few)));
    }
    let own = audit
        .may_rewrite()
        .await
        .context("the audit store's privileges cannot be read")?;
    Ok(if own { AuditAdmin::Own } else { AuditAdmin::Missing })
}

/// What is said where nothing can be pruned.
pub(crate) const NOTHING_IS_PRUNED: &str =
    "nothing is pruned: AUDIT_ADMIN_DATABASE_URL is not set, and the role of AUDIT_DATABASE_URL may not delete";

/// Opens what instances share (spec/85 section 3, step 5), or a place for it in this process.
pub(crate) async fn open_cache(ground: &Ground, config: &Config) -> anyhow::Result<Cache> {
    let Some(url) = &config.store.cache_url else {
        return Ok(Cache::in_process(Arc::clone(&ground.steady)));
    };
    let mut tries = 1;
    loop {
        match Cache::connect(url, Arc::clone(&ground.steady)).await {
            Ok(cache) => {
                warn_of_eviction(&cache).await;
                return Ok(cache);
            }
            Err(error @ ConnectError::Unreachable(_)) if tries < CACHE_TRIES => {
                tracing::warn!(
                    tries,
                    error = &error as &dyn core::error::Error,
                    "the cache cannot be reached yet"
                );
            }
            Err(error) => return Err(anyhow::Error::from(error).context("REDIS_URL")),
        }
        tries += 1;
        sleep(BETWEEN).await;
    }
}

/// Spec/85 section 2: what the server throws away to make room are sessions, single-use marks and limits.
async fn warn_of_eviction(cache: &Cache) {
    match cache.eviction_policy().await {
        Ok(None) => {}
        Ok(Some(policy)) => tracing::warn!(
            %policy,
            "REDIS_URL: the server may evict values to make room; set `maxmemory-policy noeviction`, or logins end early and \
             single-use marks and limits are forgotten"
        ),
        Err(_) => {
            tracing::warn!("REDIS_URL: the server does not tell its maxmemory-policy; see that it is `noeviction`")
        }
    }
}

/// Once a second, while writes are refused for want of room, tries whether there is some again: `/ready` says by it what a
/// write would be told. Ends by being dropped.
pub(crate) async fn watch_room(store: Store) {
    loop {
        sleep(ROOM_PROBE).await;
        if !store.has_room()
            && let Err(error) = store.probe_room().await
        {
            tracing::debug!(
                error = &error as &dyn core::error::Error,
                "the policy store has no room for writes yet"
            );
        }
    }
}

/// Tries a while: databases and gateways are often started together.
pub(crate) async fn reach<T>(what: &str, open: impl AsyncFn() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let mut tries = 1;
    loop {
        match open().await {
            Ok(opened) => return Ok(opened),
            Err(error) if tries >= TRIES || !is_worth_waiting(&error) => {
                return Err(error.context(format!("{what} cannot be opened")));
            }
            Err(error) => {
                tracing::warn!(
                    tries,
                    of = TRIES,
                    error = causes(&error),
                    "{what} cannot be reached yet"
                )
            }
        }
        tries += 1;
        sleep(BETWEEN).await;
    }
}

/// Whether waiting may help.
fn is_worth_waiting(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(StoreError::Database(_)))
}

/// The secrets in use: configured, or of this development machine.
#[derive(Debug)]
pub(crate) struct Secrets {
    pub(crate) access: TokenSecrets,
    pub(crate) refresh: TokenSecrets,
    /// Super-administrator's token, and whether it was made just now.
    pub(crate) admin: Secret,
    pub(crate) admin_is_fresh: bool,
    /// Encrypts the groups' node keys.
    pub(crate) key_encryption: Secret,
    /// Signs checkpoints.
    pub(crate) checkpoint: Secret,
}

/// The checkpoint key: configured, or kept in the data directory. Reads only; `None` where none was made yet.
pub(crate) fn checkpoint_key(config: &Config) -> anyhow::Result<Option<Secret>> {
    match &config.audit.checkpoint_key {
        Some(configured) => Ok(Some(configured.clone())),
        None => Ok(secrets::find_kept(&config.data_dir, CHECKPOINT_SECRET)?),
    }
}

impl Secrets {
    /// What encrypts the groups' upstream keys: configured, or kept. Reads only; `None` where none was made yet.
    pub(crate) fn find_key_encryption(config: &Config) -> anyhow::Result<Option<Secret>> {
        match &config.node.key_encryption {
            Some(configured) => Ok(Some(configured.clone())),
            None => Ok(secrets::find_kept(&config.data_dir, KEY_ENCRYPTION_SECRET)?),
        }
    }

    /// Whether all are configured or kept, or will be made by the next start. Reads only.
    pub(crate) fn check(config: &Config) -> anyhow::Result<String> {
        let identity = &config.identity;
        let secrets = [
            (identity.access_secret.is_some(), ACCESS_SECRET),
            (identity.refresh_secret.is_some(), REFRESH_SECRET),
            (config.node.key_encryption.is_some(), KEY_ENCRYPTION_SECRET),
            (config.audit.checkpoint_key.is_some(), CHECKPOINT_SECRET),
        ];
        let mut missing = 0;
        for (_, name) in secrets.into_iter().filter(|(configured, _)| !configured) {
            missing += usize::from(secrets::find_kept(&config.data_dir, name)?.is_none());
        }
        Ok(if missing == 0 {
            "complete".to_owned()
        } else {
            format!("{missing} are made by the first start")
        })
    }

    /// What is configured, else what is kept in the data directory. Production configures all of them.
    pub(crate) fn complete(config: &Config, entropy: &dyn Entropy) -> anyhow::Result<Self> {
        let kept = KeptSecrets::new(&config.data_dir, entropy);
        let identity = &config.identity;
        Ok(Self {
            access: TokenSecrets {
                current: kept.or_kept(identity.access_secret.clone(), ACCESS_SECRET)?,
                previous: identity.access_secret_previous.clone(),
            },
            refresh: TokenSecrets {
                current: kept.or_kept(identity.refresh_secret.clone(), REFRESH_SECRET)?,
                previous: identity.refresh_secret_previous.clone(),
            },
            admin_is_fresh: config.admin.token.is_none(),
            admin: config.admin.token.clone().unwrap_or_else(|| secrets::fresh(entropy)),
            key_encryption: kept.or_kept(config.node.key_encryption.clone(), KEY_ENCRYPTION_SECRET)?,
            checkpoint: kept.or_kept(config.audit.checkpoint_key.clone(), CHECKPOINT_SECRET)?,
        })
    }
}

/// What authenticates the rows of the audit outbox, for a command that writes some. Its rows are remembered by the service.
pub(crate) fn outbox_guard(config: &Config) -> anyhow::Result<OutboxGuard> {
    let Some(secret) = checkpoint_key(config)? else {
        return Ok(OutboxGuard::default());
    };
    Ok(OutboxGuard {
        key: Some(outbox_key(&secret)?),
        witness: None,
    })
}

fn outbox_key(checkpoint_key: &Secret) -> anyhow::Result<OutboxKey> {
    let key = signing_key(checkpoint_key.expose()).context("the checkpoint key cannot be read")?;
    Ok(OutboxKey::derive(&key.to_bytes()))
}

impl Secrets {
    /// What authenticates the rows of the audit outbox, and remembers their last one outside the database.
    pub(super) fn outbox_guard(&self, mark: &Arc<OutboxMarkFile>) -> anyhow::Result<OutboxGuard> {
        let witness = Arc::clone(mark) as Arc<dyn OutboxWitness>;
        Ok(OutboxGuard {
            key: Some(outbox_key(&self.checkpoint)?),
            witness: Some(witness),
        })
    }
}

/// The first instance to start begins with what the configuration says of tracing (X9); later ones find what an
/// administrator made of it since.
pub(super) async fn restore_toggles(store: &Store) -> Result<(), Fault> {
    let restored = async {
        let mut tx = match store.begin(&Actor::system()).await {
            // Said already; reading goes on, and nobody can change a toggle either.
            Err(StoreError::EpochExhausted(_)) => return Ok(()),
            begun => begun?,
        };
        match tx.clear_toggles("the service started anew").await? {
            0 => tx.rollback().await,
            _ => tx.commit().await.map(drop),
        }
    };
    restored
        .await
        .context("the toggles of tracing cannot be restored")
        .map_err(Fault::from)
}
