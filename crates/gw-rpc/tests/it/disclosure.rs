//! Grants of disclosure on `/rpc`: approved and revoked through the store, they are in force with the next read and the
//! next notification (spec/50 section 8, rules 22 and 28).

use crate::{
    live::{Chain, FILTERS, HIDDEN, TOKEN, TRANSFER, erc20},
    world::{World, group_keys, scripted},
};
use gw_audit::{DisclosureAction, DisclosureRead, Record};
use gw_policy::disclosure::{GrantLimits, ScopeInput};
use gw_store::record::{DisclosureApproval, NewDisclosureRequest};
use gw_testkit::TestUser;
use gw_types::{Address, DisclosureRequestId, OrgId};
use serde_json::json;

const OTHER: Address = Address::repeat_byte(0xcc);

/// Approves a request of the organization for the owner's data at this level.
async fn disclose(world: &World, org: OrgId, owner: &TestUser, grantee: &TestUser, level: &str) -> DisclosureRequestId {
    let request = NewDisclosureRequest {
        requester: Some(grantee.id),
        requester_did: None,
        target: owner.id,
        org,
        scope: ScopeInput {
            level: Some(level.to_owned()),
            ..ScopeInput::default()
        },
        reason: "audit".to_owned(),
        legal_basis: None,
        expires_in_hours: None,
        requires_legal_basis_for_full: false,
    };
    world
        .fixture
        .change(async |tx| {
            let id = tx.create_disclosure_request(request).await.unwrap().id;
            let (approval, limits) = (DisclosureApproval::default(), GrantLimits::default());
            tx.approve_disclosure(id, owner.id, &approval, limits, &group_keys())
                .await
                .unwrap();
            id
        })
        .await
}

async fn revoke(world: &World, id: DisclosureRequestId, owner: &TestUser) {
    world
        .fixture
        .change(async |tx| tx.revoke_disclosure(id, owner.id, None).await.unwrap())
        .await;
}

/// The recorded reads of answers that needed a grant.
fn reveals(world: &World) -> Vec<DisclosureRead> {
    let reads = world.fixture.records().into_iter().filter_map(|record| match record {
        Record::Disclosure(read) if read.action == DisclosureAction::FeedReveal => Some(read),
        _ => None,
    });
    reads.collect()
}

/// I6, spec/50 section 8: reads, and the notifications of a connection that stays open, follow the grant.
#[tokio::test]
async fn ds22_ds28_an_open_connection_shows_a_disclosed_address_until_the_grant_ends() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let methods = [&FILTERS[..], &["eth_getLogs", "eth_getBlockByNumber", "eth_getBalance"]].concat();
    let holder = world.person("holder", bank, &methods, &[]).await;
    let owner = world.person("owner", bank, &["eth_chainId"], &[]).await;
    world.contract(bank, TOKEN, Some(&erc20()), &[holder.group]).await;
    world.link(&owner, HIDDEN).await;
    let chain = Chain::start(&fake);
    fake.set_result("eth_getBalance", json!("0x7"));
    world.node.refresh_head().await.unwrap();
    let mut socket = world.connect(&holder).await;
    let query = json!(["logs", {"address": TOKEN, "topics": [TRANSFER]}]);
    let subscription = socket.result("eth_subscribe", query).await;
    let mut expect = async |is_shown: bool, step: &str| {
        chain.mine(0, &[(HIDDEN, OTHER)]);
        world.node.refresh_head().await.unwrap();
        let sender = socket.item(&subscription).await["topics"][1].clone();
        assert_eq!(sender == json!(HIDDEN.into_word()), is_shown, "{step}: {sender}");
        let balance = world.result(&holder, "eth_getBalance", json!([HIDDEN, "latest"])).await;
        assert_eq!(balance, if is_shown { "0x7" } else { "0x0" }, "{step}");
    };
    expect(false, "without a grant").await;
    assert_eq!(reveals(&world), []);
    for level in ["pseudonymous", "redacted"] {
        let request = disclose(&world, bank, &owner, &holder, level).await;
        expect(false, level).await;
        revoke(&world, request, &owner).await;
    }
    assert_eq!(reveals(&world), [], "nothing was shown");
    for round in 0..2 {
        let request = disclose(&world, bank, &owner, &holder, "full").await;
        expect(true, &format!("granted, round {round}")).await;
        // Rule 39: the notification, and the call, are reads under the grant.
        let grants = reveals(&world);
        assert!(grants.len() >= 2, "{grants:?}");
        assert!(
            grants
                .iter()
                .all(|read| read.addresses == [HIDDEN] && read.viewer_id == Some(holder.id))
        );
        revoke(&world, request, &owner).await;
        expect(false, &format!("revoked, round {round}")).await;
    }
}
