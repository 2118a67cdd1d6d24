//! The pages for operators and developers of dApps are typed as they stand (RTO13): every fenced block of `README.md` and
//! `docs/*.md` is run in order, page by page, in one shell per page, against a real gateway in front of a real node.
//!
//! The info string of a fence says what becomes of the block:
//!
//! | Fence | |
//! |---|---|
//! | `sh`, `js`, `python` | run; a command that fails, fails the test |
//! | `sh no_run: <reason>` | shown only |
//! | `text output` | what the block before printed; `…` stands for anything |
//! | `text` | shown only |
//! | `json` | must be JSON; `…` may stand in its strings |
//! | `nginx` | a server block that nginx takes, and the gateway answers through |
//! | `ini` | a unit that systemd takes |
//!
//! Anything else is a failure, so that no block is left out silently. Only addresses that a page must name are replaced:
//! [`Stage::fill_in`].

use crate::harness::{Process, free_port};
use std::{
    fs,
    os::unix::{fs::symlink, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Pages with blocks to type, each in a shell of its own, in the order given; the test of each is below.
const TYPED: [&[&str]; 3] = [
    &["README.md"],
    &["docs/admin.md", "docs/clients.md", "docs/rpc.md", "docs/oauth.md"],
    &["docs/production.md"],
];

/// How long a page may take.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Shell,
    JavaScript,
    Python,
    Output,
    Json,
    Nginx,
    Unit,
    Shown,
}

impl Kind {
    /// What a fence's info string says; the fault otherwise.
    fn of(info: &str) -> Result<Self, String> {
        let (language, rest) = info.split_once(' ').unwrap_or((info, ""));
        let kind = match (language, rest) {
            ("sh", "") => Self::Shell,
            ("js", "") => Self::JavaScript,
            ("python", "") => Self::Python,
            ("text", "output") => Self::Output,
            ("text", "") => Self::Shown,
            ("json", "") => Self::Json,
            ("nginx", "") => Self::Nginx,
            ("ini", "") => Self::Unit,
            (_, reason) if reason.strip_prefix("no_run: ").is_some_and(|why| why.len() > 9) => Self::Shown,
            ("", _) => return Err("the block has no language".into()),
            _ => return Err(format!("nobody knows what becomes of `{info}`")),
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
    fn place(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }
}

/// The blocks of a page, and what is wrong with its fences.
fn blocks(page: &str, text: &str) -> (Vec<Block>, Vec<String>) {
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    let mut open: Option<Block> = None;
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(mut block) = open.take() {
            if line.trim_end() == "```" {
                found.push(block);
            } else {
                block.text.push_str(line);
                block.text.push('\n');
                open = Some(block);
            }
        } else if let Some(info) = line.strip_prefix("```") {
            let kind = Kind::of(info.trim()).unwrap_or_else(|fault| {
                faults.push(format!("{page}:{number}: {fault}"));
                Kind::Shown
            });
            open = Some(Block {
                page: page.to_owned(),
                line: number,
                kind,
                text: String::new(),
            });
        } else if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            faults.push(format!(
                "{page}:{number}: a fence that does not begin its line is not seen by this test"
            ));
        }
    }
    if let Some(block) = open {
        faults.push(format!("{}: the block never ends", block.place()));
    }
    (found, faults)
}

fn read(page: &str) -> (Vec<Block>, Vec<String>) {
    let text = fs::read_to_string(Path::new(ROOT).join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
    blocks(page, &text)
}

/// Every page below `docs/`, and the README.
fn pages() -> Vec<String> {
    let entries = fs::read_dir(format!("{ROOT}/docs")).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut all: Vec<_> = names
        .filter(|name| name.ends_with(".md"))
        .map(|name| format!("docs/{name}"))
        .collect();
    all.push("README.md".into());
    all
}

/// RTO13: each block says what becomes of it, and each page with something to type is in [`TYPED`].
#[test]
fn rto13_every_block_says_what_becomes_of_it() {
    let typed: Vec<&str> = TYPED.concat();
    let mut faults = Vec::new();
    for page in pages() {
        let (blocks, wrong) = read(&page);
        faults.extend(wrong);
        for (at, block) in blocks.iter().enumerate() {
            match block.kind {
                Kind::Shell | Kind::JavaScript | Kind::Python | Kind::Nginx | Kind::Unit
                    if !typed.contains(&page.as_str()) =>
                {
                    faults.push(format!("{}: the page is in no list of this test", block.place()));
                }
                Kind::Json => {
                    if let Err(error) = serde_json::from_str::<serde_json::Value>(&block.text) {
                        faults.push(format!("{}: {error}", block.place()));
                    }
                }
                Kind::Output => {
                    let before = at.checked_sub(1).map(|at| blocks[at].kind);
                    if !matches!(before, Some(Kind::Shell | Kind::JavaScript | Kind::Python)) {
                        faults.push(format!("{}: the output of no block", block.place()));
                    }
                }
                _ => {}
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    // The reading itself can fail.
    let (none, faults) = blocks(
        "page",
        "```\na\n```\n```ruby\n```\n - x\n   ```sh\n```sh no_run: \n```\n```sh\n",
    );
    assert_eq!((none.len(), faults.len()), (3, 5), "{faults:?}");
}

/// Where a page is typed: a directory with what the page says is there, and ports of its own.
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
        let place = dir.path();
        // The page is typed at the root of the repository; what it writes stays out of it.
        for name in ["contracts", "docs"] {
            symlink(Path::new(ROOT).join(name), place.join(name)).unwrap();
        }
        symlink(
            Path::new(ROOT).join("tests/clients/node_modules"),
            place.join("node_modules"),
        )
        .unwrap();
        let programs = place.join("programs");
        fs::create_dir_all(&programs).unwrap();
        fs::create_dir_all(place.join("target/release")).unwrap();
        for place in [
            programs.join("ledger-gateway"),
            place.join("target/release/ledger-gateway"),
        ] {
            // The released program takes no mock login, and the one with mock login nothing but development: this one
            // says what is wrong with a configuration of production, and does the rest as development.
            let script = format!(
                "#!/bin/bash\ndev={}\n{PRODUCTION}",
                env!("CARGO_BIN_EXE_ledger-gateway-dev")
            );
            fs::write(&place, script).unwrap();
            executable(&place);
        }
        symlink(
            env!("CARGO_BIN_EXE_ledger-gateway-dev"),
            programs.join("ledger-gateway-dev"),
        )
        .unwrap();
        let (public, internal, tls) = (free_port(), free_port(), free_port());
        let node = node.map(|node| node.url().rsplit(':').next().unwrap().to_owned());
        let node = node.unwrap_or_else(|| free_port().to_string());
        Self {
            dir,
            public,
            internal,
            tls,
            node,
            database,
        }
    }

    /// Ports and the address of the database are the test's own; everything else is run as it stands.
    fn fill_in(&self, text: &str) -> String {
        let text = text
            .replace("8080", &self.public.to_string())
            .replace("9090", &self.internal.to_string())
            .replace("8545", &self.node);
        match &self.database {
            // The server of the tests has another superuser, and listens on a socket only.
            Some(socket) => text
                .replace("postgres://postgres@", "postgres://gateway@")
                .replace("db.internal", &socket.replace('/', "%2F")),
            None => text,
        }
    }

    /// Types the blocks and compares what they print.
    fn run(&self, blocks: &[Block]) {
        let place = self.dir.path();
        let mut script = format!("PATH={}:$PATH\nset -eu -o pipefail\n", self.path());
        for (number, block) in blocks.iter().enumerate() {
            let text = self.fill_in(&block.text);
            let command = match block.kind {
                Kind::Shell => text,
                Kind::JavaScript => self.file(number, "mjs", "node", &text),
                Kind::Python => self.file(number, "py", "python3", &text),
                Kind::Unit => self.unit(number, &text),
                Kind::Nginx => self.behind_nginx(&text),
                Kind::Output | Kind::Json | Kind::Shown => continue,
            };
            script.push_str(&format!(
                "echo {} >at\n{{\n{command}\n}} >out.{number}\n",
                block.place()
            ));
        }
        script.push_str("echo end >at\n");
        fs::write(place.join("page.sh"), script).unwrap();
        let log = fs::File::create(place.join("said")).unwrap();
        let mut command = Command::new("bash");
        command.arg("page.sh").current_dir(place).stdin(Stdio::null());
        command.env("AUDIT_CHECKPOINT_INTERVAL", "1s").env("LOG_FORMAT", "text");
        command.env("NO_COLOR", "1").env("FOUNDRY_DISABLE_NIGHTLY_WARNING", "1");
        // forge writes beside the sources otherwise.
        command
            .env("FOUNDRY_OUT", place.join("out"))
            .env("FOUNDRY_CACHE_PATH", place.join("cache"));
        command.stdout(log.try_clone().unwrap()).stderr(log).process_group(0);
        let mut shell = Group(Process(command.spawn().unwrap()));
        let start = Instant::now();
        let status = loop {
            if let Some(status) = shell.0.0.try_wait().unwrap() {
                break Some(status);
            }
            if start.elapsed() > PATIENCE {
                break None;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        drop(shell);
        // What goes wrong behind the pages' back counts, too: a role that may not sign a checkpoint, say.
        let log = fs::read_to_string(place.join("gateway.log")).unwrap_or_default();
        assert!(!log.contains(" ERROR "), "{log}");
        let read = |name: &str| fs::read_to_string(place.join(name)).unwrap_or_default();
        let at = read("at");
        let number = blocks.iter().position(|block| block.place() == at.trim());
        let printed = number.map(|number| read(&format!("out.{number}"))).unwrap_or_default();
        assert!(
            status.is_some_and(|status| status.success()) && at == "end\n",
            "{} failed ({status:?}); it printed:\n{printed}\nand said:\n{}\ngateway:\n{}",
            at.trim(),
            read("said"),
            tail(&read("gateway.log"))
        );
        for (number, block) in blocks.iter().enumerate() {
            let printed = read(&format!("out.{number}"));
            let expected = blocks.get(number + 1).filter(|next| next.kind == Kind::Output);
            match expected {
                Some(next) => assert!(
                    is_like(&printed, &self.fill_in(&next.text)),
                    "{} printed:\n{printed}\nand not, as {} says:\n{}",
                    block.place(),
                    next.place(),
                    next.text
                ),
                None => assert!(!printed.contains("\"error\":"), "{} printed:\n{printed}", block.place()),
            }
        }
    }

    fn file(&self, number: usize, kind: &str, program: &str, text: &str) -> String {
        let name = format!("block-{number}.{kind}");
        fs::write(self.dir.path().join(&name), text).unwrap();
        format!("{program} {name}")
    }

    /// A unit whose program is there; systemd looks at the rest of it, where it is installed.
    fn unit(&self, number: usize, text: &str) -> String {
        let program = self.dir.path().join("programs/ledger-gateway");
        let text = text.replace("/usr/local/bin/ledger-gateway", &program.display().to_string());
        for line in text.lines().filter(|line| !line.is_empty()) {
            let is_setting = line
                .split_once('=')
                .is_some_and(|(key, _)| key.bytes().all(|b| b.is_ascii_alphabetic()));
            assert!(line.starts_with(['[', '#']) || is_setting, "no line of a unit: {line}");
        }
        let verify = self.file(number, "service", "systemd-analyze verify --man=no", &text);
        format!("if command -v systemd-analyze >/dev/null; then {verify}; fi")
    }

    /// Programs of the tests' packages first, then those of the machine.
    fn path(&self) -> String {
        let root = PathBuf::from(ROOT).canonicalize().unwrap();
        let mut all = vec![self.dir.path().join("programs"), root.join("target/venv/bin")];
        let foundry = root.join("tests/clients/node_modules/@foundry-rs");
        let entries = fs::read_dir(foundry).unwrap().flatten();
        all.extend(entries.map(|entry| entry.path().join("bin")).filter(|bin| bin.is_dir()));
        all.push("/usr/sbin".into());
        all.iter()
            .map(|place| place.display().to_string())
            .collect::<Vec<_>>()
            .join(":")
    }

    /// nginx with this server block, on a port and with a certificate of its own; the gateway behind it must see the
    /// client's address, and be reached by WebSocket.
    fn behind_nginx(&self, text: &str) -> String {
        let place = self.dir.path();
        let server = text
            .replace("listen 443 ssl", &format!("listen 127.0.0.1:{} ssl", self.tls))
            .replace("/etc/ssl/gateway", &place.join("gateway").display().to_string());
        let main = format!(
            "daemon off; pid nginx.pid; error_log stderr; events {{}} http {{ access_log nginx.log; \
             client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; \
             scgi_temp_path scgi;\n{server}\n}}"
        );
        fs::write(place.join("nginx.conf"), main).unwrap();
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

/// Runs the released program's commands: see [`Stage::new`].
const PRODUCTION: &str = r#"
if [ "${ENVIRONMENT:-}" = production ]; then
  wrong=$("$dev" config check 2>&1 | grep -v '^ENVIRONMENT: must be `development`' || true)
  if [ -n "$wrong" ]; then printf '%s\n' "$wrong" >&2; exit 78; fi
  if [ "$1 ${2:-}" = 'config check' ]; then echo 'configuration is valid'; exit 0; fi
fi
exec env ENVIRONMENT=development "$dev" "$@"
"#;

/// A shell and what it started.
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

fn executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

/// Whether a text is as a page shows it: `…` stands for anything, white space at the ends of lines for nothing.
fn is_like(text: &str, shown: &str) -> bool {
    let plain = |text: &str| {
        text.lines()
            .map(str::trim_end)
            .collect::<Vec<_>>()
            .join("\n")
            .trim()
            .to_owned()
    };
    let (text, shown) = (plain(text), plain(shown));
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
fn what_a_page_shows_is_compared() {
    assert!(is_like("a b\nc \n", "a b\nc"));
    assert!(is_like("0x12 yes 7", "0x… yes …"));
    for shown in ["0x12 yes", "yes …", "0x… no …", "…yes"] {
        assert!(!is_like("0x12 yes 7", shown), "{shown}");
    }
}

fn type_pages(pages: &[&str], node: Option<&gw_testkit::Anvil>, database: Option<String>) -> Stage {
    let stage = Stage::new(node, database);
    let blocks: Vec<Block> = pages.iter().flat_map(|page| read(page).0).collect();
    stage.run(&blocks);
    stage
}

/// RTO13: what the README says is typed as it stands.
#[test]
fn rto13_the_readme_is_typed() {
    type_pages(TYPED[0], Some(&gw_testkit::anvil::anvil()), None);
}

/// RTO13: from nothing to a working bank, and what its clients need.
#[test]
fn rto13_the_pages_for_administrators_and_developers_are_typed() {
    type_pages(TYPED[1], None, None);
}

/// RTO13: production, on PostgreSQL behind nginx.
#[test]
fn rto13_the_page_for_production_is_typed() {
    let database = gw_testkit::postgres::database()
        .expect("PostgreSQL")
        .expect("not to be left out here");
    let socket = database.url.split_once("?host=").expect("a socket").1.to_owned();
    let stage = type_pages(TYPED[2], Some(&gw_testkit::anvil::anvil()), Some(socket));
    let settings = fs::read_to_string(stage.dir.path().join("gateway.env")).unwrap();
    let verifier = settings
        .lines()
        .find_map(|line| line.strip_prefix("VERIFIER_ID="))
        .expect("a DID");
    assert!(gw_zk::did::Did::parse(verifier).is_ok(), "{verifier}");
}
