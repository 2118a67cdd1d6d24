//! The right edges of the chains' trees as of their last checkpoints, in a file beside the journal: a restart goes on
//! from there instead of reading the whole chain again.
//!
//! Not trusted for anything: a wrong edge signs a wrong root, which the next verification finds; a missing file costs
//! one reading of the chain.

use gw_audit::{ChainId, Hash, tree::Frontier};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

const FILE: &str = "frontiers.json";

/// The file and what is in it.
#[derive(Debug)]
pub(super) struct Frontiers {
    path: PathBuf,
    kept: BTreeMap<String, Edge>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Edge {
    size: u64,
    peaks: Vec<Hash>,
}

impl Frontiers {
    /// Those of a directory; none if the file cannot be read.
    pub(super) fn load(directory: &Path) -> Self {
        let path = directory.join(FILE);
        let kept = fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        Self { path, kept }
    }

    /// The edge of a chain.
    pub(super) fn take(&self, chain: ChainId) -> Option<Frontier> {
        self.kept.get(&name(chain)).and_then(|edge| Frontier::resume(edge.size, edge.peaks.clone()))
    }

    /// Keeps the edge of a chain.
    pub(super) fn keep(&mut self, chain: ChainId, frontier: &Frontier) {
        let edge = Edge { size: frontier.size(), peaks: frontier.peaks().to_vec() };
        self.kept.insert(name(chain), edge);
        if let Err(error) = self.write() {
            tracing::warn!(%error, "the edges of the audit trees were not kept");
        }
    }

    /// Whole or not at all.
    fn write(&self) -> io::Result<()> {
        let next = self.path.with_extension("next");
        fs::write(&next, serde_json::to_vec(&self.kept)?)?;
        fs::rename(&next, &self.path)
    }
}

fn name(chain: ChainId) -> String {
    format!("{}/{}", chain.stream, chain.shard)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_audit::{ShardId, Stream};

    #[test]
    fn an_edge_survives_and_a_broken_file_costs_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let chain = ChainId { stream: Stream::Access, shard: ShardId(uuid::Uuid::from_u128(1)) };
        let mut frontier = Frontier::default();
        for byte in 0..5 {
            frontier.push(Hash::repeat_byte(byte));
        }
        let mut frontiers = Frontiers::load(dir.path());
        assert!(frontiers.take(chain).is_none());
        frontiers.keep(chain, &frontier);
        let again = Frontiers::load(dir.path()).take(chain).expect("kept");
        assert_eq!((again.size(), again.root()), (5, frontier.root()));
        std::fs::write(dir.path().join(FILE), b"{").expect("broken");
        assert!(Frontiers::load(dir.path()).take(chain).is_none());
    }
}
