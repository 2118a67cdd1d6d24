//! What the gateway answers itself: constants, the followed head, hashes, the caller's own addresses.

use super::head;
use crate::{
    question::{Asked, Judged},
    reply::Reply,
    state::Inner,
};
use alloy_primitives::keccak256;
use gw_evm::{Call, Method};
use gw_policy::{Disclosed, view};
use gw_types::{DenyReason, U256};

/// The six metadata methods, from the followed head and constants: no trip to the node, for nobody in particular.
pub(crate) fn metadata(state: &Inner, method: Method) -> Result<Disclosed, Reply> {
    match method {
        Method::BlockNumber => Ok(view::local::figure(U256::from(head(state)?.number))),
        Method::ChainId => Ok(view::local::figure(U256::from(state.node().chain_id()))),
        Method::GasPrice => {
            let price = head(state)?.gas_price;
            let hides = state.knobs().hide_base_fee;
            Ok(view::local::figure(if hides {
                view::published_price(price)
            } else {
                price
            }))
        }
        Method::NetVersion => Ok(view::local::net_version(state.node().chain_id())),
        Method::NetListening => Ok(if state.node().head().is_some() {
            Disclosed::TRUE
        } else {
            Disclosed::FALSE
        }),
        Method::ClientVersion => Ok(view::local::client_version()),
        _ => Err(Reply::Internal),
    }
}

/// Plan `Local`.
pub(crate) fn local(asked: &Asked, judged: &Judged) -> Result<Disclosed, Reply> {
    match judged.permit.call() {
        Call::Plain(Method::Accounts) => Ok(view::local::accounts(&judged.viewer(asked.state()))),
        Call::Plain(Method::Coinbase) => Ok(view::local::coinbase(&judged.viewer(asked.state()))),
        Call::Sha3(bytes) => Ok(view::local::hash(keccak256(bytes))),
        Call::UncleCount => Ok(Disclosed::ZERO),
        Call::Uncle => Ok(Disclosed::NULL),
        _ => Err(judged.denied(DenyReason::MethodNotAllowed)),
    }
}
