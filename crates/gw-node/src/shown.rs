//! The state that everybody is shown, where it is not the chain's (HD28): what the node is asked to run on.

use crate::{Answer, Budget, Node, NodeError, head::parse};
use gw_evm::wire::{Pin, StateOverrides};
use gw_policy::Snapshot;
use gw_types::{Address, B256, Epoch, U256};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

/// The most balances of one question.
const AT_ONCE: usize = 200;

/// The last one that was put together.
#[derive(Debug, Default)]
pub(crate) struct LastShown(Mutex<Option<(Epoch, B256, Arc<StateOverrides>)>>);

impl LastShown {
    fn get(&self, epoch: Epoch, block: B256) -> Option<Arc<StateOverrides>> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|(at, of, _)| (*at, *of) == (epoch, block)).map(|(.., state)| Arc::clone(state))
    }

    fn set(&self, epoch: Epoch, block: B256, state: &Arc<StateOverrides>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((epoch, block, Arc::clone(state)));
    }
}

impl Node {
    /// What executions on the state of `pin` are to find in place of what the chain holds there: all that is withheld. Of it
    /// each is told what it meets (`OverrideRounds`).
    pub async fn shown_state(&self, snapshot: &Snapshot, pin: Pin) -> Result<Arc<StateOverrides>, NodeError> {
        if !snapshot.withholds_state(pin.number) {
            return Ok(Arc::default());
        }
        if let Some(known) = self.shared.shown.get(snapshot.epoch(), pin.hash) {
            return Ok(known);
        }
        let balances = self.balances(&snapshot.withheld_balances(pin.number), pin.hash).await?;
        let state = Arc::new(snapshot.shown_state(pin.number, &balances));
        self.shared.shown.set(snapshot.epoch(), pin.hash, &state);
        Ok(state)
    }

    async fn balances(&self, addresses: &[Address], block: B256) -> Result<BTreeMap<Address, U256>, NodeError> {
        let mut balances = BTreeMap::new();
        for addresses in addresses.chunks(AT_ONCE) {
            let params: Vec<_> =
                addresses.iter().map(|address| format!(r#"["{address:#x}",{{"blockHash":"{block:#x}"}}]"#)).collect();
            let calls: Vec<_> = params.iter().map(|params| ("eth_getBalance", params.as_str())).collect();
            for (address, answer) in addresses.iter().zip(self.ask(&calls, Budget::Fact).await?) {
                let Answer::Result(balance) = answer else { return Err(NodeError::NoAnswer) };
                balances.insert(*address, parse(&balance)?);
            }
        }
        Ok(balances)
    }
}
