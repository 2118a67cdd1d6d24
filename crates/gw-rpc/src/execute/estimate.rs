//! `eth_estimateGas` without asking the node for an estimate: the gateway searches itself, and every probe is a judged
//! trace (HD3), so that no gas window exists that nobody looked at.

use super::{
    simulate::{MOST_SIMULATED, run},
    unanswered,
};
use crate::{
    question::{Asked, Judged},
    record::Found,
    reply::Reply,
};
use gw_evm::{CallRequest, wire::TraceScope};
use gw_node::Block;
use gw_policy::{Disclosed, view};
use gw_types::U256;

/// HD3.
const MAX_PROBES: u32 = 12;
/// The most gas of one transaction where EIP-7825 holds.
const MOST_GAS: u64 = 1 << 24;
/// What a payment to a wallet costs, exactly.
const PLAIN_PAYMENT: u64 = 21_000;

pub(super) async fn estimate(
    asked: &Asked,
    mut judged: Judged,
    mut request: CallRequest,
    block: &Block,
    found: &mut Found,
) -> Result<Disclosed, Reply> {
    let mut cap = cap(asked, &judged, &request, block, found).await?;
    let mut search: Option<Search> = None;
    for _ in 0..MAX_PROBES {
        let Some(gas) = search.as_mut().map_or(Some(cap), Search::next) else {
            break;
        };
        request.gas = Some(gas);
        let run = match run(asked, judged, &request, block, TraceScope::Read, found).await {
            // Where a transaction may use less than a block holds, the node runs no more than that.
            Err(Reply::TracingUnavailable(_)) if search.is_none() && cap > MOST_GAS => {
                (cap, judged) = (MOST_GAS, asked.judge()?);
                continue;
            }
            run => run?,
        };
        judged = run.judged;
        let used = view::gas_used(&run.verdict);
        match &mut search {
            Some(search) => search.learn(gas, used.is_ok()),
            // What fails with all the gas there is fails for good, with its reason.
            None => {
                let untold = judged.permit.no_revert_data();
                let used = used.map_err(|error| Reply::NodeError(if untold { error.without_data() } else { error }))?;
                if used == PLAIN_PAYMENT && request.input.is_empty() {
                    return Ok(view::local::figure(U256::from(PLAIN_PAYMENT)));
                }
                search = Some(Search::new(used, cap));
            }
        }
    }
    Ok(view::local::figure(U256::from(
        search.map_or(cap, |search| search.found()),
    )))
}

/// The most gas to try: what the caller allows, what a block holds, what the named sender can pay for at the named
/// price. It is the caller's own address (X10), so its balance tells nothing new.
async fn cap(
    asked: &Asked,
    judged: &Judged,
    request: &CallRequest,
    block: &Block,
    found: &mut Found,
) -> Result<u64, Reply> {
    let cap = request
        .gas
        .unwrap_or(block.gas_limit)
        .min(block.gas_limit)
        .min(MOST_SIMULATED);
    let price = request.gas_price.or(request.max_fee_per_gas).unwrap_or(0);
    let (Some(sender), 1..) = (request.from, price) else {
        return Ok(cap);
    };
    let state = asked.state();
    let balance = found
        .upstream(state, judged.node(state)?.balance(sender, block.hash))
        .await;
    let balance = balance.map_err(|error| unanswered(state, &error))?;
    let balance = judged.snapshot.shown_balance(sender, block.number, balance);
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
        // Good within 1.7 %, so that a first guess that suffices is the answer; geth stops at 1.5 %.
        let gap = self.high.saturating_sub(self.low);
        if gap <= 1 || gap <= self.high / 60 {
            return None;
        }
        // Enough gas is mostly near the lower end.
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

    fn found(&self) -> u64 {
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
        (search.found(), probes)
    }

    #[test]
    fn hd3_the_first_guess_mostly_suffices() {
        assert_eq!(run(50_000, 30_000_000, 50_000), (50_794, 2));
    }

    #[test]
    fn hd3_the_search_is_bounded_and_never_answers_too_little() {
        for least in [50_001, 60_000, 100_000, 5_000_000, 29_999_999] {
            let (found, probes) = run(50_000, 30_000_000, least);
            assert!(
                found >= least && probes <= MAX_PROBES,
                "{least}: {found} after {probes}"
            );
        }
    }

    #[test]
    fn hd3_a_tight_cap_is_the_answer() {
        assert_eq!(run(50_000, 50_000, 50_000).0, 50_000);
    }
}
