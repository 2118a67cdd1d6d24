//! Parses touched accounts and state changes in the format of the prestateTracer.

use super::{Account, Before, Change, TraceError};
use alloy_primitives::{Address, B256, Bytes, U256};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

type Accounts = BTreeMap<Address, AccountText>;

#[derive(Deserialize, Default)]
#[serde(default)]
struct AccountText {
    balance: Option<U256>,
    nonce: Option<Nonce>,
    code: Option<Bytes>,
    storage: BTreeMap<B256, B256>,
}

/// Most nodes write a JSON number, some a hex quantity.
#[derive(Deserialize)]
#[serde(untagged)]
enum Nonce {
    Number(u64),
    Quantity(U256),
}

impl Nonce {
    fn read(self) -> Result<u64, TraceError> {
        match self {
            Self::Number(nonce) => Ok(nonce),
            Self::Quantity(nonce) => nonce.try_into().map_err(|_| TraceError::Malformed),
        }
    }
}

fn nonce(text: Option<Nonce>) -> Result<Option<u64>, TraceError> {
    text.map(Nonce::read).transpose()
}

/// Every account that was read or written, with its previous state.
pub(super) fn touched(json: &RawValue) -> Result<BTreeMap<Address, Account>, TraceError> {
    let accounts: Accounts = serde_json::from_str(json.get()).map_err(|_| TraceError::Malformed)?;
    let account = |(address, text): (Address, AccountText)| {
        let account = Account {
            code: text.code.unwrap_or_default(),
            balance: text.balance.unwrap_or_default(),
            nonce: nonce(text.nonce)?.unwrap_or_default(),
            slots: text.storage,
        };
        Ok((address, account))
    };
    accounts.into_iter().map(account).collect()
}

/// The state changes of the execution. Nodes list changed accounts only: `pre` has the previous values, `post` the
/// new values that differ. A slot that becomes zero is missing in `post`, a slot that was zero is missing in `pre`,
/// and a deleted account is missing in `post`.
pub(super) fn changes(json: &RawValue) -> Result<BTreeMap<Address, Change>, TraceError> {
    let mut diff: Diff = serde_json::from_str(json.get()).map_err(|_| TraceError::Malformed)?;
    let mut changes = BTreeMap::new();
    for (address, before) in diff.pre {
        let after = diff.post.remove(&address);
        let removed = after.is_none();
        let mut change = change(after.unwrap_or_default())?;
        change.removed = removed;
        for slot in before.storage.keys() {
            change.storage.entry(*slot).or_default();
        }
        change.before = Before {
            balance: before.balance.unwrap_or_default(),
            nonce: nonce(before.nonce)?.unwrap_or_default(),
            storage: before.storage,
        };
        changes.insert(address, change);
    }
    for (address, created) in diff.post {
        changes.insert(address, change(created)?);
    }
    Ok(changes)
}

/// Accounts whose nonce was zero before and is not zero afterwards.
pub(super) fn first_nonces(json: &RawValue) -> Result<Vec<Address>, TraceError> {
    let Diff { mut pre, post } = serde_json::from_str(json.get()).map_err(|_| TraceError::Malformed)?;
    let mut first = Vec::new();
    for (address, after) in post {
        let before = pre.remove(&address).and_then(|before| before.nonce);
        if nonce(after.nonce)?.is_some_and(|used| used > 0) && nonce(before)?.unwrap_or_default() == 0 {
            first.push(address);
        }
    }
    Ok(first)
}

#[derive(Deserialize)]
struct Diff {
    pre: Accounts,
    post: Accounts,
}

fn change(after: AccountText) -> Result<Change, TraceError> {
    let (balance, storage) = (after.balance, after.storage);
    Ok(Change {
        balance,
        nonce: nonce(after.nonce)?,
        storage,
        removed: false,
        before: Before::default(),
    })
}
