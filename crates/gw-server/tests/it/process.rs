//! A gateway as a process of its own, spoken to over plain sockets.

use serde_json::Value;
use std::{
    fs::File,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::{Child, Command, ExitStatus, Output, Stdio},
    time::{Duration, Instant},
};

/// The binary this build may run: the plain one refuses to when it was built together with mock code.
#[cfg(not(feature = "mock-login"))]
const BINARY: &str = env!("CARGO_BIN_EXE_ledger-gateway");
#[cfg(feature = "mock-login")]
const BINARY: &str = env!("CARGO_BIN_EXE_ledger-gateway-dev");

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command of the binary with an environment of its own.
pub(crate) fn command(arguments: &[&str], env: &[(&str, &str)]) -> Command {
    let mut command = Command::new(BINARY);
    command
        .args(arguments)
        .env_clear()
        .envs(env.iter().copied())
        .stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub(crate) fn gateway(arguments: &[&str], env: &[(&str, &str)]) -> Output {
    command(arguments, env).output().expect("the binary runs")
}

/// What a command complained about.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// A gateway that serves until it is told to end, or dropped.
pub(crate) struct Serving {
    process: Child,
    port: u16,
    dir: tempfile::TempDir,
}

/// An answer taken apart.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The value of a header, named in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let line = self
            .head
            .lines()
            .find(|line| line.split(':').next().is_some_and(|key| key.eq_ignore_ascii_case(name)));
        line.and_then(|line| line.split_once(':'))
            .map(|(_, value)| value.trim())
    }
}

/// A port nobody listens on.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("bound").port()
}

impl Serving {
    /// Starts one in front of a node, with further settings, and waits until it listens.
    pub(crate) fn start(node: &str, settings: &[(&str, &str)]) -> Self {
        let mut this = Self::spawn(node, settings);
        this.wait("listens", |this| TcpStream::connect(("127.0.0.1", this.port)).is_ok());
        this
    }

    /// Starts one, without waiting.
    pub(crate) fn spawn(node: &str, settings: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let port = free_port();
        let out = |name: &str| File::create(dir.path().join(name)).expect("a log");
        let mut command = command(&["serve"], &[]);
        command
            .env("PORT", port.to_string())
            .env("NODE_URL", node)
            .env("DATA_DIR", dir.path().join("data"))
            .envs(settings.iter().copied())
            .stdout(out("stdout"))
            .stderr(out("stderr"));
        Self {
            process: command.spawn().expect("started"),
            port,
            dir,
        }
    }

    /// Waits until it gives up to start.
    pub(crate) fn refused(mut self) -> String {
        let start = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait().expect("asked") {
                assert!(!status.success(), "it ended without complaint: {}", self.said());
                return self.said();
            }
            let serves = TcpStream::connect(("127.0.0.1", self.port)).is_ok() && self.get("/ready").status == 200;
            assert!(!serves && start.elapsed() < PATIENCE, "it started:\n{}", self.said());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until it can work.
    pub(crate) fn ready(mut self) -> Self {
        self.wait("is ready", |this| this.get("/ready").status == 200);
        self
    }

    /// Waits for something to become true.
    pub(crate) fn wait(&mut self, what: &str, is_true: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !is_true(self) {
            let ended = self.process.try_wait().expect("asked");
            assert!(
                ended.is_none() && start.elapsed() < PATIENCE,
                "the gateway never {what}: {ended:?}\n{}",
                self.said()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Its address.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Everything it wrote so far.
    pub(crate) fn said(&self) -> String {
        let read = |name: &str| std::fs::read_to_string(self.dir.path().join(name)).unwrap_or_default();
        format!("{}{}", read("stdout"), read("stderr"))
    }

    /// Its data directory.
    pub(crate) fn data_dir(&self) -> String {
        self.dir.path().join("data").to_string_lossy().into_owned()
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "")
    }

    /// One request on a connection of its own.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        ask(self.port, method, path, headers, body)
    }

    /// A request to the admin API that must succeed; its body.
    pub(crate) fn admin(&self, token: &str, method: &str, path: &str, body: &Value) -> Value {
        let headers = [("X-Admin-Token", token), ("Content-Type", "application/json")];
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let answer = self.ask(method, &format!("/api/v1/admin{path}"), &headers, &body);
        assert!(
            answer.status < 300,
            "{method} {path}: {} {}",
            answer.status,
            answer.body
        );
        serde_json::from_str(&answer.body).expect("json")
    }

    /// Tells it to end, and waits for that.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        self.tell_to_end();
        let start = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait().expect("asked") {
                return (status, self.said());
            }
            assert!(start.elapsed() < PATIENCE, "the gateway did not end:\n{}", self.said());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// SIGTERM.
    pub(crate) fn tell_to_end(&self) {
        let told = Command::new("kill")
            .args(["-TERM", &self.process.id().to_string()])
            .status();
        assert!(told.is_ok_and(|status| status.success()));
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Changes a SQLite file past the gateway, as somebody with the database's credential does.
pub(crate) fn change_database(file: &str, sql: &str) {
    let run = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute(sys.argv[2]); db.commit()";
    let done = Command::new("python3").args(["-c", run, file, sql]).status();
    assert!(done.is_ok_and(|status| status.success()), "{sql}");
}

/// One request to a port of this machine.
pub(crate) fn ask(port: u16, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    stream.write_all(text.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("headers");
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .expect("a status");
    Answer {
        status,
        head: head.to_owned(),
        body: body.to_owned(),
    }
}
