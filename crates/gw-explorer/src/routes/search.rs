//! Suggestions for a search.

use crate::{
    error::ExplorerError,
    page::number,
    rows::{hash, lower},
    state::ExplorerState,
    view::{RequestCaller, View},
    wire::SearchSuggestion,
};
use axum::{Json, extract::State};
use gw_chain_store::{HashPrefix, rows::MetadataState};
use gw_http::QueryParams;
use gw_postings::Space;
use serde::Deserialize;

/// The hex digits from which on hashes are searched. Fewer match very many hidden transactions.
const HASH_DIGITS: usize = 6;
/// The shortest start of a hash with which hashes are suggested.
pub(crate) const PREFIX: usize = 2 + HASH_DIGITS;
/// The hashes that are looked at at once.
const HASHES_SIZE: usize = 100;
const HASHES: u64 = HASHES_SIZE as u64;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct SearchQuery {
    /// The start of a block number, of an address, of a token's symbol or name, or at least six digits of a hash.
    #[param(required = false, example = "0x12ab34")]
    q: Option<String>,
    /// The number of suggestions: 10 if it is left out, at most 50.
    #[param(required = false, value_type = u64, example = 10)]
    limit: Option<String>,
}

impl SearchQuery {
    /// The text in lower case, and the number of suggestions.
    ///
    /// # Errors
    /// 400 if the limit is no number.
    pub(crate) fn parse(&self) -> Result<(String, usize), ExplorerError> {
        let limit = number("limit", self.limit.as_deref())?.unwrap_or(10).clamp(1, 50);
        let text = self.q.as_deref().unwrap_or_default().trim().to_lowercase();
        Ok((text, usize::try_from(limit).unwrap_or(10)))
    }
}

/// Suggests blocks, transactions, addresses and tokens that the viewer sees.
#[utoipa::path(get, path = "/api/v1/explorer/search/suggestions", tag = "explorer", params(SearchQuery),
    responses((status = 200, body = [SearchSuggestion]), ExplorerError))]
pub(crate) async fn suggest(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    QueryParams(query): QueryParams<SearchQuery>,
) -> Result<Json<Vec<SearchSuggestion>>, ExplorerError> {
    let (text, limit) = query.parse()?;
    let view = View::open(&state, &caller, &[Space::Transactions, Space::Transfers]).await?;
    let mut suggestions = Vec::new();
    if text.is_empty() {
        return Ok(Json(suggestions));
    }
    if let Some(block) = text.parse::<u64>().ok().filter(|block| view.blocks().contains(block)) {
        suggestions.push(suggestion("block", block.to_string(), format!("Block {block}")));
    }
    let viewer = view.viewer();
    if text.starts_with("0x") {
        let addresses = view
            .scopes
            .addresses()
            .into_iter()
            .map(|address| (address, lower(address)));
        let found = addresses.filter(|(address, printed)| printed.starts_with(&text) && viewer.opens_address(*address));
        suggestions.extend(
            found
                .map(|(_, printed)| suggestion("address", printed.clone(), printed))
                .take(limit),
        );
    }
    if let Some(prefix) = HashPrefix::parse(&text).filter(|_| text.len() >= PREFIX) {
        for block in view.reader.search_blocks(prefix, limit as u64).await? {
            if view.blocks().contains(&block.number) {
                let label = format!("Block {}", block.number);
                suggestions.push(suggestion("block", hash(block.hash), label));
            }
        }
        view.suggest_transactions(prefix, limit, &mut suggestions).await?;
    }
    let mut tokens = view.visible_tokens(&viewer).await?;
    tokens.sort_by_key(|(row, _)| row.token.address);
    for (row, _) in tokens {
        let MetadataState::Known(metadata) = row.token.metadata else {
            continue;
        };
        let starts = |name: &Option<String>| name.as_ref().is_some_and(|name| name.to_lowercase().starts_with(&text));
        if starts(&metadata.symbol) || starts(&metadata.name) {
            let label = metadata.name.or(metadata.symbol).unwrap_or_default();
            suggestions.push(suggestion("token", lower(row.token.address), label));
        }
    }
    suggestions.truncate(limit);
    Ok(Json(suggestions))
}

pub(crate) fn suggestion(kind: &'static str, value: String, label: String) -> SearchSuggestion {
    SearchSuggestion { kind, value, label }
}

impl View {
    /// Adds transactions that the viewer finds by their hashes, until there are enough.
    async fn suggest_transactions(
        &self,
        prefix: HashPrefix,
        limit: usize,
        suggestions: &mut Vec<SearchSuggestion>,
    ) -> Result<(), ExplorerError> {
        let selected = self.rows(Space::Transactions)?;
        let mut after = None;
        while suggestions.len() < limit {
            let found = self.reader.search_transactions(prefix, after, HASHES).await?;
            let Some((_, last)) = found.last() else { break };
            after = Some(*last);
            // A whole hash is read once, whether it is hidden or missing.
            let is_end = found.len() < HASHES_SIZE;
            for (id, found) in found.into_iter().filter(|(id, _)| selected.contains(*id)) {
                if self.finds_by_hash(id).await? {
                    suggestions.push(suggestion("transaction", hash(found), hash(found)));
                }
            }
            if is_end {
                break;
            }
        }
        Ok(())
    }
}
