//! Opens the data directory, the stores, the cache and the secrets (spec/85 section 3, steps 1-3 and 5).

use super::{
    fault::{ServeError, causes},
    outbox_mark::OutboxMarkFile,
};
use crate::{
    config::{Config, Environment, kind::signing_key, registry::Migrate},
    secrets::{self, KeptSecrets},
    system::{SteadyClock, SystemClock, SystemEntropy},
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

/// Attempts to reach a database at start.
const MAX_ATTEMPTS: u32 = 15;
/// Attempts to reach the cache at start.
const MAX_CACHE_ATTEMPTS: u32 = 10;
/// Pause between two attempts.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// How often a full disk is checked for free space.
const SPACE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

const POLICY_FILE: &str = "gateway.db";
const AUDIT_FILE: &str = "audit.db";
// File names of the stored secrets of a development machine.
const ACCESS_SECRET: &str = "access-token";
const REFRESH_SECRET: &str = "refresh-token";
const KEY_ENCRYPTION_SECRET: &str = "node-key-encryption";
const CHECKPOINT_SECRET: &str = "audit-checkpoint";

/// Clocks, random source, and the data directory of this process.
#[derive(Clone, Debug)]
pub(crate) struct Platform {
    pub(crate) clock: Arc<dyn Clock>,
    /// For lifetimes: jumps of the local clock do not extend or end them.
    pub(crate) steady: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    directory: DataDirectory,
}

/// How this process may use the data directory.
#[derive(Clone, Debug)]
enum DataDirectory {
    /// Not used: both stores are PostgreSQL databases, and all secrets are configured.
    Unused,
    /// Locked by this process, for reading and writing.
    Held(Arc<DirectoryLock>),
    /// For reading only; a running service may hold the lock.
    ReadOnly(PathBuf),
}

impl Platform {
    /// Creates and locks the data directory, if anything is stored in it.
    ///
    /// # Errors
    /// If the directory cannot be created, or another process holds it.
    pub(crate) fn hold(config: &Config) -> Result<Self, ServeError> {
        let embedded = config.store.url.is_none() || config.audit.url.is_none();
        let generates = config.environment != Environment::Production;
        let directory = if embedded || generates {
            make_private(&config.data_dir)?;
            DataDirectory::Held(Arc::new(DirectoryLock::acquire(&config.data_dir)?))
        } else {
            DataDirectory::Unused
        };
        Ok(Self::with_directory(directory))
    }

    /// For commands that change nothing: takes no lock, so that they may run while the service runs, and creates
    /// nothing.
    pub(crate) fn read_only(config: &Config) -> Self {
        Self::with_directory(DataDirectory::ReadOnly(config.data_dir.clone()))
    }

    fn with_directory(directory: DataDirectory) -> Self {
        Self {
            clock: Arc::new(SystemClock),
            steady: Arc::new(SteadyClock::default()),
            entropy: Arc::new(SystemEntropy),
            directory,
        }
    }

    fn location(&self, config: &Config, url: Option<&Secret>, file: &str) -> anyhow::Result<Location> {
        match (url, &self.directory) {
            (Some(url), _) => Ok(Location::postgres(url.clone())
                .with_lifetime(config.store.max_lifetime)
                .patient()),
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
            (None, DataDirectory::Unused) => bail!("an embedded store needs the data directory, which is not open"),
        }
    }

    /// The settings of the policy store.
    pub(crate) fn policy_store(&self, config: &Config) -> anyhow::Result<StoreConfig> {
        self.store_config(config, self.location(config, config.store.url.as_ref(), POLICY_FILE)?)
    }

    /// The settings of the audit store.
    pub(crate) fn audit_store(&self, config: &Config) -> anyhow::Result<StoreConfig> {
        self.store_config(config, self.location(config, config.audit.url.as_ref(), AUDIT_FILE)?)
    }

    /// The audit store at this address, instead of that of the configuration.
    pub(crate) fn audit_store_at(&self, config: &Config, url: &Secret) -> anyhow::Result<StoreConfig> {
        self.store_config(config, self.location(config, Some(url), AUDIT_FILE)?)
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

/// A read-only command found no database file, because the service was never started with this data directory.
#[derive(Debug, thiserror::Error)]
#[error("`{}` does not exist: the service was never started with this data directory", file.display())]
pub(crate) struct NoStoreYet {
    file: PathBuf,
}

/// Creates a directory with mode 0700, if it does not exist: it will hold links, grants and calls.
pub(crate) fn make_private(path: &Path) -> anyhow::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let created = DirBuilder::new().recursive(true).mode(0o700).create(path);
    created.with_context(|| format!("the directory `{}` cannot be created", path.display()))
}

/// Opens the policy store and migrates its schema, or only checks it (`MIGRATE=off`).
///
/// # Errors
/// If the store cannot be reached, or its schema cannot be migrated or does not match this version.
pub(crate) async fn open_policy(platform: &Platform, config: &Config, outbox: OutboxGuard) -> anyhow::Result<Store> {
    let open = async || {
        let settings = StoreConfig {
            outbox: outbox.clone(),
            ..platform.policy_store(config)?
        };
        Store::open(settings).await.map_err(Into::into)
    };
    let store = reach("the policy store", open).await?;
    match config.store.migrate {
        Migrate::Auto => store
            .migrate()
            .await
            .context("the schema of the policy store cannot be migrated")?,
        Migrate::Off => store.check_schema().await.context(
            "the schema of the policy store does not match this version: run `ledger-gateway migrate apply`",
        )?,
    }
    Ok(store)
}

/// Opens the audit store and migrates its schema, or only checks it (`MIGRATE=off`). Commands use this function, not
/// [`open_audit`]: a role that migrates owns the tables, so it may also rewrite sealed entries.
///
/// # Errors
/// If the store cannot be reached, or its schema cannot be migrated or does not match this version.
pub(crate) async fn migrate_audit(platform: &Platform, config: &Config) -> anyhow::Result<AuditStore> {
    let open = async || {
        AuditStore::open(platform.audit_store(config)?)
            .await
            .map_err(Into::into)
    };
    let audit = reach("the audit store", open).await?;
    match config.store.migrate {
        Migrate::Auto => audit
            .migrate()
            .await
            .context("the schema of the audit store cannot be migrated")?,
        Migrate::Off => audit
            .check_schema()
            .await
            .context("the schema of the audit store does not match this version: run `ledger-gateway migrate apply`")?,
    }
    Ok(audit)
}

/// Opens the audit store for sealing.
///
/// # Errors
/// As [`migrate_audit`]; and in production, if the role of the store may rewrite sealed entries.
pub(crate) async fn open_audit(platform: &Platform, config: &Config) -> anyhow::Result<AuditStore> {
    let audit = migrate_audit(platform, config).await?;
    // Spec/70 rule 25: the role that seals must not be able to rewrite.
    let may_rewrite = audit
        .may_rewrite()
        .await
        .context("the audit store's privileges cannot be read")?;
    if may_rewrite && config.environment == Environment::Production {
        bail!("AUDIT_DATABASE_URL: its role may change or delete sealed entries, which is not allowed in production");
    }
    Ok(audit)
}

/// The credential for pruning the audit log and erasing values from it.
#[derive(Debug)]
pub(crate) enum AuditAdmin {
    /// The credential that seals may also delete: an embedded store, or a database of a development machine.
    Own,
    /// The credential of AUDIT_ADMIN_DATABASE_URL.
    Other(Box<StoreConfig>),
    /// There is none: nothing is pruned.
    Missing,
}

/// Finds the credential that may delete from the audit log (spec/70 rule 25).
pub(crate) async fn audit_admin(
    platform: &Platform,
    config: &Config,
    audit: &AuditStore,
) -> anyhow::Result<AuditAdmin> {
    if let Some(url) = &config.audit.retention.admin_url {
        let location = Location::postgres(url.clone())
            .with_lifetime(config.store.max_lifetime)
            .patient();
        let admin = StoreConfig {
            connections: 2,
            ..platform.store_config(config, location)?
        };
        return Ok(AuditAdmin::Other(Box::new(admin)));
    }
    let may_delete = audit
        .may_rewrite()
        .await
        .context("the audit store's privileges cannot be read")?;
    Ok(if may_delete {
        AuditAdmin::Own
    } else {
        AuditAdmin::Missing
    })
}

/// The message if there is no credential that may delete.
pub(crate) const NOTHING_IS_PRUNED: &str =
    "nothing is pruned: AUDIT_ADMIN_DATABASE_URL is not set, and the role of AUDIT_DATABASE_URL may not delete";

/// Connects to the shared cache (spec/85 section 3, step 5), or creates one in this process if REDIS_URL is not set.
///
/// # Errors
/// If the server of REDIS_URL cannot be reached after several attempts, or refuses the connection.
pub(crate) async fn open_cache(platform: &Platform, config: &Config) -> anyhow::Result<Cache> {
    let Some(url) = &config.store.cache_url else {
        return Ok(Cache::in_process(Arc::clone(&platform.steady)));
    };
    let mut attempts = 1;
    loop {
        match Cache::connect(url, Arc::clone(&platform.steady)).await {
            Ok(cache) => {
                warn_of_eviction(&cache).await;
                return Ok(cache);
            }
            Err(error @ ConnectError::Unreachable(_)) if attempts < MAX_CACHE_ATTEMPTS => {
                tracing::warn!(
                    tries = attempts,
                    error = &error as &dyn core::error::Error,
                    "REDIS_URL: the cache cannot be reached yet; it is retried"
                );
            }
            Err(error) => return Err(anyhow::Error::from(error).context("the cache of REDIS_URL cannot be used")),
        }
        attempts += 1;
        sleep(RETRY_DELAY).await;
    }
}

/// Warns if the cache server may evict values: it would lose sessions, single-use marks and limits (spec/85 section 2).
async fn warn_of_eviction(cache: &Cache) {
    match cache.eviction_policy().await {
        Ok(None) => {}
        Ok(Some(policy)) => tracing::warn!(
            %policy,
            "REDIS_URL: the server may evict values when memory is full; set `maxmemory-policy noeviction`, or logins \
             end early and single-use marks and limits are lost"
        ),
        Err(_) => {
            tracing::warn!(
                "REDIS_URL: the maxmemory-policy of the server cannot be read; make sure that it is `noeviction`"
            )
        }
    }
}

/// Checks once a second whether a full disk has free space again, while the policy store refuses writes. `/ready` shows
/// the result. Runs until it is dropped.
pub(crate) async fn watch_free_space(store: Store) {
    loop {
        sleep(SPACE_CHECK_INTERVAL).await;
        if !store.has_room()
            && let Err(error) = store.probe_room().await
        {
            tracing::debug!(
                error = &error as &dyn core::error::Error,
                "the disk of the policy store is still full"
            );
        }
    }
}

/// Opens a store, and retries while it cannot be reached: databases and gateways are often started together.
///
/// # Errors
/// The last error, if all attempts fail, or the first one that no retry can solve.
pub(crate) async fn reach<T>(name: &str, open: impl AsyncFn() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let mut attempts = 1;
    loop {
        match open().await {
            Ok(opened) => return Ok(opened),
            Err(error) if attempts >= MAX_ATTEMPTS || !is_retryable(&error) => {
                return Err(error.context(format!("{name} cannot be opened")));
            }
            Err(error) => {
                tracing::warn!(
                    tries = attempts,
                    "of" = MAX_ATTEMPTS,
                    error = causes(&error),
                    "{name} cannot be reached yet"
                )
            }
        }
        attempts += 1;
        sleep(RETRY_DELAY).await;
    }
}

/// Whether a retry may succeed.
fn is_retryable(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(StoreError::Database(_)))
}

/// The secrets in use: configured ones, or those that a development machine generates.
#[derive(Debug)]
pub(crate) struct Secrets {
    pub(crate) access: TokenSecrets,
    pub(crate) refresh: TokenSecrets,
    /// The token of the super-administrator.
    pub(crate) admin: Secret,
    /// Whether `admin` was generated for this run.
    pub(crate) admin_is_fresh: bool,
    /// Encrypts the upstream keys of groups.
    pub(crate) key_encryption: Secret,
    /// Signs checkpoints.
    pub(crate) checkpoint: Secret,
}

/// The checkpoint key: configured, or stored in the data directory. Reads only; `None` if none was generated yet.
pub(crate) fn checkpoint_key(config: &Config) -> anyhow::Result<Option<Secret>> {
    match &config.audit.checkpoint_key {
        Some(configured) => Ok(Some(configured.clone())),
        None => Ok(secrets::find_kept(&config.data_dir, CHECKPOINT_SECRET)?),
    }
}

impl Secrets {
    /// The key that encrypts the groups' upstream keys: configured, or stored in the data directory. Reads only; `None`
    /// if none was generated yet.
    pub(crate) fn find_key_encryption(config: &Config) -> anyhow::Result<Option<Secret>> {
        match &config.node.key_encryption {
            Some(configured) => Ok(Some(configured.clone())),
            None => Ok(secrets::find_kept(&config.data_dir, KEY_ENCRYPTION_SECRET)?),
        }
    }

    /// Reports whether all secrets are configured or stored, or how many the next start will generate. Reads only.
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
            format!("the first start generates {missing}")
        })
    }

    /// Takes every secret from the configuration, or from the data directory, where missing ones are generated.
    /// Production configures all of them.
    pub(crate) fn complete(config: &Config, entropy: &dyn Entropy) -> anyhow::Result<Self> {
        let stored_secrets = KeptSecrets::new(&config.data_dir, entropy);
        let identity = &config.identity;
        Ok(Self {
            access: TokenSecrets {
                current: stored_secrets.or_generated(identity.access_secret.clone(), ACCESS_SECRET)?,
                previous: identity.access_secret_previous.clone(),
            },
            refresh: TokenSecrets {
                current: stored_secrets.or_generated(identity.refresh_secret.clone(), REFRESH_SECRET)?,
                previous: identity.refresh_secret_previous.clone(),
            },
            admin_is_fresh: config.admin.token.is_none(),
            admin: config.admin.token.clone().unwrap_or_else(|| secrets::fresh(entropy)),
            key_encryption: stored_secrets.or_generated(config.node.key_encryption.clone(), KEY_ENCRYPTION_SECRET)?,
            checkpoint: stored_secrets.or_generated(config.audit.checkpoint_key.clone(), CHECKPOINT_SECRET)?,
        })
    }
}

/// The guard that authenticates the rows of the audit outbox, for a command that writes rows. It has no witness: the
/// service remembers these rows once it reads them.
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
    /// The guard that authenticates the rows of the audit outbox, with `mark` as the witness outside the database.
    pub(super) fn outbox_guard(&self, mark: &Arc<OutboxMarkFile>) -> anyhow::Result<OutboxGuard> {
        let witness = Arc::clone(mark) as Arc<dyn OutboxWitness>;
        Ok(OutboxGuard {
            key: Some(outbox_key(&self.checkpoint)?),
            witness: Some(witness),
        })
    }
}

/// Resets the tracing toggles to the configuration (X9). Only the first instance to start calls this; later ones use
/// the changes that an administrator has made since.
pub(super) async fn restore_toggles(store: &Store) -> Result<(), ServeError> {
    let restored = async {
        let mut tx = match store.begin(&Actor::system()).await {
            // The condition was logged before. Reads still work, and toggles cannot be changed.
            Err(StoreError::EpochExhausted(_) | StoreError::EpochMissing) => return Ok(()),
            result => result?,
        };
        match tx.clear_toggles("the service started anew").await? {
            0 => tx.rollback().await,
            _ => tx.commit().await.map(drop),
        }
    };
    restored
        .await
        .context("the tracing toggles cannot be reset to the configuration")
        .map_err(ServeError::from)
}
