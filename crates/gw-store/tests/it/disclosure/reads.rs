//! What is read back: lists of requests and grants, the events of a grant, and a stored scope.

use super::{ALL, approve, people};
use crate::{
    audit::writer,
    world::{World, did, on_both_engines},
};
use gw_audit::{DisclosureAction, DisclosureData, DisclosureRead, Stream};
use gw_policy::{
    disclosure::{GrantStatus, RequestStatus},
    snapshot::DisclosureScope,
};
use gw_store::{
    audit::LogRow,
    read::{DisclosureFilter, Paging, RequesterFilter, Scope},
    record::{DisclosureApproval, NewUser},
};
use gw_types::{Clock, DisclosureGrantId, DisclosureRequestId, Level, Seconds};

on_both_engines! {
    ds16_lists_filter_order_and_page,
    ds39_events_are_reads_and_transitions_in_order,
    r1_a_scope_that_cannot_be_parsed_covers_nothing,
}

/// Rule 16: lists of administrators, owners and grantees.
async fn ds16_lists_filter_order_and_page(world: &World) {
    let people = people(world).await;
    let mut tx = world.begin().await;
    let odd = tx
        .create_user(NewUser {
            external_id: did("odd_name%"),
            kyc: true,
            auth_tenant_id: None,
            groups: Vec::new(),
        })
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let start = world.clock.now();
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(
            people
                .pending(world, |new| {
                    new.expires_in_hours = (n == 0).then_some(1);
                    if n == 4 {
                        new.requester = Some(odd.id);
                        new.requester_did = None;
                        new.scope.level = None;
                    }
                })
                .await,
        );
        world.clock.pass(1);
    }
    let granted = approve(world, ids[1], people.owner, &DisclosureApproval::default())
        .await
        .unwrap();
    world.clock.pass(3600);
    let list = async |change: &dyn Fn(&mut DisclosureFilter), paging: Paging| {
        let mut filter = DisclosureFilter::all(Scope::All);
        change(&mut filter);
        let page = world
            .store
            .read()
            .list_disclosure_requests(&filter, paging)
            .await
            .unwrap();
        let index = |id: DisclosureRequestId| ids.iter().position(|known| *known == id).unwrap();
        let rows: Vec<usize> = page.rows.iter().map(|details| index(details.request.id)).collect();
        (rows, page.total)
    };
    assert_eq!(list(&|_| {}, ALL).await, (vec![4, 3, 2, 1, 0], 5));
    assert_eq!(list(&|_| {}, Paging { limit: 2, offset: 1 }).await, (vec![3, 2], 5));
    let with_status = |status| move |filter: &mut DisclosureFilter| filter.request_status = Some(status);
    assert_eq!(list(&with_status(RequestStatus::Pending), ALL).await.0, [4, 3, 2]);
    assert_eq!(list(&with_status(RequestStatus::Expired), ALL).await.0, [0]);
    assert_eq!(list(&with_status(RequestStatus::Approved), ALL).await.0, [1]);
    assert_eq!(list(&|filter| filter.level = Some(Level::Redacted), ALL).await.0, [4]);
    assert_eq!(
        list(&|filter| filter.from = Some(start.plus(Seconds(3))), ALL).await.0,
        [4, 3]
    );
    assert_eq!(
        list(&|filter| filter.to = Some(start.plus(Seconds(1))), ALL).await.0,
        [1, 0]
    );
    let contains = |text: &'static str| {
        move |filter: &mut DisclosureFilter| filter.requester = Some(RequesterFilter::Contains(text.to_owned()))
    };
    assert_eq!(list(&contains("AUDIT"), ALL).await.0, [3, 2, 1, 0]);
    assert_eq!(
        list(&contains("_name%"), ALL).await.0,
        [4],
        "LIKE characters stand for themselves"
    );
    assert_eq!(list(&contains("%"), ALL).await.0, [4]);
    assert_eq!(
        list(&|filter| filter.scope = Scope::Orgs(Vec::new()), ALL).await,
        (vec![], 0)
    );
    assert_eq!(
        list(&|filter| filter.scope = Scope::Orgs(vec![people.org]), ALL)
            .await
            .1,
        5
    );
    assert_eq!(list(&|filter| filter.target = Some(people.auditor), ALL).await.1, 0);
    let details = world
        .store
        .read()
        .find_disclosure_request(ids[1])
        .await
        .unwrap()
        .unwrap();
    assert_eq!(details.active_grant, Some(granted.grant.id));
    assert_eq!(details.target_did, Some(did("owner")));
    assert_eq!(details.decided_by_did, Some(did("owner")));
    assert_eq!(details.request.requester_did, Some(did("auditor")), "rule 9");

    let granted_to = async |grantee: &str, status: Option<GrantStatus>| {
        let filter = DisclosureFilter {
            grant_status: status,
            ..DisclosureFilter::for_grantee(did(grantee))
        };
        world
            .store
            .read()
            .list_disclosure_grants(&filter, ALL)
            .await
            .unwrap()
            .total
    };
    assert_eq!(granted_to("auditor", Some(GrantStatus::Active)).await, 1);
    assert_eq!(granted_to("owner", None).await, 0);
    world.clock.pass(86_400);
    assert_eq!(granted_to("auditor", Some(GrantStatus::Active)).await, 0);
    assert_eq!(granted_to("auditor", Some(GrantStatus::Expired)).await, 1);
    assert_eq!(granted_to("auditor", Some(GrantStatus::Revoked)).await, 0);
}

/// Rule 39, spec/70 section 1: the events of a grant are its reads and the transitions of its request and of itself,
/// newest first, on pages by limit and offset.
async fn ds39_events_are_reads_and_transitions_in_order(world: &World) {
    let people = people(world).await;
    let granted = people.approved(world).await;
    let other = people.approved(world).await;
    let mut writer = writer(world, Stream::Disclosure).await;
    let read = |grant: DisclosureGrantId, action, count| DisclosureRead {
        grant_id: grant,
        org_id: Some(people.org),
        owner_id: people.owner,
        viewer_id: Some(people.auditor),
        viewer_external_id: Some(did("auditor")),
        action,
        data: DisclosureData::Transactions,
        record_count: Some(count),
        first: None,
        last: None,
        methods: None,
        addresses: Vec::new(),
        ip_address: None,
        correlation_id: None,
    };
    for count in 0..3 {
        world.clock.pass(10);
        writer.append(world, read(granted.grant.id, DisclosureAction::ViewTransactions, count));
        writer.append(world, read(other.grant.id, DisclosureAction::Resolve, 1));
    }
    writer.seal().await;
    world.clock.pass(10);
    let mut tx = world.begin().await;
    tx.revoke_disclosure(granted.request.id, people.owner, None)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let events = async |paging: Paging| {
        let (request, grant) = (granted.request.id, granted.grant.id);
        let page = writer
            .audit
            .list_disclosure_events(&world.store, request, grant, paging);
        let page = page.await.unwrap();
        assert_eq!(page.total, 6);
        page.rows
            .into_iter()
            .map(|row| {
                let LogRow::Entry(event) = row else { panic!("tampered") };
                let count = event.read.and_then(|read| read.record_count);
                count.map_or_else(|| event.action.to_string(), |count| format!("{} {count}", event.action))
            })
            .collect::<Vec<_>>()
    };
    let all = [
        "revoked",
        "view_transactions 2",
        "view_transactions 1",
        "view_transactions 0",
        "approved",
        "requested",
    ];
    assert_eq!(events(ALL).await, all);
    for limit in 1..7 {
        let mut walked = Vec::new();
        for offset in (0..6_u64).step_by(limit) {
            let paging = Paging {
                limit: limit as u64,
                offset,
            };
            walked.extend(events(paging).await);
        }
        assert_eq!(walked, all, "pages of {limit}");
    }
    assert_eq!(events(Paging { limit: 5, offset: 6 }).await, Vec::<String>::new());
}

/// R1, rule 6: what a later version or somebody else wrote into a scope never discloses more.
async fn r1_a_scope_that_cannot_be_parsed_covers_nothing(world: &World) {
    let people = people(world).await;
    let granted = people.approved(world).await;
    let scope = async || {
        let stored = world
            .store
            .read()
            .find_disclosure_grant(granted.grant.id)
            .await
            .unwrap();
        let stored = stored.unwrap().grant.scope;
        let snapshot = world.store.load().await.unwrap();
        assert_eq!(snapshot.find_disclosure(granted.grant.id).unwrap().scope, stored);
        stored
    };
    assert!(scope().await.is_unrestricted());
    for broken in [
        r#"{"weekdays":["monday"]}"#,
        r#"{"dates":[1]}"#,
        r#"{"addresses":["0x1"]}"#,
        "[]",
        "null",
        "7",
    ] {
        world
            .tamper(&[&format!("UPDATE disclosure_grants SET scope = '{broken}'")])
            .await;
        assert_eq!(scope().await, DisclosureScope::nothing(), "{broken}");
    }
    world
        .tamper(&["UPDATE disclosure_grants SET scope = '{}', disclosure_level = 'everything'"])
        .await;
    assert_eq!(scope().await.level, Level::Redacted);
}
