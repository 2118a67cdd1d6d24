use crate::{
    AdminState,
    body::JsonBody,
    error::Failure,
    input,
    last_admin::LastAdmin,
    scope::{Admin, GROUP_DENIED},
    wire::{
        GroupBatchDeletePreviewEntry, GroupBatchDeletePreviewResponse, GroupBatchDeleteRequest,
        GroupBatchDeleteResponse,
    },
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_store::{Reads, record::Organization};
use gw_types::GroupId;

/// What deleting these groups would take along.
#[utoipa::path(post, path = "/api/v1/admin/orgs/{org_id}/groups/batch-delete-preview", tag = "groups",
    params(("org_id" = String, Path, format = Uuid)), request_body = GroupBatchDeleteRequest,
    responses((status = 200, body = GroupBatchDeletePreviewResponse), (status = 400), (status = 401), (status = 403)))]
pub(crate) async fn batch_delete_preview(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
    JsonBody(body): JsonBody<GroupBatchDeleteRequest>,
) -> Result<Json<GroupBatchDeletePreviewResponse>, Failure> {
    let org = admin.readable_org(&state, &org).await?;
    let reads = state.store.read();
    let ids = of_org(&reads, &org, &body).await?;
    let groups = reads
        .group_impact(&ids)
        .await?
        .into_iter()
        .map(GroupBatchDeletePreviewEntry::from)
        .collect();
    Ok(Json(GroupBatchDeletePreviewResponse { groups }))
}

/// Deletes groups with their memberships, access and grants: all of them, or none.
#[utoipa::path(post, path = "/api/v1/admin/orgs/{org_id}/groups/batch-delete", tag = "groups",
    params(("org_id" = String, Path, format = Uuid)), request_body = GroupBatchDeleteRequest,
    responses((status = 200, body = GroupBatchDeleteResponse), (status = 400), (status = 401), (status = 403),
        (status = 409)))]
pub(crate) async fn batch_delete(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
    JsonBody(body): JsonBody<GroupBatchDeleteRequest>,
) -> Result<Json<GroupBatchDeleteResponse>, Failure> {
    let org = admin.writable_org(&state, &org).await?;
    let mut tx = admin.begin(&state).await?;
    let ids = of_org(&tx.read(), &org, &body).await?;
    // C4: one administrator group, and nothing is deleted.
    for id in &ids {
        if let Some(found) = tx.read().find_access(*id).await? {
            admin.may_disempower_all(&tx.read(), &found).await?;
        }
    }
    let before = LastAdmin::of(&tx, &[org.id]).await?;
    for id in &ids {
        tx.delete_group(*id).await?;
    }
    before.keep(&admin, &mut tx).await?;
    tx.commit().await?;
    Ok(Json(GroupBatchDeleteResponse {
        deleted_count: ids.len(),
    }))
}

/// The ids, each once; what is no group of the organization is one refusal, whatever it is.
async fn of_org(
    reads: &Reads<'_>,
    org: &Organization,
    body: &GroupBatchDeleteRequest,
) -> Result<Vec<GroupId>, Failure> {
    let ids = input::ids(&body.group_ids, "group_ids", "groups")?;
    for id in &ids {
        if reads.find_group(*id).await?.is_none_or(|group| group.org != org.id) {
            return Err(Failure::forbidden(GROUP_DENIED));
        }
    }
    Ok(ids)
}
