//! The schema: equal to the golden file of each engine, seeded, forward only.

use crate::world::{World, on_both_engines};
use gw_policy::snapshot::{Group, Organization};
use gw_store::StoreError;

on_both_engines! {
    the_schema_is_the_golden_one,
    a2_a6_the_fixed_rows_are_seeded_once,
    an_empty_database_is_told_from_a_migrated_one,
    rl2_what_no_migration_made_is_named,
}

async fn the_schema_is_the_golden_one(world: &World) {
    assert_golden(world.engine, &world.store.schema().await.unwrap());
}

pub(crate) fn assert_golden(name: &str, schema: &str) {
    let path = format!("{}/tests/it/golden/{name}.txt", env!("CARGO_MANIFEST_DIR"));
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

/// RL2: triggers, rules, views, row security and similar objects on our tables or in their place.
async fn rl2_what_no_migration_made_is_named(world: &World) {
    let audit = world.audit().await;
    assert_eq!(world.store.foreign_objects().await.unwrap(), Vec::<String>::new());
    assert_eq!(audit.foreign_objects().await.unwrap(), Vec::<String>::new());
    let function = "CREATE FUNCTION lie() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$";
    let cases: &[(&[&str], &str, &[&str])] = if world.engine == "sqlite" {
        &[
            (
                &["CREATE TRIGGER a_after_insert BEFORE INSERT ON Checkpoints BEGIN SELECT RAISE(IGNORE); END"],
                "trigger a_after_insert on Checkpoints",
                &["DROP TRIGGER a_after_insert"],
            ),
            (
                &["CREATE TRIGGER entries_after_insert AFTER INSERT ON entries BEGIN DELETE FROM entries; END"],
                "trigger entries_after_insert on entries",
                &["DROP TRIGGER entries_after_insert"],
            ),
            (
                &[
                    "ALTER TABLE entries RENAME TO kept",
                    "CREATE VIEW Entries AS SELECT * FROM kept",
                ],
                "view Entries",
                &["DROP VIEW Entries", "ALTER TABLE kept RENAME TO entries"],
            ),
        ]
    } else {
        &[
            (
                &[
                    function,
                    "CREATE TRIGGER entries_changed BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION lie()",
                ],
                "trigger entries_changed on entries",
                &["DROP FUNCTION lie CASCADE"],
            ),
            (
                &["CREATE RULE lie AS ON INSERT TO checkpoints DO INSTEAD NOTHING"],
                "rule lie on checkpoints",
                &["DROP RULE lie ON checkpoints"],
            ),
            (
                &["ALTER TABLE entries ENABLE ROW LEVEL SECURITY"],
                "row security of entries",
                &["ALTER TABLE entries DISABLE ROW LEVEL SECURITY"],
            ),
            (
                &["CREATE TABLE child () INHERITS (leases)"],
                "inheritance of leases",
                &["DROP TABLE child"],
            ),
            (
                &[
                    "ALTER TABLE entries RENAME TO kept",
                    "CREATE VIEW entries AS SELECT * FROM kept",
                ],
                "view entries",
                &["DROP VIEW entries", "ALTER TABLE kept RENAME TO entries"],
            ),
        ]
    };
    for (attach, name, remove) in cases {
        for sql in *attach {
            world.tamper_audit(sql).await;
        }
        assert_eq!(audit.foreign_objects().await.unwrap(), [*name]);
        for sql in *remove {
            world.tamper_audit(sql).await;
        }
        assert_eq!(
            audit.foreign_objects().await.unwrap(),
            Vec::<String>::new(),
            "{name} is gone"
        );
    }
    if world.engine == "sqlite" {
        world
            .tamper(&["CREATE TRIGGER copy AFTER INSERT ON audit_outbox BEGIN SELECT 1; END"])
            .await;
    } else {
        let copy = "CREATE TRIGGER copy AFTER INSERT ON audit_outbox FOR EACH ROW EXECUTE FUNCTION lie()";
        world.tamper(&[function, copy]).await;
    }
    assert_eq!(
        world.store.foreign_objects().await.unwrap(),
        ["trigger copy on audit_outbox"]
    );
}
