//! Answers from a judged trace (spec/20 X4, HD3; decision 44).
//!
//! A [`TraceVerdict`] holds the trace it was given on, and only [`judge_trace`](crate::access::judge_trace) makes one: an
//! execution nobody judged says nothing.

use super::{error::DisclosedError, shape::Shape, state::checked};
use crate::{
    access::TraceVerdict,
    sealed::{Disclosed, RawJson, Sealed},
    visibility::is_precompile,
};
use alloy_eips::eip2930::AccessList;
use alloy_primitives::hex;
use gw_evm::{code, trace::Trace};
use gw_types::Address;
use std::fmt::Write as _;

/// `eth_call`: the output of the judged run, or its failure in known words. Return data is not redacted (spec/30
/// section 8).
pub fn call_result(verdict: &TraceVerdict) -> Result<Disclosed, DisclosedError> {
    let trace = verdict.trace();
    match failure(trace) {
        None => Ok(Disclosed::text(format!(
            "\"{}\"",
            hex::encode_prefixed(&trace.top.output)
        ))),
        Some(error) => Err(error),
    }
}

/// `eth_call` while its tracing is switched off (X9): as the node answers.
pub fn untraced_call_result(answer: Sealed<RawJson>) -> Disclosed {
    checked(answer, Shape::Bytes, Disclosed::NULL)
}

/// What a judged run of `eth_estimateGas` used, for the gateway's own search (HD3), or why it failed.
pub fn gas_used(verdict: &TraceVerdict) -> Result<u64, DisclosedError> {
    let trace = verdict.trace();
    match failure(trace) {
        None => Ok(trace.top.gas_used),
        Some(error) => Err(error),
    }
}

/// `eth_createAccessList`: the list the last run was given, what that run used, and why it failed if it did.
pub fn access_list(verdict: &TraceVerdict, list: &AccessList) -> Disclosed {
    let trace = verdict.trace();
    let mut items = String::new();
    for item in &list.0 {
        let comma = if items.is_empty() { "" } else { "," };
        let keys: Vec<String> = item.storage_keys.iter().map(|key| format!("\"{key:#x}\"")).collect();
        // Writing to a string cannot fail.
        let _ = write!(
            items,
            "{comma}{{\"address\":\"{:#x}\",\"storageKeys\":[{}]}}",
            item.address,
            keys.join(",")
        );
    }
    // Known words hold no quotes.
    let error = failure(trace)
        .map(|error| format!("\"error\":\"{}\",", error.plain()))
        .unwrap_or_default();
    Disclosed::text(format!(
        "{{\"accessList\":[{items}],{error}\"gasUsed\":\"{:#x}\"}}",
        trace.top.gas_used
    ))
}

/// Whether code of this run could ask for the base fee (`HIDE_BASE_FEE`): its answer is given to nobody then. Code that
/// the trace does not show counts as such.
#[must_use]
pub fn reads_base_fee(verdict: &TraceVerdict) -> bool {
    let trace = verdict.trace();
    let creations = || trace.frames.iter().filter(|frame| frame.is_creation());
    let is_shown = |address: Address| {
        is_precompile(address)
            || trace.touched.contains_key(&address)
            || creations().any(|made| made.to == Some(address))
    };
    trace
        .touched
        .values()
        .any(|account| code::reads_base_fee(&account.code))
        || creations().any(|made| code::reads_base_fee(&made.input) || code::reads_base_fee(&made.output))
        || trace
            .frames
            .iter()
            .filter_map(|frame| frame.to)
            .any(|address| !is_shown(address))
}

fn failure(trace: &Trace) -> Option<DisclosedError> {
    let known = DisclosedError::known(-32000, trace.top.error.as_deref()?);
    // The code that ran is one the caller may see, so its revert bytes are too (W7).
    Some(if known.is_revert() {
        DisclosedError::reverted(&trace.top.output)
    } else {
        known
    })
}
