//! Seeing why: what would come of a call, through the very pipeline that serves callers (spec/20 §16).

pub(crate) mod access_check;
pub(crate) mod test_request;

use gw_types::{OrgId, Secret};
use serde_json::Value;
use std::{net::IpAddr, pin::Pin};

/// Runs calls as callers do; wired to the pipeline of `/rpc`.
pub trait CallTester: Send + Sync + core::fmt::Debug {
    /// Runs one.
    fn run(&self, call: TestCall) -> Pin<Box<dyn Future<Output = Result<TestAnswer, BadToken>> + Send + '_>>;
}

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
    pub reason: Option<&'static str>,
}

/// The token is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the token is of no use")]
pub struct BadToken;
