//! Tokens, their holders and their transfers.

use super::{
    UnfilteredState, records,
    routes::{Answer, ListAnswer, PENDING, feed, missing},
    view::{ChainView, ListRows},
};
use crate::{
    error::ExplorerError,
    page::{ExplorerListResponse, FeedQuery, Limits, RankedQuery},
    routes::{
        parse_address,
        tokens::{TokenFilter, parse_standard, percentage},
    },
    rows::lower,
    wire::{Token, TokenHolder, TokenTransfer},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_chain_store::{HolderPosition, TokenHolding, TokenPosition, rows::TokenBalance};
use gw_http::QueryParams;
use gw_types::Address;
use std::collections::BTreeSet;

pub(super) async fn list_tokens(
    State(state): State<UnfilteredState>,
    QueryParams(filter): QueryParams<TokenFilter>,
    QueryParams(query): QueryParams<FeedQuery>,
) -> ListAnswer<Token> {
    let page = query.page(Limits::ROWS)?;
    let standard = filter.r#type.as_deref().map(parse_standard).transpose()?;
    let after = query.cursor().map(token_position).transpose()?;
    let view = ChainView::open(&state).await?;
    let shown = view.blocks();
    let end = page.before.map_or(shown.end, |before| before.min(shown.end));
    let limit = (page.limit as u64).saturating_add(1);
    let (mut rows, total) = match (after, end.checked_sub(1)) {
        (Some(after), _) => {
            let rows = view.reader.list_tokens(standard, Some(after), limit).await?;
            (rows, view.reader.count_tokens(standard, view.version.newest).await?)
        }
        (None, Some(newest)) => {
            let rows = view.reader.list_tokens_at(standard, newest, page.offset, limit);
            (rows.await?, view.reader.count_tokens(standard, newest).await?)
        }
        (None, None) => (Vec::new(), 0),
    };
    let has_more = rows.len() > page.limit;
    rows.truncate(page.limit);
    let addresses: Vec<Address> = rows.iter().map(|row| row.token.address).collect();
    let pending = view.reader.pending_balances_in(&addresses, PENDING).await?;
    let pending: BTreeSet<Address> = pending.into_iter().map(|holding| holding.token).collect();
    let data = rows
        .iter()
        .map(|row| {
            let transfers = view.transfers_of_token(row.token.address)?.len();
            Ok(records::token(row, transfers, pending.contains(&row.token.address)))
        })
        .collect::<Result<_, ExplorerError>>()?;
    let last = rows.last().filter(|_| has_more);
    Ok(Json(ExplorerListResponse {
        data,
        total: Some(total),
        next_cursor: last.map(|row| format!("{}-{}", row.block_number, lower(row.token.address))),
    }))
}

/// The place of a token in the list of tokens.
///
/// # Errors
/// 400 for an invalid cursor.
fn token_position(cursor: &str) -> Result<TokenPosition, ExplorerError> {
    let parse = || {
        let (block_number, address) = cursor.split_once('-')?;
        Some(TokenPosition {
            block_number: block_number.parse().ok()?,
            address: parse_address(address).ok()?,
        })
    };
    // No stored number is greater.
    let position = parse().filter(|position| i64::try_from(position.block_number).is_ok());
    position.ok_or_else(|| ExplorerError::bad_request("invalid pagination cursor"))
}

/// The place of a holder in the list of holders: balance, address and, of an ERC-1155 token, token id.
///
/// # Errors
/// 400 for an invalid cursor.
fn holder_position(cursor: &str) -> Result<HolderPosition, ExplorerError> {
    let parse = || {
        let mut parts = cursor.split('-');
        let position = HolderPosition {
            balance: parts.next()?.parse().ok()?,
            holder: parse_address(parts.next()?).ok()?,
            token_id: match parts.next() {
                Some(id) => Some(id.parse().ok()?),
                None => None,
            },
        };
        parts.next().is_none().then_some(position)
    };
    parse().ok_or_else(|| ExplorerError::bad_request("invalid pagination cursor"))
}

fn holder_cursor(row: &TokenBalance) -> String {
    let id = row.token_id.map_or_else(String::new, |id| format!("-{id}"));
    format!("{}-{}{id}", row.balance, lower(row.holder))
}

pub(super) async fn get_token(State(state): State<UnfilteredState>, Path(address): Path<String>) -> Answer<Token> {
    let address = parse_address(&address)?;
    let view = ChainView::open(&state).await?;
    let row = view.reader.find_token(address).await?;
    let row = row.filter(|row| view.blocks().contains(&row.block_number));
    let row = row.ok_or_else(missing("token not found"))?;
    let is_pending = !view.reader.pending_balances_in(&[address], 1).await?.is_empty();
    let transfers = view.transfers_of_token(address)?.len();
    Ok(Json(records::token(&row, transfers, is_pending)))
}

pub(super) async fn list_holders(
    State(state): State<UnfilteredState>,
    Path(address): Path<String>,
    QueryParams(query): QueryParams<RankedQuery>,
) -> ListAnswer<TokenHolder> {
    let (address, page) = (parse_address(&address)?, query.page(Limits::ROWS)?);
    let after = query.cursor().map(holder_position).transpose()?;
    let view = ChainView::open(&state).await?;
    let token = view.reader.find_token(address).await?;
    let token = token.filter(|row| view.blocks().contains(&row.block_number));
    let token = token.ok_or_else(missing("token not found"))?;
    let limit = (page.limit as u64).saturating_add(1);
    let mut rows = match after {
        Some(after) => view.reader.list_holders(address, Some(after), limit).await?,
        None => view.reader.list_holders_at(address, page.offset, limit).await?,
    };
    let has_more = rows.len() > page.limit;
    rows.truncate(page.limit);
    let holders: Vec<Address> = rows.iter().map(|row| row.holder).collect();
    let contracts = view.reader.contracts_among(&holders).await?;
    let pending = view.reader.pending_balances_in(&[address], PENDING).await?;
    let data = rows.iter().map(|row| TokenHolder {
        address: lower(row.holder),
        token_id: row.token_id.map(|id| id.to_string()),
        balance: row.balance.to_string(),
        percentage: percentage(row.balance, token.token.total_supply),
        is_contract: contracts.contains(&row.holder),
        is_pending: pending.contains(&TokenHolding::from(row)).then_some(true),
    });
    Ok(Json(ExplorerListResponse {
        data: data.collect(),
        total: Some(view.reader.count_holders(address).await?),
        next_cursor: rows.last().filter(|_| has_more).map(holder_cursor),
    }))
}

pub(super) async fn list_token_transfers(
    State(state): State<UnfilteredState>,
    Path(address): Path<String>,
    QueryParams(query): QueryParams<FeedQuery>,
) -> ListAnswer<TokenTransfer> {
    let (address, page) = (parse_address(&address)?, feed(&query, Limits::ROWS)?);
    let view = ChainView::open(&state).await?;
    let token = view.reader.find_token(address).await?;
    token.ok_or_else(missing("token not found"))?;
    let rows = ListRows::Set(view.transfers_of_token(address)?);
    view.transfer_page(&rows, page, query.cursor()).await
}

impl ChainView {
    fn transfers_of_token(&self, token: Address) -> Result<gw_postings::RowSet, ExplorerError> {
        let token = [gw_postings::VisibleAddress::in_all_blocks(token)];
        self.index(|postings| postings.transfers_of_token(&token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_types::U256;

    #[test]
    fn x2_cursors_of_tokens_and_holders_are_read_back_and_others_refused() {
        let holder = Address::repeat_byte(7);
        for token_id in [None, Some(U256::ZERO), Some(U256::MAX)] {
            let row = TokenBalance {
                token: Address::repeat_byte(1),
                holder,
                token_id,
                balance: U256::MAX,
                block_number: 3,
            };
            let expected = HolderPosition {
                balance: U256::MAX,
                holder,
                token_id,
            };
            assert_eq!(holder_position(&holder_cursor(&row)).unwrap(), expected);
        }
        let token = token_position(&format!("7-{}", lower(holder))).unwrap();
        assert_eq!((token.block_number, token.address), (7, holder));
        for text in [
            "",
            "7",
            "7-",
            "7-0x12",
            "x-0x0707070707070707070707070707070707070707",
            "7-7-7-7",
        ] {
            assert!(
                token_position(text).is_err() && holder_position(text).is_err(),
                "{text}"
            );
        }
        let beyond = format!("{}-{}", u64::MAX, lower(holder));
        assert!(token_position(&beyond).is_err());
    }
}
