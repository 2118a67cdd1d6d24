//! What a directory's token must say before anybody is let in by it (DS-4, DS-5).
//!
//! Pure: keys, expectations and time are arguments, and the answer names what was wrong, for our log only. Invariant:
//! the algorithm is RS256 and the key one of ours to know; neither is ever taken from the token.

use super::keys::KeySet;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gw_types::{ExternalId, Seconds, Timestamp};
use serde::Deserialize;
use subtle::ConstantTimeEq;
use uuid::Uuid;

/// How far the directory's clock may be from ours.
const SKEW: Seconds = Seconds(60);
/// Longer texts are no tokens: the directory's own limit on claims keeps them well below.
const MAX_LEN: usize = 16 * 1024;
/// Who signs the older form of access tokens, whatever the authority.
const V1_ISSUER: &str = "https://sts.windows.net";

/// What tokens are measured by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// DIRECTORY_AUTHORITY_HOST, without a slash at its end.
    pub authority: String,
    /// DIRECTORY_CLIENT_ID: for whom id tokens are.
    pub client_id: String,
    /// DIRECTORY_SP_AUDIENCE: for whom service principals' tokens are.
    pub sp_audience: String,
    /// DIRECTORY_SP_CLIENTS: applications that may come; empty lets all of an allowed tenant.
    pub sp_clients: Vec<String>,
    /// DIRECTORY_SP_ROLE: the application role they must hold.
    pub sp_role: Option<String>,
}

/// Whom a token stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The tenant that vouches.
    pub tenant: Uuid,
    /// `directory:<oid>`
    pub subject: ExternalId,
}

/// What is wrong with a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Fault {
    /// No compact JWT with the claims it needs.
    #[error("malformed")]
    Malformed,
    /// Another algorithm than RS256, or a header that wants something special.
    #[error("another algorithm than RS256")]
    Algorithm,
    /// Signed with a key we do not know, perhaps a new one.
    #[error("an unknown key")]
    UnknownKey,
    /// Not signed with the key it names.
    #[error("a wrong signature")]
    Signature,
    /// Over.
    #[error("expired")]
    Expired,
    /// Not valid yet.
    #[error("not valid yet")]
    NotYet,
    /// The tenant id is no UUID (DS-7).
    #[error("a tenant id that is no UUID")]
    TenantId,
    /// Not from the tenant it names.
    #[error("another issuer")]
    Issuer,
    /// Signed with a key of another tenant.
    #[error("the key of another issuer")]
    KeyIssuer,
    /// For somebody else.
    #[error("another audience")]
    Audience,
    /// Not of the login it is shown for, or an id token where none belongs.
    #[error("a wrong nonce")]
    Nonce,
    /// The object id names nobody.
    #[error("an object id that names nobody")]
    Subject,
    /// A person's token where a machine's belongs.
    #[error("not an application's own token")]
    NotAppOnly,
    /// An application that is not listed.
    #[error("an application that is not listed")]
    Client,
    /// An application without the wanted role.
    #[error("an application without the role")]
    Role,
}

/// Whose id token of the login with this nonce it is (DS-4).
pub fn id_token(text: &str, keys: &KeySet, rules: &Rules, nonce: &str, now: Timestamp) -> Result<Identity, Fault> {
    let (claims, key_issuer) = open(text, keys)?;
    claims.check_time(now)?;
    claims.iat.ok_or(Fault::Malformed)?;
    let tenant = claims.tenant()?;
    let issuer = rules.v2_issuer(tenant);
    if claims.iss != issuer {
        return Err(Fault::Issuer);
    }
    rules.check_key(key_issuer.as_deref(), tenant)?;
    if claims.audience()? != rules.client_id {
        return Err(Fault::Audience);
    }
    let sent = claims.nonce.as_deref().ok_or(Fault::Nonce)?;
    if nonce.is_empty() || !bool::from(sent.as_bytes().ct_eq(nonce.as_bytes())) {
        return Err(Fault::Nonce);
    }
    Ok(Identity {
        tenant,
        subject: claims.subject()?,
    })
}

/// Which application's own access token for us it is (DS-5), in the older (v1) or the newer (v2) form.
pub fn service_principal(text: &str, keys: &KeySet, rules: &Rules, now: Timestamp) -> Result<Identity, Fault> {
    let (claims, key_issuer) = open(text, keys)?;
    claims.check_time(now)?;
    let tenant = claims.tenant()?;
    let client = if claims.iss == rules.v2_issuer(tenant) {
        claims.azp.as_deref()
    } else if claims.iss == format!("{V1_ISSUER}/{tenant}/") {
        claims.appid.as_deref()
    } else {
        return Err(Fault::Issuer);
    };
    rules.check_key(key_issuer.as_deref(), tenant)?;
    if !same_audience(claims.audience()?, &rules.sp_audience) {
        return Err(Fault::Audience);
    }
    // An id token is never a machine's access token, whoever it is for.
    if claims.nonce.is_some() {
        return Err(Fault::Nonce);
    }
    let app_only = match claims.idtyp.as_deref() {
        Some(kind) => kind == "app",
        None => claims
            .sub
            .as_deref()
            .is_some_and(|sub| Some(sub) == claims.oid.as_deref()),
    };
    if claims.scp.is_some() || !app_only {
        return Err(Fault::NotAppOnly);
    }
    let client = client.filter(|client| !client.is_empty()).ok_or(Fault::Client)?;
    if !rules.sp_clients.is_empty()
        && !rules
            .sp_clients
            .iter()
            .any(|listed| listed.eq_ignore_ascii_case(client))
    {
        return Err(Fault::Client);
    }
    if let Some(role) = &rules.sp_role
        && !claims.roles.as_deref().is_some_and(|held| held.contains(role))
    {
        return Err(Fault::Role);
    }
    Ok(Identity {
        tenant,
        subject: claims.subject()?,
    })
}

impl Rules {
    /// The issuer of a tenant's tokens, also where the login went through `common` or `organizations`.
    fn v2_issuer(&self, tenant: Uuid) -> String {
        format!("{}/{tenant}/v2.0", self.authority)
    }

    /// A key that says for whom it signs must sign for this tenant.
    fn check_key(&self, template: Option<&str>, tenant: Uuid) -> Result<(), Fault> {
        let fits = |template: &str| template.replace("{tenantid}", &tenant.to_string()) == self.v2_issuer(tenant);
        if template.is_none_or(fits) {
            Ok(())
        } else {
            Err(Fault::KeyIssuer)
        }
    }
}

/// `api://<guid>` and `<guid>` are one audience: older tokens carry the one, newer ones the other.
fn same_audience(one: &str, other: &str) -> bool {
    let guid = |text: &str| Uuid::try_parse(text.strip_prefix("api://").unwrap_or(text)).ok();
    one == other || guid(one).is_some_and(|one| Some(one) == guid(other))
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    crit: Option<serde_json::Value>,
}

/// The claims we look at; a member that stands twice makes the token malformed.
#[derive(Deserialize)]
struct Claims {
    iss: String,
    aud: Audience,
    exp: i64,
    nbf: Option<i64>,
    iat: Option<i64>,
    nonce: Option<String>,
    tid: Option<String>,
    oid: Option<String>,
    sub: Option<String>,
    scp: Option<serde_json::Value>,
    idtyp: Option<String>,
    appid: Option<String>,
    azp: Option<String>,
    roles: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    /// A token for several services could be shown to us by one of the others.
    List(Vec<String>),
}

/// The key that a token names, unread otherwise.
pub(super) fn key_id(text: &str) -> Option<String> {
    let header = text.split_once('.')?.0;
    serde_json::from_slice::<Header>(&URL_SAFE_NO_PAD.decode(header).ok()?)
        .ok()?
        .kid
}

/// The claims of a token signed with a known key, and for whom that key signs.
fn open(text: &str, keys: &KeySet) -> Result<(Claims, Option<String>), Fault> {
    if text.len() > MAX_LEN {
        return Err(Fault::Malformed);
    }
    let (signed, signature) = text.rsplit_once('.').ok_or(Fault::Malformed)?;
    let (header, payload) = signed.split_once('.').ok_or(Fault::Malformed)?;
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| Fault::Malformed);
    let header: Header = serde_json::from_slice(&decode(header)?).map_err(|_| Fault::Malformed)?;
    if header.alg != "RS256" || header.crit.is_some() {
        return Err(Fault::Algorithm);
    }
    let (payload, signature) = (decode(payload)?, decode(signature)?);
    let id = header.kid.ok_or(Fault::Malformed)?;
    let mut known = keys.named(&id).peekable();
    known.peek().ok_or(Fault::UnknownKey)?;
    let key = known
        .find(|key| key.signed(signed.as_bytes(), &signature))
        .ok_or(Fault::Signature)?;
    let claims = serde_json::from_slice(&payload).map_err(|_| Fault::Malformed)?;
    Ok((claims, key.issuer.clone()))
}

impl Claims {
    fn check_time(&self, now: Timestamp) -> Result<(), Fault> {
        let soon = now.plus(SKEW).secs();
        // Compared as numbers: a far-fetched one must not overflow.
        if self.exp.saturating_add(i64::from(SKEW.0)) <= now.secs() {
            return Err(Fault::Expired);
        }
        if [self.nbf, self.iat].into_iter().flatten().any(|from| from > soon) {
            return Err(Fault::NotYet);
        }
        Ok(())
    }

    fn tenant(&self) -> Result<Uuid, Fault> {
        let text = self.tid.as_deref().ok_or(Fault::TenantId)?;
        // Hyphenated only: issuers are compared with the text made of it.
        let is_plain = text.len() == 36;
        Uuid::try_parse(text)
            .ok()
            .filter(|id| is_plain && !id.is_nil())
            .ok_or(Fault::TenantId)
    }

    fn audience(&self) -> Result<&str, Fault> {
        match &self.aud {
            Audience::One(one) => Ok(one),
            Audience::List(list) => match list.as_slice() {
                [one] => Ok(one),
                _ => Err(Fault::Audience),
            },
        }
    }

    /// The object id is the same in every application of the tenant; the subject is not. It is a GUID, and has one text, so
    /// that no spelling makes a second account.
    fn subject(&self) -> Result<ExternalId, Fault> {
        let oid = self
            .oid
            .as_deref()
            .and_then(|oid| Uuid::try_parse(oid).ok())
            .filter(|oid| !oid.is_nil());
        let oid = oid.ok_or(Fault::Subject)?;
        ExternalId::new(&format!("directory:{oid}")).map_err(|_| Fault::Subject)
    }
}

#[cfg(test)]
mod tests;
