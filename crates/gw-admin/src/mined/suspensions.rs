use super::Findings;
use crate::{
    AdminState,
    error::Failure,
    scope::Admin,
    wire::{MinedSuspension, MinedSuspensionListResponse},
};
use axum::{Json, extract::State};

/// People who lost the right to send, the newest first: all for super, those that concern their organizations for administrators. Whose it is shows where it was sent under an organization of theirs.
#[utoipa::path(get, path = "/api/v1/admin/mined/suspensions", tag = "mined",
    responses((status = 200, body = MinedSuspensionListResponse), (status = 401), (status = 403)))]
pub(crate) async fn list_suspensions(
    admin: Admin,
    State(state): State<AdminState>,
) -> Result<Json<MinedSuspensionListResponse>, Failure> {
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
                reason: findings.shown_reason(conviction.map_or(&[], |found| found.wronged.as_slice()), &row.reason),
                created_at: row.created_at,
            });
        }
    }
    Ok(Json(MinedSuspensionListResponse { data }))
}
