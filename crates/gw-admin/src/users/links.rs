use crate::{
    AdminState,
    error::Failure,
    input,
    scope::Admin,
    wire::{
        AddressLinkCollision, EthAddressCollisionsResponse, LinkedAddressEntry, RevokeLinkRequest,
        UserLinkedAddressesResponse, lower,
    },
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::{JsonBody, Message};
use gw_policy::snapshot::LinkKind;
use gw_store::{read::Scope, record::Link};
use std::collections::HashSet;

/// Stands for what the caller may not see.
const PRIVATE: &str = "[PRIVATE]";

const fn kind(kind: LinkKind) -> &'static str {
    match kind {
        LinkKind::User => "user",
        LinkKind::System => "system",
    }
}

/// A user's live links. Administrators of an organization see that there are links, not to which wallets (HD12).
#[utoipa::path(get, path = "/api/v1/admin/users/{user_id}/linked-addresses", tag = "links",
    params(("user_id" = String, Path, format = Uuid)),
    responses((status = 200, body = UserLinkedAddressesResponse), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn list_linked_addresses(
    admin: Admin,
    State(state): State<AdminState>,
    Path(user): Path<String>,
) -> Result<Json<UserLinkedAddressesResponse>, Failure> {
    let user = admin.readable_user(&state.store.read(), &user).await?;
    let open = admin.is_super();
    let entry = |link: Link| LinkedAddressEntry {
        address: if open { lower(link.address) } else { PRIVATE.to_owned() },
        link_type: kind(link.kind),
        ens_name: link.ens_name.filter(|_| open),
        ens_resolved_at: link.ens_resolved_at.filter(|_| open),
        verified_at: link.verified_at,
        created_at: link.created_at,
        revoked_at: link.revoked_at,
    };
    let links = state.store.read().list_links(user.id).await?;
    Ok(Json(UserLinkedAddressesResponse { addresses: links.into_iter().map(entry).collect() }))
}

/// Ends a link judged a compromise: visibility derived from it ends at once, and proving it again is refused.
#[utoipa::path(delete, path = "/api/v1/admin/users/{user_id}/linked-addresses/{address}", tag = "links",
    params(("user_id" = String, Path, format = Uuid), ("address" = String, Path)), request_body = RevokeLinkRequest,
    responses((status = 200, body = Message), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn revoke_linked_address(
    admin: Admin,
    State(state): State<AdminState>,
    Path((user, address)): Path<(String, String)>,
    JsonBody(body): JsonBody<RevokeLinkRequest>,
) -> Result<Message, Failure> {
    admin.require_writer()?;
    let mut tx = state.store.begin(&admin.actor()).await?;
    let user = admin.writable_user(&tx.read(), &user).await?;
    admin.all_orgs_of(&tx.read(), user.id).await?;
    let address = input::address(&address)?;
    let reason = body.reason.trim();
    if reason.is_empty() || reason.chars().count() > 500 {
        return Err(Failure::bad("reason must have 1 to 500 characters"));
    }
    tx.revoke_link(user.id, address, reason).await?;
    tx.commit().await?;
    Ok(Message::new("link revoked"))
}

/// Addresses that several users hold. For an organization's administrator: only those touching the scope, with names
/// outside it hidden.
#[utoipa::path(get, path = "/api/v1/admin/eth-addresses/collisions", tag = "links",
    responses((status = 200, body = EthAddressCollisionsResponse), (status = 401), (status = 403)))]
pub(crate) async fn list_collisions(
    admin: Admin,
    State(state): State<AdminState>,
) -> Result<Json<EthAddressCollisionsResponse>, Failure> {
    let scope = admin.scope()?;
    let found = state.store.read().list_collisions(&scope).await?;
    let mut collisions = Vec::with_capacity(found.len());
    for collision in found {
        let mut row = AddressLinkCollision { eth_address: collision.address, dids: Vec::new(), link_types: Vec::new() };
        for (user, name, how) in collision.holders {
            let shown = match &scope {
                Scope::All => true,
                Scope::Orgs(orgs) => {
                    let mine: HashSet<_> = orgs.iter().collect();
                    state.store.read().organizations_of(user).await?.iter().any(|org| mine.contains(org))
                }
            };
            row.dids.push(if shown { name.to_string() } else { PRIVATE.to_owned() });
            row.link_types.push(kind(how));
        }
        collisions.push(row);
    }
    Ok(Json(EthAddressCollisionsResponse { count: collisions.len(), collisions }))
}
