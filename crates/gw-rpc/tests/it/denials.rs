//! Every denial is the same opaque answer, for any reason (decision 14, house rule 18).

use crate::world::{DENIED, World, account, scripted, scripted_with, signed};
use gw_policy::PolicySettings;
use gw_rpc::RpcSettings;
use gw_store::record::UserPatch;
use gw_testkit::TestUser;
use gw_types::{Address, Bytes, Claim, DenyReason, ExternalId, OrgId, SessionId, TokenId};
use http::StatusCode;
use serde_json::{Value, json};

const TOKEN: Address = Address::repeat_byte(0x11);
const FOREIGN: Address = Address::repeat_byte(0x22);
const UNREGISTERED: Address = Address::repeat_byte(0x33);
const MULTICALL: &str = "0xca11bde05977b3631167028862be2a173976ca11";

struct Case {
    reason: DenyReason,
    caller: Option<TestUser>,
    method: &'static str,
    params: Value,
    path: Option<String>,
}

/// One call for each reason that a decision can have.
async fn cases(world: &World) -> Vec<Case> {
    let bank = world.fixture.create_org("bank").await;
    let rival = world.fixture.create_org("rival").await;
    let trader = world.person("trader", bank, &["*"], &[]).await;
    let reader = world.person("reader", bank, &["eth_getBalance"], &[]).await;
    let foreigner = world.person("foreigner", rival, &["*"], &[]).await;
    let banned = world.person("banned", bank, &["*"], &[]).await;
    let unproved = world.person("unproved", bank, &["*"], &[]).await;
    let member_of_two = world.person("of-two", bank, &["*"], &[Claim::Deploy]).await;
    world.contract(bank, TOKEN, None, &[trader.group]).await;
    world.contract(rival, FOREIGN, None, &[foreigner.group]).await;
    world
        .update(
            &banned,
            UserPatch {
                banned: Some(true),
                ..UserPatch::default()
            },
        )
        .await;
    world
        .update(
            &unproved,
            UserPatch {
                kyc: Some(false),
                ..UserPatch::default()
            },
        )
        .await;
    let add = gw_store::record::NewMembership {
        user: member_of_two.id,
        group: foreigner.group,
        expires_at: None,
    };
    world
        .fixture
        .change(async |tx| tx.add_membership(add).await.unwrap())
        .await;
    let nobody = ExternalId::new("did:test:nobody").unwrap();
    let unknown = TestUser {
        token: world
            .fixture
            .sign_token(&nobody, TokenId::fixed(1), SessionId::fixed(2)),
        ..reader.clone()
    };
    let call = |to: &str| json!([{"to": to, "data": "0x12345678"}, "latest"]);
    let (deployment, _) = signed(&account(0), 0, None, 0, Bytes::from_static(&[0x60]));
    let case = |reason, caller: Option<&TestUser>, method, params| Case {
        reason,
        caller: caller.cloned(),
        method,
        params,
        path: None,
    };
    vec![
        case(DenyReason::AuthRequired, None, "eth_call", call(&TOKEN.to_string())),
        case(
            DenyReason::MethodUnknown,
            Some(&trader),
            "eth_fetchEverything",
            json!([]),
        ),
        case(DenyReason::MethodUnknown, Some(&trader), "eth_call ", json!([])),
        case(
            DenyReason::MethodNotAllowed,
            Some(&trader),
            "eth_newPendingTransactionFilter",
            json!([{}]),
        ),
        case(
            DenyReason::MethodNotAllowed,
            Some(&trader),
            "debug_traceBlockByNumber",
            json!(["latest"]),
        ),
        case(
            DenyReason::MethodNotAllowed,
            Some(&reader),
            "eth_call",
            call(&TOKEN.to_string()),
        ),
        case(DenyReason::UnknownUser, Some(&unknown), "eth_chainId", json!([])),
        case(DenyReason::Banned, Some(&banned), "eth_chainId", json!([])),
        case(
            DenyReason::KycRequired,
            Some(&unproved),
            "eth_sendRawTransaction",
            json!([deployment]),
        ),
        case(
            DenyReason::ForeignOrg,
            Some(&trader),
            "eth_call",
            call(&FOREIGN.to_string()),
        ),
        case(
            DenyReason::Unregistered,
            Some(&trader),
            "eth_call",
            call(&UNREGISTERED.to_string()),
        ),
        case(
            DenyReason::Multicall,
            Some(&trader),
            "eth_call",
            json!([{"to": MULTICALL, "data": "0x82ad56cb"}, "latest"]),
        ),
        case(
            DenyReason::HistoryNotPermitted,
            Some(&trader),
            "eth_getBalance",
            json!([TOKEN, "earliest"]),
        ),
        case(
            DenyReason::DeployClaimRequired,
            Some(&trader),
            "eth_call",
            json!([{"data": "0x60"}, "latest"]),
        ),
        case(
            DenyReason::OrgAmbiguous,
            Some(&member_of_two),
            "eth_sendRawTransaction",
            json!([deployment]),
        ),
        Case {
            path: Some(format!("/rpc/{rival}")),
            ..case(DenyReason::OrgMismatch, Some(&trader), "eth_syncing", json!([]))
        },
        Case {
            path: Some("/rpc/bank".into()),
            ..case(DenyReason::OrgMismatch, Some(&trader), "eth_syncing", json!([]))
        },
        Case {
            path: Some(format!("/rpc/{}", OrgId::fixed(77))),
            ..case(DenyReason::OrgMismatch, Some(&trader), "eth_syncing", json!([]))
        },
    ]
}

/// Decision 14, T2: the bytes do not reveal the reason, the record names it, and the node is not queried.
#[tokio::test]
async fn decision_14_every_denial_is_the_same_bytes_and_reaches_no_node() {
    let (world, fake) = scripted().await;
    for case in cases(&world).await {
        let ask = world.ask(case.caller.as_ref(), case.method, case.params);
        let answer = match &case.path {
            Some(path) => ask.path(path).send().await,
            None => ask.send().await,
        };
        assert_eq!(
            (answer.status, answer.text.as_str()),
            (404, DENIED),
            "{} {}",
            case.method,
            case.reason
        );
        assert_eq!(answer.headers["content-type"], "application/json");
        fake.assert_silent();
        let record = world.record();
        assert_eq!(record.denial_reason, Some(case.reason), "{}", case.method);
        assert!([401, 403, 404].contains(&record.status_code), "{record:?}");
        let wire = record.response_status.unwrap_or(record.status_code);
        assert_eq!((wire, record.node_called), (404, false));
    }
}

/// Decision 14: the setting changes the status, and no byte of the body.
#[tokio::test]
async fn decision_14_the_status_setting_keeps_the_body() {
    let settings = RpcSettings {
        denial_status: StatusCode::OK,
        ..RpcSettings::default()
    };
    let (world, fake) = scripted_with(settings, PolicySettings::default()).await;
    let answer = world.ask(None, "eth_call", json!([])).send().await;
    assert_eq!((answer.status, answer.text.as_str()), (200, DENIED));
    fake.assert_silent();
    let record = world.record();
    assert_eq!((record.status_code, record.response_status), (401, Some(200)));
}

/// Decision 37, T2: foreign and unregistered code get the same answer after the same query; an address without code
/// gets `0x`.
#[tokio::test]
async fn decision_37_code_out_of_reach_is_denied_only_where_there_is_some() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let rival = world.fixture.create_org("rival").await;
    let trader = world.person("trader", bank, &["eth_getCode"], &[]).await;
    world.contract(rival, FOREIGN, None, &[]).await;
    for address in [FOREIGN, UNREGISTERED] {
        assert_eq!(
            world.result(&trader, "eth_getCode", json!([address, "latest"])).await,
            "0x"
        );
        assert_eq!(fake.take().len(), 1);
    }
    fake.set_result("eth_getCode", json!("0x6001"));
    for address in [FOREIGN, UNREGISTERED] {
        world
            .ask(Some(&trader), "eth_getCode", json!([address, "latest"]))
            .send()
            .await
            .assert_denied();
        assert_eq!(fake.take().len(), 1);
    }
}
