//! A log that is read page by page from one position to the next shows each row once, although rows are added and
//! sealed meanwhile (spec/80 section 4).

use crate::{
    audit::{HERE, Writer, call, seal_outbox, writer},
    world::{World, on_both_engines},
};
use gw_audit::{AccessRecord, Stream};
use gw_store::{
    audit::{AccessFilter, AccessPosition, AuditFilter, AuditPosition},
    read::{Paging, Scope},
    record::NewOrganization,
};
use gw_types::OrgId;

on_both_engines! {
    pages_of_the_access_log_neither_repeat_nor_skip_rows,
    pages_of_the_audit_log_neither_repeat_nor_skip_entries,
    a_page_after_a_position_keeps_to_scope_and_filter,
}

const TWO: Paging = Paging { limit: 2, offset: 0 };

/// A position as it comes back from a cursor.
fn through_numbers(position: AuditPosition) -> AuditPosition {
    AuditPosition::from_numbers(position.to_numbers()).unwrap()
}

async fn pages_of_the_access_log_neither_repeat_nor_skip_rows(world: &World) {
    let mut writer = writer(world, Stream::Access).await;
    // Two rows of each moment, so that the row id decides the order within a moment.
    for status in 200..206 {
        if status % 2 == 0 {
            world.clock.pass(1);
        }
        writer.append(world, call("eth_call", status));
    }
    writer.seal().await;
    let filter = AccessFilter::all(Scope::All);
    let (mut statuses, mut after) = (Vec::new(), None);
    loop {
        let page = writer.audit.continue_access_logs(&filter, after, TWO).await.unwrap();
        assert_eq!(page.positions.len(), page.rows.len());
        let listed = u64::try_from(statuses.len()).unwrap();
        assert_eq!(page.remaining, 6 - listed, "of what was there at the first page");
        assert_eq!(page.total, 6 + listed / 2, "the whole log, with what was added");
        let rows = page.rows.into_iter().map(|row| row.entry().unwrap().record.status_code);
        statuses.extend(rows);
        if page.remaining <= 2 {
            break;
        }
        after = Some(AccessPosition::from_numbers(page.positions[1].unwrap().to_numbers()).unwrap());
        world.clock.pass(1);
        writer.append(world, call("eth_call", 500));
        writer.seal().await;
    }
    assert_eq!(statuses, [205, 204, 203, 202, 201, 200]);
    assert_eq!(AccessPosition::from_numbers([Some(1), None]), None);
}

async fn create(world: &World, slug: &str) -> OrgId {
    let mut tx = world.begin().await;
    let new = NewOrganization {
        slug: slug.to_owned(),
        ..Default::default()
    };
    let id = tx.create_organization(new).await.unwrap().id;
    tx.commit().await.unwrap();
    id
}

/// Seals the oldest `count` waiting entries.
async fn seal_oldest(world: &World, writer: &mut Writer, count: u64) {
    let sealed = seal_outbox(world, writer, count).await;
    world.store.mark_outbox_sealed(&sealed).await.unwrap();
}

async fn pages_of_the_audit_log_neither_repeat_nor_skip_entries(world: &World) {
    let mut writer = writer(world, Stream::Admin).await;
    for n in 0..3 {
        create(world, &format!("sealed-{n}")).await;
    }
    seal_oldest(world, &mut writer, 3).await;
    for n in 0..6 {
        create(world, &format!("waiting-{n}")).await;
    }
    let filter = AuditFilter::all(Scope::All);
    let whole = writer
        .audit
        .list_audit_logs(&world.store, &filter, crate::audit::ALL)
        .await
        .unwrap();
    let expected: Vec<_> = whole.rows.into_iter().map(|row| row.entry().unwrap().id).collect();
    assert_eq!(expected.len(), 9);
    let (mut ids, mut after, mut pages, mut in_both) = (Vec::new(), None, 0, Vec::new());
    loop {
        let page = writer
            .audit
            .continue_audit_logs(&world.store, &filter, after, TWO)
            .await
            .unwrap();
        assert_eq!(page.remaining, 9 - u64::try_from(ids.len()).unwrap(), "page {pages}");
        ids.extend(page.rows.into_iter().map(|row| row.entry().unwrap().id));
        if page.remaining <= 2 {
            break;
        }
        after = page.positions.last().copied().flatten().map(through_numbers);
        pages += 1;
        create(world, &format!("new-{pages}")).await;
        // Entries move from the outbox to the log: first those that were not listed yet, then those that were, which
        // are in both for a while.
        world.store.mark_outbox_sealed(&in_both).await.unwrap();
        in_both = seal_outbox(world, &mut writer, 3).await;
        if pages != 2 {
            world.store.mark_outbox_sealed(&in_both).await.unwrap();
        }
    }
    assert_eq!(ids, expected);
}

async fn a_page_after_a_position_keeps_to_scope_and_filter(world: &World) {
    let mut access = writer(world, Stream::Access).await;
    for n in 0..4_u16 {
        world.clock.pass(1);
        access.append(world, call("eth_call", 200 + n));
        let foreign = AccessRecord {
            org_id: Some(OrgId::fixed(78)),
            ..call("eth_call", 400)
        };
        access.append(world, foreign);
    }
    access.seal().await;
    let own = AccessFilter::all(Scope::Orgs(vec![HERE]));
    let first = access.audit.continue_access_logs(&own, None, TWO).await.unwrap();
    assert_eq!((first.total, first.remaining), (4, 4), "rows of others are not counted");
    let rest = access
        .audit
        .continue_access_logs(&own, first.positions[1], TWO)
        .await
        .unwrap();
    let rows = rest.rows.into_iter().map(|row| row.entry().unwrap().record.status_code);
    assert_eq!(
        (rows.collect::<Vec<_>>(), rest.total, rest.remaining),
        (vec![201, 200], 4, 2)
    );

    let mut admin = writer(world, Stream::Admin).await;
    let (mine, mut others) = (create(world, "mine").await, Vec::new());
    for n in 0..3 {
        others.push(create(world, &format!("other-{n}")).await);
    }
    seal_oldest(world, &mut admin, 2).await;
    let filter = AuditFilter::all(Scope::Orgs(vec![mine, others[2]]));
    let one = Paging { limit: 1, offset: 0 };
    let first = admin
        .audit
        .continue_audit_logs(&world.store, &filter, None, one)
        .await
        .unwrap();
    assert_eq!((first.total, first.remaining), (2, 2));
    let rest = admin
        .audit
        .continue_audit_logs(&world.store, &filter, first.positions[0], one)
        .await
        .unwrap();
    let orgs: Vec<_> = rest
        .rows
        .into_iter()
        .map(|row| row.entry().unwrap().entry.org_id)
        .collect();
    assert_eq!((orgs, rest.total, rest.remaining), (vec![Some(mine)], 2, 1));
}
