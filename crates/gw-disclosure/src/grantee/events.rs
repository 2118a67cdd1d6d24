use super::{
    reader::{GrantPath, GrantReader},
    token,
};
use crate::{
    DisclosureState,
    caller::Admin,
    error::{GrantError, NO_GRANT},
    events::{self, EventReader},
    input::paging,
    wire::EventRow,
};
use axum::{
    Json,
    extract::{FromRequestParts, State},
};
use gw_http::{Page, PageQuery, admin};
use gw_types::DisclosureGrantId;
use http::request::Parts;

/// Whoever reads the events of a grant: an administrator, or the reader of the grant.
#[derive(Debug)]
pub(crate) enum EventCaller {
    Admin(Admin),
    Reader(GrantReader),
}

impl FromRequestParts<DisclosureState> for EventCaller {
    type Rejection = GrantError;

    async fn from_request_parts(parts: &mut Parts, state: &DisclosureState) -> Result<Self, GrantError> {
        if parts.headers.contains_key(admin::HEADER) {
            return Ok(Self::Admin(Admin::from_request_parts(parts, state).await?));
        }
        if token::is_presented(&parts.headers) {
            return Ok(Self::Reader(GrantReader::from_request_parts(parts, state).await?));
        }
        // An administrator who is the grantee reads as the grantee.
        let GrantPath(id) = GrantPath::from_request_parts(parts, state).await?;
        let reader = GrantReader::from_request_parts(parts, state).await?;
        let is_grantee = |grant: DisclosureGrantId| {
            let grant = reader.snapshot.find_disclosure(grant);
            grant.is_some_and(|grant| grant.grantee == reader.user.external_id)
        };
        if is_grantee(id) {
            return Ok(Self::Reader(reader));
        }
        match Admin::from_request_parts(parts, state).await {
            Ok(admin) => Ok(Self::Admin(admin)),
            Err(_) => Ok(Self::Reader(reader)),
        }
    }
}

/// Lists the reads under a grant and its changes, the newest first: to its grantee, and without addresses to the
/// administrators of its organization. A read appears within a few seconds.
#[utoipa::path(get, path = "/api/v1/admin/disclosure/grants/{grant_id}/events", tag = "disclosure",
    params(("grant_id" = String, Path, format = Uuid, description = "The grant"), PageQuery),
    responses((status = 200, body = Vec<EventRow>), GrantError))]
pub(crate) async fn list_disclosure_events(
    GrantPath(id): GrantPath,
    caller: EventCaller,
    State(state): State<DisclosureState>,
    page: Page<100>,
) -> Result<Json<Vec<EventRow>>, GrantError> {
    let found = state.store.read().find_disclosure_grant(id).await?;
    let (grant, reader) = match &caller {
        EventCaller::Admin(admin) => {
            let found = found.filter(|found| admin.may_read(found.grant.org));
            let grant = found.ok_or_else(|| admin.unknown(NO_GRANT))?.grant;
            admin.origin.set_org(grant.org);
            (grant, EventReader::Administrator)
        }
        EventCaller::Reader(reader) => {
            reader.open(&state, id)?;
            let grant = found.ok_or(GrantError::Unknown)?.grant;
            (grant, EventReader::Grantee(Some(reader.user.id)))
        }
    };
    Ok(Json(events::list(&state, &grant, reader, paging(page)).await?.rows))
}
