//! A private Redis: one throw-away server per test process with one empty database per test, or a server of a test's
//! own that the test can stop and start.
//!
//! It keeps nothing on disk and listens on the loopback interface only, with a password. A shell guards it: when the
//! test process ends, in whatever way, the shell's input closes and it kills the server.

use crate::port;
use std::{
    io::{self, Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU8, Ordering},
    },
    time::{Duration, Instant},
};

/// If set to `1`, tests pass without Redis; nothing else allows that.
pub const SKIP: &str = "GW_SKIP_REDIS";

/// The server's password; it contains characters that a URL must escape.
const PASSWORD: &str = "test p@ss";
const ESCAPED: &str = "test%20p%40ss";

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum RedisError {
    /// There is no server program.
    #[error("\n\n  REDIS IS MISSING: install `redis-server` (7 or newer), or set {SKIP}=1 to leave its tests out.\n\n")]
    Missing,
    /// The server does not respond.
    #[error("the redis server did not start: {0}")]
    Silent(String),
    /// Sockets or processes cannot be created.
    #[error("cannot set up redis")]
    Io(#[from] io::Error),
    /// Every database of the shared server is in use.
    #[error("one test process has 256 databases; start a server instead")]
    TooMany,
}

/// The URL of an empty database of the private server, valid as long as the test process lives. `None` only if the
/// tests were told to run without Redis ([`SKIP`]).
///
/// # Errors
/// [`RedisError`] if the server cannot be started, or if all of its databases are in use.
pub fn database() -> Result<Option<String>, RedisError> {
    static SERVER: OnceLock<Result<RedisServer, String>> = OnceLock::new();
    static NEXT: AtomicU8 = AtomicU8::new(0);
    if skipped() {
        return Ok(None);
    }
    let server = SERVER.get_or_init(|| RedisServer::start_one().map_err(|cause| cause.to_string()));
    let server = server.as_ref().map_err(|cause| RedisError::Silent(cause.clone()))?;
    let next = NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| next.checked_add(1));
    Ok(Some(format!(
        "{}/{}",
        server.url(),
        next.map_err(|_| RedisError::TooMany)?
    )))
}

/// A server of a test's own. It ends when this value is dropped or the process ends.
#[derive(Debug)]
pub struct RedisServer {
    port: u16,
    /// The guarding shell. Its input stays open as long as the server is used.
    watch: Option<Child>,
}

impl RedisServer {
    /// Starts a server; `None` only if the tests were told to run without Redis ([`SKIP`]).
    ///
    /// # Errors
    /// [`RedisError`] if the server cannot be started.
    pub fn start() -> Result<Option<Self>, RedisError> {
        if skipped() {
            Ok(None)
        } else {
            Self::start_one().map(Some)
        }
    }

    fn start_one() -> Result<Self, RedisError> {
        let mut server = Self {
            port: port::reserve(),
            watch: None,
        };
        server.start_again()?;
        Ok(server)
    }

    /// The server's URL, with its password.
    pub fn url(&self) -> String {
        format!("redis://:{ESCAPED}@127.0.0.1:{}", self.port)
    }

    /// Starts the server again on its port, empty.
    ///
    /// # Errors
    /// [`RedisError`] if the server cannot be started.
    pub fn start_again(&mut self) -> Result<(), RedisError> {
        self.stop();
        let mut watch = watch(self.port)?;
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            if responds(self.port) {
                self.watch = Some(watch);
                return Ok(());
            }
            // The shell ends when the server does.
            if let Some(status) = watch.try_wait()? {
                return Err(if status.code() == Some(127) {
                    RedisError::Missing
                } else {
                    RedisError::Silent(status.to_string())
                });
            }
            if Instant::now() > end {
                return Err(RedisError::Silent("it did not respond within 20 seconds".to_owned()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Kills the server.
    pub fn stop(&mut self) {
        if let Some(mut watch) = self.watch.take() {
            drop(watch.stdin.take());
            // The shell waits for the server before it exits. A failure cannot be handled here.
            let _status = watch.wait();
        }
    }

    /// Makes the server hang: connections stay open, but get no responses until [`Self::resume`].
    ///
    /// # Errors
    /// [`RedisError`] if the server is stopped.
    pub fn pause(&self) -> Result<(), RedisError> {
        self.signal(b"STOP\n")
    }

    /// Continues a paused server.
    ///
    /// # Errors
    /// [`RedisError`] if the server is stopped.
    pub fn resume(&self) -> Result<(), RedisError> {
        self.signal(b"CONT\n")
    }

    fn signal(&self, line: &[u8]) -> Result<(), RedisError> {
        let stdin = self.watch.as_ref().and_then(|watch| watch.stdin.as_ref());
        let mut stdin = stdin.ok_or_else(|| RedisError::Silent("it is stopped".to_owned()))?;
        stdin.write_all(line)?;
        Ok(())
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.stop();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment selects which tests are skipped"
)]
fn skipped() -> bool {
    std::env::var_os(SKIP).is_some_and(|value| value == "1")
}

/// Starts the server under a shell. The shell forwards signals, kills the server when its input closes, and ends when
/// the server does.
fn watch(port: u16) -> io::Result<Child> {
    const SCRIPT: &str = r#"
        command -v redis-server >/dev/null || exit 127
        exec 3<&0
        redis-server --port "$1" --bind 127.0.0.1 --save '' --appendonly no --databases 256 --requirepass "$2" \
            --maxmemory-policy noeviction --daemonize no --dir / >/dev/null 2>&1 </dev/null 3<&- &
        server=$!
        {
            while read -r signal; do kill -"$signal" "$server"; done
            kill -KILL "$server"
        } <&3 >/dev/null 2>&1 &
        exec 3<&-
        wait "$server"
    "#;
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", SCRIPT, "watch", &port.to_string(), PASSWORD]);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // In a process group of its own, so that an interrupted test run does not kill the shell before it has cleaned up.
    shell.process_group(0);
    shell.spawn()
}

/// Whether a server with a password responds on this port.
fn responds(port: u16) -> bool {
    let ping = || -> io::Result<bool> {
        let mut stream =
            TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), Duration::from_secs(1))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"PING\r\n")?;
        let mut response = [0u8; 7];
        stream.read_exact(&mut response)?;
        Ok(&response == b"-NOAUTH")
    };
    ping().unwrap_or(false)
}
