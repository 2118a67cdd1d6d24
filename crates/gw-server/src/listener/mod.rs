//! Listeners: connections and request bodies within their limits, timeouts, and a shutdown without a lost response.
//!
//! Every process of this binary serves HTTP through [`Connections::serve`]; the limits are its arguments.

mod body;
mod body_budget;
mod connections;
mod quota;
mod timeout_io;

pub(crate) use body_budget::{BodyBudget, BodyLimits};
pub(crate) use connections::{Connections, SwappableRouter};
pub(crate) use quota::{ConnectionLimits, Quota};
