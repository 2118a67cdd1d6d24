//! What a contract wallet says of a signature (ERC-1271).

use crate::{Answer, Budget, Node, NodeError, head::parse};
use alloy_sol_types::SolValue as _;
use gw_types::{Address, B256, Bytes};
use std::time::Duration;

/// `isValidSignature(bytes32,bytes)`: called, and answered as a yes.
const SELECTOR: [u8; 4] = [0x16, 0x26, 0xba, 0x7e];
/// What the answer may cost (LK-4).
const GAS: u64 = 200_000;
const DEADLINE: Duration = Duration::from_secs(3);
/// An account that lent its address to a contract's code (EIP-7702) stays an account: its key speaks for it (HD15).
const DELEGATED: &str = "0xef0100";

impl Node {
    /// Whether the contract at `wallet` takes `signature` for its own on `hash`, at the newest block; `None` where there
    /// is no contract (LK-4).
    pub async fn contract_signature(
        &self,
        wallet: Address,
        hash: B256,
        signature: &[u8],
    ) -> Result<Option<bool>, NodeError> {
        let mut data = SELECTOR.to_vec();
        data.extend((hash, Bytes::copy_from_slice(signature)).abi_encode_params());
        let data = Bytes::from(data);
        // The caller is nobody: a wallet's answer must not depend on who asks.
        let call = format!(
            r#"[{{"from":"{:#x}","to":"{wallet:#x}","gas":"{GAS:#x}","data":"{data:#x}"}},"latest"]"#,
            Address::ZERO
        );
        let code = format!(r#"["{wallet:#x}","latest"]"#);
        let calls = [("eth_getCode", code.as_str()), ("eth_call", call.as_str())];
        let answers = tokio::time::timeout(DEADLINE, self.ask(&calls, Budget::Fact)).await;
        let [Answer::Result(code), said] =
            <[_; 2]>::try_from(answers.map_err(|_| NodeError::Timeout)??).map_err(|_| NodeError::Unparsable)?
        else {
            return Err(NodeError::Unparsable);
        };
        let code: String = parse(&code)?;
        if code.len() <= 2 || code.starts_with(DELEGATED) {
            return Ok(None);
        }
        Ok(Some(match said {
            Answer::Result(said) => is_yes(&parse::<Bytes>(&said)?),
            // It reverted, or ran out of gas: no yes.
            Answer::Error(_) => false,
        }))
    }
}

/// One word, the selector at its left.
fn is_yes(said: &[u8]) -> bool {
    said.len() == 32 && said.starts_with(&SELECTOR) && said.iter().skip(4).all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lk4_only_the_padded_selector_is_a_yes() {
        let word = |start: &[u8]| {
            let mut word = start.to_vec();
            word.resize(32, 0);
            word
        };
        assert!(is_yes(&word(&SELECTOR)));
        for no in [vec![], SELECTOR.to_vec(), word(&[0x16, 0x26, 0xba, 0x7f]), word(&[0xff; 4]), vec![0; 32], {
            let mut long = word(&SELECTOR);
            long.push(0);
            long
        }] {
            assert!(!is_yes(&no), "{no:?}");
        }
        let mut dirty = word(&SELECTOR);
        dirty[31] = 1;
        assert!(!is_yes(&dirty));
    }
}
