//! `GET /auth/session/{id}/qr.svg`: the QR code that a wallet scans (ZK-6).

use super::callback::parse_session;
use crate::{
    login::{AuthorizationRequest, LoginError, OpenerEvidence},
    request_info::RequestInfo,
    routes::oauth::other_browser,
    state::IdentityState,
};
use axum::{
    extract::{Path, State},
    response::IntoResponse,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use gw_http::{ApiError, ErrorBody};
use http::{HeaderMap, HeaderValue, header};
use qrcode::{Color, EcLevel, QrCode};
use std::fmt::Write as _;

/// Blank modules around the code, without which scanners do not find it.
const QUIET: usize = 4;

/// Draw a login's QR code
///
/// For the page that opened the login, which shows its secret (`X-Login-Secret` or the `pp_login` cookie). Black on
/// white in every colour scheme, because scanners need it. Not available once the login is completed.
#[utoipa::path(
    get,
    path = "/auth/session/{id}/qr.svg",
    operation_id = "loginQrCode",
    tag = "auth",
    params(("id" = String, Path, description = "The login session")),
    responses(
        (status = 200, body = String, content_type = "image/svg+xml"),
        (status = 401, body = ErrorBody, description = "Unknown, expired or completed"),
        (status = 403, body = ErrorBody, description = "Started in another browser"),
        (status = 429, body = ErrorBody),
        (status = 503, body = ErrorBody),
    ),
)]
pub(crate) async fn qr(
    State(state): State<IdentityState>,
    request_info: RequestInfo,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let inner = &state.inner;
    let opened = match parse_session(&id) {
        Ok(id) => inner
            .sessions
            .find(id)
            .await
            .map_err(LoginError::from)?
            .map(|session| (id, session)),
        Err(_) => None,
    };
    let Some((id, session)) = opened else {
        inner.limits.poll_from(request_info.client).await?;
        return Err(LoginError::SessionOver.into());
    };
    let by_opener = session
        .opener
        .is(&OpenerEvidence::from_headers(&headers, request_info.client));
    inner.limits.poll_of(id, by_opener, request_info.client).await?;
    if !by_opener {
        return Err(other_browser());
    }
    let request = session.pending().ok_or(LoginError::SessionOver)?;
    let svg = text(&request)
        .as_deref()
        .and_then(draw)
        .ok_or_else(ApiError::internal)?;
    const SVG: HeaderValue = HeaderValue::from_static("image/svg+xml");
    // An SVG opened on its own is a document: it must load and run nothing.
    const INERT: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    Ok((
        [(header::CONTENT_TYPE, SVG), (header::CONTENT_SECURITY_POLICY, INERT)],
        svg,
    ))
}

/// The text that the QR code encodes.
fn text(request: &AuthorizationRequest) -> Option<String> {
    Some(format!(
        "iden3comm://?i_m={}",
        STANDARD.encode(serde_json::to_vec(request).ok()?)
    ))
}

/// Draws the SVG: one path, with a rectangle for each run of dark modules in a row.
fn draw(text: &str) -> Option<String> {
    // A screen does not damage the code, so the lowest error correction is enough and gives the largest modules.
    let code = QrCode::with_error_correction_level(text, EcLevel::L).ok()?;
    let (width, colors) = (code.width(), code.to_colors());
    let side = width + 2 * QUIET;
    let mut path = String::new();
    for (y, row) in colors.chunks(width).enumerate() {
        let mut x = 0;
        for run in row.chunk_by(|a, b| a == b) {
            if run.first() == Some(&Color::Dark) {
                write!(path, "M{} {}h{}v1h-{}z", x + QUIET, y + QUIET, run.len(), run.len()).ok()?;
            }
            x += run.len();
        }
    }
    Some(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {side} {side}\" shape-rendering=\"crispEdges\">\
         <path fill=\"#fff\" d=\"M0 0h{side}v{side}H0z\"/><path d=\"{path}\"/></svg>"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zk6_the_drawing_has_every_dark_module_once() {
        let code = QrCode::with_error_correction_level("iden3comm://?i_m=e30=", EcLevel::L).unwrap();
        let dark = code.to_colors().iter().filter(|color| **color == Color::Dark).count();
        let svg = draw("iden3comm://?i_m=e30=").unwrap();
        let runs = svg.split('h').skip(1).filter_map(|rest| rest.split_once('v'));
        let drawn: usize = runs
            .filter(|(_, rest)| *rest == "1")
            .map(|(run, _)| run.parse::<usize>().unwrap())
            .sum();
        assert_eq!(drawn, dark);
        let side = code.width() + 8;
        assert!(svg.contains(&format!("viewBox=\"0 0 {side} {side}\"")));
    }

    #[test]
    fn zk1_two_thousand_bytes_fit() {
        assert!(draw(&"x".repeat(17 + 2000_usize.div_ceil(3) * 4)).is_some());
        assert!(draw(&"x".repeat(3000)).is_none(), "no code holds that much");
    }
}
