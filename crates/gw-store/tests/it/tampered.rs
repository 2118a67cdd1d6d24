//! RL10: rows changed past the gateway are shown as tampered, never with the values of their columns; values are erased
//! only with a record.

use crate::{
    audit::{ALL, HERE, call, seal_outbox, writer},
    world::{World, did, on_both_engines},
};
use gw_audit::{AccessRecord, Content, Entry, ErasureRecord, Erasures, Record, ResourceType, Stream, erasures};
use gw_store::{
    audit::{AccessFilter, AuditFilter, LogRow, TamperedRead},
    read::Scope,
    record::{HoldScope, Holds, NewOrganization, NewUser},
};

on_both_engines! {
    rl10_a_changed_row_is_shown_as_tampered,
    rl10_one_malformed_row_does_not_take_the_page,
    rl10_a_changed_audit_entry_is_shown_as_tampered,
    rl10_an_erasure_leaves_the_chain_and_is_named_by_a_record,
}

/// Returns the method of each row of the access log, newest first; `None` for rows shown as tampered.
async fn listed_methods(audit: &gw_store::AuditStore) -> Vec<Option<String>> {
    let page = audit
        .list_access_logs(&AccessFilter::all(Scope::All), ALL)
        .await
        .unwrap();
    assert_eq!(page.total, page.rows.len() as u64);
    page.rows
        .into_iter()
        .map(|row| row.entry().map(|log| log.record.method.into_owned()))
        .collect()
}

async fn rl10_a_changed_row_is_shown_as_tampered(world: &World) {
    let mut writer = writer(world, Stream::Access).await;
    for method in ["a", "b", "c", "d"] {
        world.clock.pass(1);
        writer.append(
            world,
            AccessRecord {
                external_id: Some(did(method)),
                ..call(method, 403)
            },
        );
    }
    writer.seal().await;
    let methods = ["d", "c", "b", "a"].map(|method| Some(method.to_owned()));
    assert_eq!(listed_methods(&writer.audit).await, methods);
    let blob = |hex: &str| {
        if world.engine == "sqlite" {
            format!("x'{hex}'")
        } else {
            format!("'\\x{hex}'::bytea")
        }
    };
    let (short, empty) = (blob("0102"), blob(""));
    for change in [
        "status_code = 200",
        "method = 'eth_call'",
        "external_id = NULL",
        "created_at = created_at + 1",
        "org_id = NULL",
        "denial_reason = 'banned'",
        "kind = 'zz'",
        "kind = 'genesis'",
        &format!("hash = {short}"),
        &format!("bytes = {short}"),
        &format!("bytes = {empty}"),
        &format!("openings = {short}"),
        &format!("openings = {empty}"),
    ] {
        world.tamper_audit("CREATE TABLE kept AS SELECT * FROM entries").await;
        world
            .tamper_audit(&format!("UPDATE entries SET {change} WHERE seq = 2"))
            .await;
        let listed = listed_methods(&writer.audit).await;
        let expected = [methods[0].clone(), methods[1].clone(), None, methods[3].clone()];
        assert_eq!(listed, expected, "{change}");
        let reported: Vec<_> = writer.audit.take_tampered_reads().into_iter().collect();
        let expected_read = TamperedRead {
            chain: Some(writer.claim.chain),
            seq: Some(2),
        };
        assert_eq!(
            reported,
            [expected_read],
            "{change}: what is shown as tampered is told of"
        );
        assert!(writer.audit.take_tampered_reads().is_empty());
        world.tamper_audit("DELETE FROM entries").await;
        world.tamper_audit("INSERT INTO entries SELECT * FROM kept").await;
        world.tamper_audit("DROP TABLE kept").await;
    }
    assert_eq!(listed_methods(&writer.audit).await, methods);
    // Exchanges two ids: the order of the list is not hashed.
    let ids = "UPDATE entries SET id = CASE seq WHEN 1 THEN 1001 ELSE 1004 END WHERE seq IN (1, 4)";
    world.tamper_audit(ids).await;
    let listed = listed_methods(&writer.audit).await;
    assert_eq!(
        listed.iter().filter(|row| row.is_none()).count(),
        1,
        "an id before its time: {listed:?}"
    );
}

async fn rl10_one_malformed_row_does_not_take_the_page(world: &World) {
    let mut writer = writer(world, Stream::Access).await;
    for method in ["a", "b", "c"] {
        world.clock.pass(1);
        writer.append(world, call(method, 200));
    }
    writer.seal().await;
    let malformed: &[&str] = match world.engine {
        // SQLite columns accept values of any type.
        "sqlite" => &[
            "status_code = 'many'",
            "created_at = 'later'",
            "hash = 'text'",
            "bytes = 7",
            "org_id = 'mine'",
        ],
        _ => &["hash = ''::bytea", "bytes = '\\xa1'::bytea", "status_code = -1"],
    };
    for change in malformed {
        world
            .tamper_audit(&format!("UPDATE entries SET {change} WHERE seq = 2"))
            .await;
        let listed = listed_methods(&writer.audit).await;
        assert_eq!(listed.len(), 3, "{change}");
        assert_eq!(
            listed.iter().filter(|row| row.is_none()).count(),
            1,
            "{change}: {listed:?}"
        );
    }
    // A chain whose row was changed has no sound entry.
    world.tamper_audit("UPDATE chains SET stream = 'security'").await;
    assert_eq!(listed_methods(&writer.audit).await, [None, None, None]);
}

async fn rl10_a_changed_audit_entry_is_shown_as_tampered(world: &World) {
    let mut writer = writer(world, Stream::Admin).await;
    for n in 0..3 {
        let mut tx = world.begin().await;
        let new = NewOrganization {
            slug: format!("o{n}"),
            ..Default::default()
        };
        tx.create_organization(new).await.unwrap();
        tx.commit().await.unwrap();
    }
    let sealed = seal_outbox(world, &mut writer, 100).await;
    world.store.mark_outbox_sealed(&sealed).await.unwrap();
    world
        .tamper_audit("UPDATE entries SET resource_type = 'user' WHERE seq = 2")
        .await;
    let rows = writer
        .audit
        .list_audit_logs(&world.store, &AuditFilter::all(Scope::All), ALL)
        .await
        .unwrap()
        .rows;
    let tampered: Vec<_> = rows.iter().map(|row| matches!(row, LogRow::Tampered(_))).collect();
    assert_eq!(tampered, [false, true, false]);
    for hidden in ["kind = 'zz'", "kind = 'admin', outbox_id = NULL"] {
        world
            .tamper_audit(&format!("UPDATE entries SET {hidden} WHERE seq = 2"))
            .await;
        let rows = writer
            .audit
            .list_audit_logs(&world.store, &AuditFilter::all(Scope::All), ALL)
            .await
            .unwrap()
            .rows;
        let tampered: Vec<_> = rows.iter().map(|row| matches!(row, LogRow::Tampered(_))).collect();
        assert_eq!(tampered, [false, true, false], "{hidden}: no column hides a row");
    }
    let users = AuditFilter {
        resource_type: Some(ResourceType::User),
        ..AuditFilter::all(Scope::All)
    };
    let rows = writer
        .audit
        .list_audit_logs(&world.store, &users, ALL)
        .await
        .unwrap()
        .rows;
    assert!(
        matches!(rows.as_slice(), [LogRow::Tampered(_)]),
        "found by what the column says, shown as tampered"
    );
}

async fn rl10_an_erasure_leaves_the_chain_and_is_named_by_a_record(world: &World) {
    let mut access = writer(world, Stream::Access).await;
    for name in ["ann", "bob", "anna", "ann"] {
        let record = AccessRecord {
            external_id: Some(did(name)),
            ip_address: Some("192.0.2.1".parse().unwrap()),
            ..call("eth_call", 200)
        };
        access.append(world, record);
    }
    access.seal().await;
    let mut admin = writer(world, Stream::Admin).await;
    let mut tx = world.begin().await;
    let new = NewUser {
        external_id: did("ann"),
        kyc: false,
        auth_tenant_id: None,
        groups: Vec::new(),
    };
    tx.create_user(new).await.unwrap();
    tx.commit().await.unwrap();
    let sealed = seal_outbox(world, &mut admin, 10).await;
    world.store.mark_outbox_sealed(&sealed).await.unwrap();

    let ann = did("ann");
    let no_holds = Holds::default();
    let plan = access.audit.plan_erasure(&ann, &no_holds).await.unwrap();
    let (calls, mutations) = (access.claim.chain, admin.claim.chain);
    assert_eq!(plan.entries, [(calls, 1), (calls, 4), (mutations, 1)]);
    assert_eq!((plan.held, plan.unreadable), (0, 0));
    let holds: Holds = [HoldScope::Organization(HERE)].into_iter().collect();
    let remaining_plan = access.audit.plan_erasure(&ann, &holds).await.unwrap();
    assert_eq!(
        (remaining_plan.entries.len(), remaining_plan.held),
        (1, 2),
        "a hold keeps values, too"
    );

    // The erasure record is written first, through the outbox.
    let mut records = Vec::new();
    for chain in [calls, mutations] {
        let seqs = plan
            .entries
            .iter()
            .filter(|(entry_chain, _)| *entry_chain == chain)
            .map(|(_, seq)| *seq);
        records.extend(ErasureRecord::for_entries(chain, seqs, "request 12"));
    }
    let mut tx = world.begin().await;
    records.iter().for_each(|record| tx.note_erasure(record));
    tx.commit().await.unwrap();
    seal_outbox(world, &mut admin, 10).await;

    let hashes = access.audit.leaves(calls, 0, 100).await.unwrap();
    assert_eq!(access.audit.erase(&ann, &plan).await.unwrap(), 3);
    assert_eq!(
        access.audit.erase(&ann, &plan).await.unwrap(),
        0,
        "again: nothing is left to do"
    );
    assert_eq!(access.audit.plan_erasure(&ann, &no_holds).await.unwrap().entries, []);
    assert_eq!(access.audit.leaves(calls, 0, 100).await.unwrap(), hashes);

    let mut covered = Erasures::default();
    for row in admin.audit.rows(mutations, 0, 100).await.unwrap() {
        if let Content::Record(Record::Admin(entry)) = Entry::decode(&row.bytes, &row.openings).unwrap().content {
            covered.extend(&erasures([&entry]));
        }
    }
    for chain in [calls, mutations] {
        for row in access.audit.rows(chain, 0, 100).await.unwrap() {
            let entry = Entry::decode(&row.bytes, &row.openings).unwrap();
            assert_eq!(
                entry.erased > 0,
                covered.covers(chain, row.seq),
                "{chain:?} {}",
                row.seq
            );
            assert!(row.columns_agree, "{chain:?} {}", row.seq);
            assert!(!row.openings.windows(14).any(|part| part == b"\"did:test:ann\""));
        }
    }
    // The remaining values are shown and do not count as tampered.
    assert_eq!(listed_methods(&access.audit).await.into_iter().flatten().count(), 4);
    let page = access
        .audit
        .list_access_logs(&AccessFilter::all(Scope::All), ALL)
        .await
        .unwrap();
    let names: Vec<_> = page
        .rows
        .into_iter()
        .map(|row| row.entry().unwrap().record.external_id)
        .collect();
    assert_eq!(names, [None, Some(did("anna")), Some(did("bob")), None]);
}
