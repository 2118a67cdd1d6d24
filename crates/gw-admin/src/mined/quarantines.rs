use super::Findings;
use crate::{AdminState, error::AdminError, scope::Admin, wire::MinedQuarantine};
use axum::{Json, extract::State};
use gw_http::{Page, PageQuery, Paged};
use gw_types::QuarantineId;

/// Lists contracts that a withheld transaction changed, the newest first. An administrator sees contracts of their own
/// organizations if they administer all affected organizations. Super sees all accounts with withheld changes, and
/// closed addresses.
#[utoipa::path(get, path = "/api/v1/admin/mined/quarantines", tag = "mined", params(PageQuery),
    responses((status = 200, body = Paged<MinedQuarantine>), (status = 401), (status = 403)))]
pub(crate) async fn list_quarantines(
    admin: Admin,
    State(state): State<AdminState>,
    page: Page<1000>,
) -> Result<Json<Paged<MinedQuarantine>>, AdminError> {
    let findings = Findings::load(&admin, &state).await?;
    let mut data = Vec::new();
    // HD40: the list of changed contracts reveals what the transaction did. Only administrators of all affected
    // organizations see it.
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
    Ok(Json(page.of_all(data)))
}
