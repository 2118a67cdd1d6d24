//! `/rpc`: every JSON-RPC call from its bytes to its answer (spec/20).
//!
//! Read `pipeline` first: it is the order of spec/20 §17 around the decisions of `gw-policy`. `http` is what comes
//! before a call is a call, `question` what policy is asked, and asked again when it moved, `execute` how each kind of
//! permitted call is answered, `live` what goes on after its answer, `send` what outlives its request, `mined` what became of
//! it in its block, `reply` how every outcome reads on the wire, `record` what is kept of it.
//!
//! No policy is judged here, and nothing of a client's body is ever forwarded.

mod api;
mod consent;
mod execute;
mod http;
mod limits;
mod live;
mod meter;
mod mined;
mod origin;
mod output;
mod pins;
mod pipeline;
mod question;
mod record;
mod redact;
mod rehearsal;
mod reply;
pub mod send;
mod state;
mod trial;

pub use api::api;
pub use http::router;
pub use mined::MinedGate;
pub use rehearsal::{FundsUnknown, Rehearsal, Rehearsed};
pub use reply::{DENIAL_CODE, DENIAL_MESSAGE};
pub use state::{RpcSettings, RpcState};
pub use trial::{Trial, Tried};
