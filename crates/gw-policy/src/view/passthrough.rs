//! The view of passthrough calls, the only one that does not filter its result (spec/20 N3).

use super::malformed_as;
use crate::{
    access::{Permit, Plan},
    sealed::{Disclosed, RawJson, Sealed},
    view::scan::Malformed,
};
use serde::de::IgnoredAny;

/// The unchanged upstream result of a passthrough call: the operator registered the method's prefix and is responsible
/// for what its methods disclose. Only a permit with [`Plan::Passthrough`] opens it.
pub fn passthrough(permit: &Permit, answer: Sealed<RawJson>) -> Disclosed {
    malformed_as(Disclosed::NULL, || {
        if permit.plan() != Plan::Passthrough {
            return Err(Malformed);
        }
        let raw = answer.open();
        let text = raw.text().ok_or(Malformed)?;
        serde_json::from_str::<IgnoredAny>(text).map_err(|_| Malformed)?;
        Disclosed::passed(raw).ok_or(Malformed)
    })
}
