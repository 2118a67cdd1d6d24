//! A node that loses answers.

use crate::support::{
    Running,
    chain::Chain,
    config,
    database::{Database, assert_equal},
    indexed,
    relay::{Loss, LossyRelay},
    within,
};
use gw_testkit::anvil::anvil;
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

#[tokio::test(flavor = "multi_thread")]
async fn x7_a_lost_receipt_delays_its_block_and_changes_nothing() {
    let (database, fresh) = (Database::sqlite(), Database::sqlite());
    let anvil = anvil();
    let chain = Chain::new(anvil.url());
    let contracts = chain.deploy_contracts().await;
    chain.one_block(&contracts).await;
    let lost = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&lost);
    let relay = LossyRelay::to(anvil.url(), move |method, result| {
        // The first two of three answers lack the last receipt.
        let is_receipt = method == "eth_getBlockReceipts" || method == "eth_getTransactionReceipt";
        if !is_receipt || counter.fetch_add(1, Ordering::SeqCst) % 3 == 2 {
            return None;
        }
        let mut receipts = result.as_array().cloned().unwrap_or_default();
        if let Some(last) = receipts.last_mut() {
            *last = Value::Null;
            return Some(Loss::Result(receipts.into()));
        }
        Some(Loss::Result(Value::Null))
    })
    .await;
    let running = Running::start(relay.url(), database.open().await, &database.clock, config()).await;
    let (number, hash) = chain.rpc.head().await;
    running.reaches(&database, number, &hash).await;
    running.end().await;
    assert!(lost.load(Ordering::SeqCst) > 6);
    assert_equal(&database.tables().await, &indexed(anvil.url(), &fresh).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn x10_a_lost_trace_marks_its_block_until_it_is_read() {
    for (database, fresh) in Database::pairs() {
        let anvil = anvil();
        let chain = Chain::new(anvil.url());
        let contracts = chain.deploy_contracts().await;
        chain.send_transactions(&contracts, 1).await;
        let loses = Arc::new(AtomicBool::new(true));
        let flag = Arc::clone(&loses);
        let relay = LossyRelay::to(anvil.url(), move |method, _| {
            let is_trace = method == "debug_traceTransaction" || method == "debug_traceBlockByHash";
            (is_trace && flag.load(Ordering::SeqCst)).then_some(Loss::Error)
        })
        .await;
        let running = Running::start(relay.url(), database.open().await, &database.clock, config()).await;
        let (number, hash) = chain.rpc.head().await;
        let incomplete = "SELECT number FROM blocks WHERE NOT frames_complete";
        within(120, async {
            while database.newest_block().await != Some((number, hash.clone())) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
        .await;
        // Every block with a transaction.
        assert_eq!(database.count(incomplete).await, usize::try_from(number).unwrap());
        assert_eq!(database.count("SELECT position FROM frames").await, 0);
        loses.store(false, Ordering::SeqCst);
        running.reaches(&database, number, &hash).await;
        running.end().await;
        assert_eq!(database.count(incomplete).await, 0);
        let expected = indexed(anvil.url(), &fresh).await;
        let has_error = |row: &Value| row["error"] != Value::Null;
        assert!(expected["transactions"].iter().any(has_error), "a transaction failed");
        assert_equal(&database.tables().await, &expected);
    }
}

/// X7: a wrong time of a block, which its hash does not show, is found by the next block and mended without an
/// operator.
#[tokio::test(flavor = "multi_thread")]
async fn x7_a_wrong_time_is_mended_by_the_next_block() {
    for (database, fresh) in Database::pairs() {
        let anvil = anvil();
        let chain = Chain::new(anvil.url());
        let contracts = chain.deploy_contracts().await;
        let (wrong, hash) = chain.rpc.head().await;
        let is_lying = Arc::new(AtomicUsize::new(1));
        let lies = Arc::clone(&is_lying);
        let relay = LossyRelay::to(anvil.url(), move |method, result| {
            let is_block = method.starts_with("eth_getBlockBy") && result["hash"] == json!(hash);
            (is_block && lies.load(Ordering::SeqCst) == 1).then(|| {
                let mut block = result.clone();
                block["timestamp"] = json!("0x7fffffffffffffff");
                Loss::Result(block)
            })
        })
        .await;
        let running = Running::start(relay.url(), database.open().await, &database.clock, config()).await;
        let (number, hash) = chain.rpc.head().await;
        assert_eq!(number, wrong);
        running.reaches(&database, number, &hash).await;
        is_lying.store(0, Ordering::SeqCst);
        chain.send_transactions(&contracts, 1).await;
        let (number, hash) = chain.rpc.head().await;
        running.reaches(&database, number, &hash).await;
        running.end().await;
        assert_equal(&database.tables().await, &indexed(anvil.url(), &fresh).await);
    }
}

/// A block that an operator has read again has the rows that the node returns.
#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_is_read_again_is_as_the_node_has_it() {
    for (database, fresh) in Database::pairs() {
        let anvil = anvil();
        let chain = Chain::new(anvil.url());
        let contracts = chain.deploy_contracts().await;
        chain.send_transactions(&contracts, 1).await;
        let store = database.open().await;
        let running = Running::start(anvil.url(), store.clone(), &database.clock, config()).await;
        let (number, hash) = chain.rpc.head().await;
        running.reaches(&database, number, &hash).await;
        database.tamper("UPDATE transactions SET gas_used = 1").await;
        database.tamper("UPDATE logs SET topic0 = NULL").await;
        database.tamper("UPDATE frames SET gas_used = 1").await;
        database.tamper("UPDATE tokens SET decimals = 77").await;
        for block in 0..=number {
            assert!(store.request_block(block).await.unwrap());
        }
        assert!(!store.request_block(number + 1).await.unwrap());
        running.reaches(&database, number, &hash).await;
        running.end().await;
        assert_equal(&database.tables().await, &indexed(anvil.url(), &fresh).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn x12_work_that_fails_is_done_later() {
    let (database, fresh) = (Database::sqlite(), Database::sqlite());
    let anvil = anvil();
    let chain = Chain::new(anvil.url());
    let contracts = chain.deploy_contracts().await;
    chain.send_transactions(&contracts, 1).await;
    let failures = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&failures);
    let relay = LossyRelay::to(anvil.url(), move |method, _| {
        let is_work = method == "eth_getBalance" || method == "debug_traceCall";
        (is_work && counter.fetch_add(1, Ordering::SeqCst) < 60).then_some(Loss::Error)
    })
    .await;
    // The node is connected before answers are lost, so that its tracing support is known.
    failures.store(usize::MAX / 2, Ordering::SeqCst);
    let running = Running::start(relay.url(), database.open().await, &database.clock, config()).await;
    failures.store(0, Ordering::SeqCst);
    let (number, hash) = chain.rpc.head().await;
    running.reaches(&database, number, &hash).await;
    running.end().await;
    assert!(failures.load(Ordering::SeqCst) > 60);
    assert_equal(&database.tables().await, &indexed(anvil.url(), &fresh).await);
}

/// X7: a node that lists no transactions, or some, of a block is asked again; nothing half is stored.
#[tokio::test(flavor = "multi_thread")]
async fn x7_half_an_answer_delays_its_block_and_changes_nothing() {
    let (database, fresh) = (Database::sqlite(), Database::sqlite());
    let anvil = anvil();
    let chain = Chain::new(anvil.url());
    let contracts = chain.deploy_contracts().await;
    chain.one_block(&contracts).await;
    let halved = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&halved);
    let relay = LossyRelay::to(anvil.url(), move |method, result| {
        let transactions = result.get("transactions").and_then(Value::as_array)?;
        if method != "eth_getBlockByNumber" || transactions.is_empty() || !transactions[0].is_object() {
            return None;
        }
        // Of three answers, the first lists nothing and the second lacks the last transaction.
        let kept = match counter.fetch_add(1, Ordering::SeqCst) % 3 {
            0 => 0,
            1 => transactions.len() - 1,
            _ => return None,
        };
        let mut block = result.clone();
        block["transactions"] = transactions[..kept].to_vec().into();
        Some(Loss::Result(block))
    })
    .await;
    let running = Running::start(relay.url(), database.open().await, &database.clock, config()).await;
    let (number, hash) = chain.rpc.head().await;
    running.reaches(&database, number, &hash).await;
    running.end().await;
    assert!(halved.load(Ordering::SeqCst) > 6);
    assert_equal(&database.tables().await, &indexed(anvil.url(), &fresh).await);
}

/// X7: a block that was stored from half an answer is repaired by a request to read it again.
#[tokio::test(flavor = "multi_thread")]
async fn x7_a_stored_half_of_a_block_is_repaired() {
    for (database, fresh) in Database::pairs() {
        let anvil = anvil();
        let chain = Chain::new(anvil.url());
        let contracts = chain.deploy_contracts().await;
        chain.one_block(&contracts).await;
        chain.send_transactions(&contracts, 1).await;
        let store = database.open().await;
        let running = Running::start(anvil.url(), store.clone(), &database.clock, config()).await;
        let (number, hash) = chain.rpc.head().await;
        running.reaches(&database, number, &hash).await;
        running.end().await;
        let whole = store.reader().await.unwrap();
        let mut rich = None;
        for number in 0..=number {
            let data = whole.find_block_data(number).await.unwrap().unwrap();
            if data.transactions.len() > 2 {
                rich = Some(data);
            }
        }
        drop(whole);
        let mut half = rich.expect("a block with several transactions");
        half.transactions.truncate(1);
        let writer = store.writer("test").await.unwrap();
        assert!(writer.replace_block(&half).await.unwrap());
        assert!(store.request_block(half.block.number).await.unwrap());
        writer.release().await.unwrap();
        drop(writer);
        let running = Running::start(anvil.url(), store.clone(), &database.clock, config()).await;
        running.reaches(&database, number, &hash).await;
        running.end().await;
        assert_equal(&database.tables().await, &indexed(anvil.url(), &fresh).await);
    }
}
