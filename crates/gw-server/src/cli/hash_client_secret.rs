//! `hash-client-secret`: creates an entry for OAUTH_FIRST_PARTY_CLIENTS (OA-8).

use super::{eprint_line, say};
use crate::{serve::ServeError, system::SystemEntropy};
use anyhow::{Context as _, anyhow};
use gw_identity::oauth::Clients;
use gw_types::Entropy as _;
use std::{
    io::{IsTerminal as _, Read as _},
    process::ExitCode,
};

/// Longest secret in bytes; bcrypt ignores further bytes.
const MAX_SECRET_BYTES: usize = 72;
/// The bcrypt cost factor.
const COST: u32 = 12;

pub(super) fn run(client_id: &str) -> Result<ExitCode, ServeError> {
    let entropy = SystemEntropy;
    let (secret, is_fresh) = if std::io::stdin().is_terminal() {
        let mut bytes = [0u8; 32];
        entropy.fill(&mut bytes);
        (hex::encode(bytes), true)
    } else {
        let mut text = String::new();
        std::io::stdin()
            .take(4096)
            .read_to_string(&mut text)
            .context("the secret cannot be read")?;
        (text.trim_end_matches(['\r', '\n']).to_owned(), false)
    };
    let mut salt = [0u8; 16];
    entropy.fill(&mut salt);
    let entry = entry(client_id, &secret, salt, COST)?;
    if is_fresh {
        eprint_line(format_args!("client secret (shown only once): {secret}"));
    }
    say(format_args!("{entry}\n"));
    Ok(ExitCode::SUCCESS)
}

fn entry(client_id: &str, secret: &str, salt: [u8; 16], cost: u32) -> anyhow::Result<String> {
    if secret.is_empty() {
        return Err(anyhow!(
            "no secret: pass one on standard input, or run this command at a terminal to generate one"
        ));
    }
    if secret.len() > MAX_SECRET_BYTES {
        return Err(anyhow!(
            "the secret is longer than the {MAX_SECRET_BYTES} bytes that bcrypt uses"
        ));
    }
    let hash = bcrypt::hash_with_salt(secret, cost, salt).map_err(|_| anyhow!("the secret cannot be hashed"))?;
    let entry = format!("{client_id}:{}", hash.format_for_version(bcrypt::Version::TwoB));
    // The printed entry must pass the validation at startup.
    Clients::parse(&entry, "", true).map_err(|errors| match errors.into_iter().next() {
        Some(error) => anyhow!(error),
        None => anyhow!("the generated entry is not valid"),
    })?;
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oa8_the_printed_entry_is_valid_at_startup() {
        let entry = entry("explorer", "correct horse", [7; 16], 10).unwrap();
        let hash = entry.strip_prefix("explorer:").unwrap();
        assert!(bcrypt::verify("correct horse", hash).unwrap());
        for (id, secret, expected) in [
            ("explorer", "", "no secret"),
            ("explorer", &"x".repeat(73), "longer than the 72 bytes"),
            ("two words", "secret", "client id"),
            ("", "secret", "client id"),
        ] {
            let error = entry_error(id, secret);
            assert!(error.contains(expected), "{error}");
        }
    }

    fn entry_error(id: &str, secret: &str) -> String {
        entry(id, secret, [7; 16], 10).unwrap_err().to_string()
    }
}
