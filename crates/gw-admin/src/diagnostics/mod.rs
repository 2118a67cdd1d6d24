//! Seeing why: what would come of a call, through the very pipeline that serves callers (spec/20 §16).

pub(crate) mod access_check;
pub(crate) mod dry_run;
mod shoulder;
pub(crate) mod test_request;
pub(crate) mod view_as;

use gw_policy::access::StoppedAt;
use gw_types::{DenyReason, OrgId, Secret, UserId};
use serde_json::Value;
use std::{net::IpAddr, pin::Pin};

/// Runs calls as callers do; wired to the pipeline of `/rpc`.
pub trait CallTester: Send + Sync + core::fmt::Debug {
    /// Runs one.
    fn run(&self, call: TestCall) -> Pin<Box<dyn Future<Output = Result<TestAnswer, BadToken>> + Send + '_>>;

    /// Runs one as a user who is not there, with an administrator beside them; nothing comes of it but the answer.
    fn rehearse(&self, call: Rehearsal) -> Pin<Box<dyn Future<Output = Result<Rehearsed, BadRehearsal>> + Send + '_>>;
}

/// A call to rehearse (V1, V2).
#[derive(Debug)]
pub struct Rehearsal {
    /// Who asks.
    pub operator: UserId,
    /// As whom.
    pub target: UserId,
    /// Where.
    pub org: OrgId,
    /// The method.
    pub method: String,
    /// Its parameters.
    pub params: Vec<Value>,
    /// Where the administrator is.
    pub client: IpAddr,
}

/// What came of it.
#[derive(Debug)]
pub struct Rehearsed {
    /// HTTP status as it is decided: 401 and 403 are denials.
    pub status: u16,
    /// The JSON-RPC answer, as far as the administrator may see it too.
    pub answer: Value,
    /// Why there is no result.
    pub reason: Option<DenyReason>,
    /// Where the execution was refused.
    pub stopped: Option<StoppedAt>,
    /// What a send would do: its call tree, and its events with whether the user sees them.
    pub effects: Option<(Value, Vec<(Value, bool)>)>,
}

/// Why it cannot be rehearsed, for the administrator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadRehearsal(pub String);

/// A call to run.
#[derive(Debug)]
pub struct TestCall {
    /// As whom; `None` is an anonymous caller.
    pub token: Option<Secret>,
    /// The organization it names.
    pub org: Option<OrgId>,
    /// The method.
    pub method: String,
    /// Its parameters.
    pub params: Vec<Value>,
    /// Where the administrator is.
    pub client: IpAddr,
}

/// What came of it.
#[derive(Debug)]
pub struct TestAnswer {
    /// HTTP status as it is decided: 401 and 403 are denials.
    pub status: u16,
    /// The JSON-RPC answer as the caller would see it.
    pub answer: Value,
    /// Why there is no result, which the caller would not see.
    pub reason: Option<DenyReason>,
}

/// The token is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the token is of no use")]
pub struct BadToken;
