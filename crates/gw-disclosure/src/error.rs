//! Errors of the routes and their answers: one enum for each kind of operation. The causes of internal errors go to the
//! log only.

use crate::canonical::NotCanonical;
use gw_cache::{PutError, Unavailable};
use gw_crypto::KeyCipherError;
use gw_http::{ApiError, ErrorCode, described_error};
use gw_journal::JournalError;
use gw_policy::disclosure::coverage::ClassNotCovered;
use gw_store::{DisclosureError, StoreError};
use gw_types::Seconds;

/// The 403 text for an organization.
pub(crate) const ORG_DENIED: &str = "access denied to this organization";
const TARGET_DENIED: &str = "access denied to target resource";
/// The 404 text for a request.
pub(crate) const NO_REQUEST: &str = "request not found";
/// The 404 text for a grant.
pub(crate) const NO_GRANT: &str = "grant not found";

/// The 403 for a request, grant or person that does not exist, or that the caller may not know of (rule 3).
pub(crate) fn denied() -> ApiError {
    ApiError::forbidden(TARGET_DENIED)
}

/// Logs a store error and converts it: 503 while the store cannot be reached or did not confirm the change (RTO8),
/// otherwise an internal error without details.
fn storage(error: &StoreError) -> ApiError {
    let cause = error as &dyn std::error::Error;
    if matches!(error, StoreError::Unconfirmed(_)) {
        tracing::error!(
            error = cause,
            "the commit of a disclosure is not confirmed: it may have been applied; check the audit log for its entry"
        );
        return ApiError::unavailable("the change is not confirmed and may stand: read it back before repeating it");
    }
    if error.is_unavailable() {
        tracing::warn!(error = cause, "the policy store cannot be reached");
        return ApiError::unavailable("the policy store is temporarily unavailable");
    }
    tracing::error!(error = cause, "a disclosure request failed with an internal error");
    ApiError::internal()
}

/// The answer to a change that the store refused, on routes of the owner. `UnknownRequest` and `UnknownGrant` differ on
/// admin routes: see [`AdminError`].
fn refused(error: DisclosureError) -> ApiError {
    if let DisclosureError::Store(error) = &error {
        return storage(error);
    }
    let code = match error.http_status() {
        Some(400) => ErrorCode::BadRequest,
        Some(403) => ErrorCode::Forbidden,
        Some(404) => ErrorCode::NotFound,
        Some(_) | None => {
            tracing::error!(error = &error as &dyn std::error::Error, "a disclosure was not changed");
            return ApiError::internal();
        }
    };
    // The text of these variants is the text of the answer.
    ApiError::new(code, error.to_string())
}

/// The error of a route of administrators.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdminError {
    /// Sent unchanged.
    #[error("the request is refused")]
    Api(#[source] Answer),
    /// The store refused the change of a request or grant that the administrator may know of.
    #[error("the disclosure was not changed")]
    Disclosure(#[source] DisclosureError),
    /// A query failed.
    #[error("the store failed")]
    Store(#[source] StoreError),
}

/// The error of a route of an owner.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OwnerError {
    /// Sent unchanged.
    #[error("the request is refused")]
    Api(#[source] Answer),
    /// The store refused the change.
    #[error("the disclosure was not changed")]
    Disclosure(#[source] DisclosureError),
    /// A query failed.
    #[error("the store failed")]
    Store(#[source] StoreError),
    /// The document cannot be signed.
    #[error("the document cannot be signed")]
    Document(#[source] NotCanonical),
}

/// The error of a read under a grant.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GrantError {
    /// Sent unchanged.
    #[error("the request is refused")]
    Api(#[source] Answer),
    /// There is no such grant, or its grantee is another person: the same answer.
    #[error("no such grant")]
    Unknown,
    /// The grant was revoked. Only the grantee is told.
    #[error("the grant was revoked")]
    Revoked,
    /// The grant has expired. Only the grantee is told.
    #[error("the grant has expired")]
    Expired,
    /// The secret of the grant cannot be decrypted.
    #[error("the secret of the grant cannot be decrypted")]
    Secret(#[source] KeyCipherError),
    /// The grant does not cover the class of data.
    #[error("the grant does not cover the data")]
    Class(#[source] ClassNotCovered),
    /// No token was presented, or one that was not issued or has ended.
    #[error("no valid disclosure token")]
    Token,
    /// The token belongs to another grant.
    #[error("a token of another grant")]
    TokenMismatch,
    /// The report cannot be written.
    #[error("the report cannot be written")]
    Report,
    /// The report has another type than those of rule 33.
    #[error("an unknown type of report")]
    ReportType,
    /// The cache of tokens takes no further one.
    #[error("the cache takes no further token")]
    TooManyTokens(Seconds),
    /// The cache of tokens cannot be reached.
    #[error("the cache cannot be reached")]
    Cache(#[source] Unavailable),
    /// The journal takes no record of the read, so nothing is shown (rule 39).
    #[error("the read cannot be recorded")]
    Journal(#[source] JournalError),
    /// A query failed.
    #[error("the store failed")]
    Store(#[source] StoreError),
    /// The document cannot be signed.
    #[error("the document cannot be signed")]
    Document(#[source] NotCanonical),
}

/// An answer as the cause of an error.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", .0.text())]
pub(crate) struct Answer(pub(crate) ApiError);

described_error!(
    AdminError,
    "APIError",
    [
        ErrorCode::BadRequest.answer(),
        ErrorCode::Unauthorized.answer(),
        ErrorCode::Forbidden.answer(),
        ErrorCode::NotFound.answer(),
        ErrorCode::PayloadTooLarge.answer(),
        ErrorCode::RateLimited.answer(),
        ErrorCode::Internal.answer(),
        ErrorCode::Unavailable.answer(),
    ]
);

described_error!(
    OwnerError,
    "APIError",
    [
        ErrorCode::BadRequest.answer(),
        ErrorCode::Unauthorized.answer(),
        ErrorCode::Forbidden.answer(),
        ErrorCode::NotFound.answer(),
        ErrorCode::PayloadTooLarge.answer(),
        ErrorCode::RateLimited.answer(),
        ErrorCode::Internal.answer(),
        ErrorCode::Unavailable.answer(),
    ]
);

described_error!(
    GrantError,
    "APIError",
    [
        ErrorCode::BadRequest.answer(),
        ErrorCode::Unauthorized.answer(),
        ErrorCode::Forbidden.answer(),
        ErrorCode::NotFound.answer(),
        ErrorCode::RateLimited.answer(),
        ErrorCode::Internal.answer(),
        ErrorCode::Unavailable.answer(),
    ]
);

macro_rules! conversions {
    ($($error:ident: $($variant:ident($source:ty)),+;)+) => {$(
        impl From<ApiError> for $error {
            fn from(error: ApiError) -> Self {
                Self::Api(Answer(error))
            }
        }

        $(impl From<$source> for $error {
            fn from(error: $source) -> Self {
                Self::$variant(error)
            }
        })+

        impl axum::response::IntoResponse for $error {
            fn into_response(self) -> axum::response::Response {
                ApiError::from(self).into_response()
            }
        }
    )+};
}

conversions! {
    AdminError: Disclosure(DisclosureError), Store(StoreError);
    OwnerError: Disclosure(DisclosureError), Store(StoreError), Document(NotCanonical);
    GrantError: Class(ClassNotCovered), Cache(Unavailable), Journal(JournalError), Store(StoreError),
        Document(NotCanonical);
}

impl From<PutError> for GrantError {
    fn from(error: PutError) -> Self {
        match error {
            PutError::Full { wait } | PutError::GroupFull { wait } => Self::TooManyTokens(wait),
            PutError::Unavailable(error) => Self::Cache(error),
        }
    }
}

impl From<AdminError> for ApiError {
    fn from(error: AdminError) -> Self {
        match error {
            AdminError::Api(Answer(error)) => error,
            // The handler found the request before, so it ended meanwhile: as if it had never been found (rule 3).
            AdminError::Disclosure(DisclosureError::UnknownRequest | DisclosureError::UnknownGrant) => denied(),
            AdminError::Disclosure(error) => refused(error),
            AdminError::Store(error) => storage(&error),
        }
    }
}

impl From<OwnerError> for ApiError {
    fn from(error: OwnerError) -> Self {
        match error {
            OwnerError::Api(Answer(error)) => error,
            OwnerError::Disclosure(error) => refused(error),
            OwnerError::Store(error) => storage(&error),
            OwnerError::Document(error) => unsigned(error),
        }
    }
}

impl From<GrantError> for ApiError {
    fn from(error: GrantError) -> Self {
        match error {
            GrantError::Api(Answer(error)) => error,
            GrantError::Unknown => Self::not_found(NO_GRANT),
            GrantError::Revoked => Self::forbidden("grant has been revoked"),
            GrantError::Expired => Self::forbidden("grant has expired"),
            GrantError::Secret(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "a grant of disclosure cannot be used: its secret cannot be decrypted"
                );
                Self::internal()
            }
            GrantError::Class(error) => Self::forbidden(error.to_string()),
            GrantError::Token => Self::unauthorized("invalid disclosure token"),
            GrantError::TokenMismatch => Self::forbidden("token does not match grant"),
            GrantError::ReportType => Self::bad_request("invalid report type"),
            GrantError::TooManyTokens(wait) => Self::rate_limited(wait),
            GrantError::Cache(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "the cache cannot be reached");
                Self::unavailable("disclosure tokens are temporarily unavailable")
            }
            GrantError::Journal(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "a read under a grant cannot be recorded; nothing was shown"
                );
                Self::audit_unavailable()
            }
            GrantError::Report => {
                tracing::error!("a report under a grant cannot be written");
                Self::internal()
            }
            GrantError::Store(error) => storage(&error),
            GrantError::Document(error) => unsigned(error),
        }
    }
}

fn unsigned(error: NotCanonical) -> ApiError {
    tracing::error!(error = &error as &dyn std::error::Error, "a document cannot be signed");
    ApiError::internal()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_http::DescribedError;
    use gw_policy::disclosure::{DataClass, DurationError, ScopeError, TransitionError};

    fn check<E: DescribedError + std::fmt::Debug>(table: Vec<(E, u16, &str)>)
    where
        ApiError: From<E>,
    {
        let answers = table.into_iter().map(|(error, status, text)| {
            let name = format!("{error:?}");
            let answer = ApiError::from(error);
            assert_eq!(answer.code().status().as_u16(), status, "{name}");
            assert_eq!(answer.text(), text, "{name}");
            answer.code().answer()
        });
        assert!(E::lists_exactly(answers.collect::<Vec<_>>()));
    }

    /// Every reason for which the store refuses a change, with its answer on routes of the owner.
    fn refusals() -> Vec<(DisclosureError, u16, &'static str)> {
        let table = vec![
            (DisclosureError::UnknownRequest, 404, NO_REQUEST),
            (DisclosureError::UnknownGrant, 404, NO_GRANT),
            (DisclosureError::NotOwner, 403, TARGET_DENIED),
            (DisclosureError::TargetNotMember, 403, TARGET_DENIED),
            (DisclosureError::UnknownRequester, 400, "requester_user_id is unknown"),
            (
                DisclosureError::RequesterMismatch,
                400,
                "requester_user_id and requester_did do not agree",
            ),
            (
                DisclosureError::RequesterIsTarget,
                400,
                "requester and target must differ",
            ),
            (DisclosureError::ReasonRequired, 400, "reason is required"),
            (
                DisclosureError::ReasonLength,
                400,
                "reason must have at most 2000 characters",
            ),
            (
                DisclosureError::LegalBasisLength,
                400,
                "legal_basis must have at most 255 characters",
            ),
            (
                DisclosureError::LegalBasisRequired,
                400,
                "legal_basis is required for full disclosure",
            ),
            (
                DisclosureError::TooManyGrants,
                400,
                "the organization has the maximum of 500 active grants to the requester",
            ),
            (
                DisclosureError::TooManyOwnerGrants,
                400,
                "you have the maximum of 50 active grants to the requester",
            ),
            (
                DisclosureError::TooManyKeptGrants,
                400,
                "you have the maximum of 500 grants that are active or ended lately",
            ),
            (DisclosureError::GrantExpired, 400, "grant has expired"),
            (TransitionError::Forbidden.into(), 403, TARGET_DENIED),
            (TransitionError::NotPending.into(), 400, "request is not pending"),
            (TransitionError::Expired.into(), 400, "request has expired"),
            (
                TransitionError::NotApproved.into(),
                400,
                "can only revoke approved requests",
            ),
            (
                TransitionError::DeleteNotPending.into(),
                400,
                "can only delete pending requests",
            ),
            (
                ScopeError::NotSubset.into(),
                400,
                "scope must be a subset of the requested scope",
            ),
            (DurationError::OutOfRange.into(), 400, "the expiry is out of range"),
            (DisclosureError::Secret, 500, "internal error"),
            (StoreError::Detached.into(), 500, "internal error"),
            (
                StoreError::NotPrimary.into(),
                503,
                "the policy store is temporarily unavailable",
            ),
            (
                StoreError::Unconfirmed("lost").into(),
                503,
                "the change is not confirmed and may stand: read it back before repeating it",
            ),
        ];
        for (error, ..) in &table {
            // A new variant stops the build here: add it to the table.
            match error {
                DisclosureError::UnknownRequest
                | DisclosureError::UnknownGrant
                | DisclosureError::NotOwner
                | DisclosureError::TargetNotMember
                | DisclosureError::UnknownRequester
                | DisclosureError::RequesterMismatch
                | DisclosureError::RequesterIsTarget
                | DisclosureError::ReasonRequired
                | DisclosureError::ReasonLength
                | DisclosureError::LegalBasisLength
                | DisclosureError::LegalBasisRequired
                | DisclosureError::TooManyGrants
                | DisclosureError::TooManyOwnerGrants
                | DisclosureError::TooManyKeptGrants
                | DisclosureError::GrantExpired
                | DisclosureError::Transition(_)
                | DisclosureError::Scope(_)
                | DisclosureError::Duration(_)
                | DisclosureError::Secret
                | DisclosureError::Store(_) => {}
            }
        }
        table
    }

    fn edge() -> [(ApiError, u16, &'static str); 4] {
        [
            (ApiError::bad_request("no"), 400, "no"),
            (ApiError::unauthorized("no"), 401, "no"),
            (ApiError::payload_too_large(), 413, "request body too large"),
            (ApiError::rate_limited(Seconds(1)), 429, "rate limit exceeded"),
        ]
    }

    /// House rule 17.
    #[test]
    fn every_error_of_an_owner_has_its_answer() {
        let refusals = refusals().into_iter();
        let mut table: Vec<(OwnerError, _, _)> = refusals
            .map(|(error, status, text)| (error.into(), status, text))
            .collect();
        table.extend(edge().map(|(error, status, text)| (error.into(), status, text)));
        table.push((StoreError::Detached.into(), 500, "internal error"));
        table.push((NotCanonical.into(), 500, "internal error"));
        check(table);
    }

    /// House rule 17, rule 3: administrators get one answer for unknown requests and grants.
    #[test]
    fn ds3_every_error_of_an_administrator_has_its_answer() {
        let refusals = refusals().into_iter().map(|(error, status, text)| match error {
            DisclosureError::UnknownRequest | DisclosureError::UnknownGrant => {
                (AdminError::from(error), 403, TARGET_DENIED)
            }
            error => (error.into(), status, text),
        });
        let mut table: Vec<_> = refusals.collect();
        table.extend(edge().map(|(error, status, text)| (error.into(), status, text)));
        table.push((ApiError::not_found(NO_REQUEST).into(), 404, NO_REQUEST));
        table.push((StoreError::Detached.into(), 500, "internal error"));
        check(table);
    }

    /// House rule 17.
    #[test]
    fn every_error_of_a_read_has_its_answer() {
        check(vec![
            (GrantError::from(ApiError::bad_request("no")), 400, "no"),
            (GrantError::ReportType, 400, "invalid report type"),
            (GrantError::Token, 401, "invalid disclosure token"),
            (GrantError::TokenMismatch, 403, "token does not match grant"),
            (GrantError::Revoked, 403, "grant has been revoked"),
            (GrantError::Expired, 403, "grant has expired"),
            (
                ClassNotCovered(DataClass::Activity).into(),
                403,
                "grant scope does not include activity_logs",
            ),
            (GrantError::Report, 500, "internal error"),
            (GrantError::Secret(KeyCipherError::Stored), 500, "internal error"),
            (GrantError::Unknown, 404, NO_GRANT),
            (GrantError::TooManyTokens(Seconds(1)), 429, "rate limit exceeded"),
            (Unavailable.into(), 503, "disclosure tokens are temporarily unavailable"),
            (JournalError::Full.into(), 503, "audit unavailable"),
            (StoreError::Detached.into(), 500, "internal error"),
            (NotCanonical.into(), 500, "internal error"),
        ]);
    }
}
