//! Calls that administrators make through the pipeline of `/rpc`: as the bearer of a token (V3), or as a user whom they
//! impersonate (V1, V2). `gw-rpc` makes them, `gw-admin` asks for them.

use crate::{AuthError, ClientAddress};
use gw_policy::access::{DeniedFrame, Impersonation};
use gw_types::{DenyReason, OrgId, Secret, UserId};
use serde_json::{Value, json};
use std::{fmt, pin::Pin};

/// A boxed future, so that [`CallSimulator`] can be a trait object.
pub type SimulationFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Makes calls through the pipeline that serves all callers.
pub trait CallSimulator: Send + Sync + fmt::Debug {
    /// Makes a call as the bearer of its token. A send takes effect.
    ///
    /// # Errors
    /// The error of a bad token.
    fn test_call(&self, call: TestCall) -> SimulationFuture<'_, Result<TestResult, AuthError>>;

    /// Answers a call as its target would be answered, as far as the impersonator may see it too. A send ends at its
    /// trace: nothing takes effect. The caller records the impersonation before.
    ///
    /// # Errors
    /// [`SenderRequired`] for a send that would show what its sender holds.
    fn simulate_as(&self, call: ImpersonatedCall) -> SimulationFuture<'_, Result<ImpersonatedResult, SenderRequired>>;
}

/// A call that an administrator tests.
#[derive(Debug)]
pub struct TestCall {
    /// The token of the caller; `None` for an anonymous one.
    pub token: Option<Secret>,
    /// The organization it names.
    pub org: Option<OrgId>,
    /// The method.
    pub method: String,
    /// Its parameters.
    pub params: Vec<Value>,
    /// The address of the administrator.
    pub client: ClientAddress,
}

/// The answer to a [`TestCall`].
#[derive(Debug)]
pub struct TestResult {
    /// The HTTP status before denials are made alike.
    pub status: u16,
    /// The JSON-RPC answer, as the caller would see it.
    pub answer: Value,
    /// Why there is no result, which the caller would not see.
    pub reason: Option<DenyReason>,
}

/// A call of a user, asked for by an administrator.
#[derive(Debug)]
pub struct ImpersonatedCall {
    /// The administrator.
    pub impersonator: UserId,
    /// The user.
    pub target: UserId,
    /// The organization that the one administers and the other is a member of.
    pub org: OrgId,
    /// The method.
    pub method: String,
    /// Its parameters.
    pub params: Vec<Value>,
    /// The address of the administrator.
    pub client: ClientAddress,
}

/// The answer to an [`ImpersonatedCall`].
#[derive(Debug)]
pub struct ImpersonatedResult {
    /// The HTTP status before denials are made alike.
    pub status: u16,
    /// The JSON-RPC answer, as far as both may see it.
    pub answer: Value,
    /// Why there is no result.
    pub reason: Option<DenyReason>,
    /// The frame at which its execution was denied.
    pub denied_frame: Option<DeniedFrame>,
    /// The effects of a send.
    pub effects: Option<SimulatedEffects>,
}

/// What a send would do, as far as user and impersonator may both see it.
#[derive(Debug)]
pub struct SimulatedEffects {
    /// Its call tree.
    pub trace: Value,
    /// The events that it emits.
    pub logs: Vec<SimulatedLog>,
}

/// An event that a send would emit.
#[derive(Debug)]
pub struct SimulatedLog {
    /// The event.
    pub log: Value,
    /// Whether the user sees it.
    pub visible_to_user: bool,
}

/// The call carries value or fees, and its sender is replaced by an address that holds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a send runs from an address of nobody's, unless you own its sender as well: neither value nor fees can be given, \
     what the user's wallet holds is not told"
)]
pub struct SenderRequired;

/// The members of a call object that need funds, or tell of the account.
const FUNDS: [&str; 6] = [
    "value",
    "gasPrice",
    "maxFeePerGas",
    "maxPriorityFeePerGas",
    "maxFeePerBlobGas",
    "nonce",
];

/// Gives a send that names no sender the address [`Impersonation::NOBODY`] (HD7): otherwise the code that it calls
/// could reveal which wallet it comes from, and what the wallet holds. Returns whether the sender was set.
///
/// # Errors
/// [`SenderRequired`] if the send names funds or a nonce.
pub fn set_placeholder_sender(params: &mut [Value]) -> Result<bool, SenderRequired> {
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
        return Err(SenderRequired);
    }
    object.insert("from".to_owned(), json!(Impersonation::NOBODY));
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HD7: a send that names no sender, in any spelling, runs from an address without an owner.
    #[test]
    fn hd7_a_send_without_a_sender_runs_from_nobody() {
        let set = |call: Value| {
            let mut params = [call];
            let is_set = set_placeholder_sender(&mut params);
            (is_set, params[0]["from"].clone())
        };
        let nobody = json!(Impersonation::NOBODY);
        assert_eq!(set(json!({"to": "0x1"})), (Ok(true), nobody.clone()));
        assert_eq!(set(json!({"value": "0x0", "nonce": null})), (Ok(true), nobody));
        assert_eq!(set(json!({"from": "0x2"})), (Ok(false), json!("0x2")));
        assert_eq!(set(json!({"From": "0x2"})), (Ok(false), Value::Null));
        assert_eq!(set(json!({"value": "0x1"})), (Err(SenderRequired), Value::Null));
        assert_eq!(set(json!("0x02")).0, Ok(false), "a signed transaction names its sender");
        assert_eq!(set_placeholder_sender(&mut []), Ok(false));
    }
}
