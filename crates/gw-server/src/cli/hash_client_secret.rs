//! `hash-client-secret`: an entry of OAUTH_FIRST_PARTY_CLIENTS (OA-8).

use super::{complain, say};
use crate::{ambient::SystemEntropy, serve::Fault};
use anyhow::{Context as _, anyhow};
use gw_identity::oauth::Clients;
use gw_types::Entropy as _;
use std::{
    io::{IsTerminal as _, Read as _},
    process::ExitCode,
};

/// bcrypt reads no further.
const LONGEST: usize = 72;
const COST: u32 = 12;

pub(super) fn run(client_id: &str) -> Result<ExitCode, Fault> {
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
        complain(format_args!("client secret, shown this once: {secret}"));
    }
    say(format_args!("{entry}\n"));
    Ok(ExitCode::SUCCESS)
}

fn entry(client_id: &str, secret: &str, salt: [u8; 16], cost: u32) -> anyhow::Result<String> {
    if secret.is_empty() {
        return Err(anyhow!(
            "no secret: give one on standard input, or run this at a terminal to have one made"
        ));
    }
    if secret.len() > LONGEST {
        return Err(anyhow!(
            "the secret is longer than the {LONGEST} bytes that bcrypt looks at"
        ));
    }
    let hash = bcrypt::hash_with_salt(secret, cost, salt).map_err(|_| anyhow!("the secret cannot be hashed"))?;
    let entry = format!("{client_id}:{}", hash.format_for_version(bcrypt::Version::TwoB));
    // What is printed is what the start takes.
    Clients::parse(&entry, "", true).map_err(|wrong| match wrong.into_iter().next() {
        Some(wrong) => anyhow!(wrong),
        None => anyhow!("the entry cannot be used"),
    })?;
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oa8_the_printed_entry_is_one_that_the_start_takes() {
        let entry = entry("explorer", "correct horse", [7; 16], 10).unwrap();
        let hash = entry.strip_prefix("explorer:").unwrap();
        assert!(bcrypt::verify("correct horse", hash).unwrap());
        for (id, secret, why) in [
            ("explorer", "", "no secret"),
            ("explorer", &"x".repeat(73), "longer than the 72 bytes"),
            ("two words", "secret", "client id"),
            ("", "secret", "client id"),
        ] {
            let told = entry_error(id, secret);
            assert!(told.contains(why), "{told}");
        }
    }

    fn entry_error(id: &str, secret: &str) -> String {
        entry(id, secret, [7; 16], 10).unwrap_err().to_string()
    }
}
