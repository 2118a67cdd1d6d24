//! Checks of a directory's tokens (DS-4, DS-5).
//!
//! Pure: keys, rules and time are arguments. The error says what is wrong, for the log only. Invariant: the algorithm
//! is RS256 and the key is one of the known keys; neither is ever taken from the token.

use super::keys::KeySet;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gw_types::{ExternalId, Seconds, Timestamp};
use serde::Deserialize;
use subtle::ConstantTimeEq;
use uuid::Uuid;

/// Maximum difference between the directory's clock and the gateway's.
const SKEW: Seconds = Seconds(60);
/// Longer texts are rejected: the directory's own limit on claims keeps tokens well below this.
const MAX_LEN: usize = 16 * 1024;
/// The issuer of v1 access tokens, whatever the authority.
const V1_ISSUER: &str = "https://sts.windows.net";

/// The rules that tokens are checked against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// DIRECTORY_AUTHORITY_HOST, without a slash at its end.
    pub authority: String,
    /// DIRECTORY_CLIENT_ID: the audience of id tokens.
    pub client_id: String,
    /// DIRECTORY_SP_AUDIENCE: the audience of service principals' tokens.
    pub sp_audience: String,
    /// DIRECTORY_SP_CLIENTS: the applications that may log in; if empty, all of an allowed tenant.
    pub sp_clients: Vec<String>,
    /// DIRECTORY_SP_ROLE: the application role that they must have.
    pub sp_role: Option<String>,
}

/// The identity in a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The tenant that issued it.
    pub tenant: Uuid,
    /// `directory:<oid>`
    pub subject: ExternalId,
}

/// Why a token is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Fault {
    /// Not a compact JWT with the required claims.
    #[error("malformed")]
    Malformed,
    /// An algorithm other than RS256, or a header with critical extensions.
    #[error("another algorithm than RS256")]
    Algorithm,
    /// Signed with an unknown key, perhaps a new one.
    #[error("an unknown key")]
    UnknownKey,
    /// Not signed with the key it names.
    #[error("a wrong signature")]
    Signature,
    /// Expired.
    #[error("expired")]
    Expired,
    /// Not valid yet.
    #[error("not valid yet")]
    NotYet,
    /// The tenant id is not a UUID (DS-7).
    #[error("a tenant id that is no UUID")]
    TenantId,
    /// Not issued by the tenant that it names.
    #[error("another issuer")]
    Issuer,
    /// Signed with a key of another tenant.
    #[error("the key of another issuer")]
    KeyIssuer,
    /// Issued for another audience.
    #[error("another audience")]
    Audience,
    /// Issued for another login, or an id token where an access token is expected.
    #[error("a wrong nonce")]
    Nonce,
    /// The object id is missing or invalid.
    #[error("an object id that names nobody")]
    Subject,
    /// A user's token where an application's own token is expected.
    #[error("not an application's own token")]
    NotAppOnly,
    /// An application that is not listed.
    #[error("an application that is not listed")]
    Client,
    /// An application without the required role.
    #[error("an application without the role")]
    Role,
}

/// Verifies the id token of the login with this nonce (DS-4).
///
/// # Errors
/// [`Fault`] for the first check that fails; only the log shows it.
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

/// Verifies the access token of a service principal (DS-5), in the older (v1) or the newer (v2) form.
///
/// # Errors
/// [`Fault`] for the first check that fails; only the log shows it.
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
    // An id token never counts as an access token, whatever its audience.
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
    /// The issuer of a tenant's tokens, also if the login went through `common` or `organizations`.
    fn v2_issuer(&self, tenant: Uuid) -> String {
        format!("{}/{tenant}/v2.0", self.authority)
    }

    /// Checks that a key that names its issuer may sign for this tenant.
    fn check_key(&self, template: Option<&str>, tenant: Uuid) -> Result<(), Fault> {
        let fits = |template: &str| template.replace("{tenantid}", &tenant.to_string()) == self.v2_issuer(tenant);
        if template.is_none_or(fits) {
            Ok(())
        } else {
            Err(Fault::KeyIssuer)
        }
    }
}

/// Whether two audiences are the same: `api://<guid>` (v1 tokens) and `<guid>` (v2 tokens) are equal.
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

/// The claims that are checked. A duplicate member makes the token malformed.
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
    /// Accepted with one entry only: one of several audiences could show the token here.
    List(Vec<String>),
}

/// Reads the key id in a token's header, without verification.
pub(super) fn key_id(text: &str) -> Option<String> {
    let header = text.split_once('.')?.0;
    serde_json::from_slice::<Header>(&URL_SAFE_NO_PAD.decode(header).ok()?)
        .ok()?
        .kid
}

/// Verifies the signature with a known key. Returns the claims, and the issuer for which that key signs.
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
        // Saturating, so that an extreme value does not overflow.
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
        // Only the hyphenated form: the expected issuer is built from it.
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

    /// The subject is the object id, which, unlike `sub`, is the same in every application of the tenant. It is a GUID
    /// in one canonical spelling, so that another spelling does not create a second account.
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
