//! `/mined`: the violations found in mined transactions, and how they are cleared (spec/02 HD2, HD28, HD38).
//!
//! A super administrator sees and clears everything. Administrators of the organization that the transaction was sent
//! under see that there is a violation. Its effects and the affected organizations are shown only to a user who
//! administers every affected organization; only such a user may clear it. Other administrators may gain by the
//! violation: those of the sender's organization, or of a third organization that received the assets.
pub(crate) mod clear_conviction;
pub(crate) mod clear_quarantine;
pub(crate) mod clear_suspension;
pub(crate) mod convictions;
pub(crate) mod quarantines;
pub(crate) mod suspensions;

use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    scope::{Admin, covers},
    wire::ClearMinedRequest,
};
use gw_http::ApiError;
use gw_store::{read::Scope, record::Conviction};
use gw_types::{ConvictionId, OrgId, QuarantineId, SuspensionId, WithheldId};
use std::{collections::HashMap, str::FromStr};

/// The reason for clearing, trimmed; 1 to 500 characters.
fn reason(body: &ClearMinedRequest) -> Result<&str, AdminError> {
    let reason = body.reason.trim();
    if reason.is_empty() || reason.chars().count() > 500 {
        return Err(AdminError::bad_request("reason must have 1 to 500 characters"));
    }
    Ok(reason)
}

/// The violations, with the rules for what one administrator may see and clear.
struct Findings<'a> {
    admin: &'a Admin,
    scope: Scope,
    convictions: HashMap<ConvictionId, Conviction>,
}

impl<'a> Findings<'a> {
    async fn load(admin: &'a Admin, state: &AdminState) -> Result<Self, AdminError> {
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

    /// Whether the administrator reads for one of these organizations.
    fn concerns(&self, orgs: &[OrgId]) -> bool {
        orgs.iter().any(|org| covers(&self.scope, *org))
    }

    /// Whether the administrator sees the violation: it was sent under one of their organizations, or all affected
    /// organizations are theirs. The other affected organizations would reveal what the transaction did.
    fn is_theirs(&self, sent_under: Option<OrgId>, conviction: Option<&Conviction>) -> bool {
        self.admin.is_super()
            || sent_under.is_some_and(|org| covers(&self.scope, org))
            || conviction.is_some_and(|conviction| self.may_see_details(&conviction.wronged))
    }

    fn conviction(&self, id: Option<ConvictionId>) -> Option<&Conviction> {
        id.and_then(|id| self.convictions.get(&id))
    }

    /// Whether the administrator reads for all affected organizations; others do not learn what the transaction did.
    fn may_see_details(&self, wronged: &[OrgId]) -> bool {
        self.admin.is_super() || administers_all(wronged, |org| covers(&self.scope, org))
    }

    fn shown_reason(&self, wronged: &[OrgId], reason: &str) -> String {
        const HIDDEN_REASON: &str = "mined_trace_violation";
        if self.may_see_details(wronged) {
            reason.to_owned()
        } else {
            HIDDEN_REASON.to_owned()
        }
    }

    fn may_clear(&self, conviction: Option<&Conviction>) -> bool {
        may_clear(self.admin, conviction)
    }
}

/// Whether the administrator may clear what follows from a conviction. Only super clears rows that are older than
/// convictions, and convictions without an affected organization.
fn may_clear(admin: &Admin, conviction: Option<&Conviction>) -> bool {
    let wronged = conviction.map_or(&[][..], |conviction| conviction.wronged.as_slice());
    admin.is_super() || administers_all(wronged, |org| admin.require_writer_of(org).is_ok())
}

fn administers_all(wronged: &[OrgId], administers: impl Fn(OrgId) -> bool) -> bool {
    !wronged.is_empty() && wronged.iter().all(|org| administers(*org))
}

/// Requires an administrator who may clear what follows from this conviction.
///
/// # Errors
/// The error for an unknown object, with `not_found` as the text for super.
async fn require_clearance(
    admin: &Admin,
    state: &AdminState,
    conviction: Option<ConvictionId>,
    not_found: &'static str,
) -> Result<(), AdminError> {
    let conviction = match conviction {
        Some(id) => state.store.read().find_conviction(id).await?,
        None => None,
    };
    if may_clear(admin, conviction.as_ref()) {
        Ok(())
    } else {
        Err(admin.unknown_target(not_found))
    }
}

/// A consequence of a withheld transaction, which an administrator may clear.
#[derive(Clone, Copy, Debug)]
enum Consequence {
    /// The transaction is withheld. The audit entry is filed under the organization.
    Conviction(ConvictionId, Option<OrgId>),
    /// Its sender is suspended.
    Suspension(SuspensionId),
    /// An address is closed.
    Quarantine(QuarantineId),
    /// A change of an account is withheld.
    Withheld(WithheldId),
}

/// A request to clear a consequence, by an administrator who may change at least one organization.
struct ClearRequest<'a, I> {
    admin: &'a Admin,
    state: &'a AdminState,
    /// The id in the path.
    id: I,
    body: ClearMinedRequest,
    /// The text of the 404.
    unknown: &'static str,
}

impl<'a, I: FromStr> ClearRequest<'a, I> {
    fn new(
        admin: &'a Admin,
        state: &'a AdminState,
        id: &str,
        body: Result<JsonBody<ClearMinedRequest>, ApiError>,
        unknown: &'static str,
    ) -> Result<Self, AdminError> {
        admin.require_writer()?;
        let JsonBody(body) = body?;
        let id = id.parse().map_err(|_| admin.unknown_target(unknown))?;
        Ok(Self {
            admin,
            state,
            id,
            body,
            unknown,
        })
    }

    fn unknown(&self) -> AdminError {
        self.admin.unknown_target(self.unknown)
    }

    /// Clears a consequence of `conviction`, if the administrator may, for the reason in the body.
    async fn clear(&self, conviction: Option<ConvictionId>, consequence: Consequence) -> Result<(), AdminError> {
        require_clearance(self.admin, self.state, conviction, self.unknown).await?;
        let reason = reason(&self.body)?;
        let mut tx = self.admin.begin(self.state).await?;
        match consequence {
            Consequence::Conviction(id, org) => tx.clear_conviction(id, org, reason).await?,
            Consequence::Suspension(id) => tx.clear_suspension(id, reason).await?,
            Consequence::Quarantine(id) => tx.clear_quarantine(id, reason).await?,
            Consequence::Withheld(id) => tx.release_change(id, reason).await?,
        }
        tx.commit().await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RT23, HD38: an administrator of the sender's organization alone clears no violation of another organization.
    /// Only super clears a violation without a known affected organization.
    #[test]
    fn rt23_administrators_of_all_affected_organizations_clear_together() {
        let [sender_org, affected, third_org] = [1, 2, 3].map(OrgId::fixed);
        let may_clear =
            |wronged: &[OrgId], administered: &[OrgId]| administers_all(wronged, |org| administered.contains(&org));
        assert!(
            may_clear(&[affected], &[affected])
                && may_clear(&[affected], &[sender_org, affected])
                && may_clear(&[sender_org], &[sender_org])
        );
        assert!(
            !may_clear(&[affected], &[sender_org])
                && !may_clear(&[sender_org, affected], &[sender_org])
                && !may_clear(&[sender_org, affected], &[affected])
        );
        assert!(!may_clear(&[affected, third_org], &[affected]));
        assert!(!may_clear(&[], &[sender_org, affected, third_org]));
    }
}
