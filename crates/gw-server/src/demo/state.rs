//! The state file of a running demo, read by `demo token`.

use super::cast::Names;
use anyhow::Context as _;
use gw_types::Address;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Addresses of a running demo.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct State {
    /// Base address of the gateway.
    pub(super) gateway: String,
    /// Address of the node.
    pub(super) node: String,
    /// DIDs of the personas.
    pub(super) names: Names,
    /// The token contract.
    pub(super) token: Address,
}

/// Name of the state file in the demo's directory.
pub(super) const FILE: &str = "demo.json";

impl State {
    pub(super) fn read(dir: &Path) -> anyhow::Result<Self> {
        let path = dir.join(FILE);
        let text = std::fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is malformed", path.display()))
    }

    pub(super) fn write(&self, dir: &Path) -> anyhow::Result<()> {
        let path = dir.join(FILE);
        std::fs::write(&path, serde_json::to_vec_pretty(self)?)
            .with_context(|| format!("{} cannot be written", path.display()))
    }
}
