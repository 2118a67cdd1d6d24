//! After any sequence of mutations, the incrementally updated snapshot equals a freshly loaded one, on both engines.

use crate::world::{World, did};
use gw_policy::snapshot::{Group, Organization, SystemToggle};
use gw_store::{
    BootClock, Feed, FeedTiming, StoreError, Tx,
    record::{
        AccessInput, CreationKind, GrantPatch, GroupPatch, JsonObject, LinkProof, Mined, MinedContract, NewContract,
        NewGrant, NewGroup, NewMembership, NewOrganization, NewReservation, NewTenant, NewUser, SendAccepted,
        SendStart, SharedInfraInput, TenantPatch, UserPatch,
    },
};
use gw_types::{Address, B256, OrgId, Seconds, TenantId, TokenId, UserId};
use proptest::{collection::vec, prelude::*, strategy::ValueTree, test_runner::TestRunner};
use std::{sync::Arc, time::Duration};

/// One mutation; the numbers choose among existing objects, so that most steps have an effect.
#[derive(Clone, Debug)]
enum Step {
    MakeOrganization(u8),
    DeleteOrganization(u8),
    MakeGroup(u8),
    FlagGroup(u8, bool),
    DeleteGroup(u8),
    SetAccess(u8, bool),
    MakeUser(u8),
    Ban(u8, bool),
    DeleteUser(u8),
    Join(u8, u8),
    Leave(u8, u8),
    MakeContract(u8, u8),
    DeleteContract(u8),
    Grant(u8, u8),
    Restrict(u8, u8),
    Link(u8, u8),
    Unlink(u8, u8),
    Deploy(u8, u8, u8),
    Share(u8, u8),
    Revoke(u8),
    AllowTenant(u8, bool),
    DeleteTenant(u8),
    Tag(u8, bool),
    BreakTag(u8),
    Untag(u8),
    Turn(bool),
    TurnBack,
}

fn step() -> impl Strategy<Value = Step> {
    let n = || 0..6u8;
    prop_oneof![
        2 => n().prop_map(Step::MakeOrganization),
        1 => n().prop_map(Step::DeleteOrganization),
        3 => n().prop_map(Step::MakeGroup),
        1 => (n(), any::<bool>()).prop_map(|(a, b)| Step::FlagGroup(a, b)),
        1 => n().prop_map(Step::DeleteGroup),
        2 => (n(), any::<bool>()).prop_map(|(a, b)| Step::SetAccess(a, b)),
        3 => n().prop_map(Step::MakeUser),
        1 => (n(), any::<bool>()).prop_map(|(a, b)| Step::Ban(a, b)),
        1 => n().prop_map(Step::DeleteUser),
        4 => (n(), n()).prop_map(|(a, b)| Step::Join(a, b)),
        1 => (n(), n()).prop_map(|(a, b)| Step::Leave(a, b)),
        3 => (n(), n()).prop_map(|(a, b)| Step::MakeContract(a, b)),
        1 => n().prop_map(Step::DeleteContract),
        4 => (n(), n()).prop_map(|(a, b)| Step::Grant(a, b)),
        2 => (n(), n()).prop_map(|(a, b)| Step::Restrict(a, b)),
        3 => (n(), n()).prop_map(|(a, b)| Step::Link(a, b)),
        1 => (n(), n()).prop_map(|(a, b)| Step::Unlink(a, b)),
        3 => (n(), n(), n()).prop_map(|(a, b, c)| Step::Deploy(a, b, c)),
        2 => (n(), n()).prop_map(|(a, b)| Step::Share(a, b)),
        2 => n().prop_map(Step::Revoke),
        2 => (n(), any::<bool>()).prop_map(|(a, b)| Step::AllowTenant(a, b)),
        1 => n().prop_map(Step::DeleteTenant),
        2 => (n(), any::<bool>()).prop_map(|(a, b)| Step::Tag(a, b)),
        1 => n().prop_map(Step::BreakTag),
        1 => n().prop_map(Step::Untag),
        1 => any::<bool>().prop_map(Step::Turn),
        1 => Just(Step::TurnBack),
    ]
}

fn tenant(n: u8) -> TenantId {
    TenantId::fixed(u128::from(n))
}

fn address(n: u8) -> Address {
    Address::repeat_byte(n + 1)
}

/// Runs a step. Its object may be gone: then it does nothing, or the store rejects it.
async fn take(tx: &mut Tx, step: &Step) -> Result<(), StoreError> {
    let user = async |tx: &Tx, n: u8| -> Result<UserId, StoreError> {
        let stored = tx.read().find_user_by_external_id(&did(&format!("u{n}"))).await?;
        Ok(stored.map_or(UserId::fixed(0), |user| user.id))
    };
    let org = async |tx: &Tx, n: u8| -> Result<OrgId, StoreError> {
        let stored = tx.read().find_organization_by_slug(&format!("o{n}")).await?;
        Ok(stored.map_or(Organization::DEFAULT, |org| org.id))
    };
    let group = async |tx: &Tx, n: u8| -> Result<_, StoreError> {
        let org = org(tx, n / 2).await?;
        let stored = tx.read().find_group_by_slug(org, &format!("g{n}")).await?;
        Ok(stored.map_or(Group::DEFAULT, |group| group.id))
    };
    let contract = async |tx: &Tx, n: u8| tx.read().find_contract(address(n)).await;
    match *step {
        Step::MakeOrganization(n) => tx
            .create_organization(NewOrganization {
                slug: format!("o{n}"),
                ..Default::default()
            })
            .await
            .map(|_| ()),
        Step::DeleteOrganization(n) => {
            let id = org(tx, n).await?;
            tx.delete_organization(id).await.map(|_| ())
        }
        Step::MakeGroup(n) => {
            let org = org(tx, n / 2).await?;
            tx.create_group(NewGroup::plain(org, format!("g{n}"), format!("g{n}")))
                .await
                .map(|_| ())
        }
        Step::FlagGroup(n, flag) => {
            let id = group(tx, n).await?;
            let patch = GroupPatch {
                is_org_admin: Some(flag),
                ..Default::default()
            };
            tx.update_group(id, patch).await.map(|_| ())
        }
        Step::DeleteGroup(n) => {
            let id = group(tx, n).await?;
            tx.delete_group(id).await.map(|_| ())
        }
        Step::SetAccess(n, all) => {
            let id = group(tx, n).await?;
            let allowed_methods = if all { vec!["*".into()] } else { vec!["eth_call".into()] };
            tx.set_access(
                id,
                AccessInput {
                    allowed_methods,
                    ..Default::default()
                },
            )
            .await
            .map(|_| ())
        }
        Step::MakeUser(n) => {
            let external_id = did(&format!("u{n}"));
            let auth_tenant_id = (n > 2).then(|| tenant(n));
            let new = NewUser {
                external_id,
                kyc: n % 2 == 0,
                auth_tenant_id,
                groups: vec![Group::DEFAULT],
            };
            tx.create_user(new).await.map(|_| ())
        }
        Step::Ban(n, banned) => {
            let id = user(tx, n).await?;
            tx.update_user(
                id,
                UserPatch {
                    banned: Some(banned),
                    ..Default::default()
                },
            )
            .await
            .map(|_| ())
        }
        Step::DeleteUser(n) => {
            let id = user(tx, n).await?;
            tx.delete_user(id).await.map(|_| ())
        }
        Step::Join(u, g) => {
            let new = NewMembership {
                user: user(tx, u).await?,
                group: group(tx, g).await?,
                expires_at: None,
            };
            tx.add_membership(new).await.map(|_| ())
        }
        Step::Leave(u, g) => {
            let (user, group) = (user(tx, u).await?, group(tx, g).await?);
            match tx.read().find_membership_of(user, group).await? {
                Some(membership) => tx.remove_membership(membership.id).await.map(|_| ()),
                None => Ok(()),
            }
        }
        Step::MakeContract(n, o) => {
            let org = org(tx, o).await?;
            tx.create_contract(NewContract::plain(org, address(n), "c"))
                .await
                .map(|_| ())
        }
        Step::DeleteContract(n) => match contract(tx, n).await? {
            Some(contract) => tx.delete_contract(contract.id, Some(7)).await.map(|_| ()),
            None => Ok(()),
        },
        Step::Grant(c, g) => match contract(tx, c).await? {
            Some(contract) => {
                let group = group(tx, g).await?;
                tx.create_grant(NewGrant::full(contract.id, group)).await.map(|_| ())
            }
            None => Ok(()),
        },
        Step::Restrict(c, g) => match contract(tx, c).await? {
            Some(contract) => {
                let group = group(tx, g).await?;
                let patch = GrantPatch {
                    functions: Some(Some(Vec::new())),
                    ..Default::default()
                };
                tx.update_grant(contract.id, group, patch).await.map(|_| ())
            }
            None => Ok(()),
        },
        Step::Link(u, a) => {
            let user = user(tx, u).await?;
            tx.link_address(user, address(a + 10), LinkProof::Challenge)
                .await
                .map(|_| ())
        }
        Step::Unlink(u, a) => {
            let user = user(tx, u).await?;
            tx.unlink_address(user, address(a + 10)).await.map(|_| ())
        }
        Step::Deploy(u, o, a) => deploy(tx, user(tx, u).await?, org(tx, o).await?, a).await,
        Step::Share(u, n) => {
            let (user, org) = (user(tx, u).await?, org(tx, n).await?);
            let tx_hash = Some(B256::repeat_byte(n));
            let start = SendStart {
                user,
                org,
                tx_hash,
                visible_to: vec![did("u0")],
                reservations: Vec::new(),
                watch: None,
            };
            tx.start_send(start).await.map(|_| ())
        }
        Step::Revoke(n) => {
            let until = tx.now().plus(Seconds(u32::from(n)));
            tx.revoke_access_token(TokenId::fixed(u128::from(n)), until).await
        }
        Step::AllowTenant(n, disabled) => match tx.read().find_tenant(tenant(n)).await? {
            Some(known) => {
                let patch = TenantPatch {
                    disabled: Some(disabled),
                    ..Default::default()
                };
                tx.update_tenant(known.id, patch).await.map(|_| ())
            }
            None => {
                let new = NewTenant {
                    tenant: tenant(n),
                    label: String::new(),
                    auto_provision: true,
                    disabled,
                    default_org: Some(org(tx, n).await?),
                    default_group: None,
                };
                tx.create_tenant(new).await.map(|_| ())
            }
        },
        Step::DeleteTenant(n) => match tx.read().find_tenant(tenant(n)).await? {
            Some(known) => tx.delete_tenant(known.id).await.map(|_| ()),
            None => Ok(()),
        },
        Step::Tag(n, pinned) => {
            let input = SharedInfraInput {
                name: "shared".into(),
                description: String::new(),
                codehash: pinned.then_some(B256::ZERO),
                implementation_codehash: None,
            };
            match tx.read().find_shared_infra(address(n)).await? {
                Some(_) => tx.update_shared_infra(address(n), input).await.map(|_| ()),
                None => tx.create_shared_infra(address(n), input).await.map(|_| ()),
            }
        }
        Step::BreakTag(n) => tx.void_shared_infra_pin(address(n), B256::repeat_byte(9)).await,
        Step::Untag(n) => tx.delete_shared_infra(address(n)).await.map(|_| ()),
        Step::Turn(enabled) => {
            let until = tx.now().plus(Seconds(60));
            tx.set_toggle(SystemToggle::EthCallTracing, enabled, "because".into(), until)
                .await
                .map(|_| ())
        }
        Step::TurnBack => tx.clear_toggles("enough").await.map(|_| ()),
    }
}

async fn deploy(tx: &mut Tx, user: UserId, org: OrgId, n: u8) -> Result<(), StoreError> {
    let (at, tx_hash) = (tx.now(), B256::repeat_byte(n + 100));
    let address = address(n + 20);
    let expires_at = at.plus(Seconds(1800));
    let new = NewReservation {
        address,
        kind: CreationKind::Runtime,
        sender: address,
        nonce: 0,
        expires_at,
    };
    let start = SendStart {
        user,
        org,
        tx_hash: Some(tx_hash),
        visible_to: Vec::new(),
        reservations: vec![new],
        watch: None,
    };
    let rows = tx.start_send(start).await?;
    match n % 3 {
        0 => tx.refuse_send(rows).await,
        1 => tx
            .accept_send(SendAccepted {
                rows,
                tx_hash,
                link: Some((user, address)),
            })
            .await
            .map(|_| ()),
        _ => {
            tx.accept_send(SendAccepted {
                rows,
                tx_hash,
                link: None,
            })
            .await?;
            let created = vec![MinedContract {
                address,
                kind: CreationKind::Runtime,
                metadata: JsonObject::new(),
            }];
            let (block_hash, block_number) = (B256::repeat_byte(1), 1);
            tx.settle_mined(Mined {
                tx_hash,
                block_hash,
                block_number,
                at,
                user: Some(user),
                grant: true,
                org,
                created,
            })
            .await
            .map(|_| ())
        }
    }
}

/// Runs several mutations per transaction, some of which fail: those are rolled back completely.
async fn follows(world: &World, transactions: Vec<Vec<Step>>) -> Result<(), TestCaseError> {
    let timing = FeedTiming {
        max_skew: Duration::MAX,
        stale_after: Duration::from_secs(30),
        ..FeedTiming::default()
    };
    let feed = Feed::start(&world.store, timing, Arc::new(BootClock)).await.unwrap();
    let (mut kept, total) = (0, transactions.len());
    for steps in transactions {
        let mut tx = world.begin().await;
        let mut outcome = Ok(());
        for step in &steps {
            outcome = take(&mut tx, step).await;
            if outcome.is_err() {
                break;
            }
        }
        match outcome {
            Ok(()) => {
                tx.commit().await.unwrap();
                kept += 1;
            }
            Err(StoreError::Database(cause)) => panic!("{steps:?}: {cause:?}"),
            Err(_) => tx.rollback().await.unwrap(),
        }
        world.clock.pass(1);
    }
    assert!(kept * 3 > total, "only {kept} of {total} mutations meant anything");
    let (followed, loaded) = (feed.pin().snapshot, world.store.load().await.unwrap());
    prop_assert_eq!(followed.epoch(), loaded.epoch());
    prop_assert!(followed.same_rows(&loaded));
    Ok(())
}

/// Creates organizations, groups and users first, so that most later steps have an effect.
fn transactions() -> impl Strategy<Value = Vec<Vec<Step>>> {
    let people = (0..6).flat_map(|n| [Step::MakeOrganization(n), Step::MakeGroup(n), Step::MakeUser(n)]);
    let first: Vec<Vec<Step>> = people.map(|step| vec![step]).collect();
    vec(vec(step(), 1..4), 60..90).prop_map(move |rest| [first.clone(), rest].concat())
}

/// The cases of one engine, each run on a database of its own.
fn cases() -> Vec<Vec<Vec<Step>>> {
    let mut runner = TestRunner::deterministic();
    (0..6)
        .map(|_| transactions().new_tree(&mut runner).unwrap().current())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn following_equals_loading_on_sqlite() {
    for case in cases() {
        follows(&World::sqlite().await, case).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn following_equals_loading_on_postgres() {
    for case in cases() {
        let Some(world) = World::postgres().await else { return };
        follows(&world, case).await.unwrap();
    }
}
