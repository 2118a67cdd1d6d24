//! Challenges by which a user proves that an address is theirs (LK-1, LK-2; D6).
//!
//! Invariant: a challenge can be used once, only by the user it was issued to; five wrong signatures destroy it.

mod chain;
mod signature;

pub use chain::{Chain, ChainUnavailable, ask_wallet};
pub(crate) use signature::{challenge_hash, parse_address, parse_bytes, signer};

use gw_cache::{Cache, Change, Entry, Namespace, PutError, Unavailable};
use gw_types::{Entropy, ExternalId, Seconds, Timestamp, UserId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

const LIFE: Seconds = Namespace::LinkChallenge.seconds();
const MAX_FAILURES: u8 = 5;

/// An open challenge: the message that a wallet is asked to sign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Challenge {
    user: UserId,
    failures: u8,
    until: Timestamp,
    pub(crate) message: String,
}

/// Why a challenge cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// Unknown, expired, used or destroyed.
    Gone,
    /// Issued to another user.
    Foreign,
    /// The cache is unavailable.
    Away,
}

impl From<Unavailable> for Unusable {
    fn from(_: Unavailable) -> Self {
        Self::Away
    }
}

/// The values that a challenge's text names.
#[derive(Debug)]
pub(crate) struct ChallengeFacts<'a> {
    pub(crate) host: &'a str,
    pub(crate) did: &'a ExternalId,
    pub(crate) user: UserId,
    pub(crate) chain: u64,
    pub(crate) now: Timestamp,
}

/// All open challenges, by nonce.
#[derive(Debug)]
pub(crate) struct Challenges {
    cache: Cache,
}

impl Challenges {
    pub(crate) fn new(cache: Cache) -> Self {
        Self { cache }
    }

    /// Opens a challenge. Returns its nonce and its text.
    pub(crate) async fn open(
        &self,
        facts: &ChallengeFacts<'_>,
        entropy: &dyn Entropy,
    ) -> Result<(String, String), PutError> {
        let mut bytes = [0u8; 16];
        entropy.fill(&mut bytes);
        let nonce = hex::encode(bytes);
        let until = facts.now.plus(LIFE);
        let message = text(facts, &nonce, until);
        let challenge = Challenge {
            user: facts.user,
            failures: 0,
            until,
            message: message.clone(),
        };
        self.cache
            .put(Entry::new(Namespace::LinkChallenge, &nonce, &challenge.write()))
            .await?;
        Ok((nonce, message))
    }

    /// Returns the text of a challenge of this user.
    pub(crate) async fn message(&self, nonce: &str, user: UserId) -> Result<String, Unusable> {
        let bytes = self.cache.get(Namespace::LinkChallenge, nonce).await?;
        match bytes.as_deref().and_then(Challenge::read) {
            Some(challenge) if challenge.user == user => Ok(challenge.message),
            Some(_) => Err(Unusable::Foreign),
            None => Err(Unusable::Gone),
        }
    }

    /// Counts a wrong signature of the challenge's owner. The fifth destroys the challenge.
    pub(crate) async fn fail(&self, nonce: &str) -> Result<(), Unusable> {
        let counted = self.cache.update(Namespace::LinkChallenge, nonce, |bytes| {
            let Some(mut challenge) = Challenge::read(bytes) else {
                return (Change::Remove, ());
            };
            challenge.failures = challenge.failures.saturating_add(1);
            let change = if challenge.failures >= MAX_FAILURES {
                Change::Remove
            } else {
                Change::Set(challenge.write())
            };
            (change, ())
        });
        counted.await?;
        Ok(())
    }

    /// Removes the challenge, so that only one answer can use it.
    pub(crate) async fn take(&self, nonce: &str, user: UserId) -> Result<Challenge, Unusable> {
        let taken = self
            .cache
            .update(Namespace::LinkChallenge, nonce, |bytes| match Challenge::read(bytes) {
                Some(challenge) if challenge.user == user => (Change::Remove, Some(challenge)),
                _ => (Change::Keep, None),
            });
        taken.await?.flatten().ok_or(Unusable::Gone)
    }

    /// Puts a challenge back whose correct answer could not be used because of an internal fault: only success consumes
    /// it.
    pub(crate) async fn put_back(&self, nonce: &str, taken: &Challenge, now: Timestamp) {
        let left = u64::try_from(taken.until.micros().saturating_sub(now.micros())).unwrap_or(0);
        let bytes = taken.write();
        let entry = Entry::new(Namespace::LinkChallenge, nonce, &bytes).with_ttl(Duration::from_micros(left));
        if self.cache.put(entry).await.is_err() {
            tracing::warn!("a challenge could not be put back; its owner needs a new one");
        }
    }
}

impl Challenge {
    fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// Serialization of texts and numbers cannot fail.
    fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

fn text(facts: &ChallengeFacts<'_>, nonce: &str, until: Timestamp) -> String {
    format!(
        "{} asks you to link this wallet to your gateway identity.\n\n\
         DID: {}\nNonce: {nonce}\nChain ID: {}\nIssued At: {}\nExpires At: {}\n\n\
         Signing moves no funds and costs no gas.",
        facts.host,
        facts.did,
        facts.chain,
        facts.now.to_rfc3339(),
        until.to_rfc3339(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lk1_the_text_names_site_did_nonce_chain_and_times() {
        let did = ExternalId::new("did:test:alice").unwrap();
        let facts = ChallengeFacts {
            host: "gate.example",
            did: &did,
            user: UserId::fixed(9),
            chain: 31337,
            now: Timestamp::from_secs(1_700_000_000),
        };
        let rendered = text(&facts, "00ff", facts.now.plus(LIFE));
        assert_eq!(
            rendered,
            "gate.example asks you to link this wallet to your gateway identity.\n\
             \n\
             DID: did:test:alice\n\
             Nonce: 00ff\n\
             Chain ID: 31337\n\
             Issued At: 2023-11-14T22:13:20Z\n\
             Expires At: 2023-11-14T22:18:20Z\n\
             \n\
             Signing moves no funds and costs no gas."
        );
    }
}
