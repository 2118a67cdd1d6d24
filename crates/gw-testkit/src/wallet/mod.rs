//! A real wallet that answers login requests with new proofs: the identity network's own library (`tests/wallet`), with
//! a test circuit that has authV2's inputs and signals and is proved here.
//!
//! Compiling the circuit and generating its keys takes most of a minute. It is done once and kept under
//! `target/wallet`, named by a hash of the sources.

mod circom;
mod prover;

use axum::{Router, extract::DefaultBodyLimit, http::StatusCode, routing::post};
use bytes::Bytes;
use prover::Prover;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, OnceLock, mpsc},
    time::Duration,
};

const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/wallet");
const CACHE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/wallet");
const NAME: &str = "authV2";
/// Incremented when the kept files change for another reason than their sources.
const FORMAT: u8 = 1;

/// The compiled circuit and its keys on disk.
#[derive(Clone, Debug)]
pub struct Kit {
    folder: PathBuf,
}

impl Kit {
    /// Returns the kit; makes it first if it does not exist yet.
    ///
    /// # Panics
    /// If it cannot be made because `scripts/setup.sh` has not run.
    pub fn prepare() -> Self {
        let kit = Self {
            folder: Path::new(CACHE).join(digest()),
        };
        create(&kit.folder);
        let guard = std::fs::File::create(kit.folder.join("lock"))
            .and_then(|file| file.lock().map(|()| file))
            .unwrap_or_else(|error| panic!("{}: {error}", kit.folder.display()));
        // The verification key is written last, so an interrupted run is repeated.
        if !kit.verification_key().is_file() {
            kit.build();
        }
        drop(guard);
        kit
    }

    fn build(&self) {
        let output = Command::new("node")
            .current_dir(PACKAGE)
            .args([
                "node_modules/circom2/cli.js",
                "circuits/authV2.circom",
                "--r1cs",
                "--wasm",
                "--O2",
            ])
            .args(["-l", "node_modules", "-o"])
            .arg(&self.folder)
            .output()
            .unwrap_or_else(|error| panic!("node: {error}"));
        let output_text = || String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned();
        assert!(
            output.status.success() && self.constraints().is_file(),
            "run scripts/setup.sh; circom: {}",
            output_text()
        );
        let temporary = self.folder.join("fresh.json");
        prover::set_up(&self.constraints(), &self.proving_key(), &temporary);
        std::fs::rename(&temporary, self.verification_key())
            .unwrap_or_else(|error| panic!("{}: {error}", temporary.display()));
    }

    fn constraints(&self) -> PathBuf {
        self.folder.join(format!("{NAME}.r1cs"))
    }

    fn proving_key(&self) -> PathBuf {
        self.folder.join("proving.key")
    }

    /// The program that calculates a witness.
    pub fn circuit(&self) -> PathBuf {
        self.folder.join(format!("{NAME}_js/{NAME}.wasm"))
    }

    /// The directory that contains only verification keys, named by circuit.
    pub fn verification_keys(&self) -> PathBuf {
        self.folder.join("verification-keys")
    }

    /// The verification key, in the JSON format of circuit tools.
    pub fn verification_key(&self) -> PathBuf {
        self.verification_keys().join(format!("{NAME}.json"))
    }
}

/// Serves proofs on a local port until the process ends. All wallets of the process share it.
///
/// # Panics
/// If the circuit cannot be made, or no port is free.
pub fn prover_url(kit: &Kit) -> &'static str {
    static URL: OnceLock<String> = OnceLock::new();
    URL.get_or_init(|| {
        let prover = Arc::new(Prover::load(&kit.constraints(), &kit.proving_key()));
        let listener = std::net::TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .unwrap_or_else(|error| panic!("no port for the prover: {error}"));
        let address = listener.local_addr().unwrap_or_else(|error| panic!("{error}"));
        // In a thread of its own, because the tests' runtimes end before the process.
        std::thread::spawn(move || serve(listener, prover));
        format!("http://{address}/")
    })
}

fn serve(listener: std::net::TcpListener, prover: Arc<Prover>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.unwrap_or_else(|error| panic!("{error}"));
    runtime.block_on(async {
        let prove = move |witness: Bytes| async move {
            let proof = tokio::task::spawn_blocking(move || prover.prove(&witness)).await;
            match proof {
                Ok(Ok(proof)) => (StatusCode::OK, proof.to_string()),
                Ok(Err(fault)) => (StatusCode::BAD_REQUEST, fault.to_owned()),
                Err(fault) => (StatusCode::INTERNAL_SERVER_ERROR, fault.to_string()),
            }
        };
        let app = Router::new().route("/", post(prove)).layer(DefaultBodyLimit::disable());
        let listener = tokio::net::TcpListener::from_std(listener).unwrap_or_else(|error| panic!("{error}"));
        axum::serve(listener, app)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
    });
}

/// A running wallet, stopped when dropped. Its commands are those of `tests/wallet/wallet.mjs`.
#[derive(Debug)]
pub struct Wallet {
    process: Child,
    input: ChildStdin,
    lines: mpsc::Receiver<String>,
}

impl Wallet {
    /// Starts a wallet without identities.
    ///
    /// # Panics
    /// If it cannot be started because `scripts/setup.sh` has not run.
    pub fn start() -> Self {
        let kit = Kit::prepare();
        let mut process = Command::new("node")
            .arg(format!("{PACKAGE}/wallet.mjs"))
            .env("GW_PROVER_URL", prover_url(&kit))
            .env("GW_CIRCUIT", kit.circuit())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("node: {error}"));
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            panic!("the wallet has no standard input or output")
        };
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            BufReader::new(output)
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        Self { process, input, lines }
    }

    /// Runs one command with these arguments, a JSON object, and returns its result.
    ///
    /// # Panics
    /// If the wallet rejects it, or does not respond within two minutes.
    #[track_caller]
    pub fn ask(&mut self, command: &str, mut arguments: Value) -> Value {
        match self.try_ask(command, &mut arguments) {
            Ok(result) => result,
            Err(fault) => panic!("wallet, {command}: {fault}"),
        }
    }

    fn try_ask(&mut self, command: &str, arguments: &mut Value) -> Result<Value, String> {
        arguments
            .as_object_mut()
            .ok_or("not an object")?
            .insert("command".to_owned(), command.into());
        writeln!(self.input, "{arguments}").map_err(|error| format!("the wallet has ended: {error}"))?;
        let line = self
            .lines
            .recv_timeout(Duration::from_secs(120))
            .map_err(|error| format!("no response within two minutes: {error}"))?;
        let mut response: Value = serde_json::from_str(&line).map_err(|error| format!("{error}: {line}"))?;
        match response.get_mut("ok") {
            Some(ok) => Ok(ok.take()),
            None => Err(response.to_string()),
        }
    }
}

impl Drop for Wallet {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A hash of the sources of the kept files.
fn digest() -> String {
    let mut hash = Sha256::new();
    hash.update([FORMAT]);
    for file in ["circuits/authV2.circom", "package-lock.json"] {
        let path = format!("{PACKAGE}/{file}");
        hash.update(std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}")));
    }
    hash.finalize()
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn create(folder: &Path) {
    let keys = folder.join("verification-keys");
    std::fs::create_dir_all(&keys).unwrap_or_else(|error| panic!("{}: {error}", keys.display()));
}

#[cfg(test)]
mod tests;
