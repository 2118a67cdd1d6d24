//! One call as its caller would make it, for an administrator who wants to see what comes of it (V3). It takes the whole
//! pipeline: there is no second way to an answer.

use crate::{
    http::{Said, converse},
    origin::Origin,
    state::RpcState,
};
use gw_http::{AuthError, ClientAddress, CorrelationId};
use gw_policy::access::NamedOrg;
use gw_types::{DenyReason, OrgId, Secret};
use serde_json::{Value, json};
use std::sync::Arc;

/// A call to be tried.
#[derive(Debug)]
pub struct Trial {
    /// As whom; `None` is an anonymous caller.
    pub token: Option<Secret>,
    /// The organization it names.
    pub org: Option<OrgId>,
    /// The method.
    pub method: String,
    /// Its parameters.
    pub params: Vec<Value>,
    /// Where the trial comes from.
    pub client: ClientAddress,
    /// The request it is part of.
    pub correlation_id: Option<CorrelationId>,
}

/// What came of it.
#[derive(Debug)]
pub struct Tried {
    /// HTTP status as it is decided; denials, which read alike on the wire, are told apart.
    pub status: u16,
    /// The JSON-RPC answer, as the caller would see it.
    pub answer: Value,
    /// Why there is no result: what the caller does not see.
    pub reason: Option<DenyReason>,
}

impl RpcState {
    /// Tries a call; a token that is none is the one thing that stops it before the pipeline.
    pub async fn try_call(&self, trial: Trial) -> Result<Tried, AuthError> {
        let state = &self.0;
        let mut origin = Origin::new(trial.client, trial.correlation_id);
        if let Some(token) = &trial.token {
            origin.present(&state.edge, token.expose(), state.clock().now())?;
        }
        origin.named = trial.org.map_or(NamedOrg::Unnamed, NamedOrg::Org);
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": trial.method, "params": trial.params}).to_string();
        let mut out = Vec::new();
        let (status, reason) = match converse(state, &Arc::new(origin), body.as_bytes()).await {
            Said::One(reply, id) => {
                reply.write(&id, &mut out);
                (reply.status().as_u16(), reply.reason())
            }
            // One call was written, so one is answered.
            Said::Many(body) => {
                out = body.into_text().0.into_bytes();
                (200, None)
            }
            Said::Nothing => (204, None),
        };
        let answer = serde_json::from_slice(&out).unwrap_or_default();
        Ok(Tried { status, answer, reason })
    }
}
