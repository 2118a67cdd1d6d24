//! Challenges by which a user proves that an address is theirs (LK-1, LK-2; D6).
//!
//! Invariant: a challenge serves the user it was given to, once; five wrong signatures burn it.

mod signature;

pub(crate) use signature::{parse_address, signer};

use crate::expiring::{Expiring, Full};
use gw_types::{Entropy, ExternalId, Seconds, Timestamp, UserId};

const LIFE: Seconds = Seconds(300);
const MAX_OPEN: usize = 100_000;
const MAX_FAILURES: u8 = 5;

/// What a wallet is asked to sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Challenge {
    user: UserId,
    failures: u8,
    pub(crate) message: String,
}

/// Why a challenge does not serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// Unknown, over, used or burnt.
    Gone,
    /// Somebody else's.
    Foreign,
}

/// What a challenge's text names.
#[derive(Debug)]
pub(crate) struct ChallengeFacts<'a> {
    pub(crate) host: &'a str,
    pub(crate) did: &'a ExternalId,
    pub(crate) user: UserId,
    pub(crate) chain: u64,
    pub(crate) now: Timestamp,
}

/// All open challenges of this instance, by nonce.
#[derive(Debug)]
pub(crate) struct Challenges {
    open: Expiring<String, Challenge>,
}

impl Challenges {
    pub(crate) fn new() -> Self {
        Self { open: Expiring::new(MAX_OPEN) }
    }

    /// Opens a challenge: its nonce and its text.
    pub(crate) async fn open(
        &self,
        facts: &ChallengeFacts<'_>,
        entropy: &dyn Entropy,
    ) -> Result<(String, String), Full> {
        let mut bytes = [0u8; 16];
        entropy.fill(&mut bytes);
        let nonce = hex::encode(bytes);
        let until = facts.now.plus(LIFE);
        let message = text(facts, &nonce, until);
        let challenge = Challenge { user: facts.user, failures: 0, message: message.clone() };
        self.open.insert(facts.now, nonce.clone(), challenge, until)?;
        Ok((nonce, message))
    }

    /// The text of a challenge that `user` may answer.
    pub(crate) async fn message(&self, nonce: &str, user: UserId, now: Timestamp) -> Result<String, Unusable> {
        let found = self.open.with(now, &nonce.to_owned(), |challenge| {
            if challenge.user == user { Ok(challenge.message.clone()) } else { Err(Unusable::Foreign) }
        });
        found.unwrap_or(Err(Unusable::Gone))
    }

    /// Counts a wrong answer of its owner; the fifth burns the challenge.
    pub(crate) async fn fail(&self, nonce: &str, now: Timestamp) {
        let nonce = nonce.to_owned();
        self.open.with(now, &nonce, |challenge| challenge.failures = challenge.failures.saturating_add(1));
        let _burnt = self.open.take_if(now, nonce, |challenge| challenge.failures >= MAX_FAILURES);
    }

    /// Takes the challenge out, for the one answer that counts.
    pub(crate) async fn take(&self, nonce: &str, user: UserId, now: Timestamp) -> Option<(Challenge, Timestamp)> {
        self.open.take_if(now, nonce.to_owned(), |challenge| challenge.user == user)
    }

    /// Puts a challenge back whose right answer could not be used for a fault of ours: only success consumes it.
    pub(crate) async fn put_back(&self, nonce: &str, taken: (Challenge, Timestamp), now: Timestamp) {
        let (challenge, until) = taken;
        let _full = self.open.insert(now, nonce.to_owned(), challenge, until);
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
