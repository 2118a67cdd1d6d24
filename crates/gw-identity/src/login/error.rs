//! Why a login fails, with the answer to the client and the reason that the session shows (spec/10 §2.8).
//!
//! Reasons come from these variants, never from the text of an error (ZK-90).

use super::ProofError;
use gw_cache::{PutError, Unavailable};
use gw_http::{ApiError, ErrorCode, described_error};
use gw_journal::JournalError;
use gw_store::StoreError;
use gw_types::Seconds;
use serde::{Deserialize, Serialize};

/// The reason that a session shows for its last rejected proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reason {
    /// The proof does not hold.
    VerificationFailed,
    /// The humanity credential is missing.
    HumanityRequired,
    /// No readable proof.
    InvalidRequest,
    /// The wallet's network has no state resolver.
    NetworkNotSupported,
    /// A banned account, or an internal fault.
    AuthenticationFailed,
}

impl Reason {
    /// The reason as written in answers and records.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::VerificationFailed => "verification_failed",
            Self::HumanityRequired => "humanity_required",
            Self::InvalidRequest => "invalid_request",
            Self::NetworkNotSupported => "network_not_supported",
            Self::AuthenticationFailed => "authentication_failed",
        }
    }
}

/// Why a login request or a proof is rejected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoginError {
    /// Production without VERIFIER_ID (ZK-5).
    #[error("no verifier id is configured")]
    NoVerifierId,
    /// The credential is required and its schema is not loaded.
    #[error("the credential schema is not at hand")]
    NoSchema,
    /// Too many open sessions in all; one of them ends after this time.
    #[error("too many open login sessions")]
    Busy(Seconds),
    /// Too many open sessions of one address or network; one of them ends after this time.
    #[error("too many open login sessions of one network")]
    TooManySessions(Seconds),
    /// No session was named.
    #[error("no session was named")]
    NoSession,
    /// The named session is unknown, expired or completed.
    #[error("the session is not open")]
    SessionOver,
    /// Too many rejected proofs for this session from this address; attempts are possible again after this time.
    #[error("too many rejected proofs")]
    TooManyFailures(Seconds),
    /// The request body contains no proof.
    #[error("no proof was sent")]
    NoToken,
    /// The proof was checked and rejected.
    #[error("the proof was rejected")]
    Proof {
        /// The failed check.
        #[source]
        error: ProofError,
        /// HUMANITY_VERIFY_URL.
        verify_url: Option<String>,
    },
    /// Another account has shown the same person's credential (ZK-77).
    #[error("the credential belongs to another account")]
    CredentialTaken,
    /// The account is banned.
    #[error("the account is banned")]
    Banned,
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// The login could not be recorded.
    #[error("the login could not be recorded")]
    Unrecorded(#[from] JournalError),
    /// The tokens could not be sealed for the poll.
    #[error("the tokens could not be sealed")]
    Unsealed,
    /// The login sessions cannot be reached.
    #[error("the login sessions cannot be reached")]
    SessionsUnavailable(#[from] Unavailable),
}

impl LoginError {
    /// The error text for administrators: a text of this crate, never one of the store.
    pub(crate) fn exact(&self) -> String {
        match self {
            Self::Proof { error, .. } => error.to_string(),
            other => other.to_string(),
        }
    }

    /// The reason that the session shows; `None` if no proof was checked.
    pub(crate) fn reason(&self) -> Option<Reason> {
        match self {
            Self::NoVerifierId
            | Self::NoSchema
            | Self::Busy(_)
            | Self::TooManySessions(_)
            | Self::NoSession
            | Self::SessionOver
            | Self::TooManyFailures(_)
            | Self::SessionsUnavailable(_) => None,
            Self::NoToken
            | Self::Proof {
                error: ProofError::Unreadable,
                ..
            } => Some(Reason::InvalidRequest),
            Self::CredentialTaken
            | Self::Proof {
                error: ProofError::Failed,
                ..
            } => Some(Reason::VerificationFailed),
            Self::Proof {
                error: ProofError::HumanityMissing,
                ..
            } => Some(Reason::HumanityRequired),
            Self::Proof {
                error: ProofError::NetworkNotSupported,
                ..
            } => Some(Reason::NetworkNotSupported),
            Self::Proof {
                error: ProofError::ResolverFault,
                ..
            }
            | Self::Banned
            | Self::Store(_)
            | Self::Unrecorded(_)
            | Self::Unsealed => Some(Reason::AuthenticationFailed),
        }
    }
}

impl LoginError {
    /// Whether the fault is internal: then it does not count as a failed attempt, and the session no longer counts
    /// against its network's limit (RL14).
    pub(crate) fn is_own_fault(&self) -> bool {
        match self {
            Self::Proof {
                error: ProofError::ResolverFault,
                ..
            }
            | Self::Store(_)
            | Self::Unrecorded(_)
            | Self::Unsealed
            | Self::SessionsUnavailable(_) => true,
            Self::NoVerifierId
            | Self::NoSchema
            | Self::Busy(_)
            | Self::TooManySessions(_)
            | Self::NoSession
            | Self::SessionOver
            | Self::TooManyFailures(_)
            | Self::NoToken
            | Self::Proof { .. }
            | Self::CredentialTaken
            | Self::Banned => false,
        }
    }
}

impl From<PutError> for LoginError {
    fn from(error: PutError) -> Self {
        match error {
            PutError::Full { wait } => Self::Busy(wait),
            PutError::GroupFull { wait } => Self::TooManySessions(wait),
            PutError::Unavailable(away) => Self::SessionsUnavailable(away),
        }
    }
}

impl From<LoginError> for ApiError {
    fn from(error: LoginError) -> Self {
        match error {
            LoginError::NoVerifierId => Self::new(ErrorCode::Internal, "VERIFIER_ID not configured"),
            LoginError::NoSchema => Self::unavailable("verification unavailable").retry_after(Seconds(60)),
            LoginError::Busy(wait) => Self::unavailable("too many open login sessions").retry_after(wait),
            LoginError::TooManySessions(wait) => Self::rate_limited(wait),
            LoginError::NoSession => Self::bad_request("session parameter required"),
            LoginError::SessionOver => Self::unauthorized("session not found or expired"),
            LoginError::TooManyFailures(wait) => Self::rate_limited(wait),
            LoginError::NoToken => Self::bad_request("token not found in request body"),
            LoginError::Proof {
                error: ProofError::Unreadable,
                ..
            } => Self::bad_request("invalid token format"),
            LoginError::CredentialTaken
            | LoginError::Proof {
                error: ProofError::Failed | ProofError::NetworkNotSupported,
                ..
            } => Self::unauthorized("verification failed"),
            LoginError::Proof {
                error: ProofError::HumanityMissing,
                verify_url,
            } => Self::forbidden("humanity_verification_required")
                .with("message", "a proof of humanity is required to log in")
                .with("verify_url", verify_url.unwrap_or_default()),
            LoginError::Proof {
                error: ProofError::ResolverFault,
                ..
            } => Self::unavailable("verification unavailable"),
            LoginError::Banned => Self::forbidden("account is banned"),
            LoginError::Store(error) => crate::error::storage(&error),
            LoginError::Unrecorded(_) => Self::audit_unavailable(),
            LoginError::Unsealed => Self::internal(),
            LoginError::SessionsUnavailable(_) => crate::error::away(),
        }
    }
}

described_error!(
    LoginError,
    "APIError",
    [
        ErrorCode::BadRequest.answer(),
        ErrorCode::Unauthorized.answer(),
        ErrorCode::Forbidden.answer(),
        ErrorCode::RateLimited.answer(),
        ErrorCode::Internal.answer(),
        ErrorCode::Unavailable.answer(),
    ]
);

#[cfg(test)]
mod tests {
    use super::*;
    use gw_http::DescribedError as _;

    /// The table of spec/10 §2.8: situation, status, body text, session reason.
    #[test]
    fn every_situation_has_its_status_text_and_reason() {
        let proof = |error| LoginError::Proof {
            error,
            verify_url: Some("https://verify.example".to_owned()),
        };
        let table = [
            (LoginError::NoVerifierId, 500, "VERIFIER_ID not configured", None),
            (LoginError::NoSchema, 503, "verification unavailable", None),
            (LoginError::Busy(Seconds(9)), 503, "too many open login sessions", None),
            (
                LoginError::TooManySessions(Seconds(9)),
                429,
                "rate limit exceeded",
                None,
            ),
            (LoginError::NoSession, 400, "session parameter required", None),
            (LoginError::SessionOver, 401, "session not found or expired", None),
            (
                LoginError::TooManyFailures(Seconds(9)),
                429,
                "rate limit exceeded",
                None,
            ),
            (
                LoginError::NoToken,
                400,
                "token not found in request body",
                Some("invalid_request"),
            ),
            (
                proof(ProofError::Unreadable),
                400,
                "invalid token format",
                Some("invalid_request"),
            ),
            (
                proof(ProofError::Failed),
                401,
                "verification failed",
                Some("verification_failed"),
            ),
            (
                proof(ProofError::NetworkNotSupported),
                401,
                "verification failed",
                Some("network_not_supported"),
            ),
            (
                proof(ProofError::HumanityMissing),
                403,
                "humanity_verification_required",
                Some("humanity_required"),
            ),
            (
                proof(ProofError::ResolverFault),
                503,
                "verification unavailable",
                Some("authentication_failed"),
            ),
            (
                LoginError::CredentialTaken,
                401,
                "verification failed",
                Some("verification_failed"),
            ),
            (
                LoginError::Banned,
                403,
                "account is banned",
                Some("authentication_failed"),
            ),
            (
                LoginError::Store(StoreError::NotPrimary),
                503,
                "the policy store is temporarily unavailable",
                Some("authentication_failed"),
            ),
            (
                LoginError::Store(StoreError::Detached),
                500,
                "internal error",
                Some("authentication_failed"),
            ),
            (
                LoginError::Unrecorded(JournalError::Full),
                503,
                "audit unavailable",
                Some("authentication_failed"),
            ),
            (
                LoginError::Unsealed,
                500,
                "internal error",
                Some("authentication_failed"),
            ),
            (
                LoginError::from(PutError::Full { wait: Seconds(9) }),
                503,
                "too many open login sessions",
                None,
            ),
            (
                LoginError::from(PutError::GroupFull { wait: Seconds(9) }),
                429,
                "rate limit exceeded",
                None,
            ),
            (
                LoginError::SessionsUnavailable(Unavailable),
                503,
                "login temporarily unavailable",
                None,
            ),
        ];
        let mut answers = Vec::new();
        for (error, status, text, reason) in table {
            // A new variant stops the build here: add it to the table.
            match &error {
                LoginError::NoVerifierId
                | LoginError::NoSchema
                | LoginError::Busy(_)
                | LoginError::TooManySessions(_)
                | LoginError::NoSession
                | LoginError::SessionOver
                | LoginError::TooManyFailures(_)
                | LoginError::NoToken
                | LoginError::Proof { .. }
                | LoginError::CredentialTaken
                | LoginError::Banned
                | LoginError::Store(_)
                | LoginError::Unrecorded(_)
                | LoginError::Unsealed
                | LoginError::SessionsUnavailable(_) => {}
            }
            let name = format!("{error:?}");
            assert_eq!(error.reason().map(Reason::as_str), reason, "{name}");
            let (own, opens) = (
                error.is_own_fault(),
                matches!(text, "VERIFIER_ID not configured" | "too many open login sessions"),
            );
            let is_503_before_a_session = opens || matches!(error, LoginError::NoSchema);
            let answer = ApiError::from(error);
            answers.push(answer.code().answer());
            assert_eq!(
                (answer.code().status().as_u16(), answer.text()),
                (status, text),
                "{name}"
            );
            assert_eq!(
                own,
                status >= 500 && !is_503_before_a_session,
                "{name}: what we answer for counts as no try"
            );
        }
        assert!(LoginError::lists_exactly(answers));
    }

    #[test]
    fn reasons_are_written_as_they_are_named() {
        for reason in [
            Reason::VerificationFailed,
            Reason::HumanityRequired,
            Reason::InvalidRequest,
            Reason::NetworkNotSupported,
            Reason::AuthenticationFailed,
        ] {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        }
    }
}
