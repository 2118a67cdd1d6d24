//! Why a directory login fails, and the answer to the client (spec/10 section 6).

use super::Fault;
use gw_http::{ApiError, ErrorCode, described_error};
use gw_journal::JournalError;
use gw_store::StoreError;
use gw_types::Seconds;

/// Why a directory login is rejected: of a user with a code, or of a service principal with a token.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DirectoryError {
    /// No directory is configured.
    #[error("no directory is configured")]
    NotConfigured,
    /// The directory or the shared cache cannot be reached.
    #[error("the directory is not available")]
    Unavailable,
    /// The redirect leads to a page that is not allowed.
    #[error("the redirect is not allowed")]
    Redirect,
    /// The state is unknown or used, or the caller did not begin this login.
    #[error("the state is unknown, used or not this caller's")]
    State,
    /// The directory gave no token for the code.
    #[error("the directory gave no token")]
    NoToken,
    /// The directory's token was rejected.
    #[error("the token was rejected")]
    Token(#[from] Fault),
    /// The tenant is not on the list.
    #[error("the tenant is not allowed")]
    Tenant,
    /// The tenant does not provision accounts automatically.
    #[error("the account is not provisioned")]
    NotProvisioned,
    /// The account is pinned to another tenant.
    #[error("the account belongs to another tenant")]
    OtherTenant,
    /// The account is banned.
    #[error("the account is banned")]
    Banned,
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// The login could not be recorded.
    #[error("the login could not be recorded")]
    Unrecorded(#[from] JournalError),
}

impl DirectoryError {
    /// The reason in the record of a rejected login; `None` where no login was attempted.
    pub(crate) fn reason(&self) -> Option<&'static str> {
        match self {
            Self::NotConfigured | Self::Redirect => None,
            Self::Unavailable => Some("directory_unavailable"),
            Self::State => Some("invalid_state"),
            Self::NoToken | Self::Token(_) => Some("verification_failed"),
            Self::Tenant => Some("tenant_not_authorized"),
            Self::NotProvisioned => Some("not_provisioned"),
            Self::OtherTenant => Some("other_tenant"),
            Self::Banned => Some("banned"),
            Self::Store(_) | Self::Unrecorded(_) => Some("authentication_failed"),
        }
    }
}

impl From<DirectoryError> for ApiError {
    fn from(error: DirectoryError) -> Self {
        match error {
            DirectoryError::NotConfigured => not_configured(),
            DirectoryError::Unavailable => unavailable(),
            DirectoryError::Redirect => redirect_not_allowed(),
            DirectoryError::State => Self::bad_request("invalid or expired state token"),
            DirectoryError::Token(Fault::TenantId) => Self::unauthorized("invalid tenant ID in token"),
            DirectoryError::NoToken | DirectoryError::Token(_) => Self::unauthorized("directory authentication failed"),
            DirectoryError::Tenant => Self::forbidden("tenant is not authorized"),
            DirectoryError::NotProvisioned => Self::forbidden("account is not provisioned"),
            DirectoryError::OtherTenant => Self::forbidden("account belongs to another tenant"),
            DirectoryError::Banned => Self::forbidden("account is banned"),
            DirectoryError::Store(error) => crate::error::storage(&error),
            DirectoryError::Unrecorded(_) => Self::audit_unavailable(),
        }
    }
}

described_error!(
    DirectoryError,
    "APIError",
    [
        ErrorCode::BadRequest.answer(),
        ErrorCode::Unauthorized.answer(),
        ErrorCode::Forbidden.answer(),
        ErrorCode::NotFound.answer(),
        ErrorCode::Internal.answer(),
        ErrorCode::Unavailable.answer(),
    ]
);

/// Why no directory login was started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// The directory or the shared cache cannot be reached.
    #[error("the directory is not available")]
    Unavailable,
    /// Too many pending logins.
    #[error("too many open directory logins")]
    Busy(Seconds),
    /// Too many pending logins of one address or network; one of them ends after this time.
    #[error("too many open directory logins of one network")]
    TooManyLogins(Seconds),
}

/// The 404 without a directory.
pub(crate) fn not_configured() -> ApiError {
    ApiError::not_found("not found")
}

/// The 503 for a directory or cache that cannot be reached.
pub(crate) fn unavailable() -> ApiError {
    ApiError::unavailable("directory unavailable").retry_after(Seconds(60))
}

/// The 400 for a redirect to a page that is not allowed.
pub(crate) fn redirect_not_allowed() -> ApiError {
    ApiError::bad_request("redirect_uri is not allowed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_http::DescribedError as _;

    #[test]
    fn ds2_ds8_every_refusal_has_its_status_text_and_reason() {
        let table = [
            (DirectoryError::NotConfigured, 404, "not found", None),
            (
                DirectoryError::Unavailable,
                503,
                "directory unavailable",
                Some("directory_unavailable"),
            ),
            (DirectoryError::Redirect, 400, "redirect_uri is not allowed", None),
            (
                DirectoryError::State,
                400,
                "invalid or expired state token",
                Some("invalid_state"),
            ),
            (
                DirectoryError::NoToken,
                401,
                "directory authentication failed",
                Some("verification_failed"),
            ),
            (
                Fault::Expired.into(),
                401,
                "directory authentication failed",
                Some("verification_failed"),
            ),
            (
                Fault::UnknownKey.into(),
                401,
                "directory authentication failed",
                Some("verification_failed"),
            ),
            (
                Fault::TenantId.into(),
                401,
                "invalid tenant ID in token",
                Some("verification_failed"),
            ),
            (
                DirectoryError::Tenant,
                403,
                "tenant is not authorized",
                Some("tenant_not_authorized"),
            ),
            (
                DirectoryError::NotProvisioned,
                403,
                "account is not provisioned",
                Some("not_provisioned"),
            ),
            (
                DirectoryError::OtherTenant,
                403,
                "account belongs to another tenant",
                Some("other_tenant"),
            ),
            (DirectoryError::Banned, 403, "account is banned", Some("banned")),
            (
                DirectoryError::Store(StoreError::NotPrimary),
                503,
                "the policy store is temporarily unavailable",
                Some("authentication_failed"),
            ),
            (
                DirectoryError::Store(StoreError::Detached),
                500,
                "internal error",
                Some("authentication_failed"),
            ),
            (
                DirectoryError::Unrecorded(JournalError::Full),
                503,
                "audit unavailable",
                Some("authentication_failed"),
            ),
        ];
        let answers = table.map(|(error, status, text, reason)| {
            // A new variant stops the build here: add it to the table.
            match error {
                DirectoryError::NotConfigured
                | DirectoryError::Unavailable
                | DirectoryError::Redirect
                | DirectoryError::State
                | DirectoryError::NoToken
                | DirectoryError::Token(_)
                | DirectoryError::Tenant
                | DirectoryError::NotProvisioned
                | DirectoryError::OtherTenant
                | DirectoryError::Banned
                | DirectoryError::Store(_)
                | DirectoryError::Unrecorded(_) => {}
            }
            assert_eq!(error.reason(), reason, "{error:?}");
            let answer = ApiError::from(error);
            assert_eq!((answer.code().status().as_u16(), answer.text()), (status, text));
            answer.code().answer()
        });
        assert!(DirectoryError::lists_exactly(answers));
    }
}
