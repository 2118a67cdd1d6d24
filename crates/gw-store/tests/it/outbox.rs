//! spec/70 rules 13, 15 and 18: waiting outbox rows are sealed as written, whatever happens to either database.

use crate::{
    audit::ALL,
    world::{World, did, on_both_engines},
};
use gw_audit::{ChainId, EncodedRecord, ErasureRecord, OutboxFault, Record, ShardId, StoreId, Stream};
use gw_store::{
    Actor, Store, StoreError,
    audit::{AuditFilter, OutboxAlarm, OutboxEntry},
    read::Scope,
    record::{NewOrganization, NewUser},
};
use gw_types::{Clock, Seconds};
use sea_orm::ConnectionTrait as _;
use std::time::Duration;
use uuid::Uuid;

on_both_engines! {
    rl9_ids_have_no_gap_whatever_was_rolled_back,
    rl9_a_changed_or_forged_row_is_told,
    rl9_a_row_that_cannot_be_read_holds_up_no_other,
    rl6_a_row_becomes_the_same_entry_again,
    rl3_ids_go_on_behind_what_was_sealed,
    hd25_numbers_of_journals_are_noted_in_a_second_place,
    rl6_the_newest_signed_head_stays,
    rl9_a_row_exchanged_on_its_way_undoes_its_mutation,
    rl9_a_row_removed_on_its_way_undoes_its_mutation,
    rl9_a_row_exchanged_by_the_commit_itself_is_told,
    rl9_the_writer_looks_after_its_rows_until_they_are_sealed,
    rl3_ids_go_on_above_every_known_one_whatever_the_counter_says,
    rl10_a_malformed_row_that_waits_does_not_take_the_page,
    rl14_a_mutation_does_not_wait_long_for_a_lock,
    rl14_an_epoch_that_nobody_gave_refuses_changes_as_unavailable,
    rl14_a_missing_epoch_refuses_changes_as_unavailable,
    rl3_a_missing_row_of_policy_store_refuses_changes_as_unavailable,
    rl10_a_malformed_number_of_a_journal_hides_no_other,
}

/// Returns the statements that create a malicious trigger on either engine.
fn trigger(world: &World, when: &str, sqlite: &str, postgres: &str) -> Vec<String> {
    match world.engine {
        "sqlite" => vec![format!(
            "CREATE TRIGGER evil AFTER INSERT ON audit_outbox BEGIN {sqlite}; END"
        )],
        _ => vec![
            format!("CREATE FUNCTION evil() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN {postgres}; END $$"),
            format!(
                "CREATE {when} ON audit_outbox {} FOR EACH ROW EXECUTE FUNCTION evil()",
                if when.contains("CONSTRAINT") {
                    "DEFERRABLE INITIALLY DEFERRED"
                } else {
                    ""
                }
            ),
        ],
    }
}

async fn tamper(world: &World, statements: &[String]) {
    world
        .tamper(&statements.iter().map(String::as_str).collect::<Vec<_>>())
        .await;
}

const EVERY_COLUMN: &str = "action, actor_id, actor_external_id, created_at, ip_address, org_id, resource_id, \
     resource_name, resource_type, old_value, new_value, correlation_id, salt_seed, mac";

/// Stores a genuine row with id 1, whose mutation is undone, in a separate table.
async fn capture(world: &World) {
    organization(world, "benign").await;
    world
        .tamper(&[
            "CREATE TABLE kept AS SELECT * FROM audit_outbox",
            "DELETE FROM audit_outbox",
            "DELETE FROM organizations WHERE slug = 'benign'",
            "UPDATE policy_store SET last_outbox_id = 0",
        ])
        .await;
}

async fn commit_error(world: &World, slug: &str) -> StoreError {
    let mut tx = world.begin().await;
    tx.create_organization(NewOrganization {
        slug: slug.into(),
        ..Default::default()
    })
    .await
    .unwrap();
    tx.commit().await.unwrap_err()
}

async fn exists(world: &World, slug: &str) -> bool {
    let sql = format!("SELECT COUNT(*) AS n FROM organizations WHERE slug = '{slug}'");
    world.rows(&sql, "n").await == [1]
}

/// The code of a rolled-back mutation is genuine for the id that the next mutation gets.
async fn rl9_a_row_exchanged_on_its_way_undoes_its_mutation(world: &World) {
    capture(world).await;
    let update =
        format!("UPDATE audit_outbox SET ({EVERY_COLUMN}) = (SELECT {EVERY_COLUMN} FROM kept) WHERE id = NEW.id");
    tamper(
        world,
        &trigger(
            world,
            "TRIGGER evil BEFORE INSERT",
            &update,
            "SELECT * INTO NEW FROM kept; RETURN NEW",
        ),
    )
    .await;
    for _ in 0..2 {
        let error = commit_error(world, "hidden").await;
        assert!(
            matches!(error, StoreError::EntryAltered) && error.is_unavailable(),
            "{error:?}"
        );
    }
    assert!(
        !exists(world, "hidden").await && waiting(world).await.is_empty(),
        "no change without its entry"
    );
    assert_eq!(world.store.take_outbox_alarms(), [OutboxAlarm::Altered(1)], "told once");
    let drop = if world.engine == "sqlite" {
        "DROP TRIGGER evil"
    } else {
        "DROP TRIGGER evil ON audit_outbox"
    };
    world.tamper(&[drop]).await;
    organization(world, "afterwards").await;
    assert_eq!(waiting(world).await.len(), 1);
}

async fn rl9_a_row_removed_on_its_way_undoes_its_mutation(world: &World) {
    organization(world, "one").await;
    let remove = "DELETE FROM audit_outbox WHERE id = NEW.id; UPDATE policy_store SET last_outbox_id = NEW.id - 1";
    tamper(
        world,
        &trigger(
            world,
            "TRIGGER evil AFTER INSERT",
            remove,
            &format!("{remove}; RETURN NULL"),
        ),
    )
    .await;
    assert!(matches!(commit_error(world, "hidden").await, StoreError::EntryAltered));
    assert!(!exists(world, "hidden").await);
    assert_eq!(world.store.take_outbox_alarms(), [OutboxAlarm::Altered(2)]);
}

/// A deferred trigger runs during the commit, so only a check afterwards can detect it.
async fn rl9_a_row_exchanged_by_the_commit_itself_is_told(world: &World) {
    if world.engine == "sqlite" {
        return;
    }
    organization(world, "one").await;
    let remove = "DELETE FROM audit_outbox WHERE id = NEW.id; RETURN NULL";
    tamper(
        world,
        &trigger(world, "CONSTRAINT TRIGGER evil AFTER INSERT", "", remove),
    )
    .await;
    let error = commit_error(world, "hidden").await;
    assert!(matches!(error, StoreError::Unconfirmed(_)), "{error:?}");
    assert!(exists(world, "hidden").await);
    assert_eq!(world.store.take_outbox_alarms(), [OutboxAlarm::Lost(2)]);
}

/// Any instance may seal the rows, as it accepts any row with a genuine code.
async fn rl9_the_writer_looks_after_its_rows_until_they_are_sealed(world: &World) {
    for slug in ["one", "two", "three"] {
        organization(world, slug).await;
    }
    world.store.check_committed_rows().await.unwrap();
    assert_eq!(world.store.take_outbox_alarms(), []);
    world.store.mark_outbox_sealed(&[1]).await.unwrap();
    world
        .tamper(&[
            "UPDATE audit_outbox SET mac = (SELECT mac FROM audit_outbox WHERE id = 1) WHERE id = 2",
            "DELETE FROM audit_outbox WHERE id = 3",
        ])
        .await;
    world.store.check_committed_rows().await.unwrap();
    assert_eq!(
        world.store.take_outbox_alarms(),
        [OutboxAlarm::Lost(2), OutboxAlarm::Lost(3)]
    );
    world.tamper(&["DELETE FROM audit_outbox"]).await;
    world.store.check_committed_rows().await.unwrap();
    assert_eq!(
        world.store.take_outbox_alarms(),
        [],
        "what was sealed is not this one's care any more"
    );
}

async fn rl3_ids_go_on_above_every_known_one_whatever_the_counter_says(world: &World) {
    for slug in ["one", "two", "three"] {
        organization(world, slug).await;
    }
    world
        .tamper(&[
            "UPDATE policy_store SET last_outbox_id = 0",
            // No mutation was given these ids: one is the next id, the other the maximum.
            "INSERT INTO audit_outbox (id, action, actor_external_id, created_at, resource_type) \
             VALUES (5, 'delete', 'did:test:nobody', 1, 'user'), \
             (9223372036854775807, 'delete', 'did:test:nobody', 1, 'user')",
        ])
        .await;
    organization(world, "four").await;
    assert_eq!(
        world.store.take_outbox_alarms(),
        [OutboxAlarm::Lowered { stored: 0, known: 3 }]
    );
    organization(world, "five").await;
    world
        .tamper(&["UPDATE policy_store SET last_outbox_id = 9223372036854775807"])
        .await;
    organization(world, "six").await;
    let genuine = waiting(world)
        .await
        .into_iter()
        .filter(|row| row.entry.outbox_fault.is_none());
    assert_eq!(genuine.map(|row| row.id).collect::<Vec<_>>(), [1, 2, 3, 4, 6, 7]);
}

async fn rl10_a_malformed_row_that_waits_does_not_take_the_page(world: &World) {
    for slug in ["one", "two", "three"] {
        organization(world, slug).await;
    }
    let change = match world.engine {
        "sqlite" => "UPDATE audit_outbox SET created_at = 'yesterday' WHERE id = 2",
        _ => "UPDATE audit_outbox SET action = 'never heard of' WHERE id = 2",
    };
    world.tamper(&[change]).await;
    let audit = world.audit().await;
    let page = audit
        .list_audit_logs(&world.store, &AuditFilter::all(Scope::All), ALL)
        .await
        .unwrap();
    let faults: Vec<_> = page
        .rows
        .into_iter()
        .map(|row| row.entry().unwrap().entry.outbox_fault)
        .collect();
    assert_eq!(faults, [None, Some(OutboxFault::Unauthenticated), None]);
}

/// RL14. The lock is held until the mutation has returned.
async fn rl14_a_mutation_does_not_wait_long_for_a_lock(world: &World) {
    let locks: &[&str] = match world.engine {
        "sqlite" => &["BEGIN IMMEDIATE"],
        _ => &[
            "BEGIN; SELECT epoch FROM policy_epoch FOR UPDATE",
            "BEGIN; LOCK TABLE audit_outbox IN ACCESS EXCLUSIVE MODE",
            "BEGIN; LOCK TABLE organizations IN ACCESS EXCLUSIVE MODE",
        ],
    };
    for lock in locks {
        let other = world.connection().await;
        for sql in lock.split("; ") {
            other.execute_unprepared(sql).await.unwrap();
        }
        let mutate = async |store: Store, n: usize| {
            let mut tx = store.begin(&Actor::system()).await?;
            tx.create_organization(NewOrganization {
                slug: format!("late{n}"),
                ..Default::default()
            })
            .await?;
            tx.commit().await
        };
        // Queued mutations do not each time out one after another.
        let mut mutations = tokio::task::JoinSet::new();
        (0..20).for_each(|n| drop(mutations.spawn(mutate(world.store.clone(), n))));
        let answers = tokio::time::timeout(SOON, mutations.join_all());
        let answers = answers.await.expect("answers while the lock stands");
        for answer in answers {
            assert!(
                answer.as_ref().is_err_and(StoreError::is_unavailable),
                "{lock}: {answer:?}"
            );
        }
        assert!(!world.store.takes_writes(), "readiness is told");
        if world.engine == "sqlite" {
            // Connections opened meanwhile need no lock.
            let another = world.another_store(5).await;
            let reads = (0..4).map(|_| {
                let another = another.clone();
                tokio::spawn(async move { another.load().await.map(drop) })
            });
            for read in reads.collect::<Vec<_>>() {
                read.await.unwrap().expect("readers do not wait for who writes");
            }
        }
        other.execute_unprepared("ROLLBACK").await.unwrap();
        organization(world, &format!("then{}", lock.len())).await;
        assert!(world.store.takes_writes());
    }
}

/// Much shorter than the ordinary lock timeouts of sessions and files.
const SOON: Duration = Duration::from_secs(8);

async fn organization(world: &World, slug: &str) {
    let mut tx = world.begin().await;
    tx.create_organization(NewOrganization {
        slug: slug.into(),
        ..Default::default()
    })
    .await
    .unwrap();
    tx.commit().await.unwrap();
}

async fn waiting(world: &World) -> Vec<OutboxEntry> {
    world.store.outbox(0, 1000).await.unwrap()
}

async fn rl9_ids_have_no_gap_whatever_was_rolled_back(world: &World) {
    organization(world, "one").await;
    let mut tx = world.begin().await;
    tx.create_organization(NewOrganization {
        slug: "two".into(),
        ..Default::default()
    })
    .await
    .unwrap();
    tx.rollback().await.unwrap();
    let mut tx = world.begin().await;
    tx.create_organization(NewOrganization {
        slug: "three".into(),
        ..Default::default()
    })
    .await
    .unwrap();
    drop(tx);
    let mut tx = world.begin().await;
    for n in 0..3 {
        let new = NewUser {
            external_id: did(&format!("u{n}")),
            kyc: false,
            auth_tenant_id: None,
            groups: Vec::new(),
        };
        tx.create_user(new).await.unwrap();
    }
    tx.commit().await.unwrap();
    let mark = world.store.outbox_mark().await.unwrap();
    let rows = waiting(world).await;
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(mark.last_id, 4);
    for row in rows {
        let origin = (row.entry.store_id, row.entry.outbox_id, row.entry.outbox_fault);
        assert_eq!(origin, (Some(mark.store), u64::try_from(row.id).ok(), None));
    }
}

async fn rl9_a_changed_or_forged_row_is_told(world: &World) {
    for slug in ["one", "two", "three", "four", "five"] {
        organization(world, slug).await;
    }
    world
        .tamper(&[
            "UPDATE audit_outbox SET actor_external_id = 'did:test:somebody' WHERE id = 1",
            "UPDATE audit_outbox SET created_at = created_at + 1 WHERE id = 2",
            // A forged row with a future id and the code of another row.
            "INSERT INTO audit_outbox (id, action, actor_external_id, created_at, resource_type, salt_seed, mac) \
             SELECT 6, action, actor_external_id, created_at, resource_type, salt_seed, mac FROM audit_outbox WHERE id \
             = 3",
            "UPDATE audit_outbox SET mac = NULL WHERE id = 4",
        ])
        .await;
    let faults: Vec<_> = waiting(world)
        .await
        .into_iter()
        .map(|row| (row.id, row.entry.outbox_fault))
        .collect();
    let bad = Some(OutboxFault::Unauthenticated);
    assert_eq!(faults, [(1, bad), (2, bad), (3, None), (4, bad), (5, None), (6, bad)]);
}

async fn rl9_a_row_that_cannot_be_read_holds_up_no_other(world: &World) {
    for slug in ["one", "two", "three"] {
        organization(world, slug).await;
    }
    let mut changes = vec!["UPDATE audit_outbox SET action = 'never heard of' WHERE id = 2"];
    if world.engine == "sqlite" {
        // A value of another type than the column's: only SQLite takes it.
        changes.push("UPDATE audit_outbox SET created_at = 'yesterday' WHERE id = 3");
    }
    world.tamper(&changes).await;
    let rows = waiting(world).await;
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(rows[0].entry.outbox_fault, None);
    for row in &rows[1..=changes.len()] {
        assert_eq!(row.entry.outbox_fault, Some(OutboxFault::Unauthenticated));
        assert_eq!(row.entry.outbox_id, u64::try_from(row.id).ok(), "it is told which one");
    }
}

/// Entries that a restored audit store lost are sealed again with the same bytes and openings, so signatures stay
/// valid.
async fn rl6_a_row_becomes_the_same_entry_again(world: &World) {
    organization(world, "one").await;
    let draft = |row: OutboxEntry| EncodedRecord::new(&Record::Admin(row.entry), &row.salts);
    let first = waiting(world).await.remove(0);
    let id = first.id;
    let before = draft(first);
    world.store.mark_outbox_sealed(&[id]).await.unwrap();
    assert!(waiting(world).await.is_empty());
    let kept = world.store.kept_outbox(0, 10).await.unwrap();
    assert_eq!(kept.iter().map(|row| row.id).collect::<Vec<_>>(), [id]);
    world.store.reopen_outbox(&[id]).await.unwrap();
    let again = draft(waiting(world).await.remove(0));
    assert!(!before.openings().is_empty());
    assert_eq!(before.openings(), again.openings());

    world.store.mark_outbox_sealed(&[id]).await.unwrap();
    world.clock.pass(10);
    assert_eq!(
        world
            .store
            .forget_outbox(world.clock.now().minus(Seconds(11)))
            .await
            .unwrap(),
        0
    );
    assert_eq!(world.store.forget_outbox(world.clock.now()).await.unwrap(), 1);
}

async fn rl3_ids_go_on_behind_what_was_sealed(world: &World) {
    organization(world, "one").await;
    world.store.raise_outbox_ids(40).await.unwrap();
    organization(world, "two").await;
    world.store.raise_outbox_ids(7).await.unwrap();
    organization(world, "three").await;
    assert_eq!(
        waiting(world).await.iter().map(|row| row.id).collect::<Vec<_>>(),
        [1, 41, 42]
    );
}

async fn hd25_numbers_of_journals_are_noted_in_a_second_place(world: &World) {
    let chain = |shard, stream| ChainId {
        stream,
        shard: ShardId(Uuid::from_u128(shard)),
    };
    let (access, security) = (chain(1, Stream::Access), chain(1, Stream::Security));
    for (chain, issued) in [(access, 7), (security, 2), (access, 9), (access, 8)] {
        world.store.note_journal_head(chain, issued).await.unwrap();
    }
    let heads = world.store.journal_heads().await.unwrap();
    assert_eq!(
        heads.iter().map(|head| (head.chain, head.issued)).collect::<Vec<_>>(),
        [(access, 9), (security, 2)]
    );
    assert!(heads.iter().all(|head| head.reported_at.is_none()));
    assert!(world.store.claim_loss_report(access).await.unwrap());
    assert!(
        !world.store.claim_loss_report(access).await.unwrap(),
        "one instance reports it"
    );
    assert!(!world.store.claim_loss_report(chain(2, Stream::Access)).await.unwrap());
}

async fn rl6_the_newest_signed_head_stays(world: &World) {
    for (size, note) in [(5, "five"), (9, "nine"), (7, "seven")] {
        world
            .store
            .keep_signed_head("cluster/admin/0", size, note)
            .await
            .unwrap();
    }
    world.store.keep_signed_head("cluster/chains", 1, "list").await.unwrap();
    assert_eq!(world.store.signed_heads().await.unwrap(), ["nine", "list"]);
    let _: StoreId = world.store.outbox_mark().await.unwrap().store;
}

async fn rl14_an_epoch_that_nobody_gave_refuses_changes_as_unavailable(world: &World) {
    organization(world, "one").await;
    world
        .tamper(&["UPDATE policy_epoch SET epoch = 9223372036854775807"])
        .await;
    let error = world
        .store
        .begin(&Actor::system())
        .await
        .expect_err("nothing can be changed");
    assert!(error.is_unavailable() && !world.store.takes_writes(), "{error:?}");
    // The repair statement from the log line.
    world
        .tamper(&[
            "UPDATE policy_epoch SET epoch = (SELECT max(epoch) FROM policy_history WHERE epoch < 9007199254740992)",
        ])
        .await;
    organization(world, "two").await;
    assert!(world.store.takes_writes());
}

async fn rl14_a_missing_epoch_refuses_changes_as_unavailable(world: &World) {
    organization(world, "one").await;
    world.tamper(&["DELETE FROM policy_epoch"]).await;
    let error = world
        .store
        .begin(&Actor::system())
        .await
        .expect_err("nothing can be changed");
    assert!(error.is_unavailable() && !world.store.takes_writes(), "{error:?}");
    // The repair statement from the log line.
    world
        .tamper(&["INSERT INTO policy_epoch (id, epoch) SELECT 1, max(epoch) FROM policy_history"])
        .await;
    organization(world, "two").await;
    assert!(world.store.takes_writes());
}

async fn rl3_a_missing_row_of_policy_store_refuses_changes_as_unavailable(world: &World) {
    organization(world, "one").await;
    let chain = ChainId {
        stream: Stream::Access,
        shard: ShardId(Uuid::from_u128(1)),
    };
    let erasure = ErasureRecord::for_entries(chain, [1], "test").pop().expect("a record");
    world
        .tamper(&[
            "CREATE TABLE kept AS SELECT * FROM policy_store",
            "DELETE FROM policy_store",
        ])
        .await;
    let mut tx = world.begin().await;
    tx.note_erasure(&erasure);
    let error = tx.commit().await.expect_err("nothing can be recorded");
    assert!(
        matches!(error, StoreError::PolicyStoreRow) && error.is_unavailable(),
        "{error:?}"
    );
    assert!(!world.store.takes_writes(), "readiness is told");
    let schema = world.store.check_schema().await;
    assert!(matches!(schema, Err(StoreError::PolicyStoreRow)), "{schema:?}");
    world.tamper(&["INSERT INTO policy_store SELECT * FROM kept"]).await;
    organization(world, "two").await;
    assert!(world.store.takes_writes());
    // A record of an erasure counts while it waits, unless its row was changed.
    let mut tx = world.begin().await;
    tx.note_erasure(&erasure);
    tx.commit().await.expect("committed");
    assert_eq!(world.store.waiting_erasures().await.expect("read").len(), 1);
    world
        .tamper(&["UPDATE audit_outbox SET resource_id = 'another' WHERE resource_type = 'audit'"])
        .await;
    assert_eq!(world.store.waiting_erasures().await.expect("read"), []);
}

async fn rl10_a_malformed_number_of_a_journal_hides_no_other(world: &World) {
    let chain = |shard| ChainId {
        stream: Stream::Access,
        shard: ShardId(Uuid::from_u128(shard)),
    };
    for shard in [1, 2, 3] {
        world.store.note_journal_head(chain(shard), 7).await.unwrap();
    }
    let mut changes = vec!["UPDATE journal_heads SET issued = -5 WHERE noted_at = 1"];
    changes.insert(
        0,
        "UPDATE journal_heads SET noted_at = 1 WHERE shard = (SELECT min(shard::text)::uuid FROM journal_heads)",
    );
    if world.engine == "sqlite" {
        changes[0] = "UPDATE journal_heads SET noted_at = 1 WHERE shard = (SELECT min(shard) FROM journal_heads)";
        changes.push("UPDATE journal_heads SET issued = 'many' WHERE shard = (SELECT max(shard) FROM journal_heads)");
    }
    world.tamper(&changes).await;
    let heads = world.store.journal_heads().await.unwrap();
    let left: Vec<_> = heads.iter().map(|head| head.chain).collect();
    let expected = if world.engine == "sqlite" {
        vec![chain(2)]
    } else {
        vec![chain(2), chain(3)]
    };
    assert_eq!(left, expected);
    world.store.note_journal_head(chain(1), 8).await.unwrap();
    assert_eq!(
        world.store.journal_heads().await.unwrap()[0].issued,
        8,
        "its writer puts it right"
    );
}
