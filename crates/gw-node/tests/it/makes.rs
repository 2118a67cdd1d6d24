//! What nodes of several makes can be asked (decision 7): measured, not assumed.

use crate::connect;
use gw_evm::wire::{TraceForm, UpstreamCall};
use gw_node::{Answer, Budget, Looked, NoTrace, Node};
use gw_testkit::{Hardhat, anvil::anvil};
use gw_types::{B256, U256};

const FUNDED: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";

/// A payment by an account of the node's own, once it is mined.
async fn paid(node: &Node) -> (B256, B256) {
    let to = "0x00000000000000000000000000000000000000aa";
    let params = format!(r#"[{{"from":"{FUNDED}","to":"{to}","value":"0x1","gas":"0x5208"}}]"#);
    let sent = node
        .call(
            &UpstreamCall {
                method: "eth_sendTransaction".into(),
                params,
            },
            Budget::Forward,
        )
        .await
        .unwrap();
    let taken = match sent {
        Answer::Result(taken) => Some(taken),
        Answer::Error(_) => None,
    };
    let hash = gw_policy::view::sent_hash(&taken.unwrap()).unwrap();
    loop {
        if let Some(mined) = node.mined(hash).await.unwrap() {
            return (hash, mined.block_hash);
        }
    }
}

#[tokio::test]
async fn decision_7_hardhat_3_knows_the_combined_tracer() {
    let (hardhat, anvil) = (Hardhat::Three.start(), anvil());
    for (url, form) in [(hardhat.url(), TraceForm::Mux), (anvil.url(), TraceForm::Batch)] {
        let node = connect(url).await;
        assert_eq!((node.chain_id(), node.trace_form()), (31337, Some(form)));
        let (hash, block) = paid(&node).await;
        let looked = node.look_at(block, &[hash]).await.unwrap();
        assert!(matches!(&looked[..], [Looked::Run(run)] if run.sent.hash == hash && run.created.is_empty()));
        // Many of a block at once: Anvil by the block, Hardhat by each transaction, for it traces no blocks.
        assert_eq!(node.look_at(block, &[hash; 9]).await.unwrap().len(), 9);
        // HD2: what was mined elsewhere is not told of this block.
        assert!(node.look_at(B256::from(U256::from(7)), &[hash]).await.is_err());
        assert!(node.trace_mined(hash).await.is_ok());
    }
}

/// X11: only its default tracer.
#[tokio::test]
async fn x11_hardhat_2_gives_no_traces() {
    let hardhat = Hardhat::Two.start();
    let node = connect(hardhat.url()).await;
    assert_eq!((node.chain_id(), node.trace_form()), (31337, None));
    let (hash, block) = paid(&node).await;
    assert!(matches!(node.look_at(block, &[hash]).await, Err(NoTrace::Unsupported)));
    assert!(node.listing(block).await.unwrap().transactions.contains(&hash));
}
