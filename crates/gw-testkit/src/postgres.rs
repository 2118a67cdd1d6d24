//! A private PostgreSQL: one throw-away server per test process, one empty database per test.
//!
//! The server listens on a socket in its own temporary directory only. A shell watches over it: when the test process
//! ends, however it ends, the shell's input closes, and it stops the server and removes the directory.

use std::{
    fs, io,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

/// Set to `1`, this lets tests pass without PostgreSQL; nothing else does.
pub const SKIP: &str = "GW_SKIP_POSTGRES";

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// No server binaries.
    #[error(
        "\n\n  PostgreSQL IS MISSING: install `postgresql` (15 or newer), or set {SKIP}=1 to leave its tests out.\n\n"
    )]
    Missing,
    /// PostgreSQL refuses to run as root, and there is no other user for it.
    #[error("postgresql refuses to run as root, and there is no user `postgres`")]
    NoUser,
    /// A command failed.
    #[error("`{command}` failed: {output}")]
    Failed {
        /// Which one.
        command: &'static str,
        /// What it printed.
        output: String,
    },
    /// The server does not answer.
    #[error("the server did not start: {0}")]
    Silent(String),
    /// Files or processes cannot be made.
    #[error("cannot set up postgresql")]
    Io(#[from] io::Error),
}

/// An empty database of the private server.
#[derive(Clone, Debug)]
pub struct Database {
    /// Its URL; anybody on this machine may connect, for as long as the test process lives.
    pub url: String,
}

/// An empty database; `None` only if the tests were told to do without ([`SKIP`]).
pub fn database() -> Result<Option<Database>, PostgresError> {
    static SERVER: OnceLock<Result<Server, String>> = OnceLock::new();
    static NEXT: AtomicU32 = AtomicU32::new(0);
    if skipped() {
        return Ok(None);
    }
    let server = SERVER.get_or_init(|| Server::start().map_err(|cause| cause.to_string()));
    let server = server.as_ref().map_err(|cause| PostgresError::Silent(cause.clone()))?;
    let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
    server.create_database(&name)?;
    Ok(Some(Database { url: server.url(&name) }))
}

#[expect(
    clippy::disallowed_methods,
    reason = "leaving tests out must be asked for from outside"
)]
fn skipped() -> bool {
    std::env::var_os(SKIP).is_some_and(|value| value == "1")
}

/// A running server; it ends with this value, or with the process.
#[derive(Debug)]
struct Server {
    directory: PathBuf,
    programs: PathBuf,
    /// Who runs it, if we are root.
    user: Option<(u32, u32)>,
    /// Its input stays open as long as the server is wanted.
    watch: Child,
}

impl Server {
    fn start() -> Result<Self, PostgresError> {
        let programs = programs().ok_or(PostgresError::Missing)?;
        let user = other_user()?;
        let directory = tempfile::Builder::new().prefix("gw-pg-").tempdir()?.keep();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700))?;
        if let Some((user, group)) = user {
            chown(&directory, Some(user), Some(group))?;
        }
        let data = directory.join("data");
        let mut init = command(&programs, "initdb", user);
        init.arg("-D")
            .arg(&data)
            .args(["-U", "gateway", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N"]);
        checked("initdb", init.current_dir(&directory).output()?)?;
        let watch = watch(&programs, &directory, user)?;
        let server = Self {
            directory,
            programs,
            user,
            watch,
        };
        server.await_answer()?;
        Ok(server)
    }

    fn await_answer(&self) -> Result<(), PostgresError> {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let mut ask = command(&self.programs, "pg_isready", self.user);
            let answer = ask.arg("-h").arg(&self.directory).output()?;
            if answer.status.success() {
                return Ok(());
            }
            if Instant::now() > end {
                let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
                return Err(PostgresError::Silent(log));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn create_database(&self, name: &str) -> Result<(), PostgresError> {
        let mut create = command(&self.programs, "createdb", self.user);
        create.arg("-h").arg(&self.directory).args(["-U", "gateway", name]);
        checked("createdb", create.current_dir(&self.directory).output()?)
    }

    fn url(&self, name: &str) -> String {
        format!("postgres://gateway@localhost/{name}?host={}", self.directory.display())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.watch.stdin.take());
        // The shell has stopped the server and removed its files when it ends; there is nothing to do about a failure.
        let _ended = self.watch.wait();
    }
}

/// Starts the server under a shell that ends it when our side of its input closes.
fn watch(programs: &Path, directory: &Path, user: Option<(u32, u32)>) -> io::Result<Child> {
    const SCRIPT: &str = r#"
        "$1/postgres" -D "$2/data" -k "$2" -c listen_addresses= -c fsync=off -c synchronous_commit=off \
            -c full_page_writes=off -c max_connections=200 -c shared_buffers=32MB >"$2/log" 2>&1 </dev/null &
        server=$!
        read -r _
        "$1/pg_ctl" stop -D "$2/data" -m immediate -s || kill -KILL "$server"
        wait "$server"
        rm -rf "$2"
    "#;
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", SCRIPT, "watch"])
        .arg(programs)
        .arg(directory)
        .current_dir(directory);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // A group of its own: an interrupted test run must not take the shell down before it has cleaned up.
    shell.process_group(0);
    as_user(&mut shell, user);
    shell.spawn()
}

fn command(programs: &Path, name: &str, user: Option<(u32, u32)>) -> Command {
    let mut command = Command::new(programs.join(name));
    command.stdin(Stdio::null());
    as_user(&mut command, user);
    command
}

fn as_user(command: &mut Command, user: Option<(u32, u32)>) {
    if let Some((user, group)) = user {
        command.uid(user).gid(group);
    }
}

fn checked(command: &'static str, output: Output) -> Result<(), PostgresError> {
    if output.status.success() {
        return Ok(());
    }
    let output = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(PostgresError::Failed { command, output })
}

/// The newest installed server's programs.
fn programs() -> Option<PathBuf> {
    const NEEDED: [&str; 5] = ["initdb", "postgres", "pg_ctl", "pg_isready", "createdb"];
    let debian = fs::read_dir("/usr/lib/postgresql").ok().into_iter().flatten().flatten();
    let mut places: Vec<_> = debian.map(|entry| entry.path().join("bin")).collect();
    places.sort();
    places.reverse();
    places.extend(["/usr/local/bin", "/usr/bin"].map(PathBuf::from));
    places
        .into_iter()
        .find(|place| NEEDED.iter().all(|name| place.join(name).exists()))
}

/// User and group `postgres` if we are root, nobody else if we are not.
fn other_user() -> Result<Option<(u32, u32)>, PostgresError> {
    if fs::metadata("/proc/self")?.uid() != 0 {
        return Ok(None);
    }
    let accounts = fs::read_to_string("/etc/passwd")?;
    let ids = accounts.lines().find_map(|line| {
        let mut fields = line.strip_prefix("postgres:")?.split(':').skip(1);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    });
    ids.map(Some).ok_or(PostgresError::NoUser)
}
