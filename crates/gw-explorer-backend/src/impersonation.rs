//! Whom an administrator views as: what the cookie holds, what pages show, and the gateway's tree for it.

use gw_types::{ExternalId, OrgId, Seconds, SessionId, Timestamp};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

/// How long a choice holds.
pub(crate) const IMPERSONATION_LIFE: Seconds = Seconds(3600);
/// Names the member whose view an answer shows.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-view-as");

/// Who is viewed as, and by which login.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Impersonation {
    /// The member.
    pub(crate) did: ExternalId,
    /// The organization.
    pub(crate) org: OrgId,
    /// The name of the organization, if it is known: for pages.
    #[serde(default)]
    pub(crate) org_name: Option<String>,
    /// The login of the administrator.
    pub(crate) session: SessionId,
    /// The end of the choice, in seconds since 1970.
    pub(crate) until: i64,
}

/// What pages show of a choice, and what chooses.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ImpersonationBody {
    /// The external id of the member.
    pub(crate) did: String,
    /// The organization.
    pub(crate) org_id: String,
    /// The name of the organization, if it is known. Whoever chooses does not send it.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub(crate) org_name: Option<String>,
}

impl Impersonation {
    /// The path below which the gateway shows the member's view.
    pub(crate) fn base(&self) -> String {
        let did = percent_encoded(self.did.as_str());
        format!("/api/v1/admin/impersonate/{did}/in/{}", self.org)
    }

    pub(crate) fn body(&self) -> ImpersonationBody {
        ImpersonationBody {
            did: self.did.as_str().to_owned(),
            org_id: self.org.to_string(),
            org_name: self.org_name.clone(),
        }
    }

    /// Marks an answer as one of this view. A DID is printable ASCII; another text would be left out.
    pub(crate) fn mark(&self, headers: &mut HeaderMap) {
        if let Ok(value) = HeaderValue::from_str(self.did.as_str()) {
            headers.insert(HEADER, value);
        }
    }
}

/// An external id as one segment of a path. It is never a dot segment: it begins with `did:` or `directory:`.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~:".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

impl Impersonation {
    /// Whether the choice holds at this time.
    pub(crate) fn is_alive(&self, now: Timestamp) -> bool {
        let until = Timestamp::from_secs(self.until);
        now < until && until <= now.plus(IMPERSONATION_LIFE)
    }
}
