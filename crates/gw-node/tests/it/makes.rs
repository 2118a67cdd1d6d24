//! What nodes of several makes support (decision 7), measured with real nodes.

use crate::connect;
use gw_evm::wire::{TraceForm, UpstreamCall};
use gw_node::{Answer, MinedExecution, NoTrace, Node, RequestBudget};
use gw_testkit::{Hardhat, anvil::anvil};
use gw_types::{B256, U256};

const FUNDED: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";

/// Sends a payment from an account of the node and waits until it is mined; returns the hashes of transaction and
/// block.
async fn pay(node: &Node) -> (B256, B256) {
    let to = "0x00000000000000000000000000000000000000aa";
    let params = format!(r#"[{{"from":"{FUNDED}","to":"{to}","value":"0x1","gas":"0x5208"}}]"#);
    let answer = node
        .call(
            &UpstreamCall {
                method: "eth_sendTransaction".into(),
                params,
            },
            RequestBudget::Forward,
        )
        .await
        .unwrap();
    let accepted = match answer {
        Answer::Result(accepted) => Some(accepted),
        Answer::Error(_) => None,
    };
    let hash = gw_policy::view::sent_hash(&accepted.unwrap()).unwrap();
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
        let (hash, block) = pay(&node).await;
        let executions = node.trace_block_transactions(block, &[hash]).await.unwrap();
        assert!(
            matches!(&executions[..], [MinedExecution::Run(run)] if run.sent.hash == hash && run.created.is_empty())
        );
        // Many transactions of one block: Anvil traces the whole block; Hardhat does not trace blocks, so each
        // transaction is traced alone.
        assert_eq!(node.trace_block_transactions(block, &[hash; 9]).await.unwrap().len(), 9);
        // HD2: a transaction is not reported for a block that it is not in.
        assert!(
            node.trace_block_transactions(B256::from(U256::from(7)), &[hash])
                .await
                .is_err()
        );
        assert!(node.trace_mined(hash).await.is_ok());
    }
}

/// X11: Hardhat 2 knows only its default tracer.
#[tokio::test]
async fn x11_hardhat_2_gives_no_traces() {
    let hardhat = Hardhat::Two.start();
    let node = connect(hardhat.url()).await;
    assert_eq!((node.chain_id(), node.trace_form()), (31337, None));
    let (hash, block) = pay(&node).await;
    assert!(matches!(
        node.trace_block_transactions(block, &[hash]).await,
        Err(NoTrace::Unsupported)
    ));
    assert!(node.listing(block).await.unwrap().transactions.contains(&hash));
}
