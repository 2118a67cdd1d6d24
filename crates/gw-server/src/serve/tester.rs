//! The pipeline of `/rpc` as the admin API tries calls in it.

use gw_admin::{BadToken, CallTester, TestAnswer, TestCall};
use gw_http::ClientAddress;
use gw_rpc::{RpcState, Trial, Tried};
use std::pin::Pin;

/// The one pipeline.
#[derive(Debug)]
pub(super) struct Tester(pub(super) RpcState);

impl CallTester for Tester {
    fn run(&self, call: TestCall) -> Pin<Box<dyn Future<Output = Result<TestAnswer, BadToken>> + Send + '_>> {
        Box::pin(async move {
            let TestCall { token, org, method, params, client } = call;
            let trial = Trial { token, org, method, params, client: ClientAddress(client), correlation_id: None };
            let Tried { status, answer, reason } = self.0.try_call(trial).await.map_err(|_| BadToken)?;
            Ok(TestAnswer { status, answer, reason: reason.map(|reason| reason.as_str()) })
        })
    }
}
