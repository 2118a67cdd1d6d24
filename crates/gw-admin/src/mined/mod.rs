//! `/mined`: what mined transactions were found to have done, and clearing it (spec/02 HD2, HD28, HD38).
//!
//! A super admin sees and clears everything. An organization's administrators see that there was something if it was sent under
//! it. What such a transaction did and changed, whom it wronged, and that they may clear it, is for who administers every
//! organization that it wronged: anybody else may be the one who gains by it, an administrator of the sender's organization, or
//! of a third one that the loot was carried to.
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
        let convictions = convictions
            .into_iter()
            .map(|conviction| (conviction.id, conviction))
            .collect();
        Ok(Self {
            admin,
            scope,
            convictions,
        })
    }

    /// Whether an organization of the administrator's is among these.
    fn concerns(&self, orgs: &[OrgId]) -> bool {
        orgs.iter().any(|org| covers(&self.scope, *org))
    }

    /// Whether it was sent under an organization of theirs, or wronged theirs and no other one: which others it touched besides
    /// tells what it did.
    fn is_theirs(&self, sent_under: Option<OrgId>, conviction: Option<&Conviction>) -> bool {
        self.admin.is_super()
            || sent_under.is_some_and(|org| covers(&self.scope, org))
            || conviction.is_some_and(|found| self.may_see_details(&found.wronged))
    }

    fn conviction(&self, id: Option<ConvictionId>) -> Option<&Conviction> {
        id.and_then(|id| self.convictions.get(&id))
    }

    /// Whether the administrator reads for all organizations that were wronged: to others it is not told what was done.
    fn may_see_details(&self, wronged: &[OrgId]) -> bool {
        self.admin.is_super() || all_theirs(wronged, |org| covers(&self.scope, org))
    }

    fn shown_reason(&self, wronged: &[OrgId], reason: &str) -> String {
        const UNTOLD: &str = "mined_trace_violation";
        if self.may_see_details(wronged) {
            reason.to_owned()
        } else {
            UNTOLD.to_owned()
        }
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
    if may_clear(admin, conviction.as_ref()) {
        Ok(())
    } else {
        Err(admin.unknown_target(what))
    }
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
