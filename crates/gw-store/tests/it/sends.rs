//! R1-R4, W5, W6, LK-5 to LK-7, HD10, HD14: rows of the send path, and the rules for links.

use crate::world::{World, did, on_both_engines};
use gw_audit::ResourceType;
use gw_policy::snapshot::LinkKind;
use gw_store::{
    StoreError,
    record::{
        CreationKind, JsonObject, LinkProof, Mined, MinedContract, NewContract, NewGroup, NewMembership,
        NewOrganization, NewReservation, NewUser, ReservationState, SendAccepted, SendRows, SendStart, SenderLink,
        WalletProof,
    },
};
use gw_types::{Address, B256, Clock, OrgId, Seconds, UserId};

on_both_engines! {
    w5_visibility_is_inactive_until_the_node_accepts,
    r3_a_refused_send_takes_back_its_own_rows_only,
    r3_a_mined_creation_is_registered_for_the_deployer,
    hd36_a_group_of_the_deployer_groups_name_keeps_no_block_back,
    hd35_a_deployment_undoes_no_removal,
    hd14_a_reorganization_takes_the_registration_back,
    hd14_two_may_reserve_one_address,
    r4_a_settled_reservation_is_not_settled_again,
    r4_a_reservation_sent_meanwhile_stays_open,
    hd27_a_reservation_settled_meanwhile_registers_nothing,
    hd27_a_withheld_copy_of_a_send_takes_no_registration_back,
    w6_an_accepted_sender_is_linked_once,
    lk7_nothing_is_inferred_onto_what_others_proved_or_owners_ended,
    lk2_a_revoked_link_cannot_be_proved_again,
    hd10_contracts_cannot_be_linked,
    hd10_contract_wallets_are_asked_again,
    lk6_collisions_name_every_holder,
}

const TX: B256 = B256::repeat_byte(0xaa);
const WALLET: Address = Address::repeat_byte(0x11);
const CREATED: Address = Address::repeat_byte(0x22);

struct Cast {
    org: OrgId,
    user: UserId,
    other: UserId,
}

async fn cast(world: &World) -> Cast {
    let mut tx = world.begin().await;
    let new = NewOrganization {
        slug: "bank".into(),
        ..Default::default()
    };
    let org = tx.create_organization(new).await.unwrap().id;
    let mut users = Vec::new();
    for name in ["a", "b"] {
        let new = NewUser {
            external_id: did(name),
            kyc: true,
            auth_tenant_id: None,
            groups: Vec::new(),
        };
        users.push(tx.create_user(new).await.unwrap().id);
    }
    tx.commit().await.unwrap();
    Cast {
        org,
        user: users[0],
        other: users[1],
    }
}

fn reservation(world: &World) -> NewReservation {
    NewReservation {
        address: CREATED,
        kind: CreationKind::Plain,
        sender: WALLET,
        nonce: u64::MAX,
        expires_at: world.clock.now().plus(Seconds(1800)),
    }
}

async fn start(world: &World, cast: &Cast) -> SendRows {
    let mut tx = world.begin().await;
    let start = SendStart {
        user: cast.user,
        org: cast.org,
        tx_hash: Some(TX),
        visible_to: vec![did("b")],
        reservations: vec![reservation(world)],
        watch: None,
    };
    let rows = tx.start_send(start).await.unwrap();
    tx.commit().await.unwrap();
    rows
}

async fn accept(world: &World, rows: SendRows, link: Option<(UserId, Address)>) -> SenderLink {
    let mut tx = world.begin().await;
    let linked = tx
        .accept_send(SendAccepted {
            rows,
            tx_hash: TX,
            link,
        })
        .await
        .unwrap();
    tx.commit().await.unwrap();
    linked
}

async fn w5_visibility_is_inactive_until_the_node_accepts(world: &World) {
    let cast = cast(world).await;
    let rows = start(world, &cast).await;
    let snapshot = world.store.load().await.unwrap();
    assert_eq!(snapshot.visibility(TX).len(), 1);
    assert!(!snapshot.visibility(TX)[0].active);
    accept(world, rows, None).await;
    let snapshot = world.store.load().await.unwrap();
    assert!(snapshot.visibility(TX)[0].active);
    assert_eq!(snapshot.visibility(TX)[0].recipients, [did("b")]);
    assert_eq!(
        snapshot.reservations(CREATED).len(),
        1,
        "sent reservations still give reach"
    );
    let open = world.store.read().open_reservations(Some(TX)).await.unwrap();
    assert_eq!((open[0].state, open[0].nonce), (ReservationState::Sent, u64::MAX));
}

async fn r3_a_refused_send_takes_back_its_own_rows_only(world: &World) {
    let cast = cast(world).await;
    let (first, second) = (start(world, &cast).await, start(world, &cast).await);
    let mut tx = world.begin().await;
    tx.refuse_send(second).await.unwrap();
    tx.commit().await.unwrap();
    let snapshot = world.store.load().await.unwrap();
    assert_eq!(
        (snapshot.visibility(TX).len(), snapshot.reservations(CREATED).len()),
        (1, 1)
    );
    assert_eq!(Some(snapshot.visibility(TX)[0].id), first.visibility);
    assert_eq!(snapshot.reservations(CREATED)[0].id, first.reservations[0]);
}

fn mined(world: &World, cast: &Cast) -> Mined {
    Mined {
        tx_hash: TX,
        block_hash: B256::repeat_byte(0xbb),
        block_number: 40,
        at: world.clock.now(),
        user: Some(cast.user),
        grant: true,
        org: cast.org,
        created: vec![MinedContract {
            address: CREATED,
            kind: CreationKind::Plain,
            metadata: JsonObject::new(),
        }],
    }
}

async fn r3_a_mined_creation_is_registered_for_the_deployer(world: &World) {
    let cast = cast(world).await;
    let rows = start(world, &cast).await;
    accept(world, rows, None).await;
    let mut tx = world.begin().await;
    let contracts = tx.settle_mined(mined(world, &cast)).await.unwrap();
    assert!(tx.settle_mined(mined(world, &cast)).await.unwrap().is_empty(), "once");
    tx.commit().await.unwrap();
    let snapshot = world.store.load().await.unwrap();
    let contract = snapshot.contract(CREATED).unwrap();
    assert_eq!(
        (contract.id, contract.org, contract.deployer),
        (contracts[0], cast.org, Some(cast.user))
    );
    let grants = snapshot.grants(contract.id);
    assert_eq!(grants.len(), 1);
    let group = snapshot.group(grants[0].group).unwrap();
    // Decision 48: 12 hex digits of SHA-256("did:test:a").
    assert!(
        group
            .slug
            .strip_prefix("deployer-")
            .is_some_and(|digest| digest.len() == 12)
    );
    assert!(snapshot.access(group.id).is_none(), "no methods");
    assert_eq!(snapshot.memberships(cast.user).len(), 1);
    assert!(snapshot.reservations(CREATED).is_empty(), "settled");
    let stored = world.store.read().find_contract(CREATED).await.unwrap().unwrap();
    assert_eq!(
        (&stored.metadata["auto_registered"], &stored.metadata["via"]),
        (&true.into(), &"plain_create".into())
    );
}

async fn hd36_a_group_of_the_deployer_groups_name_keeps_no_block_back(world: &World) {
    let cast = cast(world).await;
    let mut tx = world.begin().await;
    tx.settle_mined(mined(world, &cast)).await.unwrap();
    let new = NewOrganization {
        slug: "second".into(),
        ..Default::default()
    };
    let second = tx.create_organization(new).await.unwrap().id;
    tx.commit().await.unwrap();
    let snapshot = world.store.load().await.unwrap();
    let group = snapshot.grants(snapshot.contract(CREATED).unwrap().id)[0].group;
    let slug = snapshot.group(group).unwrap().slug.to_string();
    // An administrator of the second organization may create such a group.
    let mut tx = world.begin().await;
    tx.create_group(NewGroup::plain(second, "other", slug.to_uppercase()))
        .await
        .unwrap();
    let address = Address::repeat_byte(0x23);
    let created = vec![MinedContract {
        address,
        kind: CreationKind::Plain,
        metadata: JsonObject::new(),
    }];
    tx.settle_mined(Mined {
        org: second,
        created,
        ..mined(world, &cast)
    })
    .await
    .unwrap();
    tx.commit().await.unwrap();
    let snapshot = world.store.load().await.unwrap();
    let group = snapshot.grants(snapshot.contract(address).unwrap().id)[0].group;
    let group = snapshot.group(group).unwrap();
    assert!(group.slug.starts_with(&slug) && group.org == second, "{group:?}");
}

async fn hd35_a_deployment_undoes_no_removal(world: &World) {
    let cast = cast(world).await;
    let deploy = async |byte: u8| {
        let mut tx = world.begin().await;
        let address = Address::repeat_byte(byte);
        let created = vec![MinedContract {
            address,
            kind: CreationKind::Plain,
            metadata: JsonObject::new(),
        }];
        tx.settle_mined(Mined {
            created,
            ..mined(world, &cast)
        })
        .await
        .unwrap();
        tx.commit().await.unwrap();
    };
    // A temporary member deploys: the added membership lasts no longer.
    let end = world.clock.now().plus(Seconds(1800));
    let mut tx = world.begin().await;
    let staff = tx
        .create_group(NewGroup::plain(cast.org, "staff", "staff"))
        .await
        .unwrap()
        .id;
    let new = NewMembership {
        user: cast.user,
        group: staff,
        expires_at: Some(end),
    };
    let staff = tx.add_membership(new).await.unwrap().id;
    tx.commit().await.unwrap();
    deploy(0x22).await;
    let mut tx = world.begin().await;
    tx.remove_membership(staff).await.unwrap();
    tx.commit().await.unwrap();
    let snapshot = world.store.load().await.unwrap();
    let [membership] = snapshot.memberships(cast.user) else {
        panic!("the first deployment joins its group")
    };
    assert_eq!(membership.expires_at, Some(end));
    let mut tx = world.begin().await;
    tx.remove_membership(membership.id).await.unwrap();
    tx.commit().await.unwrap();
    deploy(0x23).await;
    let snapshot = world.store.load().await.unwrap();
    assert!(snapshot.memberships(cast.user).is_empty());
    let group = |byte: u8| snapshot.grants(snapshot.contract(Address::repeat_byte(byte)).unwrap().id)[0].group;
    assert_eq!(
        group(0x22),
        group(0x23),
        "what was deployed is the group's all the same"
    );
    // A group with that slug created by an administrator is not the deployer's.
    let slug = snapshot.group(group(0x22)).unwrap().slug.to_string();
    let mut tx = world.begin().await;
    let new = NewOrganization {
        slug: "second".into(),
        ..Default::default()
    };
    let second = tx.create_organization(new).await.unwrap().id;
    let made = tx
        .create_group(NewGroup {
            is_org_admin: true,
            ..NewGroup::plain(second, slug, "heads")
        })
        .await
        .unwrap()
        .id;
    let created = vec![MinedContract {
        address: CREATED,
        kind: CreationKind::Plain,
        metadata: JsonObject::new(),
    }];
    let created = created
        .into_iter()
        .map(|new| MinedContract {
            address: Address::repeat_byte(0x24),
            ..new
        })
        .collect();
    tx.settle_mined(Mined {
        org: second,
        created,
        ..mined(world, &cast)
    })
    .await
    .unwrap();
    tx.commit().await.unwrap();
    let snapshot = world.store.load().await.unwrap();
    assert!(
        snapshot
            .memberships(cast.user)
            .iter()
            .all(|membership| membership.group != made)
    );
    assert_eq!(snapshot.memberships(cast.user).len(), 1);
}

async fn hd14_a_reorganization_takes_the_registration_back(world: &World) {
    let cast = cast(world).await;
    let rows = start(world, &cast).await;
    accept(world, rows, None).await;
    let mut tx = world.begin().await;
    tx.settle_mined(mined(world, &cast)).await.unwrap();
    tx.undo_mined(cast.org, TX).await.unwrap();
    tx.commit().await.unwrap();
    let snapshot = world.store.load().await.unwrap();
    assert!(snapshot.contract(CREATED).is_none());
    assert_eq!(
        snapshot.reservations(CREATED).len(),
        1,
        "reserved again, until it is mined elsewhere"
    );
}

async fn hd14_two_may_reserve_one_address(world: &World) {
    let cast = cast(world).await;
    let squatter = Cast {
        user: cast.other,
        ..cast
    };
    let _squatted = start(world, &squatter).await;
    let rows = start(world, &cast).await;
    assert_eq!(world.store.load().await.unwrap().reservations(CREATED).len(), 2);
    let mut own = world.store.read().open_reservations(None).await.unwrap();
    own.retain(|reservation| rows.reservations.contains(&reservation.id));
    let mut tx = world.begin().await;
    tx.settle_reservations(&own, ReservationState::Replaced).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(world.store.load().await.unwrap().reservations(CREATED).len(), 1);
}

/// The number of audit entries of mutations.
async fn entry_count(world: &World) -> usize {
    world.store.outbox(0, 1000).await.unwrap().len()
}

/// The state of the reservation after its last audit entry.
async fn last_reservation_state(world: &World) -> String {
    let entries = world.store.outbox(0, 1000).await.unwrap();
    let of_reservations = entries
        .iter()
        .filter(|row| row.entry.resource_type == ResourceType::PreregisteredAddress);
    let value = of_reservations.last().unwrap().entry.new_value.clone().unwrap();
    let value: serde_json::Value = serde_json::from_str(&value).unwrap();
    value["state"].as_str().unwrap().to_owned()
}

async fn r4_a_settled_reservation_is_not_settled_again(world: &World) {
    let cast = cast(world).await;
    let rows = start(world, &cast).await;
    accept(world, rows, None).await;
    let read = world.store.read().open_reservations(None).await.unwrap();
    let mut tx = world.begin().await;
    tx.settle_mined(mined(world, &cast)).await.unwrap();
    tx.commit().await.unwrap();
    let entries = entry_count(world).await;
    for state in [ReservationState::Reverted, ReservationState::Replaced] {
        let mut tx = world.begin().await;
        tx.settle_reservations(&read, state).await.unwrap();
        tx.commit().await.unwrap();
    }
    assert_eq!(entry_count(world).await, entries, "no further audit entry");
    assert_eq!(last_reservation_state(world).await, "mined");
}

async fn r4_a_reservation_sent_meanwhile_stays_open(world: &World) {
    let cast = cast(world).await;
    let mut tx = world.begin().await;
    let start = SendStart {
        user: cast.user,
        org: cast.org,
        tx_hash: None,
        visible_to: Vec::new(),
        reservations: vec![reservation(world)],
        watch: None,
    };
    let rows = tx.start_send(start).await.unwrap();
    tx.commit().await.unwrap();
    let read = world.store.read().open_reservations(None).await.unwrap();
    accept(world, rows, None).await;
    let mut tx = world.begin().await;
    tx.settle_reservations(&read, ReservationState::Replaced).await.unwrap();
    tx.commit().await.unwrap();
    let open = world.store.read().open_reservations(Some(TX)).await.unwrap();
    assert_eq!(open.len(), 1, "the decision was about a send without a transaction");
    let mut tx = world.begin().await;
    tx.settle_reservations(&open, ReservationState::Replaced).await.unwrap();
    tx.commit().await.unwrap();
    assert!(world.store.read().open_reservations(None).await.unwrap().is_empty());
}

async fn hd27_a_reservation_settled_meanwhile_registers_nothing(world: &World) {
    let cast = cast(world).await;
    let rows = start(world, &cast).await;
    let id = rows.reservations[0];
    accept(world, rows, None).await;
    let mut tx = world.begin().await;
    // A withheld transaction passes none of its contracts.
    tx.settle_mined(Mined {
        created: Vec::new(),
        ..mined(world, &cast)
    })
    .await
    .unwrap();
    tx.commit().await.unwrap();
    let entries = entry_count(world).await;
    let mut tx = world.begin().await;
    let registered = tx.settle_mined_reservation(id, mined(world, &cast)).await.unwrap();
    tx.commit().await.unwrap();
    assert!(registered.is_empty());
    assert!(world.store.load().await.unwrap().contract(CREATED).is_none());
    assert_eq!(entry_count(world).await, entries);
    // A clearance registers them.
    let mut tx = world.begin().await;
    assert_eq!(tx.settle_mined(mined(world, &cast)).await.unwrap().len(), 1);
    tx.commit().await.unwrap();
    assert_eq!(last_reservation_state(world).await, "mined");
}

async fn hd27_a_withheld_copy_of_a_send_takes_no_registration_back(world: &World) {
    let cast = cast(world).await;
    let rows = start(world, &cast).await;
    let id = rows.reservations[0];
    accept(world, rows, None).await;
    let mut tx = world.begin().await;
    let registered = tx.settle_mined_reservation(id, mined(world, &cast)).await.unwrap();
    assert_eq!(registered.len(), 1, "an open reservation is settled");
    tx.commit().await.unwrap();
    let entries = entry_count(world).await;
    let mut tx = world.begin().await;
    tx.settle_mined(Mined {
        created: Vec::new(),
        ..mined(world, &cast)
    })
    .await
    .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(entry_count(world).await, entries);
    assert_eq!(last_reservation_state(world).await, "mined");
}

async fn w6_an_accepted_sender_is_linked_once(world: &World) {
    let cast = cast(world).await;
    let linked = accept(world, SendRows::default(), Some((cast.user, WALLET))).await;
    let SenderLink::Linked(linked) = linked else {
        panic!("{linked:?}")
    };
    assert_eq!((linked.link.kind, linked.others), (LinkKind::System, 0));
    assert_eq!(
        accept(world, SendRows::default(), Some((cast.user, WALLET))).await,
        SenderLink::Unchanged
    );
    let mut tx = world.begin().await;
    let proved = tx.link_address(cast.user, WALLET, LinkProof::Challenge).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        (proved.link.id, proved.link.kind),
        (linked.link.id, LinkKind::User),
        "a proof lifts the same row"
    );
}

async fn lk7_nothing_is_inferred_onto_what_others_proved_or_owners_ended(world: &World) {
    let cast = cast(world).await;
    let mut tx = world.begin().await;
    tx.link_address(cast.other, WALLET, LinkProof::Challenge).await.unwrap();
    let contested = tx.link_sender(cast.user, WALLET).await.unwrap();
    assert_eq!(contested, SenderLink::Contested { others: 1 });
    tx.unlink_address(cast.other, WALLET).await.unwrap();
    assert_eq!(
        tx.link_sender(cast.other, WALLET).await.unwrap(),
        SenderLink::Unchanged,
        "an ended link stays ended"
    );
    assert_eq!(
        tx.link_sender(cast.user, WALLET).await.unwrap(),
        SenderLink::Unchanged,
        "another one proved it once"
    );
    tx.link_address(cast.user, WALLET, LinkProof::Challenge).await.unwrap();
    let again = tx.link_address(cast.other, WALLET, LinkProof::Challenge).await.unwrap();
    assert_eq!(
        again.others, 1,
        "its owner may prove it again, and hears of the collision"
    );
    tx.commit().await.unwrap();
    let snapshot = world.store.load().await.unwrap();
    assert_eq!(snapshot.links_at(WALLET).len(), 2);
}

async fn lk2_a_revoked_link_cannot_be_proved_again(world: &World) {
    let cast = cast(world).await;
    let mut tx = world.begin().await;
    tx.link_address(cast.user, WALLET, LinkProof::Challenge).await.unwrap();
    tx.revoke_link(cast.user, WALLET, "key leaked").await.unwrap();
    let refused = tx.link_address(cast.user, WALLET, LinkProof::Challenge).await;
    assert!(matches!(refused, Err(StoreError::LinkRevoked)));
    assert_eq!(tx.link_sender(cast.user, WALLET).await.unwrap(), SenderLink::Unchanged);
    tx.commit().await.unwrap();
    assert!(world.store.load().await.unwrap().links_at(WALLET).is_empty());
    let entry = world.store.outbox(0, 1000).await.unwrap().pop().unwrap().entry;
    assert!(entry.new_value.unwrap().contains("key leaked"), "the reason is kept");

    world.clock.pass(30 * 86_400);
    let mut tx = world.begin().await;
    assert!(
        matches!(tx.link_sender(cast.user, WALLET).await.unwrap(), SenderLink::Linked(_)),
        "after thirty days"
    );
}

async fn hd10_contracts_cannot_be_linked(world: &World) {
    let cast = cast(world).await;
    let _reserved = start(world, &cast).await;
    let mut tx = world.begin().await;
    let reserved = tx.link_address(cast.other, CREATED, wallet_proof()).await;
    assert!(matches!(reserved, Err(StoreError::Rule("address_is_contract"))));
    tx.create_contract(NewContract::plain(cast.org, WALLET, "t"))
        .await
        .unwrap();
    let registered = tx.link_address(cast.other, WALLET, LinkProof::Challenge).await;
    assert!(matches!(registered, Err(StoreError::Rule("address_is_contract"))));
    assert_eq!(tx.link_sender(cast.other, WALLET).await.unwrap(), SenderLink::Unchanged);
}

fn contract_wallet_proof() -> WalletProof {
    WalletProof {
        hash: TX,
        signature: vec![1, 2, 3],
    }
}

fn wallet_proof() -> LinkProof {
    LinkProof::ContractWallet {
        proof: contract_wallet_proof(),
        owner: None,
    }
}

async fn hd10_contract_wallets_are_asked_again(world: &World) {
    let cast = cast(world).await;
    let due = async |world: &World| {
        let yesterday = world.clock.now().minus(Seconds(86_400));
        world
            .store
            .read()
            .list_unconfirmed_wallets(yesterday, 10)
            .await
            .unwrap()
    };
    let mut tx = world.begin().await;
    tx.link_address(cast.user, WALLET, wallet_proof()).await.unwrap();
    tx.link_address(cast.other, CREATED, LinkProof::Challenge)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert!(due(world).await.is_empty(), "just proved");
    world.clock.pass(86_401);
    let due_links = due(world).await;
    assert_eq!(due_links.len(), 1, "keys are not asked");
    let link = &due_links[0];
    assert_eq!(
        (link.user, link.address, &link.proof),
        (cast.user, WALLET, &contract_wallet_proof())
    );

    let mut tx = world.begin().await;
    tx.confirm_wallet_link(cast.user, WALLET).await.unwrap();
    tx.commit().await.unwrap();
    assert!(due(world).await.is_empty());
    world.clock.pass(86_401);
    let mut tx = world.begin().await;
    let ended = tx.end_wallet_link(cast.user, WALLET).await.unwrap();
    tx.commit().await.unwrap();
    assert!(
        ended.revoked_at.is_some() && !ended.revoked_by_admin,
        "its owner may prove it anew"
    );
    assert!(due(world).await.is_empty());

    let mut tx = world.begin().await;
    let anew = tx.link_address(cast.user, WALLET, LinkProof::Challenge).await.unwrap();
    tx.commit().await.unwrap();
    assert!(!anew.link.contract_wallet);
    world.clock.pass(86_401);
    assert!(due(world).await.is_empty(), "a key's proof needs no second word");
}

async fn lk6_collisions_name_every_holder(world: &World) {
    use gw_store::read::Scope;
    let cast = cast(world).await;
    let mut tx = world.begin().await;
    for user in [cast.user, cast.other] {
        tx.link_address(user, WALLET, LinkProof::Challenge).await.unwrap();
    }
    tx.link_address(cast.user, CREATED, LinkProof::Challenge).await.unwrap();
    tx.commit().await.unwrap();
    let collisions = world.store.read().list_collisions(&Scope::All).await.unwrap();
    assert_eq!(collisions.len(), 1);
    assert_eq!(collisions[0].address, WALLET);
    let names: Vec<_> = collisions[0].holders.iter().map(|(_, name, _)| name.clone()).collect();
    assert_eq!(names, [did("a"), did("b")]);
    let foreign = Scope::Orgs(vec![cast.org]);
    assert!(
        world.store.read().list_collisions(&foreign).await.unwrap().is_empty(),
        "neither is a member"
    );
}
