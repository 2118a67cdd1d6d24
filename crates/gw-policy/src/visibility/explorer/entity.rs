//! What the explorer shows of addresses, tokens, holders, balances and contracts (spec/30 section 9).

use super::{AddressBlocks, AddressText, AddressVisibility, TransactionEntry, scope::blocks_where};
use crate::{snapshot::Moment, visibility::Viewer};
use gw_types::{Address, Level};

/// How a holder of a token is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HolderVisibility {
    /// The holder.
    pub holder: AddressVisibility,
    /// Whether its balance and percentage are shown.
    pub balance: bool,
}

/// How a token balance of an address is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BalanceVisibility {
    /// The token.
    pub token: AddressVisibility,
    /// Whether the balance is shown.
    pub balance: bool,
}

/// How a contract is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContractVisibility {
    /// Its creator, by its own level.
    pub creator: AddressVisibility,
    /// Whether the hash of the transaction that created it is shown.
    pub creation_tx: bool,
}

impl Viewer<'_> {
    /// Whether a request may name the address: statistics, balances, code, search results and look-ups exist for it.
    /// For any other address they answer as for an unknown one (HD5).
    ///
    /// The zero address counts; precompiles and shared infrastructure have no lists, counts or statistics (HD9). A
    /// grant of disclosure counts only if it is Full and unrestricted (HD8).
    #[must_use]
    pub fn opens_address(&self, address: Address) -> bool {
        self.is_visible_address(address, Moment::Now, Level::Full)
    }

    /// Whether balance, code and contract of an address are shown: those of an address that the viewer may look up, and
    /// those of a precompile or of shared infrastructure, as on `/rpc`. Such a utility has no lists, counts or
    /// statistics (HD9).
    #[must_use]
    pub fn opens_account(&self, address: Address) -> bool {
        self.opens_address(address) || self.is_open_utility(address)
    }

    /// The blocks whose rows the lists of an address contain. In other blocks the address is masked, so that a list
    /// would tell in which rows it stands (HD1, HD41).
    #[must_use]
    pub fn address_list_blocks(&self, address: Address) -> Vec<AddressBlocks> {
        blocks_where(self.user().snapshot, address, |moment| {
            self.is_visible_address(address, moment, Level::Full)
        })
    }

    /// Whether a token is shown, in lists and alone. A token below Full is absent, as an unknown one is.
    #[must_use]
    pub fn shows_token(&self, token: Address) -> bool {
        !token.is_zero() && self.opens_address(token)
    }

    /// How a holder of a token is shown; `None` if it is not. A Redacted holder is dropped like a Hidden one: the
    /// difference would tell that somebody registered the address (HD40). A balance is shown only for a Full holder
    /// (HD8).
    #[must_use]
    pub fn holder_entry(&self, token: Address, holder: Address) -> Option<HolderVisibility> {
        let is_shown = self.shows_token(token) && self.is_visible_address(holder, Moment::Now, Level::Pseudonymous);
        let shown = self.address_entry(holder, Moment::Now);
        (is_shown && shown.text != AddressText::Private).then(|| HolderVisibility {
            holder: shown,
            balance: shown.is_clear() && self.is_open(token) && self.is_open(holder),
        })
    }

    /// How the balance of an address in a token is shown; `None` if it is not.
    #[must_use]
    pub fn balance_entry(&self, owner: Address, token: Address) -> Option<BalanceVisibility> {
        let shown = self.address_entry(token, Moment::Now);
        (self.opens_address(owner) && shown.text != AddressText::Private).then(|| BalanceVisibility {
            token: shown,
            balance: self.is_open(token) && self.is_open(owner),
        })
    }

    /// How a contract is shown that this creator created in this transaction; `None` if it is not shown.
    #[must_use]
    pub fn contract_entry(
        &self,
        contract: Address,
        creator: Address,
        creation: &TransactionEntry<'_>,
    ) -> Option<ContractVisibility> {
        self.opens_account(contract).then(|| ContractVisibility {
            creator: self.address_entry(creator, creation.row.moment),
            creation_tx: self.shows_hash_of(creation),
        })
    }

    /// Whether no post-execution violation closed the address (HD28).
    pub(super) fn is_open(&self, address: Address) -> bool {
        self.all(|viewer| !viewer.is_closed(address))
    }
}
