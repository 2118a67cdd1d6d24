//! A deployment on SQLite or on PostgreSQL, whose databases a test changes, backs up and puts back.

use crate::process::{self, Serving, stderr};
use gw_audit::tree;
use gw_testkit::postgres;
use sea_orm::{ConnectionTrait as _, Database, DatabaseConnection, DbBackend, Statement, TransactionTrait as _, Value};
use std::{fs, path::Path, process::Output};
use tokio::runtime::Runtime;

/// One of the two databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    Policy,
    Audit,
}

#[derive(Debug)]
enum Engine {
    Sqlite,
    Postgres { policy: String, audit: String },
}

/// The directories and databases of a deployment.
#[derive(Debug)]
pub(crate) struct Deployment {
    dir: tempfile::TempDir,
    engine: Engine,
    runtime: Runtime,
}

/// Runs each named scenario as one test on SQLite and one test on PostgreSQL.
macro_rules! on_both_engines {
    ($($name:ident),* $(,)?) => {
        mod sqlite { $(#[test] fn $name() { super::$name(&crate::deployment::Deployment::sqlite()) })* }
        mod postgres { $(#[test] fn $name() {
            if let Some(deployment) = crate::deployment::Deployment::postgres() {
                super::$name(&deployment);
            }
        })* }
    };
}
pub(crate) use on_both_engines;

/// The suffix of the name of a backup on PostgreSQL.
const BACKUP: &str = "_backup";

impl Deployment {
    pub(crate) fn sqlite() -> Self {
        Self::new(Engine::Sqlite)
    }

    /// `None` if the tests run without PostgreSQL.
    pub(crate) fn postgres() -> Option<Self> {
        let database = || postgres::database().expect("PostgreSQL");
        let (policy, audit) = (database()?.url, database()?.url);
        Some(Self::new(Engine::Postgres { policy, audit }))
    }

    fn new(engine: Engine) -> Self {
        Self {
            dir: tempfile::tempdir().expect("a directory"),
            engine,
            runtime: Runtime::new().expect("a runtime"),
        }
    }

    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self.engine, Engine::Postgres { .. })
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().expect("text").to_owned()
    }

    /// The settings of the databases and directories.
    fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = vec![
            ("DATA_DIR", self.path("data")),
            ("AUDIT_BUFFER_DIR", self.path("journal")),
        ];
        if let Engine::Postgres { policy, audit } = &self.engine {
            settings.extend([("DATABASE_URL", policy.clone()), ("AUDIT_DATABASE_URL", audit.clone())]);
        }
        settings
    }

    fn with_settings<T>(&self, further: &[(&str, &str)], run: impl FnOnce(&[(&str, &str)]) -> T) -> T {
        let own = self.settings();
        let mut settings: Vec<_> = own.iter().map(|(name, value)| (*name, value.as_str())).collect();
        settings.extend_from_slice(further);
        run(&settings)
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.with_settings(&[], |settings| process::gateway(arguments, settings))
    }

    /// Starts a gateway and waits until it is ready.
    pub(crate) fn start(&self, node: &str, settings: &[(&str, &str)]) -> Serving {
        self.with_settings(settings, |settings| Serving::start(node, settings).ready())
    }

    /// The output of a start that fails.
    pub(crate) fn failed_start(&self, node: &str, settings: &[(&str, &str)]) -> String {
        self.with_settings(settings, |settings| {
            Serving::spawn(node, settings).wait_for_failed_start()
        })
    }

    /// The exit code and output of `audit verify`.
    pub(crate) fn verify(&self) -> (Option<i32>, String) {
        let output = self.run(&["audit", "verify"]);
        (output.status.code(), output_of(&output))
    }

    /// Re-anchors the first chain that `audit verify` reports. The name of the chain must start with `stream`.
    pub(crate) fn re_anchor_first_failed(&self, stream: &str, reason: &str) {
        let (_, output) = self.verify();
        let failed = output
            .lines()
            .find_map(|line| line.strip_prefix("FAIL "))
            .expect(&output);
        let chain = failed.split_whitespace().next().expect("a chain");
        assert!(chain.starts_with(stream), "{output}");
        let decide = [
            "audit",
            "re-anchor",
            "--chain",
            chain,
            "--actor",
            "jane",
            "--reason",
            reason,
            "--confirm",
        ];
        let result = self.run(&decide);
        assert!(result.status.success(), "{}", output_of(&result));
    }

    fn file(&self, store: Store) -> String {
        self.path(match store {
            Store::Policy => "data/gateway.db",
            Store::Audit => "data/audit.db",
        })
    }

    fn url(&self, store: Store) -> String {
        match (&self.engine, store) {
            (Engine::Sqlite, _) => format!("sqlite://{}", self.file(store)),
            (Engine::Postgres { policy, .. }, Store::Policy) => policy.clone(),
            (Engine::Postgres { audit, .. }, Store::Audit) => audit.clone(),
        }
    }

    /// Runs `work` on a connection to a database, like an attacker with its credentials.
    pub(crate) fn in_database<T, Work: Future<Output = T>>(
        &self,
        store: Store,
        work: impl FnOnce(DatabaseConnection) -> Work,
    ) -> T {
        self.runtime.block_on(async {
            let connection = Database::connect(self.url(store)).await.expect("connected");
            let result = work(connection.clone()).await;
            connection.close().await.expect("closed");
            result
        })
    }

    /// Runs statements that both engines understand, separated by semicolons.
    pub(crate) fn sql(&self, store: Store, statements: &str) {
        self.in_database(store, async |connection| {
            if connection.get_database_backend() == DbBackend::Sqlite {
                connection
                    .execute_unprepared("PRAGMA busy_timeout = 10000")
                    .await
                    .expect("set");
            }
            let result = connection.execute_unprepared(statements).await;
            assert!(result.is_ok(), "{statements}: {result:?}");
        });
    }

    /// The first column of the first row of a query; zero if there is none, or if the database cannot be read.
    pub(crate) fn count(&self, store: Store, query: &str) -> i64 {
        if !self.is_postgres() && !Path::new(&self.file(store)).exists() {
            return 0;
        }
        self.in_database(store, async |connection| {
            let statement = Statement::from_string(connection.get_database_backend(), query.to_owned());
            let row = connection.query_one_raw(statement).await.ok().flatten();
            row.and_then(|row| row.try_get_by_index(0).ok()).unwrap_or(0)
        })
    }

    /// Runs `work` while another session keeps the gateway from writing to the audit database.
    pub(crate) fn while_locked(&self, work: impl FnOnce()) {
        self.in_database(Store::Audit, async |connection| {
            let lock = match connection.get_database_backend() {
                DbBackend::Sqlite => "UPDATE chains SET size = size WHERE id < 0",
                _ => "LOCK TABLE entries, chains IN EXCLUSIVE MODE",
            };
            let transaction = connection.begin().await.expect("begun");
            transaction.execute_unprepared(lock).await.expect("locked");
            work();
            transaction.rollback().await.expect("ended");
        });
    }

    /// Runs a statement on the server itself.
    fn on_server(&self, url: &str, statement: &str) {
        let (path, query) = url.split_once('?').expect("a socket");
        let (start, _) = path.rsplit_once('/').expect("a database");
        let server = format!("{start}/postgres?{query}");
        self.runtime.block_on(async {
            let connection = Database::connect(server).await.expect("connected");
            let result = connection.execute_unprepared(statement).await;
            assert!(result.is_ok(), "{statement}: {result:?}");
            connection.close().await.expect("closed");
        });
    }

    /// Creates a role that may read and write all tables and owns none. Returns its name, and the settings with which
    /// the gateway uses it.
    pub(crate) fn writing_role(&self) -> (String, [(&'static str, String); 3]) {
        let Engine::Postgres { policy, audit } = &self.engine else {
            unreachable!("a file has no roles")
        };
        let role = format!("{}_writer", Self::name(policy));
        self.sql(Store::Policy, &format!("CREATE ROLE {role} LOGIN"));
        for store in [Store::Policy, Store::Audit] {
            self.sql(
                store,
                &format!(
                    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}; \
                     GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}"
                ),
            );
        }
        let url = |url: &str| url.replace("//gateway@", &format!("//{role}@"));
        let settings = [
            ("DATABASE_URL", url(policy)),
            ("AUDIT_DATABASE_URL", url(audit)),
            ("MIGRATE", "off".to_owned()),
        ];
        (role, settings)
    }

    /// The name of a database on the server.
    fn name(url: &str) -> &str {
        let path = url.split('?').next().unwrap_or_default();
        path.rsplit('/').next().expect("a name")
    }

    /// Backs up a database; the service must be stopped.
    pub(crate) fn back_up(&self, store: Store) {
        let url = self.url(store);
        if self.is_postgres() {
            let name = Self::name(&url);
            self.on_server(&url, &format!("CREATE DATABASE {name}{BACKUP} TEMPLATE {name}"));
            return;
        }
        for end in ["", "-wal"] {
            let source = format!("{}{end}", self.file(store));
            if Path::new(&source).exists() {
                fs::copy(&source, format!("{source}.backup")).expect("copied");
            }
        }
    }

    /// Puts the backup back.
    pub(crate) fn restore(&self, store: Store) {
        let url = self.url(store);
        if self.is_postgres() {
            let name = Self::name(&url);
            self.on_server(&url, &format!("DROP DATABASE {name} WITH (FORCE)"));
            self.on_server(&url, &format!("CREATE DATABASE {name} TEMPLATE {name}{BACKUP}"));
            return;
        }
        self.delete(store);
        for end in ["", "-wal"] {
            let target = format!("{}{end}", self.file(store));
            if Path::new(&format!("{target}.backup")).exists() {
                fs::copy(format!("{target}.backup"), target).expect("copied");
            }
        }
    }

    /// Deletes a database. On PostgreSQL, an empty one of the same name takes its place.
    pub(crate) fn delete(&self, store: Store) {
        let url = self.url(store);
        if self.is_postgres() {
            let name = Self::name(&url);
            self.on_server(&url, &format!("DROP DATABASE {name} WITH (FORCE)"));
            self.on_server(&url, &format!("CREATE DATABASE {name}"));
            return;
        }
        for end in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(format!("{}{end}", self.file(store)));
        }
    }

    /// Copies the journal directory to another name; the service must be stopped.
    pub(crate) fn copy_journal(&self, from: &str, to: &str) {
        let (from, to) = (self.path(from), self.path(to));
        let _ = fs::remove_dir_all(&to);
        copy_directory(Path::new(&from), Path::new(&to));
    }

    /// Rewrites entry `size - 1` of the first access chain, by default its last one, with a correct hash.
    pub(crate) fn rewrite_entry(&self, size: Option<u64>) {
        self.in_database(Store::Audit, async |connection| {
            let (chain, end) = first_access_chain(&connection).await;
            let last = size.map_or(end, |size| i64::try_from(size).expect("small")) - 1;
            let (row, bytes) = entry(&connection, chain, last).await;
            let bytes = replaced(&bytes, b"eth_chainId", b"eth_chainXX");
            let hash = tree::leaf(&bytes).to_vec();
            let sql = "UPDATE entries SET bytes = $1, hash = $2, method = 'eth_chainXX' WHERE id = $3";
            execute(&connection, sql, [bytes.into(), hash.clone().into(), row.into()]).await;
            if size.is_none() {
                execute(
                    &connection,
                    "UPDATE chains SET head_hash = $1 WHERE id = $2",
                    [hash.into(), chain.into()],
                )
                .await;
            }
        });
    }

    /// Appends a copy of the last entry of the first access chain.
    pub(crate) fn append_entry(&self) {
        self.in_database(Store::Audit, async |connection| {
            let (chain, end) = first_access_chain(&connection).await;
            let (row, bytes) = entry(&connection, chain, end - 1).await;
            let hash = tree::leaf(&bytes).to_vec();
            let sql = "INSERT INTO entries (chain_id, seq, hash, bytes, openings, kind, created_at) SELECT chain_id, \
                       seq + 1, $1, bytes, openings, kind, created_at FROM entries WHERE id = $2";
            execute(&connection, sql, [hash.clone().into(), row.into()]).await;
            let sql = "UPDATE chains SET size = size + 1, head_hash = $1 WHERE id = $2";
            execute(&connection, sql, [hash.into(), chain.into()]).await;
        });
    }

    /// Copies the first entries of a chain into a forged chain in a new shard, with times a year ahead.
    pub(crate) fn invent_chain(&self, stream: &str) {
        const YEAR: i64 = 31_536_000_000_000;
        let shard = uuid::Uuid::from_u128(0x1111_1111_1111_4111_8111_1111_1111_1111);
        self.in_database(Store::Audit, async |connection| {
            let sql = "SELECT id, shard FROM chains WHERE stream = $1 ORDER BY id LIMIT 1";
            let statement = Statement::from_sql_and_values(connection.get_database_backend(), sql, [stream.into()]);
            let row = connection
                .query_one_raw(statement)
                .await
                .expect("read")
                .expect("a chain");
            let original: (i64, uuid::Uuid) = (
                row.try_get_by_index(0).expect("an id"),
                row.try_get_by_index(1).expect("a shard"),
            );
            let sql = format!(
                "INSERT INTO chains (stream, shard, fence, holder, leased_until, issued, size, head_hash, head_time) \
                 SELECT stream, $1, fence, holder, leased_until + {YEAR}, size, size, head_hash, head_time + {YEAR} \
                 FROM chains WHERE id = $2"
            );
            execute(&connection, &sql, [shard.into(), original.0.into()]).await;
            let made = number(&connection, "SELECT max(id) FROM chains").await;
            let mut prev = vec![0; 32];
            for seq in [0, 1] {
                let sql = format!(
                    "SELECT count(*) FROM entries WHERE chain_id = {} AND seq = {seq}",
                    original.0
                );
                if number(&connection, &sql).await == 0 {
                    break;
                }
                let (row, bytes) = entry(&connection, original.0, seq).await;
                let mut bytes = replaced(&bytes, original.1.as_bytes(), shard.as_bytes());
                let mut time = number(&connection, &format!("SELECT created_at FROM entries WHERE id = {row}")).await;
                if seq == 1 {
                    let (_, first) = entry(&connection, original.0, 0).await;
                    bytes = replaced(&bytes, tree::leaf(&first).as_slice(), &prev);
                    bytes = replaced(&bytes, &time.to_be_bytes(), &(time + YEAR).to_be_bytes());
                    time += YEAR;
                }
                prev = tree::leaf(&bytes).to_vec();
                let sql = "INSERT INTO entries (chain_id, seq, hash, bytes, openings, kind, created_at, method, \
                           outbox_id, store_id) SELECT $1, seq, $2, $3, openings, kind, $4, method, outbox_id, \
                           store_id FROM entries WHERE id = $5";
                let values = [made.into(), prev.clone().into(), bytes.into(), time.into(), row.into()];
                execute(&connection, sql, values).await;
            }
            let sql = "UPDATE chains SET head_hash = $1, size = (SELECT count(*) FROM entries WHERE chain_id = \
                       chains.id) WHERE id = $2";
            execute(&connection, sql, [prev.into(), made.into()]).await;
        });
    }

    /// The size of the first access chain and its signed size.
    pub(crate) fn sizes(&self) -> (i64, i64) {
        let chain = "(SELECT min(id) FROM chains WHERE stream = 'access')";
        (
            self.count(Store::Audit, &format!("SELECT size FROM chains WHERE id = {chain}")),
            self.count(
                Store::Audit,
                &format!("SELECT coalesce(max(size), 0) FROM checkpoints WHERE chain_id = {chain}"),
            ),
        )
    }
}

/// The standard output and standard error of a command.
pub(crate) fn output_of(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(output))
}

/// Sends calls that the gateway records.
pub(crate) fn call(gateway: &Serving, times: usize) {
    for _ in 0..times {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}"#;
        let response = gateway.request("POST", "/rpc", &[("Content-Type", "application/json")], body);
        assert_eq!(response.status, 200, "{}", response.body);
    }
}

fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    fs::set_permissions(to, fs::metadata(from).expect("there").permissions()).expect("set");
    for entry in fs::read_dir(from).expect("read") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy_directory(&path, &target);
        } else {
            fs::copy(&path, &target).expect("copied");
        }
    }
}

async fn first_access_chain(connection: &DatabaseConnection) -> (i64, i64) {
    let chain = number(connection, "SELECT min(id) FROM chains WHERE stream = 'access'").await;
    let size = number(connection, &format!("SELECT size FROM chains WHERE id = {chain}")).await;
    (chain, size)
}

async fn number(connection: &DatabaseConnection, sql: &str) -> i64 {
    let statement = Statement::from_string(connection.get_database_backend(), sql.to_owned());
    let row = connection.query_one_raw(statement).await.expect("read").expect("a row");
    row.try_get_by_index(0).expect("a number")
}

/// The id and the bytes of an entry.
async fn entry(connection: &DatabaseConnection, chain: i64, seq: i64) -> (i64, Vec<u8>) {
    let sql = format!("SELECT id, bytes FROM entries WHERE chain_id = {chain} AND seq = {seq}");
    let statement = Statement::from_string(connection.get_database_backend(), sql);
    let row = connection
        .query_one_raw(statement)
        .await
        .expect("read")
        .expect("an entry");
    (
        row.try_get_by_index(0).expect("an id"),
        row.try_get_by_index(1).expect("bytes"),
    )
}

async fn execute<const N: usize>(connection: &DatabaseConnection, sql: &str, values: [Value; N]) {
    let statement = Statement::from_sql_and_values(connection.get_database_backend(), sql, values);
    let result = connection.execute_raw(statement).await;
    assert!(result.is_ok(), "{sql}: {result:?}");
}

/// Replaces every occurrence of `old`, which must be as long as `new`.
fn replaced(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    assert_eq!(old.len(), new.len());
    let (mut result, mut at, mut count) = (bytes.to_vec(), 0, 0);
    while let Some(window) = result.get_mut(at..at + old.len()) {
        if window == old {
            window.copy_from_slice(new);
            (at, count) = (at + old.len(), count + 1);
        } else {
            at += 1;
        }
    }
    assert!(count > 0, "nothing to replace");
    result
}
