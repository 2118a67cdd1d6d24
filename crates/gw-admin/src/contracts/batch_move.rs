use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    input,
    scope::Admin,
    wire::{ContractBatchMoveAccess, ContractBatchMoveNewGroup, ContractBatchMoveRequest, ContractBatchMoveResponse},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_store::{
    Tx,
    record::{AccessInput, NewGrant, NewGroup, Organization},
};
use gw_types::{Claim, Claims, GroupId};
use std::sync::Arc;

/// Moves contracts to a group. The group is granted each contract, and the grants of groups that the gateway created
/// for deployers are deleted. All or nothing.
///
/// A new group may use every grantable method and deploy, unless `access` restricts it.
#[utoipa::path(post, path = "/api/v1/admin/orgs/{org_id}/contracts/batch-move", tag = "contracts",
    params(("org_id" = String, Path, format = Uuid)), request_body = ContractBatchMoveRequest,
    responses((status = 200, body = ContractBatchMoveResponse), (status = 400), (status = 401), (status = 403),
        (status = 404), (status = 409)))]
pub(crate) async fn batch_move(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
    JsonBody(body): JsonBody<ContractBatchMoveRequest>,
) -> Result<Json<ContractBatchMoveResponse>, AdminError> {
    let org = admin.writable_org(&state, &org).await?;
    let ids = input::ids(&body.contract_ids, "contract_ids", "contracts")?;
    let mut tx = admin.begin(&state).await?;
    let rows = tx.read().contracts_by_id(&ids).await?;
    if rows.len() != ids.len() || rows.iter().any(|row| row.org != org.id) {
        return Err(AdminError::bad_request(
            "contract_ids must all name contracts of the organization",
        ));
    }
    let (target, access) = match (&body.target_group_id, &body.new_group) {
        (Some(group), None) => {
            let group_access = admin.group_of(&tx.read(), &org, group).await?;
            admin.require_super_for_admin_group(&group_access)?;
            (group_access.group.id, None)
        }
        (None, Some(new_group_input)) => {
            let (group, access) = new_group(&admin, &state, &mut tx, &org, new_group_input).await?;
            (group, Some(access))
        }
        (Some(_), Some(_)) | (None, None) => {
            return Err(AdminError::bad_request(
                "exactly one of target_group_id and new_group must be given",
            ));
        }
    };
    let mut sources: Vec<GroupId> = Vec::new();
    for contract in &ids {
        let grants = tx.read().list_grants(*contract).await?;
        if !grants.iter().any(|grant| grant.group == target) {
            tx.create_grant(NewGrant::full(*contract, target)).await?;
        }
        for group in grants
            .into_iter()
            .map(|grant| grant.group)
            .filter(|group| *group != target)
        {
            if tx
                .read()
                .find_group(group)
                .await?
                .is_some_and(|group| group.auto_created)
            {
                tx.delete_grant(*contract, group).await?;
                if !sources.contains(&group) {
                    sources.push(group);
                }
            }
        }
    }
    let mut deleted_group_ids = Vec::new();
    if body.delete_empty_auto_groups {
        for impact in tx.read().group_impact(&sources).await? {
            if impact.contracts.is_empty() {
                tx.delete_group(impact.group.id).await?;
                deleted_group_ids.push(impact.group.id);
            }
        }
    }
    tx.commit().await?;
    Ok(Json(ContractBatchMoveResponse {
        target_group_id: target,
        moved_count: ids.len(),
        deleted_group_ids,
        access,
    }))
}

/// Creates the group. Without `access` it gets `*`, which reaches grantable methods only (K6, G3).
async fn new_group(
    admin: &Admin,
    state: &AdminState,
    tx: &mut Tx,
    org: &Organization,
    new: &ContractBatchMoveNewGroup,
) -> Result<(GroupId, ContractBatchMoveAccess), AdminError> {
    let access = match &new.access {
        None => AccessInput {
            allowed_methods: vec!["*".to_owned()],
            claims: Claims::NONE.with(Claim::Deploy),
            ..AccessInput::default()
        },
        Some(requested) => AccessInput {
            allowed_methods: input::methods(&requested.allowed_methods, &state.custom_methods)?,
            claims: input::claims(&requested.claims)?,
            custom_methods: Arc::clone(&state.custom_methods),
            ..AccessInput::default()
        },
    };
    if access.claims.has(Claim::Admin) && !state.settings.claim_delegation {
        admin.require_super()?;
    }
    let group = tx
        .create_group(NewGroup::plain(
            org.id,
            input::slug(&new.slug)?,
            input::name(&new.name)?,
        ))
        .await?;
    let stored = tx.set_access(group.id, access).await?;
    let access_response = ContractBatchMoveAccess {
        allowed_methods: stored.allowed_methods,
        claims: stored.claims.iter().map(|claim| claim.as_str().to_owned()).collect(),
    };
    Ok((group.id, access_response))
}
