//! The parties of a transaction, in the order of screening (CO-33).

use super::{Effect, EffectKind, Transaction};
use alloy_primitives::map::AddressSet;
use gw_evm::{code::delegation, trace::Trace, tx::authority};
use gw_types::Address;

/// What a party does in a transaction. The order is that of screening: the sender, recipients and owners come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PartyRole {
    /// Signs the transaction.
    Sender,
    /// Receives something.
    Recipient,
    /// Owns what moves, or gives an allowance.
    Owner,
    /// The target of the transaction, or of a call in its calldata.
    CalledContract,
    /// The contract of a token.
    TokenContract,
    /// Gets an allowance.
    Spender,
    /// Signed an EIP-7702 authorization.
    Authority,
    /// The delegate of an EIP-7702 wallet.
    Delegate,
    /// Runs code: inner calls, implementations of proxies, factories and paymasters.
    Code,
}

impl PartyRole {
    /// The name in logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Recipient => "recipient",
            Self::Owner => "owner",
            Self::CalledContract => "called contract",
            Self::TokenContract => "token contract",
            Self::Spender => "spender",
            Self::Authority => "authority",
            Self::Delegate => "delegate",
            Self::Code => "code",
        }
    }
}

/// An address that is screened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScreenedParty {
    /// Its first role.
    pub role: PartyRole,
    /// The address.
    pub address: Address,
}

/// The parties in the order of screening, each address once. The zero address is no party: it stands for a mint or a
/// burn.
pub(super) fn ordered<'a>(
    sender: Address,
    effects: impl Iterator<Item = &'a Effect>,
    further: impl Iterator<Item = ScreenedParty>,
) -> Vec<ScreenedParty> {
    let mut parties = vec![ScreenedParty {
        role: PartyRole::Sender,
        address: sender,
    }];
    parties.extend(effects.flat_map(of_effect));
    parties.extend(further);
    // A stable sort: within a role, the order of the effects stays.
    parties.sort_by_key(|party| party.role);
    let mut seen = AddressSet::default();
    parties.retain(|party| !party.address.is_zero() && seen.insert(party.address));
    parties
}

/// The parties of an effect.
pub(super) fn of_effect(effect: &Effect) -> impl Iterator<Item = ScreenedParty> {
    let recipient = match effect.kind {
        EffectKind::Approval => PartyRole::Spender,
        EffectKind::Native | EffectKind::Erc20 | EffectKind::Erc721 | EffectKind::Erc1155 => PartyRole::Recipient,
    };
    let contract = effect.token.contract();
    let ends = [(recipient, effect.to), (PartyRole::Owner, effect.from)];
    let token = contract.map(|contract| (PartyRole::TokenContract, contract));
    ends.into_iter()
        .chain(token)
        .map(|(role, address)| ScreenedParty { role, address })
}

/// The authorities and delegates of the EIP-7702 authorizations. An authorization without a valid signature has no
/// authority; its delegate is screened.
pub(super) fn of_authorizations(transaction: &Transaction<'_>) -> Vec<ScreenedParty> {
    let list = transaction.request.authorization_list.iter();
    list.flat_map(|authorization| {
        let signer = authority(authorization, transaction.chain).map(|address| ScreenedParty {
            role: PartyRole::Authority,
            address,
        });
        let delegate = ScreenedParty {
            role: PartyRole::Delegate,
            address: authorization.address,
        };
        signer.into_iter().chain([delegate])
    })
    .collect()
}

/// The accounts whose code ran, with the delegates of EIP-7702 wallets among them. Frames that were undone have no
/// effect.
pub(super) fn of_run(trace: &Trace) -> Vec<ScreenedParty> {
    let mut parties = Vec::new();
    let mut seen = AddressSet::default();
    let kept = trace.frames.iter().filter(|frame| !frame.undone);
    for address in kept
        .filter_map(|frame| frame.to)
        .filter(|address| seen.insert(*address))
    {
        parties.push(ScreenedParty {
            role: PartyRole::Code,
            address,
        });
        let code = trace.touched.get(&address).map(|account| &account.code);
        parties.extend(code.and_then(|code| delegation(code)).map(|address| ScreenedParty {
            role: PartyRole::Delegate,
            address,
        }));
    }
    parties
}
