//! The processes of the demo: a real node and a gateway, each with its log in the demo's directory.
//!
//! Invariant: what was started is stopped, in the reverse order, before the demo ends.

use super::{
    cast::Names,
    client::{As, Client},
};
use crate::{ambient::SystemEntropy, secrets};
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

/// How long a part may take to come up.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the gateway may take to end by itself.
const FAREWELL: Duration = Duration::from_secs(45);
/// Life of the demo's access tokens: tools with a fixed header need this (decision 35).
const TOKEN_TTL: &str = "8h";
/// Port of the node, if it is free.
const NODE_PORT: u16 = 8545;

const NODE_LOG: &str = "node.log";
const GATEWAY_LOG: &str = "gateway.log";
/// What a demo puts into its directory beside the gateway's; nothing else is ever removed from it.
const FILES: [&str; 3] = [super::state::FILE, NODE_LOG, GATEWAY_LOG];
const GATEWAY_DATA: &str = "gateway";

/// Addresses and the key of what runs.
#[derive(Debug)]
pub(super) struct Running {
    /// Base address of the gateway.
    pub(super) gateway: String,
    /// Address of the node.
    pub(super) node: String,
    /// Super-administrator's token.
    pub(super) admin: Secret,
    /// The names of the personas.
    pub(super) names: Names,
}

/// The parts, as far as they were started.
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
        let anvil = find_anvil()?;
        let dir = if ephemeral { scratch() } else { dir.to_owned() };
        let lock = DirectoryLock::acquire(&dir).context("is another demo running?")?;
        empty(&dir)?;
        self.dir = Some(lock);

        let node_port = free_port(if ephemeral { 0 } else { NODE_PORT })?;
        let node = format!("http://127.0.0.1:{node_port}");
        let mut command = Command::new(&anvil);
        command.args(["--host", "127.0.0.1", "--port", &node_port.to_string()]);
        let child = self.node.insert(spawn(command, &dir.join(NODE_LOG))?);
        let client = Client::new(&node);
        await_part("the node", child, &dir.join(NODE_LOG), async || {
            client.result(As::Nobody, "/", "eth_chainId", json!([])).await.is_ok()
        })
        .await?;

        let port = free_port(if ephemeral { 0 } else { port })?;
        let gateway = format!("http://localhost:{port}");
        let admin = secrets::fresh(&SystemEntropy);
        let mut command = Command::new(std::env::current_exe().context("this program cannot be found again")?);
        command
            .arg("serve")
            .env_clear()
            .env("ENVIRONMENT", "development")
            .env("DATA_DIR", dir.join(GATEWAY_DATA))
            .env("PORT", port.to_string())
            .env("NODE_URL", &node)
            .env("ADMIN_API_TOKEN", admin.expose())
            .env("ALLOW_MOCK_LOGIN", "true")
            .env("PERSONAL_RPC_URLS", "true")
            .env("ACCESS_TOKEN_TTL", TOKEN_TTL)
            .env("RATE_LIMIT_AUTH", "off")
            .env("RATE_LIMIT_ANON", "off")
            .envs(of_wallets());
        let child = self.gateway.insert(spawn(command, &dir.join(GATEWAY_LOG))?);
        let client = Client::new(&gateway);
        await_part("the gateway", child, &dir.join(GATEWAY_LOG), async || {
            client
                .get(As::Nobody, "/ready")
                .await
                .is_ok_and(|answer| answer.status.is_success())
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

    /// What runs, once everything does.
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

    /// Waits for a part that ends by itself, which none should.
    pub(super) async fn until_one_ends(&mut self) -> anyhow::Result<()> {
        let (Some(node), Some(gateway)) = (&mut self.node, &mut self.gateway) else {
            bail!("the parts are not running")
        };
        let (name, status): (_, ExitStatus) = tokio::select! {
            status = node.wait() => ("node", status?),
            status = gateway.wait() => ("gateway", status?),
        };
        bail!("the {name} ended by itself ({status})")
    }

    /// Stops everything that was started and removes what it left.
    pub(super) async fn stop(&mut self) {
        if let Some(mut gateway) = self.gateway.take() {
            // Told to end rather than killed: that is how it is stopped in earnest, too.
            if let Some(pid) = gateway
                .id()
                .and_then(|id| i32::try_from(id).ok())
                .and_then(Pid::from_raw)
            {
                let _ = kill_process(pid, Signal::TERM);
            }
            if timeout(FAREWELL, gateway.wait()).await.is_err() {
                let _ = gateway.kill().await;
            }
        }
        if let Some(mut node) = self.node.take() {
            let _ = node.kill().await;
        }
        if let Some(dir) = self.dir.take() {
            let _ = empty(dir.directory());
            let _ = std::fs::remove_file(dir.directory().join(DirectoryLock::FILE));
            // Only if nothing is left in it.
            let _ = std::fs::remove_dir(dir.directory());
        }
    }
}

/// What a real wallet needs to be told, and to be believed.
#[expect(
    clippy::disallowed_methods,
    reason = "handed on as it is; the demo's gateway reads it"
)]
fn of_wallets() -> impl Iterator<Item = (String, String)> {
    let exact = ["VERIFIER_ID", "BASE_URL"];
    let kinds = ["IDP_", "ALTNET_"];
    std::env::vars()
        .filter(move |(name, _)| exact.contains(&name.as_str()) || kinds.iter().any(|kind| name.starts_with(kind)))
}

/// Starts a part in a process group of its own: Ctrl-C reaches the demo alone, which then stops its parts in order.
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

/// Waits until a part answers; if it ends first, the end of its log says why.
async fn await_part(name: &str, child: &mut Child, log: &Path, answers: impl AsyncFn() -> bool) -> anyhow::Result<()> {
    let start = Instant::now();
    while !answers().await {
        if let Some(status) = child.try_wait()? {
            bail!("{name} ended at its start ({status}):\n{}", last_lines(log));
        }
        if start.elapsed() > PATIENCE {
            bail!(
                "{name} did not answer within {} s:\n{}",
                PATIENCE.as_secs(),
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

/// The node's own program: its npm launcher would stay between us and it.
fn find_anvil() -> anyhow::Result<PathBuf> {
    const PLACES: [&str; 2] = [
        "tests/clients/node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil",
        "tests/clients/node_modules/@foundry-rs/anvil-linux-arm64/bin/anvil",
    ];
    // Below the directory one stands in, or the one this program was built in.
    let (here, program) = (std::env::current_dir()?, std::env::current_exe()?);
    let above = here.ancestors().chain(program.ancestors());
    above
        .flat_map(|dir| PLACES.iter().map(move |place| dir.join(place)))
        .find(|path| path.is_file())
        .context("the node (anvil) is not installed: run scripts/setup.sh")
}

/// The wished port, or any other if it is taken.
fn free_port(wished: u16) -> anyhow::Result<u16> {
    let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let listener = bind(wished).or_else(|_| bind(0)).context("no port is free")?;
    Ok(listener.local_addr()?.port())
}

/// A directory nobody else has.
fn scratch() -> PathBuf {
    std::env::temp_dir().join(format!("ledger-gateway-demo-{}", SystemEntropy.uuid()))
}

/// Removes what an earlier demo left, and nothing else.
fn empty(dir: &Path) -> anyhow::Result<()> {
    let ignore_absent = |done: std::io::Result<()>| match done {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    };
    let left = |name: &str| dir.join(name);
    ignore_absent(std::fs::remove_dir_all(left(GATEWAY_DATA)))
        .and_then(|()| {
            FILES
                .iter()
                .try_for_each(|name| ignore_absent(std::fs::remove_file(left(name))))
        })
        .with_context(|| format!("{} cannot be emptied", dir.display()))
}
