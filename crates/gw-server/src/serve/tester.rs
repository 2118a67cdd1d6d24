//! The pipeline of `/rpc` as the admin API tries calls in it.

use gw_admin::{BadRehearsal, BadToken, CallTester, Rehearsal, Rehearsed, TestAnswer, TestCall};
use gw_http::ClientAddress;
use gw_rpc::{FundsUnknown, RpcState, Trial, Tried};
use std::pin::Pin;

/// The one pipeline.
#[derive(Debug)]
pub(super) struct Tester(pub(super) RpcState);

impl CallTester for Tester {
    fn run(&self, call: TestCall) -> Pin<Box<dyn Future<Output = Result<TestAnswer, BadToken>> + Send + '_>> {
        Box::pin(async move {
            let TestCall {
                token,
                org,
                method,
                params,
                client,
            } = call;
            let trial = Trial {
                token,
                org,
                method,
                params,
                client: ClientAddress(client),
                correlation_id: None,
            };
            let Tried { status, answer, reason } = self.0.try_call(trial).await.map_err(|_| BadToken)?;
            Ok(TestAnswer { status, answer, reason })
        })
    }

    fn rehearse(&self, call: Rehearsal) -> Pin<Box<dyn Future<Output = Result<Rehearsed, BadRehearsal>> + Send + '_>> {
        Box::pin(async move {
            let Rehearsal {
                operator,
                target,
                org,
                method,
                params,
                client,
            } = call;
            let rehearsal = gw_rpc::Rehearsal {
                operator,
                target,
                org,
                method,
                params,
                client: ClientAddress(client),
            };
            let said = self
                .0
                .rehearse(rehearsal)
                .await
                .map_err(|why: FundsUnknown| BadRehearsal(why.to_string()))?;
            let gw_rpc::Rehearsed {
                status,
                answer,
                reason,
                stopped,
                effects,
            } = said;
            Ok(Rehearsed {
                status,
                answer,
                reason,
                stopped,
                effects,
            })
        })
    }
}
