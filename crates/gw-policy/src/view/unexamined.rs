//! The one opening that judges nothing (spec/20 N3).

use super::malformed_as;
use crate::{
    access::{Permit, Plan},
    sealed::{Disclosed, RawJson, Sealed},
    view::scan::Malformed,
};
use serde::de::IgnoredAny;

/// The node's answer to a call that passed through unexamined, as the node gave it: the operator registered the prefix and
/// answers for what its methods tell. Only a permit for such a call opens it.
pub fn unexamined(permit: &Permit, answer: Sealed<RawJson>) -> Disclosed {
    malformed_as(Disclosed::NULL, || {
        if permit.plan() != Plan::Unexamined {
            return Err(Malformed);
        }
        let raw = answer.open();
        let text = raw.text().ok_or(Malformed)?;
        serde_json::from_str::<IgnoredAny>(text).map_err(|_| Malformed)?;
        Disclosed::passed(raw).ok_or(Malformed)
    })
}
