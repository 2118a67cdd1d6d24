//! The authorization request that a wallet answers (ZK-1 to ZK-5).

use gw_http::{AllowedOrigins, Origin};
use gw_types::{Entropy, Timestamp};
use gw_zk::circuit::Circuit;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

const TYP: &str = "application/iden3comm-plain-json";
const TYPE: &str = "https://iden3-communication.io/authorization/1.0/request";
/// Ten minutes, like the session.
const LIFE: i64 = 600;

/// The verifier's DID in a development setup that configures none (ZK-5).
pub(crate) const PLACEHOLDER_VERIFIER: &str = "did:pkh:eip155:1:0x0000000000000000000000000000000000000000";

/// The request message; the proof must answer exactly this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AuthorizationRequest {
    /// Message id.
    pub id: String,
    /// Thread id; equals `id`. It ties the proof to the session: without a credential query nothing else does.
    pub thid: String,
    /// The verifier's DID.
    pub from: String,
    /// Media type.
    pub typ: Cow<'static, str>,
    /// Protocol message.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// The request itself.
    pub body: RequestBody,
    /// Seconds since 1970.
    pub created_time: i64,
    /// Seconds since 1970.
    pub expires_time: i64,
}

/// The body of an authorization request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RequestBody {
    /// Where the wallet posts its proof.
    #[serde(rename = "callbackUrl")]
    #[schema(rename = "callbackUrl")]
    pub callback_url: String,
    /// Shown to the user: host, time, and a code that the page shows too.
    pub reason: String,
    /// A message to sign; always empty.
    pub message: String,
    /// Credential queries; `[]`, never null.
    #[schema(value_type = Vec<Object>)]
    pub scope: Vec<Value>,
    /// Accepted envelopes.
    pub accept: Vec<Cow<'static, str>>,
}

/// The values that a request is made of.
#[derive(Debug)]
pub(crate) struct RequestFacts<'a> {
    pub(crate) verifier: &'a str,
    /// The base URL at which the wallet reaches the gateway, from [`callback_base`].
    pub(crate) base: &'a str,
    pub(crate) session: uuid::Uuid,
    /// The credential queries; empty on Path A.
    pub(crate) scope: &'a [Value],
    /// IDP_AUTH_CIRCUITS.
    pub(crate) circuits: &'a [Circuit],
    pub(crate) now: Timestamp,
}

impl AuthorizationRequest {
    pub(crate) fn new(facts: &RequestFacts<'_>, entropy: &dyn Entropy) -> Self {
        let id = entropy.uuid().to_string();
        let created = facts.now.secs();
        Self {
            thid: id.clone(),
            id,
            from: facts.verifier.to_owned(),
            typ: TYP.into(),
            kind: TYPE.into(),
            body: RequestBody {
                callback_url: format!("{}/auth/callback?session={}", facts.base, facts.session),
                reason: reason(facts, entropy),
                message: String::new(),
                scope: facts.scope.to_vec(),
                accept: vec![profile(facts.circuits).into()],
            },
            created_time: created,
            expires_time: created.saturating_add(LIFE),
        }
    }
}

/// The only accepted envelope (ZK-3).
fn profile(circuits: &[Circuit]) -> String {
    let circuits: Vec<&str> = circuits.iter().map(|circuit| circuit.id()).collect();
    format!(
        "iden3comm/v1;env=application/iden3-zkp-json;circuitId={};alg=groth16",
        circuits.join(",")
    )
}

/// Names host, time and a code, so that the user can recognize a stranger's QR code (spec/10 section 10).
fn reason(facts: &RequestFacts<'_>, entropy: &dyn Entropy) -> String {
    let host = facts.base.split_once("://").map_or(facts.base, |(_, host)| host);
    let minutes = facts.now.secs().rem_euclid(86_400) / 60;
    let mut chance = [0u8; 8];
    entropy.fill(&mut chance);
    let code = u64::from_le_bytes(chance) % 100;
    format!(
        "Log in to {host} at {:02}:{:02} UTC, code {code:02}",
        minutes / 60,
        minutes % 60
    )
}

/// The base URL of the wallet's callback (ZK-4). It never depends on headers; the page may choose it, within limits.
///
/// In production the page may choose only an allowed origin. In development a loopback page gets BASE_URL, since the
/// wallet runs on another machine; a page on another host gets that host with the port of BASE_URL.
pub(crate) fn callback_base(requested: Option<&str>, base_url: &str, own: &AllowedOrigins, production: bool) -> String {
    let Some(origin) = requested.and_then(|url| Origin::from_url(url).ok()) else {
        return base_url.to_owned();
    };
    if production {
        return if own.is_own(&origin) {
            origin.as_str().to_owned()
        } else {
            base_url.to_owned()
        };
    }
    if origin.is_loopback() {
        return base_url.to_owned();
    }
    match (origin.without_port(), own.base.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => origin.as_str().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_types::testing::SeededEntropy;

    const BASE: &str = "https://gate.example";

    fn request() -> AuthorizationRequest {
        let facts = RequestFacts {
            verifier: "did:iden3:privado:main:2ScrbEuw9jLXMapW3DELXBbDco5EURzJZRN1tYj7L7",
            base: BASE,
            session: uuid::Uuid::from_u128(7),
            scope: &[],
            circuits: &[Circuit::AuthV2],
            now: Timestamp::from_secs(1_700_000_040),
        };
        AuthorizationRequest::new(&facts, &SeededEntropy::default())
    }

    #[test]
    fn zk1_zk3_zk4_the_message_has_the_agreed_shape() {
        let json = serde_json::to_value(request()).unwrap();
        let id = json["id"].as_str().unwrap();
        assert_eq!(uuid::Uuid::parse_str(id).unwrap().get_version_num(), 4);
        assert_eq!(json["thid"], json["id"]);
        assert_eq!(json["typ"], "application/iden3comm-plain-json");
        assert_eq!(json["type"], "https://iden3-communication.io/authorization/1.0/request");
        assert_eq!(
            json["from"],
            "did:iden3:privado:main:2ScrbEuw9jLXMapW3DELXBbDco5EURzJZRN1tYj7L7"
        );
        assert_eq!(
            json["body"]["callbackUrl"],
            "https://gate.example/auth/callback?session=00000000-0000-0000-0000-000000000007"
        );
        assert_eq!(json["body"]["scope"], serde_json::json!([]));
        assert_eq!(
            json["body"]["accept"],
            serde_json::json!(["iden3comm/v1;env=application/iden3-zkp-json;circuitId=authV2;alg=groth16"])
        );
        assert_eq!(
            json["expires_time"].as_i64().unwrap() - json["created_time"].as_i64().unwrap(),
            600
        );
        assert!(
            json["body"]["reason"]
                .as_str()
                .unwrap()
                .starts_with("Log in to gate.example at 22:14 UTC, code ")
        );
    }

    #[test]
    fn zk3_further_circuits_stand_in_the_same_profile() {
        let circuits = [Circuit::AuthV2, Circuit::AuthV3, Circuit::AuthV3Small];
        let envelope = "iden3comm/v1;env=application/iden3-zkp-json";
        assert_eq!(
            profile(&circuits),
            format!("{envelope};circuitId=authV2,authV3,authV3-8-32;alg=groth16")
        );
    }

    #[test]
    fn zk1_the_message_fits_a_qr_code() {
        assert!(serde_json::to_string(&request()).unwrap().len() <= 2000);
    }

    #[test]
    fn zk4_only_origins_of_ours_count_in_production() {
        let own = AllowedOrigins {
            base: Origin::from_url(BASE).unwrap(),
            frontend: Some(Origin::from_url("https://app.example").unwrap()),
            listed: vec![Origin::from_url("https://explorer.example").unwrap()],
            any_localhost: false,
        };
        let base = |requested| callback_base(requested, BASE, &own, true);
        assert_eq!(base(None), BASE);
        assert_eq!(base(Some("https://app.example/login")), "https://app.example");
        assert_eq!(base(Some("https://explorer.example")), "https://explorer.example");
        for foreign in [
            "https://evil.example",
            "https://gate.example.evil.example",
            "http://gate.example",
            "nonsense",
        ] {
            assert_eq!(base(Some(foreign)), BASE, "{foreign}");
        }
    }

    #[test]
    fn zk4_development_reaches_this_machine_from_elsewhere() {
        let base_url = "http://localhost:8080";
        let own = AllowedOrigins {
            base: Origin::from_url(base_url).unwrap(),
            frontend: None,
            listed: Vec::new(),
            any_localhost: true,
        };
        let base = |requested| callback_base(Some(requested), base_url, &own, false);
        assert_eq!(base("http://127.0.0.1:3000"), base_url);
        assert_eq!(base("http://192.168.1.5:3000"), "http://192.168.1.5:8080");
        assert_eq!(base("https://tunnel.example"), "https://tunnel.example");
    }
}
