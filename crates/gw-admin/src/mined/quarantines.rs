use super::Findings;
use crate::{
    AdminState,
    error::Failure,
    scope::Admin,
    wire::{MinedQuarantine, MinedQuarantineListResponse},
};
use axum::{Json, extract::State};
use gw_types::QuarantineId;

/// Contracts of their organizations that a withheld transaction changed, for administrators of all the organizations that it
/// wronged, the newest first; for super all accounts with withheld changes, and closed addresses.
#[utoipa::path(get, path = "/api/v1/admin/mined/quarantines", tag = "mined",
    responses((status = 200, body = MinedQuarantineListResponse), (status = 401), (status = 403)))]
pub(crate) async fn list_quarantines(
    admin: Admin,
    State(state): State<AdminState>,
) -> Result<Json<MinedQuarantineListResponse>, Failure> {
    let findings = Findings::load(&admin, &state).await?;
    let mut data = Vec::new();
    // HD40: the list of changed contracts reveals what the transaction did. Only administrators of all wronged organizations
    // see it.
    for row in state.store.read().list_withheld().await? {
        let Some(conviction) = findings.conviction(Some(row.conviction)) else {
            continue;
        };
        let is_theirs =
            findings.may_see_details(&conviction.wronged) && row.org.is_some_and(|org| findings.concerns(&[org]));
        if admin.is_super() || is_theirs {
            data.push(MinedQuarantine {
                id: QuarantineId(row.id.0),
                address: Some(row.address),
                org_id: row.org,
                closed_to: "withheld",
                tx_hash: conviction.tx_hash,
                block_hash: conviction.block_hash,
                clearable: findings.may_clear(Some(conviction)),
                reason: findings.shown_reason(&conviction.wronged, &conviction.reason),
                created_at: row.created_at,
            });
        }
    }
    for row in state.store.read().list_quarantines().await? {
        if admin.is_super() {
            let conviction = findings.conviction(row.conviction);
            data.push(MinedQuarantine {
                id: row.id,
                address: Some(row.address),
                org_id: row.org,
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
