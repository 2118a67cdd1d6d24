//! `eth_estimateGas`: the gateway searches for the gas itself, by traced runs, and evaluates each trace (HD3). The
//! node's own estimate would run the code with amounts of gas that no evaluated trace covers.

use super::simulate::{MAX_SIMULATED_GAS, run_traced};
use crate::{call::CallContext, outcome::RpcOutcome};
use gw_evm::{CallRequest, wire::TraceScope};
use gw_node::Block;
use gw_policy::{Disclosed, view};
use gw_types::U256;

/// The maximum number of runs of one search (HD3).
const MAX_PROBES: u32 = 12;
/// The maximum gas of one transaction on chains with EIP-7825.
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
        let run = match run_traced(context, &request, block, TraceScope::Read).await {
            // On a chain with EIP-7825 the node does not run a transaction with more gas, even if a block holds more.
            Err(RpcOutcome::TracingUnavailable(_)) if search.is_none() && cap > MAX_TRANSACTION_GAS => {
                cap = MAX_TRANSACTION_GAS;
                continue;
            }
            run => run?,
        };
        let used = view::gas_used(&run);
        match &mut search {
            Some(search) => search.record_run(gas, used.is_ok()),
            // If the run with the maximum gas fails, every run with less gas fails, so the caller gets this error.
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

/// The maximum gas to try: the minimum of the caller's limit, the block's limit, and the gas that the named sender can
/// pay for at the named price. The sender is the caller's own address (X10), so the use of its balance reveals nothing.
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

/// The search for the minimum gas: `low` does not suffice, `high` does.
#[derive(Debug)]
struct Search {
    low: u64,
    high: u64,
    /// The first amount to try; `None` once it was tried.
    first: Option<u64>,
}

impl Search {
    /// A call passes at most 63/64 of its gas to a nested call (EIP-150), so the first guess adds 1/63 to the used gas.
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
        // The search ends within 1.7 % of the minimum, so that a first guess that suffices is the result. Geth ends
        // within 1.5 %.
        let gap = self.high.saturating_sub(self.low);
        if gap <= 1 || gap <= self.high / 60 {
            return None;
        }
        // The minimum is usually near the lower end.
        let middle = self.low + gap / 2;
        Some(middle.min(self.low.saturating_mul(2)).max(self.low + 1))
    }

    fn record_run(&mut self, candidate: u64, suffices: bool) {
        if suffices {
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
            search.record_run(candidate, candidate >= least);
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
