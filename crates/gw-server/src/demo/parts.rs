//! The processes of the demo: a real node and a gateway, each with its log in the demo's directory.
//!
//! Invariant: every process that was started is stopped, in reverse order, before the demo ends.

use super::{
    cast::Names,
    client::{As, Client},
};
use crate::{secrets, system::SystemEntropy};
use anyhow::{Context as _, bail};
use gw_store::DirectoryLock;
use gw_types::{Entropy as _, Secret};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::{
    fs::File,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep, timeout},
};

/// How long a process may take to answer after its start.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the gateway may take to exit after SIGTERM.
const EXIT_TIMEOUT: Duration = Duration::from_secs(45);
/// Lifetime of the demo's access tokens. Tools with a fixed header cannot refresh tokens (decision 35).
const TOKEN_TTL: &str = "8h";
/// Port of the node, if it is free.
const NODE_PORT: u16 = 8545;

const NODE_LOG: &str = "node.log";
const GATEWAY_LOG: &str = "gateway.log";
/// Files of a demo in its directory. Only these, `GATEWAY_DATA` and the lock file are ever removed from it.
const FILES: [&str; 3] = [super::state::FILE, NODE_LOG, GATEWAY_LOG];
const GATEWAY_DATA: &str = "gateway";

/// Addresses, the administrator's token and the personas of a running demo.
#[derive(Debug)]
pub(super) struct Running {
    /// Base address of the gateway.
    pub(super) gateway: String,
    /// Address of the node.
    pub(super) node: String,
    /// Super administrator's token.
    pub(super) admin: Secret,
    /// DIDs of the personas.
    pub(super) names: Names,
}

/// The demo's directory and processes, as far as they were started.
#[derive(Debug, Default)]
pub(super) struct Parts {
    dir: Option<DirectoryLock>,
    node: Option<Child>,
    gateway: Option<Child>,
    running: Option<Running>,
}

impl Parts {
    /// Starts the node, then the gateway.
    pub(super) async fn start(&mut self, dir: &Path, port: u16, ephemeral: bool, names: Names) -> anyhow::Result<()> {
        let anvil = find_anvil().await?;
        let dir = if ephemeral { scratch() } else { dir.to_owned() };
        let lock = DirectoryLock::acquire(&dir).context("is another demo running?")?;
        remove_demo_files(&dir)?;
        self.dir = Some(lock);

        let node_port = free_port(if ephemeral { 0 } else { NODE_PORT })?;
        let node = format!("http://127.0.0.1:{node_port}");
        let mut command = Command::new(&anvil);
        command.args(["--host", "127.0.0.1", "--port", &node_port.to_string()]);
        let child = self.node.insert(spawn(command, &dir.join(NODE_LOG))?);
        let client = Client::new(&node);
        await_process("the node", child, &dir.join(NODE_LOG), async || {
            client.result(As::Nobody, "/", "eth_chainId", json!([])).await.is_ok()
        })
        .await?;

        let port = free_port(if ephemeral { 0 } else { port })?;
        let gateway = format!("http://localhost:{port}");
        let admin = secrets::fresh(&SystemEntropy);
        let mut command = Command::new(std::env::current_exe().context("the path of this program is unknown")?);
        command
            .arg("serve")
            .env_clear()
            .env("ENVIRONMENT", "development")
            .env("DATA_DIR", dir.join(GATEWAY_DATA))
            .env("EXPLORER_DATABASE_URL", explorer_database(&dir))
            .env("PORT", port.to_string())
            .env("NODE_URL", &node)
            .env("ADMIN_API_TOKEN", admin.expose())
            .env("ALLOW_MOCK_LOGIN", "true")
            .env("PERSONAL_RPC_URLS", "true")
            .env("ACCESS_TOKEN_TTL", TOKEN_TTL)
            .env("RATE_LIMIT_AUTH", "off")
            .env("RATE_LIMIT_ANON", "off")
            .envs(wallet_settings());
        let child = self.gateway.insert(spawn(command, &dir.join(GATEWAY_LOG))?);
        let client = Client::new(&gateway);
        await_process("the gateway", child, &dir.join(GATEWAY_LOG), async || {
            client
                .get(As::Nobody, "/ready")
                .await
                .is_ok_and(|response| response.status.is_success())
        })
        .await?;
        self.running = Some(Running {
            gateway,
            node,
            admin,
            names,
        });
        Ok(())
    }

    /// The running demo, once both processes answer.
    pub(super) fn running(&self) -> Option<&Running> {
        self.running.as_ref()
    }

    /// The demo's directory.
    pub(super) fn dir(&self) -> anyhow::Result<&Path> {
        self.dir
            .as_ref()
            .map(DirectoryLock::directory)
            .context("the demo has no directory")
    }

    /// Waits until a process exits. That is always an error, because neither should.
    pub(super) async fn wait_for_exit(&mut self) -> anyhow::Result<()> {
        let (Some(node), Some(gateway)) = (&mut self.node, &mut self.gateway) else {
            bail!("the node and the gateway are not running")
        };
        let (name, status): (_, ExitStatus) = tokio::select! {
            status = node.wait() => ("node", status?),
            status = gateway.wait() => ("gateway", status?),
        };
        bail!("the {name} exited unexpectedly ({status})")
    }

    /// Stops the processes and removes the demo's files.
    pub(super) async fn stop(&mut self) {
        if let Some(mut gateway) = self.gateway.take() {
            // SIGTERM rather than SIGKILL: the gateway is stopped this way in production too.
            if let Some(pid) = gateway
                .id()
                .and_then(|id| i32::try_from(id).ok())
                .and_then(Pid::from_raw)
            {
                let _ = kill_process(pid, Signal::TERM);
            }
            if timeout(EXIT_TIMEOUT, gateway.wait()).await.is_err() {
                let _ = gateway.kill().await;
            }
        }
        if let Some(mut node) = self.node.take() {
            let _ = node.kill().await;
        }
        if let Some(dir) = self.dir.take() {
            let _ = remove_demo_files(dir.directory());
            let _ = std::fs::remove_file(dir.directory().join(DirectoryLock::FILE));
            // This succeeds only if the directory is empty.
            let _ = std::fs::remove_dir(dir.directory());
        }
    }
}

/// The explorer's database, a file beside the other databases.
fn explorer_database(dir: &Path) -> String {
    format!("sqlite://{}", dir.join(GATEWAY_DATA).join("explorer.db").display())
}

/// Settings of the environment that logins with a real wallet need.
#[expect(
    clippy::disallowed_methods,
    reason = "passed on unchanged; the demo's gateway reads it"
)]
fn wallet_settings() -> impl Iterator<Item = (String, String)> {
    let names = ["VERIFIER_ID", "BASE_URL"];
    let prefixes = ["IDP_", "ALTNET_"];
    std::env::vars().filter(move |(name, _)| {
        names.contains(&name.as_str()) || prefixes.iter().any(|prefix| name.starts_with(prefix))
    })
}

/// Starts a process in its own process group: Ctrl-C reaches only the demo, which then stops its processes in order.
fn spawn(mut command: Command, log: &Path) -> anyhow::Result<Child> {
    let out = File::create(log).with_context(|| format!("{} cannot be written", log.display()))?;
    let err = out.try_clone()?;
    command
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .process_group(0)
        .kill_on_drop(true);
    command
        .spawn()
        .with_context(|| format!("{} did not start", command.as_std().get_program().display()))
}

/// Waits until a process is ready. If it exits or takes too long, the error contains the end of its log.
async fn await_process(
    name: &str,
    child: &mut Child,
    log: &Path,
    is_ready: impl AsyncFn() -> bool,
) -> anyhow::Result<()> {
    let start = Instant::now();
    while !is_ready().await {
        if let Some(status) = child.try_wait()? {
            bail!("{name} exited during its start ({status}):\n{}", last_lines(log));
        }
        if start.elapsed() > START_TIMEOUT {
            bail!(
                "{name} did not answer within {} s:\n{}",
                START_TIMEOUT.as_secs(),
                last_lines(log)
            );
        }
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

fn last_lines(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines
        .iter()
        .skip(lines.len().saturating_sub(20))
        .map(|line| format!("  {line}\n"))
        .collect()
}

/// Finds anvil: the native program of its npm package, because the npm launcher would run as a process in between;
/// otherwise the one on the PATH.
async fn find_anvil() -> anyhow::Result<PathBuf> {
    const PACKAGES: [&str; 2] = [
        "tests/clients/node_modules/@foundry-rs",
        "target/demo/node_modules/@foundry-rs",
    ];
    const PROGRAMS: [&str; 2] = ["anvil-linux-amd64/bin/anvil", "anvil-linux-arm64/bin/anvil"];
    // Search from the working directory and from this program's directory upwards.
    let (working_dir, this_program) = (std::env::current_dir()?, std::env::current_exe()?);
    let mut ancestors = working_dir.ancestors().chain(this_program.ancestors());
    let installed = ancestors.find_map(|dir| {
        let mut candidates = PACKAGES
            .iter()
            .flat_map(|package| PROGRAMS.map(|program| dir.join(package).join(program)));
        candidates.find(|path| path.is_file())
    });
    if let Some(installed) = installed {
        return Ok(installed);
    }
    let version = Command::new("anvil").arg("--version").output().await;
    let on_path = version
        .is_ok_and(|output| output.status.success())
        .then(|| PathBuf::from("anvil"));
    on_path.context("the node (anvil) is not installed: put it on the PATH, or run scripts/setup.sh demo")
}

/// The preferred port, or any free port if it is taken.
fn free_port(preferred: u16) -> anyhow::Result<u16> {
    let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let listener = bind(preferred).or_else(|_| bind(0)).context("no port is free")?;
    Ok(listener.local_addr()?.port())
}

/// Path of a new temporary directory.
fn scratch() -> PathBuf {
    std::env::temp_dir().join(format!("ledger-gateway-demo-{}", SystemEntropy.uuid()))
}

/// Removes the files of an earlier demo and nothing else.
fn remove_demo_files(dir: &Path) -> anyhow::Result<()> {
    let ignore_absent = |result: std::io::Result<()>| match result {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    };
    ignore_absent(std::fs::remove_dir_all(dir.join(GATEWAY_DATA)))
        .and_then(|()| {
            FILES
                .iter()
                .try_for_each(|name| ignore_absent(std::fs::remove_file(dir.join(name))))
        })
        .with_context(|| format!("{} cannot be emptied", dir.display()))
}
