//! Values that live for a while and are shared by all instances: login sessions, nonces, codes, counters.
//!
//! In the process by default, in Redis or Valkey when `REDIS_URL` is set; both keep the same promises, held by one
//! suite. What is used once is got and deleted in one step.
#![warn(missing_docs)]
