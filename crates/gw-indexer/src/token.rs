//! The view functions of token contracts: their calldata, and what their outputs mean. Pure functions.

use crate::decode::{clean_text, string};
use gw_chain_store::rows::{BlockNumHash, TokenMetadata};
use gw_evm::wire::Pin;
use gw_node::{BlockReader, NoTrace, Node, ViewCall};
use gw_policy::snapshot::VisibleState;
use gw_types::{Address, Bytes, U256};
use std::{collections::BTreeSet, sync::Arc};

/// The gas limit of a view function.
const GAS: u64 = 1_000_000;
/// Most characters of a name or symbol.
const LONGEST_NAME: usize = 128;

/// Decides what the stored answers of a token may depend on.
///
/// A view function of a token can return the state of another contract (HD26). The indexer calls it without a caller's
/// rights, and every viewer of the token may be shown the stored answer.
pub trait ViewPolicy: core::fmt::Debug + Send + Sync {
    /// Whether an answer of this token that depends on these other accounts may be stored.
    fn may_depend_on(&self, token: Address, accounts: &BTreeSet<Address>) -> bool;
}

/// Stores only answers that depend on nothing but the token's own code and state.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnStateOnly;

impl ViewPolicy for OwnStateOnly {
    fn may_depend_on(&self, _: Address, accounts: &BTreeSet<Address>) -> bool {
        accounts.is_empty()
    }
}

/// Runs the view functions of token contracts.
#[derive(Clone, Debug)]
pub struct TokenReader {
    reader: BlockReader,
    policy: Arc<dyn ViewPolicy>,
}

impl TokenReader {
    /// A reader of this node, for numbers that the index does not have.
    #[must_use]
    pub fn new(node: Arc<Node>, policy: Arc<dyn ViewPolicy>) -> Self {
        Self::from_blocks(BlockReader::new(node), policy)
    }

    pub(crate) const fn from_blocks(reader: BlockReader, policy: Arc<dyn ViewPolicy>) -> Self {
        Self { reader, policy }
    }

    /// The output of a view function at the end of a block, on its state as users are shown it. `None` if there is
    /// none, or if the policy does not allow everything that it depends on.
    ///
    /// # Errors
    /// [`NoTrace`] if the node could not run it now.
    pub async fn output(
        &self,
        token: Address,
        input: Bytes,
        block: BlockNumHash,
        state: &VisibleState,
    ) -> Result<Option<Bytes>, NoTrace> {
        let call = ViewCall {
            contract: token,
            input,
            gas: GAS,
        };
        let pin = Pin {
            number: block.number,
            hash: block.hash,
        };
        let result = self.reader.view(&call, pin, state).await?;
        let is_allowed = result.dependencies.is_empty() || self.policy.may_depend_on(token, &result.dependencies);
        Ok(result.output.filter(|_| is_allowed))
    }
}

/// A view function of a token contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenQuery {
    Name,
    Symbol,
    Decimals,
    TotalSupply,
    BalanceOf(Address),
    /// The balance in one token of an ERC-1155 contract.
    BalanceOfId(Address, U256),
}

impl TokenQuery {
    pub(crate) fn input(self) -> Bytes {
        let (selector, words): ([u8; 4], Vec<[u8; 32]>) = match self {
            Self::Name => ([0x06, 0xfd, 0xde, 0x03], vec![]),
            Self::Symbol => ([0x95, 0xd8, 0x9b, 0x41], vec![]),
            Self::Decimals => ([0x31, 0x3c, 0xe5, 0x67], vec![]),
            Self::TotalSupply => ([0x18, 0x16, 0x0d, 0xdd], vec![]),
            Self::BalanceOf(holder) => ([0x70, 0xa0, 0x82, 0x31], vec![holder.into_word().0]),
            Self::BalanceOfId(holder, id) => ([0x00, 0xfd, 0xd5, 0x8e], vec![holder.into_word().0, id.to_be_bytes()]),
        };
        Bytes::from([&selector[..], words.concat().as_slice()].concat())
    }
}

/// The metadata in these outputs; `None` where there was no usable output. `None` if nothing is known.
pub(crate) fn metadata(name: Option<&[u8]>, symbol: Option<&[u8]>, decimals: Option<&[u8]>) -> Option<TokenMetadata> {
    let metadata = TokenMetadata {
        name: name.and_then(text),
        symbol: symbol.and_then(text),
        decimals: decimals.and_then(number).and_then(|decimals| decimals.try_into().ok()),
    };
    (metadata != TokenMetadata::default()).then_some(metadata)
}

/// A name or symbol: of type `string`, or of type `bytes32` as early tokens have it.
fn text(output: &[u8]) -> Option<String> {
    let text = match <[u8; 32]>::try_from(output) {
        Ok(word) => {
            let end = word
                .iter()
                .rposition(|byte| *byte != 0)
                .map_or(0, |last| last.saturating_add(1));
            String::from_utf8_lossy(word.get(..end)?).into_owned()
        }
        Err(_) => string(output)?,
    };
    let text = clean_text(text.trim(), LONGEST_NAME);
    (!text.is_empty()).then_some(text)
}

/// An amount.
pub(crate) fn number(output: &[u8]) -> Option<U256> {
    <[u8; 32]>::try_from(output).ok().map(U256::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::keccak256;

    #[test]
    fn calldata_matches_the_signatures() {
        let holder = Address::repeat_byte(1);
        for (query, signature, words) in [
            (TokenQuery::Name, "name()", 0),
            (TokenQuery::Symbol, "symbol()", 0),
            (TokenQuery::Decimals, "decimals()", 0),
            (TokenQuery::TotalSupply, "totalSupply()", 0),
            (TokenQuery::BalanceOf(holder), "balanceOf(address)", 1),
            (
                TokenQuery::BalanceOfId(holder, U256::from(7)),
                "balanceOf(address,uint256)",
                2,
            ),
        ] {
            let input = query.input();
            assert_eq!(input[..4], keccak256(signature)[..4], "{signature}");
            assert_eq!(input.len(), 4 + 32 * words);
        }
    }

    fn string_output(text: &str) -> Vec<u8> {
        let word = |number: usize| U256::from(number).to_be_bytes::<32>();
        let mut padded = text.as_bytes().to_vec();
        padded.resize(text.len().next_multiple_of(32), 0);
        [&word(32)[..], &word(text.len()), &padded].concat()
    }

    #[test]
    fn x9_names_are_strings_or_words() {
        assert_eq!(text(&string_output("Dollar")), Some("Dollar".to_owned()));
        let mut word = [0; 32];
        word[..3].copy_from_slice(b"MKR");
        assert_eq!(text(&word), Some("MKR".to_owned()));
        assert_eq!(text(&[0; 32]), None);
        assert_eq!(text(&string_output("")), None);
        assert_eq!(text(&[]), None);
        assert_eq!(text(&[0xff; 64]), None);
        assert_eq!(
            text(&string_output("a\u{0}\u{202e}b")),
            Some("a\u{fffd}\u{fffd}b".to_owned())
        );
        assert_eq!(
            text(&string_output(&"x".repeat(5000))).map(|text| text.len()),
            Some(LONGEST_NAME)
        );
        let mut invalid = [0; 32];
        invalid[0] = 0xff;
        assert_eq!(text(&invalid), Some("\u{fffd}".to_owned()));
    }

    #[test]
    fn x9_decimals_are_one_byte() {
        let decimals = |value: u64| {
            let output = U256::from(value).to_be_bytes::<32>();
            metadata(None, None, Some(&output)).and_then(|metadata| metadata.decimals)
        };
        assert_eq!((decimals(0), decimals(255), decimals(256)), (Some(0), Some(255), None));
        assert_eq!(metadata(None, None, Some(&[18])), None, "not a word");
        assert_eq!(number(&[0xff; 32]), Some(U256::MAX));
    }

    #[test]
    fn hd26_by_default_an_answer_depends_on_the_token_alone() {
        let other = [Address::repeat_byte(2)].into();
        assert!(OwnStateOnly.may_depend_on(Address::ZERO, &BTreeSet::new()));
        assert!(!OwnStateOnly.may_depend_on(Address::ZERO, &other));
    }
}
