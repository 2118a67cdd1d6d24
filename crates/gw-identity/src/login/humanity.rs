//! The credential that a login may have to show (Path B: ZK-2, ZK-75, ZK-76).
//!
//! The query is configured. What proofs are compared with is computed from the query's schema, once that is loaded.
//! Until then logins are answered 503, because requests could be sent but not verified.

use super::{
    Nullifier, ProofError,
    documents::{DocumentError, DocumentSource},
};
use crate::outbound::third_party_client;
use gw_types::Timestamp;
use gw_zk::{
    credential::{self, CredentialError, StateAnswers, VerifiedCredentials, VerifiedProof},
    did::Id,
    query::{CredentialQuery, ProofRequest, QueryError},
    schema::{Documents, SchemaError},
    state::StateError,
};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{sync::OnceLock, time::Duration};
use tokio_util::sync::CancellationToken;

/// Time between two attempts to load a schema.
const RETRY: Duration = Duration::from_secs(60);
/// Maximum number of documents that one schema may need.
const MAX_DOCUMENTS: usize = 8;

/// Settings of the credential query.
#[derive(Clone, Debug)]
pub struct HumanityConfig {
    /// The query of every login.
    pub query: CredentialQuery,
    /// ALTNET_CREDENTIAL_SCHEMA_FILE: the file's content, used in place of the document at the schema's address.
    pub schema: Option<Vec<u8>>,
    /// ALTNET_CREDENTIAL_SCHEMA_SHA256: the hash that the schema document must have.
    pub schema_sha256: Option<[u8; 32]>,
    /// IPFS_GATEWAY.
    pub ipfs_gateway: String,
    /// IDP_NULLIFIER_SESSION, as the query requests it.
    pub nullifier_session: Option<String>,
}

/// Why the query cannot be computed.
#[derive(Debug, thiserror::Error)]
pub enum HumanityError {
    /// The schema and the query do not match. A retry does not help.
    #[error("the credential query cannot be asked")]
    Query(#[source] QueryError),
    /// The document differs from the pinned one.
    #[error("the document at `{0}` is not the pinned one")]
    Pin(String),
    /// The documents refer to too many further documents.
    #[error("the credential schema needs more than {MAX_DOCUMENTS} documents")]
    TooMany,
    /// The document is not available now.
    #[error("the document at `{url}` is not at hand")]
    Document {
        /// Its address.
        url: String,
        /// Why.
        #[source]
        source: DocumentError,
    },
}

impl HumanityError {
    /// Whether a retry may succeed.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Document { source, .. } => !matches!(source, DocumentError::Address),
            Self::Query(_) | Self::Pin(_) | Self::TooMany => false,
        }
    }
}

/// The credential query of this service.
#[derive(Debug)]
pub struct Humanity {
    query: CredentialQuery,
    given: Documents,
    pin: Option<[u8; 32]>,
    source: DocumentSource,
    nullifier_session: Option<String>,
    requested: OnceLock<Vec<ProofRequest>>,
}

impl Humanity {
    /// Creates the query, not yet computed.
    ///
    /// # Errors
    /// The machine's trusted certificates cannot be read.
    pub fn new(config: HumanityConfig) -> Result<Self, std::io::Error> {
        let mut given = Documents::default();
        if let Some(schema) = config.schema {
            given.insert(config.query.context(), schema);
        }
        let source = DocumentSource::new(third_party_client()?, &config.ipfs_gateway);
        let (pin, nullifier_session) = (config.schema_sha256, config.nullifier_session);
        Ok(Self {
            query: config.query,
            given,
            pin,
            source,
            nullifier_session,
            requested: OnceLock::new(),
        })
    }

    /// What every request asks for.
    #[must_use]
    pub fn query(&self) -> &CredentialQuery {
        &self.query
    }

    /// What proofs are compared with; `None` until the schema is loaded.
    #[must_use]
    pub fn requested(&self) -> Option<&[ProofRequest]> {
        self.requested.get().map(Vec::as_slice)
    }

    /// Loads the missing documents and computes the query. Does nothing if the query is computed already.
    ///
    /// # Errors
    /// [`HumanityError`].
    pub async fn load(&self) -> Result<(), HumanityError> {
        if self.requested.get().is_some() {
            return Ok(());
        }
        let mut documents = self.given.clone();
        self.check_pin(&documents)?;
        loop {
            let url = match self.query.proof_requests(&documents) {
                Ok(requested) => {
                    // Another attempt may have been faster; it computed the same.
                    self.requested.get_or_init(|| requested);
                    return Ok(());
                }
                Err(QueryError::Schema(SchemaError::Missing(url))) => url,
                Err(error) => return Err(HumanityError::Query(error)),
            };
            if documents.len() >= MAX_DOCUMENTS {
                return Err(HumanityError::TooMany);
            }
            let fetched = self.source.fetch(&url).await;
            let bytes = fetched.map_err(|source| HumanityError::Document {
                url: url.clone(),
                source,
            })?;
            documents.insert(url, bytes);
            self.check_pin(&documents)?;
        }
    }

    /// Retries until the query is computed or `end` is cancelled. Lasting errors are retried, too: the document at an
    /// address may be corrected.
    pub async fn keep_loading(&self, end: &CancellationToken) {
        while let Err(error) = self.load().await {
            tracing::warn!(
                error = &error as &dyn core::error::Error,
                "credential schema not at hand: logins are answered 503 until it is"
            );
            tokio::select! {
                () = end.cancelled() => return,
                () = tokio::time::sleep(RETRY) => {}
            }
        }
    }

    /// Verifies the credential proofs of an answer, except the issuers' states: the caller looks those up and passes
    /// them to [`VerifiedProof::check_issuer_states`]. Takes milliseconds of processor time.
    ///
    /// # Errors
    /// [`ProofError`], as the login answers it.
    pub fn verify_proofs(&self, scope: &[Value], user: Id, now: Timestamp) -> Result<VerifiedProof, ProofError> {
        let requested = self.requested().ok_or(ProofError::ResolverFault)?;
        credential::verify_proofs(requested, scope, user, now).map_err(|error| to_proof_error(&error))
    }

    /// Checks the issuers' states, which is the last step of verification.
    ///
    /// # Errors
    /// [`ProofError`], as the login answers it.
    pub fn check_issuer_states(
        proof: VerifiedProof,
        answers: &StateAnswers,
        now: Timestamp,
    ) -> Result<VerifiedCredentials, ProofError> {
        proof
            .check_issuer_states(answers, now)
            .map_err(|error| to_proof_error(&error))
    }

    /// The nullifier in the proofs, if the query requests one (ZK-77).
    pub(super) fn nullifier(&self, accepted: &VerifiedCredentials) -> Option<Nullifier> {
        let session = self.nullifier_session.clone()?;
        Some(Nullifier {
            session,
            value: gw_zk::number::word(&accepted.nullifier()?).to_string(),
        })
    }

    fn check_pin(&self, documents: &Documents) -> Result<(), HumanityError> {
        let url = self.query.context();
        match (self.pin, documents.get(url)) {
            (Some(pin), Some(bytes)) if Sha256::digest(bytes).as_slice() != pin => Err(HumanityError::Pin(url.into())),
            _ => Ok(()),
        }
    }
}

/// Maps an error to the login's answer (spec/10 section 2.8). Only a missing entry means that the credential is absent;
/// only the log says which check failed.
fn to_proof_error(error: &CredentialError) -> ProofError {
    let answer = match error {
        CredentialError::Absent(_) => ProofError::HumanityMissing,
        CredentialError::State(StateError::Fault) | CredentialError::NotLookedUp => ProofError::ResolverFault,
        CredentialError::Twice(_)
        | CredentialError::Malformed
        | CredentialError::Circuit
        | CredentialError::Proof(_)
        | CredentialError::Signals
        | CredentialError::User
        | CredentialError::RequestId
        | CredentialError::Issuer
        | CredentialError::Schema
        | CredentialError::RevocationUnchecked
        | CredentialError::Old
        | CredentialError::Future
        | CredentialError::TooManyPredicates
        | CredentialError::Operator
        | CredentialError::Values
        | CredentialError::Path
        | CredentialError::Disclosure
        | CredentialError::ProofType
        | CredentialError::Nullifier
        | CredentialError::Link
        | CredentialError::LinkedQueries
        | CredentialError::State(_)
        | CredentialError::NonRevocation(_) => ProofError::Failed,
    };
    tracing::info!(
        error = error as &dyn core::error::Error,
        stage = "credential",
        "login proof refused"
    );
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::{Router, routing::get};
    use gw_zk::query::Settings;
    use std::net::SocketAddr;

    const ISSUER: &str = "did:iden3:polygon:amoy:xCRp75DgAdS63W65fmXHz6p9DwdonuRU9e46DifhX";
    const PERSON: &str = r#"{"@context":["ipfs://base",{"Person":{"@id":"v:Person","@context":{"age":{"@id":"v:age","@type":"xsd:integer"}}}}]}"#;
    const BASE: &str = r#"{"@context":{"v":"https://v.example#","xsd":"http://www.w3.org/2001/XMLSchema#"}}"#;

    fn config(context: &str, gateway: &str, subject: &str) -> HumanityConfig {
        let settings = Settings {
            verifier: ISSUER,
            circuit: "credentialAtomicQuerySigV2",
            issuers: &[ISSUER.to_owned()],
            context,
            type_name: "Person",
            file: subject.as_bytes(),
            split: false,
            nullifier_session: None,
        };
        let query = CredentialQuery::new(&settings).unwrap();
        HumanityConfig {
            query,
            schema: None,
            schema_sha256: None,
            ipfs_gateway: gateway.to_owned(),
            nullifier_session: None,
        }
    }

    /// A real HTTP server in place of the IPFS gateway.
    async fn gateway() -> String {
        let app = Router::new()
            .route("/ipfs/person", get(|| async { PERSON }))
            .route("/ipfs/base", get(|| async { BASE }))
            .route(
                "/ipfs/large",
                get(|| async { " ".repeat(gw_zk::schema::MAX_DOCUMENT + 1) }),
            )
            .route(
                "/ipfs/away",
                get(|| async { axum::response::Redirect::temporary("http://127.0.0.1:1/secret") }),
            );
        let listener = tokio::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
            .await
            .unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        format!("http://{address}")
    }

    const ADULT: &str = r#"{"credentialSubject":{"age":{"$gt":17}}}"#;

    #[tokio::test]
    async fn zk75_zk76_documents_are_fetched_once_and_computed_into_what_proofs_must_show() {
        let gateway = gateway().await;
        let humanity = Humanity::new(config("ipfs://person", &gateway, ADULT)).unwrap();
        assert!(humanity.requested().is_none());
        assert_eq!(
            humanity
                .verify_proofs(&[], user(), Timestamp::from_secs(0))
                .unwrap_err(),
            ProofError::ResolverFault
        );
        humanity.load().await.unwrap();
        assert_eq!(humanity.requested().unwrap().len(), 1);
        assert!(humanity.requested().unwrap()[0].merklized);
        assert_eq!(
            humanity
                .verify_proofs(&[], user(), Timestamp::from_secs(0))
                .unwrap_err(),
            ProofError::HumanityMissing
        );
    }

    fn user() -> Id {
        gw_zk::did::Did::parse(ISSUER).unwrap().id()
    }

    #[tokio::test]
    async fn zk76_a_file_stands_for_the_schema_and_pins_hold() {
        let gateway = gateway().await;
        let mut config = config("https://nowhere.invalid/person", &gateway, ADULT);
        config.schema = Some(PERSON.into());
        config.schema_sha256 = Some(Sha256::digest(PERSON).into());
        Humanity::new(config.clone()).unwrap().load().await.unwrap();
        config.schema_sha256 = Some([0; 32]);
        let error = Humanity::new(config).unwrap().load().await.unwrap_err();
        assert!(matches!(error, HumanityError::Pin(_)) && !error.is_passing());
    }

    #[tokio::test]
    async fn zk76_what_is_absent_large_or_elsewhere_is_not_taken() {
        let gateway = gateway().await;
        let load = async |context: &str| {
            Humanity::new(config(context, &gateway, ADULT))
                .unwrap()
                .load()
                .await
                .unwrap_err()
        };
        for (context, passing) in [("ipfs://absent", true), ("ipfs://large", true), ("ipfs://away", true)] {
            let error = load(context).await;
            assert!(matches!(error, HumanityError::Document { .. }), "{context}: {error:?}");
            assert_eq!(error.is_passing(), passing, "{context}");
        }
        let humanity = Humanity::new(config("ipfs://person", &gateway, r#"{"name":{"$eq":"x"}}"#)).unwrap();
        let error = humanity.load().await.unwrap_err();
        assert!(matches!(error, HumanityError::Query(_)) && !error.is_passing());
    }
}
