//! Commands that the checks run.

use anyhow::{Context as _, bail};
use std::{path::Path, process::Command};

/// The features that no release of a privacy deployment has: the mock login, and direct mode of the explorer's backend.
/// The dev build has both.
pub(crate) const DEV_FEATURES: &str = "gw-server/mock-login,gw-server/explorer-direct";

/// What `cargo run` tells this program about its package.
const OF_PACKAGE: [&str; 16] = [
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_PATH",
    "CARGO_PKG_AUTHORS",
    "CARGO_PKG_DESCRIPTION",
    "CARGO_PKG_HOMEPAGE",
    "CARGO_PKG_LICENSE",
    "CARGO_PKG_LICENSE_FILE",
    "CARGO_PKG_NAME",
    "CARGO_PKG_README",
    "CARGO_PKG_REPOSITORY",
    "CARGO_PKG_RUST_VERSION",
    "CARGO_PKG_VERSION",
    "CARGO_PKG_VERSION_MAJOR",
    "CARGO_PKG_VERSION_MINOR",
    "CARGO_PKG_VERSION_PATCH",
    "CARGO_PKG_VERSION_PRE",
];

/// A `cargo` command in the workspace. Snapshot tests do not update their files.
///
/// It has none of the variables that `cargo run` set for this program: build scripts that look at them, such as that of
/// `ring`, would run again after each direct use of cargo, and most dependencies would be compiled again.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    for name in OF_PACKAGE {
        command.env_remove(name);
    }
    command
        .args(arguments)
        .current_dir(root)
        .env("INSTA_UPDATE", "no")
        .env("CI", "true");
    command
}

/// Runs a command that must succeed.
pub(crate) fn succeed(mut command: Command) -> anyhow::Result<()> {
    let status = command
        .status()
        .with_context(|| format!("{} did not start", name(&command)))?;
    if !status.success() {
        bail!("`{}` failed", name(&command));
    }
    Ok(())
}

/// The command line of a command.
pub(crate) fn name(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy()];
    words.extend(command.get_args().map(|argument| argument.to_string_lossy()));
    words.join(" ")
}
