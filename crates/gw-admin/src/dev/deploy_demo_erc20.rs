use crate::{
    AdminState, BadToken, TestCall,
    body::JsonBody,
    error::Failure,
    input,
    scope::Admin,
    wire::{DeployDemoErc20Request, DeployDemoErc20Response, lower},
};
use alloy_primitives::{Bytes, U256};
use axum::{Json, extract::State};
use gw_http::{ApiError, ErrorCode, Presented};
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
/// The longest name that is written into the token.
const MOST_NAME: usize = 64;
/// How long mining and registration are waited for.
const PATIENCE: Seconds = Seconds(20);
const PAUSE: Duration = Duration::from_millis(50);

/// Deploys a demo token, in development only.
///
/// It is sent as `eth_sendTransaction` of the administrator, from their first linked wallet, whose key the node must hold,
/// and takes the way of every send: it is traced and judged, and what it creates is registered to the organization. So the
/// administrator's groups must list the method. The whole supply, a million tokens, is the wallet's.
#[utoipa::path(post, path = "/api/v1/admin/dev/deploy-demo-erc20", tag = "dev", request_body = DeployDemoErc20Request,
    responses((status = 200, body = DeployDemoErc20Response), (status = 400), (status = 401),
        (status = 403, description = "Production, a token of the platform, or the send is refused"), (status = 404),
        (status = 502), (status = 503, description = "Sent, but not mined within twenty seconds")))]
pub(crate) async fn deploy_demo_erc20(
    admin: Admin,
    State(state): State<AdminState>,
    headers: HeaderMap,
    body: Option<JsonBody<DeployDemoErc20Request>>,
) -> Result<Json<DeployDemoErc20Response>, Failure> {
    if state.edge.production {
        return Err(Failure::forbidden("demo contracts are deployed in development only"));
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
    let name = input::text(&input::name(name)?, "name", MOST_NAME)?;
    let sender = wallet(&state, user)?;
    let token = match Presented::of(&headers, &state.edge.origins) {
        Ok(Presented::Bearer(token) | Presented::Cookie(token)) => Secret::new(token),
        Ok(Presented::Nothing) | Err(_) => return Err(ApiError::unauthorized("admin authentication required").into()),
    };
    let call = TestCall {
        token: Some(token),
        org: Some(org.id),
        method: "eth_sendTransaction".to_owned(),
        params: vec![json!({"from": lower(sender), "data": creation(&name)?})],
        client: admin.ip(),
    };
    let said = state
        .tester
        .run(call)
        .await
        .map_err(|BadToken| Failure::bad("the token is not valid"))?;
    let hash = said
        .answer
        .get("result")
        .and_then(Value::as_str)
        .and_then(|hash| hash.parse::<B256>().ok());
    let hash = hash.ok_or_else(|| refused(said.status, said.reason.map(DenyReason::as_str), &said.answer))?;
    let end = state.clock.now().plus(PATIENCE);
    let address = loop {
        let mined = state.node.mined(hash).await.map_err(|_| node_failed())?;
        match mined.map(|mined| mined.created.filter(|_| mined.succeeded)) {
            Some(Some(address)) => break address,
            Some(None) => return Err(Failure::bad(format!("the deployment {hash:#x} failed"))),
            None if state.clock.now() >= end => {
                return Err(ApiError::unavailable(format!("{hash:#x} was sent and is not mined yet")).into());
            }
            None => tokio::time::sleep(PAUSE).await,
        }
    };
    let registered = loop {
        let known = state
            .feed
            .pin()
            .snapshot
            .contract(address)
            .is_some_and(|contract| contract.org == org.id);
        if known || state.clock.now() >= end {
            break known;
        }
        tokio::time::sleep(PAUSE).await;
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

/// The first wallet that the administrator linked.
fn wallet(state: &AdminState, user: UserId) -> Result<Address, Failure> {
    let snapshot = state.feed.pin().snapshot;
    let mut links: Vec<_> = snapshot.links_of(user).iter().collect();
    links.sort_by_key(|link| (link.verified_at, link.id));
    let own = links
        .into_iter()
        .map(|link| link.address)
        .find(|address| owns(&snapshot, user, *address));
    own.ok_or_else(|| Failure::bad("you have no linked wallet to deploy from: see /eth/link/challenge"))
}

/// Gives the registration its name and, for rules and masking, its built-in ABI.
async fn describe(
    admin: &Admin,
    state: &AdminState,
    org: &Organization,
    address: Address,
    name: &str,
) -> Result<(), Failure> {
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

fn node_failed() -> Failure {
    ApiError::new(ErrorCode::BadGateway, "the node did not answer").into()
}

/// Why nothing was sent; administrators read the reason of a denial.
fn refused(status: u16, reason: Option<&'static str>, answer: &Value) -> Failure {
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

/// The contract's code with its constructor's arguments: name, symbol, supply.
fn creation(name: &str) -> Result<Bytes, Failure> {
    let artifact: Value = serde_json::from_str(ARTIFACT).map_err(|_| ApiError::internal())?;
    let code = artifact.get("bytecode").and_then(Value::as_str).unwrap_or_default();
    let mut code = hex::decode(code.trim_start_matches("0x")).map_err(|_| ApiError::internal())?;
    let supply = U256::from(1_000_000) * U256::from(10).pow(U256::from(18));
    let (name, symbol) = (string(name), string(SYMBOL));
    for word in [U256::from(96), U256::from(96 + name.len()), supply] {
        code.extend(word.to_be_bytes::<32>());
    }
    code.extend(name);
    code.extend(symbol);
    Ok(code.into())
}

/// A string as the ABI writes it: its length, its bytes, zeros up to the next word.
fn string(text: &str) -> Vec<u8> {
    let mut bytes = U256::from(text.len()).to_be_bytes::<32>().to_vec();
    bytes.extend(text.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(32), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rto6_the_arguments_are_written_as_the_abi_says() {
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
