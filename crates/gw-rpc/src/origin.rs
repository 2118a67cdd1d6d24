//! Where a request comes from: client address, correlation id, token, named organization.

use crate::{limits::Party, live::Message, reply::BodyFault, reply::Reply};
use ::http::{HeaderMap, HeaderName, header};
use gw_audit::AuthMethod;
use gw_http::{AddressKey, AuthError, ClientAddress, CorrelationId, Edge, Presented, token::SKEW};
use gw_node::AnswerHold;
use gw_policy::{
    Snapshot,
    access::{Beside, Caller, NamedOrg, Refused, TokenFacts, identify, identify_url},
};
use gw_types::{B256, DenyReason, ExternalId, OrgId, PersonalUrlId, Timestamp, UserId};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

/// The header that names an organization.
const ORG_HEADER: HeaderName = HeaderName::from_static("x-org-id");

/// What is known of a request besides its body.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) client: ClientAddress,
    pub(crate) correlation_id: Option<CorrelationId>,
    pub(crate) auth: AuthMethod,
    pub(crate) named: NamedOrg,
    /// The message of a connection that stays, where there is one: what subscriptions are for.
    pub(crate) message: Option<Arc<Message>>,
    /// What it holds of the budget of answers.
    pub(crate) hold: Arc<AnswerHold>,
    token: Option<TokenFacts>,
    /// When the token ends.
    expires_at: Option<Timestamp>,
    url: Option<Url>,
    /// Whose call an administrator wants to see the outcome of (HD7).
    shoulder: Option<(UserId, Beside)>,
}

/// The personal URL a request came by. Of its secret only the hash is kept.
#[derive(Clone, Debug)]
struct Url {
    secret: B256,
    id: PersonalUrlId,
    subject: ExternalId,
}

impl Origin {
    /// From somewhere, by nobody yet.
    pub(crate) fn new(client: ClientAddress, correlation_id: Option<CorrelationId>) -> Self {
        let (auth, named) = (AuthMethod::Anonymous, NamedOrg::Unnamed);
        Self {
            client,
            correlation_id,
            auth,
            named,
            message: None,
            hold: Arc::default(),
            token: None,
            expires_at: None,
            url: None,
            shoulder: None,
        }
    }

    /// Makes it nobody's request: an administrator looks over this user's shoulder.
    pub(crate) fn look_over(&mut self, user: UserId, beside: Beside) {
        self.named = NamedOrg::Org(beside.org());
        self.shoulder = Some((user, beside));
    }

    /// Reads the token (J1, decision 4): a bad one is refused on every method, a bad cookie is nobody's. Whom it names
    /// is looked up for each call anew (HD20).
    pub(crate) fn authenticate(&mut self, edge: &Edge, headers: &HeaderMap, now: Timestamp) -> Result<(), AuthError> {
        // An empty header is how some clients say "none".
        if headers.get(header::AUTHORIZATION).is_some_and(|value| value.is_empty()) {
            return Ok(());
        }
        let (claims, auth) = match Presented::of(headers, &edge.origins)? {
            Presented::Nothing => return Ok(()),
            Presented::Bearer(token) => (edge.tokens.access(token, now)?, AuthMethod::Bearer),
            Presented::Cookie(token) => match edge.tokens.access(token, now) {
                Ok(claims) => (claims, AuthMethod::Cookie),
                Err(_) => return Ok(()),
            },
        };
        self.token = Some(claims.facts());
        self.expires_at = Some(claims.expires_at);
        self.auth = auth;
        Ok(())
    }

    /// Makes the request one by the owner of a personal URL, in its organization; whether there is such a URL.
    pub(crate) fn come_by(&mut self, snapshot: &Snapshot, secret: &str, now: Timestamp) -> bool {
        let secret = B256::from_slice(&Sha256::digest(secret.as_bytes()));
        let Some(url) = snapshot.personal_url(secret) else {
            return false;
        };
        let Some(user) = snapshot.user(url.user) else {
            return false;
        };
        // Who is shut out meets the denial of every method, as with a token.
        if matches!(
            identify_url(snapshot, secret, now),
            Err(Refused::Revoked | Refused::UnknownUser)
        ) {
            return false;
        }
        self.auth = AuthMethod::PersonalUrl;
        self.named = NamedOrg::Org(url.org);
        self.url = Some(Url {
            secret,
            id: url.id,
            subject: user.external_id.clone(),
        });
        true
    }

    /// The personal URL it came by.
    pub(crate) fn url_id(&self) -> Option<PersonalUrlId> {
        self.url.as_ref().map(|url| url.id)
    }

    /// Reads the one token of a connection that stays (WS-1): the header decides alone, then the subprotocol. Never the
    /// cookie: any page could open the connection, and its browser would send one along.
    pub(crate) fn authenticate_connection(
        &mut self,
        edge: &Edge,
        headers: &HeaderMap,
        protocol: Option<&str>,
        now: Timestamp,
    ) -> Result<(), AuthError> {
        let header = headers.get(header::AUTHORIZATION).filter(|value| !value.is_empty());
        let token = match (header, protocol) {
            (Some(_), _) => match Presented::of(headers, &edge.origins)? {
                Presented::Bearer(token) => token,
                Presented::Nothing | Presented::Cookie(_) => return Err(AuthError::Format),
            },
            (None, Some(token)) => token,
            (None, None) => return Ok(()),
        };
        self.present(edge, token, now)
    }

    /// Makes the request one by the bearer of this token.
    pub(crate) fn present(&mut self, edge: &Edge, token: &str, now: Timestamp) -> Result<(), AuthError> {
        let claims = edge.tokens.access(token, now)?;
        self.token = Some(claims.facts());
        self.expires_at = Some(claims.expires_at);
        self.auth = AuthMethod::Bearer;
        Ok(())
    }

    /// The same, for one message of its connection.
    pub(crate) fn with_message(&self, message: &Arc<Message>) -> Self {
        Self {
            message: Some(Arc::clone(message)),
            hold: Arc::default(),
            ..self.clone()
        }
    }

    /// Whether its token is still one, by its own time.
    pub(crate) fn is_in_time(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| now < end.plus(SKEW))
    }

    /// Reads the named organization (O2). Whether it exists is judged later; that two are named is an error here.
    pub(crate) fn name_org(&mut self, path: Option<&str>, headers: &HeaderMap) -> Result<(), BodyFault> {
        let header = headers
            .get_all(ORG_HEADER)
            .iter()
            .map(|value| named(value.to_str().unwrap_or_default()));
        for org in path.map(named).into_iter().chain(header) {
            if self.named != NamedOrg::Unnamed && self.named != org {
                return Err(BodyFault::TwoOrganizations);
            }
            self.named = org;
        }
        Ok(())
    }

    /// Who that is in this snapshot (A9, A10).
    pub(crate) fn caller(&self, snapshot: &Snapshot, now: Timestamp) -> Result<Caller, Reply> {
        if let Some((user, beside)) = &self.shoulder {
            let user = snapshot
                .user(*user)
                .ok_or_else(|| Reply::denied(DenyReason::UnknownUser, None))?;
            return Ok(Caller::Beside(Arc::clone(user), *beside));
        }
        if let Some(url) = &self.url {
            return match identify_url(snapshot, url.secret, now) {
                Ok((user, url)) => Ok(Caller::Url(user, url)),
                Err(Refused::Revoked | Refused::UnknownUser) => Err(Reply::denied(DenyReason::AuthRequired, None)),
                Err(Refused::Banned | Refused::TenantNotAllowed) => Err(Reply::denied(DenyReason::Banned, None)),
            };
        }
        let Some(token) = &self.token else {
            return Ok(Caller::Anonymous);
        };
        match identify(snapshot, token) {
            Ok(user) => Ok(Caller::User(user)),
            Err(Refused::Revoked) if self.auth == AuthMethod::Cookie => Ok(Caller::Anonymous),
            Err(Refused::Revoked) => Err(Reply::Unauthorized(AuthError::Revoked)),
            Err(Refused::UnknownUser) => Err(Reply::denied(DenyReason::UnknownUser, None)),
            // One answer for all who are shut out; the closed list of reasons knows no finer one.
            Err(Refused::Banned | Refused::TenantNotAllowed) => Err(Reply::denied(DenyReason::Banned, None)),
        }
    }

    /// The name in the token.
    pub(crate) fn subject(&self) -> Option<&ExternalId> {
        let by_url = || self.url.as_ref().map(|url| &url.subject);
        self.token.as_ref().map(|token| &token.subject).or_else(by_url)
    }

    /// Whose calls in flight this one counts to.
    pub(crate) fn party(&self, caller: &Caller) -> Party {
        match caller {
            Caller::User(user) => Party::User(user.id),
            Caller::Url(_, url) => Party::Url(url.id),
            // Who asks pays.
            Caller::Beside(_, beside) => Party::User(beside.operator()),
            Caller::Anonymous => Party::Address(AddressKey::from(self.client)),
        }
    }
}

/// Only UUIDs name organizations (decision 40).
fn named(text: &str) -> NamedOrg {
    text.parse::<OrgId>().map_or(NamedOrg::Unreadable, NamedOrg::Org)
}
