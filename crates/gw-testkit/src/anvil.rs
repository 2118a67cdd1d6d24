//! A real node: anvil from the npm package `@foundry-rs/anvil`, pinned in `tests/clients` (decision 11).

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// A running node with its own chain, stopped when dropped.
#[derive(Debug)]
pub struct Anvil {
    process: Child,
    url: String,
}

/// The options of a node.
#[derive(Clone, Debug, Default)]
pub struct AnvilOptions {
    /// Seconds between blocks; if not set, each transaction is mined at once.
    pub block_time: Option<u32>,
    /// Nothing is mined except by `evm_mine`.
    pub no_mining: bool,
    /// A chain id other than [`CHAIN_ID`].
    pub chain_id: Option<u64>,
    /// Further arguments.
    pub extra: Vec<String>,
}

/// The chain id of every node, unless [`AnvilOptions::chain_id`] is set.
pub const CHAIN_ID: u64 = 31337;

/// Starts a node that mines each transaction at once.
///
/// # Panics
/// If it cannot be started: `npm install` in `tests/clients` has not run, or `GW_ANVIL` names no program.
pub fn anvil() -> Anvil {
    Anvil::start(&AnvilOptions::default())
}

impl Anvil {
    /// Starts a node on a free port and waits until it listens.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(options: &AnvilOptions) -> Self {
        Self::start_program(&program(), options)
    }

    fn start_program(program: &Path, options: &AnvilOptions) -> Self {
        // A shell guards the node: when the test process ends, in whatever way, the shell's input closes. The shell
        // closes its own output, so that the pipe ends with the node.
        let script = r#""$@" </dev/null 2>&1 & node=$!; exec >/dev/null; cat; kill $node 2>/dev/null"#;
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(program);
        command.args([
            "--port",
            "0",
            "--host",
            "127.0.0.1",
            "--chain-id",
            &options.chain_id.unwrap_or(CHAIN_ID).to_string(),
        ]);
        if let Some(seconds) = options.block_time {
            command.args(["--block-time", &seconds.to_string()]);
        }
        if options.no_mining {
            command.arg("--no-mining");
        }
        command
            .args(&options.extra)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = command
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", program.display()));
        let output = process
            .stdout
            .take()
            .unwrap_or_else(|| panic!("anvil has no standard output"));
        let mut lines = BufReader::new(output).lines();
        let mut output_lines = Vec::new();
        let url = loop {
            let Some(Ok(line)) = lines.next() else {
                panic!(
                    "{} ended before it listened; its output:\n{}",
                    program.display(),
                    output_lines.join("\n")
                );
            };
            match line.strip_prefix("Listening on ") {
                Some(address) => break format!("http://{}", address.trim()),
                None => output_lines.push(line),
            }
        };
        // The pipe must be read to its end: a node that cannot print would block.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self { process, url }
    }

    /// The URL of the node.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Anvil {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // The shell ends once it has stopped the node.
        let _ = self.process.wait();
    }
}

/// `GW_ANVIL`, else the program that npm installed under `tests/clients`.
#[expect(clippy::disallowed_methods, reason = "test support has no configuration of its own")]
fn program() -> PathBuf {
    if let Some(path) = std::env::var_os("GW_ANVIL") {
        return path.into();
    }
    let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let machine = if cfg!(target_arch = "aarch64") {
        "arm64"
    } else {
        "amd64"
    };
    let path = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/clients/node_modules/@foundry-rs"
    ))
    .join(format!("anvil-{system}-{machine}/bin/anvil"));
    assert!(
        path.is_file(),
        "no anvil: run `npm install` in tests/clients, or set GW_ANVIL"
    );
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_nodes_listen_on_ports_of_their_own() {
        let (first, second) = (anvil(), anvil());
        assert!(first.url().starts_with("http://127.0.0.1:") && first.url() != second.url());
    }

    #[test]
    #[should_panic(expected = "ended before it listened; its output:\n--port 0")]
    fn a_node_that_ends_at_once_is_an_error() {
        Anvil::start_program(Path::new("echo"), &AnvilOptions::default());
    }
}
