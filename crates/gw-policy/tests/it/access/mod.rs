//! Tests of the access rules (spec/20).

mod custom_methods;
mod decide;
mod differential;
mod execution;
mod identify;
mod impersonation;
mod membership;
mod mined;
mod mined_blame;
mod mined_effects;
mod mined_support;
mod narrowing;
mod orgs;
mod properties;
mod send;
mod shared;
mod support;
mod table;
mod targets;
mod trace;
mod trace_creations;
mod trace_proxies;
mod trace_rights;
mod trace_shared;
