//! `/me/rpc-urls`: personal RPC URLs, for wallets that cannot send tokens (HD17, decision 51).

use crate::{
    error::{spawn_tracked, storage},
    link::parse_address,
    request_info::RequestInfo,
    state::IdentityState,
};
use axum::{
    Json,
    extract::{Path, State},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gw_http::{
    ApiError, AuthenticatedBody, AuthenticatedUser, Challenge, Created, ErrorCode, Message, Page, PageQuery, Paged,
    described_error,
};
use gw_policy::{
    access::{Principal, active_orgs, contract_access},
    settings::PolicySettings,
    snapshot::{Organization, UrlReach},
};
use gw_store::{
    Actor, Missing, StoreError,
    record::{NewPersonalUrl, PersonalUrl},
};
use gw_types::{Address, B256, OrgId, PersonalUrlId, Seconds};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Default and maximum lifetime in seconds.
const LIFE: u32 = 8 * 3600;
const LONGEST: u32 = 30 * 86_400;
/// How long after a login it may create a URL (HD35).
const FRESH: Seconds = Seconds(300);
/// Maximum number of contracts of one URL.
const CONTRACTS: usize = 64;
const NAME: usize = 100;
const NOT_YOURS: &str = "`org_id`: not one of your organizations";

/// The warning shown when the widest scope is chosen (PU-1).
const WARNING: &str = "Whoever has this URL reads and sends with all your rights, and so does every web page that your \
wallet is connected to. Prefer the scope `wallet`, or `contracts`.";

/// Parameters of a new personal URL.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
pub(crate) struct RpcUrlCreateRequest {
    /// `wallet` (default), `contracts` or `all`.
    scope: Option<String>,
    /// With `contracts`: the contracts that `eth_call` and `eth_getLogs` may address.
    contracts: Option<Vec<String>>,
    /// The organization that the URL is for; members of one organization may omit it.
    org_id: Option<String>,
    /// Lifetime: 8 hours by default, 30 days at most.
    ttl_seconds: Option<u32>,
    /// A name for its owner's use.
    name: Option<String>,
}

/// A personal URL. The URL itself is shown once, when it is created.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct RpcUrlResponse {
    #[schema(value_type = String, format = Uuid)]
    id: PersonalUrlId,
    name: String,
    scope: &'static str,
    contracts: Vec<String>,
    #[schema(value_type = String, format = Uuid)]
    org_id: OrgId,
    created_at: String,
    expires_at: String,
    /// Only in the answer that creates it: it cannot be shown again.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// What a wide scope means.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<&'static str>,
}

impl RpcUrlResponse {
    fn from_row(row: PersonalUrl) -> Self {
        let scope = row.scope();
        let contracts = match &row.reach {
            UrlReach::Contracts(contracts) => contracts.iter().map(|address| format!("{address:#x}")).collect(),
            UrlReach::Wallet | UrlReach::All => Vec::new(),
        };
        Self {
            id: row.id,
            name: row.name,
            scope,
            contracts,
            org_id: row.org,
            created_at: row.created_at.to_rfc3339(),
            expires_at: row.expires_at.to_rfc3339(),
            url: None,
            warning: None,
        }
    }
}

/// Why a URL was not created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UrlError {
    /// The user has the maximum number of URLs.
    #[error("too many")]
    TooMany,
    /// The membership ended while the request was handled.
    #[error("no member of the organization")]
    NotAMember,
    /// The login behind the token is too old: the holder of a token that lives for minutes must not get a URL for a
    /// month (HD35).
    #[error("the login is too old")]
    LoginTooOld,
    /// The store failed.
    #[error("the store failed")]
    Store(#[source] StoreError),
}

impl From<StoreError> for UrlError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Rule("too_many_rpc_urls") => Self::TooMany,
            StoreError::Rule("rpc_url_without_membership") => Self::NotAMember,
            other => Self::Store(other),
        }
    }
}

impl From<UrlError> for ApiError {
    fn from(error: UrlError) -> Self {
        match error {
            UrlError::TooMany => Self::conflict("too many RPC URLs: 16 at most; end one first"),
            UrlError::NotAMember => Self::bad_request(NOT_YOURS),
            UrlError::LoginTooOld => Self::unauthorized("log in again: an RPC URL is made within 5 minutes of a login")
                .challenging(Challenge::LoginTooOld(FRESH))
                .with("reason", "login_required"),
            UrlError::Store(error) => storage(&error),
        }
    }
}

described_error!(
    UrlError,
    "APIError",
    [
        ErrorCode::BadRequest.answer(),
        ErrorCode::Unauthorized.answer(),
        ErrorCode::Conflict.answer(),
        ErrorCode::Internal.answer(),
        ErrorCode::Unavailable.answer(),
    ]
);

/// Why a URL was not ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EndUrlError {
    /// The URL does not exist, or belongs to another user.
    #[error("unknown")]
    Unknown,
    /// The store failed.
    #[error("the store failed")]
    Store(#[source] StoreError),
}

impl From<StoreError> for EndUrlError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(Missing::PersonalUrl) => Self::Unknown,
            other => Self::Store(other),
        }
    }
}

impl From<EndUrlError> for ApiError {
    fn from(error: EndUrlError) -> Self {
        match error {
            EndUrlError::Unknown => Self::not_found("rpc url not found"),
            EndUrlError::Store(error) => storage(&error),
        }
    }
}

described_error!(
    EndUrlError,
    "APIError",
    [
        ErrorCode::NotFound.answer(),
        ErrorCode::Internal.answer(),
        ErrorCode::Unavailable.answer(),
    ]
);

/// List my RPC URLs
///
/// The caller's live URLs, the newest first.
#[utoipa::path(
    get,
    path = "/me/rpc-urls",
    operation_id = "myRpcUrls",
    tag = "me",
    security(("bearer" = [])),
    params(PageQuery),
    responses(
        (status = 200, body = Paged<RpcUrlResponse>),
        (status = 404, description = "Personal RPC URLs are off"),
    ),
)]
pub(crate) async fn list(
    State(state): State<IdentityState>,
    caller: AuthenticatedUser,
    page: Page<1000>,
) -> Result<Json<Paged<RpcUrlResponse>>, ApiError> {
    let rows = state
        .store
        .read()
        .list_personal_urls(caller.user.id, state.http_context.now())
        .await
        .map_err(|error| storage(&error))?;
    Ok(Json(
        page.of_all(rows.into_iter().map(RpcUrlResponse::from_row).collect()),
    ))
}

/// Make an RPC URL
///
/// The URL contains a secret, is shown once and needs no token: treat it like one. It can be created within five
/// minutes of a login (later: 401, `reason` `login_required`) and ends with that login.
#[utoipa::path(
    post,
    path = "/me/rpc-urls",
    operation_id = "createRpcUrl",
    tag = "me",
    security(("bearer" = [])),
    request_body = RpcUrlCreateRequest,
    responses(
        (status = 201, body = RpcUrlResponse),
        UrlError,
        (status = 404, description = "Personal RPC URLs are off"),
    ),
)]
pub(crate) async fn create(
    State(state): State<IdentityState>,
    request_info: RequestInfo,
    AuthenticatedBody { caller, body }: AuthenticatedBody<RpcUrlCreateRequest>,
) -> Result<Created<RpcUrlResponse>, ApiError> {
    let org = organization(&state, &caller, body.org_id.as_deref())?;
    let reach = scope(
        &state,
        &caller,
        org,
        body.scope.as_deref(),
        body.contracts.as_deref().unwrap_or_default(),
    )?;
    let life = body.ttl_seconds.unwrap_or(LIFE);
    if !(60..=LONGEST).contains(&life) {
        return Err(ApiError::bad_request(
            "`ttl_seconds`: from 60 seconds to 30 days (2592000)",
        ));
    }
    let name = body.name.unwrap_or_default().trim().to_owned();
    if name.chars().count() > NAME || name.chars().any(char::is_control) {
        return Err(ApiError::bad_request("`name`: at most 100 characters, on one line"));
    }
    let mut bits = [0; 32];
    state.http_context.entropy.fill(&mut bits);
    let secret = URL_SAFE_NO_PAD.encode(bits);
    let mut new = NewPersonalUrl {
        secret: B256::from_slice(&Sha256::digest(secret.as_bytes())),
        user: caller.user.id,
        org,
        name,
        reach,
        expires_at: state.http_context.now().plus(Seconds(life)),
        login: None,
    };
    let actor = request_info.actor(Actor::user(caller.user.id, &caller.user.external_id));
    let (worker, family) = (state.clone(), caller.claims.session);
    let made = spawn_tracked(&state.tasks, async move {
        let mut tx = worker.store.begin(&actor).await?;
        // By the time of the login, not of the token: a refresh does not renew a login.
        let login = tx
            .read()
            .find_family(family)
            .await?
            .filter(|login| tx.now() <= login.started.plus(FRESH));
        new.login = Some(login.ok_or(UrlError::LoginTooOld)?.login);
        let made = tx.create_personal_url(new).await?;
        tx.commit().await?;
        Ok::<_, UrlError>(made)
    })
    .await?;
    let warning = (made.reach == UrlReach::All).then_some(WARNING);
    let url = Some(format!("{}/rpc/u/{secret}", state.inner.config.base_url));
    let location = format!("/api/v1/me/rpc-urls/{}", made.id);
    Ok(Created(
        location,
        RpcUrlResponse {
            url,
            warning,
            ..RpcUrlResponse::from_row(made)
        },
    ))
}

/// End an RPC URL
#[utoipa::path(
    delete,
    path = "/me/rpc-urls/{id}",
    operation_id = "endRpcUrl",
    tag = "me",
    security(("bearer" = [])),
    params(("id" = String, Path, format = Uuid)),
    responses(
        (status = 200, body = Message),
        EndUrlError,
    ),
)]
pub(crate) async fn end(
    State(state): State<IdentityState>,
    caller: AuthenticatedUser,
    request_info: RequestInfo,
    Path(id): Path<String>,
) -> Result<Message, ApiError> {
    let id: PersonalUrlId = id.parse().map_err(|_| EndUrlError::Unknown)?;
    let actor = request_info.actor(Actor::user(caller.user.id, &caller.user.external_id));
    let (worker, user) = (state.clone(), caller.user.id);
    spawn_tracked(&state.tasks, async move {
        let mut tx = worker.store.begin(&actor).await?;
        tx.revoke_personal_url(user, id).await?;
        tx.commit().await?;
        Ok::<_, EndUrlError>(())
    })
    .await?;
    Ok(Message::new("rpc url ended"))
}

/// The organization of the URL: the named one, or the caller's only one apart from the default organization.
fn organization(state: &IdentityState, caller: &AuthenticatedUser, named: Option<&str>) -> Result<OrgId, ApiError> {
    let mine = active_orgs(&caller.snapshot, caller.user.id, state.http_context.now());
    match named.filter(|text| !text.is_empty()) {
        Some(text) => {
            let org = text.parse().ok().filter(|org| mine.contains(org));
            org.ok_or_else(|| ApiError::bad_request(NOT_YOURS))
        }
        None => {
            let others: Vec<OrgId> = mine
                .iter()
                .copied()
                .filter(|org| *org != Organization::DEFAULT)
                .collect();
            match (others.as_slice(), mine.as_slice()) {
                ([only], _) | ([], [only]) => Ok(*only),
                ([], _) => Err(ApiError::bad_request("you are a member of no organization")),
                _ => Err(ApiError::bad_request(
                    "`org_id`: you are a member of several organizations, name one",
                )),
            }
        }
    }
}

fn scope(
    state: &IdentityState,
    caller: &AuthenticatedUser,
    org: OrgId,
    scope: Option<&str>,
    contracts: &[String],
) -> Result<UrlReach, ApiError> {
    let reach = match scope.unwrap_or("wallet") {
        "wallet" => UrlReach::Wallet,
        "all" => UrlReach::All,
        "contracts" => {
            if !(1..=CONTRACTS).contains(&contracts.len()) {
                return Err(ApiError::bad_request("`contracts`: from 1 to 64 addresses"));
            }
            let mut picked: Vec<Address> = Vec::with_capacity(contracts.len());
            for text in contracts {
                let address =
                    parse_address(text).ok_or_else(|| ApiError::bad_request("`contracts`: not an address"))?;
                // Foreign and unregistered contracts get the same answer.
                if !reaches(state, caller, org, address) {
                    return Err(ApiError::bad_request(
                        "`contracts`: not a contract you may use in this organization",
                    ));
                }
                if !picked.contains(&address) {
                    picked.push(address);
                }
            }
            return Ok(UrlReach::Contracts(picked.into()));
        }
        _ => return Err(ApiError::bad_request("`scope`: `wallet`, `contracts` or `all`")),
    };
    if contracts.is_empty() {
        Ok(reach)
    } else {
        Err(ApiError::bad_request("`contracts` goes with the scope `contracts`"))
    }
}

/// Whether the caller may use the contract in this organization now. Each call is checked again.
fn reaches(state: &IdentityState, caller: &AuthenticatedUser, org: OrgId, address: Address) -> bool {
    let member = Principal::new(&caller.snapshot, caller.user.id, state.http_context.now());
    let contract = caller.snapshot.contract(address).filter(|contract| contract.org == org);
    contract.is_some_and(|contract| {
        contract_access(&caller.snapshot, &member, contract, &PolicySettings::default()).is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_http::DescribedError as _;

    /// House rule 17.
    #[test]
    fn every_error_of_a_creation_has_its_status() {
        let table = [
            (StoreError::Rule("too_many_rpc_urls").into(), 409),
            (StoreError::Rule("rpc_url_without_membership").into(), 400),
            (UrlError::LoginTooOld, 401),
            (StoreError::Detached.into(), 500),
            // RTO8
            (StoreError::NotPrimary.into(), 503),
        ];
        let answers = table.map(|(error, status)| {
            // A new variant stops the build here: add it to the table.
            match error {
                UrlError::TooMany | UrlError::NotAMember | UrlError::LoginTooOld | UrlError::Store(_) => {}
            }
            let answer = ApiError::from(error);
            assert_eq!(answer.code().status().as_u16(), status, "{answer:?}");
            answer.code().answer()
        });
        assert!(UrlError::lists_exactly(answers));
    }

    /// House rule 17.
    #[test]
    fn every_error_of_an_end_has_its_status() {
        let table = [
            (EndUrlError::Unknown, 404),
            (StoreError::NotFound(Missing::PersonalUrl).into(), 404),
            (StoreError::Detached.into(), 500),
            // RTO8
            (StoreError::NotPrimary.into(), 503),
        ];
        let answers = table.map(|(error, status)| {
            // A new variant stops the build here: add it to the table.
            match error {
                EndUrlError::Unknown | EndUrlError::Store(_) => {}
            }
            let answer = ApiError::from(error);
            assert_eq!(answer.code().status().as_u16(), status, "{answer:?}");
            answer.code().answer()
        });
        assert!(EndUrlError::lists_exactly(answers));
    }
}
