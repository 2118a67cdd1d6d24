//! Calls that administrators make through the pipeline of `/rpc`: as the bearer of a token (V3), or as a user whom they
//! impersonate (V1, V2). `gw-rpc` makes them, `gw-admin` asks for them.

use crate::{AuthError, ClientAddress};
use gw_policy::access::DeniedFrame;
use gw_types::{DenyReason, OrgId, Secret, UserId};
use serde_json::Value;
use std::{fmt, pin::Pin};

/// A boxed future, so that [`CallSimulator`] can be a trait object.
pub type Simulated<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Makes calls through the pipeline that serves all callers.
pub trait CallSimulator: Send + Sync + fmt::Debug {
    /// Makes a call as the bearer of its token. A send takes effect.
    ///
    /// # Errors
    /// The error of a bad token.
    fn test_call(&self, call: TestCall) -> Simulated<'_, Result<TestResult, AuthError>>;

    /// Answers a call as its target would be answered, as far as the impersonator may see it too. A send ends at its
    /// trace: nothing takes effect. The caller records the impersonation before.
    ///
    /// # Errors
    /// [`SenderRequired`] for a send that would show what its sender holds.
    fn simulate_as(&self, call: ImpersonatedCall) -> Simulated<'_, Result<ImpersonatedResult, SenderRequired>>;
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
