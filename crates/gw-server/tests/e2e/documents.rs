//! Runs the commands of the pages for operators and dApp developers unchanged (RTO13): every fenced block of
//! `README.md` and `docs/*.md` is run in order, in one shell per list of [`TYPED`], against a real gateway in front of
//! a real node.
//!
//! The info string of a fence selects what the test does with the block:
//!
//! | Fence | |
//! |---|---|
//! | `sh`, `js`, `python` | run; a command that fails makes the test fail |
//! | `sh no_run: <reason>` | not run |
//! | `text output` | must equal the output of the preceding block; `…` matches any text |
//! | `text` | ignored |
//! | `json` | must be JSON; its strings may contain `…` |
//! | `nginx` | a server block that nginx accepts and through which the gateway can be reached |
//! | `ini` | a unit that systemd accepts |
//!
//! Any other info string makes the test fail, so that no block is left out silently. Only addresses and ports are
//! replaced: see [`Stage::fill_in`].

use crate::harness::Process;
use gw_testkit::port;
use std::{
    fs,
    os::unix::{fs::symlink, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Pages with blocks to run. Each list of pages is run in one shell, in this order, by one of the tests below.
const TYPED: [&[&str]; 3] = [
    &["README.md"],
    &[
        "docs/admin.md",
        "docs/disclosure.md",
        "docs/clients.md",
        "docs/rpc.md",
        "docs/oauth.md",
    ],
    &["docs/production.md"],
];

/// Time limit for each list of pages.
const TIME_LIMIT: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Shell,
    JavaScript,
    Python,
    Output,
    Json,
    Nginx,
    Unit,
    NotRun,
}

impl Kind {
    /// Parses the info string of a fence. The error is a description of the fault.
    fn from_info(info: &str) -> Result<Self, String> {
        let (language, rest) = info.split_once(' ').unwrap_or((info, ""));
        let kind = match (language, rest) {
            ("sh", "") => Self::Shell,
            ("js", "") => Self::JavaScript,
            ("python", "") => Self::Python,
            ("text", "output") => Self::Output,
            ("text", "") => Self::NotRun,
            ("json", "") => Self::Json,
            ("nginx", "") => Self::Nginx,
            ("ini", "") => Self::Unit,
            (_, reason) if reason.strip_prefix("no_run: ").is_some_and(|why| why.len() > 9) => Self::NotRun,
            ("", _) => return Err("the block has no language".into()),
            _ => {
                return Err(format!(
                    "unknown info string `{info}`: see the table at the top of the test"
                ));
            }
        };
        Ok(kind)
    }
}

#[derive(Debug)]
struct Block {
    page: String,
    line: usize,
    kind: Kind,
    text: String,
}

impl Block {
    fn location(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }
}

/// The blocks of a page, and the faults of its fences.
fn blocks(page: &str, text: &str) -> (Vec<Block>, Vec<String>) {
    let (mut complete, mut faults) = (Vec::new(), Vec::new());
    let mut open: Option<Block> = None;
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(mut block) = open.take() {
            if line.trim_end() == "```" {
                complete.push(block);
            } else {
                block.text.push_str(line);
                block.text.push('\n');
                open = Some(block);
            }
        } else if let Some(info) = line.strip_prefix("```") {
            let kind = Kind::from_info(info.trim()).unwrap_or_else(|fault| {
                faults.push(format!("{page}:{number}: {fault}"));
                Kind::NotRun
            });
            open = Some(Block {
                page: page.to_owned(),
                line: number,
                kind,
                text: String::new(),
            });
        } else if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            faults.push(format!(
                "{page}:{number}: a fence must begin its line, or this test does not find it"
            ));
        }
    }
    if let Some(block) = open {
        faults.push(format!("{}: the block has no closing fence", block.location()));
    }
    (complete, faults)
}

fn read(page: &str) -> (Vec<Block>, Vec<String>) {
    let text = fs::read_to_string(Path::new(ROOT).join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
    blocks(page, &text)
}

/// Every page below `docs/`, and the README.
fn pages() -> Vec<String> {
    let entries = fs::read_dir(format!("{ROOT}/docs")).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut pages: Vec<_> = names
        .filter(|name| name.ends_with(".md"))
        .map(|name| format!("docs/{name}"))
        .collect();
    pages.push("README.md".into());
    pages
}

/// RTO13: each block has a known info string, and each page with blocks to run is in [`TYPED`].
#[test]
fn rto13_every_block_has_a_known_info_string() {
    let typed: Vec<&str> = TYPED.concat();
    let mut faults = Vec::new();
    for page in pages() {
        let (blocks, page_faults) = read(&page);
        faults.extend(page_faults);
        for (index, block) in blocks.iter().enumerate() {
            match block.kind {
                Kind::Shell | Kind::JavaScript | Kind::Python | Kind::Nginx | Kind::Unit
                    if !typed.contains(&page.as_str()) =>
                {
                    faults.push(format!("{}: add the page to TYPED in this test", block.location()));
                }
                Kind::Json => {
                    if let Err(error) = serde_json::from_str::<serde_json::Value>(&block.text) {
                        faults.push(format!("{}: {error}", block.location()));
                    }
                }
                Kind::Output => {
                    let before = index.checked_sub(1).map(|index| blocks[index].kind);
                    if !matches!(before, Some(Kind::Shell | Kind::JavaScript | Kind::Python)) {
                        faults.push(format!("{}: no runnable block before this output", block.location()));
                    }
                }
                _ => {}
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    // The parser finds faults.
    let (parsed, faults) = blocks(
        "page",
        "```\na\n```\n```ruby\n```\n - x\n   ```sh\n```sh no_run: \n```\n```sh\n",
    );
    assert_eq!((parsed.len(), faults.len()), (3, 5), "{faults:?}");
}

/// Where the blocks are run: a directory with the files that the pages assume, and ports of its own.
struct Stage {
    dir: tempfile::TempDir,
    public: u16,
    internal: u16,
    tls: u16,
    node: String,
    database: Option<String>,
}

impl Stage {
    fn new(node: Option<&gw_testkit::Anvil>, database: Option<String>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let directory = dir.path();
        // The pages assume the root of the repository. The files they write must not go into it.
        for name in ["contracts", "docs"] {
            symlink(Path::new(ROOT).join(name), directory.join(name)).unwrap();
        }
        symlink(
            Path::new(ROOT).join("tests/clients/node_modules"),
            directory.join("node_modules"),
        )
        .unwrap();
        let programs = directory.join("programs");
        fs::create_dir_all(&programs).unwrap();
        fs::create_dir_all(directory.join("target/release")).unwrap();
        for program in [
            programs.join("ledger-gateway"),
            directory.join("target/release/ledger-gateway"),
        ] {
            // The released program has no mock login, and the one with mock login runs in development only. This script
            // checks a production configuration with `config check` and then runs the program as development.
            let script = format!(
                "#!/bin/bash\ndev={}\n{PRODUCTION}",
                env!("CARGO_BIN_EXE_ledger-gateway-dev")
            );
            fs::write(&program, script).unwrap();
            make_executable(&program);
        }
        symlink(
            env!("CARGO_BIN_EXE_ledger-gateway-dev"),
            programs.join("ledger-gateway-dev"),
        )
        .unwrap();
        let (public, internal, tls) = (port::reserve(), port::reserve(), port::reserve());
        let node = node.map(|node| node.url().rsplit(':').next().unwrap().to_owned());
        let node = node.unwrap_or_else(|| port::reserve().to_string());
        Self {
            dir,
            public,
            internal,
            tls,
            node,
            database,
        }
    }

    /// Replaces the ports and the database address of the pages by those of the test. Everything else is unchanged.
    fn fill_in(&self, text: &str) -> String {
        let text = text
            .replace("8080", &self.public.to_string())
            .replace("9090", &self.internal.to_string())
            .replace("8545", &self.node);
        match &self.database {
            // The test's database server has another superuser and listens on a socket only.
            Some(socket) => text
                .replace("postgres://postgres@", "postgres://gateway@")
                .replace("db.internal", &socket.replace('/', "%2F")),
            None => text,
        }
    }

    /// Runs the blocks and compares their output.
    fn run(&self, blocks: &[Block]) {
        let directory = self.dir.path();
        let mut script = format!("PATH={}:$PATH\nset -eu -o pipefail\n", self.path());
        for (number, block) in blocks.iter().enumerate() {
            let text = self.fill_in(&block.text);
            let command = match block.kind {
                Kind::Shell => text,
                Kind::JavaScript => self.file(number, "mjs", "node", &text),
                Kind::Python => self.file(number, "py", "python3", &text),
                Kind::Unit => self.unit(number, &text),
                Kind::Nginx => self.nginx(&text),
                Kind::Output | Kind::Json | Kind::NotRun => continue,
            };
            script.push_str(&format!(
                "echo {} >at\n{{\n{command}\n}} >out.{number}\n",
                block.location()
            ));
        }
        script.push_str("echo end >at\n");
        fs::write(directory.join("page.sh"), script).unwrap();
        let log = fs::File::create(directory.join("shell.log")).unwrap();
        let mut command = Command::new("bash");
        command.arg("page.sh").current_dir(directory).stdin(Stdio::null());
        command.env("AUDIT_CHECKPOINT_INTERVAL", "1s").env("LOG_FORMAT", "text");
        command.env("NO_COLOR", "1").env("FOUNDRY_DISABLE_NIGHTLY_WARNING", "1");
        // Without these settings forge writes next to the sources.
        command
            .env("FOUNDRY_OUT", directory.join("out"))
            .env("FOUNDRY_CACHE_PATH", directory.join("cache"));
        command.stdout(log.try_clone().unwrap()).stderr(log).process_group(0);
        let mut shell = Group(Process(command.spawn().unwrap()));
        let start = Instant::now();
        let status = loop {
            if let Some(status) = shell.0.0.try_wait().unwrap() {
                break Some(status);
            }
            if start.elapsed() > TIME_LIMIT {
                break None;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        drop(shell);
        // Errors that the pages do not show fail the test, too: for example a database role that may not sign a
        // checkpoint.
        let log = fs::read_to_string(directory.join("gateway.log")).unwrap_or_default();
        assert!(!log.contains(" ERROR "), "{log}");
        let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap_or_default();
        let current = read("at");
        let number = blocks.iter().position(|block| block.location() == current.trim());
        let printed = number.map(|number| read(&format!("out.{number}"))).unwrap_or_default();
        assert!(
            status.is_some_and(|status| status.success()) && current == "end\n",
            "{} failed ({status:?}); its output:\n{printed}\nlog of the shell:\n{}\ngateway:\n{}",
            current.trim(),
            read("shell.log"),
            tail(&read("gateway.log"))
        );
        for (number, block) in blocks.iter().enumerate() {
            let printed = read(&format!("out.{number}"));
            let expected = blocks.get(number + 1).filter(|next| next.kind == Kind::Output);
            match expected {
                Some(next) => assert!(
                    is_like(&printed, &self.fill_in(&next.text)),
                    "{} printed:\n{printed}\nbut {} expects:\n{}",
                    block.location(),
                    next.location(),
                    next.text
                ),
                None => assert!(
                    !printed.contains("\"error\":"),
                    "{} printed:\n{printed}",
                    block.location()
                ),
            }
        }
    }

    fn file(&self, number: usize, kind: &str, program: &str, text: &str) -> String {
        let name = format!("block-{number}.{kind}");
        fs::write(self.dir.path().join(&name), text).unwrap();
        format!("{program} {name}")
    }

    /// The command that verifies a unit with systemd, if systemd is installed. The path of the program is replaced.
    fn unit(&self, number: usize, text: &str) -> String {
        let program = self.dir.path().join("programs/ledger-gateway");
        let text = text.replace("/usr/local/bin/ledger-gateway", &program.display().to_string());
        for line in text.lines().filter(|line| !line.is_empty()) {
            let is_setting = line
                .split_once('=')
                .is_some_and(|(key, _)| key.bytes().all(|b| b.is_ascii_alphabetic()));
            assert!(
                line.starts_with(['[', '#']) || is_setting,
                "not a valid line of a unit: {line}"
            );
        }
        let verify = self.file(number, "service", "systemd-analyze verify --man=no", &text);
        format!("if command -v systemd-analyze >/dev/null; then {verify}; fi")
    }

    /// The directories of the tests' own programs, which come first in PATH.
    fn path(&self) -> String {
        let root = PathBuf::from(ROOT).canonicalize().unwrap();
        let mut directories = vec![self.dir.path().join("programs"), root.join("target/venv/bin")];
        let foundry = root.join("tests/clients/node_modules/@foundry-rs");
        let entries = fs::read_dir(foundry).unwrap().flatten();
        directories.extend(entries.map(|entry| entry.path().join("bin")).filter(|bin| bin.is_dir()));
        directories.push("/usr/sbin".into());
        directories
            .iter()
            .map(|directory| directory.display().to_string())
            .collect::<Vec<_>>()
            .join(":")
    }

    /// The commands that run nginx with this server block, on its own port and with its own certificate, and check that
    /// the gateway can be reached through it over HTTP and WebSocket.
    fn nginx(&self, text: &str) -> String {
        let directory = self.dir.path();
        let server = text
            .replace("listen 443 ssl", &format!("listen 127.0.0.1:{} ssl", self.tls))
            .replace("/etc/ssl/gateway", &directory.join("gateway").display().to_string());
        let main = format!(
            "daemon off; pid nginx.pid; error_log stderr; events {{}} http {{ access_log nginx.log; \
             client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; \
             scgi_temp_path scgi;\n{server}\n}}"
        );
        fs::write(directory.join("nginx.conf"), main).unwrap();
        NGINX.replace("TLS", &self.tls.to_string())
    }
}

const NGINX: &str = r#"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout gateway.key -out gateway.pem -days 1 \
  -subj /CN=gateway.example 2>>nginx.err
nginx -p "$PWD" -c nginx.conf 2>>nginx.err &
through() { curl -sS --retry 20 --retry-connrefused --retry-delay 1 --cacert gateway.pem \
  --connect-to gateway.example:443:127.0.0.1:TLS "$@"; }
through https://gateway.example/health
# Administration is not for the outside; a socket is.
test "$(through -o answer -w '%{http_code}' https://gateway.example/api/v1/admin/orgs)" != 200
through --max-time 1 -i -H 'Connection: Upgrade' -H 'Upgrade: websocket' -H 'Sec-WebSocket-Version: 13' \
  -H 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==' --http1.1 https://gateway.example/rpc/ws >socket || true
grep -q '101 Switching' socket
"#;

/// The script in place of the released program: see [`Stage::new`].
const PRODUCTION: &str = r#"
if [ "${ENVIRONMENT:-}" = production ]; then
  wrong=$("$dev" config check 2>&1 | grep -v '^ENVIRONMENT: must be `development`' || true)
  if [ -n "$wrong" ]; then printf '%s\n' "$wrong" >&2; exit 78; fi
  if [ "$1 ${2:-}" = 'config check' ]; then echo 'configuration is valid'; exit 0; fi
fi
exec env ENVIRONMENT=development "$dev" "$@"
"#;

/// The process group of a shell. Dropping it kills the shell and all processes it started.
struct Group(Process);

impl Drop for Group {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.0.id());
        let _ = Command::new("kill")
            .args(["-KILL", "--", &group])
            .stderr(Stdio::null())
            .status();
    }
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

/// Whether a text matches the text of a page: `…` matches any text; white space at line ends is ignored.
fn is_like(text: &str, shown: &str) -> bool {
    let trimmed = |text: &str| {
        text.lines()
            .map(str::trim_end)
            .collect::<Vec<_>>()
            .join("\n")
            .trim()
            .to_owned()
    };
    let (text, shown) = (trimmed(text), trimmed(shown));
    let mut parts = shown.split('…');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else {
            return false;
        };
        rest = after;
    }
    rest.ends_with(last)
}

#[test]
fn output_is_compared_with_wildcards() {
    assert!(is_like("a b\nc \n", "a b\nc"));
    assert!(is_like("0x12 yes 7", "0x… yes …"));
    for shown in ["0x12 yes", "yes …", "0x… no …", "…yes"] {
        assert!(!is_like("0x12 yes 7", shown), "{shown}");
    }
}

fn run_pages(pages: &[&str], node: Option<&gw_testkit::Anvil>, database: Option<String>) -> Stage {
    let stage = Stage::new(node, database);
    let blocks: Vec<Block> = pages.iter().flat_map(|page| read(page).0).collect();
    stage.run(&blocks);
    stage
}

/// RTO13: the commands of the README work unchanged.
#[test]
fn rto13_the_commands_of_the_readme_work() {
    run_pages(TYPED[0], Some(&gw_testkit::anvil::anvil()), None);
}

/// RTO13: the pages for administrators and developers, from an empty gateway to a working bank and its clients.
#[test]
fn rto13_the_commands_for_administrators_and_developers_work() {
    run_pages(TYPED[1], None, None);
}

/// RTO13: the page for production, with PostgreSQL and behind nginx.
#[test]
fn rto13_the_commands_for_production_work() {
    let database = gw_testkit::postgres::database()
        .expect("PostgreSQL")
        .expect("this test needs PostgreSQL");
    let socket = database.url.split_once("?host=").expect("a socket").1.to_owned();
    let stage = run_pages(TYPED[2], Some(&gw_testkit::anvil::anvil()), Some(socket));
    let settings = fs::read_to_string(stage.dir.path().join("gateway.env")).unwrap();
    let verifier = settings
        .lines()
        .find_map(|line| line.strip_prefix("VERIFIER_ID="))
        .expect("a DID");
    assert!(gw_zk::did::Did::parse(verifier).is_ok(), "{verifier}");
}
