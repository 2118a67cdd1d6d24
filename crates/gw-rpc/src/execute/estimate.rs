//! `eth_estimateGas`: the gateway searches by itself instead of asking the node for an estimate, and evaluates the
//! trace of every probe (HD3). Code therefore cannot behave differently at an amount of gas that no trace covers.

use super::simulate::{MAX_SIMULATED_GAS, run_traced};
use crate::{call::CallContext, outcome::RpcOutcome};
use gw_evm::{CallRequest, wire::TraceScope};
use gw_node::Block;
use gw_policy::{Disclosed, view};
use gw_types::U256;

/// The most runs of one search (HD3).
const MAX_PROBES: u32 = 12;
/// The most gas of one transaction on chains with EIP-7825.
const MAX_TRANSACTION_GAS: u64 = 1 << 24;
/// The gas of a payment to an account without code.
const PLAIN_PAYMENT: u64 = 21_000;

pub(super) async fn estimate(
    context: &mut CallContext<'_>,
    mut request: CallRequest,
    block: &Block,
) -> Result<Disclosed, RpcOutcome> {
    let mut cap = gas_cap(context, &request, block).await?;
    let mut search: Option<Search> = None;
    for _ in 0..MAX_PROBES {
        let Some(gas) = search.as_mut().map_or(Some(cap), Search::next) else {
            break;
        };
        request.gas = Some(gas);
        let verdict = match run_traced(context, &request, block, TraceScope::Read).await {
            // On a chain with EIP-7825 the node does not run a transaction with more gas, even if a block holds more.
            Err(RpcOutcome::TracingUnavailable(_)) if search.is_none() && cap > MAX_TRANSACTION_GAS => {
                cap = MAX_TRANSACTION_GAS;
                continue;
            }
            verdict => verdict?,
        };
        let used = view::gas_used(&verdict);
        match &mut search {
            Some(search) => search.learn(gas, used.is_ok()),
            // A run that fails with the most gas fails with any amount: the caller gets its error.
            None => {
                let hides_revert_data = context.permit().no_revert_data();
                let used = used.map_err(|error| {
                    RpcOutcome::NodeError(if hides_revert_data { error.without_data() } else { error })
                })?;
                if used == PLAIN_PAYMENT && request.input.is_empty() {
                    return Ok(view::local::quantity(U256::from(PLAIN_PAYMENT)));
                }
                search = Some(Search::new(used, cap));
            }
        }
    }
    Ok(view::local::quantity(U256::from(
        search.map_or(cap, |search| search.gas()),
    )))
}

/// The most gas to try: the least of what the caller allows, what a block holds, and what the named sender can pay for
/// at the named price. The sender is the caller's own address (X10), so the use of its balance reveals nothing.
async fn gas_cap(context: &mut CallContext<'_>, request: &CallRequest, block: &Block) -> Result<u64, RpcOutcome> {
    let cap = request
        .gas
        .unwrap_or(block.gas_limit)
        .min(block.gas_limit)
        .min(MAX_SIMULATED_GAS);
    let price = request.gas_price.or(request.max_fee_per_gas).unwrap_or(0);
    let (Some(sender), 1..) = (request.from, price) else {
        return Ok(cap);
    };
    let balance = context
        .query(|node, _| async move { node.balance(sender, block.hash).await })
        .await?;
    let balance = context.snapshot().shown_balance(sender, block.number, balance);
    let affordable = balance.saturating_sub(request.value.unwrap_or_default()) / U256::from(price);
    Ok(cap.min(affordable.try_into().unwrap_or(u64::MAX)))
}

/// The search for the least gas that suffices: `low` is too little, `high` is enough.
#[derive(Debug)]
struct Search {
    low: u64,
    high: u64,
    first: Option<u64>,
}

impl Search {
    /// A call may pass on 63/64 of its gas, so the first guess leaves that much room.
    fn new(used: u64, cap: u64) -> Self {
        let first = used.saturating_add(used.div_ceil(63)).min(cap);
        Self {
            low: used.saturating_sub(1),
            high: cap,
            first: (first < cap).then_some(first),
        }
    }

    fn next(&mut self) -> Option<u64> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        // The search ends within 1.7 % of the least gas, so that a first guess that suffices is the result; geth ends
        // at 1.5 %.
        let gap = self.high.saturating_sub(self.low);
        if gap <= 1 || gap <= self.high / 60 {
            return None;
        }
        // The least gas is mostly near the lower end.
        let middle = self.low + gap / 2;
        Some(middle.min(self.low.saturating_mul(2)).max(self.low + 1))
    }

    fn learn(&mut self, candidate: u64, enough: bool) {
        if enough {
            self.high = candidate;
        } else {
            self.low = candidate;
        }
    }

    fn gas(&self) -> u64 {
        self.high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(used: u64, cap: u64, least: u64) -> (u64, u32) {
        let mut search = Search::new(used, cap);
        let mut probes = 1;
        while probes < MAX_PROBES {
            let Some(candidate) = search.next() else { break };
            probes += 1;
            search.learn(candidate, candidate >= least);
        }
        (search.gas(), probes)
    }

    #[test]
    fn hd3_the_first_guess_mostly_suffices() {
        assert_eq!(run(50_000, 30_000_000, 50_000), (50_794, 2));
    }

    #[test]
    fn hd3_the_search_is_bounded_and_never_answers_too_little() {
        for least in [50_001, 60_000, 100_000, 5_000_000, 29_999_999] {
            let (gas, probes) = run(50_000, 30_000_000, least);
            assert!(gas >= least && probes <= MAX_PROBES, "{least}: {gas} after {probes}");
        }
    }

    #[test]
    fn hd3_a_tight_cap_is_the_answer() {
        assert_eq!(run(50_000, 50_000, 50_000).0, 50_000);
    }
}
