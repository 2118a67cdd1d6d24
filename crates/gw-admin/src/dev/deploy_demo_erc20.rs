use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    input,
    scope::Admin,
    wire::{DeployDemoErc20Request, DeployDemoErc20Response, lower},
};
use alloy_primitives::{Bytes, U256};
use axum::{Json, extract::State};
use gw_http::{ApiError, ClientAddress, Credentials, ErrorCode, simulation::TestCall};
use gw_policy::access::owns;
use gw_store::record::{ContractPatch, Organization};
use gw_types::{Address, B256, DenyReason, Seconds, Secret, UserId};
use http::HeaderMap;
use serde_json::{Value, json};
use std::time::Duration;

/// The token contract as compiled from `contracts/src/DemoERC20.sol`.
const ARTIFACT: &str = include_str!("../../../../contracts/artifacts/DemoERC20.json");
const NAME: &str = "DemoERC20";
const SYMBOL: &str = "DEMO";
/// Most characters of the token's name.
const MAX_NAME_CHARS: usize = 64;
/// How long to wait for mining and for registration, together.
const TIME_LIMIT: Seconds = Seconds(20);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Deploys a demo token; only in development.
///
/// The gateway sends it as `eth_sendTransaction` of the administrator, from their first linked wallet; the node must
/// hold the wallet's key. It is an ordinary send: it is traced and authorized, and the contract is registered for the
/// organization. So one of the administrator's groups must list the method. The whole supply, a million tokens, goes to
/// the wallet.
#[utoipa::path(post, path = "/api/v1/admin/dev/deploy-demo-erc20", tag = "dev", request_body = DeployDemoErc20Request,
    responses((status = 200, body = DeployDemoErc20Response), (status = 400), (status = 401),
        (status = 403, description = "Production, a token of the platform, or the send is refused"), (status = 404),
        (status = 502), (status = 503, description = "Sent, but not mined within twenty seconds")))]
pub(crate) async fn deploy_demo_erc20(
    admin: Admin,
    State(state): State<AdminState>,
    headers: HeaderMap,
    body: Option<JsonBody<DeployDemoErc20Request>>,
) -> Result<Json<DeployDemoErc20Response>, AdminError> {
    if state.http_context.production {
        return Err(AdminError::forbidden("demo contracts are deployed in development only"));
    }
    // The send needs a wallet, and the platform token has none.
    let user = admin.require_person()?;
    let body = body.map(|JsonBody(body)| body).unwrap_or_default();
    let org = match body.org_id.as_deref().filter(|text| !text.is_empty()) {
        Some(org) => admin.writable_org(&state, org).await?,
        None => admin.writable_org(&state, &admin.only_org()?.to_string()).await?,
    };
    let name = body
        .name
        .as_deref()
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .unwrap_or(NAME);
    let name = input::text(&input::name(name)?, "name", MAX_NAME_CHARS)?;
    let sender = wallet(&state, user)?;
    let token = match Credentials::from_headers(&headers, &state.http_context.origins) {
        Ok(Credentials::Bearer(token) | Credentials::Cookie(token)) => Secret::new(token),
        Ok(Credentials::Nothing) | Err(_) => return Err(ApiError::unauthorized("admin authentication required").into()),
    };
    let call = TestCall {
        token: Some(token),
        org: Some(org.id),
        method: "eth_sendTransaction".to_owned(),
        params: vec![json!({"from": lower(sender), "data": creation(&name)?})],
        client: ClientAddress(admin.ip()),
    };
    let sent = state
        .calls
        .test_call(call)
        .await
        .map_err(|_| AdminError::bad_request("the token is not valid"))?;
    let hash = sent
        .answer
        .get("result")
        .and_then(Value::as_str)
        .and_then(|hash| hash.parse::<B256>().ok());
    let hash = hash.ok_or_else(|| send_error(sent.status, sent.reason.map(DenyReason::as_str), &sent.answer))?;
    let deadline = state.clock.now().plus(TIME_LIMIT);
    let address = loop {
        let mined = state.node.mined(hash).await.map_err(|_| node_failed())?;
        match mined.map(|mined| mined.created.filter(|_| mined.succeeded)) {
            Some(Some(address)) => break address,
            Some(None) => return Err(AdminError::bad_request(format!("the deployment {hash:#x} failed"))),
            None if state.clock.now() >= deadline => {
                return Err(ApiError::unavailable(format!("{hash:#x} was sent and is not mined yet")).into());
            }
            None => tokio::time::sleep(POLL_INTERVAL).await,
        }
    };
    let registered = loop {
        let is_registered = state
            .feed
            .pin()
            .snapshot
            .contract(address)
            .is_some_and(|contract| contract.org == org.id);
        if is_registered || state.clock.now() >= deadline {
            break is_registered;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    };
    if registered {
        describe(&admin, &state, &org, address, &name).await?;
    }
    let (address, tx_hash) = (lower(address), format!("{hash:#x}"));
    Ok(Json(DeployDemoErc20Response {
        address,
        name,
        tx_hash,
        registered,
    }))
}

/// The wallet that the administrator linked first.
fn wallet(state: &AdminState, user: UserId) -> Result<Address, AdminError> {
    let snapshot = state.feed.pin().snapshot;
    let mut links: Vec<_> = snapshot.links_of(user).iter().collect();
    links.sort_by_key(|link| (link.verified_at, link.id));
    let first_wallet = links
        .into_iter()
        .map(|link| link.address)
        .find(|address| owns(&snapshot, user, *address));
    first_wallet
        .ok_or_else(|| AdminError::bad_request("you have no linked wallet to deploy from: see /eth/link/challenge"))
}

/// Sets the name of the registration, and the token type that selects the built-in ABI for rules and masking.
async fn describe(
    admin: &Admin,
    state: &AdminState,
    org: &Organization,
    address: Address,
    name: &str,
) -> Result<(), AdminError> {
    let mut tx = admin.begin(state).await?;
    let contract = admin.contract_of(&tx.read(), org, &lower(address)).await?;
    let mut metadata = contract.metadata.clone();
    metadata.insert("token_type".to_owned(), "ERC20".into());
    let patch = ContractPatch {
        name: Some(name.to_owned()),
        metadata: Some(metadata),
        ..ContractPatch::default()
    };
    tx.update_contract(contract.id, patch).await?;
    tx.commit().await?;
    Ok(())
}

fn node_failed() -> AdminError {
    ApiError::new(ErrorCode::BadGateway, "the node did not answer").into()
}

/// The error for a call that was not sent. Administrators read the reason of a denial.
fn send_error(status: u16, reason: Option<&'static str>, answer: &Value) -> AdminError {
    let message = answer
        .pointer("/error/message")
        .and_then(Value::as_str)
        .unwrap_or_default();
    match (status, reason) {
        (401 | 403 | 404, Some(reason)) => ApiError::new(ErrorCode::Forbidden, format!("the send is denied: {reason}")),
        (502, _) => return node_failed(),
        (503, _) => ApiError::unavailable(message.to_owned()),
        (_, _) => ApiError::bad_request(format!(
            "not sent: {message} (the node must hold the key of the wallet)"
        )),
    }
    .into()
}

/// The creation code with the ABI-encoded constructor arguments: name, symbol, supply.
fn creation(name: &str) -> Result<Bytes, AdminError> {
    let artifact: Value = serde_json::from_str(ARTIFACT).map_err(|_| ApiError::internal())?;
    let creation_code = artifact.get("bytecode").and_then(Value::as_str).unwrap_or_default();
    let mut creation_code = hex::decode(creation_code.trim_start_matches("0x")).map_err(|_| ApiError::internal())?;
    let supply = U256::from(1_000_000) * U256::from(10).pow(U256::from(18));
    let (name, symbol) = (abi_string(name), abi_string(SYMBOL));
    for word in [U256::from(96), U256::from(96 + name.len()), supply] {
        creation_code.extend(word.to_be_bytes::<32>());
    }
    creation_code.extend(name);
    creation_code.extend(symbol);
    Ok(creation_code.into())
}

/// ABI encoding of a string: its length, then its bytes, padded with zeros to a multiple of 32.
fn abi_string(text: &str) -> Vec<u8> {
    let mut bytes = U256::from(text.len()).to_be_bytes::<32>().to_vec();
    bytes.extend(text.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(32), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rto6_constructor_arguments_are_abi_encoded() {
        let code = creation("Gold").unwrap();
        let arguments = hex::encode(&code[code.len() - 7 * 32..]);
        let word = |number: u128| format!("{number:064x}");
        let text = |text: &str| format!("{:0<64}", hex::encode(text));
        let expected = [
            word(0x60),
            word(0xa0),
            word(1_000_000_000_000_000_000_000_000),
            word(4),
            text("Gold"),
            word(4),
            text("DEMO"),
        ];
        assert_eq!(arguments, expected.concat());
    }
}
