//! Uploads of ABIs (spec/40 section 4, X13).

use crate::{
    chain::ChainMaker,
    world::{Response, TestCaller, World},
};
use gw_chain_store::rows::Log;
use gw_policy::{
    PolicySettings,
    testing::{address_of, world},
};
use gw_store::record::{AbiText, AccessInput, NewContract, NewGrant, NewGroup};
use gw_testkit::fixture::{ADMIN_TOKEN, TestUser};
use gw_types::{Address, B256, Claim, Claims, ContractId, b256};
use http::{Request, StatusCode};

const CONTRACT: Address = Address::repeat_byte(0xc1);
/// A contract of organization `b`.
const FOREIGN: Address = Address::repeat_byte(0xc2);
const ABI: &str = r#"[{"type":"event","name":"Moved","anonymous":false,"inputs":[
    {"name":"who","type":"address","indexed":true}]}]"#;

struct Scene {
    world: World,
    contract: ContractId,
    admin: TestUser,
    /// Administers organization `b`.
    other_admin: TestUser,
    /// May read the administration of `a`.
    reader: TestUser,
    /// A member of a group with a grant on the contract.
    holder: TestUser,
    /// Administers `a` by a claim of the group.
    claim_holder: TestUser,
}

impl Scene {
    async fn start(settings: PolicySettings) -> Self {
        let world = World::on_policy_store(settings).await;
        let fixture = &world.fixture;
        let (a, b) = (fixture.create_org("a").await, fixture.create_org("b").await);
        let group = |org, name: &str| NewGroup::plain(org, name, name);
        let admins = |org| NewGroup {
            is_org_admin: true,
            ..group(org, "admins")
        };
        let admin = fixture.create_user("admin", admins(a), AccessInput::default()).await;
        let other_admin = fixture.create_user("other", admins(b), AccessInput::default()).await;
        let readers = NewGroup {
            is_org_readonly_admin: true,
            ..group(a, "readers")
        };
        let reader = fixture.create_user("reader", readers, AccessInput::default()).await;
        let holder = fixture
            .create_user("holder", group(a, "staff"), AccessInput::default())
            .await;
        let by_claim = AccessInput {
            claims: Claims::from_iter([Claim::Admin]),
            ..AccessInput::default()
        };
        let claim_holder = fixture.create_user("claimed", group(a, "claimed"), by_claim).await;
        let staff = holder.group;
        let contract = fixture
            .change(async |tx| {
                tx.create_contract(NewContract::plain(b, FOREIGN, "foreign"))
                    .await
                    .unwrap();
                let contract = tx
                    .create_contract(NewContract::plain(a, CONTRACT, "token"))
                    .await
                    .unwrap();
                tx.create_grant(NewGrant::full(contract.id, staff)).await.unwrap();
                contract.id
            })
            .await;
        Self {
            world,
            contract,
            admin,
            other_admin,
            reader,
            holder,
            claim_holder,
        }
    }

    async fn upload(&self, token: Option<&str>, address: Address, body: impl Into<axum::body::Body>) -> Response {
        let path = format!("/addresses/0x{}/abi", hex::encode(address));
        let bearer = token.map(|token| format!("Bearer {token}"));
        let headers: Vec<(&str, &str)> = bearer.iter().map(|bearer| ("authorization", bearer.as_str())).collect();
        self.world.post(&headers, &path, body).await
    }

    async fn stored(&self) -> Option<String> {
        let contract = self.world.fixture.store.read().find_contract(CONTRACT).await.unwrap();
        let contract = contract.unwrap();
        assert_eq!(contract.id, self.contract);
        contract.abi
    }

    /// The events that the snapshot knows of the contract: what masking uses.
    fn knows_event(&self) -> bool {
        let snapshot = self.world.fixture.feed.pin().snapshot;
        snapshot
            .contract(CONTRACT)
            .is_some_and(|contract| contract.abi.is_some())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x13_an_administrator_of_the_owner_replaces_the_abi_that_masking_uses() {
    let scene = Scene::start(PolicySettings::SPEC).await;
    assert!(!scene.knows_event());
    let response = scene.upload(Some(&scene.admin.token), CONTRACT, ABI).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.text);
    let body = response.json();
    assert_eq!(body["success"], true);
    assert_eq!(body["address"], format!("0x{}", hex::encode(CONTRACT)));
    assert_eq!(scene.stored().await.as_deref(), Some(ABI));
    // The answer is sent after the snapshot of this instance has the change.
    assert!(scene.knows_event());
    let records = scene.world.fixture.access_records();
    let record = records.last().unwrap();
    assert_eq!(record.external_id.as_ref(), Some(&scene.admin.name));
    assert!(record.org_id.is_some(), "filed under the organization");
    assert!(record.method.ends_with("{address}/abi"), "{}", record.method);
    assert_eq!(audited(&scene).await, ["admin"], "one entry for the change");
}

/// The DIDs in the audit entries about contracts that a user changed.
async fn audited(scene: &Scene) -> Vec<String> {
    let entries = scene.world.fixture.store.outbox(0, 1000).await.unwrap();
    let of_users = entries.into_iter().filter_map(|row| row.entry.actor_external_id);
    of_users
        .filter_map(|did| did.strip_prefix("did:test:").map(str::to_owned))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_else_reads_that_the_address_is_not_found() {
    let scene = Scene::start(PolicySettings {
        admin_claim_sees_all: false,
        ..PolicySettings::SPEC
    })
    .await;
    let expected = scene.upload(None, Address::repeat_byte(0x99), ABI).await;
    assert_eq!(expected.status, StatusCode::NOT_FOUND, "{}", expected.text);
    let denied = [
        (None, CONTRACT),
        (Some(&scene.other_admin), CONTRACT),
        (Some(&scene.reader), CONTRACT),
        (Some(&scene.holder), CONTRACT),
        // K11: administers the organization and does not see the contract.
        (Some(&scene.claim_holder), CONTRACT),
        (Some(&scene.admin), FOREIGN),
        (Some(&scene.admin), Address::repeat_byte(0x99)),
    ];
    for (caller, address) in denied {
        for body in [ABI.to_owned(), "{".to_owned(), "x".repeat(2 << 20)] {
            let token = caller.map(|user| user.token.as_str());
            let response = scene.upload(token, address, body).await;
            assert_eq!(response, expected, "{:?}", caller.map(|user| &user.name));
        }
    }
    let path = format!("/addresses/0x{}/abi", hex::encode(CONTRACT));
    let platform = scene.world.post(&[("x-admin-token", ADMIN_TOKEN)], &path, ABI).await;
    assert_eq!(platform, expected, "a platform token sees nothing (R8)");
    let mut request = Request::post(format!("/api/v1/explorer{path}"))
        .body(ABI.into())
        .unwrap();
    request.extensions_mut().insert(gw_explorer::Impersonation {
        target: scene.admin.id,
        impersonator: scene.admin.id,
        org: gw_types::OrgId::fixed(1),
    });
    assert_eq!(
        scene.world.send(request).await,
        expected,
        "E11: nothing is changed for others"
    );
    assert_eq!(scene.stored().await, None);
    assert!(audited(&scene).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_malformed_abi_is_refused_with_its_reason() {
    let scene = Scene::start(PolicySettings::SPEC).await;
    let token = Some(scene.admin.token.as_str());
    let unknown_type = r#"[{"type":"event","name":"Odd","inputs":[{"name":"x","type":"nonsense"}]}]"#;
    for (body, reason) in [
        ("", "invalid abi: an abi is a json array"),
        ("{}", "invalid abi: an abi is a json array"),
        ("null", "invalid abi: an abi is a json array"),
        (r#"{"abi":[]}"#, "invalid abi: an abi is a json array"),
        (
            "[{]",
            "invalid abi: malformed abi: key must be a string at line 1 column 3",
        ),
        (
            r#"[{"type":"event"}]"#,
            "invalid abi: malformed abi: missing field `name`",
        ),
        (unknown_type, "invalid abi: malformed abi: "),
    ] {
        let response = scene.upload(token, CONTRACT, body).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{body}: {}", response.text);
        let text = response.json()["error"].as_str().unwrap().to_owned();
        assert!(text.starts_with(reason), "{body}: {text}");
    }
    let response = scene.upload(token, CONTRACT, vec![b'[', 0xff]).await;
    assert_eq!(response.status, StatusCode::BAD_REQUEST, "{}", response.text);
    let response = scene.upload(token, CONTRACT, "x".repeat(gw_http::BODY_LIMIT + 1)).await;
    assert_eq!(response.status, StatusCode::PAYLOAD_TOO_LARGE, "{}", response.text);
    let response = scene.world.post(&[], "/addresses/0x12/abi", ABI).await;
    assert_eq!(response.status, StatusCode::BAD_REQUEST, "{}", response.text);
    assert_eq!(scene.stored().await, None);
}

/// E10, RTO8.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_needs_a_valid_token_and_fresh_policy() {
    let scene = Scene::start(PolicySettings::SPEC).await;
    let response = scene.upload(Some("x"), CONTRACT, ABI).await;
    assert_eq!(response.status, StatusCode::UNAUTHORIZED, "{}", response.text);
    scene.world.fixture.make_policy_stale();
    let response = scene.upload(Some(&scene.admin.token), CONTRACT, ABI).await;
    assert_eq!(response.status, StatusCode::SERVICE_UNAVAILABLE, "{}", response.text);
    let id = scene.contract;
    let abi = AbiText::parse("[]".to_owned()).unwrap();
    let patch = gw_store::record::ContractPatch {
        abi: Some(Some(abi)),
        ..Default::default()
    };
    scene
        .world
        .fixture
        .change(async |tx| tx.update_contract(id, patch).await.unwrap())
        .await;
    let response = scene.upload(Some(&scene.admin.token), CONTRACT, ABI).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.text);
    assert_eq!(
        scene.stored().await.as_deref(),
        Some(ABI),
        "an upload replaces the ABI of the admin API"
    );
}

/// X14: a late ABI is in force for old logs with the next request, and stays in force only as long as it is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x14_a_late_abi_masks_old_logs_at_once() {
    let alice = TestCaller::User("alice");
    let policy = |abi: Option<&str>| {
        let contract = world()
            .org("a")
            .group("staff")
            .user("alice")
            .member("a/staff")
            .link("alice-w")
            .org("a")
            .contract("a-token");
        match abi {
            Some(abi) => contract.abi(abi),
            None => contract,
        }
        .grant("staff")
        .snapshot()
    };
    let mut chain = ChainMaker::new(61).blocks(1, B256::ZERO, 1);
    // The Keccak-256 hash of `Paid(address)`.
    let event = b256!("b513ded1b789eae3295f6834e90c165f7259d31e80787c0794e8745ca3574b2c");
    chain[0].transactions.truncate(1);
    let data = &mut chain[0].transactions[0];
    (data.transaction.from, data.transaction.to) = (address_of("s0"), Some(address_of("a-token")));
    data.logs = vec![Log {
        index: 0,
        address: address_of("a-token"),
        topics: vec![event],
        // No address, by its shape. An event that declares an address here has malformed data.
        data: vec![0x11; 32].into(),
    }];
    let mut explorer = World::with(policy(None), PolicySettings::SPEC).await;
    explorer.append(chain).await;
    explorer.follow().await;
    let shown = async |explorer: &World| {
        let list = explorer.get(alice, "/logs").await.json();
        list["data"][0]["data"].as_str().unwrap().to_owned()
    };
    let clear = format!("0x{}", "11".repeat(32));
    let abi = r#"[{"type":"event","name":"Paid","anonymous":false,"inputs":[
        {"name":"to","type":"address","indexed":false}]}]"#;
    assert_eq!(shown(&explorer).await, clear, "K3: data of an unknown event is shown");
    explorer.set_policy(Some(policy(Some(abi))));
    assert_eq!(shown(&explorer).await, format!("0x{}", "00".repeat(32)));
    explorer.set_policy(Some(policy(None)));
    assert_eq!(shown(&explorer).await, clear);
}
