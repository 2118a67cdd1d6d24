//! Calls to the State contract, parsing of its answers, and how old an answer may be (ZK-51, ZK-70, ZK-71, DI-5 to
//! DI-7).
//!
//! Not here: the call itself. Invariant: an unreadable answer is a fault, never "not found"; only the contract's own
//! error says that something does not exist.

use crate::{did::Id, number};
use ark_bn254::Fr;
use gw_types::{Seconds, Timestamp, U256};

/// How long a replaced root is still accepted (ZK-51).
pub const ROOT_DELAY: Seconds = Seconds(300);
/// How long a replaced state still shows that a credential was not revoked (ZK-71).
pub const STATE_DELAY: Seconds = Seconds(3600);

const GET_ROOT: [u8; 4] = [0x7c, 0x1a, 0x66, 0xde];
const GET_STATE: [u8; 4] = [0x53, 0xc8, 0x73, 0x12];
const ERROR_STRING: [u8; 4] = [0x08, 0xc3, 0x79, 0xa0];
const ROOT_DOES_NOT_EXIST: [u8; 4] = [0xf9, 0x54, 0x11, 0xd2];
const STATE_DOES_NOT_EXIST: [u8; 4] = [0x92, 0x23, 0xdc, 0x39];

/// The outcome of a contract call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallResult<'a> {
    /// It returned these bytes.
    Returned(&'a [u8]),
    /// It reverted.
    Reverted {
        /// The revert data; empty if the node gave none.
        data: &'a [u8],
        /// The node's error message.
        message: &'a str,
    },
}

/// The status of a root of the tree of all identities (GIST).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// The root is the newest.
    Current,
    /// The root was replaced at this time.
    Replaced(Timestamp),
}

/// The status of a state of one identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// When the state was replaced; `None` for the newest.
    pub replaced: Option<Timestamp>,
    /// Whether this is the identity's genesis state.
    pub genesis: bool,
}

/// Why an answer gives no status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// The contract does not know the root or state.
    #[error("the contract does not know it")]
    Unknown,
    /// The answer is about another root or state.
    #[error("the answer is about something else")]
    Other,
    /// Replaced, but without a time.
    #[error("replaced at an unknown time")]
    NoTime,
    /// Another revert, or an unreadable answer.
    #[error("the contract's answer cannot be read")]
    Fault,
}

/// Why a status is too old.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FreshnessError {
    /// The root or state was replaced too long ago.
    #[error("replaced too long ago")]
    Replaced,
    /// The contract was queried too long ago.
    #[error("read too long ago")]
    Read,
}

/// Encodes the call that asks about a root.
pub fn root_call(root: &Fr) -> Vec<u8> {
    [&GET_ROOT[..], &number::word(root).to_be_bytes::<32>()].concat()
}

/// Encodes the call that asks about a state.
pub fn state_call(id: &Id, state: &Fr) -> Vec<u8> {
    [
        &GET_STATE[..],
        &id.word().to_be_bytes::<32>(),
        &number::word(state).to_be_bytes::<32>(),
    ]
    .concat()
}

/// Parses the answer about a root.
///
/// # Errors
/// [`StateError::Unknown`] if the contract does not know the root; the other errors if the answer cannot be used.
pub fn read_root(root: &Fr, result: CallResult<'_>) -> Result<Root, StateError> {
    let bytes = match result {
        CallResult::Returned(bytes) => bytes,
        CallResult::Reverted { data, message } => {
            let unknown = reverted_with(data, message, ROOT_DOES_NOT_EXIST, "Root does not exist");
            return Err(if unknown {
                StateError::Unknown
            } else {
                StateError::Fault
            });
        }
    };
    let [about, replaced_by, _, replaced_at, _, _] = words(bytes).ok_or(StateError::Fault)?;
    if about != number::word(root) {
        return Err(StateError::Other);
    }
    if replaced_by.is_zero() {
        return Ok(Root::Current);
    }
    if replaced_at.is_zero() {
        return Err(StateError::NoTime);
    }
    Ok(Root::Replaced(time(replaced_at)?))
}

/// Parses the answer about a state. A state that the contract does not know is current if it is the identity's genesis
/// state (DI-6).
///
/// For the state under which a credential was issued, ZK-70 requires only that there is an answer.
///
/// # Errors
/// [`StateError::Unknown`] if the contract does not know the state and it is not the genesis state; the other errors
/// if the answer cannot be used.
pub fn read_state(id: &Id, state: &Fr, result: CallResult<'_>) -> Result<State, StateError> {
    let genesis = id.is_genesis(state);
    let bytes = match result {
        CallResult::Returned(bytes) => bytes,
        CallResult::Reverted { data, message } => {
            let unknown = reverted_with(data, message, STATE_DOES_NOT_EXIST, "State does not exist");
            return match (unknown, genesis) {
                (true, true) => Ok(State {
                    replaced: None,
                    genesis,
                }),
                (true, false) => Err(StateError::Unknown),
                (false, _) => Err(StateError::Fault),
            };
        }
    };
    let [about, state_word, replaced_by, _, replaced_at, _, _] = words(bytes).ok_or(StateError::Fault)?;
    if about != id.word() || state_word != number::word(state) {
        return Err(StateError::Other);
    }
    match (replaced_at.is_zero(), replaced_by.is_zero()) {
        (true, true) => Ok(State {
            replaced: None,
            genesis,
        }),
        (true, false) => Err(StateError::NoTime),
        (false, _) => Ok(State {
            replaced: Some(time(replaced_at)?),
            genesis,
        }),
    }
}

/// Checks that a proof may use this root (ZK-51). `read` is when the contract was queried: a root that was current then
/// may have been replaced immediately after (ZK-52).
///
/// # Errors
/// [`FreshnessError`] if the root was replaced, or the contract was asked, more than [`ROOT_DELAY`] ago.
pub fn check_root_freshness(root: Root, read: Timestamp, now: Timestamp) -> Result<(), FreshnessError> {
    match root {
        Root::Current if older(read, ROOT_DELAY, now) => Err(FreshnessError::Read),
        Root::Replaced(at) if older(at, ROOT_DELAY, now) => Err(FreshnessError::Replaced),
        Root::Current | Root::Replaced(_) => Ok(()),
    }
}

/// Checks that this state shows that a credential was not revoked (ZK-71).
///
/// # Errors
/// [`FreshnessError`] if the state was replaced, or the contract was asked, more than [`STATE_DELAY`] ago.
pub fn check_non_revocation_freshness(state: State, read: Timestamp, now: Timestamp) -> Result<(), FreshnessError> {
    match state.replaced {
        None if older(read, STATE_DELAY, now) => Err(FreshnessError::Read),
        Some(at) if older(at, STATE_DELAY, now) => Err(FreshnessError::Replaced),
        None | Some(_) => Ok(()),
    }
}

fn older(than: Timestamp, span: Seconds, now: Timestamp) -> bool {
    than.plus(span) < now
}

/// Parses a time in seconds. Rejects values that no clock can show.
fn time(word: U256) -> Result<Timestamp, StateError> {
    i64::try_from(word)
        .ok()
        .filter(|seconds| *seconds < 1 << 40)
        .map(Timestamp::from_secs)
        .ok_or(StateError::Fault)
}

/// Splits the bytes into exactly `N` words.
fn words<const N: usize>(bytes: &[u8]) -> Option<[U256; N]> {
    let (words, rest) = bytes.as_chunks::<32>();
    let words: &[[u8; 32]; N] = words.try_into().ok()?;
    rest.is_empty().then(|| words.map(U256::from_be_bytes))
}

/// Whether a revert has this `error` selector or `text`. Reads the data if there is any, else the node's message
/// (DI-6).
fn reverted_with(data: &[u8], message: &str, error: [u8; 4], text: &str) -> bool {
    match data.split_first_chunk::<4>() {
        Some((selector, rest)) if *selector == ERROR_STRING => error_text(rest) == Some(text.as_bytes()),
        Some((selector, rest)) => *selector == error && rest.is_empty(),
        None => data.is_empty() && message.trim().trim_start_matches("execution reverted: ") == text,
    }
}

/// Parses the text of `Error(string)`.
fn error_text(bytes: &[u8]) -> Option<&[u8]> {
    let (offset, rest) = bytes.split_first_chunk::<32>()?;
    let (length, text) = rest.split_first_chunk::<32>()?;
    if U256::from_be_bytes(*offset) != U256::from(32) {
        return None;
    }
    text.get(..usize::try_from(U256::from_be_bytes(*length)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);

    fn answer(words: &[u64]) -> Vec<u8> {
        words
            .iter()
            .flat_map(|word| U256::from(*word).to_be_bytes::<32>())
            .collect()
    }

    fn root(words: &[u64]) -> Result<Root, StateError> {
        read_root(&Fr::from(7u8), CallResult::Returned(&answer(words)))
    }

    #[test]
    fn zk51_roots_as_the_contract_tells_them() {
        assert_eq!(root(&[7, 0, 1, 0, 1, 0]), Ok(Root::Current));
        assert_eq!(
            root(&[7, 8, 1, 1000, 1, 2]),
            Ok(Root::Replaced(Timestamp::from_secs(1000)))
        );
        assert_eq!(root(&[7, 8, 1, 0, 1, 2]), Err(StateError::NoTime));
        assert_eq!(root(&[8, 0, 1, 0, 1, 0]), Err(StateError::Other));
        assert_eq!(root(&[7, 8, 1, u64::MAX, 1, 2]), Err(StateError::Fault));
        assert_eq!(root(&[]), Err(StateError::Fault));
        assert_eq!(root(&[7, 0, 1, 0, 1]), Err(StateError::Fault));
        assert_eq!(root(&[7, 0, 1, 0, 1, 0, 0]), Err(StateError::Fault));
    }

    #[test]
    fn zk51_zk52_age_counts_from_replacement_and_from_reading() {
        let ago = |seconds| NOW.minus(Seconds(seconds));
        assert_eq!(check_root_freshness(Root::Current, ago(300), NOW), Ok(()));
        assert_eq!(
            check_root_freshness(Root::Current, ago(301), NOW),
            Err(FreshnessError::Read)
        );
        assert_eq!(check_root_freshness(Root::Replaced(ago(300)), NOW, NOW), Ok(()));
        assert_eq!(
            check_root_freshness(Root::Replaced(ago(301)), NOW, NOW),
            Err(FreshnessError::Replaced)
        );
        let state = |replaced| State {
            replaced,
            genesis: false,
        };
        assert_eq!(check_non_revocation_freshness(state(None), ago(3600), NOW), Ok(()));
        assert_eq!(
            check_non_revocation_freshness(state(None), ago(3601), NOW),
            Err(FreshnessError::Read)
        );
        assert_eq!(check_non_revocation_freshness(state(Some(ago(3600))), NOW, NOW), Ok(()));
        assert_eq!(
            check_non_revocation_freshness(state(Some(ago(3601))), NOW, NOW),
            Err(FreshnessError::Replaced)
        );
    }

    #[test]
    fn di6_only_the_contracts_own_words_mean_not_found() {
        let text = |text: &str| {
            let mut data = ERROR_STRING.to_vec();
            data.extend(answer(&[32, text.len() as u64]));
            data.extend(text.as_bytes());
            data.resize(data.len().next_multiple_of(32) + 4, 0);
            data
        };
        let read = |data: &[u8], message: &str| read_root(&Fr::from(7u8), CallResult::Reverted { data, message });
        let (unknown, fault) = (Err(StateError::Unknown), Err(StateError::Fault));
        assert_eq!(read(&text("Root does not exist"), ""), unknown);
        assert_eq!(read(&ROOT_DOES_NOT_EXIST, "execution reverted"), unknown);
        assert_eq!(read(&[], "execution reverted: Root does not exist"), unknown);
        // Revert data takes precedence over the message.
        assert_eq!(
            read(&text("any reason"), "execution reverted: Root does not exist"),
            fault
        );
        assert_eq!(
            read(&STATE_DOES_NOT_EXIST, "execution reverted: Root does not exist"),
            fault
        );
        assert_eq!(read(&[1, 2], "execution reverted: Root does not exist"), fault);
        assert_eq!(read(&text("Root does not exist, yet"), ""), fault);
        assert_eq!(read(&ERROR_STRING, "Root does not exist"), fault);
        assert_eq!(read(&[], "execution reverted"), fault);
        assert_eq!(read(&[], ""), fault);
    }
}
