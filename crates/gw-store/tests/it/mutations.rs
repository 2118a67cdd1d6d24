//! C6 and spec/80: every mutation commits with its audit entries, or not at all.

use crate::world::{World, did, on_both_engines};
use gw_audit::{Action, AdminEntry, ResourceType};
use gw_policy::snapshot::{Group, Moment, Organization};
use gw_store::{
    Actor, BootClock, Conflict, Feed, FeedTiming, Missing, StoreError,
    record::{
        AbiText, AccessInput, ApiKey, EventRules, GrantPatch, GroupPatch, LinkProof, NewContract, NewGrant, NewGroup,
        NewMembership, NewOrganization, NewUser, OrganizationPatch, UserPatch, WalletProof,
    },
};
use gw_types::{Address, B256, Claim, Claims, OrgId, Secret, TenantId};
use std::{sync::Arc, time::Duration};

on_both_engines! {
    c6_a_mutation_leaves_one_entry_per_touched_record,
    c6_an_entry_that_cannot_be_written_undoes_its_mutation,
    c6_before_images_show_what_was,
    spec70_31_secrets_do_not_enter_entries,
    spec80_4_conflicts_are_told_by_constraint,
    a2_system_rows_are_immutable,
    a5_the_two_admin_flags_exclude_each_other,
    a9_a_tenant_is_pinned_once,
    g2_g3_methods_are_stored_canonical_and_unknown_ones_refused,
    spec80_7_a_ban_outlives_the_deleted_row,
    spec80_8_a_grant_stays_within_its_organization,
    rt1a_hd27_a_deleted_registration_still_names_its_owner,
    rt1a_hd27_a_key_shows_that_an_address_never_was_a_contract,
    rt29_hd41_a_contract_that_moves_leaves_its_blocks_behind,
    rt29_hd41_what_was_no_contract_leaves_nothing_behind,
}

/// All entries so far, oldest first.
async fn entries(world: &World) -> Vec<AdminEntry> {
    world
        .store
        .outbox(0, 1000)
        .await
        .unwrap()
        .into_iter()
        .map(|row| row.entry)
        .collect()
}

fn user(name: &str) -> NewUser {
    NewUser {
        external_id: did(name),
        kyc: false,
        auth_tenant_id: None,
        groups: Vec::new(),
    }
}

fn bank(slug: &str) -> NewOrganization {
    NewOrganization {
        slug: slug.to_owned(),
        name: slug.to_uppercase(),
        ..Default::default()
    }
}

async fn c6_a_mutation_leaves_one_entry_per_touched_record(world: &World) {
    let admin = Actor::named("did:test:admin").from_request("192.0.2.7".parse().ok(), Some("call-1".to_owned()));
    let mut tx = world.store.begin(&admin).await.unwrap();
    let org = tx.create_organization(bank("bank")).await.unwrap();
    let group = tx
        .create_group(NewGroup::plain(org.id, "traders", "Traders"))
        .await
        .unwrap();
    tx.set_access(group.id, AccessInput::default()).await.unwrap();
    let person = tx
        .create_user(NewUser {
            groups: vec![group.id],
            ..user("a")
        })
        .await
        .unwrap();
    let contract = tx
        .create_contract(NewContract::plain(org.id, Address::repeat_byte(1), "token"))
        .await
        .unwrap();
    tx.create_grant(NewGrant::full(contract.id, group.id)).await.unwrap();
    tx.link_address(person.id, Address::repeat_byte(9), LinkProof::Challenge)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let made = entries(world).await;
    let summary: Vec<_> = made.iter().map(|entry| (entry.action, entry.resource_type)).collect();
    use {Action::*, ResourceType as R};
    assert_eq!(
        summary,
        [
            (Create, R::Organization),
            (Create, R::Group),
            (Update, R::Access),
            (Create, R::User),
            (Assign, R::Membership),
            (Create, R::Contract),
            (Assign, R::Grant),
            (Create, R::User),
        ]
    );
    for entry in &made {
        assert_eq!(entry.actor_external_id.as_deref(), Some("did:test:admin"));
        assert_eq!(entry.correlation_id.as_deref(), Some("call-1"));
        assert_eq!(entry.ip_address, "192.0.2.7".parse().ok());
        assert!(
            !entry.resource_id.as_deref().unwrap_or_default().starts_with("0x"),
            "ids are not personal"
        );
    }

    let mut tx = world.begin().await;
    tx.delete_organization(org.id).await.unwrap();
    tx.commit().await.unwrap();
    let gone: Vec<_> = entries(world)
        .await
        .split_off(8)
        .iter()
        .map(|e| (e.action, e.resource_type))
        .collect();
    assert_eq!(
        gone,
        [
            (Delete, R::Access),
            (Revoke, R::Membership),
            (Revoke, R::Grant),
            (Delete, R::Group),
            (Delete, R::Contract),
            (Delete, R::Organization),
        ]
    );
}

async fn c6_an_entry_that_cannot_be_written_undoes_its_mutation(world: &World) {
    let before = world.store.load().await.unwrap();
    world
        .tamper(&["ALTER TABLE audit_outbox RENAME TO hidden_outbox"])
        .await;
    let mut tx = world.begin().await;
    tx.create_organization(bank("bank")).await.unwrap();
    assert!(tx.commit().await.is_err(), "no commit without entry");
    let after = world.store.load().await.unwrap();
    assert_eq!(after.epoch(), before.epoch());
    assert!(after.same_rows(&before));
}

async fn c6_before_images_show_what_was(world: &World) {
    let mut tx = world.begin().await;
    let person = tx.create_user(user("a")).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = world.begin().await;
    tx.update_user(
        person.id,
        UserPatch {
            kyc: Some(true),
            note: Some("seen".into()),
            ..Default::default()
        },
    )
    .await
    .unwrap();
    // A write that changes nothing still leaves an entry (spec/80 section 12 rule 2).
    tx.update_user(person.id, UserPatch::default()).await.unwrap();
    tx.commit().await.unwrap();
    let entries = entries(world).await;
    let image =
        |text: &Option<String>| -> serde_json::Value { serde_json::from_str(text.as_deref().unwrap()).unwrap() };
    let (old, new) = (image(&entries[1].old_value), image(&entries[1].new_value));
    assert_eq!((&old["kyc"], &old["note"]), (&false.into(), &"".into()));
    assert_eq!((&new["kyc"], &new["note"]), (&true.into(), &"seen".into()));
    assert_eq!(entries[2].old_value, entries[2].new_value);
    assert_eq!(entries.len(), 3);
}

async fn spec70_31_secrets_do_not_enter_entries(world: &World) {
    const CANARY: &str = "encv1:canary";
    let mut tx = world.begin().await;
    let group = tx
        .create_group(NewGroup::plain(Organization::DEFAULT, "g", "g"))
        .await
        .unwrap();
    let input = |rpc_api_key| AccessInput {
        rpc_api_key,
        ..Default::default()
    };
    tx.set_access(group.id, input(ApiKey::Set(Secret::new(CANARY))))
        .await
        .unwrap();
    let kept = tx.set_access(group.id, input(ApiKey::Keep)).await.unwrap();
    assert!(kept.rpc_api_key.is_some_and(|key| key.matches(CANARY)));
    tx.set_access(group.id, input(ApiKey::Clear)).await.unwrap();
    tx.delete_group(group.id).await.unwrap();
    tx.commit().await.unwrap();
    let entries = entries(world).await;
    assert!(entries.iter().all(|entry| !format!("{entry:?}").contains("canary")));
    let changes = |n: usize| {
        entries[n]
            .new_value
            .as_deref()
            .is_some_and(|text| text.contains("\"changed\":true"))
    };
    assert_eq!(
        (changes(1), changes(2), changes(3)),
        (true, false, true),
        "set, kept, cleared"
    );
}

async fn spec80_4_conflicts_are_told_by_constraint(world: &World) {
    let mut tx = world.begin().await;
    let org = tx.create_organization(bank("bank")).await.unwrap();
    let group = tx
        .create_group(NewGroup::plain(org.id, "traders", "Traders"))
        .await
        .unwrap();
    let person = tx
        .create_user(NewUser {
            groups: vec![group.id],
            ..user("a")
        })
        .await
        .unwrap();
    let contract = tx
        .create_contract(NewContract::plain(org.id, Address::repeat_byte(1), "t"))
        .await
        .unwrap();
    tx.create_grant(NewGrant::full(contract.id, group.id)).await.unwrap();
    tx.commit().await.unwrap();

    macro_rules! refused {
        ($conflict:ident, $tx:ident => $write:expr) => {{
            // PostgreSQL aborts a transaction at its first error, so each write has its own.
            let mut $tx = world.begin().await;
            let outcome = $write.await.map(|_| ());
            assert!(
                matches!(outcome, Err(StoreError::Conflict(Conflict::$conflict))),
                "{outcome:?}"
            );
        }};
    }
    refused!(OrganizationSlug, tx => tx.create_organization(bank("bank")));
    refused!(GroupSlug, tx => tx.create_group(NewGroup::plain(org.id, "traders", "Others")));
    refused!(GroupName, tx => tx.create_group(NewGroup::plain(org.id, "others", "tRADERS")));
    refused!(ExternalId, tx => tx.create_user(user("a")));
    let again = NewMembership {
        user: person.id,
        group: group.id,
        expires_at: None,
    };
    refused!(Membership, tx => tx.add_membership(again));
    let elsewhere = NewContract::plain(Organization::DEFAULT, Address::repeat_byte(1), "t");
    refused!(ContractAddress, tx => tx.create_contract(elsewhere));
    refused!(Grant, tx => tx.create_grant(NewGrant::full(contract.id, group.id)));
}

async fn a2_system_rows_are_immutable(world: &World) {
    let mut tx = world.begin().await;
    let patch = OrganizationPatch {
        name: Some("x".into()),
        ..Default::default()
    };
    for org in [Organization::DEFAULT, Organization::ANONYMOUS] {
        assert!(matches!(
            tx.update_organization(org, patch.clone()).await,
            Err(StoreError::Immutable)
        ));
        assert!(matches!(tx.delete_organization(org).await, Err(StoreError::Immutable)));
    }
    for group in [Group::DEFAULT, Group::ANONYMOUS] {
        assert!(matches!(
            tx.update_group(group, GroupPatch::default()).await,
            Err(StoreError::Immutable)
        ));
        assert!(matches!(tx.delete_group(group).await, Err(StoreError::Immutable)));
        tx.set_access(group, AccessInput::default())
            .await
            .expect("who may do this is the caller's question");
    }
}

/// A5 holds on the merged state of a partial update.
async fn a5_the_two_admin_flags_exclude_each_other(world: &World) {
    let mut tx = world.begin().await;
    let new = NewGroup {
        is_org_admin: true,
        ..NewGroup::plain(Organization::DEFAULT, "g", "g")
    };
    let group = tx.create_group(new).await.unwrap();
    let patch = GroupPatch {
        is_org_readonly_admin: Some(true),
        ..Default::default()
    };
    assert!(matches!(
        tx.update_group(group.id, patch).await,
        Err(StoreError::Rule("check"))
    ));
}

async fn a9_a_tenant_is_pinned_once(world: &World) {
    let mut tx = world.begin().await;
    let person = tx.create_user(user("a")).await.unwrap();
    tx.pin_tenant(person.id, TenantId::fixed(1)).await.unwrap();
    tx.pin_tenant(person.id, TenantId::fixed(1)).await.unwrap();
    assert!(matches!(
        tx.pin_tenant(person.id, TenantId::fixed(2)).await,
        Err(StoreError::Rule("tenant_pinned"))
    ));
}

async fn g2_g3_methods_are_stored_canonical_and_unknown_ones_refused(world: &World) {
    let mut tx = world.begin().await;
    let group = tx
        .create_group(NewGroup::plain(Organization::DEFAULT, "g", "g"))
        .await
        .unwrap();
    let input = |names: &[&str]| AccessInput {
        allowed_methods: names.iter().map(|name| (*name).to_owned()).collect(),
        claims: Claims::NONE.with(Claim::Admin),
        ..Default::default()
    };
    let stored = tx
        .set_access(group.id, input(&["ETH_CALL", "eth_call", "*"]))
        .await
        .unwrap();
    assert_eq!(stored.allowed_methods, ["eth_call", "*"]);
    assert_eq!(stored.claims, Claims::ALL, "admin implies the others");
    for unknown in ["eth_sign", "eth_simulateV1", "eth*", ""] {
        let refused = tx.set_access(group.id, input(&[unknown])).await;
        assert!(matches!(refused, Err(StoreError::Rule("unknown_method"))), "{unknown}");
    }
}

async fn spec80_7_a_ban_outlives_the_deleted_row(world: &World) {
    let mut tx = world.begin().await;
    let banned = tx.create_user(user("banned")).await.unwrap();
    tx.update_user(
        banned.id,
        UserPatch {
            banned: Some(true),
            ..Default::default()
        },
    )
    .await
    .unwrap();
    tx.delete_user(banned.id).await.unwrap();
    let plain = tx.create_user(user("plain")).await.unwrap();
    tx.link_address(plain.id, Address::repeat_byte(3), LinkProof::Challenge)
        .await
        .unwrap();
    tx.delete_user(plain.id).await.unwrap();
    tx.commit().await.unwrap();

    world.clock.pass(60);
    let mut tx = world.begin().await;
    let back = tx.create_user(user("banned")).await.unwrap();
    assert!(back.banned, "coming back does not lift the ban");
    let back = tx.create_user(user("plain")).await.unwrap();
    assert!(!back.banned);
    assert!(
        back.tokens_valid_from.is_some_and(|from| from < tx.now()),
        "tokens of the deleted row stay dead"
    );
    assert!(
        tx.read().list_all_links(back.id).await.unwrap().is_empty(),
        "a fresh, empty user"
    );
    assert!(matches!(
        tx.delete_user(plain.id).await,
        Err(StoreError::NotFound(Missing::User))
    ));
}

async fn spec80_8_a_grant_stays_within_its_organization(world: &World) {
    let mut tx = world.begin().await;
    let org = tx.create_organization(bank("bank")).await.unwrap();
    let contract = tx
        .create_contract(NewContract::plain(org.id, Address::repeat_byte(1), "t"))
        .await
        .unwrap();
    let foreign = tx.create_grant(NewGrant::full(contract.id, Group::DEFAULT)).await;
    assert!(matches!(foreign, Err(StoreError::Rule("grant_organization"))));
    let group = tx.create_group(NewGroup::plain(org.id, "g", "g")).await.unwrap();
    tx.create_grant(NewGrant::full(contract.id, group.id)).await.unwrap();
    let patch = GrantPatch {
        functions: Some(Some(Vec::new())),
        event_rules: Some(EventRules::List(Vec::new())),
        ..Default::default()
    };
    let changed = tx.update_grant(contract.id, group.id, patch).await.unwrap();
    assert_eq!(
        (changed.functions, changed.event_rules),
        (Some(Vec::new()), EventRules::List(Vec::new()))
    );
    let cleared = GrantPatch {
        functions: Some(None),
        event_rules: Some(EventRules::Unset),
        ..Default::default()
    };
    let changed = tx.update_grant(contract.id, group.id, cleared).await.unwrap();
    assert_eq!((changed.functions, changed.event_rules), (None, EventRules::Unset));
    assert!(AbiText::parse("{}".into()).is_err());
}

fn by_its_own_word() -> LinkProof {
    LinkProof::ContractWallet {
        proof: WalletProof {
            hash: B256::ZERO,
            signature: vec![1],
        },
        owner: None,
    }
}

/// HD27: after its registration is deleted in any way, a contract still has an owner.
async fn rt1a_hd27_a_deleted_registration_still_names_its_owner(world: &World) {
    let mut tx = world.store.begin(&Actor::system()).await.unwrap();
    let (bank, rival) = (
        tx.create_organization(bank("bank")).await.unwrap().id,
        tx.create_organization(bank("rival")),
    );
    let rival = rival.await.unwrap().id;
    let person = tx.create_user(user("a")).await.unwrap().id;
    let (one, other) = (Address::repeat_byte(1), Address::repeat_byte(2));
    let deleted = tx.create_contract(NewContract::plain(bank, one, "one")).await.unwrap();
    tx.create_contract(NewContract::plain(bank, other, "other"))
        .await
        .unwrap();
    tx.delete_contract(deleted.id, Some(7)).await.unwrap();
    tx.commit().await.unwrap();
    world.clock.pass(60);
    let owner = async |address| world.store.load().await.unwrap().owner(address);
    assert_eq!(owner(one).await, Some(bank));

    let attempt = async |org, address, takes_over_retired| {
        let mut tx = world.store.begin(&Actor::system()).await.unwrap();
        let new = NewContract {
            takes_over_retired,
            first_block: Some(9),
            ..NewContract::plain(org, address, "again")
        };
        tx.create_contract(new).await?;
        tx.commit().await
    };
    let foreign = attempt(rival, one, false).await;
    assert!(
        matches!(foreign, Err(StoreError::Conflict(Conflict::ContractAddress))),
        "{foreign:?}"
    );
    let mut tx = world.store.begin(&Actor::system()).await.unwrap();
    let linked = tx.link_address(person, one, by_its_own_word()).await;
    assert!(
        matches!(linked, Err(StoreError::Rule("address_is_contract"))),
        "{linked:?}"
    );
    drop(tx);

    // Its organization registers it again, from then on and not from the beginning.
    attempt(bank, one, false).await.unwrap();
    let snapshot = world.store.load().await.unwrap();
    let again = snapshot.contract(one).unwrap();
    assert!(again.since > deleted.since() && snapshot.retired(one).is_none());

    // A contract deleted with its organization stays that organization's; a super admin may give it away.
    let mut tx = world.store.begin(&Actor::system()).await.unwrap();
    tx.delete_organization(bank).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!((owner(one).await, owner(other).await), (Some(bank), Some(bank)));
    assert!(attempt(rival, other, false).await.is_err());
    attempt(rival, other, true).await.unwrap();
    assert_eq!(owner(other).await, Some(rival));
}

/// An address that signs is a wallet: registering it and deleting the registration does not take it from its owner.
async fn rt1a_hd27_a_key_shows_that_an_address_never_was_a_contract(world: &World) {
    let mut tx = world.store.begin(&Actor::system()).await.unwrap();
    let bank = tx.create_organization(bank("bank")).await.unwrap().id;
    let person = tx.create_user(user("a")).await.unwrap().id;
    let (before, after) = (Address::repeat_byte(1), Address::repeat_byte(2));
    tx.link_address(person, before, LinkProof::Challenge).await.unwrap();
    for address in [before, after] {
        let contract = tx
            .create_contract(NewContract::plain(bank, address, "squatted"))
            .await
            .unwrap();
        tx.delete_contract(contract.id, Some(7)).await.unwrap();
    }
    tx.link_address(person, after, LinkProof::Challenge).await.unwrap();
    tx.commit().await.unwrap();
    let snapshot = world.store.load().await.unwrap();
    assert_eq!((snapshot.owner(before), snapshot.owner(after)), (None, None));
}

/// HD41: each registration has its own blocks, whatever the order of events, and an incremental reload gives the same
/// result.
async fn rt29_hd41_a_contract_that_moves_leaves_its_blocks_behind(world: &World) {
    let mut tx = world.store.begin(&Actor::system()).await.unwrap();
    let old = tx.create_organization(bank("old")).await.unwrap().id;
    let new = tx.create_organization(bank("new")).await.unwrap().id;
    let group = tx
        .create_group(NewGroup::plain(old, "staff", "Staff"))
        .await
        .unwrap()
        .id;
    let address = Address::repeat_byte(1);
    let first = NewContract {
        abi: Some(AbiText::parse("[]".to_owned()).unwrap()),
        ..NewContract::plain(old, address, "token")
    };
    let first = tx.create_contract(first).await.unwrap().id;
    let rules = EventRules::List(Vec::new());
    tx.create_grant(NewGrant {
        event_rules: rules,
        ..NewGrant::full(first, group)
    })
    .await
    .unwrap();
    tx.commit().await.unwrap();
    let at = async |block: Option<u64>| {
        let moment = block.map_or(Moment::Now, Moment::Block);
        let snapshot = world.store.load().await.unwrap();
        snapshot
            .contract_at(address, moment)
            .map(|contract| (contract.org, contract.id))
    };
    let move_to = async |from, to: OrgId, last_block, first_block| {
        let mut tx = world.store.begin(&Actor::system()).await.unwrap();
        tx.delete_contract(from, last_block).await?;
        world.clock.pass(1);
        let new = NewContract {
            takes_over_retired: true,
            first_block,
            ..NewContract::plain(to, address, "token")
        };
        let id = tx.create_contract(new).await?.id;
        tx.commit().await.map(|_| id)
    };
    assert_eq!(
        at(Some(3)).await,
        Some((old, first)),
        "the only owner yet has every block"
    );
    let unknown = move_to(first, new, Some(100), None).await;
    assert!(
        matches!(unknown, Err(StoreError::Rule("contract_first_block"))),
        "{unknown:?}"
    );

    let timing = FeedTiming {
        max_skew: Duration::MAX,
        ..FeedTiming::default()
    };
    let feed = Feed::start(&world.store, timing, Arc::new(BootClock)).await.unwrap();
    let second = move_to(first, new, Some(100), Some(102)).await.unwrap();
    for (block, whose) in [
        (3, Some((old, first))),
        (100, Some((old, first))),
        (101, None),
        (102, Some((new, second))),
    ] {
        assert_eq!(at(Some(block)).await, whose, "{block}");
    }
    assert_eq!(at(None).await, Some((new, second)));
    let loaded = world.store.load().await.unwrap();
    assert!(
        feed.pin().snapshot.same_rows(&loaded),
        "what an instance follows is what a load finds"
    );
    let grants = loaded.grants(first);
    assert_eq!((grants.len(), grants[0].group), (1, group));
    assert_eq!(grants[0].events, gw_policy::snapshot::EventRules::Only(Vec::new()));
    assert!(loaded.contract_at(address, Moment::Block(3)).unwrap().abi.is_some());
    assert!(loaded.contract_at(address, Moment::Unknown).is_none());

    // A head that went back gives no block to two organizations, and no block to a registration without a last one.
    let third = move_to(second, old, None, Some(50)).await.unwrap();
    assert_eq!(
        (at(Some(102)).await, at(Some(101)).await),
        (Some((old, third)), Some((old, third)))
    );
    assert_eq!(at(Some(100)).await, Some((old, first)));
    // Registered again by the same organization, it continues unchanged.
    let fourth = move_to(third, old, Some(200), None).await.unwrap();
    for (block, whose) in [(100, first), (101, fourth), (150, fourth), (201, fourth)] {
        assert_eq!(at(Some(block)).await, Some((old, whose)), "{block}");
    }
    // Deleting the organization removes its members; the next organization gets none of its blocks.
    let mut tx = world.store.begin(&Actor::system()).await.unwrap();
    tx.delete_organization(old).await.unwrap();
    let taken = NewContract {
        takes_over_retired: true,
        first_block: Some(300),
        ..NewContract::plain(new, address, "t")
    };
    let last = tx.create_contract(taken).await.unwrap().id;
    tx.commit().await.unwrap();
    assert_eq!((at(Some(250)).await, at(Some(300)).await), (None, Some((new, last))));
}

/// An address with a key is a wallet: an organization that had registered it sees none of its data afterwards.
async fn rt29_hd41_what_was_no_contract_leaves_nothing_behind(world: &World) {
    let mut tx = world.store.begin(&Actor::system()).await.unwrap();
    let bank = tx.create_organization(bank("bank")).await.unwrap().id;
    let person = tx.create_user(user("a")).await.unwrap().id;
    let (before, after) = (Address::repeat_byte(1), Address::repeat_byte(2));
    tx.link_address(person, before, LinkProof::Challenge).await.unwrap();
    for address in [before, after] {
        let contract = tx
            .create_contract(NewContract::plain(bank, address, "squatted"))
            .await
            .unwrap();
        tx.delete_contract(contract.id, Some(100)).await.unwrap();
    }
    tx.link_address(person, after, LinkProof::Challenge).await.unwrap();
    tx.commit().await.unwrap();
    let snapshot = world.store.load().await.unwrap();
    for address in [before, after] {
        assert!(snapshot.contract_at(address, Moment::Block(1)).is_none());
        assert_eq!(snapshot.registrations(address).count(), 0);
    }
}
