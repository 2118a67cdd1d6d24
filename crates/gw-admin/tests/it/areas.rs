//! One test per area: its objects are created, users at their `Location`, changed, listed and removed.

use crate::world::{Caller, World};
use gw_store::record::{NewUser, Violation};
use gw_types::{Address, B256, ExternalId, OrgId, Timestamp};
use http::{Method, StatusCode};
use serde_json::{Value, json};

const ADDRESS: &str = "0x5fbdb2315678afecb367f032d93f642f64180aa3";
const SUPER: Caller<'static> = Caller::Super;

impl World {
    /// Creates an object as super, checks that `Location` ends with `id_of` the object, and returns path and object.
    async fn create(&self, path: &str, body: Value, id_of: impl FnOnce(&Value) -> String) -> (String, Value) {
        let created = self.post(SUPER, path, body).await;
        assert_eq!(created.status, StatusCode::CREATED, "{path}: {}", created.text);
        let object = created.json();
        let location = created.location.unwrap_or_else(|| panic!("{path} has no Location"));
        let place = location.strip_prefix("/api/v1/admin").unwrap().to_owned();
        assert!(place.ends_with(&format!("/{}", id_of(&object))), "{location}: {object}");
        (place, object)
    }

    /// Changes something as super and returns the answer.
    async fn change(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let answer = self.ask(SUPER, method.clone(), path, body).await;
        assert_eq!(answer.status, StatusCode::OK, "{method} {path}: {}", answer.text);
        answer.json()
    }

    async fn read(&self, path: &str) -> Value {
        self.change(Method::GET, path, None).await
    }

    /// Removes the object at `path` as super; afterwards it is unknown.
    async fn remove(&self, path: &str) {
        self.change(Method::DELETE, path, None).await;
        let again = self.ask(SUPER, Method::DELETE, path, None).await;
        assert_eq!(again.status, StatusCode::NOT_FOUND, "{path}: {}", again.text);
    }

    async fn group(&self, org: OrgId) -> (String, Value) {
        let body = json!({"name": "Analysts", "slug": "analysts"});
        self.create(&format!("/orgs/{org}/groups"), body, id).await
    }

    async fn contract(&self, org: OrgId) -> (String, Value) {
        let body = json!({"address": ADDRESS, "name": "Token"});
        self.create(&format!("/orgs/{org}/contracts"), body, |_| ADDRESS.to_owned())
            .await
    }

    async fn user(&self, did: &str) -> String {
        let new = NewUser {
            external_id: ExternalId::new(did).unwrap(),
            kyc: false,
            auth_tenant_id: None,
            groups: Vec::new(),
        };
        let user = self.fixture.change(async |tx| tx.create_user(new).await.unwrap()).await;
        user.id.to_string()
    }
}

fn id(object: &Value) -> String {
    object["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn groups_and_their_access() {
    let world = World::start().await;
    let (org, token) = world.org_with_admin("bank").await;
    let (group, created) = world.group(org).await;
    assert_eq!(world.read(&group).await, created);
    let changed = world
        .change(Method::PUT, &group, Some(json!({"name": "Readers"})))
        .await;
    assert_eq!(changed["name"], "Readers");
    let access = format!("{group}/access");
    let body = json!({"allowed_methods": ["eth_call"], "claims": []});
    world.change(Method::PUT, &access, Some(body)).await;
    assert_eq!(world.read(&access).await["allowed_methods"], json!(["eth_call"]));
    let list = format!("/orgs/{org}/groups");
    let listed = world.get(Caller::User(&token), &list).await.json();
    assert_eq!(listed["total"], 2);
    // No administrator takes the last group of administrators away.
    let own = listed["data"].as_array().unwrap().iter();
    let own = own
        .map(|row| &row["group"])
        .find(|group| group["is_org_admin"] == true)
        .unwrap();
    let own = format!("{list}/{}", own["id"].as_str().unwrap());
    let refused = world.ask(Caller::User(&token), Method::DELETE, &own, None).await;
    assert!(refused.status.is_client_error(), "{}", refused.text);
    world.remove(&group).await;
}

#[tokio::test]
async fn contracts() {
    let world = World::start().await;
    let (org, token) = world.org_with_admin("bank").await;
    let (foreign, _) = world.org_with_admin("rival").await;
    let (contract, created) = world.contract(org).await;
    assert_eq!(
        (&created["address"], &created["org_id"]),
        (&json!(ADDRESS), &json!(org))
    );
    assert_eq!(world.read(&contract).await["id"], created["id"]);
    let changed = world
        .change(Method::PUT, &contract, Some(json!({"name": "Coin"})))
        .await;
    assert_eq!(changed["name"], "Coin");
    let taken = json!({"address": ADDRESS, "name": "Token"});
    let taken = world.post(SUPER, &format!("/orgs/{foreign}/contracts"), taken).await;
    assert_eq!((taken.status, taken.location), (StatusCode::CONFLICT, None));
    // Without the super token a registration needs a proof.
    let unproven = json!({"address": "0x0000000000000000000000000000000000000009"});
    let unproven = world
        .post(Caller::User(&token), &format!("/orgs/{org}/contracts"), unproven)
        .await;
    assert_eq!(unproven.status, StatusCode::BAD_REQUEST, "{}", unproven.text);
    let listed = world.read(&format!("/orgs/{org}/contracts")).await;
    assert_eq!(
        (&listed["total"], &listed["data"][0]["name"]),
        (&json!(1), &json!("Coin"))
    );
    world.remove(&contract).await;
}

#[tokio::test]
async fn grants() {
    let world = World::start().await;
    let (org, _) = world.org_with_admin("bank").await;
    let ((_, group), (contract, _)) = (world.group(org).await, world.contract(org).await);
    let group = group["id"].as_str().unwrap().to_owned();
    let body = json!({"group_id": group, "functions": [{"selector": "0xa9059cbb"}]});
    let of_group = |grant: &Value| grant["group_id"].as_str().unwrap().to_owned();
    let (grant, created) = world
        .create(&format!("{contract}/grants"), body.clone(), of_group)
        .await;
    assert_eq!(created["functions"][0]["selector"], "0xa9059cbb");
    let again = world.post(SUPER, &format!("{contract}/grants"), body).await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    let changed = world.change(Method::PUT, &grant, Some(json!({"functions": []}))).await;
    assert_eq!(changed["functions"], json!([]));
    assert_eq!(world.read(&format!("{contract}/grants")).await[0]["id"], created["id"]);
    world.remove(&grant).await;
}

#[tokio::test]
async fn users() {
    let world = World::start().await;
    let (_, token) = world.org_with_admin("bank").await;
    let user = world.user("did:test:alice").await;
    let path = format!("/users/{user}");
    assert_eq!(world.read(&path).await["external_id"], "did:test:alice");
    let changed = world
        .change(Method::PUT, &path, Some(json!({"kyc": true, "note": "checked"})))
        .await;
    assert_eq!((&changed["kyc"], &changed["note"]), (&json!(true), &json!("checked")));
    let users = world.read("/users?search=did:test:alice").await;
    assert_eq!((&users["total"], &users["data"][0]["id"]), (&json!(1), &json!(user)));
    // 80 §3: a user without a membership in the administrator's organization is as unknown as one who does not exist.
    let admin = Caller::User(&token);
    let (foreign, unknown) = (
        world.get(admin, &path).await,
        world.get(admin, &format!("/users/{}", OrgId::fixed(9))).await,
    );
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    assert_eq!((foreign.status, foreign.text), (unknown.status, unknown.text));
    let sessions = world.read(&format!("{path}/sessions")).await;
    assert_eq!(sessions, json!({"data": [], "total": 0, "limit": 1000, "offset": 0}));
    world.remove(&path).await;
}

#[tokio::test]
async fn memberships() {
    let world = World::start().await;
    let (org, token) = world.org_with_admin("bank").await;
    let user = world.user("did:test:alice").await;
    let (_, group) = world.group(org).await;
    let path = format!("/users/{user}/memberships");
    let (membership, created) = world.create(&path, json!({"group_id": group["id"]}), id).await;
    assert_eq!(created["user_id"], json!(user));
    let listed = world.read(&path).await;
    assert_eq!(listed[0]["membership"]["id"], created["id"]);
    let past = json!({"group_id": group["id"], "expires_at": "2001-01-01T00:00:00Z"});
    assert_eq!(world.post(SUPER, &path, past).await.status, StatusCode::BAD_REQUEST);
    world.change(Method::DELETE, &membership, None).await;
    // By DID the user is created with the membership.
    let by_did = format!("/orgs/{org}/memberships/by-did");
    let body = json!({"did": "did:test:new", "group_id": group["id"]});
    let created = world.post(Caller::User(&token), &by_did, body).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.text);
    let (location, body) = (created.location.clone().unwrap(), created.json());
    let place = format!(
        "/api/v1/admin/users/{}/memberships/{}",
        body["user_id"].as_str().unwrap(),
        body["membership"]["id"].as_str().unwrap()
    );
    assert_eq!(location, place);
}

#[tokio::test]
async fn directory_tenants() {
    let world = World::start().await;
    let (_, token) = world.org_with_admin("bank").await;
    let body = json!({"tenant_id": "72f988bf-86f1-41af-91ab-2d7cd011db47", "label": "Bank"});
    let (tenant, created) = world.create("/directory-tenants", body.clone(), id).await;
    assert_eq!(world.read(&tenant).await, created);
    let changed = world
        .change(Method::PUT, &tenant, Some(json!({"disabled": true})))
        .await;
    assert_eq!(changed["disabled"], true);
    assert_eq!(
        world.post(SUPER, "/directory-tenants", body.clone()).await.status,
        StatusCode::CONFLICT
    );
    let refused = world.post(Caller::User(&token), "/directory-tenants", body).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert_eq!(world.read("/directory-tenants").await["total"], 1);
    world.remove(&tenant).await;
}

#[tokio::test]
async fn shared_infrastructure_and_approved_code() {
    let world = World::start().await;
    let body = json!({"address": ADDRESS, "name": "Multicall"});
    let (shared, _) = world
        .create("/shared-infrastructure", body, |_| ADDRESS.to_owned())
        .await;
    assert_eq!(world.read(&shared).await["name"], "Multicall");
    world.remove(&shared).await;
    let body = json!({"name": "Token 1.0", "creation_code": "0x6080604052"});
    let hash = |code: &Value| code["hash"].as_str().unwrap().to_owned();
    let (code, created) = world.create("/approved-code", body.clone(), hash).await;
    assert_eq!(world.read("/approved-code").await["data"], json!([created]));
    assert_eq!(
        world.post(SUPER, "/approved-code", body).await.status,
        StatusCode::CONFLICT
    );
    world.remove(&code).await;
}

#[tokio::test]
async fn legal_holds() {
    let world = World::start().await;
    let (org, token) = world.org_with_admin("bank").await;
    let body = json!({"org_id": org, "reason": "court order"});
    let (hold, created) = world.create("/legal-holds", body, id).await;
    assert_eq!(world.read(&hold).await, created);
    assert_eq!(world.read("/legal-holds").await["data"], json!([created]));
    let refused = world.get(Caller::User(&token), &hold).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    world
        .change(Method::POST, &format!("{hold}/lift"), Some(json!({"reason": "closed"})))
        .await;
    for unknown in [&*hold, "/legal-holds/none"] {
        assert_eq!(
            world.get(SUPER, unknown).await.status,
            StatusCode::NOT_FOUND,
            "{unknown}"
        );
    }
}

/// HD28, HD38: super and the administrators of every affected organization clear a violation, for a reason.
#[tokio::test]
async fn mined() {
    let world = World::start().await;
    let (sender_org, sender_token) = world.org_with_admin("bank").await;
    let (affected, affected_token) = world.org_with_admin("rival").await;
    let finding = Violation {
        external_id: ExternalId::new("did:test:bank-admin").unwrap(),
        org: sender_org,
        sender: Address::repeat_byte(1),
        tx_hash: B256::repeat_byte(2),
        block_hash: B256::repeat_byte(3),
        reason: "cross_org",
        block: 7,
        block_time: Timestamp::from_secs(1000),
        place: 0,
        logs: 0,
        changes: Vec::new(),
        closed_to_side: vec![Address::repeat_byte(4)],
        side: vec![sender_org],
        wronged: vec![affected],
        suspends: true,
    };
    world
        .fixture
        .change(async |tx| tx.record_finding(&finding).await.unwrap())
        .await;
    let reason = || Some(json!({"reason": "checked"}));
    for list in ["convictions", "suspensions", "quarantines"] {
        let listed = world.read(&format!("/mined/{list}")).await;
        assert_eq!(listed["total"], 1, "{list}: {listed}");
        let path = format!("/mined/{list}/{}/clear", id(&listed["data"][0]));
        let clear = async |caller, path: &str, body| world.ask(caller, Method::POST, path, body).await;
        // The sender's administrator reads that there is no such row, in the same bytes as for an unknown one.
        let of_sender = clear(Caller::User(&sender_token), &path, reason()).await;
        let unknown = format!("/mined/{list}/{}/clear", OrgId::fixed(9));
        let unknown = clear(Caller::User(&sender_token), &unknown, reason()).await;
        assert_eq!(of_sender.status, StatusCode::FORBIDDEN, "{list}");
        assert_eq!(
            (of_sender.status, of_sender.text),
            (unknown.status, unknown.text),
            "{list}"
        );
        let without_reason = clear(SUPER, &path, Some(json!({"reason": " "}))).await;
        assert_eq!(without_reason.status, StatusCode::BAD_REQUEST, "{list}");
        let caller = if list == "suspensions" {
            SUPER
        } else {
            Caller::User(&affected_token)
        };
        let cleared = clear(caller, &path, reason()).await;
        assert_eq!(cleared.status, StatusCode::OK, "{list}: {}", cleared.text);
        assert_eq!(
            clear(SUPER, &path, reason()).await.status,
            StatusCode::NOT_FOUND,
            "{list}"
        );
    }
}
