//! The applications that may obtain tokens, and their secrets (OA-3, OA-8).
//!
//! Invariant: the time of a rejection does not reveal whether a client exists: every check computes the same number of
//! hashes.

use super::RedirectUri;
use std::{collections::BTreeMap, str::FromStr};

/// Accepted bcrypt costs. Below 10 a leaked hash can be guessed; above 16 one check takes seconds.
const COSTS: core::ops::RangeInclusive<u32> = 10..=16;
const HASHES_PER_CLIENT: usize = 2;
const MAX_ID_LEN: usize = 64;
/// Salt and hash of a secret that does not exist.
const NOBODY: &str = "abcdefghijklmnopqrstuuabcdefghijklmnopqrstuvwxyz01232";

/// All first-party applications.
#[derive(Clone, Default)]
pub struct Clients {
    clients: BTreeMap<String, Client>,
    /// Padding: as many hashes as the client with the most hashes has, of no secret.
    nobody: Vec<String>,
}

/// One application.
#[derive(Clone)]
pub struct Client {
    hashes: Vec<String>,
    redirects: Option<Vec<RedirectUri>>,
}

/// What is wrong with the configuration of applications. Messages name entries by client id, or by position if there is
/// none: never by a hash.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientsError {
    /// The old format, without secrets.
    #[error("entry {0} is a bare client id: write `<client_id>:<bcrypt_hash>`")]
    BareId(usize),
    /// Not an accepted client id.
    #[error("entry {0} has a client id that is not 1 to 64 letters, digits, `-`, `.`, `_` or `~`")]
    Id(usize),
    /// Two entries with the same client id.
    #[error("client `{0}` is listed twice")]
    Duplicate(String),
    /// Not a bcrypt hash.
    #[error("client `{0}` has a secret that is no bcrypt hash")]
    Hash(String),
    /// The cost is too low or too high.
    #[error("client `{0}` has a hash of cost {1}: from 10 to 16 is needed, 12 is recommended")]
    Cost(String, u32),
    /// More hashes than a rotation needs.
    #[error("client `{0}` has more than two hashes")]
    TooMany(String),
    /// An entry of the redirect list without a client.
    #[error("entry {0} is not `<client_id>=<uri>|<uri>`")]
    Redirects(usize),
    /// A redirect list of an unknown client.
    #[error("names client `{0}`, which OAUTH_FIRST_PARTY_CLIENTS does not")]
    UnknownClient(String),
    /// An invalid redirect URI.
    #[error("an address of client `{client}` {why}")]
    Redirect {
        /// The client's id.
        client: String,
        /// What is wrong with it.
        why: String,
    },
}

impl ClientsError {
    /// Whether the error is about OAUTH_REDIRECT_URIS rather than OAUTH_FIRST_PARTY_CLIENTS.
    pub const fn is_about_redirects(&self) -> bool {
        match self {
            Self::Redirects(_) | Self::UnknownClient(_) | Self::Redirect { .. } => true,
            Self::BareId(_) | Self::Id(_) | Self::Duplicate(_) | Self::Hash(_) | Self::Cost(..) | Self::TooMany(_) => {
                false
            }
        }
    }
}

impl Clients {
    /// Parses OAUTH_FIRST_PARTY_CLIENTS (`<id>:<hash>[|<hash>],…`) and OAUTH_REDIRECT_URIS (`<id>=<uri>[|<uri>],…`).
    /// Returns all errors at once.
    ///
    /// # Errors
    /// One [`ClientsError`] for each invalid entry.
    pub fn parse(clients: &str, redirect_uris: &str, production: bool) -> Result<Self, Vec<ClientsError>> {
        let (mut by_id, mut wrong) = (BTreeMap::new(), Vec::new());
        for (at, entry) in entries(clients) {
            match client(at, entry) {
                Ok((id, _)) if by_id.contains_key(&id) => wrong.push(ClientsError::Duplicate(id)),
                Ok((id, client)) => {
                    by_id.insert(id, client);
                }
                Err(errors) => wrong.extend(errors),
            }
        }
        for (at, entry) in entries(redirect_uris) {
            let Some((id, uris)) = entry.split_once('=') else {
                wrong.push(ClientsError::Redirects(at));
                continue;
            };
            let id = id.trim();
            let mut listed = Vec::new();
            for uri in uris.split('|').map(str::trim) {
                match redirect(uri, production) {
                    Ok(uri) => listed.push(uri),
                    Err(why) => wrong.push(ClientsError::Redirect {
                        client: id.to_owned(),
                        why,
                    }),
                }
            }
            match by_id.get_mut(id) {
                Some(client) => client.redirects.get_or_insert_default().extend(listed),
                // If the client's own entry is broken, that is reported already.
                None if !wrong.iter().any(|error| !error.is_about_redirects()) => {
                    wrong.push(ClientsError::UnknownClient(id.to_owned()));
                }
                None => {}
            }
        }
        if wrong.is_empty() {
            Ok(Self::new(by_id))
        } else {
            Err(wrong)
        }
    }

    fn new(clients: BTreeMap<String, Client>) -> Self {
        let cost = clients
            .values()
            .flat_map(|client| &client.hashes)
            .filter_map(|hash| cost(hash))
            .max();
        let count = clients.values().map(|client| client.hashes.len()).max().unwrap_or(1);
        let hash = format!("$2b${:02}${NOBODY}", cost.unwrap_or(12));
        Self {
            clients,
            nobody: vec![hash; count],
        }
    }

    /// The client with this id.
    pub fn get(&self, id: &str) -> Option<&Client> {
        self.clients.get(id)
    }

    /// The hashes of the client's secrets, padded with hashes that no secret matches, so that every check takes the
    /// same time.
    pub fn hashes(&self, id: &str) -> Hashes {
        let own = self
            .clients
            .get(id)
            .map(|client| client.hashes.clone())
            .unwrap_or_default();
        let padding = self.nobody.iter().skip(own.len()).cloned().collect();
        Hashes { own, padding }
    }
}

impl Client {
    /// The redirect URIs that the client is restricted to, if any.
    pub fn redirects(&self) -> Option<&[RedirectUri]> {
        self.redirects.as_deref()
    }
}

/// The hashes that a secret is compared with.
pub struct Hashes {
    own: Vec<String>,
    padding: Vec<String>,
}

impl Hashes {
    /// Whether one of `secrets` is the client's. Slow on purpose: call it where blocking is allowed.
    pub fn verify(&self, secrets: &[String]) -> bool {
        let holds = |hash: &String| {
            // Checks all of them, even after a match: the time must not reveal the result.
            secrets
                .iter()
                .filter(|secret| bcrypt::verify(secret.as_bytes(), hash).unwrap_or(false))
                .count()
                > 0
        };
        let own = self.own.iter().filter(|hash| holds(hash)).count() > 0;
        let _nobody = self.padding.iter().filter(|hash| holds(hash)).count();
        own
    }
}

fn entries(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split(',')
        .map(str::trim)
        .enumerate()
        .map(|(at, entry)| (at + 1, entry))
        .filter(|(_, entry)| !entry.is_empty())
}

fn client(at: usize, entry: &str) -> Result<(String, Client), Vec<ClientsError>> {
    let Some((id, hashes)) = entry.split_once(':') else {
        return Err(vec![ClientsError::BareId(at)]);
    };
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if id.is_empty() || id.len() > MAX_ID_LEN || !id.bytes().all(unreserved) {
        return Err(vec![ClientsError::Id(at)]);
    }
    let hashes: Vec<String> = hashes.split('|').map(|hash| hash.trim().to_owned()).collect();
    let mut wrong: Vec<_> = hashes
        .iter()
        .filter_map(|hash| match cost(hash) {
            None => Some(ClientsError::Hash(id.to_owned())),
            Some(cost) if !COSTS.contains(&cost) => Some(ClientsError::Cost(id.to_owned(), cost)),
            Some(_) => None,
        })
        .collect();
    if hashes.len() > HASHES_PER_CLIENT {
        wrong.push(ClientsError::TooMany(id.to_owned()));
    }
    if wrong.is_empty() {
        Ok((
            id.to_owned(),
            Client {
                hashes,
                redirects: None,
            },
        ))
    } else {
        Err(wrong)
    }
}

/// The cost of a bcrypt hash.
fn cost(hash: &str) -> Option<u32> {
    let versioned = ["$2a$", "$2b$", "$2x$", "$2y$"]
        .iter()
        .any(|version| hash.starts_with(version));
    let parts = bcrypt::HashParts::from_str(hash).ok()?;
    (versioned && hash.len() == 60).then(|| parts.get_cost())
}

fn redirect(text: &str, production: bool) -> Result<RedirectUri, String> {
    let uri = RedirectUri::parse(text).map_err(|error| error.to_string())?;
    if production && !uri.is_https() {
        return Err("must be https in production".to_owned());
    }
    Ok(uri)
}

impl core::fmt::Debug for Clients {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_set().entries(self.clients.keys()).finish()
    }
}

impl core::fmt::Debug for Client {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Client")
            .field("hashes", &self.hashes.len())
            .field("redirects", &self.redirects)
            .finish()
    }
}

impl core::fmt::Debug for Hashes {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Hashes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(secret: &str, cost: u32) -> String {
        bcrypt::hash_with_salt(secret, cost, [7; 16]).unwrap().to_string()
    }

    fn errors(clients: &str, redirects: &str, production: bool) -> Vec<ClientsError> {
        Clients::parse(clients, redirects, production).unwrap_err()
    }

    #[test]
    fn oa8_clients_have_hashes_and_may_have_two() {
        let (old, new) = (hash("old secret", 10), hash("new secret", 10));
        let clients = Clients::parse(
            &format!("explorer:{old}|{new}, reports:{}", hash("third", 10)),
            "",
            true,
        )
        .unwrap();
        let verify = |id: &str, secret: &str| clients.hashes(id).verify(&[secret.to_owned()]);
        assert!(verify("explorer", "old secret") && verify("explorer", "new secret"));
        assert!(verify("reports", "third"));
        for (id, secret) in [
            ("explorer", "third"),
            ("explorer", ""),
            ("unknown", "third"),
            ("Explorer", "old secret"),
        ] {
            assert!(!verify(id, secret), "{id} {secret}");
        }
        let both = ["new+secret".to_owned(), "new secret".to_owned()];
        assert!(
            clients.hashes("explorer").verify(&both),
            "a secret may be sent in two readings"
        );
        assert!(clients.get("explorer").is_some() && clients.get("unknown").is_none());
        assert!(!format!("{clients:?}").contains("$2"));
    }

    #[test]
    fn oa8_every_check_computes_as_many_hashes() {
        let text = format!("one:{}, two:{}|{}", hash("a", 10), hash("b", 11), hash("c", 10));
        let clients = Clients::parse(&text, "", true).unwrap();
        for id in ["one", "two", "unknown"] {
            let hashes = clients.hashes(id);
            assert_eq!(hashes.own.len() + hashes.padding.len(), 2, "{id}");
            assert!(hashes.padding.iter().all(|hash| cost(hash) == Some(11)), "{id}");
        }
        assert_eq!(Clients::default().hashes("x").own.len(), 0);
    }

    #[test]
    fn oa8_the_format_without_secrets_is_refused_with_all_else_that_is_wrong() {
        let good = hash("a", 10);
        let text = format!(
            "explorer, good:{good}, a b:{good}, :{good}, x:plain, y:{}, good:{good}, z:{good}|x",
            hash("a", 9)
        );
        assert_eq!(
            errors(&text, "", false),
            [
                ClientsError::BareId(1),
                ClientsError::Id(3),
                ClientsError::Id(4),
                ClientsError::Hash("x".to_owned()),
                ClientsError::Cost("y".to_owned(), 9),
                ClientsError::Duplicate("good".to_owned()),
                ClientsError::Hash("z".to_owned()),
            ]
        );
        assert_eq!(
            errors(&format!("a:{good}|{good}|{good}"), "", false),
            [ClientsError::TooMany("a".to_owned())]
        );
        for bad in [
            "$2b$10$short",
            "$2c$10$abcdefghijklmnopqrstuuabcdefghijklmnopqrstuvwxyz01232",
            "",
            "$argon2id$v=19$x",
        ] {
            assert_eq!(
                errors(&format!("a:{bad}"), "", false),
                [ClientsError::Hash("a".to_owned())],
                "{bad}"
            );
        }
        let dear = hash("a", 10).replace("$10$", "$17$");
        assert_eq!(
            errors(&format!("a:{dear}"), "", false),
            [ClientsError::Cost("a".to_owned(), 17)]
        );
        assert!(Clients::parse("", "", true).unwrap().clients.is_empty());
        for error in errors(&text, "", false) {
            assert!(!error.to_string().contains("$2"), "{error}");
        }
    }

    #[test]
    fn oa3_redirect_lists_name_known_clients_and_sound_addresses() {
        let one = format!("one:{}", hash("a", 10));
        let listed = |uris: &str| {
            Clients::parse(&one, uris, false)
                .unwrap()
                .get("one")
                .unwrap()
                .redirects
                .clone()
        };
        assert_eq!(listed(""), None);
        assert_eq!(
            listed("one=https://a.example/cb?x=1|http://localhost:1/cb")
                .unwrap()
                .len(),
            2
        );
        assert_eq!(
            listed("one=https://a.example/1, one=https://a.example/2")
                .unwrap()
                .len(),
            2
        );
        assert_eq!(errors(&one, "nonsense", false), [ClientsError::Redirects(1)]);
        assert_eq!(
            errors(&one, "two=https://a.example", false),
            [ClientsError::UnknownClient("two".to_owned())]
        );
        for (uri, production) in [
            ("https://u@a.example", false),
            ("https://a.example/#x", false),
            ("http://a.example", true),
        ] {
            let errors_of_uri = errors(&one, &format!("one={uri}"), production);
            assert!(
                matches!(errors_of_uri.as_slice(), [ClientsError::Redirect { .. }]),
                "{uri}: {errors_of_uri:?}"
            );
        }
    }
}
