//! The schema: equal to the golden file of each engine, seeded, forward only.

use crate::world::{World, did, on_both_engines};
use gw_policy::snapshot::{Group, Organization};
use gw_store::{
    Actor, IndexCheck, StoreError,
    audit::OutboxAlarm,
    record::{NewUser, UserPatch},
};
use std::time::Duration;

on_both_engines! {
    the_schema_is_the_golden_one,
    a2_a6_the_fixed_rows_are_seeded_once,
    an_empty_database_is_told_from_a_migrated_one,
    rl2_every_difference_of_the_schema_is_named,
    rl2_a_changed_trigger_of_a_policy_table_is_named,
    rl2_a_change_that_no_trigger_records_is_refused,
}

async fn the_schema_is_the_golden_one(world: &World) {
    assert_golden(world.engine, &world.store.schema().await.unwrap());
}

pub(crate) fn assert_golden(name: &str, schema: &str) {
    let path = format!("{}/src/migration/schema/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::fs::read_to_string(&path).unwrap_or_default() != schema {
        let new = format!("{}/{name}-schema.txt", env!("CARGO_TARGET_TMPDIR"));
        std::fs::write(&new, schema).unwrap();
        panic!("the schema is not {path}; compare with {new} and, if the change is wanted, copy it there");
    }
}

async fn a2_a6_the_fixed_rows_are_seeded_once(world: &World) {
    world.store.migrate().await.expect("migrating again does nothing");
    let snapshot = world.store.load().await.unwrap();
    assert_eq!(snapshot.epoch().0, 1);
    for (org, group) in [
        (Organization::DEFAULT, Group::DEFAULT),
        (Organization::ANONYMOUS, Group::ANONYMOUS),
    ] {
        assert!(snapshot.organization(org).unwrap().is_system);
        assert_eq!(snapshot.group(group).unwrap().org, org);
        let access = snapshot.access(group).unwrap();
        assert!(access.claims.is_empty());
        let granted: Vec<_> = gw_evm::Method::ALL
            .iter()
            .filter(|m| access.methods.has(**m))
            .map(|m| m.as_str())
            .collect();
        assert_eq!(
            granted,
            [
                "eth_blockNumber",
                "eth_chainId",
                "eth_gasPrice",
                "net_version",
                "net_listening",
                "web3_clientVersion"
            ]
        );
    }
}

async fn an_empty_database_is_told_from_a_migrated_one(world: &World) {
    world.store.check_schema().await.unwrap();
    let fresh = match world.engine {
        "sqlite" => World::unmigrated_sqlite().await,
        _ => World::unmigrated_postgres().await.unwrap(),
    };
    assert!(matches!(fresh.store.check_schema().await, Err(StoreError::Schema(state)) if state.starts_with("missing")));
}

/// RL2: triggers, rules, views, row security and similar objects on our tables or in their place; and objects of ours
/// that were dropped, disabled or changed.
async fn rl2_every_difference_of_the_schema_is_named(world: &World) {
    let audit = world.audit().await;
    let none = Vec::<String>::new();
    assert_eq!(world.store.schema_differences().await.unwrap(), none);
    assert_eq!(audit.schema_differences().await.unwrap(), none);
    let function = "CREATE FUNCTION lie() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$";
    let index = "CREATE INDEX entries_kind_created_at_idx ON entries (kind, created_at)";
    let drop_index = "DROP INDEX entries_kind_created_at_idx";
    let partial = format!("{index} WHERE seq <> 4");
    let cases: &[(&[&str], &[&str], &[&str])] = if world.engine == "sqlite" {
        &[
            (
                &["CREATE TRIGGER a_after_insert BEFORE INSERT ON Checkpoints BEGIN SELECT RAISE(IGNORE); END"],
                &["trigger a_after_insert on Checkpoints (added)"],
                &["DROP TRIGGER a_after_insert"],
            ),
            (
                &["CREATE TRIGGER entries_after_insert AFTER INSERT ON entries BEGIN DELETE FROM entries; END"],
                &["trigger entries_after_insert on entries (added)"],
                &["DROP TRIGGER entries_after_insert"],
            ),
            (
                &[
                    "ALTER TABLE leases RENAME TO kept",
                    "CREATE VIEW Leases AS SELECT * FROM kept",
                ],
                &[
                    "index sqlite_autoindex_leases_1 on leases (missing)",
                    "table leases (missing)",
                    "view Leases on Leases (added)",
                ],
                &["DROP VIEW Leases", "ALTER TABLE kept RENAME TO leases"],
            ),
            // The engine still fires it.
            (
                &[
                    "CREATE TRIGGER lie AFTER INSERT ON leases BEGIN SELECT 1; END",
                    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET type = 'TRIGGER' WHERE name = 'lie'",
                ],
                &["TRIGGER lie on leases (added)"],
                &["PRAGMA writable_schema = ON; DELETE FROM sqlite_master WHERE name = 'lie'"],
            ),
            (
                &[drop_index, &partial],
                &["index entries_kind_created_at_idx on entries (changed)"],
                &[drop_index, index],
            ),
            // The planner's statistics and an operator's own table are no difference.
            (
                &["ANALYZE", "CREATE TABLE notes (id TEXT PRIMARY KEY)"],
                &[],
                &["DROP TABLE notes"],
            ),
        ]
    } else {
        &[
            (
                &[
                    function,
                    "CREATE TRIGGER entries_changed BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION lie()",
                ],
                &["function lie() (added)", "trigger entries_changed on entries (added)"],
                &["DROP FUNCTION lie CASCADE"],
            ),
            (
                &["CREATE RULE lie AS ON INSERT TO checkpoints DO INSTEAD NOTHING"],
                &["rule lie on checkpoints (added)"],
                &["DROP RULE lie ON checkpoints"],
            ),
            (
                &[
                    "ALTER TABLE entries ENABLE ROW LEVEL SECURITY",
                    "CREATE POLICY lie ON entries USING (seq <> 4)",
                ],
                &["policy lie on entries (added)", "row security of entries (added)"],
                &[
                    "ALTER TABLE entries DISABLE ROW LEVEL SECURITY",
                    "DROP POLICY lie ON entries",
                ],
            ),
            (
                &["CREATE TABLE child () INHERITS (leases)"],
                &["inheritance of leases (added)"],
                &["DROP TABLE child"],
            ),
            (
                &[
                    "CREATE FUNCTION hid(seq BIGINT) RETURNS BOOLEAN LANGUAGE sql IMMUTABLE AS 'SELECT seq <> 4'",
                    drop_index,
                    "CREATE INDEX entries_kind_created_at_idx ON entries (kind, created_at) WHERE hid(seq)",
                    "CREATE OR REPLACE FUNCTION hid(seq BIGINT) RETURNS BOOLEAN LANGUAGE sql IMMUTABLE AS \
                     'SELECT true'",
                ],
                &[
                    "function hid(seq bigint) (added)",
                    "index entries_kind_created_at_idx on entries (changed)",
                ],
                &["DROP FUNCTION hid CASCADE", index],
            ),
            (
                &["ALTER TABLE entries SET UNLOGGED"],
                &["table entries (changed)"],
                &["ALTER TABLE entries SET LOGGED"],
            ),
            (
                &[
                    "ALTER TABLE entries DROP CONSTRAINT entries_chain_id_seq_key",
                    "CREATE INDEX entries_chain_id_seq_key ON entries (chain_id, seq)",
                ],
                &[
                    "constraint entries.entries_chain_id_seq_key (missing)",
                    "index entries_chain_id_seq_key on entries (changed)",
                ],
                &[
                    "DROP INDEX entries_chain_id_seq_key",
                    "ALTER TABLE entries ADD CONSTRAINT entries_chain_id_seq_key UNIQUE (chain_id, seq)",
                ],
            ),
            (
                &[
                    "ALTER TABLE leases RENAME TO kept",
                    "CREATE VIEW leases AS SELECT * FROM kept",
                ],
                &[
                    "column leases.holder (missing)",
                    "column leases.leased_until (missing)",
                    "column leases.name (missing)",
                    "constraint leases.leases_pkey (missing)",
                    "index leases_pkey on leases (missing)",
                    "table leases (missing)",
                    "view leases (added)",
                ],
                &["DROP VIEW leases", "ALTER TABLE kept RENAME TO leases"],
            ),
            // An operator's own table is no difference.
            (&["CREATE TABLE notes (id INTEGER)"], &[], &["DROP TABLE notes"]),
        ]
    };
    for (attach, names, remove) in cases {
        for sql in *attach {
            world.tamper_audit(sql).await;
        }
        assert_eq!(audit.schema_differences().await.unwrap(), *names, "{attach:?}");
        for sql in *remove {
            world.tamper_audit(sql).await;
        }
        assert_eq!(audit.schema_differences().await.unwrap(), none, "{attach:?} is undone");
    }
}

/// RL2: the triggers of the policy tables write the change rows that the feed applies.
async fn rl2_a_changed_trigger_of_a_policy_table_is_named(world: &World) {
    let (changes, difference): (&[&str], _) = match world.engine {
        "sqlite" => (
            &["DROP TRIGGER users_after_update"],
            "trigger users_after_update on users (missing)",
        ),
        _ => (
            &["ALTER TABLE users DISABLE TRIGGER users_changed"],
            "trigger users_changed on users (changed)",
        ),
    };
    world.tamper(changes).await;
    assert_eq!(world.store.schema_differences().await.unwrap(), [difference]);
    if world.engine == "postgres" {
        let body = "CREATE OR REPLACE FUNCTION groups_changed() RETURNS TRIGGER LANGUAGE plpgsql AS \
             $$ BEGIN RETURN NULL; END $$";
        world.tamper(&[body]).await;
        assert_eq!(
            world.store.schema_differences().await.unwrap(),
            ["function groups_changed() (changed)", difference]
        );
    }
}

/// C6: a change that no instance would apply is undone, not confirmed.
async fn rl2_a_change_that_no_trigger_records_is_refused(world: &World) {
    let mut tx = world.begin().await;
    let new = NewUser {
        external_id: did("a"),
        kyc: false,
        auth_tenant_id: None,
        groups: Vec::new(),
    };
    let user = tx.create_user(new).await.unwrap();
    tx.commit().await.unwrap();
    let changes: &[&str] = match world.engine {
        "sqlite" => &["DROP TRIGGER users_after_update"],
        _ => &["ALTER TABLE users DISABLE TRIGGER users_changed"],
    };
    world.tamper(changes).await;
    let mut tx = world.begin().await;
    let ban = UserPatch {
        banned: Some(true),
        ..UserPatch::default()
    };
    tx.update_user(user.id, ban).await.unwrap();
    let refused = tx.commit().await.unwrap_err();
    assert!(matches!(refused, StoreError::ChangeUnrecorded("users")), "{refused:?}");
    assert!(refused.is_unavailable());
    let user = world.store.read().find_user(user.id).await.unwrap().unwrap();
    assert!(!user.banned, "undone");
    assert_eq!(world.store.take_outbox_alarms(), [OutboxAlarm::Unrecorded("users")]);
}

/// RL2: a connection does not follow a search path that somebody set for the database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl2_the_search_path_of_the_database_hides_nothing() {
    let Some(world) = World::postgres().await else { return };
    let name = &world.texts("SELECT current_database()::TEXT AS name", "name").await[0];
    world
        .tamper(&[
            "CREATE SCHEMA evil",
            "CREATE VIEW evil.pg_class AS SELECT * FROM pg_catalog.pg_class WHERE relname <> 'users'",
            "CREATE VIEW evil.pg_trigger AS SELECT * FROM pg_catalog.pg_trigger WHERE tgname <> 'lie'",
            "CREATE TABLE evil.users (id UUID)",
            &format!("ALTER DATABASE \"{name}\" SET search_path = evil, public, pg_catalog"),
            &format!("ALTER DATABASE \"{name}\" SET synchronous_commit = off"),
            "CREATE FUNCTION lie() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN NEW.banned = false; RETURN NEW; END $$",
            "CREATE TRIGGER lie BEFORE UPDATE ON users FOR EACH ROW EXECUTE FUNCTION lie()",
        ])
        .await;
    let store = world.another_store(7).await;
    store.check_schema().await.unwrap();
    store.load().await.expect("our own tables");
    assert_eq!(
        store.schema_differences().await.unwrap(),
        ["function lie() (added)", "trigger lie on users (added)"]
    );
}

/// RL2: a schema with tables of the same names, earlier in the search path, does not stop the next start, whatever is
/// in its table of migration steps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl2_a_decoy_schema_is_not_taken_for_ours() {
    for decoy in [
        "CREATE TABLE evil.seaql_migrations (version VARCHAR, applied_at BIGINT)",
        "CREATE TABLE evil.seaql_migrations AS SELECT 'm0001_policy' AS version, 0::BIGINT AS applied_at",
        "CREATE TABLE evil.seaql_migrations (version BYTEA)",
        "CREATE VIEW evil.seaql_migrations AS SELECT * FROM public.seaql_migrations",
    ] {
        let Some(world) = World::postgres().await else { return };
        let audit = world.audit().await;
        audit.take_turn("a", "a", gw_types::Seconds(60)).await.unwrap();
        let name = &world.texts("SELECT current_database()::TEXT AS name", "name").await[0];
        world
            .tamper(&[
                "CREATE SCHEMA evil",
                decoy,
                "CREATE TABLE evil.users (id UUID)",
                "CREATE TABLE evil.policy_epoch (id BIGINT)",
                &format!("ALTER DATABASE \"{name}\" SET search_path = evil, public"),
            ])
            .await;
        let store = world.another_store(7).await;
        store
            .check_schema()
            .await
            .unwrap_or_else(|error| panic!("{decoy}: {error}"));
        store.migrate().await.expect("nothing is pending");
        store.load().await.expect("our own tables");
        assert_eq!(store.schema_differences().await.unwrap(), Vec::<String>::new());
    }
}

/// RL14: a database or role whose transactions are read-only by default refuses nothing: each session says that it
/// writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl14_a_default_of_read_only_transactions_refuses_no_write() {
    let Some(world) = World::unmigrated_postgres().await else {
        return;
    };
    let read_only = "DO $$ BEGIN EXECUTE pg_catalog.format('ALTER DATABASE %I SET default_transaction_read_only = on', \
         pg_catalog.current_database()); END $$";
    world.tamper(&[read_only]).await;
    world.tamper_audit(read_only).await;
    let store = world.another_store(7).await;
    store.migrate().await.unwrap();
    let mut tx = store.begin(&Actor::named(Actor::SUPER_ADMIN)).await.unwrap();
    let new = NewUser {
        external_id: did("a"),
        kyc: false,
        auth_tenant_id: None,
        groups: Vec::new(),
    };
    tx.create_user(new).await.unwrap();
    tx.commit().await.unwrap();
    // The audit store writes single statements, too.
    let audit = world.audit().await;
    assert!(audit.take_turn("a", "a", gw_types::Seconds(60)).await.unwrap());
}

/// RL2: an index can lack rows although its definition is right, and a connection can keep a former definition.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl2_an_index_that_lacks_rows_is_a_fault() {
    let world = World::sqlite().await;
    let audit = world.audit().await;
    for holder in ["a", "b"] {
        assert!(audit.take_turn(holder, holder, gw_types::Seconds(60)).await.unwrap());
    }
    let limit = Duration::from_secs(60);
    assert_eq!(audit.check_indexes(limit).await.unwrap(), IndexCheck::Sound);
    let create = "CREATE INDEX entries_kind_created_at_idx ON entries (kind, created_at)";
    let insert = "INSERT INTO chains (id, stream, shard, fence, holder, leased_until, issued, size, head_hash, \
         head_time) VALUES (1, 'admin', x'00', 0, '', 0, 0, 0, x'00', 0)";
    let entry = "INSERT INTO entries (chain_id, seq, hash, bytes, openings, kind, created_at) \
         VALUES (1, 4, x'00', x'00', x'00', 'admin', 1)";
    for sql in [
        insert,
        entry,
        "DROP INDEX entries_kind_created_at_idx",
        "CREATE INDEX entries_kind_created_at_idx ON entries (kind, created_at) WHERE seq <> 4",
        &format!(
            "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = '{create}' \
             WHERE name = 'entries_kind_created_at_idx'"
        ),
    ] {
        world.tamper_audit(sql).await;
    }
    assert_eq!(audit.schema_differences().await.unwrap(), Vec::<String>::new());
    let IndexCheck::Faulty(faults) = audit.check_indexes(limit).await.unwrap() else {
        panic!("the index lacks a row")
    };
    assert!(
        faults.iter().any(|fault| fault.contains("entries_kind_created_at_idx")),
        "{faults:?}"
    );
}

/// RL2: an index that was marked "not ready" for a while lacks the rows written meanwhile, for ever, and the server
/// tells nobody. While it is marked, the mark is a difference of the schema; afterwards the comparison with the rows
/// finds it, and REINDEX repairs it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl2_an_index_of_postgresql_that_was_not_ready_is_a_fault() {
    let Some(world) = World::postgres().await else { return };
    let audit = world.audit().await;
    let limit = Duration::from_secs(60);
    let none = Vec::<String>::new();
    for name in ["a", "b"] {
        let mut tx = world.begin().await;
        let new = NewUser {
            external_id: did(name),
            kyc: false,
            auth_tenant_id: None,
            groups: Vec::new(),
        };
        tx.create_user(new).await.unwrap();
        tx.commit().await.unwrap();
        assert!(audit.take_turn(name, name, gw_types::Seconds(60)).await.unwrap());
    }
    assert_eq!(world.store.check_indexes(limit).await.unwrap(), IndexCheck::Sound);
    assert_eq!(audit.check_indexes(limit).await.unwrap(), IndexCheck::Sound);

    let mark = |column: &str, index: &str, value: bool| {
        format!("UPDATE pg_catalog.pg_index SET {column} = {value} WHERE indexrelid = '{index}'::regclass")
    };
    for (column, word) in [("indisvalid", "valid"), ("indisready", "ready"), ("indislive", "live")] {
        world.tamper(&[&mark(column, "users_external_id_key", false)]).await;
        assert_eq!(
            world.store.schema_differences().await.unwrap(),
            ["index users_external_id_key on users (changed)"],
            "not {word}"
        );
        let IndexCheck::Faulty(faults) = world.store.check_indexes(limit).await.unwrap() else {
            panic!("an index that is not {word}")
        };
        assert!(faults[0].contains("REINDEX INDEX users_external_id_key"), "{faults:?}");
        world.tamper(&[&mark(column, "users_external_id_key", true)]).await;
        assert_eq!(world.store.schema_differences().await.unwrap(), none);
    }

    // Nobody notices the row that the index lacks, until the rows are compared.
    let index = "leases_pkey";
    world.tamper_audit(&mark("indisready", index, false)).await;
    world
        .tamper_audit("INSERT INTO leases (name, holder, leased_until) VALUES ('c', 'c', 0)")
        .await;
    world.tamper_audit(&mark("indisready", index, true)).await;
    assert_eq!(audit.schema_differences().await.unwrap(), none);
    assert_eq!(
        audit.check_indexes(limit).await.unwrap(),
        IndexCheck::Faulty(vec![format!(
            "index {index} of table leases has 2 of 3 rows (repair: REINDEX INDEX {index})"
        )])
    );
    world.tamper_audit(&format!("REINDEX INDEX {index}")).await;
    assert_eq!(audit.check_indexes(limit).await.unwrap(), IndexCheck::Sound);
    // A rebuild without locks leaves nothing behind, either.
    world.tamper_audit(&format!("REINDEX INDEX CONCURRENTLY {index}")).await;
    assert_eq!(audit.schema_differences().await.unwrap(), none);
    assert_eq!(audit.check_indexes(limit).await.unwrap(), IndexCheck::Sound);
}
