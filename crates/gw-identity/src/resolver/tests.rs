//! Resolvers against small HTTP servers with scripted answers.

use super::*;
use axum::{Json, Router, extract::State as With, routing::post};
use gw_types::{U256, testing::ManualClock};
use gw_zk::did::Did;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU32, Ordering};

/// A scripted node, with counts of its requests for the chain id and for the contract.
#[derive(Clone)]
pub(crate) struct Script(Arc<Said>);

struct Said {
    chain: &'static str,
    call: Mutex<Value>,
    chains: AtomicU32,
    calls: AtomicU32,
}

impl Script {
    pub(crate) fn new(chain: &'static str, call: Value) -> Self {
        Self(Arc::new(Said {
            chain,
            call: Mutex::new(call),
            chains: AtomicU32::new(0),
            calls: AtomicU32::new(0),
        }))
    }

    pub(crate) fn asked(&self) -> (u32, u32) {
        (
            self.0.chains.load(Ordering::Relaxed),
            self.0.calls.load(Ordering::Relaxed),
        )
    }

    /// Sets the node's answer to contract calls.
    pub(crate) fn say(&self, call: Value) {
        *self.0.call.lock().unwrap() = call;
    }

    pub(crate) async fn serve(&self) -> Uri {
        let answer = async |With(script): With<Self>, Json(asked): Json<Value>| {
            let script = &script.0;
            if asked["method"] == "eth_chainId" {
                script.chains.fetch_add(1, Ordering::Relaxed);
                return Json(json!({"jsonrpc": "2.0", "id": 1, "result": script.chain}));
            }
            script.calls.fetch_add(1, Ordering::Relaxed);
            Json(script.call.lock().unwrap().clone())
        };
        let app = Router::new().route("/", post(answer)).with_state(self.clone());
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        format!("http://{address}/").parse().unwrap()
    }
}

pub(crate) const RIGHT: &str = "0x5208";

pub(crate) fn user() -> Id {
    Did::parse("did:iden3:privado:main:2SeytAhJWLi5a68GX2bBmFNoaFCbRvyfLU6LUXBMfK")
        .unwrap()
        .id()
}

pub(crate) fn returned(words: &[u64]) -> Value {
    let bytes: Vec<u8> = words
        .iter()
        .flat_map(|word| U256::from(*word).to_be_bytes::<32>())
        .collect();
    json!({"result": alloy_primitives::hex::encode_prefixed(bytes)})
}

pub(crate) fn current() -> Value {
    returned(&[7, 0, 1, 0, 1, 0])
}

pub(crate) fn root() -> Fr {
    Fr::from(7u8)
}

pub(crate) fn resolvers(nodes: Vec<Uri>) -> (Resolvers, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    let row = ResolverConfig {
        name: "idp:main".to_owned(),
        network: Network::from_key("privado:main").unwrap(),
        contract: Address::repeat_byte(1),
        nodes,
    };
    (Resolvers::new(vec![row], Arc::clone(&clock) as Arc<dyn Clock>), clock)
}

#[tokio::test]
async fn zk52_a_current_root_is_asked_for_again_after_150_seconds() {
    let node = Script::new(RIGHT, current());
    let (resolvers, clock) = resolvers(vec![node.serve().await]);
    let first = resolvers.root(user(), root()).await.unwrap();
    assert_eq!(
        first,
        Fact {
            value: Root::Current,
            read: Timestamp::from_secs(1_700_000_000)
        }
    );
    clock.pass(149);
    assert_eq!(resolvers.root(user(), root()).await, Ok(first));
    assert_eq!(node.asked(), (1, 1));
    clock.pass(1);
    assert_ne!(resolvers.root(user(), root()).await, Ok(first));
    assert_eq!(node.asked(), (1, 2));
    // The chain id is checked again after an hour.
    clock.pass(3600);
    resolvers.root(user(), root()).await.unwrap();
    assert_eq!(node.asked(), (2, 3));
}

#[tokio::test]
async fn di5_the_second_node_is_asked_when_the_first_fails() {
    let revert = json!({"error": {"code": 3, "message": "execution reverted", "data": "0x12345678"}});
    let faults = [
        Script::new("0x1", current()).serve().await,
        Script::new(RIGHT, json!({"error": {"code": -32005, "message": "limit exceeded"}}))
            .serve()
            .await,
        Script::new(RIGHT, revert).serve().await,
        Script::new(RIGHT, returned(&[])).serve().await,
        "http://127.0.0.1:1/".parse().unwrap(),
    ];
    for fault in faults {
        let good = Script::new(RIGHT, current());
        let (with_second, _) = resolvers(vec![fault.clone(), good.serve().await]);
        assert_eq!(
            with_second.root(user(), root()).await.map(|fact| fact.value),
            Ok(Root::Current),
            "{fault}"
        );
        let (alone, _) = resolvers(vec![fault.clone()]);
        assert_eq!(
            alone.root(user(), root()).await,
            Err(StateError::Fault.into()),
            "{fault}"
        );
    }
}

#[tokio::test]
async fn di6_what_the_contract_does_not_know_is_no_fault() {
    let node = Script::new(
        RIGHT,
        json!({"error": {"code": 3, "message": "", "data": "0xf95411d2"}}),
    );
    let never = Script::new(RIGHT, current());
    let (resolvers, _) = resolvers(vec![node.serve().await, never.serve().await]);
    assert_eq!(resolvers.root(user(), root()).await, Err(StateError::Unknown.into()));
    assert_eq!(never.asked(), (0, 0));
    // "Unknown" is not remembered: the root may be published the next moment.
    node.say(current());
    assert_eq!(
        resolvers.root(user(), root()).await.map(|fact| fact.value),
        Ok(Root::Current)
    );
    node.say(json!({"error": {"code": 3, "message": "", "data": "0x9223dc39"}}));
    assert_eq!(resolvers.state(user(), root()).await, Err(StateError::Unknown.into()));
}

#[tokio::test]
async fn zk50_an_unregistered_network_causes_no_call() {
    let node = Script::new(RIGHT, current());
    let (resolvers, _) = resolvers(vec![node.serve().await]);
    let stranger = Did::parse("did:iden3:polygon:amoy:x7Z95VkUuyo6mqraJw2VGwCfqTzdqhM1RVjRHzcpK")
        .unwrap()
        .id();
    assert_eq!(resolvers.root(stranger, root()).await, Err(LookupError::NoResolver));
    assert_eq!(resolvers.name_of(stranger), None);
    assert_eq!(resolvers.name_of(user()), Some("idp:main"));
    assert_eq!(node.asked(), (0, 0));
}
