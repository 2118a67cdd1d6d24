//! `/rpc`: JSON-RPC calls from the request bytes to the response (spec/20).
//!
//! Read `pipeline` first: it runs the steps of spec/20 §17 around the decisions of `gw-policy`. `http` and `websocket`
//! receive requests, `dispatch` parses them into calls, `call` authorizes a call and queries the node for it, `execute`
//! answers each kind of permitted call, `parties` keeps who took part in transactions, `subscriptions` serves filters
//! and subscriptions, `send` executes sends, `mined` validates the blocks that contain them, `outcome` writes every
//! outcome as JSON-RPC, `record` writes the access record.
//!
//! No two modules import each other, directly or through others.
//!
//! This crate decides no policy. Of a client's body it forwards only the values of custom methods that are passed
//! through.

mod api;
mod call;
mod code_pins;
mod compliance;
mod consent;
mod dispatch;
mod execute;
mod http;
mod impersonation;
mod limits;
mod mined;
mod outcome;
mod output;
mod parties;
mod pipeline;
mod record;
mod redact;
mod registry;
mod request;
pub mod send;
mod send_context;
mod simulator;
mod state;
mod subscriptions;
mod telemetry;
mod test_call;
mod upstream;
mod websocket;

pub use api::api;
pub use http::router;
pub use mined::BlockValidator;
pub use outcome::{DENIAL_CODE, DENIAL_MESSAGE};
pub use state::{RpcSettings, RpcState};
pub use upstream::{Authorization, NodeCaller, QueryFailure, Upstream};
