//! Calls that the gateway answers by itself: constants, the followed head, hashes, the caller's own addresses.

use super::head;
use crate::{call::CallContext, outcome::RpcOutcome, state::RpcContext};
use alloy_primitives::keccak256;
use gw_evm::{Call, Method};
use gw_policy::{Disclosed, view};
use gw_types::{DenyReason, U256};

/// The six metadata methods: every caller gets the same answer, and the node is not queried.
pub(crate) fn metadata(state: &RpcContext, method: Method) -> Result<Disclosed, RpcOutcome> {
    match method {
        Method::BlockNumber => Ok(view::local::quantity(U256::from(head(state)?.number))),
        Method::ChainId => Ok(view::local::quantity(U256::from(state.upstream().chain_id()))),
        Method::GasPrice => {
            let price = head(state)?.gas_price;
            let hides = state.policy_settings().hide_base_fee;
            Ok(view::local::quantity(if hides {
                view::published_price(price)
            } else {
                price
            }))
        }
        Method::NetVersion => Ok(view::local::net_version(state.upstream().chain_id())),
        Method::NetListening => Ok(if state.upstream().head().is_some() {
            Disclosed::TRUE
        } else {
            Disclosed::FALSE
        }),
        Method::ClientVersion => Ok(view::local::client_version()),
        _ => Err(RpcOutcome::Internal),
    }
}

/// Answers a call whose plan is [`Plan::Local`](gw_policy::access::Plan::Local).
pub(crate) fn local(context: &CallContext<'_>) -> Result<Disclosed, RpcOutcome> {
    match context.permit().call() {
        Call::Plain(Method::Accounts) => Ok(view::local::accounts(&context.viewer())),
        Call::Plain(Method::Coinbase) => Ok(view::local::coinbase(&context.viewer())),
        Call::Sha3(bytes) => Ok(view::local::hash(keccak256(bytes))),
        Call::UncleCount => Ok(Disclosed::ZERO),
        Call::Uncle => Ok(Disclosed::NULL),
        _ => Err(context.denied(DenyReason::MethodNotAllowed)),
    }
}
