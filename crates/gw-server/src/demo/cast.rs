//! The personas, their organizations and the rights of their groups (decisions 24, 35, 53).

use super::account::Account;
use clap::ValueEnum;
use gw_types::{Address, ExternalId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A user with a DID and one of the node's well-known development accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Persona {
    /// Meridian Bank, operations: may deploy contracts and call all methods.
    Ops,
    /// Meridian Bank, analyst: may call five methods, and read only its own balance of the token.
    Analyst,
    /// Meridian Bank, administrator of the organization.
    Admin,
    /// Volta Bank, trader.
    Trader,
    /// A user without any membership.
    Regulator,
}

/// An organization of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bank {
    /// Owns the token.
    Meridian,
    /// Cannot see the token.
    Volta,
}

/// A group and the methods and claims of its members.
#[derive(Clone, Copy, Debug)]
pub(super) struct Role {
    pub(super) bank: Bank,
    pub(super) name: &'static str,
    pub(super) slug: &'static str,
    pub(super) is_org_admin: bool,
    pub(super) methods: &'static [&'static str],
    pub(super) claims: &'static [&'static str],
}

const READER: &[&str] = &[
    "eth_call",
    "eth_getBalance",
    "eth_getTransactionCount",
    "eth_getTransactionReceipt",
    "eth_getLogs",
];

const TRADER: &[&str] = &[
    "eth_call",
    "eth_estimateGas",
    "eth_sendRawTransaction",
    "eth_getTransactionCount",
    "eth_getBalance",
    "eth_getTransactionReceipt",
    "eth_getBlockByNumber",
    "eth_maxPriorityFeePerGas",
];

impl Bank {
    /// Every bank.
    pub(super) const ALL: [Self; 2] = [Self::Meridian, Self::Volta];

    /// Name and slug of the organization.
    pub(super) const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Meridian => ("Meridian Bank", "meridian"),
            Self::Volta => ("Volta Bank", "volta"),
        }
    }
}

/// The DIDs that personas log in with. A DID given here replaces a persona's default DID, so that its owner can log in
/// as the persona with their own wallet.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Names(BTreeMap<String, ExternalId>);

impl Names {
    /// Builds the names from the DIDs of the command line.
    pub(super) fn new(dids: &[(Persona, ExternalId)]) -> Self {
        Self(
            dids.iter()
                .map(|(persona, did)| (persona.word().to_owned(), did.clone()))
                .collect(),
        )
    }

    /// The DID of a persona.
    pub(super) fn did(&self, persona: Persona) -> &str {
        self.0
            .get(persona.word())
            .map_or(persona.default_did(), ExternalId::as_str)
    }
}

/// Parses `<persona>=<DID>`.
pub(super) fn parse_name(text: &str) -> Result<(Persona, ExternalId), String> {
    let (word, did) = text.split_once('=').ok_or("must be `<persona>=<DID>`")?;
    let persona = Persona::from_str(word, true)?;
    let did = ExternalId::new(did).map_err(|error| error.to_string())?;
    if did.is_did() {
        Ok((persona, did))
    } else {
        Err(format!("`{did}` is not a DID"))
    }
}

impl Persona {
    /// Every persona.
    pub(super) const ALL: [Self; 5] = [Self::Ops, Self::Analyst, Self::Admin, Self::Trader, Self::Regulator];

    /// The persona's name on the command line.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Ops => "ops",
            Self::Analyst => "analyst",
            Self::Admin => "admin",
            Self::Trader => "trader",
            Self::Regulator => "regulator",
        }
    }

    /// The persona's name in texts.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Ops => "Meridian ops",
            Self::Analyst => "Meridian analyst",
            Self::Admin => "Meridian admin",
            Self::Trader => "Volta trader",
            Self::Regulator => "Regulator",
        }
    }

    /// The DID of the persona if the command line gives none.
    const fn default_did(self) -> &'static str {
        match self {
            Self::Ops => "did:test:meridian-ops",
            Self::Analyst => "did:test:meridian-analyst",
            Self::Admin => "did:test:meridian-admin",
            Self::Trader => "did:test:volta-trader",
            Self::Regulator => "did:test:regulator",
        }
    }

    /// The private key of the persona's account. The keys are public: every development node funds these accounts.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Ops => "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
            Self::Analyst => "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
            Self::Admin => "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
            Self::Trader => "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
            Self::Regulator => "0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
        }
    }

    /// The persona's account.
    pub(super) fn account(self) -> anyhow::Result<Account> {
        Account::from_key(self.key())
    }

    /// The address of the persona's account.
    pub(super) fn address(self) -> anyhow::Result<Address> {
        Ok(self.account()?.address())
    }

    /// The persona's group; the regulator has none.
    pub(super) const fn role(self) -> Option<Role> {
        match self {
            Self::Ops => Some(Role {
                bank: Bank::Meridian,
                name: "Operations",
                slug: "operations",
                is_org_admin: false,
                methods: &["*"],
                claims: &["deploy"],
            }),
            Self::Analyst => Some(Role {
                bank: Bank::Meridian,
                name: "Analysts",
                slug: "analysts",
                is_org_admin: false,
                methods: READER,
                claims: &[],
            }),
            Self::Admin => Some(Role {
                bank: Bank::Meridian,
                name: "Administration",
                slug: "administration",
                is_org_admin: true,
                methods: READER,
                claims: &[],
            }),
            Self::Trader => Some(Role {
                bank: Bank::Volta,
                name: "Traders",
                slug: "traders",
                is_org_admin: false,
                methods: TRADER,
                claims: &[],
            }),
            Self::Regulator => None,
        }
    }
}
