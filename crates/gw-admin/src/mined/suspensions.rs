use super::Findings;
use crate::{AdminState, error::AdminError, scope::Admin, wire::MinedSuspension};
use axum::{Json, extract::State};
use gw_http::{Page, PageQuery, Paged};

/// Lists users whose right to send is suspended, the newest first. Super sees all of them, administrators those that
/// concern their organizations. An administrator sees the user only if the transaction was sent under one of their
/// organizations.
#[utoipa::path(get, path = "/api/v1/admin/mined/suspensions", tag = "mined", params(PageQuery),
    responses((status = 200, body = Paged<MinedSuspension>), (status = 401), (status = 403)))]
pub(crate) async fn list_suspensions(
    admin: Admin,
    State(state): State<AdminState>,
    page: Page<1000>,
) -> Result<Json<Paged<MinedSuspension>>, AdminError> {
    let findings = Findings::load(&admin, &state).await?;
    let mut data = Vec::new();
    for row in state.store.read().list_suspensions().await? {
        let conviction = findings.conviction(row.conviction);
        if findings.is_theirs(row.org, conviction) {
            let knows_sender = admin.is_super() || row.org.is_some_and(|org| findings.concerns(&[org]));
            data.push(MinedSuspension {
                id: row.id,
                external_id: knows_sender.then_some(row.external_id),
                org_id: row.org.filter(|org| findings.concerns(&[*org])),
                tx_hash: row.tx_hash,
                block_hash: row.block_hash,
                clearable: findings.may_clear(conviction),
                reason: findings.shown_reason(
                    conviction.map_or(&[], |conviction| conviction.wronged.as_slice()),
                    &row.reason,
                ),
                created_at: row.created_at,
            });
        }
    }
    Ok(Json(page.of_all(data)))
}
