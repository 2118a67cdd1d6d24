use crate::world::{config, did};
use gw_store::{Actor, Location, Store, record::NewUser};
use gw_testkit::postgres;
use gw_types::{Secret, testing::ManualClock};
use sea_orm::{ConnectionTrait, Database, DbBackend, Statement};
use std::{collections::BTreeSet, sync::Arc, time::Duration};

/// The server's processes for the connections of the gateway.
async fn processes(url: &str) -> BTreeSet<i32> {
    let db = Database::connect(url).await.unwrap();
    let sql = "SELECT pid FROM pg_stat_activity \
               WHERE datname = current_database() AND application_name = 'ledger-gateway'";
    let rows = db
        .query_all_raw(Statement::from_string(DbBackend::Postgres, sql))
        .await
        .unwrap();
    rows.iter().map(|row| row.try_get_by_index(0).unwrap()).collect()
}

async fn add(store: &Store, name: &str) {
    let mut tx = store.begin(&Actor::system()).await.unwrap();
    let user = NewUser {
        external_id: did(name),
        kyc: false,
        auth_tenant_id: None,
        groups: Vec::new(),
    };
    tx.create_user(user).await.unwrap();
    tx.commit().await.unwrap();
}

/// DB_CONN_MAX_LIFETIME: a connection beyond its lifetime is closed instead of kept for the next use, so that a changed
/// address of the server is noticed.
#[tokio::test]
async fn an_old_connection_is_closed_and_a_young_one_is_kept() {
    for (lifetime, is_kept) in [(Duration::from_millis(1), false), (Duration::from_secs(3600), true)] {
        let Some(database) = postgres::database().unwrap() else {
            return;
        };
        let location = Location::postgres(Secret::new(database.url.clone()))
            .patient()
            .with_lifetime(lifetime);
        let store = Store::open(config(&location, &Arc::new(ManualClock::default()), 1))
            .await
            .unwrap();
        store.migrate().await.unwrap();
        add(&store, "first").await;
        // The server takes a moment to end its process.
        let closed = async {
            while !processes(&database.url).await.is_empty() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let wait = if is_kept {
            Duration::from_secs(1)
        } else {
            Duration::from_secs(30)
        };
        assert_eq!(tokio::time::timeout(wait, closed).await.is_err(), is_kept);
        add(&store, "second").await;
    }
}
