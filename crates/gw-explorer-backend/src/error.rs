//! Errors, and their answers.

use crate::upstream::{ExchangeError, UpstreamError};
use crate::{return_url::ReturnUrlError, route::RouteError};
use gw_http::{ApiError, Challenge, ErrorCode};
use gw_types::Seconds;

/// Why a request of the explorer is not answered with data.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ForwardError {
    /// The path or the method is not forwarded.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// A page that is neither the explorer's own nor listed wants to change data.
    #[error("a foreign page sent the request")]
    ForeignPage,
    /// The session is over: its access token has expired, and the gateway refused to refresh it.
    #[error("the session has ended")]
    SessionEnded,
    /// The access token has expired, and the gateway could not be asked for a new one.
    #[error("the session cannot be refreshed")]
    NoRefresh,
    /// The client sends too many requests. It may try again after this time.
    #[error("the client sends too many requests")]
    Rate(Seconds),
    /// Too many requests wait for the gateway.
    #[error("too many requests wait for the gateway")]
    Busy,
    /// The gateway gave no answer.
    #[error("the gateway gave no answer")]
    Upstream(#[from] UpstreamError),
    /// The gateway answered with a redirect or an informational status, which it never does for data.
    #[error("the gateway answered with status {0}")]
    Status(u16),
}

impl From<ForwardError> for ApiError {
    fn from(error: ForwardError) -> Self {
        match error {
            ForwardError::Route(RouteError::Unknown) => Self::not_found("not found"),
            ForwardError::Route(RouteError::Method) => Self::new(ErrorCode::MethodNotAllowed, "method not allowed"),
            ForwardError::ForeignPage => Self::forbidden("origin not allowed"),
            ForwardError::SessionEnded => {
                Self::unauthorized("session ended, sign in again").challenging(Challenge::InvalidToken)
            }
            ForwardError::NoRefresh => Self::new(ErrorCode::BadGateway, "session cannot be refreshed now"),
            ForwardError::Rate(wait) => Self::rate_limited(wait),
            ForwardError::Busy => Self::unavailable("too many requests"),
            ForwardError::Upstream(_) | ForwardError::Status(_) => {
                Self::new(ErrorCode::BadGateway, "gateway unavailable")
            }
        }
    }
}

/// Why a sign-in does not begin or end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SignInError {
    /// PRIVACY_ENABLED is not set.
    #[error("there is no sign-in")]
    Disabled,
    /// The page to return to is not a relative path.
    #[error(transparent)]
    ReturnUrl(#[from] ReturnUrlError),
    /// The state is unknown, expired, used, or another browser's.
    #[error("the state is unknown")]
    State,
    /// The gateway sent the browser back without a code.
    #[error("there is no code")]
    NoCode,
    /// A page that is neither the explorer's own nor listed sent the request.
    #[error("a foreign page sent the request")]
    ForeignPage,
    /// The code gave no tokens.
    #[error("the code gave no tokens")]
    Exchange(#[from] ExchangeError),
    /// The session could not be encrypted.
    #[error("the session cannot be stored")]
    Cookie,
    /// The gateway did not confirm the end of the session.
    #[error("the session was not revoked")]
    NotRevoked,
}

impl From<SignInError> for ApiError {
    fn from(error: SignInError) -> Self {
        match error {
            SignInError::Disabled => Self::not_found("not found"),
            SignInError::ReturnUrl(_) => Self::bad_request("return_url must be a path such as /tx/0x1"),
            SignInError::State => Self::bad_request("this sign-in is over or began in another browser; sign in again"),
            SignInError::NoCode => Self::bad_request("the sign-in was not completed; sign in again"),
            SignInError::ForeignPage => Self::forbidden("origin not allowed"),
            SignInError::Exchange(_) => Self::new(ErrorCode::BadGateway, "the sign-in could not be completed"),
            SignInError::Cookie => Self::internal(),
            SignInError::NotRevoked => Self::new(
                ErrorCode::BadGateway,
                "signed out of this browser, but the gateway did not confirm it",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_http::OutboundError;

    /// House rule 17.
    #[test]
    fn every_forward_error_has_its_status_and_text() {
        let table = [
            (ForwardError::Route(RouteError::Unknown), 404, "not found"),
            (ForwardError::Route(RouteError::Method), 405, "method not allowed"),
            (ForwardError::ForeignPage, 403, "origin not allowed"),
            (ForwardError::SessionEnded, 401, "session ended, sign in again"),
            (ForwardError::NoRefresh, 502, "session cannot be refreshed now"),
            (ForwardError::Rate(Seconds(7)), 429, "rate limit exceeded"),
            (ForwardError::Busy, 503, "too many requests"),
            (
                ForwardError::Upstream(UpstreamError::Outbound(OutboundError::Timeout)),
                502,
                "gateway unavailable",
            ),
            (ForwardError::Status(302), 502, "gateway unavailable"),
        ];
        for (error, status, text) in table {
            // A new variant stops the build here: add it to the table.
            match error {
                ForwardError::Route(RouteError::Unknown | RouteError::Method)
                | ForwardError::ForeignPage
                | ForwardError::SessionEnded
                | ForwardError::NoRefresh
                | ForwardError::Rate(_)
                | ForwardError::Busy
                | ForwardError::Upstream(_)
                | ForwardError::Status(_) => {}
            }
            let answer = ApiError::from(error);
            assert_eq!((answer.code().status().as_u16(), answer.text()), (status, text));
        }
    }

    /// House rule 17.
    #[test]
    fn every_sign_in_error_has_its_status_and_text() {
        let table = [
            (SignInError::Disabled, 404, "not found"),
            (
                SignInError::ReturnUrl(ReturnUrlError),
                400,
                "return_url must be a path such as /tx/0x1",
            ),
            (
                SignInError::State,
                400,
                "this sign-in is over or began in another browser; sign in again",
            ),
            (SignInError::NoCode, 400, "the sign-in was not completed; sign in again"),
            (SignInError::ForeignPage, 403, "origin not allowed"),
            (
                SignInError::Exchange(ExchangeError::Client),
                502,
                "the sign-in could not be completed",
            ),
            (SignInError::Cookie, 500, "internal error"),
            (
                SignInError::NotRevoked,
                502,
                "signed out of this browser, but the gateway did not confirm it",
            ),
        ];
        for (error, status, text) in table {
            // A new variant stops the build here: add it to the table.
            match error {
                SignInError::Disabled
                | SignInError::ReturnUrl(_)
                | SignInError::State
                | SignInError::NoCode
                | SignInError::ForeignPage
                | SignInError::Exchange(_)
                | SignInError::Cookie
                | SignInError::NotRevoked => {}
            }
            let answer = ApiError::from(error);
            assert_eq!((answer.code().status().as_u16(), answer.text()), (status, text));
        }
    }
}
