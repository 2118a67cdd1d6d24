//! The price of a token for an organization (CO-14).

use crate::token::Token;
use alloy_primitives::map::HashMap;
use gw_money::{Currency, Price, TokenDecimals};
use gw_types::{Seconds, Timestamp};
use std::{collections::BTreeMap, fmt, sync::Arc};

/// The id by which the price feed names a token, such as `ethereum`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FeedId(Arc<str>);

/// A price row of an organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenPriceRow {
    /// The symbol, for messages.
    pub symbol: Arc<str>,
    /// The decimal places of the token.
    pub decimals: TokenDecimals,
    /// Where its price comes from.
    pub source: RowSource,
}

/// Where the price of a row comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowSource {
    /// An administrator entered a price in each of these currencies.
    Manual(BTreeMap<Currency, Price>),
    /// The price feed. Manual prices of such a row are never used.
    Feed(FeedId),
}

/// A price that the feed reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedPrice {
    /// The price of a whole token.
    pub price: Price,
    /// When the provider says that it was current.
    pub updated_at: Timestamp,
}

/// The prices of the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemPrices {
    /// By id and currency.
    pub prices: HashMap<FeedId, BTreeMap<Currency, FeedPrice>>,
    /// The id of the native coin (`NATIVE_PRICEFEED_ID`).
    pub native_feed: FeedId,
    /// The age beyond which a price is stale; zero: never (`PRICE_STALENESS_THRESHOLD`).
    pub staleness: Seconds,
}

/// Where a known price comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PriceSource {
    /// The organization's own price.
    Manual,
    /// The feed.
    Feed {
        /// The id of the token.
        id: FeedId,
        /// When the price was current.
        updated_at: Timestamp,
    },
}

/// A known price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownPrice {
    /// The price of a whole token.
    pub price: Price,
    /// The decimal places of the token.
    pub decimals: TokenDecimals,
    /// Where the price comes from.
    pub source: PriceSource,
}

/// Why a price is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownPrice {
    /// The organization has no row for the token.
    #[error("the organization has no price for the token")]
    NoRow,
    /// The row has no price in the currency. Prices in other currencies are never used.
    #[error("the token has no price in `{0}`")]
    NoPriceIn(Currency),
    /// The feed has no price in the currency.
    #[error("the feed has no price of `{0}` in `{1}`")]
    NoFeedPrice(FeedId, Currency),
    /// The price of the feed is older than allowed, or from the future by as much.
    #[error("the price of `{0}` from the feed is stale")]
    Stale(FeedId),
    /// A log tells a transfer of the token, but no amount.
    #[error("the amount of a transfer is not readable")]
    NoAmount,
}

/// The price of a token in a currency, by the rows of the organization and the prices of the feed. Decisions and the
/// creation of records use this function alike.
///
/// # Errors
/// [`UnknownPrice`], which is a result of its own: the organization's policy says what follows.
pub fn find_price(
    rows: &HashMap<Token, TokenPriceRow>,
    system: &SystemPrices,
    token: Token,
    currency: Currency,
    now: Timestamp,
) -> Result<KnownPrice, UnknownPrice> {
    match (rows.get(&token), token) {
        (Some(row), _) => match &row.source {
            RowSource::Manual(prices) => {
                let price = prices.get(&currency).ok_or(UnknownPrice::NoPriceIn(currency))?;
                Ok(KnownPrice {
                    price: *price,
                    decimals: row.decimals,
                    source: PriceSource::Manual,
                })
            }
            RowSource::Feed(id) => system.find(id, row.decimals, currency, now),
        },
        (None, Token::Native) => system.find(&system.native_feed, TokenDecimals::NATIVE, currency, now),
        (None, Token::Contract(_)) => Err(UnknownPrice::NoRow),
    }
}

impl SystemPrices {
    fn find(
        &self,
        id: &FeedId,
        decimals: TokenDecimals,
        currency: Currency,
        now: Timestamp,
    ) -> Result<KnownPrice, UnknownPrice> {
        let prices = self.prices.get(id);
        let found = prices
            .and_then(|prices| prices.get(&currency))
            .ok_or_else(|| UnknownPrice::NoFeedPrice(id.clone(), currency))?;
        if self.is_stale(found.updated_at, now) {
            return Err(UnknownPrice::Stale(id.clone()));
        }
        Ok(KnownPrice {
            price: found.price,
            decimals,
            source: PriceSource::Feed {
                id: id.clone(),
                updated_at: found.updated_at,
            },
        })
    }

    /// Whether a price of this time is stale. A time in the future by more than the threshold is a fault of the
    /// provider, and the price must not stay fresh until then.
    pub fn is_stale(&self, updated_at: Timestamp, now: Timestamp) -> bool {
        let is_checked = self.staleness != Seconds(0);
        is_checked && (updated_at.plus(self.staleness) < now || now.plus(self.staleness) < updated_at)
    }
}

impl FeedId {
    /// An id.
    pub fn new(id: &str) -> Self {
        Self(id.into())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FeedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
