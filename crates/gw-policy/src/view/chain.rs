//! Facts about the chain as a whole, and answers the gateway computes itself.

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

/// A public figure: gas prices, blob base fee, peer count.
pub fn figure(answer: Sealed<RawJson>) -> Disclosed {
    quantity(answer)
}

/// A public text about the node: client version, protocol version. Plain ASCII without escapes, at most 256 bytes.
pub fn text(answer: Sealed<RawJson>) -> Disclosed {
    malformed_as(Disclosed::NULL, || {
        let raw = answer.open();
        let text = Scan::whole(raw.text().ok_or(Malformed)?)?;
        let inside = text
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'))
            .ok_or(Malformed)?;
        let plain = inside
            .bytes()
            .all(|b| (b' '..=b'~').contains(&b) && b != b'\\' && b != b'"');
        if plain && inside.len() <= 256 {
            Ok(Disclosed::text(text.to_owned()))
        } else {
            Err(Malformed)
        }
    })
}

/// `net_listening`.
pub fn flag(answer: Sealed<RawJson>) -> Disclosed {
    checked(answer, Shape::Flag, Disclosed::FALSE)
}

const SYNCING: [Field; 3] = [
    Field("startingBlock", Shape::Quantity),
    Field("currentBlock", Shape::Quantity),
    Field("highestBlock", Shape::Quantity),
];

/// `eth_syncing`: `false`, or the three block numbers.
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

/// The price published in place of gas price and base fee under `HIDE_BASE_FEE`: the node's, rounded up to a power of two.
/// The node's own price follows the base fee wei by wei; the step says no more than its order of magnitude, and what is
/// priced by it is taken.
#[must_use]
pub fn published_price(gas_price: U256) -> U256 {
    if gas_price.is_zero() {
        U256::ZERO
    } else {
        gas_price.checked_next_power_of_two().unwrap_or(gas_price)
    }
}

/// The tip published under `HIDE_BASE_FEE`: one gwei, on chains whose price reaches it. The node's own, taken from its
/// price, leaves the base fee.
#[must_use]
pub fn published_tip(gas_price: U256) -> U256 {
    published_price(gas_price).min(U256::from(1_000_000_000))
}

/// What `eth_feeHistory` is computed from besides the node's own answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeeFacts {
    /// The gas price the gateway publishes.
    pub gas_price: U256,
    /// The base fee of the head.
    pub head_base_fee: U256,
    /// How many percentiles were asked for; `None`: no `reward`.
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

/// The longest range a node answers.
const MAX_FEE_ROWS: usize = 1025;

/// `eth_feeHistory` (decision 42): ratios tell what others did and are zero; rewards are computed from the gas price,
/// because without them clients fall back to legacy transactions.
pub fn fee_history(viewer: &Viewer<'_>, facts: FeeFacts, answer: Sealed<RawJson>) -> Disclosed {
    malformed_as(Disclosed::NULL, || {
        let raw = answer.open();
        let text = Scan::whole(raw.text().ok_or(Malformed)?)?;
        let history = Object::read(&mut Scan::new(text), &FEE_HISTORY)?;
        history.get("oldestBlock")?;
        let rows = length(history.find("gasUsedRatio").unwrap_or("null"))?;
        let hides_fee = viewer.knobs().hide_base_fee;
        let price = quoted(published_price(facts.gas_price));
        let base_fees = fees(history.find("baseFeePerGas"), hides_fee.then_some(&price))?;
        let blob_fees = fees(history.find("baseFeePerBlobGas"), hides_fee.then_some("\"0x1\""))?;
        let blob_rows = length(history.find("blobGasUsedRatio").unwrap_or("null"))?;
        let tip = if hides_fee {
            published_tip(facts.gas_price)
        } else {
            facts.gas_price.saturating_sub(facts.head_base_fee)
        };

        let mut out = format!("{{\"oldestBlock\":{}", history.get("oldestBlock")?);
        if let Some(columns) = facts.percentiles {
            push(&mut out, "reward", &repeated(&repeated(&quoted(tip), columns), rows));
        }
        if let Some(fees) = base_fees {
            push(&mut out, "baseFeePerGas", &fees);
        }
        push(&mut out, "gasUsedRatio", &repeated("0", rows));
        if let Some(fees) = blob_fees {
            push(&mut out, "baseFeePerBlobGas", &fees);
        }
        if history.find("blobGasUsedRatio").is_some() {
            push(&mut out, "blobGasUsedRatio", &repeated("0", blob_rows));
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

fn repeated(item: &str, times: usize) -> String {
    format!("[{}]", vec![item; times].join(","))
}

fn length(list: &str) -> Result<usize, Malformed> {
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

/// A list of fees with the node's values, or with the one published in their place.
fn fees(list: Option<&str>, published: Option<&str>) -> Result<Option<String>, Malformed> {
    let Some(list) = list.filter(|list| *list != "null") else {
        return Ok(None);
    };
    length(list)?;
    let mut items = Vec::new();
    Scan::new(list).list(|scan| {
        let value = scan.value()?;
        Shape::Quantity.check(value)?;
        items.push(published.unwrap_or(value));
        Ok(())
    })?;
    Ok(Some(format!("[{}]", items.join(","))))
}

/// Answers the gateway computes itself.
pub mod local {
    use crate::{sealed::Disclosed, visibility::Viewer};
    use alloy_primitives::{B256, U256};
    use gw_evm::LiveId;

    /// `eth_accounts`: the viewer's own addresses.
    pub fn accounts(viewer: &Viewer<'_>) -> Disclosed {
        let list: Vec<String> = viewer
            .own_addresses()
            .iter()
            .map(|address| format!("\"{address:#x}\""))
            .collect();
        Disclosed::text(format!("[{}]", list.join(",")))
    }

    /// `eth_coinbase`: the viewer's first own address, else `null`.
    pub fn coinbase(viewer: &Viewer<'_>) -> Disclosed {
        let first = viewer.own_addresses().first().copied();
        first.map_or(Disclosed::NULL, |address| Disclosed::text(format!("\"{address:#x}\"")))
    }

    /// A figure the gateway itself vouches for: the followed head's number, the chain id, a published price, a gas
    /// estimate from judged traces.
    pub fn figure(value: U256) -> Disclosed {
        Disclosed::text(format!("\"{value:#x}\""))
    }

    /// `net_version`: the chain id in decimal.
    pub fn net_version(chain_id: u64) -> Disclosed {
        Disclosed::text(format!("\"{chain_id}\""))
    }

    /// `web3_clientVersion`: the gateway's own name and version; the node behind it is nobody's business.
    pub fn client_version() -> Disclosed {
        Disclosed::text(concat!("\"ledger-gateway/", env!("CARGO_PKG_VERSION"), "\"").to_owned())
    }

    /// Hashes of followed blocks: `eth_getFilterChanges` of a block filter.
    pub fn hashes(hashes: &[B256]) -> Disclosed {
        let list: Vec<String> = hashes.iter().map(|hash| format!("\"{hash:#x}\"")).collect();
        Disclosed::text(format!("[{}]", list.join(",")))
    }

    /// The name of a filter or a subscription.
    pub fn live_id(id: LiveId) -> Disclosed {
        Disclosed::text(format!("\"{id}\""))
    }

    /// `web3_sha3`, or the hash of a transaction the caller sent.
    pub fn hash(hash: B256) -> Disclosed {
        Disclosed::text(format!("\"{hash:#x}\""))
    }
}
