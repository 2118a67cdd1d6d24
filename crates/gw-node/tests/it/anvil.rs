//! The node client against Anvil.

use crate::connect;
use gw_evm::{
    BlockId,
    wire::{TraceForm, UpstreamCall},
};
use gw_node::{Answer, RequestBudget};
use gw_testkit::anvil::{self, anvil};
use gw_types::{Address, B256, address};

const FUNDED: Address = address!("f39Fd6e51aad88F6F4ce6aB8827279cffFb92266");

#[tokio::test]
async fn decision_7_anvil_traces_by_a_pair_of_tracers_in_one_batch() {
    let anvil = anvil();
    let node = connect(anvil.url()).await;
    assert_eq!(
        (node.chain_id(), node.trace_form()),
        (anvil::CHAIN_ID, Some(TraceForm::Batch))
    );
    assert_eq!(node.head().unwrap().block.number, 0);
}

/// Sends a transaction from an account of the node and waits until it is mined; returns the created contract.
pub(crate) async fn send(node: &gw_node::Node, to: Option<Address>, input: &str) -> Option<Address> {
    let to = to.map_or_else(String::new, |to| format!(r#""to":"{to:#x}","#));
    let params = format!(r#"[{{"from":"{FUNDED:#x}",{to}"input":"{input}","gas":"0x200000"}}]"#);
    let send = UpstreamCall {
        method: "eth_sendTransaction".into(),
        params,
    };
    let sent = match node.call(&send, RequestBudget::Forward).await.unwrap() {
        Answer::Result(sent) => Some(sent),
        Answer::Error(_) => None,
    };
    let hash = gw_policy::view::sent_hash(&sent.unwrap()).unwrap();
    loop {
        if let Some(mined) = node.mined(hash).await.unwrap() {
            assert!(mined.succeeded);
            return mined.created;
        }
    }
}

#[tokio::test]
async fn queries_about_a_mined_transaction() {
    let anvil = anvil();
    let node = connect(anvil.url()).await;
    let send = UpstreamCall {
        method: "eth_sendTransaction".into(),
        params: format!(r#"[{{"from":"{FUNDED:#x}","input":"0x6001600c60003960016000f300","gas":"0x20000"}}]"#),
    };
    let Answer::Result(sent) = node.call(&send, RequestBudget::Forward).await.unwrap() else {
        panic!("refused")
    };
    let hash = gw_policy::view::sent_hash(&sent).unwrap();
    // Anvil answers before the transaction is mined.
    while node.head().unwrap().block.number == 0 {
        node.refresh_head().await.unwrap();
    }
    let head = node.head().unwrap().block;
    assert_eq!((head.number, node.mined_nonce(FUNDED).await.unwrap()), (1, 1));
    let created = FUNDED.create(0);
    assert!(node.has_code(created, head.hash).await.unwrap());
    assert!(!node.has_code(FUNDED, head.hash).await.unwrap());
    let by_hash = BlockId::Hash {
        hash: head.hash,
        require_canonical: false,
    };
    for id in [by_hash, BlockId::Number(1), BlockId::LATEST] {
        assert_eq!(node.block(id).await.unwrap(), Some(head), "{id:?}");
    }
    assert_eq!(node.block(BlockId::Number(9)).await.unwrap(), None);
    assert_eq!(node.mined(hash).await.unwrap().unwrap().created, Some(created));
    assert_eq!(node.created_by(hash).await.unwrap(), [created]);
    assert_eq!(node.mined(B256::ZERO).await.unwrap(), None);
    assert!(!node.has_transaction(B256::ZERO).await.unwrap());
}
