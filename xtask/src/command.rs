//! Commands that the checks run.

use anyhow::{Context as _, bail};
use std::{path::Path, process::Command};

/// The features that no release of a privacy deployment has: the mock login, and direct mode of the explorer's backend.
/// The dev build has both.
pub(crate) const DEV_FEATURES: &str = "gw-server/mock-login,gw-server/explorer-direct";

/// A `cargo` command in the workspace. Snapshot tests do not update their files.
///
/// It has none of the variables that `cargo run` set for this program: build scripts that look at them, such as that of
/// `ring`, would run again after each direct use of cargo, and most dependencies would be compiled again.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    for (name, _) in std::env::vars_os() {
        let is_of_package = name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"));
        if is_of_package {
            command.env_remove(name);
        }
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
