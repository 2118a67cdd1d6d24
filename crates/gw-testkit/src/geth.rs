//! go-ethereum as a development node, if it is installed.

use crate::anvil::CHAIN_ID;
use std::{
    io::{self, BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};
use tempfile::TempDir;

/// A running node, stopped when dropped. It mines each transaction at once.
#[derive(Debug)]
pub struct Geth {
    process: Child,
    url: String,
    _directory: TempDir,
}

/// Funds the first two well-known keys of development nodes on a chain with the rules of Cancun.
const GENESIS: &str = r#"{
    "config": {
        "chainId": CHAIN_ID, "homesteadBlock": 0, "eip150Block": 0, "eip155Block": 0, "eip158Block": 0,
        "byzantiumBlock": 0, "constantinopleBlock": 0, "petersburgBlock": 0, "istanbulBlock": 0, "muirGlacierBlock": 0,
        "berlinBlock": 0, "londonBlock": 0, "arrowGlacierBlock": 0, "grayGlacierBlock": 0, "mergeNetsplitBlock": 0,
        "shanghaiTime": 0, "cancunTime": 0, "terminalTotalDifficulty": 0,
        "blobSchedule": {"cancun": {"target": 3, "max": 6, "baseFeeUpdateFraction": 3338477}}
    },
    "difficulty": "0x0", "gasLimit": "0x1c9c380", "baseFeePerGas": "0x3b9aca00",
    "alloc": {
        "f39Fd6e51aad88F6F4ce6aB8827279cffFb92266": {"balance": "0x21e19e0c9bab2400000"},
        "70997970C51812dc3A010C7d01b50e0d17dc79C8": {"balance": "0x21e19e0c9bab2400000"}
    }
}"#;

impl Geth {
    /// Starts a node on a free port and waits until it listens. Without a program `geth` there is none: this is said on
    /// standard error, and the test that needs it ends.
    ///
    /// # Panics
    /// If geth is installed and cannot be started.
    pub fn start() -> Option<Self> {
        let Some(program) = program() else {
            eprintln!(
                "\n\n  NOT RUN: geth is not installed, so the GO-ETHEREUM tests were skipped. To run them:\n  \
                 go install github.com/ethereum/go-ethereum/cmd/geth@v1.17.1, or set GW_GETH\n\n"
            );
            return None;
        };
        Some(
            Self::start_program(&program).unwrap_or_else(|error| panic!("cannot start {}: {error}", program.display())),
        )
    }

    fn start_program(program: &Path) -> io::Result<Self> {
        let directory = tempfile::tempdir()?;
        let genesis = directory.path().join("genesis.json");
        std::fs::write(&genesis, GENESIS.replace("CHAIN_ID", &CHAIN_ID.to_string()))?;
        let data = directory.path().join("data");
        let init = Command::new(program)
            .arg("init")
            .arg("--datadir")
            .args([&data, &genesis])
            .output()?;
        if !init.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&init.stderr).into_owned()));
        }
        // A shell guards the node: when the test process ends, in whatever way, the shell's input closes.
        let script = r#""$@" </dev/null 2>&1 & node=$!; exec >/dev/null; cat; kill -9 $node 2>/dev/null"#;
        let mut process = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(program)
            .args(["--dev", "--datadir"])
            .arg(&data)
            .args(["--http", "--http.port", "0", "--http.api", "eth,net,web3,debug"])
            .args(["--ipcdisable", "--nodiscover", "--port", "0", "--authrpc.port", "0"])
            // The state of all blocks is kept, as the tests of tracing need.
            .args(["--gcmode", "archive", "--log.format", "logfmt"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = process
            .stdout
            .take()
            .ok_or_else(|| io::Error::other("no standard output"))?;
        let mut lines = BufReader::new(output).lines();
        let mut output_lines = Vec::new();
        let url = loop {
            let Some(Ok(line)) = lines.next() else {
                return Err(io::Error::other(output_lines.join("\n")));
            };
            let address = line
                .split_once("HTTP server started")
                .and_then(|(_, rest)| rest.split_once("endpoint="))
                .and_then(|(_, rest)| rest.split_whitespace().next());
            match address {
                Some(address) => break format!("http://{address}"),
                None => output_lines.push(line),
            }
        };
        // The pipe must be read to its end: a node that cannot print would block.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Ok(Self {
            process,
            url,
            _directory: directory,
        })
    }

    /// The URL of the node.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Geth {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // The shell ends once it has stopped the node.
        let _ = self.process.wait();
    }
}

/// `GW_GETH`, else `geth` on the `PATH`, else where `go install` puts it.
#[expect(clippy::disallowed_methods, reason = "test support has no configuration of its own")]
fn program() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("GW_GETH") {
        return Some(path.into());
    }
    let directories = std::env::var_os("PATH").unwrap_or_default();
    let installed = [
        std::env::var_os("GOBIN").map(PathBuf::from),
        std::env::var_os("GOPATH").map(|path| PathBuf::from(path).join("bin")),
        std::env::var_os("HOME").map(|path| PathBuf::from(path).join("go/bin")),
    ];
    std::env::split_paths(&directories)
        .chain(installed.into_iter().flatten())
        .map(|directory| directory.join("geth"))
        .find(|program| program.is_file())
}
