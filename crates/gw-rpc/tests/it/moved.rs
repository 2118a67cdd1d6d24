//! HD41 against a real node: after a contract moves to another organization, its past stays visible only to its owner
//! at the time.

use crate::world::{World, account, artifact, real};
use alloy_sol_types::{SolCall, SolValue, sol};
use gw_store::record::{NewContract, NewGrant, NewGroup, NewMembership};
use gw_testkit::TestUser;
use gw_types::{Address, Bytes, ContractId, OrgId, U256};
use serde_json::{Value, json};

sol! {
    function transfer(address to, uint256 value) external returns (bool);
    function balanceOf(address account) external view returns (uint256);
}

/// One mined transfer of the token.
struct Sent {
    hash: Value,
    number: u64,
    block: Value,
    index: Value,
}

/// Which methods show a mined transfer to a person.
#[derive(Debug, PartialEq, Eq)]
struct Visible {
    /// `eth_getLogs` by number and by hash, `eth_getFilterLogs`, the receipt.
    by_log: [bool; 4],
    /// The transaction by hash and by index, its block's transactions, their count, the block's receipts, its trace.
    whole: [bool; 6],
}

const NOTHING: Visible = Visible {
    by_log: [false; 4],
    whole: [false; 6],
};
const LOGS: Visible = Visible {
    by_log: [true; 4],
    whole: [false; 6],
};
const ALL: Visible = Visible {
    by_log: [true; 4],
    whole: [true; 6],
};

async fn transfer(world: &World, token: Address) -> Sent {
    let data = Bytes::from(
        transferCall {
            to: Address::repeat_byte(0x99),
            value: U256::from(7),
        }
        .abi_encode(),
    );
    let send = json!([{"from": account(3).address(), "to": token, "input": data, "gas": "0x7a1200"}]);
    let hash = world.bare("eth_sendTransaction", send).await["result"].clone();
    let receipt = loop {
        let answer = world.bare("eth_getTransactionReceipt", json!([hash])).await["result"].clone();
        if !answer.is_null() {
            break answer;
        }
    };
    let number = u64::from_str_radix(receipt["blockNumber"].as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
    assert_eq!(receipt["logs"].as_array().unwrap().len(), 1);
    world.mined(number).await;
    Sent {
        hash,
        number,
        block: receipt["blockHash"].clone(),
        index: receipt["transactionIndex"].clone(),
    }
}

async fn shown(world: &World, person: &TestUser, token: Address, sent: &Sent) -> Visible {
    // A minute later, every caller may trace again.
    world.fixture.clock.pass(60);
    let number = format!("{:#x}", sent.number);
    let ask = async |method: &str, params: Value| {
        let answer = world.ask(Some(person), method, params).send().await;
        assert!(
            answer.status == 200 || answer.status == 404,
            "{method}: {}",
            answer.text
        );
        (answer.body["result"].clone(), answer.text)
    };
    let rows = |(answer, _): (Value, String)| answer.as_array().is_some_and(|rows| !rows.is_empty());
    let is_object = |(answer, _): (Value, String)| !answer.is_null();
    let filter = ask(
        "eth_newFilter",
        json!([{"address": token, "fromBlock": number, "toBlock": number}]),
    )
    .await
    .0;
    let by_log = [
        rows(
            ask(
                "eth_getLogs",
                json!([{"address": token, "fromBlock": number, "toBlock": number}]),
            )
            .await,
        ),
        rows(ask("eth_getLogs", json!([{"address": token, "blockHash": sent.block}])).await),
        !filter.is_null() && rows(ask("eth_getFilterLogs", json!([filter])).await),
        is_object(ask("eth_getTransactionReceipt", json!([sent.hash])).await),
    ];
    let block = ask("eth_getBlockByHash", json!([sent.block, true])).await.0;
    let whole = [
        is_object(ask("eth_getTransactionByHash", json!([sent.hash])).await),
        is_object(ask("eth_getTransactionByBlockHashAndIndex", json!([sent.block, sent.index])).await),
        !block["transactions"].as_array().unwrap().is_empty(),
        ask("eth_getBlockTransactionCountByNumber", json!([number])).await.0 == json!("0x1"),
        rows(ask("eth_getBlockReceipts", json!([sent.block])).await),
        is_object(ask("debug_traceTransaction", json!([sent.hash, {"tracer": "callTracer"}])).await),
    ];
    // A wider query does not name the transaction of others either.
    if by_log == NOTHING.by_log && whole == NOTHING.whole {
        let all_logs = ask(
            "eth_getLogs",
            json!([{"address": token, "fromBlock": "0x0", "toBlock": "latest"}]),
        )
        .await
        .1;
        assert!(!all_logs.contains(sent.hash.as_str().unwrap()), "{all_logs}");
    }
    Visible { by_log, whole }
}

async fn admin(world: &World, name: &str, org: OrgId) -> TestUser {
    let person = world.person(name, org, &["*"], &[]).await;
    let group = NewGroup {
        is_org_admin: true,
        ..NewGroup::plain(org, format!("{name}-admins"), format!("{name} admins"))
    };
    world
        .fixture
        .change(async |tx| {
            let group = tx.create_group(group).await.unwrap().id;
            tx.add_membership(NewMembership {
                user: person.id,
                group,
                expires_at: None,
            })
            .await
            .unwrap();
        })
        .await;
    person
}

/// Moves the contract as a super administrator does: deletes one registration and creates the other.
async fn move_to(world: &World, contract: ContractId, org: OrgId, token: Address, to: &TestUser) -> ContractId {
    world.node.refresh_head().await.unwrap();
    let head = world.node.head().unwrap().number;
    let new = NewContract {
        takes_over_retired: true,
        first_block: Some(head + 1),
        ..NewContract::plain(org, token, "token")
    };
    world
        .fixture
        .change(async |tx| {
            tx.delete_contract(contract, Some(head)).await.unwrap();
            let id = tx.create_contract(new).await.unwrap().id;
            tx.create_grant(NewGrant::full(id, to.group)).await.unwrap();
            id
        })
        .await
}

fn token_code() -> Vec<u8> {
    let arguments = ("Token".to_owned(), "T".to_owned(), U256::from(1_000_000u64)).abi_encode_params();
    [artifact("DemoERC20").0.to_vec(), arguments].concat()
}

/// The attack: the new owner queries by every method what the token did under the old owner.
#[tokio::test]
async fn rt29_hd41_the_past_of_a_moved_contract_stays_with_its_past_owner() {
    let (world, _anvil) = real().await;
    let (old, new) = (
        world.fixture.create_org("old").await,
        world.fixture.create_org("new").await,
    );
    let (old_admin, new_admin) = (
        admin(&world, "oldadmin", old).await,
        admin(&world, "newadmin", new).await,
    );
    let old_member = world.person("oldmember", old, &["*"], &[]).await;
    let new_member = world.person("newmember", new, &["*"], &[]).await;
    let token = world.deploy(&token_code()).await;
    let contract = world.contract(old, token, None, &[old_member.group]).await;

    let before = transfer(&world, token).await;
    assert_eq!(shown(&world, &old_admin, token, &before).await, ALL);
    assert_eq!(shown(&world, &old_member, token, &before).await, LOGS);
    let moved = move_to(&world, contract, new, token, &new_member).await;
    let after = transfer(&world, token).await;

    for person in [&new_admin, &new_member] {
        assert_eq!(shown(&world, person, token, &before).await, NOTHING, "{}", person.name);
    }
    assert_eq!(shown(&world, &new_admin, token, &after).await, ALL);
    assert_eq!(shown(&world, &new_member, token, &after).await, LOGS);

    assert_eq!(shown(&world, &old_admin, token, &before).await, ALL);
    assert_eq!(shown(&world, &old_member, token, &before).await, LOGS);
    for person in [&old_admin, &old_member] {
        assert_eq!(shown(&world, person, token, &after).await, NOTHING, "{}", person.name);
    }

    // State, directly and in a run.
    let call = json!({"to": token, "data": Bytes::from(balanceOfCall { account: Address::ZERO }.abi_encode())});
    for (sent, may) in [(&before, false), (&after, true)] {
        let number = format!("{:#x}", sent.number);
        for (method, params) in [
            ("eth_getStorageAt", json!([token, format!("{:#066x}", 0), number])),
            ("eth_getCode", json!([token, number])),
            ("eth_call", json!([call, number])),
        ] {
            let answer = world.ask(Some(&new_admin), method, params.clone()).send().await;
            assert_eq!(answer.status == 200, may, "{method}: {}", answer.text);
            world.ask(Some(&old_admin), method, params).send().await.assert_denied();
        }
    }

    // The contract moves back: the second owner's time stays visible to the second owner only.
    move_to(&world, moved, old, token, &old_member).await;
    let again = transfer(&world, token).await;
    for (person, seen) in [(&old_admin, [true, false, true]), (&new_admin, [false, true, false])] {
        for (sent, may) in [&before, &after, &again].into_iter().zip(seen) {
            assert_eq!(
                shown(&world, person, token, sent).await,
                if may { ALL } else { NOTHING },
                "{}",
                person.name
            );
        }
    }
}
