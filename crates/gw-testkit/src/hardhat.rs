//! Nodes of another implementation: Hardhat 2 and 3 from the npm registry, pinned in `tests/nodes`.

use std::{
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

/// A version of Hardhat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hardhat {
    /// Supports only the default tracer.
    Two,
    /// Supports `muxTracer`; needs Node.js 22.
    Three,
}

/// A running node, stopped when dropped.
#[derive(Debug)]
pub struct HardhatNode {
    process: Child,
    url: String,
}

impl Hardhat {
    /// Starts a node with its own chain (31337, the well-known funded keys) on a free port and waits until it listens.
    ///
    /// # Panics
    /// If it cannot be started because `scripts/setup.sh` has not run.
    pub fn start(self) -> HardhatNode {
        let directory = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/nodes"));
        let (name, command): (_, &[&str]) = match self {
            Self::Two => {
                let program = "node_modules/hardhat2/internal/cli/bootstrap.js";
                ("Hardhat 2", &["node", program, "--config", "node2.config.cjs"])
            }
            Self::Three => ("Hardhat 3", &["./hardhat", "--config", "node.config.js"]),
        };
        assert!(
            directory.join("node_modules").is_dir(),
            "no {name}: run scripts/setup.sh"
        );
        // A shell guards the node: when the test process ends, in whatever way, the shell's input closes.
        let watch = r#""$@" </dev/null 2>&1 & node=$!; exec >/dev/null; cat; kill $node 2>/dev/null"#;
        let mut process = Command::new("sh")
            .args(["-c", watch, "sh"])
            .args(command)
            .args(["node", "--port", "0", "--hostname", "127.0.0.1"])
            .current_dir(directory)
            // Disables the telemetry prompt, and allows an installation under another package name.
            .env("HARDHAT_DISABLE_TELEMETRY_PROMPT", "true")
            .env("HARDHAT_EXPERIMENTAL_ALLOW_NON_LOCAL_INSTALLATION", "true")
            .env("NO_COLOR", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        let output = process
            .stdout
            .take()
            .unwrap_or_else(|| panic!("{name} has no standard output"));
        let mut lines = BufReader::new(output).lines();
        let mut output_lines = Vec::new();
        let url = loop {
            let Some(Ok(line)) = lines.next() else {
                panic!(
                    "{name} ended before it listened; its output:\n{}",
                    output_lines.join("\n")
                );
            };
            match line.split_once(" server at ") {
                // The address is followed by colour codes if Hardhat assumes a terminal.
                Some((_, address)) => {
                    let address = address.split('\u{1b}').next().unwrap_or(address);
                    break address.trim().trim_end_matches('/').to_owned();
                }
                None => output_lines.push(line),
            }
        };
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        HardhatNode { process, url }
    }
}

impl HardhatNode {
    /// The URL of the node.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for HardhatNode {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // The shell ends once it has stopped the node.
        let _ = self.process.wait();
    }
}
