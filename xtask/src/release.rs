//! HD19: the plain binary contains no mock code.
//!
//! The same texts are first searched in the build with the mock login: if a text is not even there, its absence in the
//! plain binary proves nothing.

use crate::command::{DEV_FEATURES, cargo, succeed};
use anyhow::{Context as _, bail};
use std::path::{Path, PathBuf};

/// Texts that occur only in mock code.
const MARKERS: &[&str] = &["mock.jwz.token."];

/// Searches both binaries. The plain one must be the last that was built. The one with the mock login is built here
/// only if the tests have not built it.
pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    let plain = read(root, "ledger-gateway")?;
    if read(root, "ledger-gateway-dev").is_err() {
        let build = ["build", "--workspace", "--features", DEV_FEATURES, "--locked"];
        let mut command = cargo(root, &build);
        command.args(["--bin", "ledger-gateway-dev"]);
        succeed(command)?;
    }
    let mock = read(root, "ledger-gateway-dev")?;
    for marker in MARKERS {
        if !contains(&mock, marker) {
            bail!("`{marker}` is not in ledger-gateway-dev; update the marker texts in xtask/src/release.rs");
        }
        if contains(&plain, marker) {
            bail!("`{marker}` is in ledger-gateway: the release build contains mock code");
        }
    }
    Ok(())
}

fn read(root: &Path, name: &str) -> anyhow::Result<Vec<u8>> {
    let path = target(root)?.join("debug").join(name);
    std::fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))
}

/// Cargo's target directory.
fn target(root: &Path) -> anyhow::Result<PathBuf> {
    let output = cargo(root, &["metadata", "--format-version", "1", "--no-deps", "--locked"]).output()?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).context("the output of `cargo metadata` cannot be parsed")?;
    let path = metadata.get("target_directory").and_then(serde_json::Value::as_str);
    path.map(PathBuf::from)
        .context("the output of `cargo metadata` has no target directory")
}

fn contains(binary: &[u8], marker: &str) -> bool {
    binary.windows(marker.len()).any(|window| window == marker.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_found_anywhere() {
        assert!(contains(b"..mock.jwz.token.", "mock.jwz.token."));
        assert!(!contains(b"mock.jwz.toke", "mock.jwz.token."));
    }
}
