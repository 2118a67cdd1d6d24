//! The schema: golden per engine, seeded, forward only.

use crate::world::{World, on_both_engines};
use gw_policy::snapshot::{Group, Organization};
use gw_store::StoreError;

on_both_engines! {
    the_schema_is_the_golden_one,
    a2_a6_the_fixed_rows_are_seeded_once,
    an_empty_database_is_told_from_a_migrated_one,
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
    for (org, group) in [(Organization::DEFAULT, Group::DEFAULT), (Organization::ANONYMOUS, Group::ANONYMOUS)] {
        assert!(snapshot.organization(org).unwrap().is_system);
        assert_eq!(snapshot.group(group).unwrap().org, org);
        let access = snapshot.access(group).unwrap();
        assert!(access.claims.is_empty());
        let granted: Vec<_> =
            gw_evm::Method::ALL.iter().filter(|m| access.methods.has(**m)).map(|m| m.as_str()).collect();
        assert_eq!(
            granted,
            ["eth_blockNumber", "eth_chainId", "eth_gasPrice", "net_version", "net_listening", "web3_clientVersion"]
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
