//! Why a disclosure was not changed.

use crate::StoreError;
use gw_policy::disclosure::{DurationError, ScopeError, TransitionError};

/// Why a disclosure was not changed. The text of every variant except [`DisclosureError::Secret`] and
/// [`DisclosureError::Store`] is the text of the answer.
#[derive(Debug, thiserror::Error)]
pub enum DisclosureError {
    /// 404 for owners, and the 403 of rule 3 for administrators.
    #[error("request not found")]
    UnknownRequest,
    /// The 403 of rule 3.
    #[error("grant not found")]
    UnknownGrant,
    /// 403: the request is about another user's data.
    #[error("access denied to target resource")]
    NotOwner,
    /// 403: the target is unknown, or not a member of the requesting organization (rule 5).
    #[error("access denied to target resource")]
    TargetNotMember,
    /// 400: there is no such requester.
    #[error("requester_user_id is unknown")]
    UnknownRequester,
    /// 400: `requester_user_id` and `requester_did` differ (rule 8).
    #[error("requester_user_id and requester_did do not agree")]
    RequesterMismatch,
    /// 400 (rule 8).
    #[error("requester and target must differ")]
    RequesterIsTarget,
    /// 400: the reason is empty.
    #[error("reason is required")]
    ReasonRequired,
    /// 400 (rule 7).
    #[error("reason must have at most 2000 characters")]
    ReasonLength,
    /// 400 (rule 7).
    #[error("legal_basis must have at most 255 characters")]
    LegalBasisLength,
    /// 400 (rule 7).
    #[error("legal_basis is required for full disclosure")]
    LegalBasisRequired,
    /// 400 (spec/50 section 8).
    #[error("the organization has the maximum of 500 active grants to the requester")]
    TooManyGrants,
    /// 400 (spec/50 section 8).
    #[error("you have the maximum of 50 active grants to the requester")]
    TooManyOwnerGrants,
    /// 400: every instance holds them in memory.
    #[error("you have the maximum of 500 grants that are active or ended lately")]
    TooManyKeptGrants,
    /// 400: what has expired cannot be revoked (spec/50 section 3).
    #[error("grant has expired")]
    GrantExpired,
    /// The state of the request does not allow it; [`TransitionError::http_status`].
    #[error(transparent)]
    Transition(#[from] TransitionError),
    /// 400.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// 400.
    #[error(transparent)]
    Duration(#[from] DurationError),
    /// 500: the secret of the grant could not be encrypted.
    #[error("the secret of the grant could not be encrypted")]
    Secret,
    /// The database failed.
    #[error("the policy store failed")]
    Store(#[from] StoreError),
}

impl DisclosureError {
    /// The HTTP status of the answer on routes of the owner; `None` for [`DisclosureError::Store`], whose status the
    /// caller decides as for any other mutation.
    pub const fn http_status(&self) -> Option<u16> {
        match self {
            Self::UnknownRequest | Self::UnknownGrant => Some(404),
            Self::NotOwner | Self::TargetNotMember => Some(403),
            Self::UnknownRequester
            | Self::RequesterMismatch
            | Self::RequesterIsTarget
            | Self::ReasonRequired
            | Self::ReasonLength
            | Self::LegalBasisLength
            | Self::LegalBasisRequired
            | Self::TooManyGrants
            | Self::TooManyOwnerGrants
            | Self::TooManyKeptGrants
            | Self::GrantExpired
            | Self::Scope(_)
            | Self::Duration(_) => Some(400),
            Self::Transition(error) => Some(error.http_status()),
            Self::Secret => Some(500),
            Self::Store(_) => None,
        }
    }
}

impl From<sea_orm::DbErr> for DisclosureError {
    fn from(error: sea_orm::DbErr) -> Self {
        Self::Store(error.into())
    }
}
