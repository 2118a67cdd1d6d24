use super::Findings;
use crate::{
    AdminState,
    error::Failure,
    scope::Admin,
    wire::{MinedConviction, MinedConvictionListResponse},
};
use axum::{Json, extract::State};

/// Transactions that are withheld, the newest first: all for super, those that concern their organizations for administrators.
#[utoipa::path(get, path = "/api/v1/admin/mined/convictions", tag = "mined",
    responses((status = 200, body = MinedConvictionListResponse), (status = 401), (status = 403)))]
pub(crate) async fn list_convictions(
    admin: Admin,
    State(state): State<AdminState>,
) -> Result<Json<MinedConvictionListResponse>, Failure> {
    let findings = Findings::load(&admin, &state).await?;
    let mut found: Vec<_> = findings
        .convictions
        .values()
        .filter(|found| found.cleared_at.is_none())
        .collect();
    found.retain(|found| findings.is_theirs(found.org, Some(*found)));
    found.sort_by_key(|found| (std::cmp::Reverse(found.created_at), found.id));
    let data = found.into_iter().map(|found| {
        let knows_sender = admin.is_super() || found.org.is_some_and(|org| findings.concerns(&[org]));
        let theirs = |orgs: &[gw_types::OrgId]| orgs.iter().copied().filter(|org| findings.concerns(&[*org])).collect();
        MinedConviction {
            id: found.id,
            tx_hash: found.tx_hash,
            block_hash: found.block_hash,
            external_id: knows_sender.then(|| found.external_id.clone()),
            sender: found.sender.filter(|_| admin.is_super()),
            wronged_org_ids: if findings.may_see_details(&found.wronged) {
                theirs(&found.wronged)
            } else {
                Vec::new()
            },
            clearable: findings.may_clear(Some(found)),
            reason: findings.shown_reason(found.wronged.as_slice(), &found.reason),
            created_at: found.created_at,
        }
    });
    let data = data.collect();
    Ok(Json(MinedConvictionListResponse { data }))
}
