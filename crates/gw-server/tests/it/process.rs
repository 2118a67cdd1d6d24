//! Runs the gateway as a separate process and talks to it over plain sockets.

use gw_testkit::port;
use serde_json::Value;
use std::{
    fs::File,
    io::{Read as _, Write as _},
    net::TcpStream,
    process::{Child, Command, ExitStatus, Output, Stdio},
    time::{Duration, Instant},
};

/// The binary of this build. The release binary refuses to run if it was built together with mock code.
#[cfg(not(feature = "mock-login"))]
const BINARY: &str = env!("CARGO_BIN_EXE_ledger-gateway");
#[cfg(feature = "mock-login")]
const BINARY: &str = env!("CARGO_BIN_EXE_ledger-gateway-dev");

/// Limit for every wait. Only a failing test waits that long.
const TIMEOUT: Duration = Duration::from_secs(180);

/// A command of the binary with only the given environment.
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

/// The standard error of a command.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// A gateway process that serves until it is stopped or dropped.
pub(crate) struct Serving {
    process: Child,
    port: u16,
    dir: tempfile::TempDir,
}

/// A parsed HTTP response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Response {
    /// The value of a header, by its name in any case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let line = self
            .head
            .lines()
            .find(|line| line.split(':').next().is_some_and(|key| key.eq_ignore_ascii_case(name)));
        line.and_then(|line| line.split_once(':'))
            .map(|(_, value)| value.trim())
    }
}

impl Serving {
    /// Starts a gateway in front of a node, with extra settings, and waits until it listens.
    pub(crate) fn start(node: &str, settings: &[(&str, &str)]) -> Self {
        let mut this = Self::spawn(node, settings);
        this.wait("listens", |this| TcpStream::connect(("127.0.0.1", this.port)).is_ok());
        this
    }

    /// Starts a gateway without waiting.
    pub(crate) fn spawn(node: &str, settings: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let port = port::reserve();
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

    /// Waits until the process exits with an error at its start. Returns its output.
    pub(crate) fn wait_for_failed_start(mut self) -> String {
        let start = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait().expect("asked") {
                assert!(
                    !status.success(),
                    "the gateway exited without an error: {}",
                    self.output()
                );
                return self.output();
            }
            let serves = TcpStream::connect(("127.0.0.1", self.port)).is_ok() && self.get("/ready").status == 200;
            assert!(
                !serves && start.elapsed() < TIMEOUT,
                "the gateway started:\n{}",
                self.output()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the gateway is ready.
    pub(crate) fn ready(mut self) -> Self {
        self.wait("is ready", |this| this.get("/ready").status == 200);
        self
    }

    /// Waits until a condition holds; `description` completes the sentence "the gateway never …".
    pub(crate) fn wait(&mut self, description: &str, is_true: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !is_true(self) {
            let exit_status = self.process.try_wait().expect("asked");
            assert!(
                exit_status.is_none() && start.elapsed() < TIMEOUT,
                "the gateway never {description}: {exit_status:?}\n{}",
                self.output()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The port of the public listener.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The standard output and standard error so far.
    pub(crate) fn output(&self) -> String {
        let read = |name: &str| std::fs::read_to_string(self.dir.path().join(name)).unwrap_or_default();
        format!("{}{}", read("stdout"), read("stderr"))
    }

    /// The data directory.
    pub(crate) fn data_dir(&self) -> String {
        self.dir.path().join("data").to_string_lossy().into_owned()
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.request("GET", path, &[], "")
    }

    /// Sends one request on a new connection.
    pub(crate) fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
        request(self.port, method, path, headers, body)
    }

    /// Sends a request to the admin API that must succeed. Returns the body of the response.
    pub(crate) fn admin(&self, token: &str, method: &str, path: &str, body: &Value) -> Value {
        let headers = [("X-Admin-Token", token), ("Content-Type", "application/json")];
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let response = self.request(method, &format!("/api/v1/admin{path}"), &headers, &body);
        assert!(
            response.status < 300,
            "{method} {path}: {} {}",
            response.status,
            response.body
        );
        serde_json::from_str(&response.body).expect("json")
    }

    /// Terminates the process and waits until it exits. Returns its exit status and output.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        self.terminate();
        let start = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait().expect("asked") {
                return (status, self.output());
            }
            assert!(start.elapsed() < TIMEOUT, "the gateway did not end:\n{}", self.output());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        let signalled = Command::new("kill")
            .args(["-TERM", &self.process.id().to_string()])
            .status();
        assert!(signalled.is_ok_and(|status| status.success()));
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Changes a SQLite file directly, like an attacker with the database's credentials.
pub(crate) fn change_database(file: &str, sql: &str) {
    let script = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute(sys.argv[2]); db.commit()";
    let status = Command::new("python3").args(["-c", script, file, sql]).status();
    assert!(status.is_ok_and(|exit| exit.success()), "{sql}");
}

/// Sends one request to a port of this machine; for `localhost`, unless the headers name hosts.
pub(crate) fn request(port: u16, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connected");
    stream.set_read_timeout(Some(TIMEOUT)).expect("set");
    let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        text.push_str("Host: localhost\r\n");
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    stream.write_all(text.as_bytes()).expect("sent");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("an answer");
    let (head, body) = response.split_once("\r\n\r\n").expect("headers");
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .expect("a status");
    Response {
        status,
        head: head.to_owned(),
        body: body.to_owned(),
    }
}
