//! spec/80 sections 3 and 4: the database computes scope, filters, totals and order.

use crate::world::{World, did, on_both_engines};
use gw_policy::snapshot::{Group, Organization};
use gw_store::{
    read::{ContractFilter, OrganizationFilter, Page, Paging, Role, Scope, UserFilter, UserSearch},
    record::{AccessInput, LinkProof, NewContract, NewGrant, NewGroup, NewMembership, NewOrganization, NewUser, User},
};
use gw_types::{Address, Claim, Claims, Clock, GroupId, OrgId, Seconds};

on_both_engines! {
    spec80_3_lists_and_totals_keep_to_the_scope,
    spec80_7_users_are_found_by_name_address_group_and_role,
    spec80_8_contracts_are_found_by_name_address_and_time,
    groups_are_listed_beside_their_access,
    the_impact_of_deleting_groups_is_told_beforehand,
    spec80_6_7_live_org_admins_are_counted,
}

const ALL: Paging = Paging { limit: 100, offset: 0 };

struct Banks {
    left: OrgId,
    right: OrgId,
    admins: GroupId,
    claimed: GroupId,
    traders: GroupId,
    users: Vec<User>,
}

/// Two banks: `left` with org admins, a group with the admin claim and traders, `right` with one member.
async fn banks(world: &World) -> Banks {
    let mut tx = world.begin().await;
    let mut orgs = Vec::new();
    for slug in ["left", "right"] {
        let new = NewOrganization {
            slug: slug.into(),
            name: format!("{slug} Bank"),
            ..Default::default()
        };
        orgs.push(tx.create_organization(new).await.unwrap().id);
    }
    let (left, right) = (orgs[0], orgs[1]);
    let admins = NewGroup {
        is_org_admin: true,
        ..NewGroup::plain(left, "admins", "Admins")
    };
    let admins = tx.create_group(admins).await.unwrap().id;
    let claimed = tx
        .create_group(NewGroup::plain(left, "claimed", "Claimed"))
        .await
        .unwrap()
        .id;
    let claims = Claims::NONE.with(Claim::Admin);
    tx.set_access(
        claimed,
        AccessInput {
            claims,
            ..Default::default()
        },
    )
    .await
    .unwrap();
    let traders = tx
        .create_group(NewGroup::plain(left, "traders", "Traders"))
        .await
        .unwrap()
        .id;
    let foreign = tx
        .create_group(NewGroup::plain(right, "traders", "Traders"))
        .await
        .unwrap()
        .id;
    let mut users = Vec::new();
    for (name, groups) in [
        ("admin", vec![admins, traders]),
        ("claimed", vec![claimed]),
        ("trader", vec![traders]),
        ("foreign", vec![foreign]),
        ("both", vec![traders, foreign]),
        ("nobody", vec![]),
    ] {
        let new = NewUser {
            external_id: did(name),
            kyc: true,
            auth_tenant_id: None,
            groups,
        };
        users.push(tx.create_user(new).await.unwrap());
    }
    tx.commit().await.unwrap();
    Banks {
        left,
        right,
        admins,
        claimed,
        traders,
        users,
    }
}

fn any(world: &World) -> UserFilter {
    UserFilter {
        scope: Scope::All,
        org: None,
        search: None,
        groups: Vec::new(),
        role: None,
        now: world.clock.now(),
    }
}

async fn names(world: &World, filter: UserFilter) -> Vec<String> {
    let page = world.store.read().list_users(&filter, ALL).await.unwrap();
    assert_eq!(page.total, page.rows.len() as u64, "rows and total count the same set");
    page.rows
        .iter()
        .map(|item| item.user.external_id.as_str().replace("did:test:", ""))
        .collect()
}

async fn spec80_3_lists_and_totals_keep_to_the_scope(world: &World) {
    let banks = banks(world).await;
    let read = world.store.read();
    let filter = |scope, include_system| OrganizationFilter { scope, include_system };
    let page = read.list_organizations(&filter(Scope::All, false), ALL).await.unwrap();
    assert_eq!(
        page.rows.iter().map(|org| org.id).collect::<Vec<_>>(),
        [banks.left, banks.right],
        "by name"
    );
    assert_eq!(
        read.list_organizations(&filter(Scope::All, true), ALL)
            .await
            .unwrap()
            .total,
        4
    );
    let own = Scope::Orgs(vec![banks.right, Organization::DEFAULT]);
    assert_eq!(
        read.list_organizations(&filter(own, false), ALL).await.unwrap().total,
        1
    );
    let none = read
        .list_organizations(&filter(Scope::Orgs(Vec::new()), true), ALL)
        .await
        .unwrap();
    assert_eq!(
        none,
        Page {
            rows: Vec::new(),
            total: 0
        },
        "no organizations: no rows"
    );

    let scope = Scope::Orgs(vec![banks.right]);
    assert_eq!(
        names(
            world,
            UserFilter {
                scope: scope.clone(),
                ..any(world)
            }
        )
        .await,
        ["both", "foreign"]
    );
    let foreign = UserFilter {
        scope: scope.clone(),
        org: Some(banks.left),
        ..any(world)
    };
    assert!(
        names(world, foreign).await.is_empty(),
        "a filter never widens the scope"
    );
    let page = read
        .list_users(
            &UserFilter {
                scope: scope.clone(),
                ..any(world)
            },
            ALL,
        )
        .await
        .unwrap();
    assert!(
        page.rows
            .iter()
            .all(|item| item.groups.iter().all(|group| group.org == banks.right))
    );
    let both = &banks.users[4];
    assert_eq!(read.list_memberships(both.id, &scope).await.unwrap().len(), 1);
    assert_eq!(read.list_memberships(both.id, &Scope::All).await.unwrap().len(), 2);
    let mut orgs = read.organizations_of(both.id).await.unwrap();
    orgs.sort();
    let mut expected = [banks.left, banks.right];
    expected.sort();
    assert_eq!(orgs, expected);
    let second = read
        .list_users(&any(world), Paging { limit: 2, offset: 2 })
        .await
        .unwrap();
    let page: Vec<_> = second.rows.iter().map(|item| item.user.external_id.clone()).collect();
    assert_eq!(
        (page, second.total),
        (vec![did("claimed"), did("foreign")], 6),
        "by external id"
    );
}

async fn spec80_7_users_are_found_by_name_address_group_and_role(world: &World) {
    let banks = banks(world).await;
    let mut tx = world.begin().await;
    let wallet: Address = "0x00000000000000000000000000000000C0FfEe00".parse().unwrap();
    tx.link_address(banks.users[5].id, wallet, LinkProof::Challenge)
        .await
        .unwrap();
    tx.link_address(banks.users[0].id, wallet, LinkProof::Challenge)
        .await
        .unwrap();
    tx.unlink_address(banks.users[0].id, wallet).await.unwrap();
    tx.commit().await.unwrap();
    // HD30: whole values only.
    let search = |search: UserSearch| UserFilter {
        search: Some(search),
        ..any(world)
    };
    let named = |text: &str| search(UserSearch::ExternalId(text.to_owned()));
    assert_eq!(names(world, named(banks.users[1].external_id.as_str())).await.len(), 1);
    for part in ["TRAD", "trad", "%", "did:%", "C0ffee0", &wallet.to_string()] {
        assert_eq!(names(world, named(part)).await, Vec::<String>::new(), "{part}");
    }
    assert_eq!(
        names(world, search(UserSearch::Holder(wallet))).await,
        ["nobody"],
        "ended links do not count"
    );
    assert_eq!(names(world, search(UserSearch::Nobody)).await, Vec::<String>::new());
    let groups = UserFilter {
        groups: vec![banks.admins, banks.claimed],
        ..any(world)
    };
    assert_eq!(names(world, groups).await, ["admin", "claimed"]);
    let role = |role| UserFilter {
        role: Some(role),
        ..any(world)
    };
    assert_eq!(names(world, role(Role::OrgAdmin)).await, ["admin"]);
    assert_eq!(names(world, role(Role::Admin)).await, ["admin", "claimed"]);
    assert_eq!(
        names(world, role(Role::Member)).await,
        ["admin", "both", "foreign", "trader"]
    );
    // A read-only administrator does not count as a plain member.
    let mut tx = world.begin().await;
    let readers = NewGroup {
        is_org_readonly_admin: true,
        ..NewGroup::plain(banks.left, "readers", "Readers")
    };
    let readers = tx.create_group(readers).await.unwrap().id;
    let reader = NewUser {
        external_id: did("reader"),
        kyc: false,
        auth_tenant_id: None,
        groups: vec![readers],
    };
    tx.create_user(reader).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        names(world, role(Role::Member)).await,
        ["admin", "both", "foreign", "trader"]
    );
}

async fn spec80_8_contracts_are_found_by_name_address_and_time(world: &World) {
    let banks = banks(world).await;
    let start = world.clock.now();
    for (byte, name) in [(0xab, "Gold Token"), (0xcd, "Silver Token"), (0xef, "Vault")] {
        world.clock.pass(10);
        let mut tx = world.begin().await;
        let new = NewContract::plain(banks.left, Address::repeat_byte(byte), name);
        let contract = tx.create_contract(new).await.unwrap();
        if byte != 0xef {
            tx.create_grant(NewGrant::full(contract.id, banks.traders))
                .await
                .unwrap();
        }
        tx.commit().await.unwrap();
    }
    let read = world.store.read();
    let contract_names = async |filter: ContractFilter| -> Vec<String> {
        let page = read.list_contracts(banks.left, &filter, ALL).await.unwrap();
        assert_eq!(page.total, page.rows.len() as u64);
        page.rows.into_iter().map(|contract| contract.name).collect()
    };
    let search = |text: &str| ContractFilter {
        search: Some(text.to_owned()),
        ..Default::default()
    };
    assert_eq!(
        contract_names(ContractFilter::default()).await,
        ["Gold Token", "Silver Token", "Vault"]
    );
    assert_eq!(contract_names(search("token")).await, ["Gold Token", "Silver Token"]);
    assert_eq!(
        contract_names(search(&Address::repeat_byte(0xcd).to_string())).await,
        ["Silver Token"]
    );
    for part in [
        "CDCD",
        "0xcdcd",
        Address::repeat_byte(0xcd).to_string().get(..40).unwrap(),
    ] {
        assert_eq!(contract_names(search(part)).await, Vec::<String>::new(), "{part}");
    }
    let after = ContractFilter {
        created_after: Some(start.plus(Seconds(20))),
        ..Default::default()
    };
    assert_eq!(contract_names(after).await, ["Silver Token", "Vault"]);
    let before = ContractFilter {
        created_before: Some(start.plus(Seconds(10))),
        ..Default::default()
    };
    assert_eq!(contract_names(before).await, ["Gold Token"]);
    let summary = read.grant_summary(banks.left).await.unwrap();
    assert_eq!(summary.len(), 2);
    assert!(
        summary
            .iter()
            .all(|held| held.groups == [(banks.traders, "Traders".to_owned())])
    );
    assert!(read.grant_summary(banks.right).await.unwrap().is_empty());
}

async fn groups_are_listed_beside_their_access(world: &World) {
    let banks = banks(world).await;
    let read = world.store.read();
    let page = read.list_groups(banks.left, None, ALL).await.unwrap();
    let claims: Vec<_> = page
        .rows
        .iter()
        .map(|row| (row.group.slug.as_str(), row.access.claims))
        .collect();
    assert_eq!(
        claims,
        [
            ("admins", Claims::NONE),
            ("claimed", Claims::ALL),
            ("traders", Claims::NONE)
        ]
    );
    assert_eq!(read.list_groups(banks.left, Some("AIM"), ALL).await.unwrap().total, 1);
    let anonymous = read.find_access(Group::ANONYMOUS).await.unwrap().unwrap();
    assert_eq!(anonymous.access.allowed_methods.len(), 6);
}

async fn the_impact_of_deleting_groups_is_told_beforehand(world: &World) {
    let banks = banks(world).await;
    let mut tx = world.begin().await;
    let contract = tx
        .create_contract(NewContract::plain(banks.left, Address::repeat_byte(1), "t"))
        .await
        .unwrap();
    tx.create_grant(NewGrant::full(contract.id, banks.traders))
        .await
        .unwrap();
    let impact = tx
        .read()
        .group_impact(&[banks.traders, GroupId::fixed(999), banks.admins])
        .await
        .unwrap();
    assert_eq!(impact.len(), 2, "unknown ids are left out");
    assert_eq!(
        (impact[0].members, impact[0].contracts.as_slice()),
        (3, [Address::repeat_byte(1)].as_slice())
    );
    assert_eq!((impact[1].members, impact[1].contracts.len()), (1, 0));
}

async fn spec80_6_7_live_org_admins_are_counted(world: &World) {
    let banks = banks(world).await;
    let mut tx = world.begin().await;
    let soon = Some(tx.now().plus(Seconds(60)));
    let new = NewMembership {
        user: banks.users[5].id,
        group: banks.admins,
        expires_at: soon,
    };
    tx.add_membership(new).await.unwrap();
    let now = tx.now();
    assert_eq!(tx.read().live_org_admins(banks.left, &[], now).await.unwrap(), 2);
    assert_eq!(
        tx.read()
            .live_org_admins(banks.left, &[], now.plus(Seconds(60)))
            .await
            .unwrap(),
        1
    );
    assert_eq!(
        tx.read()
            .live_org_admins(banks.left, &[banks.admins], now)
            .await
            .unwrap(),
        0
    );
}
