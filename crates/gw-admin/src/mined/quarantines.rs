use super::Findings;
use crate::{
    AdminState,
    error::Failure,
    scope::Admin,
    wire::{MinedQuarantine, MinedQuarantineListResponse},
};
use axum::{Json, extract::State};

/// Closed addresses, the newest first: all for super, those that concern their organizations for administrators. The address shows where it is a contract of theirs.
#[utoipa::path(get, path = "/api/v1/admin/mined/quarantines", tag = "mined",
    responses((status = 200, body = MinedQuarantineListResponse), (status = 401), (status = 403)))]
pub(crate) async fn list_quarantines(
    admin: Admin,
    State(state): State<AdminState>,
) -> Result<Json<MinedQuarantineListResponse>, Failure> {
    let findings = Findings::load(&admin, &state).await?;
    let mut data = Vec::new();
    for row in state.store.read().list_quarantines().await? {
        let conviction = findings.conviction(row.conviction);
        let owns = row.org.is_some_and(|org| findings.concerns(&[org]));
        if owns || findings.is_theirs(None, conviction) {
            data.push(MinedQuarantine {
                id: row.id,
                address: (owns || admin.is_super()).then_some(row.address),
                org_id: row.org.filter(|org| findings.concerns(&[*org])),
                closed_to: if row.side.is_some() { "sender_side" } else { "everybody" },
                tx_hash: row.tx_hash,
                block_hash: row.block_hash,
                clearable: findings.may_clear(conviction),
                reason: row.reason,
                created_at: row.created_at,
            });
        }
    }
    Ok(Json(MinedQuarantineListResponse { data }))
}
