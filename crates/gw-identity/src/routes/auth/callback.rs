//! `POST /auth/callback?session=`: the wallet sends its proof (ZK-20).

use crate::{
    complete_login::{LoginAttempt, complete},
    login::{LoginError, LoginId},
    request_info::RequestInfo,
    state::IdentityState,
    tokens::AuthResponse,
};
use axum::{
    Json,
    extract::{RawQuery, Request, State},
};
use gw_http::{ApiError, parse_json, read_body};
use serde::Deserialize;

/// A JSON body; the other form is the bare token.
#[derive(Debug, Deserialize)]
struct CallbackBody {
    token: Option<String>,
    jwz_token: Option<String>,
}

/// Complete a login with a proof
///
/// The body is the token as text, or JSON `{"token": …}` or `{"jwz_token": …}`.
#[utoipa::path(
    post,
    path = "/auth/callback",
    operation_id = "completeLogin",
    tag = "auth",
    params(("session" = String, Query, description = "The login session")),
    request_body(content = String, description = "The proof, as text or in a JSON object"),
    responses(
        (status = 200, body = AuthResponse),
        LoginError,
        (status = 403, description = "Banned, or the humanity credential is missing"),
    ),
)]
pub(crate) async fn callback(
    State(state): State<IdentityState>,
    request_info: RequestInfo,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<Json<AuthResponse>, ApiError> {
    let session = parameter(query.as_deref().unwrap_or_default(), "session").ok_or(LoginError::NoSession)?;
    let session = parse_session(&session)?;
    let body = read_body(request.into_body()).await?;
    known_members(&body)?;
    let token = proof_in(&body);
    let pair = complete(
        &state,
        LoginAttempt {
            session,
            token,
            request_info,
        },
    )
    .await?;
    Ok(Json(AuthResponse::new(pair, state.http_context.now())))
}

/// A parameter that is present and not empty.
pub(in crate::routes) fn parameter(query: &str, wanted: &str) -> Option<String> {
    form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == wanted)
        .map(|(_, value)| value.into_owned())
        .filter(|value| !value.is_empty())
}

/// Parses a session id. A text that is not an id is an unknown session.
pub(in crate::routes) fn parse_session(text: &str) -> Result<LoginId, LoginError> {
    uuid::Uuid::parse_str(text)
        .map(LoginId)
        .map_err(|_| LoginError::SessionOver)
}

/// Rejects a JSON object with members other than the proof's (decision 61). Any other error counts as an attempt
/// without a proof.
pub(in crate::routes) fn known_members(body: &[u8]) -> Result<(), ApiError> {
    if body.trim_ascii().first() != Some(&b'{') {
        return Ok(());
    }
    match parse_json::<CallbackBody>(body) {
        Err(refusal) if refusal.text().starts_with("unknown member") => Err(refusal),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The proof in a body: bare text or a member of a JSON object; outer blanks and one pair of quotes are dropped.
pub(in crate::routes) fn proof_in(body: &[u8]) -> Result<String, LoginError> {
    let text = core::str::from_utf8(body).map_err(|_| LoginError::NoToken)?.trim();
    let token = if text.starts_with('{') {
        let body: CallbackBody = serde_json::from_str(text).map_err(|_| LoginError::NoToken)?;
        body.token.or(body.jwz_token).ok_or(LoginError::NoToken)?
    } else {
        text.to_owned()
    };
    let token = gw_zk::jwz::trimmed(&token);
    if token.is_empty() {
        Err(LoginError::NoToken)
    } else {
        Ok(token.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zk20_a_proof_is_found_in_all_its_forms() {
        for body in [
            "a.b.c",
            "  a.b.c\n",
            "\"a.b.c\"",
            r#"{"token": "a.b.c"}"#,
            r#"{"jwz_token": " \"a.b.c\" "}"#,
        ] {
            assert_eq!(proof_in(body.as_bytes()).unwrap(), "a.b.c", "{body}");
        }
        for body in ["", " ", "\"\"", "{}", "{", r#"{"token": ""}"#, r#"{"token": 1}"#] {
            assert!(matches!(proof_in(body.as_bytes()), Err(LoginError::NoToken)), "{body}");
        }
        assert!(matches!(proof_in(&[0xff, 0xfe]), Err(LoginError::NoToken)));
    }

    /// Decision 61.
    #[test]
    fn hd33_other_members_than_the_proof_are_refused() {
        let check = |body: &str| known_members(body.as_bytes()).map_err(|refusal| refusal.text().to_owned());
        for body in [
            "a.b.c",
            r#"{"token": "a.b.c"}"#,
            r#"{"jwz_token": "a.b.c", "token": null}"#,
            "{",
            r#"{"token": 1}"#,
        ] {
            assert_eq!(check(body), Ok(()), "{body}");
        }
        let refusal = "unknown member `jwz`: did you mean `token`?";
        assert_eq!(check(r#"{"jwz": "a.b.c"}"#), Err(refusal.to_owned()));
    }

    #[test]
    fn the_session_parameter_is_required() {
        assert_eq!(parameter("x=1&session=abc", "session"), Some("abc".to_owned()));
        for query in ["", "session=", "sessions=abc"] {
            assert_eq!(parameter(query, "session"), None, "{query}");
        }
    }
}
