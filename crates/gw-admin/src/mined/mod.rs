//! `/mined`: what mined transactions were found to have done, and clearing it (spec/02 HD2, HD28, HD38).
//!
//! A super admin sees and clears everything. An organization's administrators see what concerns it: transactions that
//! wronged it or were sent under it, and its own contracts that another organization's transaction changed. They clear what follows from a transaction only if they
//! administer every organization that it wronged: an administrator of the sender's organization alone may be the one who
//! gains by it.
pub(crate) mod clear_conviction;
pub(crate) mod clear_quarantine;
pub(crate) mod clear_suspension;
pub(crate) mod convictions;
pub(crate) mod quarantines;
pub(crate) mod suspensions;

use crate::{
    AdminState,
    error::Failure,
    scope::{Admin, covers},
    wire::ClearMinedRequest,
};
use gw_store::{read::Scope, record::Conviction};
use gw_types::{ConvictionId, OrgId};
use std::collections::HashMap;

/// Why something is cleared.
fn reason(body: &ClearMinedRequest) -> Result<&str, Failure> {
    let reason = body.reason.trim();
    if reason.is_empty() || reason.chars().count() > 500 {
        return Err(Failure::bad("reason must have 1 to 500 characters"));
    }
    Ok(reason)
}

/// What one administrator sees of what was found, and may clear of it.
struct Findings<'a> {
    admin: &'a Admin,
    scope: Scope,
    convictions: HashMap<ConvictionId, Conviction>,
}

impl<'a> Findings<'a> {
    async fn load(admin: &'a Admin, state: &AdminState) -> Result<Self, Failure> {
        let scope = admin.scope()?;
        let convictions = state.store.read().list_convictions().await?;
        let convictions = convictions.into_iter().map(|conviction| (conviction.id, conviction)).collect();
        Ok(Self { admin, scope, convictions })
    }

    /// Whether an organization of the administrator's is among these.
    fn concerns(&self, orgs: &[OrgId]) -> bool {
        orgs.iter().any(|org| covers(&self.scope, *org))
    }

    /// Whether it was sent under an organization of theirs, or concerns one.
    fn is_theirs(&self, sent_under: Option<OrgId>, conviction: Option<&Conviction>) -> bool {
        let touched = |found: &Conviction| self.concerns(&found.wronged);
        self.admin.is_super()
            || sent_under.is_some_and(|org| covers(&self.scope, org))
            || conviction.is_some_and(touched)
    }

    fn conviction(&self, id: Option<ConvictionId>) -> Option<&Conviction> {
        id.and_then(|id| self.convictions.get(&id))
    }

    /// The reason, for super and who was wronged; to the sender's side it would tell what was done.
    fn told_reason(&self, wronged: &[OrgId], reason: &str) -> String {
        const UNTOLD: &str = "mined_trace_violation";
        if self.admin.is_super() || self.concerns(wronged) { reason.to_owned() } else { UNTOLD.to_owned() }
    }

    fn may_clear(&self, conviction: Option<&Conviction>) -> bool {
        may_clear(self.admin, conviction)
    }
}

/// Whether the administrator may clear what follows from a conviction. Only super clears rows from before convictions were
/// kept, and convictions that name no wronged organization.
fn may_clear(admin: &Admin, conviction: Option<&Conviction>) -> bool {
    let wronged = conviction.map_or(&[][..], |conviction| conviction.wronged.as_slice());
    admin.is_super() || all_theirs(wronged, |org| admin.require_writer_of(org).is_ok())
}

/// Whether the administrator may release what was changed of a contract of this organization, which is not on the sender's
/// side (HD38).
fn may_release(admin: &Admin, owner: Option<OrgId>) -> bool {
    admin.is_super() || owner.is_some_and(|org| admin.require_writer_of(org).is_ok())
}

fn all_theirs(wronged: &[OrgId], administers: impl Fn(OrgId) -> bool) -> bool {
    !wronged.is_empty() && wronged.iter().all(|org| administers(*org))
}

/// Lets somebody in who may clear what follows from this conviction.
async fn require_clearance(
    admin: &Admin,
    state: &AdminState,
    conviction: Option<ConvictionId>,
    what: &'static str,
) -> Result<(), Failure> {
    let conviction = match conviction {
        Some(id) => state.store.read().find_conviction(id).await?,
        None => None,
    };
    if may_clear(admin, conviction.as_ref()) { Ok(()) } else { Err(admin.unknown_target(what)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RT23, HD38: who administers the sender's organization alone lifts nothing that wronged another one; nobody but super
    /// lifts what wronged somebody unknown.
    #[test]
    fn rt23_all_that_were_wronged_clear_together() {
        let [own, robbed, third] = [1, 2, 3].map(OrgId::fixed);
        let clears = |wronged: &[OrgId], administered: &[OrgId]| all_theirs(wronged, |org| administered.contains(&org));
        assert!(clears(&[robbed], &[robbed]) && clears(&[robbed], &[own, robbed]) && clears(&[own], &[own]));
        assert!(!clears(&[robbed], &[own]) && !clears(&[own, robbed], &[own]) && !clears(&[own, robbed], &[robbed]));
        assert!(!clears(&[robbed, third], &[robbed]));
        assert!(!clears(&[], &[own, robbed, third]));
    }
}
