//! An open chain store.

use crate::{
    ChainReader, ChainStoreConfig, ChainStoreError, ChainWriter, Job, OtherChain, dialect::Pools, lease, migration,
    state, writer::tasks,
};
use std::sync::Arc;

/// An open chain store; cheap to clone.
#[derive(Clone, Debug)]
pub struct ChainStore {
    pools: Pools,
    config: Arc<ChainStoreConfig>,
}

impl ChainStore {
    /// Connects, migrates the schema to the version of this build, and checks that the blocks are those of the
    /// configured chain.
    ///
    /// # Errors
    /// [`ChainStoreError::Schema`] if the schema is newer than this build; [`ChainStoreError::OtherChain`] if the
    /// database contains another chain and must not be wiped; [`ChainStoreError::OtherWriter`] if it would be wiped
    /// and another instance writes to it; any database error.
    pub async fn open(config: ChainStoreConfig) -> Result<Self, ChainStoreError> {
        let pools = Pools::open(&config.location, config.connections).await?;
        migration::run(&pools).await?;
        let store = Self {
            pools,
            config: Arc::new(config),
        };
        store.check_chain().await?;
        Ok(store)
    }

    async fn check_chain(&self) -> Result<(), ChainStoreError> {
        let configured = self.config.chain_id;
        let tx = self.pools.begin_read().await?;
        let stored = state::read(&tx).await?.chain_id.map(i64::cast_unsigned);
        drop(tx);
        match stored {
            Some(stored) if stored == configured => return Ok(()),
            Some(stored) if self.config.other_chain == OtherChain::Refuse => {
                return Err(ChainStoreError::OtherChain { stored, configured });
            }
            Some(_) | None => {}
        }
        let tx = self.pools.begin_write().await?;
        // The lease keeps two starting instances from setting different chains.
        let holder = self.config.entropy.uuid();
        lease::acquire(&tx, holder, "an instance that starts", false, self.config.clock.now()).await?;
        match state::read(&tx).await?.chain_id.map(i64::cast_unsigned) {
            Some(stored) if stored == configured => {}
            None => state::set_chain(&tx, configured).await?,
            Some(stored) => match self.config.other_chain {
                OtherChain::Refuse => return Err(ChainStoreError::OtherChain { stored, configured }),
                OtherChain::Wipe => {
                    state::wipe(&tx).await?;
                    state::set_chain(&tx, configured).await?;
                }
            },
        }
        lease::release(&tx, holder).await?;
        Ok(tx.commit().await?)
    }

    /// Takes the lease of the writer; other instances show `name`.
    ///
    /// # Errors
    /// [`ChainStoreError::OtherWriter`] if another instance holds the lease; any database error.
    pub async fn writer(&self, name: &str) -> Result<ChainWriter, ChainStoreError> {
        ChainWriter::acquire(&self.pools, &self.config, name).await
    }

    /// Requests that the indexer reads a stored block again, whichever instance it runs in: adds a task to the queue,
    /// and changes nothing else, so it needs no lease. Returns false if no block with this number is stored.
    ///
    /// # Errors
    /// Any database error.
    pub async fn request_block(&self, number: u64) -> Result<bool, ChainStoreError> {
        let reader = self.reader().await?;
        if reader.find_block(number).await?.is_none() {
            return Ok(false);
        }
        drop(reader);
        let tx = self.pools.begin_write().await?;
        let job = Job::Block { block: number };
        tasks::enqueue(&tx, [job].into(), self.config.clock.now()).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Whether the database answered the last reader. While it does not, one reader at a time tries it, and the others
    /// fail at once.
    pub fn is_reachable(&self) -> bool {
        self.pools.is_reachable()
    }

    /// Returns queries on the present state of the database.
    ///
    /// # Errors
    /// Any database error.
    pub async fn reader(&self) -> Result<ChainReader, ChainStoreError> {
        ChainReader::begin(&self.pools).await
    }

    /// Returns queries on the present state of the database for ids that were taken in this generation.
    ///
    /// # Errors
    /// [`ChainStoreError::OtherGeneration`] if the database has another generation; any database error.
    pub async fn reader_at(&self, generation: u64) -> Result<ChainReader, ChainStoreError> {
        let reader = self.reader().await?;
        let stored = reader.progress().generation;
        if stored == generation {
            return Ok(reader);
        }
        Err(ChainStoreError::OtherGeneration {
            requested: generation,
            stored,
        })
    }
}
