use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
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
use gw_store::{Queries, record::Organization};
use gw_types::GroupId;

/// Previews the deletion of groups: their members and their contracts.
#[utoipa::path(post, path = "/api/v1/admin/orgs/{org_id}/groups/batch-delete-preview", tag = "groups",
    params(("org_id" = String, Path, format = Uuid)), request_body = GroupBatchDeleteRequest,
    responses((status = 200, body = GroupBatchDeletePreviewResponse), (status = 400), (status = 401), (status = 403)))]
pub(crate) async fn batch_delete_preview(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
    JsonBody(body): JsonBody<GroupBatchDeleteRequest>,
) -> Result<Json<GroupBatchDeletePreviewResponse>, AdminError> {
    let org = admin.readable_org(&state, &org).await?;
    let reads = state.store.read();
    let ids = group_ids(&reads, &org, &body).await?;
    let groups = reads
        .group_impact(&ids)
        .await?
        .into_iter()
        .map(GroupBatchDeletePreviewEntry::from)
        .collect();
    Ok(Json(GroupBatchDeletePreviewResponse { groups }))
}

/// Deletes groups with their memberships, access and grants; all of them or none.
#[utoipa::path(post, path = "/api/v1/admin/orgs/{org_id}/groups/batch-delete", tag = "groups",
    params(("org_id" = String, Path, format = Uuid)), request_body = GroupBatchDeleteRequest,
    responses((status = 200, body = GroupBatchDeleteResponse), (status = 400), (status = 401), (status = 403),
        (status = 409)))]
pub(crate) async fn batch_delete(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
    JsonBody(body): JsonBody<GroupBatchDeleteRequest>,
) -> Result<Json<GroupBatchDeleteResponse>, AdminError> {
    let org = admin.writable_org(&state, &org).await?;
    let mut tx = admin.begin(&state).await?;
    let ids = group_ids(&tx.read(), &org, &body).await?;
    // C4: if one group needs super, nothing is deleted.
    for id in &ids {
        if let Some(group) = tx.read().find_access(*id).await? {
            admin.may_disempower_all(&tx.read(), &group).await?;
        }
    }
    let last_admin = LastAdmin::for_orgs(&tx, &[org.id]).await?;
    for id in &ids {
        tx.delete_group(*id).await?;
    }
    last_admin.keep(&admin, &mut tx).await?;
    tx.commit().await?;
    Ok(Json(GroupBatchDeleteResponse {
        deleted_count: ids.len(),
    }))
}

/// The ids without duplicates. An id of another organization's group and an unknown id get the same error.
async fn group_ids(
    reads: &Queries<'_>,
    org: &Organization,
    body: &GroupBatchDeleteRequest,
) -> Result<Vec<GroupId>, AdminError> {
    let ids = input::ids(&body.group_ids, "group_ids", "groups")?;
    for id in &ids {
        if reads.find_group(*id).await?.is_none_or(|group| group.org != org.id) {
            return Err(AdminError::forbidden(GROUP_DENIED));
        }
    }
    Ok(ids)
}
