//! The state of the tests' routers: an [`HttpContext`] over a snapshot with a few users.

use axum::{Router, body::Body, extract::ConnectInfo};
use gw_http::{
    AccessClaims, AdminGate, AllowedOrigins, Amr, HttpContext, Origin, PolicySource, PrivateNetwork, TokenCodec,
    TokenSecrets, TrustedProxies,
};
use gw_policy::{
    Change, Snapshot,
    snapshot::{Group, GroupAccess, Membership, Organization, User},
};
use gw_types::testing::{FixedEntropy, ManualClock};
use gw_types::{
    Claim, Claims, Clock, Epoch, ExternalId, GroupId, MembershipId, OrgId, Seconds, Secret, SessionId, Timestamp,
    TokenId, UserId,
};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::Value;
use std::{net::SocketAddr, sync::Arc};
use tower::ServiceExt as _;

pub(crate) const BASE: &str = "https://gate.example";
pub(crate) const ADMIN_TOKEN: &str = "the admin token of thirty-two chars";
pub(crate) const OPERATOR_TOKEN: &str = "the operator's token, another one";
pub(crate) const BANK: OrgId = OrgId::fixed(0xB1);
pub(crate) const FUND: OrgId = OrgId::fixed(0xF1);

/// Users by name, with their ids. The name describes the user's role.
const USERS: [(&str, u128); 6] = [
    ("nobody", 1),
    ("flagged", 2),
    ("claimed", 3),
    ("reader", 4),
    ("banned", 5),
    ("former", 6),
];

pub(crate) struct World {
    pub(crate) http_context: Arc<HttpContext>,
    pub(crate) clock: Arc<ManualClock>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(TrustedProxies::default())
    }

    pub(crate) fn with(proxies: TrustedProxies) -> Self {
        let clock = Arc::new(ManualClock::default());
        let secrets = |text: &str| TokenSecrets {
            current: Secret::new(text),
            previous: Vec::new(),
        };
        let snapshot = Arc::new(snapshot(clock.now()));
        let http_context = Arc::new(HttpContext {
            tokens: TokenCodec::new(BASE, &secrets("access"), &secrets("refresh")).unwrap(),
            policy: PolicySource::new(move || Some(Arc::clone(&snapshot))),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            entropy: Arc::new(FixedEntropy(7)),
            origins: Arc::new(AllowedOrigins {
                base: Origin::from_url(BASE).unwrap(),
                frontend: None,
                listed: vec![Origin::from_url("https://explorer.example").unwrap()],
                any_localhost: false,
            }),
            proxies,
            network: PrivateNetwork::default(),
            admin: AdminGate::new(Secret::new(ADMIN_TOKEN), None, Some(Secret::new(OPERATOR_TOKEN)), true),
            production: true,
        });
        Self { http_context, clock }
    }

    /// An access token of a user, or of a name without a user row.
    pub(crate) fn token(&self, name: &str) -> String {
        let now = self.clock.now();
        let claims = AccessClaims {
            subject: ExternalId::new(&format!("did:test:{name}")).unwrap(),
            token: TokenId::fixed(if name == "revoked" { 0xDEAD } else { 1 }),
            session: SessionId::fixed(2),
            issued_at: now,
            expires_at: now.plus(Seconds(300)),
            kyc: false,
            amr: Amr::Zk,
        };
        self.http_context.tokens.sign_access(&claims).expose().to_owned()
    }
}

/// A snapshot with one bank and one fund. A user's role follows from the name.
fn snapshot(now: Timestamp) -> Snapshot {
    let mut changes = Vec::new();
    for (id, slug) in [(BANK, "bank"), (FUND, "fund")] {
        let org = Organization {
            id,
            slug: slug.into(),
            name: slug.into(),
            is_system: false,
        };
        changes.push(Change::Organization(id, Some(org)));
    }
    for (name, n) in USERS {
        let user = User {
            id: UserId::fixed(n),
            external_id: ExternalId::new(&format!("did:test:{name}")).unwrap(),
            kyc: false,
            banned: name == "banned",
            tenant: None,
            tokens_valid_from: None,
        };
        changes.push(Change::User(user.id, Some(user)));
    }
    for (name, n) in USERS {
        let org = if name == "reader" { FUND } else { BANK };
        let group = Group {
            id: GroupId::fixed(n),
            org,
            slug: name.into(),
            is_org_admin: name == "flagged" || name == "former",
            is_org_readonly_admin: name == "reader",
            is_system: false,
        };
        let claims = if name == "claimed" {
            Claims::NONE.with(Claim::Admin)
        } else {
            Claims::NONE
        };
        let access = GroupAccess {
            group: group.id,
            methods: gw_evm::MethodSet::EMPTY,
            custom_methods: gw_evm::CustomMethodNames::default(),
            claims,
            expires_at: None,
            upstream_key: None,
        };
        let membership = Membership {
            id: MembershipId::fixed(n),
            user: UserId::fixed(n),
            group: group.id,
            expires_at: (name == "former").then_some(now),
            state: gw_policy::snapshot::MembershipState::Accepted,
            since: now,
        };
        changes.push(Change::Group(group.id, Some(group)));
        changes.push(Change::GroupAccess(access.group, Some(access)));
        changes.push(Change::Membership(membership.id, Some(membership)));
    }
    let revoked = TokenId::fixed(0xDEAD);
    let revocation = gw_policy::snapshot::Revocation {
        id: revoked,
        until: now.plus(Seconds(300)),
    };
    changes.push(Change::Revocation(revoked, Some(revocation)));
    Snapshot::default().apply(Epoch(1), changes)
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn refusal(&self) -> (u16, &str) {
        (self.status.as_u16(), self.body["error"].as_str().unwrap_or_default())
    }
}

/// Sends a request from `peer`.
pub(crate) async fn send(app: &Router, peer: &str, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let request = headers
        .iter()
        .fold(Request::builder().method(method).uri(path), |request, (name, value)| {
            request.header(*name, *value)
        });
    let mut request = request.body(Body::empty()).unwrap();
    request
        .extensions_mut()
        .insert(ConnectInfo(SocketAddr::new(peer.parse().unwrap(), 4711)));
    let (parts, body) = app.clone().oneshot(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer {
        status: parts.status,
        headers: parts.headers,
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    }
}
