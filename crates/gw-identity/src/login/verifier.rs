//! Verification of a wallet's proof. It combines the pure checks (`gw_zk`), the on-chain state of identities and the
//! record of accepted messages (ZK-30 to ZK-51).
//!
//! Invariant: a login counts as verified only after every check passed and its message was recorded as used (ZK-48).

use super::{AuthorizationRequest, Humanity, Nullifier, ProofError, ProofVerifier, VerifiedLogin};
use crate::{
    blocking_pool::BlockingPool,
    resolver::{LookupError, Resolvers},
};
use futures_util::future::BoxFuture;
use gw_cache::{Cache, Entry, Namespace};
use gw_http::Amr;
use gw_types::Timestamp;
use gw_zk::{
    credential::{StateAnswer, StateAnswers},
    groth16::Key,
    jwz, number,
    response::{self, Keys, Request, ResponseError, VerifiedResponse},
    state::{self, StateError},
};
use std::{num::NonZeroUsize, sync::Arc, time::Duration};

/// Maximum time of a check, the wait for a processor included (ZK-34).
const PATIENCE: Duration = Duration::from_secs(2);

/// One less than the number of processors, so that logins do not slow down calls.
fn parallel_checks() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    processors.saturating_sub(1).max(1)
}

/// Verifies zero-knowledge proofs.
#[derive(Debug)]
pub struct ZkVerifier {
    resolvers: Arc<Resolvers>,
    cache: Cache,
    pool: BlockingPool,
    own_key: Option<Arc<Key>>,
    humanity: Option<Arc<Humanity>>,
}

impl ZkVerifier {
    /// Creates a verifier with the official keys. It records accepted messages in `cache`.
    pub fn new(resolvers: Arc<Resolvers>, cache: Cache) -> Self {
        Self {
            resolvers,
            cache,
            pool: BlockingPool::new(parallel_checks()),
            own_key: None,
            humanity: None,
        }
    }

    /// Requires every login to show this credential.
    #[must_use]
    pub fn with_humanity(mut self, humanity: Option<Arc<Humanity>>) -> Self {
        self.humanity = humanity;
        self
    }

    /// Uses `key` for every envelope, in place of the official keys. For development builds only: the owner of the
    /// proving key can log in as any user.
    #[cfg(any(test, feature = "mock-login"))]
    #[must_use]
    pub fn with_own_key(mut self, key: Key) -> Self {
        self.own_key = Some(Arc::new(key));
        self
    }

    /// Runs `work` on the bounded pool; `None` if it did not end in time.
    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let run = async { self.pool.acquire().await?.run(work).await };
        tokio::time::timeout(PATIENCE, run).await.ok().flatten()
    }

    async fn check(
        &self,
        token: &str,
        request: &AuthorizationRequest,
        now: Timestamp,
    ) -> Result<VerifiedLogin, ProofError> {
        let token = jwz::trimmed(token);
        if !jwz::looks_like_token(token) {
            return Err(ProofError::Unreadable);
        }
        // A requested credential must be verified.
        if self.humanity.is_none() && !request.body.scope.is_empty() {
            tracing::error!(
                stage = "credential",
                "a login requires a credential, but no credential query is configured to verify it"
            );
            return Err(ProofError::ResolverFault);
        }
        let answer = self.answer(token, request, now).await?;
        let hash = number::word(&answer.hash).to_string();
        let rejections = RejectionLog {
            circuit: answer.circuit.id(),
            network: self.resolvers.name_of(answer.user()),
            hash: &hash,
        };
        match self.resolvers.root(answer.user(), answer.gist_root).await {
            Ok(root) => state::check_root_freshness(root.value, root.read, now)
                .map_err(|error| rejections.log("state", &error, ProofError::Failed))?,
            Err(error) => {
                let answer = match error {
                    LookupError::NoResolver => ProofError::NetworkNotSupported,
                    LookupError::State(StateError::Fault) => ProofError::ResolverFault,
                    LookupError::State(StateError::Unknown | StateError::Other | StateError::NoTime) => {
                        ProofError::Failed
                    }
                };
                return Err(rejections.log("state", &error, answer));
            }
        }
        // Independent of the request: a login that began before the credential was required must show it, too.
        let nullifier = match &self.humanity {
            Some(humanity) => self.credential(humanity, &answer, now).await?,
            None => None,
        };
        match self
            .cache
            .put_new(Entry::new(Namespace::AcceptedMessage, &hash, b""))
            .await
        {
            Ok(true) => Ok(VerifiedLogin {
                subject: answer.subject.external_id().clone(),
                amr: Amr::Zk,
                nullifier,
            }),
            Ok(false) => Err(rejections.log("replay", &Replayed, ProofError::Failed)),
            // A message that cannot be recorded could be used again.
            Err(error) => Err(rejections.log("replay", &error, ProofError::ResolverFault)),
        }
    }

    /// Verifies the credential in the answer: the proofs on the bounded pool, the issuers' states through the
    /// resolvers.
    async fn credential(
        &self,
        humanity: &Arc<Humanity>,
        answer: &VerifiedResponse,
        now: Timestamp,
    ) -> Result<Option<Nullifier>, ProofError> {
        let (verifier, scope, user) = (Arc::clone(humanity), answer.scope.clone(), answer.user());
        let Some(proof) = self.run(move || verifier.verify_proofs(&scope, user, now)).await else {
            tracing::warn!(stage = "pool", "a credential proof found no processor in time");
            return Err(ProofError::ResolverFault);
        };
        let proof = proof?;
        let mut answers = StateAnswers::new();
        for lookup in proof.lookups() {
            let answer = match self.resolvers.state(lookup.issuer, lookup.state).await {
                Ok(fact) => StateAnswer {
                    state: Ok(fact.value),
                    read: fact.read,
                },
                Err(LookupError::State(error)) => StateAnswer {
                    state: Err(error),
                    read: now,
                },
                Err(error @ LookupError::NoResolver) => {
                    tracing::error!(stage = "credential", %error, "an accepted issuer's state cannot be read");
                    return Err(ProofError::ResolverFault);
                }
            };
            answers.insert(lookup, answer);
        }
        Ok(humanity.nullifier(&Humanity::check_issuer_states(proof, &answers, now)?))
    }

    /// Verifies the token, its proof included. Runs on the bounded pool, since a pairing takes milliseconds.
    async fn answer(
        &self,
        token: &str,
        request: &AuthorizationRequest,
        now: Timestamp,
    ) -> Result<VerifiedResponse, ProofError> {
        let (token, request, own_key) = (token.to_owned(), expected_request(request), self.own_key.clone());
        let work = move || {
            let keys = own_key.as_deref().map_or(Keys::Official, Keys::Own);
            response::check(&token, &request, keys, now)
        };
        let Some(result) = self.run(work).await else {
            tracing::warn!(stage = "pool", "a login proof found no processor in time");
            return Err(ProofError::ResolverFault);
        };
        result.map_err(|error| {
            tracing::info!(
                stage = stage_of(&error),
                error = &error as &dyn core::error::Error,
                "login proof refused"
            );
            match error {
                ResponseError::Network => ProofError::NetworkNotSupported,
                ResponseError::Token(_)
                | ResponseError::Accept
                | ResponseError::Type
                | ResponseError::From
                | ResponseError::To
                | ResponseError::Thread
                | ResponseError::Message
                | ResponseError::Expired
                | ResponseError::Future
                | ResponseError::Malformed
                | ResponseError::Proof(_) => ProofError::Failed,
            }
        })
    }
}

impl ProofVerifier for ZkVerifier {
    fn verify<'a>(
        &'a self,
        token: &'a str,
        request: &'a AuthorizationRequest,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<VerifiedLogin, ProofError>> {
        Box::pin(self.check(token, request, now))
    }
}

/// The parts of the stored request that an answer is checked against.
fn expected_request(request: &AuthorizationRequest) -> Request {
    Request {
        thread: request.thid.clone(),
        from: request.from.clone(),
        message: request.body.message.clone(),
        expires: Some(Timestamp::from_secs(request.expires_time)),
        accept: request.body.accept.iter().map(ToString::to_string).collect(),
        scope: request
            .body
            .scope
            .iter()
            .filter_map(|query| query.get("id")?.as_u64())
            .collect(),
    }
}

/// What the log says about a rejected token besides the cause (ZK-90): never the token, never a DID.
struct RejectionLog<'a> {
    circuit: &'a str,
    network: Option<&'a str>,
    hash: &'a str,
}

impl RejectionLog<'_> {
    /// Logs a rejection at `stage` and returns `answer`.
    fn log(&self, stage: &str, error: &(dyn core::error::Error + 'static), answer: ProofError) -> ProofError {
        tracing::info!(
            stage,
            circuit = self.circuit,
            network = self.network.unwrap_or("unregistered"),
            token.hash = self.hash,
            error,
            "login proof refused"
        );
        answer
    }
}

/// The message was accepted before.
#[derive(Debug, thiserror::Error)]
#[error("the message was accepted before")]
struct Replayed;

fn stage_of(error: &ResponseError) -> &'static str {
    match error {
        ResponseError::Token(_) => "token",
        ResponseError::Accept => "accept",
        ResponseError::Network => "network",
        ResponseError::Proof(_) => "proof",
        ResponseError::Type
        | ResponseError::From
        | ResponseError::To
        | ResponseError::Thread
        | ResponseError::Message
        | ResponseError::Expired
        | ResponseError::Future
        | ResponseError::Malformed => "message",
    }
}

#[cfg(test)]
#[path = "../../../gw-zk/tests/it/maker.rs"]
mod maker;
#[cfg(test)]
mod tests;
