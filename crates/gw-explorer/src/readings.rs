//! Balances in tokens and supplies as they are shown: without withheld changes (HD28), like the answer of the same
//! question on `/rpc`.
//!
//! The indexer reads them on the state of the chain. Withheld changes are undone slot by slot, so an amount cannot be
//! undone; it is read again on the visible state instead.

use crate::{error::ExplorerError, state::TokenQuery, view::View};
use gw_chain_store::{
    TokenHolding,
    rows::{TokenBalance, TokenRow},
};
use gw_http::ApiError;
use gw_types::{Address, U256};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The token balances that are read from the store at once.
const BALANCES: u64 = 500;
/// The most pending balances that are looked at. If there are more, each stored balance may be one of them.
const PENDING_SIZE: usize = 5_000;
const MAX_PENDING: u64 = PENDING_SIZE as u64;
/// The most balances that are read from the node for one request.
const MAX_READS: u32 = 100;

/// Balances in tokens: what is stored of them, and which of them are to be read again because a block changed them.
#[derive(Debug)]
pub(crate) struct HeldBalances {
    stored: BTreeMap<TokenHolding, TokenBalance>,
    pending: HashSet<TokenHolding>,
    has_all_pending: bool,
    /// Whether a stored balance may stand for one that cannot be read now.
    may_be_old: bool,
    /// How many balances may still be read from the node.
    reads_left: u32,
}

impl HeldBalances {
    fn new(stored: Vec<TokenBalance>, pending: HashSet<TokenHolding>) -> Self {
        let keyed = stored.into_iter().map(|row| (TokenHolding::from(&row), row));
        Self {
            stored: keyed.collect(),
            has_all_pending: pending.len() < PENDING_SIZE,
            pending,
            may_be_old: false,
            reads_left: MAX_READS,
        }
    }

    /// These balances for a count, which uses stored balances while the node does not answer.
    pub(crate) fn for_count(self) -> Self {
        Self {
            may_be_old: true,
            ..self
        }
    }

    /// The holdings with a stored or pending balance, ordered by token, holder and token id.
    pub(crate) fn holdings(&self) -> BTreeSet<TokenHolding> {
        self.stored.keys().chain(&self.pending).copied().collect()
    }

    /// The holdings of one token.
    pub(crate) fn holdings_of(&self, token: Address) -> BTreeSet<TokenHolding> {
        let mut holdings = self.holdings();
        holdings.retain(|holding| holding.token == token);
        holdings
    }

    fn is_pending(&self, holding: &TokenHolding) -> bool {
        !self.has_all_pending || self.pending.contains(holding)
    }
}

fn unknown() -> ExplorerError {
    ApiError::unavailable("the balance is not known yet").into()
}

impl View {
    /// Whether what the indexer read of a token may differ from what is shown.
    fn is_withheld(&self, token: Address) -> bool {
        self.snapshot.withheld_of(token, self.version.newest).next().is_some()
    }

    /// The balance to show. A stored one is shown only if it was read since the last change, and nothing is withheld.
    ///
    /// # Errors
    /// 503 if the node does not answer, or too many balances would have to be read. A balance that is only counted is
    /// the stored one then.
    pub(crate) async fn shown_token_balance(
        &self,
        holding: &TokenHolding,
        balances: &mut HeldBalances,
    ) -> Result<U256, ExplorerError> {
        let stored = balances.stored.get(holding);
        let stored = stored.filter(|row| self.blocks().contains(&row.block_number));
        let stored = stored.filter(|_| !self.is_withheld(holding.token));
        let stored = stored.map(|row| row.balance);
        if let Some(balance) = stored.filter(|_| !balances.is_pending(holding)) {
            return Ok(balance);
        }
        let old = stored.filter(|_| balances.may_be_old);
        let Some(left) = balances.reads_left.checked_sub(1) else {
            return old.ok_or_else(unknown);
        };
        balances.reads_left = left;
        let query = TokenQuery::Balance {
            holder: holding.holder,
            token_id: holding.token_id,
        };
        match self.read_token(holding.token, query).await {
            Ok(balance) => Ok(balance.unwrap_or_default()),
            Err(error) => old.ok_or(error),
        }
    }

    /// The token balances of an address.
    ///
    /// # Errors
    /// Any error of the store.
    pub(crate) async fn balances_of(&self, holder: Address) -> Result<HeldBalances, ExplorerError> {
        let (mut stored, mut after) = (Vec::new(), None);
        loop {
            let rows = self.reader.list_token_balances(holder, after, BALANCES).await?;
            let Some(last) = rows.last() else { break };
            after = Some((last.token, last.token_id));
            stored.extend(rows);
        }
        let pending = self.reader.pending_balances_of(holder, MAX_PENDING).await?;
        Ok(HeldBalances::new(stored, pending))
    }

    /// The balances of these addresses in these tokens.
    ///
    /// # Errors
    /// Any error of the store.
    pub(crate) async fn balances_in(
        &self,
        tokens: &[Address],
        holders: &BTreeSet<Address>,
    ) -> Result<HeldBalances, ExplorerError> {
        let addresses: Vec<Address> = holders.iter().copied().collect();
        let stored = self.reader.token_balances_among(tokens, &addresses).await?;
        let mut pending = self.reader.pending_balances_in(tokens, MAX_PENDING).await?;
        let has_all = pending.len() < PENDING_SIZE;
        pending.retain(|holding| holders.contains(&holding.holder));
        Ok(HeldBalances {
            has_all_pending: has_all,
            ..HeldBalances::new(stored, pending)
        })
    }

    /// The supply to show of a token; `None` if the contract does not report it.
    ///
    /// # Errors
    /// 503 if the node does not answer.
    pub(crate) async fn shown_supply(&self, row: &TokenRow) -> Result<Option<U256>, ExplorerError> {
        if self.is_withheld(row.token.address) {
            return self.read_token(row.token.address, TokenQuery::Supply).await;
        }
        Ok(row.token.total_supply)
    }

    async fn read_token(&self, token: Address, query: TokenQuery) -> Result<Option<U256>, ExplorerError> {
        let block = self.version.newest;
        let state = self.snapshot.visible_state(block);
        let answer = self.state.balances.token(token, query, block, &state).await;
        answer.map_err(|_| unknown())
    }
}
