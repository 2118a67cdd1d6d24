//! Tokens that the viewer sees, their holders and their transfers. Any other token is not found.
//!
//! All numbers and the order of the list come from rows that the viewer sees: the first transfer of a token, for
//! example, may be hidden.

use super::{address_feed::AddressFeed, parse_address};
use crate::{
    error::ExplorerError,
    page::{ExplorerListResponse, FeedQuery, Limits, PageRequest, RankedQuery},
    readings::HeldBalances,
    rows::{lower, time, token_type},
    selection::in_blocks,
    state::ExplorerState,
    view::{RequestCaller, View},
    wire::{AddressMetadata, Token, TokenHolder, TokenTransfer},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_chain_store::rows::{MetadataState, TokenBalance, TokenRow, TokenStandard};
use gw_http::{GrowingList, QueryParams};
use gw_policy::{Viewer, visibility::explorer::HolderVisibility};
use gw_postings::{RowSet, Space};
use gw_types::{Address, U256};
use serde::Deserialize;
use std::{cmp::Reverse, collections::BTreeSet};

const MISSING: &str = "token not found";

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct TokenFilter {
    /// Only tokens of this standard: `ERC-20`, `ERC-721` or `ERC-1155`.
    #[param(required = false, example = "ERC-20")]
    pub(crate) r#type: Option<String>,
}

/// Lists tokens that the viewer sees, those with the newest first visible transfer first.
#[utoipa::path(get, path = "/api/v1/explorer/tokens", tag = "explorer", params(TokenFilter, FeedQuery),
    responses((status = 200, body = ExplorerListResponse<Token>), ExplorerError))]
pub(crate) async fn list_tokens(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    QueryParams(filter): QueryParams<TokenFilter>,
    QueryParams(query): QueryParams<FeedQuery>,
    list: GrowingList,
) -> Result<Json<ExplorerListResponse<Token>>, ExplorerError> {
    let page = query.page(Limits::ROWS)?;
    let standard = filter.r#type.as_deref().map(parse_standard).transpose()?;
    let view = View::open(&state, &caller, &[Space::Transfers]).await?;
    let viewer = view.viewer();
    let mut tokens = view.visible_tokens(&viewer).await?;
    tokens.retain(|(row, _)| standard.is_none_or(|standard| row.token.standard == standard));
    // Ids are in the order of the chain, and each transfer is one of one token.
    tokens.sort_by_key(|(_, transfers)| Reverse(transfers.oldest()));
    if let Some(end) = view.list_end(Space::Transfers, &list, page)? {
        tokens.retain(|(_, transfers)| transfers.oldest() < Some(end));
    }
    let total = tokens.len() as u64;
    let start = view.cursor_row(Space::Transfers, &list)?;
    if let Some(start) = start {
        tokens.retain(|(_, transfers)| transfers.oldest() < Some(start));
    }
    let (tokens, has_more) = cut(tokens, page, start.is_some());
    let addresses: Vec<Address> = tokens.iter().map(|(row, _)| row.token.address).collect();
    let mut held = view
        .balances_in(&addresses, &view.scopes.addresses())
        .await?
        .for_count();
    let mut data = Vec::new();
    for (row, transfers) in &tokens {
        data.push(view.token(&viewer, row, transfers, &mut held).await?);
    }
    let last = tokens.last().and_then(|(_, transfers)| transfers.oldest());
    let next_cursor = match last.filter(|_| has_more) {
        Some(last) => view.cursor_after(Space::Transfers, &list, last)?,
        None => None,
    };
    Ok(Json(ExplorerListResponse {
        data,
        total: Some(total),
        next_cursor,
    }))
}

/// A token.
#[utoipa::path(get, path = "/api/v1/explorer/tokens/{address}", tag = "explorer",
    params(("address" = String, Path, description = "The token contract")),
    responses((status = 200, body = Token), ExplorerError))]
pub(crate) async fn get_token(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    Path(address): Path<String>,
) -> Result<Json<Token>, ExplorerError> {
    let address = parse_address(&address)?;
    let view = View::open(&state, &caller, &[Space::Transfers]).await?;
    let viewer = view.viewer();
    let (row, transfers) = view.require_token(&viewer, address).await?;
    let mut held = view
        .balances_in(&[address], &view.scopes.addresses())
        .await?
        .for_count();
    Ok(Json(view.token(&viewer, &row, &transfers, &mut held).await?))
}

/// Lists the holders of a token that the viewer sees, the largest balance first. Holders whose balance is not shown
/// follow, each once, in an order that says nothing about balance or address.
#[utoipa::path(get, path = "/api/v1/explorer/tokens/{address}/holders", tag = "explorer", params(RankedQuery,
    ("address" = String, Path, description = "The token contract")),
    responses((status = 200, body = ExplorerListResponse<TokenHolder>), ExplorerError))]
pub(crate) async fn list_holders(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    Path(address): Path<String>,
    QueryParams(query): QueryParams<RankedQuery>,
    list: GrowingList,
) -> Result<Json<ExplorerListResponse<TokenHolder>>, ExplorerError> {
    let (address, page) = (parse_address(&address)?, query.page(Limits::ROWS)?);
    let view = View::open(&state, &caller, &[Space::Transfers]).await?;
    let viewer = view.viewer();
    let (row, _) = view.require_token(&viewer, address).await?;
    let mut held = view.balances_in(&[address], &view.scopes.addresses()).await?;
    let holders = view.visible_holders(&viewer, address, &mut held).await?;
    let supply = view.shown_supply(&row).await?;
    let mut ranked: Vec<(HolderRank, Holder)> = (holders.into_iter())
        .map(|holder| (view.rank_of(&holder), holder))
        .collect();
    ranked.sort_by_key(|(rank, _)| Reverse(*rank));
    // The number of ids of a holder is hidden with their balances.
    ranked.dedup_by_key(|(rank, _)| *rank);
    let total = ranked.len() as u64;
    let after = view.holder_rank(&list)?;
    if let Some(after) = after {
        ranked.retain(|(rank, _)| *rank < after);
    }
    let (shown, has_more) = cut(ranked, page, after.is_some());
    let addresses: Vec<Address> = shown.iter().map(|(_, holder)| holder.balance.holder).collect();
    let contracts = view.reader.contracts_among(&addresses).await?;
    let last = shown.last().filter(|_| has_more).map(|(rank, _)| *rank);
    let data = shown.iter().map(|(_, Holder { balance, visibility })| {
        let is_clear = visibility.holder.is_clear();
        TokenHolder {
            address: view.print(balance.holder, visibility.holder, &mut AddressMetadata::new()),
            token_id: balance.token_id.filter(|_| visibility.balance).map(|id| id.to_string()),
            balance: if visibility.balance {
                balance.balance.to_string()
            } else {
                String::new()
            },
            percentage: if visibility.balance {
                percentage(balance.balance, supply)
            } else {
                0.0
            },
            is_contract: is_clear && contracts.contains(&balance.holder),
            is_pending: None,
        }
    });
    Ok(Json(ExplorerListResponse {
        data: data.collect(),
        total: Some(total),
        next_cursor: last.and_then(|last| view.cursor_below(&list, last)),
    }))
}

/// Lists the transfers of a token that the viewer sees, the newest first.
#[utoipa::path(get, path = "/api/v1/explorer/tokens/{address}/transfers", tag = "explorer", params(FeedQuery,
    ("address" = String, Path, description = "The token contract")),
    responses((status = 200, body = ExplorerListResponse<TokenTransfer>), ExplorerError))]
pub(crate) async fn list_token_transfers(
    feed: AddressFeed,
) -> Result<Json<ExplorerListResponse<TokenTransfer>>, ExplorerError> {
    let view = feed.open(Space::Transfers).await?;
    let (_, rows) = view.require_token(&view.viewer(), feed.address).await?;
    let page = view.page_ids(&rows, &feed.list, feed.page)?;
    let data = view.transfers(&page.ids).await?;
    Ok(Json(view.answer(Space::Transfers, &feed.list, page, data)?))
}

/// # Errors
/// 400 for an unknown standard.
pub(crate) fn parse_standard(text: &str) -> Result<TokenStandard, ExplorerError> {
    let all = [TokenStandard::Erc20, TokenStandard::Erc721, TokenStandard::Erc1155];
    let standard = all.into_iter().find(|standard| {
        let name = token_type(*standard);
        text.eq_ignore_ascii_case(name) || text.eq_ignore_ascii_case(&name.replace('-', ""))
    });
    standard.ok_or_else(|| ExplorerError::bad_request("invalid type; expected one of: ERC-20, ERC-721, ERC-1155"))
}

/// The rows of a page, and whether there are more. The offset counts unless the rows begin after a cursor.
fn cut<T>(all: Vec<T>, page: PageRequest, is_after_cursor: bool) -> (Vec<T>, bool) {
    let offset = if is_after_cursor { 0 } else { page.offset };
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    let has_more = all.len().saturating_sub(offset) > page.limit;
    (all.into_iter().skip(offset).take(page.limit).collect(), has_more)
}

/// A holder of a token that the viewer sees.
#[derive(Debug)]
struct Holder {
    balance: TokenBalance,
    visibility: HolderVisibility,
}

/// The place of a holder in the list of holders: the largest balance is first. It depends on nothing that the viewer
/// does not see (HD8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct HolderRank {
    /// Zero if it is not shown.
    balance: U256,
    /// Of an alias, the end of its text.
    holder: Address,
    token_id: Option<U256>,
}

/// The numbers of a [`HolderRank`]: four of the balance, three of the holder, four of the token id.
type RankNumbers = [Option<i64>; 11];

impl HolderRank {
    fn numbers(self) -> RankNumbers {
        let [b0, b1, b2, b3] = self.balance.into_limbs().map(|limb| Some(limb.cast_signed()));
        let [h0, h1, h2, _] = U256::from_be_bytes(self.holder.into_word().0)
            .into_limbs()
            .map(|limb| Some(limb.cast_signed()));
        let id = self.token_id.map(U256::into_limbs);
        let [i0, i1, i2, i3] = [0, 1, 2, 3].map(|place: usize| Some(id?.get(place)?.cast_signed()));
        [b0, b1, b2, b3, h0, h1, h2, i0, i1, i2, i3]
    }

    fn from_numbers(numbers: RankNumbers) -> Option<Self> {
        let [b0, b1, b2, b3, h0, h1, h2, i0, i1, i2, i3] = numbers.map(|number| number.map(i64::cast_unsigned));
        let holder = U256::from_limbs([h0?, h1?, h2?, 0]);
        let token_id = match (i0, i1, i2, i3) {
            (Some(i0), Some(i1), Some(i2), Some(i3)) => Some(U256::from_limbs([i0, i1, i2, i3])),
            _ => None,
        };
        Some(Self {
            balance: U256::from_limbs([b0?, b1?, b2?, b3?]),
            holder: Address::from_word(holder.to_be_bytes::<32>().into()),
            token_id,
        })
    }
}

/// The share of the supply in percent, with two decimals.
pub(crate) fn percentage(balance: U256, supply: Option<U256>) -> f64 {
    let Some(supply) = supply.filter(|supply| !supply.is_zero()) else {
        return 0.0;
    };
    let hundredths = balance.saturating_mul(U256::from(10_000)) / supply;
    f64::from(u32::try_from(hundredths).unwrap_or(10_000)) / 100.0
}

impl View {
    /// The place of a holder. An address that is not shown in clear counts by its alias.
    fn rank_of(&self, holder: &Holder) -> HolderRank {
        let Holder { balance, visibility } = holder;
        let address = if visibility.holder.is_clear() {
            balance.holder
        } else {
            let text = self.print(balance.holder, visibility.holder, &mut AddressMetadata::new());
            Address::left_padding_from(text.as_bytes().rchunks(Address::len_bytes()).next().unwrap_or_default())
        };
        HolderRank {
            balance: if visibility.balance {
                balance.balance
            } else {
                U256::ZERO
            },
            holder: address,
            token_id: balance.token_id.filter(|_| visibility.balance),
        }
    }

    /// The place in the list of holders below which the page of a cursor begins; `None` without a cursor.
    ///
    /// # Errors
    /// 400 for an invalid cursor.
    fn holder_rank(&self, list: &GrowingList) -> Result<Option<HolderRank>, ExplorerError> {
        let numbers = list.after::<11>(&self.state.http_context, &self.id.cursor_scope())?;
        let Some(numbers) = numbers else { return Ok(None) };
        let invalid = || ExplorerError::bad_request("invalid pagination cursor");
        HolderRank::from_numbers(numbers).map(Some).ok_or_else(invalid)
    }

    /// The cursor of the page of holders below this one.
    fn cursor_below(&self, list: &GrowingList, rank: HolderRank) -> Option<String> {
        list.next(&self.state.http_context, &self.id.cursor_scope(), rank.numbers())
    }

    /// The tokens that the viewer sees and their transfers, in no particular order. A token of which the viewer sees no
    /// transfer is absent: that it has others is not for the viewer to know (I5).
    ///
    /// # Errors
    /// Any error of the store.
    pub(crate) async fn visible_tokens(&self, viewer: &Viewer<'_>) -> Result<Vec<(TokenRow, RowSet)>, ExplorerError> {
        let addresses: Vec<Address> = self.scopes.addresses().into_iter().collect();
        let mut tokens = Vec::new();
        for row in self.reader.tokens_among(&addresses).await? {
            let transfers = self.transfers_of_token(viewer, row.token.address)?;
            if viewer.shows_token(row.token.address) && !transfers.is_empty() {
                tokens.push((row, transfers));
            }
        }
        Ok(tokens)
    }

    /// A token that the viewer sees, and its transfers.
    ///
    /// # Errors
    /// 404 unless the viewer sees the token.
    async fn require_token(&self, viewer: &Viewer<'_>, address: Address) -> Result<(TokenRow, RowSet), ExplorerError> {
        // Before anything is read: a hidden token costs no more reads than a missing one.
        if !viewer.shows_token(address) {
            return Err(ExplorerError::not_found(MISSING));
        }
        let row = self.reader.find_token(address).await?;
        let transfers = self.transfers_of_token(viewer, address)?;
        let token = row.filter(|_| !transfers.is_empty()).map(|row| (row, transfers));
        token.ok_or_else(|| ExplorerError::not_found(MISSING))
    }

    /// The transfers of a token that the viewer sees.
    fn transfers_of_token(&self, viewer: &Viewer<'_>, token: Address) -> Result<RowSet, ExplorerError> {
        let blocks = in_blocks(&viewer.address_list_blocks(token));
        let of_token = self.index(|postings| postings.transfers_of_token(&blocks))?;
        Ok(of_token.intersection(&self.rows(Space::Transfers)?))
    }

    /// The positive balances of the holders that the viewer sees. `held` has those of all addresses that make rows
    /// visible: these suffice.
    async fn visible_holders(
        &self,
        viewer: &Viewer<'_>,
        token: Address,
        held: &mut HeldBalances,
    ) -> Result<Vec<Holder>, ExplorerError> {
        let mut holders = Vec::new();
        for holding in held.holdings_of(token) {
            let Some(visibility) = viewer.holder_entry(token, holding.holder) else {
                continue;
            };
            let balance = self.shown_token_balance(&holding, held).await?;
            if !balance.is_zero() {
                let balance = TokenBalance {
                    token,
                    holder: holding.holder,
                    token_id: holding.token_id,
                    balance,
                    block_number: self.version.newest,
                };
                holders.push(Holder { balance, visibility });
            }
        }
        Ok(holders)
    }

    /// The record of a token. `held` has the balances of all addresses that make rows visible in it.
    async fn token(
        &self,
        viewer: &Viewer<'_>,
        row: &TokenRow,
        transfers: &RowSet,
        held: &mut HeldBalances,
    ) -> Result<Token, ExplorerError> {
        let token = &row.token;
        let metadata = match &token.metadata {
            MetadataState::Known(metadata) => metadata.clone(),
            MetadataState::Pending | MetadataState::Unavailable => Default::default(),
        };
        let first = match transfers.oldest() {
            Some(oldest) => self.index(|postings| postings.block_of(Space::Transfers, oldest))?,
            None => None,
        };
        let holders = self.visible_holders(viewer, token.address, held).await?;
        // A holder of several token ids counts once.
        let holders: BTreeSet<Address> = holders.iter().map(|holder| holder.balance.holder).collect();
        Ok(Token {
            address: lower(token.address),
            symbol: metadata.symbol.unwrap_or_default(),
            name: metadata.name,
            decimals: metadata.decimals.unwrap_or_default(),
            token_type: token_type(token.standard),
            total_supply: self.shown_supply(row).await?.map(|supply| supply.to_string()),
            holder_count: holders.len() as u64,
            transfer_count: transfers.len(),
            block_number: first.as_ref().map(|block| block.number),
            created_at: first.map(|block| time(block.time.secs())),
            balances_pending: None,
        })
    }
}
