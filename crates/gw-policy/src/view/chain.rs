//! Views of chain-wide data, and results that the gateway computes itself.

use super::{
    malformed_as,
    scan::{Malformed, Scan},
    shape::{Field, Object, Shape},
    state::{checked, quantity},
};
use crate::{
    sealed::{Disclosed, RawJson, Sealed},
    visibility::Viewer,
};
use alloy_primitives::U256;

/// A public number: gas prices, blob base fee, peer count.
pub fn public_quantity(answer: Sealed<RawJson>) -> Disclosed {
    quantity(answer)
}

/// A public text about the node: client version, protocol version. Plain ASCII without escapes, at most 256 bytes.
pub fn text(answer: Sealed<RawJson>) -> Disclosed {
    malformed_as(Disclosed::NULL, || {
        let raw = answer.open();
        let text = Scan::whole(raw.text().ok_or(Malformed)?)?;
        let content = text
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'))
            .ok_or(Malformed)?;
        let is_plain = content
            .bytes()
            .all(|b| (b' '..=b'~').contains(&b) && b != b'\\' && b != b'"');
        if is_plain && content.len() <= 256 {
            Ok(Disclosed::text(text.to_owned()))
        } else {
            Err(Malformed)
        }
    })
}

/// The result of `net_listening`.
pub fn flag(answer: Sealed<RawJson>) -> Disclosed {
    checked(answer, Shape::Flag, Disclosed::FALSE)
}

const SYNCING: [Field; 3] = [
    Field("startingBlock", Shape::Quantity),
    Field("currentBlock", Shape::Quantity),
    Field("highestBlock", Shape::Quantity),
];

/// The result of `eth_syncing`: `false`, or the three block numbers.
pub fn syncing(answer: Sealed<RawJson>) -> Disclosed {
    malformed_as(Disclosed::FALSE, || {
        let raw = answer.open();
        let text = Scan::whole(raw.text().ok_or(Malformed)?)?;
        if text == "false" {
            return Ok(Disclosed::FALSE);
        }
        let mut out = String::new();
        Object::read(&mut Scan::new(text), &SYNCING)?.write(&mut out, |_| None);
        Ok(Disclosed::text(out))
    })
}

/// The price published instead of gas price and base fee under `HIDE_BASE_FEE`, in wei: the node's price, rounded up to
/// a power of two. The node's price follows the base fee wei by wei; the rounded price reveals only its order of
/// magnitude, and transactions priced by it are accepted.
#[must_use]
pub fn published_price(gas_price: U256) -> U256 {
    if gas_price.is_zero() {
        U256::ZERO
    } else {
        gas_price.checked_next_power_of_two().unwrap_or(gas_price)
    }
}

/// The tip published under `HIDE_BASE_FEE`, in wei: one gwei, or the published price if that is lower. The node's own
/// tip would reveal the base fee, as the difference to the price.
#[must_use]
pub fn published_tip(gas_price: U256) -> U256 {
    published_price(gas_price).min(U256::from(1_000_000_000))
}

/// The inputs of `eth_feeHistory` besides the upstream result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeeFacts {
    /// The gas price in wei, before [`published_price`] rounds it.
    pub gas_price: U256,
    /// The base fee of the head, in wei.
    pub head_base_fee: U256,
    /// Number of requested percentiles; `None`: the result has no `reward`.
    pub percentiles: Option<usize>,
}

const FEE_HISTORY: [Field; 6] = [
    Field("oldestBlock", Shape::Quantity),
    Field("reward", Shape::Unchecked),
    Field("baseFeePerGas", Shape::Unchecked),
    Field("gasUsedRatio", Shape::Unchecked),
    Field("baseFeePerBlobGas", Shape::Unchecked),
    Field("blobGasUsedRatio", Shape::Unchecked),
];

/// The maximum number of rows in a node's response.
const MAX_FEE_ROWS: usize = 1025;

/// The result of `eth_feeHistory` (decision 42). Ratios are zero, since they reveal the activity of others. Rewards are
/// computed from the gas price, because without them clients fall back to legacy transactions.
pub fn fee_history(viewer: &Viewer<'_>, facts: FeeFacts, answer: Sealed<RawJson>) -> Disclosed {
    malformed_as(Disclosed::NULL, || {
        let raw = answer.open();
        let text = Scan::whole(raw.text().ok_or(Malformed)?)?;
        let history = Object::read(&mut Scan::new(text), &FEE_HISTORY)?;
        history.get("oldestBlock")?;
        let rows = count_items(history.find("gasUsedRatio").unwrap_or("null"))?;
        let hides_fee = viewer.policy_settings().hide_base_fee;
        let price = quoted(published_price(facts.gas_price));
        let base_fees = fees(history.find("baseFeePerGas"), hides_fee.then_some(&price))?;
        let blob_fees = fees(history.find("baseFeePerBlobGas"), hides_fee.then_some("\"0x1\""))?;
        let blob_rows = count_items(history.find("blobGasUsedRatio").unwrap_or("null"))?;
        let tip = if hides_fee {
            published_tip(facts.gas_price)
        } else {
            facts.gas_price.saturating_sub(facts.head_base_fee)
        };

        let mut out = format!("{{\"oldestBlock\":{}", history.get("oldestBlock")?);
        if let Some(columns) = facts.percentiles {
            push(&mut out, "reward", &repeat(&repeat(&quoted(tip), columns), rows));
        }
        if let Some(fees) = base_fees {
            push(&mut out, "baseFeePerGas", &fees);
        }
        push(&mut out, "gasUsedRatio", &repeat("0", rows));
        if let Some(fees) = blob_fees {
            push(&mut out, "baseFeePerBlobGas", &fees);
        }
        if history.find("blobGasUsedRatio").is_some() {
            push(&mut out, "blobGasUsedRatio", &repeat("0", blob_rows));
        }
        out.push('}');
        Ok(Disclosed::text(out))
    })
}

fn push(out: &mut String, name: &str, value: &str) {
    out.push_str(",\"");
    out.push_str(name);
    out.push_str("\":");
    out.push_str(value);
}

fn quoted(value: U256) -> String {
    format!("\"{value:#x}\"")
}

fn repeat(item: &str, times: usize) -> String {
    format!("[{}]", vec![item; times].join(","))
}

fn count_items(list: &str) -> Result<usize, Malformed> {
    let mut count = 0usize;
    if list != "null" {
        Scan::new(list).list(|scan| {
            count = count.saturating_add(1);
            scan.value().map(|_| ())
        })?;
    }
    if count > MAX_FEE_ROWS {
        Err(Malformed)
    } else {
        Ok(count)
    }
}

/// A list of fees with the node's values, or with the published value instead of each.
fn fees(list: Option<&str>, published: Option<&str>) -> Result<Option<String>, Malformed> {
    let Some(list) = list.filter(|list| *list != "null") else {
        return Ok(None);
    };
    count_items(list)?;
    let mut items = Vec::new();
    Scan::new(list).list(|scan| {
        let value = scan.value()?;
        Shape::Quantity.check(value)?;
        items.push(published.unwrap_or(value));
        Ok(())
    })?;
    Ok(Some(format!("[{}]", items.join(","))))
}

/// Results that the gateway computes itself.
pub mod local {
    use crate::{sealed::Disclosed, visibility::Viewer};
    use alloy_primitives::{B256, U256};
    use gw_evm::SubscriptionId;

    /// The result of `eth_accounts`: the viewer's own addresses.
    pub fn accounts(viewer: &Viewer<'_>) -> Disclosed {
        let list: Vec<String> = viewer
            .own_addresses()
            .iter()
            .map(|address| format!("\"{address:#x}\""))
            .collect();
        Disclosed::text(format!("[{}]", list.join(",")))
    }

    /// The result of `eth_coinbase`: the viewer's first own address, else `null`.
    pub fn coinbase(viewer: &Viewer<'_>) -> Disclosed {
        let first = viewer.own_addresses().first().copied();
        first.map_or(Disclosed::NULL, |address| Disclosed::text(format!("\"{address:#x}\"")))
    }

    /// A number that the gateway determines itself: the followed head's number, the chain id, a published price, a gas
    /// estimate from evaluated traces.
    pub fn quantity(value: U256) -> Disclosed {
        Disclosed::text(format!("\"{value:#x}\""))
    }

    /// The result of `net_version`: the chain id in decimal.
    pub fn net_version(chain_id: u64) -> Disclosed {
        Disclosed::text(format!("\"{chain_id}\""))
    }

    /// The result of `web3_clientVersion`: the gateway's own name and version. The node's are not disclosed.
    pub fn client_version() -> Disclosed {
        Disclosed::text(concat!("\"ledger-gateway/", env!("CARGO_PKG_VERSION"), "\"").to_owned())
    }

    /// Hashes of followed blocks, the result of `eth_getFilterChanges` for a block filter.
    pub fn hashes(hashes: &[B256]) -> Disclosed {
        let list: Vec<String> = hashes.iter().map(|hash| format!("\"{hash:#x}\"")).collect();
        Disclosed::text(format!("[{}]", list.join(",")))
    }

    /// The id of a filter or a subscription.
    pub fn live_id(id: SubscriptionId) -> Disclosed {
        Disclosed::text(format!("\"{id}\""))
    }

    /// The result of `web3_sha3`, or the hash of a transaction that the caller sent.
    pub fn hash(hash: B256) -> Disclosed {
        Disclosed::text(format!("\"{hash:#x}\""))
    }
}
