//! A call that an administrator makes beside a user who is not there (V1, V2, HD7). It takes the whole pipeline as the
//! user: there is no second way to an answer. Nothing comes of it but the answer.

use crate::{origin::Origin, pipeline, question::Asked, record::Found, state::RpcState};
use gw_evm::{
    Class, Method, VisibleTo,
    envelope::{Request, RequestId},
};
use gw_http::ClientAddress;
use gw_policy::{
    Disclosed,
    access::{Beside, StoppedAt},
};
use gw_types::{DenyReason, OrgId, UserId};
use serde_json::{Value, json, value::to_raw_value};
use std::sync::Arc;

/// A call to be rehearsed.
#[derive(Debug)]
pub struct Rehearsal {
    /// Who asks.
    pub operator: UserId,
    /// As whom.
    pub target: UserId,
    /// In which organization, of which the one is an administrator and the other a member.
    pub org: OrgId,
    /// The method.
    pub method: String,
    /// Its parameters.
    pub params: Vec<Value>,
    /// Where the administrator is.
    pub client: ClientAddress,
}

/// What came of it.
#[derive(Debug)]
pub struct Rehearsed {
    /// HTTP status as it is decided.
    pub status: u16,
    /// The JSON-RPC answer, as far as both see it.
    pub answer: Value,
    /// Why there is no result.
    pub reason: Option<DenyReason>,
    /// Where its execution was refused.
    pub stopped: Option<StoppedAt>,
    /// What a send would do: its call tree, and its events with whether the user sees them.
    pub effects: Option<(Value, Vec<(Value, bool)>)>,
}

/// The call asks what its sender can pay for, and runs from an address that holds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a send runs from an address of nobody's, unless you own its sender as well: neither value nor fees can be given, what \
     the user's wallet holds is not told"
)]
pub struct FundsUnknown;

/// The members of a call object that need funds, or tell of the account.
const FUNDS: [&str; 6] = [
    "value",
    "gasPrice",
    "maxFeePerGas",
    "maxPriorityFeePerGas",
    "maxFeePerBlobGas",
    "nonce",
];

impl RpcState {
    /// Rehearses a call. Who asks has been recorded before.
    pub async fn rehearse(&self, rehearsal: Rehearsal) -> Result<Rehearsed, FundsUnknown> {
        let state = &self.0;
        let Rehearsal {
            operator,
            target,
            org,
            method,
            mut params,
            client,
        } = rehearsal;
        let lookup = Method::lookup(&method);
        let mut beside = Beside::new(operator, org);
        // Who asks need not know a wallet of the user's to ask what a send of theirs would do.
        if let gw_evm::Lookup::Known(known) = lookup
            && known.class() == Class::Write
            && send_from_nobody(&mut params)?
        {
            beside = beside.sending_from(Beside::NOBODY);
        }
        let mut origin = Origin::new(client, None);
        origin.look_over(target, beside);
        let raw = to_raw_value(&params).ok();
        let request = Request {
            id: RequestId::NULL,
            is_notification: false,
            method: &method,
            params: raw.as_deref(),
            visible_to: VisibleTo::default(),
        };
        let mut asked = Asked::new(state, &Arc::new(origin), lookup, request);
        asked.hide_signer(beside)?;
        let mut found = Found::default();
        let (reply, effects) = pipeline::rehearse(&asked, &mut found).await;
        let mut out = Vec::new();
        reply.write("1", &mut out);
        let value = |shown: &Disclosed| serde_json::from_str::<Value>(shown.as_str()).unwrap_or_default();
        Ok(Rehearsed {
            status: reply.status().as_u16(),
            answer: serde_json::from_slice(&out).unwrap_or_default(),
            reason: reply.reason(),
            stopped: found.stopped,
            effects: effects.map(|effects| {
                let logs = effects
                    .logs
                    .iter()
                    .map(|log| (value(&log.shown), log.to_person))
                    .collect();
                (value(&effects.trace), logs)
            }),
        })
    }
}

/// Makes a send that names no sender one of nobody's (HD7): the code it calls could tell from which wallet it came, and what
/// that holds. Whether it did.
fn send_from_nobody(params: &mut [Value]) -> Result<bool, FundsUnknown> {
    let Some(object) = params.first_mut().and_then(Value::as_object_mut) else {
        return Ok(false);
    };
    if object.keys().any(|key| key.eq_ignore_ascii_case("from")) {
        return Ok(false);
    }
    let is_zero = |value: &Value| {
        value
            .as_str()
            .is_some_and(|text| text.trim_start_matches("0x").trim_matches('0').is_empty())
    };
    if object
        .iter()
        .any(|(name, value)| FUNDS.contains(&name.as_str()) && !value.is_null() && !is_zero(value))
    {
        return Err(FundsUnknown);
    }
    object.insert("from".to_owned(), json!(Beside::NOBODY));
    Ok(true)
}
