//! I5, decision 34: rows that a viewer may not see change no byte of what the viewer reads.

use crate::{
    chain::{ChainMaker, NAMES, Naive, snapshot},
    world::{EVERYBODY, Engine, TestCaller, World},
};
use gw_chain_store::{BlockData, rows::TokenMetadata};
use gw_policy::{PolicySettings, testing::address_of};
use gw_types::{Address, B256, U256};
use std::collections::{BTreeMap, BTreeSet};

/// The chain without the rows that this viewer does not see: whole transactions, and single rows of shown ones.
fn without_hidden(chain: &[BlockData], who: TestCaller, settings: &PolicySettings) -> Vec<BlockData> {
    let snapshot = snapshot(chain);
    let viewer = who.viewer(&snapshot, settings);
    let mut rest = chain.to_vec();
    for tx in Naive::newest_first(chain) {
        let (hash, number) = (tx.data.transaction.hash, tx.number);
        let block = rest.iter_mut().find(|block| block.block.number == number).unwrap();
        let data = block
            .transactions
            .iter_mut()
            .find(|data| data.transaction.hash == hash)
            .unwrap();
        data.transfers = tx.shown_transfers(&viewer).into_iter().cloned().collect();
        data.frames = tx.shown_frames(&viewer).into_iter().cloned().collect();
        data.logs = tx.shown_logs(&viewer).into_iter().cloned().collect();
        let is_empty = data.transfers.is_empty() && data.logs.is_empty();
        if !tx.is_shown(&viewer) && is_empty {
            block.transactions.retain(|data| data.transaction.hash != hash);
        }
    }
    rest
}

/// Stores the metadata of all tokens, and the balances of all pairs of token and holder for which `is_known` holds.
async fn add_readings(world: &World, is_known: impl Fn(Address, Address) -> bool) {
    let at = world.chain.last().unwrap().block.num_hash();
    for token in ["a-token", "b-token", "wild", "moved"].map(address_of) {
        let metadata = TokenMetadata {
            name: Some("Token".to_owned()),
            symbol: Some("TOK".to_owned()),
            decimals: Some(18),
        };
        world
            .writer
            .set_token_metadata(at, token, Some(metadata))
            .await
            .unwrap();
        for (name, amount) in NAMES.iter().zip(1_u64..) {
            let holder = address_of(name);
            if is_known(token, holder) {
                let balance = U256::from(amount * 1000);
                world
                    .writer
                    .set_token_balance(at, token, holder, None, balance)
                    .await
                    .unwrap();
            }
        }
    }
}

/// Fails if no path of these belongs to some route that reads: a new route needs its requests.
fn require_every_route<'a>(paths: impl Iterator<Item = &'a str>) {
    let paths: Vec<&str> = paths.map(|path| path.split('?').next().unwrap_or_default()).collect();
    for (route, item) in gw_explorer::api().paths.paths {
        let parts: Vec<&str> = route.trim_start_matches("/api/v1/explorer").split('/').collect();
        let is_requested = |path: &str| {
            let values: Vec<&str> = path.split('/').collect();
            let fits = |(part, value): (&&str, &&str)| part == value || part.starts_with('{');
            parts.len() == values.len() && parts.iter().zip(&values).all(fits)
        };
        assert!(
            item.get.is_none() || paths.iter().any(|path| is_requested(path)),
            "no request of {route} is compared: add one"
        );
    }
}

/// Every route. A list that is read by its pages comes with the member that contains its rows.
pub(crate) fn every_path(chain: &[BlockData], hashes: &BTreeSet<B256>) -> Vec<(String, Option<&'static str>)> {
    let mut paths: Vec<(String, Option<&'static str>)> = vec![
        ("/chain-id".into(), None),
        ("/stats".into(), None),
        ("/stats/tx-history?interval=600".into(), None),
        ("/blocks/latest/number".into(), None),
        ("/accounts".into(), None),
        ("/sync/status".into(), None),
        ("/sync/catchup".into(), None),
        ("/sync/indexer-progress".into(), None),
        ("/tokens".into(), None),
        ("/tokens?type=ERC-20&limit=1&offset=1".into(), None),
        ("/viewable-addresses?wallet=0x1".into(), None),
        ("/search/suggestions?q=to".into(), None),
        ("/search/suggestions?q=3".into(), None),
        ("/search/suggestions?q=0x&limit=50".into(), None),
        ("/transactions/paginated?page=2&pageSize=3".into(), None),
        ("/blocks".into(), Some("data")),
        ("/transactions?with_categories=true".into(), Some("data")),
        ("/transfers".into(), Some("data")),
        ("/logs".into(), Some("data")),
        (format!("/logs?topic0={}", crate::chain::TRANSFER), Some("data")),
    ];
    for number in chain.iter().map(|block| block.block.number) {
        paths.push((format!("/blocks/{number}"), None));
        paths.push((format!("/blocks/{number}/transactions"), Some("data")));
        paths.push((format!("/blocks/{number}/internal"), Some("data")));
    }
    for block in chain {
        paths.push((format!("/blocks/hash/0x{}", hex::encode(block.block.hash)), None));
    }
    for rest in ["resolve/a1", "a1/transactions", "activity"] {
        paths.push((format!("/grant/{}/{rest}", gw_types::DisclosureGrantId::fixed(1)), None));
    }
    for hash in hashes {
        let start: String = hex::encode(hash).chars().take(6).collect();
        paths.push((format!("/search/suggestions?q=0x{start}"), None));
        let path = format!("/transactions/0x{}", hex::encode(hash));
        for rest in [
            "?with_categories=true",
            "/transfers",
            "/internal",
            "/logs",
            "/op-deposit",
        ] {
            paths.push((format!("{path}{rest}"), None));
        }
    }
    for name in NAMES {
        let path = format!("/addresses/0x{}", hex::encode(address_of(name)));
        for rest in [
            "stats",
            "transactions",
            "transfers",
            "internal",
            "logs",
            "is-contract",
            "balance",
            "code",
            "balances",
            "contract",
        ] {
            paths.push((format!("{path}/{rest}"), None));
        }
        let token = format!("/tokens/0x{}", hex::encode(address_of(name)));
        for rest in ["", "/holders", "/transfers"] {
            paths.push((format!("{token}{rest}"), None));
        }
        let logs = format!("/logs?address=0x{}", hex::encode(address_of(name)));
        paths.push((logs, Some("data")));
    }
    require_every_route(paths.iter().map(|(path, _)| path.as_str()));
    paths
}

/// What every route answers, with the pages of every list.
async fn answers(world: &World, who: TestCaller, hashes: &BTreeSet<B256>) -> BTreeMap<String, String> {
    let mut answers = BTreeMap::new();
    for (path, member) in every_path(&world.chain, hashes) {
        let answer = match member {
            Some(member) => format!("{:?}", world.walk(who, &path, member, 2).await),
            None => {
                let response = world.get(who, &path).await;
                // Cursors are encrypted with a nonce.
                let text = response.text.split("\"next_cursor\"").next().unwrap().to_owned();
                let length = response.text.len();
                format!("{} {length} {text}", response.status)
            }
        };
        answers.insert(path, answer);
    }
    answers
}

/// Both databases answer alike: the chain with hidden rows is on the one, the chain without them on the other.
mod i5_hidden_rows_change_no_byte {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn by_the_specification() {
        nothing_differs(11, PolicySettings::SPEC, false).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn by_strict_settings() {
        nothing_differs(14, PolicySettings::STRICT, true).await;
    }
}

/// A token is in the store by its transfers: of each token that a viewer has in these chains, the viewer sees one.
async fn nothing_differs(seed: u64, settings: PolicySettings, is_reversed: bool) {
    let chain = ChainMaker::new(seed).blocks(1, B256::ZERO, 16);
    let policy = snapshot(&chain);
    let hashes: BTreeSet<B256> = chain
        .iter()
        .flat_map(|block| &block.transactions)
        .map(|data| data.transaction.hash)
        .collect();
    let whole = World::loaded_on(Engine::first_or_last(is_reversed), chain.clone(), settings.clone()).await;
    add_readings(&whole, |_, _| true).await;
    for who in EVERYBODY {
        let viewer = who.viewer(&policy, &settings);
        let rest = without_hidden(&chain, who, &settings);
        let count = |chain: &[BlockData]| chain.iter().map(|block| block.transactions.len()).sum::<usize>();
        assert!(count(&rest) < count(&chain), "{who:?}: something is hidden");
        let mut reduced = World::with_on(Engine::first_or_last(!is_reversed), policy.clone(), settings.clone()).await;
        reduced.append(rest).await;
        reduced.follow().await;
        add_readings(&reduced, |token, holder| {
            viewer.holder_entry(token, holder).is_some() || viewer.balance_entry(holder, token).is_some()
        })
        .await;
        let (with, without) = (
            answers(&whole, who, &hashes).await,
            answers(&reduced, who, &hashes).await,
        );
        for (path, answer) in &with {
            assert_eq!(answer, &without[path], "{who:?} {seed} {path}");
        }
    }
}
