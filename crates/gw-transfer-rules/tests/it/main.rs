//! Tests of the rules, one file for each part of spec/60 that this crate decides.

mod calldata;
mod containers;
mod decision;
mod flow;
mod lists;
mod lying_tokens;
mod oracle;
mod prices;
mod properties;
mod records;
mod runs;
mod support;
