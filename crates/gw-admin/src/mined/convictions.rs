use super::Findings;
use crate::{AdminState, error::AdminError, scope::Admin, wire::MinedConviction};
use axum::{Json, extract::State};
use gw_http::{Page, PageQuery, Paged};

/// Lists withheld transactions, the newest first. Super sees all of them, administrators those that concern their
/// organizations.
#[utoipa::path(get, path = "/api/v1/admin/mined/convictions", tag = "mined", params(PageQuery),
    responses((status = 200, body = Paged<MinedConviction>), (status = 401), (status = 403)))]
pub(crate) async fn list_convictions(
    admin: Admin,
    State(state): State<AdminState>,
    page: Page<1000>,
) -> Result<Json<Paged<MinedConviction>>, AdminError> {
    let findings = Findings::load(&admin, &state).await?;
    let mut convictions: Vec<_> = findings
        .convictions
        .values()
        .filter(|conviction| conviction.cleared_at.is_none())
        .collect();
    convictions.retain(|conviction| findings.is_theirs(conviction.org, Some(*conviction)));
    convictions.sort_by_key(|conviction| (std::cmp::Reverse(conviction.created_at), conviction.id));
    let data = convictions.into_iter().map(|conviction| {
        let knows_sender = admin.is_super() || conviction.org.is_some_and(|org| findings.concerns(&[org]));
        let own_orgs =
            |orgs: &[gw_types::OrgId]| orgs.iter().copied().filter(|org| findings.concerns(&[*org])).collect();
        MinedConviction {
            id: conviction.id,
            tx_hash: conviction.tx_hash,
            block_hash: conviction.block_hash,
            external_id: knows_sender.then(|| conviction.external_id.clone()),
            sender: conviction.sender.filter(|_| admin.is_super()),
            wronged_org_ids: if findings.may_see_details(&conviction.wronged) {
                own_orgs(&conviction.wronged)
            } else {
                Vec::new()
            },
            clearable: findings.may_clear(Some(conviction)),
            reason: findings.shown_reason(conviction.wronged.as_slice(), &conviction.reason),
            created_at: conviction.created_at,
        }
    });
    Ok(Json(page.of_all(data.collect())))
}
