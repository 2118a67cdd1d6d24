//! Real proofs under a test key, and a scripted node.

use super::{
    super::RequestBody,
    maker::{HEADER, Maker},
    *,
};
use crate::resolver::tests::{RIGHT, Script, current, resolvers, returned, root, user};
use gw_types::{Clock, testing::ManualClock};
use gw_zk::did::{Did, Id};
use serde_json::json;

const VERIFIER: &str = "did:iden3:privado:main:2ScrbEuw9jLXMapW3DELXBbDco5EURzJZRN1tYj7L7";

struct World {
    maker: Maker,
    node: Script,
    clock: Arc<ManualClock>,
    verifier: ZkVerifier,
}

impl World {
    async fn start(state: serde_json::Value) -> Self {
        let (maker, node) = (Maker::new(1), Script::new(RIGHT, state));
        let (resolvers, clock) = resolvers(vec![node.serve().await]);
        let cache = Cache::in_process(Arc::clone(&clock) as Arc<dyn Clock>);
        let verifier = ZkVerifier::new(Arc::new(resolvers), cache).with_own_key(maker.key.clone());
        Self {
            maker,
            node,
            clock,
            verifier,
        }
    }

    fn request(&self, thread: &str) -> AuthorizationRequest {
        let now = self.clock.now().secs();
        AuthorizationRequest {
            id: thread.to_owned(),
            thid: thread.to_owned(),
            from: VERIFIER.to_owned(),
            typ: "application/iden3comm-plain-json".into(),
            kind: "https://iden3-communication.io/authorization/1.0/request".into(),
            body: RequestBody {
                callback_url: "https://gate.example/auth/callback?session=s".to_owned(),
                reason: "login".to_owned(),
                message: String::new(),
                scope: Vec::new(),
                accept: vec!["iden3comm/v1;env=application/iden3-zkp-json;circuitId=authV2;alg=groth16".into()],
            },
            created_time: now,
            expires_time: now + 600,
        }
    }

    fn token(&self, thread: &str, id: Id) -> String {
        let message = json!({
            "thid": thread, "type": response::RESPONSE_TYPE, "from": Did::from_id(id).unwrap().as_str(), "to": VERIFIER,
            "body": {"scope": [{"id": 1, "type": "GroupClaim", "rbac_groups": ["admins"]}]},
        });
        self.maker.token_of(HEADER, &message.to_string(), id, root(), |_| ())
    }

    async fn verify(&self, token: &str, thread: &str) -> Result<String, ProofError> {
        let proved = self
            .verifier
            .verify(token, &self.request(thread), self.clock.now())
            .await?;
        assert_eq!(proved.amr, Amr::Zk);
        Ok(proved.subject.as_str().to_owned())
    }
}

#[tokio::test]
async fn zk48_a_message_counts_once_in_whatever_session() {
    let world = World::start(current()).await;
    let token = world.token("t", user());
    assert_eq!(world.verify(&token, "u").await, Err(ProofError::Failed), "ZK-43");
    assert_eq!(
        world.verify(&token, "t").await,
        Ok(Did::from_id(user()).unwrap().to_string()),
        "ZK-41, ZK-47"
    );
    assert_eq!(world.verify(&token, "t").await, Err(ProofError::Failed));
    assert_eq!(
        world.verify(&world.token("u", user()), "u").await,
        Ok(Did::from_id(user()).unwrap().to_string())
    );
}

#[tokio::test]
async fn zk51_the_contract_decides_and_a_fault_of_it_burns_no_message() {
    let world = World::start(json!({"error": {"code": 3, "message": "", "data": "0xf95411d2"}})).await;
    let token = world.token("t", user());
    assert_eq!(world.verify(&token, "t").await, Err(ProofError::Failed));
    world
        .node
        .say(json!({"error": {"code": -32005, "message": "limit exceeded"}}));
    assert_eq!(world.verify(&token, "t").await, Err(ProofError::ResolverFault));
    world.node.say(returned(&[8, 0, 1, 0, 1, 0]));
    assert_eq!(world.verify(&token, "t").await, Err(ProofError::Failed));
    let replaced = u64::try_from(world.clock.now().secs()).unwrap() - 301;
    world.node.say(returned(&[7, 8, 1, replaced, 1, 2]));
    assert_eq!(world.verify(&token, "t").await, Err(ProofError::Failed));
    let fresh = World::start(returned(&[7, 8, 1, replaced + 2, 1, 2])).await;
    assert!(fresh.verify(&fresh.token("t", user()), "t").await.is_ok());
}

#[tokio::test]
async fn zk50_a_network_without_resolver_is_named_and_nobody_asked() {
    let world = World::start(current()).await;
    let stranger = Did::parse("did:iden3:polygon:amoy:x7Z95VkUuyo6mqraJw2VGwCfqTzdqhM1RVjRHzcpK")
        .unwrap()
        .id();
    let token = world.token("t", stranger);
    assert_eq!(world.verify(&token, "t").await, Err(ProofError::NetworkNotSupported));
    assert_eq!(world.node.asked(), (0, 0));
}

#[tokio::test]
async fn zk90_unreadable_refused_and_unjudged_are_told_apart() {
    let world = World::start(current()).await;
    for unreadable in ["", "token", "not a token", "{\"payload\":\"e30\"}"] {
        assert_eq!(
            world.verify(unreadable, "t").await,
            Err(ProofError::Unreadable),
            "{unreadable}"
        );
    }
    for refused in ["a.b", "a.b.c", "a.b.c.d", "e30.e30.e30"] {
        assert_eq!(world.verify(refused, "t").await, Err(ProofError::Failed), "{refused}");
    }
    let mut request = world.request("t");
    request.body.scope.push(json!({"id": 1}));
    let verdict = world
        .verifier
        .verify(&world.token("t", user()), &request, world.clock.now())
        .await;
    assert_eq!(
        verdict,
        Err(ProofError::ResolverFault),
        "a credential nobody judges must not be believed"
    );
}

#[tokio::test]
async fn zk34_the_official_keys_are_the_rule() {
    let (maker, node) = (Maker::new(1), Script::new(RIGHT, current()));
    let (resolvers, clock) = resolvers(vec![node.serve().await]);
    let cache = Cache::in_process(Arc::clone(&clock) as Arc<dyn Clock>);
    let verifier = ZkVerifier::new(Arc::new(resolvers), cache);
    let world = World {
        maker,
        node,
        clock,
        verifier,
    };
    assert_eq!(
        world.verify(&world.token("t", user()), "t").await,
        Err(ProofError::Failed)
    );
    assert_eq!(world.node.asked(), (0, 0));
}

#[tokio::test]
async fn zk34_who_finds_no_processor_in_time_is_told_so() {
    let (resolvers, clock) = resolvers(Vec::new());
    let cache = Cache::in_process(clock as Arc<dyn Clock>);
    let mut verifier = ZkVerifier::new(Arc::new(resolvers), cache);
    verifier.pool = BlockingPool::new(1);
    assert_eq!(verifier.run(|| 7).await, Some(7));
    let permit = verifier.pool.acquire().await;
    assert_eq!(verifier.run(|| 7).await, None);
    drop(permit);
    assert_eq!(verifier.run(|| 7).await, Some(7));
}

#[tokio::test]
async fn zk60_zk75_a_required_credential_is_missed_and_one_that_cannot_be_judged_stops_logins() {
    let settings = gw_zk::query::Settings {
        verifier: VERIFIER,
        circuit: "credentialAtomicQueryMTPV2",
        issuers: &[VERIFIER.to_owned()],
        context: "https://schemas.invalid/person",
        type_name: "Person",
        file: br#"{"age":{"$gt":17}}"#,
        split: false,
        nullifier_session: None,
    };
    let schema = json!({"@context": {"Person": {"@id": "urn:p", "@context": {
        "age": {"@id": "urn:age", "@type": "http://www.w3.org/2001/XMLSchema#integer"}}}}});
    let config = crate::HumanityConfig {
        query: gw_zk::query::CredentialQuery::new(&settings).unwrap(),
        schema: Some(schema.to_string().into_bytes()),
        schema_sha256: None,
        ipfs_gateway: "https://gateway.invalid".to_owned(),
        nullifier_session: None,
    };
    let humanity = Arc::new(Humanity::new(config).unwrap());
    let mut world = World::start(current()).await;
    world.verifier = world.verifier.with_humanity(Some(Arc::clone(&humanity)));
    let token = world.token("t", user());
    assert_eq!(
        world.verify(&token, "t").await,
        Err(ProofError::ResolverFault),
        "the schema is not at hand"
    );
    humanity.load().await.unwrap();
    // The entry with id 1 in the message was not requested, so it counts as absent.
    assert_eq!(world.verify(&token, "t").await, Err(ProofError::HumanityMissing));
    let mut request = world.request("t");
    request.body.scope = humanity.query().scope().to_vec();
    let verdict = world.verifier.verify(&token, &request, world.clock.now()).await;
    assert_eq!(verdict, Err(ProofError::Failed), "asked for, it is no proof");
}
