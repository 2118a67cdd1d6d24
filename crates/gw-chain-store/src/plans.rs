//! Every statement uses an index: none reads a table of the chain from its start to its end.

use crate::{
    BlockFrames, ChainStore, ChainStoreConfig, HashPrefix, HolderPosition, JobKind, Location, OtherChain, Reading,
    TokenPosition, TransactionTrace,
    chain::ChainMaker,
    dialect::STATEMENTS,
    rows::{TokenMetadata, TokenStandard},
};
use gw_postings::RowId;
use gw_types::testing::{ManualClock, SeededEntropy};
use gw_types::{B256, Seconds, U256};
use sea_orm::{ConnectionTrait, Database, Statement};
use std::{collections::BTreeMap, path::Path, sync::Arc};

/// Runs every query and every write.
async fn run_everything(file: &Path) {
    let store = ChainStore::open(ChainStoreConfig {
        location: Location::Sqlite { file: file.to_owned() },
        connections: 1,
        chain_id: 1,
        other_chain: OtherChain::Refuse,
        clock: Arc::new(ManualClock::default()),
        entropy: Arc::new(SeededEntropy::new(1)),
    })
    .await
    .unwrap();
    let writer = store.writer("test").await.unwrap();
    let maker = ChainMaker::new(1);
    let mut chain = maker.blocks(0, B256::ZERO, 1);
    chain.extend(maker.blocks_after(&chain[0], 19));
    for data in &chain {
        writer.append(data, &[]).await.unwrap();
    }
    let at = chain[19].block.num_hash();
    let transfers = || {
        chain
            .iter()
            .flat_map(|data| &data.transactions)
            .flat_map(|data| &data.transfers)
    };
    let token = transfers().next().unwrap().token;
    let holder = transfers().map(|row| row.to).find(|to| !to.is_zero()).unwrap();
    let readings = [
        Reading::Balance {
            address: holder,
            balance: U256::ONE,
        },
        Reading::TokenBalance {
            token,
            holder,
            token_id: None,
            balance: U256::ONE,
        },
        Reading::TokenSupply {
            token,
            supply: Some(U256::ONE),
        },
        Reading::TokenMetadata {
            token,
            metadata: Some(TokenMetadata::default()),
        },
    ];
    let tasks = writer.take_tasks(JobKind::Balance, 9, Seconds(9)).await.unwrap();
    writer.retry_tasks(&tasks).await.unwrap();
    writer.set_readings(at, &readings, &tasks).await.unwrap();
    writer.set_finalized(at).await.unwrap();
    let incomplete = chain.iter().find(|data| !data.block.frames_complete).unwrap();
    let trace = BlockFrames {
        transactions: vec![
            TransactionTrace {
                frames: vec![ChainMaker::new(2).frame()],
                ..TransactionTrace::default()
            };
            incomplete.transactions.len()
        ],
        contracts: incomplete.contracts.clone(),
    };
    writer
        .complete_frames(incomplete.block.num_hash(), &trace)
        .await
        .unwrap();
    // An error that only a trace can tell.
    let mut again = chain.last().unwrap().clone();
    again
        .transactions
        .iter_mut()
        .for_each(|data| data.transaction.error = Some("again".to_owned()));
    again.block.frames_complete = true;
    writer.replace_block(&again).await.unwrap();
    store.request_block(3).await.unwrap();

    let reader = store.reader().await.unwrap();
    reader.first_block_changed_since(0).await.unwrap();
    let ids = [RowId(0), RowId(3)];
    reader.list_tokens_at(None, 19, 1, 9).await.unwrap();
    reader
        .list_tokens_at(Some(TokenStandard::Erc20), 19, 1, 9)
        .await
        .unwrap();
    reader.count_tokens(None, 19).await.unwrap();
    reader.list_holders_at(token, 1, 9).await.unwrap();
    reader.count_holders(token).await.unwrap();
    reader.find_block_data(19).await.unwrap();
    reader.find_block_by_hash(at.hash).await.unwrap();
    reader.list_blocks(0..9, 9).await.unwrap();
    reader.list_blocks_without_frames(9).await.unwrap();
    reader.get_transactions(&ids).await.unwrap();
    reader.get_logs(&ids).await.unwrap();
    reader.get_transfers(&ids).await.unwrap();
    reader.get_frames(&ids).await.unwrap();
    reader.find_transaction(B256::ZERO).await.unwrap();
    reader.list_logs(ids[1]).await.unwrap();
    reader.list_transfers(ids[1]).await.unwrap();
    reader.list_frames(ids[1]).await.unwrap();
    reader.index_rows(1, 9).await.unwrap();
    for address in chain.iter().flat_map(|data| &data.contracts).map(|row| row.address) {
        reader.find_contract(address).await.unwrap();
    }
    reader.contracts_among(&[holder]).await.unwrap();
    reader.find_token(token).await.unwrap();
    let after_token = Some(TokenPosition {
        block_number: 9,
        address: token,
    });
    let after_holder = Some(HolderPosition {
        balance: U256::MAX,
        holder,
        token_id: None,
    });
    for standard in [None, Some(TokenStandard::Erc20)] {
        reader.list_tokens(standard, None, 9).await.unwrap();
        reader.list_tokens(standard, after_token, 9).await.unwrap();
    }
    reader.find_balance(holder).await.unwrap();
    reader.list_token_balances(holder, None, 9).await.unwrap();
    reader
        .list_token_balances(holder, Some((token, None)), 9)
        .await
        .unwrap();
    reader.is_balance_pending(holder).await.unwrap();
    reader.pending_balances_of(holder, 9).await.unwrap();
    reader.pending_balances_in(&[token, holder], 9).await.unwrap();
    reader.list_holders(token, None, 9).await.unwrap();
    reader.list_holders(token, after_holder, 9).await.unwrap();
    reader.token_balances_among(&[token, holder], &[holder]).await.unwrap();
    let prefix = HashPrefix::parse("0xa").unwrap();
    reader.search_blocks(prefix, 9).await.unwrap();
    reader.search_transactions(prefix, None, 9).await.unwrap();
    reader.search_transactions(prefix, Some(B256::ZERO), 9).await.unwrap();
    reader.search_tokens("a", 9).await.unwrap();
    drop(reader);
    writer.revert_to(2).await.unwrap();
    writer.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_statement_uses_an_index() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("explorer.db");
    run_everything(&file).await;
    let statements = std::mem::take(&mut *STATEMENTS.lock().unwrap());
    let statements: BTreeMap<String, Statement> = statements
        .into_iter()
        .map(|statement| (statement.sql.clone(), statement))
        .collect();
    let db = Database::connect(format!("sqlite://{}", file.display())).await.unwrap();
    let (mut explained, mut faults) = (0, Vec::new());
    for (sql, statement) in statements {
        let reads = ["SELECT", "UPDATE", "DELETE"].iter().any(|verb| sql.starts_with(verb));
        let is_about_one_row = ["chain_state", "writer_lease", "seaql_migrations", "sqlite_master"]
            .iter()
            .any(|table| sql.contains(table));
        if !reads || is_about_one_row {
            continue;
        }
        let explain = Statement {
            sql: format!("EXPLAIN QUERY PLAN {sql}"),
            ..statement
        };
        let plan = db.query_all_raw(explain).await.unwrap();
        let plan: Vec<String> = plan.iter().map(|row| row.try_get("", "detail").unwrap()).collect();
        explained += 1;
        let is_bounded = sql.contains("LIMIT");
        let reads_a_table = plan.iter().any(|step| {
            let is_scan = step.starts_with("SCAN")
                && !["CONSTANT ROW", "VALUES CLAUSE", "sub_query"]
                    .iter()
                    .any(|source| step.contains(source));
            // An index in the order of the result, of which the limit reads a part. The key of blocks is the row id.
            let is_in_order = step.contains("USING") || sql.contains(r#"ORDER BY "blocks"."number""#);
            is_scan && !(is_bounded && is_in_order)
        });
        let sorts = plan
            .iter()
            .any(|step| step.contains("TEMP B-TREE FOR") && step.contains("ORDER BY"));
        // The rows of one holder, not those of all holders of the token.
        let is_about_holder = sql.contains("holder\" = ") || sql.contains("kept.holder =");
        let misses_holder = is_about_holder && !sql.contains(r#"ORDER BY "token_balances"."balance""#);
        let misses_holder = misses_holder && plan.iter().any(|step| step.contains("token_balances_balance_idx"));
        if reads_a_table || sorts || misses_holder {
            faults.push(format!("{sql}\n    {}", plan.join("\n    ")));
        }
    }
    assert!(explained > 60, "{explained} statements");
    assert!(faults.is_empty(), "{} statements:\n{}", faults.len(), faults.join("\n"));
}
