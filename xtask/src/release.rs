//! HD19: the plain binary of a whole-workspace build holds no mock code.
//!
//! The build with the mock login is searched for the same texts first: a text that is not found there proves nothing
//! by its absence here.

use crate::ci::{MOCK, cargo, succeed};
use anyhow::{Context as _, bail};
use std::path::{Path, PathBuf};

/// Texts that only mock code holds.
const MARKERS: &[&str] = &["mock.jwz.token."];

/// Builds both binaries and searches them.
pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    succeed(cargo(root, &["build", "--workspace", "--locked"]))?;
    let plain = read(root, "ledger-gateway")?;
    let mock = [
        "build",
        "-p",
        "gw-server",
        "--features",
        MOCK,
        "--bin",
        "ledger-gateway-dev",
        "--locked",
    ];
    succeed(cargo(root, &mock))?;
    let mock = read(root, "ledger-gateway-dev")?;
    for marker in MARKERS {
        if !holds(&mock, marker) {
            bail!("`{marker}` is not in ledger-gateway-dev: the search would find nothing");
        }
        if holds(&plain, marker) {
            bail!("`{marker}` is in ledger-gateway: mock code reached the release build");
        }
    }
    Ok(())
}

fn read(root: &Path, name: &str) -> anyhow::Result<Vec<u8>> {
    let path = target(root)?.join("debug").join(name);
    std::fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))
}

/// Where cargo puts what it builds.
fn target(root: &Path) -> anyhow::Result<PathBuf> {
    let output = cargo(root, &["metadata", "--format-version", "1", "--no-deps", "--locked"]).output()?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).context("`cargo metadata` is not understood")?;
    let path = metadata.get("target_directory").and_then(serde_json::Value::as_str);
    path.map(PathBuf::from)
        .context("`cargo metadata` names no target directory")
}

fn holds(binary: &[u8], marker: &str) -> bool {
    binary.windows(marker.len()).any(|window| window == marker.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_found_anywhere() {
        assert!(holds(b"..mock.jwz.token.", "mock.jwz.token."));
        assert!(!holds(b"mock.jwz.toke", "mock.jwz.token."));
    }
}
