//! The credential that every login must prove, built from its settings and files (REQUIRE_PROOF_OF_HUMANITY).
//!
//! An invalid setting aborts the start. A schema that cannot be fetched does not: the gateway retries while it serves
//! other requests (spec/10 ZK-75).

use crate::config::{Config, Humanity as Settings};
use anyhow::{Context as _, anyhow, bail};
use gw_identity::{Humanity, HumanityConfig};
use gw_zk::did::Did;
use gw_zk::query::{CredentialQuery, Settings as QuerySettings};
use std::{path::Path, sync::Arc};

/// Longest scope in bytes of JSON. A proof request with a longer scope fits no QR code that phones can read (ZK-1); the
/// other parts of the request take about half of it.
const MAX_SCOPE_BYTES: usize = 1_200;

/// Builds the credential query; `None` without REQUIRE_PROOF_OF_HUMANITY.
///
/// # Errors
/// If a setting or file is invalid. A schema that cannot be fetched at the moment is only a warning.
pub(crate) async fn humanity(config: &Config) -> anyhow::Result<Option<Arc<Humanity>>> {
    let Some(settings) = &config.identity.humanity else {
        return Ok(None);
    };
    let verifier = config.identity.verifier.as_ref().context("VERIFIER_ID has no value")?;
    let query = query(settings, verifier.as_str())?;
    for issuer in &settings.issuers {
        let network = Did::parse(issuer.as_str())
            .with_context(|| format!("ALTNET_ISSUER_DID: `{issuer}` is no DID"))?
            .id()
            .network_byte();
        if !config.identity.resolvers.iter().any(|row| row.network.byte == network) {
            bail!("ALTNET_ISSUER_DID: the network of `{issuer}` has no state resolver");
        }
    }
    if query.is_unanswerable() {
        tracing::warn!(
            "ALTNET_CREDENTIAL_QUERY_FILE holds several predicates, but a circuit proves only one: nobody can log in; \
             set IDP_SPLIT_PREDICATES=true to request one proof for each predicate"
        );
    }
    let length = serde_json::to_string(query.scope())
        .context("the credential query cannot be serialized")?
        .len();
    if length > MAX_SCOPE_BYTES {
        tracing::warn!(
            length,
            "the credential query is long: phones may be unable to read its QR code; shorten \
             ALTNET_CREDENTIAL_QUERY_FILE"
        );
    }
    let schema = settings
        .schema_file
        .as_deref()
        .map(|path| read_file(path, "ALTNET_CREDENTIAL_SCHEMA_FILE"))
        .transpose()?;
    let humanity = Humanity::new(HumanityConfig {
        query,
        schema,
        schema_sha256: settings.schema_sha256,
        ipfs_gateway: settings.ipfs_gateway.to_string(),
        nullifier_session: settings.nullifier_session.clone(),
    })
    .context("the trusted root certificates cannot be read")?;
    match humanity.load().await {
        Ok(()) => {}
        Err(error) if error.is_passing() => {
            tracing::warn!(
                error = &error as &dyn core::error::Error,
                "the credential schema cannot be loaded yet; it is retried, and logins fail until then"
            );
        }
        Err(error) => return Err(anyhow!(error).context("the credential query is not valid")),
    }
    Ok(Some(Arc::new(humanity)))
}

fn query(settings: &Settings, verifier: &str) -> anyhow::Result<CredentialQuery> {
    let issuers: Vec<String> = settings
        .issuers
        .iter()
        .map(|issuer| issuer.as_str().to_owned())
        .collect();
    let query = CredentialQuery::new(&QuerySettings {
        verifier,
        circuit: &settings.circuit,
        issuers: &issuers,
        context: &settings.schema_url,
        type_name: &settings.type_name,
        file: &read_file(&settings.query_file, "ALTNET_CREDENTIAL_QUERY_FILE")?,
        split: settings.split,
        nullifier_session: settings.nullifier_session.as_deref(),
    });
    match query {
        Ok(query) => Ok(query),
        Err(mistakes) => {
            let messages: Vec<String> = mistakes
                .into_iter()
                .map(|mistake| format!("{:#}", anyhow!(mistake)))
                .collect();
            bail!("the credential query is not valid: {}", messages.join("; "))
        }
    }
}

fn read_file(path: &Path, variable: &str) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("{variable} cannot be read: {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUER: &str = "did:iden3:polygon:amoy:xCRp75DgAdS63W65fmXHz6p9DwdonuRU9e46DifhX";

    fn settings(query_file: &Path) -> Settings {
        Settings {
            issuers: vec![gw_types::ExternalId::new(ISSUER).unwrap()],
            schema_url: "https://schemas.example/kyc".to_owned(),
            schema_file: None,
            schema_sha256: None,
            type_name: "Person".to_owned(),
            query_file: query_file.to_owned(),
            circuit: "credentialAtomicQueryMTPV2".to_owned(),
            split: false,
            nullifier_session: None,
            ipfs_gateway: url::Url::parse("https://gateway.example").unwrap(),
        }
    }

    #[test]
    fn zk75_an_invalid_query_reports_every_mistake() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("query.json");
        let mut settings = settings(&file);
        let error = |settings: &Settings| format!("{:#}", query(settings, ISSUER).unwrap_err());
        assert!(error(&settings).contains("ALTNET_CREDENTIAL_QUERY_FILE cannot be read"));
        std::fs::write(&file, r#"{"age":{"$gte":18,"$gt":-1}}"#).unwrap();
        settings.circuit = "authV2".to_owned();
        let error = error(&settings);
        for part in [
            "`authV2` is no circuit",
            "operator `$gte` of `age`",
            "`-1` of `age` is negative",
        ] {
            assert!(error.contains(part), "{error}");
        }
        std::fs::write(&file, r#"{"age":{"$gt":17}}"#).unwrap();
        settings.circuit = "credentialAtomicQuerySigV2".to_owned();
        assert_eq!(query(&settings, ISSUER).unwrap().scope().len(), 1);
    }
}
