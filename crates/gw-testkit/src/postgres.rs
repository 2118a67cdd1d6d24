//! A private PostgreSQL: one throw-away server per test process, one empty database per test.
//!
//! The server listens only on a socket in its own temporary directory. A shell guards it: when the test process ends,
//! in whatever way, the shell's input closes, and it stops the server and removes the directory.

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

/// If set to `1`, tests pass without PostgreSQL; nothing else allows that.
pub const SKIP: &str = "GW_SKIP_POSTGRES";

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// There are no server programs.
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
        /// The command.
        command: &'static str,
        /// What it printed.
        output: String,
    },
    /// The server does not respond.
    #[error("the server did not start: {0}")]
    Silent(String),
    /// Files or processes cannot be created.
    #[error("cannot set up postgresql")]
    Io(#[from] io::Error),
}

/// An empty database of the private server.
#[derive(Clone, Debug)]
pub struct Database {
    /// The database's URL. Every user of this machine may connect, as long as the test process lives.
    pub url: String,
}

/// Creates an empty database. `None` only if the tests were told to run without PostgreSQL ([`SKIP`]).
///
/// # Errors
/// [`PostgresError`] if the server or the database cannot be created.
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
    reason = "the environment selects which tests are skipped"
)]
fn skipped() -> bool {
    std::env::var_os(SKIP).is_some_and(|value| value == "1")
}

/// A running server. It ends when this value is dropped or the process ends.
#[derive(Debug)]
struct Server {
    directory: PathBuf,
    programs: PathBuf,
    /// The user and group that run it, if the tests run as root.
    user: Option<(u32, u32)>,
    /// The guarding shell. Its input stays open as long as the server is used.
    watch: Child,
}

impl Server {
    fn start() -> Result<Self, PostgresError> {
        let programs = programs().ok_or(PostgresError::Missing)?;
        let user = server_user()?;
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
        check_output("initdb", init.current_dir(&directory).output()?)?;
        let watch = watch(&programs, &directory, user)?;
        let server = Self {
            directory,
            programs,
            user,
            watch,
        };
        server.wait_until_ready()?;
        Ok(server)
    }

    fn wait_until_ready(&self) -> Result<(), PostgresError> {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let mut probe = command(&self.programs, "pg_isready", self.user);
            let output = probe.arg("-h").arg(&self.directory).output()?;
            if output.status.success() {
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
        check_output("createdb", create.current_dir(&self.directory).output()?)
    }

    fn url(&self, name: &str) -> String {
        format!("postgres://gateway@localhost/{name}?host={}", self.directory.display())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.watch.stdin.take());
        // The shell stops the server and removes its files before it exits. A failure cannot be handled here.
        let _status = self.watch.wait();
    }
}

/// Starts the server under a shell that stops it when the shell's input closes.
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
    // In a process group of its own, so that an interrupted test run does not kill the shell before it has cleaned up.
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

fn check_output(command: &'static str, output: Output) -> Result<(), PostgresError> {
    if output.status.success() {
        return Ok(());
    }
    let output = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(PostgresError::Failed { command, output })
}

/// The directory of the newest installed server's programs.
fn programs() -> Option<PathBuf> {
    const NEEDED: [&str; 5] = ["initdb", "postgres", "pg_ctl", "pg_isready", "createdb"];
    let debian = fs::read_dir("/usr/lib/postgresql").ok().into_iter().flatten().flatten();
    let mut directories: Vec<_> = debian.map(|entry| entry.path().join("bin")).collect();
    directories.sort();
    directories.reverse();
    directories.extend(["/usr/local/bin", "/usr/bin"].map(PathBuf::from));
    directories
        .into_iter()
        .find(|directory| NEEDED.iter().all(|name| directory.join(name).exists()))
}

/// User and group `postgres` if the tests run as root, else `None`.
fn server_user() -> Result<Option<(u32, u32)>, PostgresError> {
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
