use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    input,
    scope::Admin,
    wire::{
        AddressLinkCollision, EthAddressCollisionsResponse, LinkedAddressEntry, RevokeLinkRequest,
        UserLinkedAddressesResponse,
    },
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::{Message, PRIVATE};
use gw_policy::snapshot::LinkKind;
use gw_store::{read::Scope, record::Link};
use gw_types::{LinkId, Timestamp, UserId};

const fn kind(kind: LinkKind) -> &'static str {
    match kind {
        LinkKind::User => "user",
        LinkKind::System => "system",
    }
}

/// Lists a user's active links. An administrator of an organization sees a wallet's address only if it is Full for them
/// (HD12, HD30). Of other wallets that the user proved, they see only that there is a link, and its day. The gateway
/// also infers links from sends. Inferred links reveal activity in any organization, so those of hidden wallets are not
/// listed (HD40).
#[utoipa::path(get, path = "/api/v1/admin/users/{user_id}/linked-addresses", tag = "links",
    params(("user_id" = String, Path, format = Uuid)),
    responses((status = 200, body = UserLinkedAddressesResponse), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn list_linked_addresses(
    admin: Admin,
    State(state): State<AdminState>,
    Path(user): Path<String>,
) -> Result<Json<UserLinkedAddressesResponse>, AdminError> {
    let user = admin.readable_user(&state.store.read(), &user).await?;
    let (scope, snapshot) = (admin.scope()?, state.feed.pin().snapshot);
    let view = admin.address_view(&state, &snapshot, &scope);
    let entry = |link: Link| {
        let is_visible = view.shows(link.address);
        let shown_time = |timestamp: Timestamp| if is_visible { timestamp } else { day_of(timestamp) };
        let is_listed = match link.kind {
            LinkKind::User => true,
            LinkKind::System => is_visible,
        };
        is_listed.then(|| LinkedAddressEntry {
            id: link.id,
            address: view.print(link.address),
            link_type: kind(link.kind),
            ens_name: link.ens_name.filter(|_| is_visible),
            ens_resolved_at: link.ens_resolved_at.filter(|_| is_visible),
            verified_at: shown_time(link.verified_at),
            created_at: shown_time(link.created_at),
            revoked_at: link.revoked_at,
        })
    };
    let links = state.store.read().list_links(user.id).await?;
    Ok(Json(UserLinkedAddressesResponse {
        addresses: links.into_iter().filter_map(entry).collect(),
    }))
}

/// The start of the UTC day.
fn day_of(timestamp: Timestamp) -> Timestamp {
    const DAY: i64 = 86_400_000_000;
    Timestamp::from_micros(timestamp.micros().div_euclid(DAY).saturating_mul(DAY))
}

/// Ends the link of a compromised wallet. Visibility derived from the link ends at once, and proving it again is
/// refused.
///
/// The link is named by its address or by its id. Super only: a refusal that depended on the user's other organizations
/// would reveal them (HD32).
#[utoipa::path(delete, path = "/api/v1/admin/users/{user_id}/linked-addresses/{address}", tag = "links",
    params(("user_id" = String, Path, format = Uuid), ("address" = String, Path)), request_body = RevokeLinkRequest,
    responses((status = 200, body = Message), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn revoke_linked_address(
    admin: Admin,
    State(state): State<AdminState>,
    Path((user, address)): Path<(String, String)>,
    JsonBody(body): JsonBody<RevokeLinkRequest>,
) -> Result<Message, AdminError> {
    admin.require_writer()?;
    let mut tx = admin.begin(&state).await?;
    let user = admin.writable_user(&tx.read(), &user).await?;
    admin.require_platform_wide()?;
    let reason = body.reason.trim();
    if reason.is_empty() || reason.chars().count() > 500 {
        return Err(AdminError::bad_request("reason must have 1 to 500 characters"));
    }
    let links = tx.read().list_links(user.id).await?;
    let link = match address.parse::<LinkId>() {
        Ok(id) => links.iter().find(|link| link.id == id),
        Err(_) => {
            let address = input::address(&address)?;
            links.iter().find(|link| link.address == address)
        }
    };
    let address = link.ok_or_else(|| AdminError::not_found("address not found"))?.address;
    tx.revoke_link(user.id, address, reason).await?;
    tx.commit().await?;
    Ok(Message::new("link revoked"))
}

/// Lists addresses that several users hold. An administrator of an organization sees only addresses of users in their
/// scope, with the names of other users hidden, and with the address only if it is Full for them (HD30).
#[utoipa::path(get, path = "/api/v1/admin/eth-addresses/collisions", tag = "links",
    responses((status = 200, body = EthAddressCollisionsResponse), (status = 401), (status = 403)))]
pub(crate) async fn list_collisions(
    admin: Admin,
    State(state): State<AdminState>,
) -> Result<Json<EthAddressCollisionsResponse>, AdminError> {
    let scope = admin.scope()?;
    let rows = state.store.read().list_collisions(&scope).await?;
    let (snapshot, now) = (state.feed.pin().snapshot, state.clock.now());
    let view = admin.address_view(&state, &snapshot, &scope);
    let is_in_scope = |user: UserId| match &scope {
        Scope::All => true,
        Scope::Orgs(orgs) => orgs.iter().any(|org| snapshot.has_accepted(user, *org, now)),
    };
    let mut collisions = Vec::with_capacity(rows.len());
    for collision in rows {
        let is_visible = view.shows(collision.address);
        let is_own = collision
            .holders
            .iter()
            .any(|(user, _, _)| admin.user_id() == Some(*user));
        // Otherwise a user who forwarded a transaction of another user would learn whose wallet it is.
        if (is_own && !is_visible) || !collision.holders.iter().any(|(user, _, _)| is_in_scope(*user)) {
            continue;
        }
        let mut holders: Vec<(String, &'static str)> = Vec::with_capacity(collision.holders.len());
        for (user, name, link_kind) in collision.holders {
            holders.push((
                if is_in_scope(user) {
                    name.to_string()
                } else {
                    PRIVATE.to_owned()
                },
                kind(link_kind),
            ));
        }
        holders.sort();
        let (dids, link_types) = holders.into_iter().unzip();
        collisions.push(AddressLinkCollision {
            eth_address: view.print(collision.address),
            dids,
            link_types,
        });
    }
    if !admin.is_super() {
        // The order of the addresses would reveal something about the hidden ones.
        collisions.sort_by(|a, b| (&a.dids, &a.eth_address).cmp(&(&b.dids, &b.eth_address)));
    }
    Ok(Json(EthAddressCollisionsResponse {
        count: collisions.len(),
        collisions,
    }))
}
