use crate::{AdminState, error::AdminError, scope::Admin, wire::LegalHold};
use axum::{Json, extract::State};
use gw_http::{Page, PageQuery, Paged};

/// Lists legal holds, the oldest first; super only.
#[utoipa::path(get, path = "/api/v1/admin/legal-holds", tag = "logs", params(PageQuery),
    responses((status = 200, body = Paged<LegalHold>), (status = 401), (status = 403)))]
pub(crate) async fn list_legal_holds(
    admin: Admin,
    State(state): State<AdminState>,
    page: Page<1000>,
) -> Result<Json<Paged<LegalHold>>, AdminError> {
    admin.require_super()?;
    let data = state.store.read().list_holds().await?;
    Ok(Json(page.of_all(data.into_iter().map(LegalHold::from).collect())))
}
