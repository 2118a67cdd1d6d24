//! [`RpcState`] as the simulator of calls for the admin API.

use crate::{impersonation, state::RpcState, test_call};
use gw_http::{
    AuthError,
    simulation::{
        CallSimulator, ImpersonatedCall, ImpersonatedResult, SenderRequired, SimulationFuture, TestCall, TestResult,
    },
};

impl CallSimulator for RpcState {
    fn test_call(&self, call: TestCall) -> SimulationFuture<'_, Result<TestResult, AuthError>> {
        Box::pin(test_call::test_call(&self.0, call))
    }

    fn simulate_as(&self, call: ImpersonatedCall) -> SimulationFuture<'_, Result<ImpersonatedResult, SenderRequired>> {
        Box::pin(impersonation::simulate_as(&self.0, call))
    }
}
