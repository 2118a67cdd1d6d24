//! Lists, pages and suggestions.

use crate::{
    chain::ChainMaker,
    world::{World, append_all, on_both_engines},
};
use gw_chain_store::{
    BlockData, HashPrefix, HolderPosition, TokenPosition,
    rows::{Contract, Proxy, ProxyChange, ProxyKind, TokenMetadata, TokenStandard, TokenTransfer},
};
use gw_types::{Address, B256, U256};
use std::collections::BTreeSet;

on_both_engines! {
    pages_of_tokens_contain_each_token_once,
    pages_of_holders_contain_each_holder_once,
    pages_of_balances_contain_each_balance_once,
    a_contract_has_its_newest_code_and_proxy,
    hashes_are_found_by_their_start,
    tokens_are_found_by_the_start_of_symbol_and_name,
    blocks_are_listed_newest_first,
}

/// A chain with this number of tokens, in two blocks.
fn chain_with_tokens(count: u8) -> Vec<BlockData> {
    let maker = ChainMaker::new(51);
    let mut chain = maker.blocks(0, B256::ZERO, 30);
    for data in chain.iter_mut().flat_map(|data| &mut data.transactions) {
        data.transfers.clear();
    }
    let transfer = |byte: u8| TokenTransfer {
        log_index: 0,
        batch_position: 0,
        token: Address::repeat_byte(byte),
        from: Address::ZERO,
        to: Address::repeat_byte(1),
        value: U256::ONE,
        token_id: None,
        standard: if byte.is_multiple_of(3) {
            TokenStandard::Erc721
        } else {
            TokenStandard::Erc20
        },
    };
    let mut transactions = chain.iter_mut().flat_map(|data| data.transactions.first_mut());
    // The transfers of the first block come again in the second: their tokens keep their block.
    transactions.next().unwrap().transfers = (1..=count / 2).map(transfer).collect();
    transactions.next().unwrap().transfers = (1..=count).map(transfer).collect();
    drop(transactions);
    chain
}

async fn pages_of_tokens_contain_each_token_once(world: &World) {
    append_all(&world.writer().await, &chain_with_tokens(20)).await;
    let reader = world.reader().await;
    for (standard, expected) in [
        (None, 20),
        (Some(TokenStandard::Erc721), 6),
        (Some(TokenStandard::Erc1155), 0),
    ] {
        let mut rows = Vec::new();
        let mut after = None;
        loop {
            let page = reader.list_tokens(standard, after, 3).await.unwrap();
            let Some(last) = page.last() else { break };
            after = Some(TokenPosition {
                block_number: last.block_number,
                address: last.token.address,
            });
            rows.extend(page);
        }
        let positions: Vec<_> = rows.iter().map(|row| (row.block_number, row.token.address)).collect();
        assert!(positions.is_sorted_by(|a, b| a > b), "{positions:?}");
        assert_eq!(rows.len(), expected);
        assert!(
            rows.iter()
                .all(|row| standard.is_none_or(|standard| row.token.standard == standard))
        );
    }
    let wanted: Vec<Address> = (15..25).map(Address::repeat_byte).collect();
    assert_eq!(reader.tokens_among(&wanted).await.unwrap().len(), 6);
}

async fn pages_of_holders_contain_each_holder_once(world: &World) {
    let writer = world.writer().await;
    let chain = chain_with_tokens(2);
    append_all(&writer, &chain).await;
    let at = chain[20].block.num_hash();
    let token = Address::repeat_byte(2);
    let mut expected = Vec::new();
    for byte in 0..20_u8 {
        let (holder, balance) = (Address::repeat_byte(byte), U256::from(byte % 4));
        for token_id in [None, Some(U256::ZERO), Some(U256::from(byte))]
            .into_iter()
            .take(1 + usize::from(byte % 3))
        {
            writer
                .set_token_balance(at, token, holder, token_id, balance)
                .await
                .unwrap();
            if byte % 4 > 0 {
                expected.push((balance, holder, token_id));
            }
        }
        writer
            .set_token_balance(at, Address::repeat_byte(1), holder, None, U256::from(9))
            .await
            .unwrap();
    }
    expected.sort();
    expected.reverse();
    expected.dedup();
    let reader = world.reader().await;
    let mut rows = Vec::new();
    let mut after = None;
    loop {
        let page = reader.list_holders(token, after, 4).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(HolderPosition {
            balance: last.balance,
            holder: last.holder,
            token_id: last.token_id,
        });
        rows.extend(page.iter().map(|row| (row.balance, row.holder, row.token_id)));
    }
    assert_eq!(rows, expected);
    let among = [3, 4, 99].map(Address::repeat_byte);
    let found = reader.token_balances_among(&[token], &among).await.unwrap();
    let with_balance = found.iter().filter(|row| !row.balance.is_zero());
    let holders: Vec<_> = with_balance.map(|row| row.holder).collect();
    assert!(
        holders.iter().all(|holder| *holder == among[0]) && !holders.is_empty(),
        "4 has nothing"
    );
    assert!(found.iter().any(|row| row.holder == among[1]), "4 had something");
}

async fn pages_of_balances_contain_each_balance_once(world: &World) {
    let writer = world.writer().await;
    let chain = chain_with_tokens(12);
    append_all(&writer, &chain).await;
    let at = chain[20].block.num_hash();
    let holder = Address::repeat_byte(7);
    let mut expected = Vec::new();
    for byte in 1..=12_u8 {
        let token = Address::repeat_byte(byte);
        for token_id in [None, Some(U256::ZERO), Some(U256::MAX)] {
            let balance = U256::from(byte % 3);
            writer
                .set_token_balance(at, token, holder, token_id, balance)
                .await
                .unwrap();
            expected.push((token, token_id));
        }
    }
    let reader = world.reader().await;
    let mut rows = Vec::new();
    let mut after = None;
    loop {
        let page = reader.list_token_balances(holder, after, 5).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some((last.token, last.token_id));
        rows.extend(page.iter().map(|row| (row.token, row.token_id)));
    }
    assert_eq!(rows, expected);
}

async fn a_contract_has_its_newest_code_and_proxy(world: &World) {
    let maker = ChainMaker::new(52);
    let mut chain = maker.blocks(0, B256::ZERO, 5);
    let address = Address::repeat_byte(0xcc);
    let proxy = |byte| Proxy {
        kind: ProxyKind::ImplementationSlot,
        implementation: Some(Address::repeat_byte(byte)),
    };
    let contract = |byte: u8| Contract {
        address,
        creator: None,
        creation_transaction: None,
        code_hash: B256::repeat_byte(byte),
        code: vec![byte].into(),
        proxy: Some(proxy(byte)),
    };
    for data in &mut chain {
        data.contracts.clear();
        data.proxy_changes.clear();
    }
    let change = |proxy| ProxyChange { address, proxy };
    chain[1].contracts.push(contract(1));
    chain[2].proxy_changes.push(change(Some(proxy(9))));
    chain[3].proxy_changes.push(change(None));
    // Destroyed, and created again at the same address.
    chain[4].contracts.push(contract(4));
    let writer = world.writer().await;
    let mut seen = Vec::new();
    for data in &chain {
        writer.append(data, &[]).await.unwrap();
        let row = world.reader().await.find_contract(address).await.unwrap();
        seen.push(row.map(|row| (row.block_number, row.contract.code[0], row.contract.proxy)));
    }
    assert_eq!(
        seen,
        [
            None,
            Some((1, 1, Some(proxy(1)))),
            Some((1, 1, Some(proxy(9)))),
            Some((1, 1, None)),
            Some((4, 4, Some(proxy(4)))),
        ]
    );
    let among = world
        .reader()
        .await
        .contracts_among(&[address, Address::ZERO])
        .await
        .unwrap();
    assert_eq!(among, [address].into());
    writer.revert_to(2).await.unwrap();
    let row = world.reader().await.find_contract(address).await.unwrap().unwrap();
    assert_eq!((row.block_number, row.contract.proxy), (1, Some(proxy(9))));
}

/// The first digits of a hash.
fn start(hash: B256, digits: usize) -> String {
    format!("{hash:#x}").chars().take(2 + digits).collect()
}

async fn hashes_are_found_by_their_start(world: &World) {
    let chain = ChainMaker::new(53).blocks(0, B256::ZERO, 40);
    append_all(&world.writer().await, &chain).await;
    let reader = world.reader().await;
    let hashes: BTreeSet<B256> = chain
        .iter()
        .flat_map(|data| &data.transactions)
        .map(|data| data.transaction.hash)
        .collect();
    for digits in [1, 2, 3, 64] {
        let prefix = &start(chain[7].block.hash, digits);
        let found = reader
            .search_blocks(HashPrefix::parse(prefix).unwrap(), 100)
            .await
            .unwrap();
        let expected: BTreeSet<_> = chain
            .iter()
            .map(|data| data.block.hash)
            .filter(|hash| format!("{hash:#x}").starts_with(prefix))
            .collect();
        assert!(found.iter().map(|block| block.hash).eq(expected), "{prefix}");

        let prefix = &start(*hashes.first().unwrap(), digits);
        let expected: Vec<B256> = hashes
            .iter()
            .copied()
            .filter(|hash| format!("{hash:#x}").starts_with(prefix))
            .collect();
        let mut found = Vec::new();
        loop {
            let after = found.last().copied();
            let page = reader
                .search_transactions(HashPrefix::parse(prefix).unwrap(), after, 1)
                .await
                .unwrap();
            let Some((id, hash)) = page.first() else { break };
            assert_eq!(
                reader.get_transactions(&[*id]).await.unwrap()[0].transaction.hash,
                *hash
            );
            found.push(*hash);
        }
        assert_eq!(found, expected, "{prefix}");
    }
}

async fn tokens_are_found_by_the_start_of_symbol_and_name(world: &World) {
    let writer = world.writer().await;
    let chain = chain_with_tokens(4);
    append_all(&writer, &chain).await;
    let names = [
        ("Dai Stablecoin", "DAI"),
        ("daisy", "FLW"),
        ("Über", "U%"),
        ("Uber", "D_"),
    ];
    for (byte, (name, symbol)) in (1..).zip(names) {
        let metadata = TokenMetadata {
            name: Some(name.to_owned()),
            symbol: Some(symbol.to_owned()),
            decimals: None,
        };
        writer
            .set_token_metadata(chain[20].block.num_hash(), Address::repeat_byte(byte), Some(metadata))
            .await
            .unwrap();
    }
    let reader = world.reader().await;
    for (text, expected) in [
        ("dai", &[1, 2][..]),
        ("d", &[4, 1, 2]),
        (" DAI ", &[1, 2]),
        ("üb", &[3]),
        ("U%", &[3]),
        ("%", &[]),
        ("d_", &[4]),
        ("stable", &[]),
        ("", &[]),
    ] {
        let found = reader.search_tokens(text, 10).await.unwrap();
        let found: Vec<_> = found.iter().map(|row| row.token.address).collect();
        let expected: Vec<_> = expected.iter().map(|byte| Address::repeat_byte(*byte)).collect();
        assert_eq!(found, expected, "{text}");
    }
}

async fn blocks_are_listed_newest_first(world: &World) {
    append_all(&world.writer().await, &ChainMaker::new(54).blocks(3, B256::ZERO, 6)).await;
    let reader = world.reader().await;
    for (numbers, limit, expected) in [
        (0..u64::MAX, 3, &[8, 7, 6][..]),
        (4..6, 10, &[5, 4]),
        (0..4, 10, &[3]),
        (9..u64::MAX, 10, &[]),
    ] {
        let rows = reader.list_blocks(numbers, limit).await.unwrap();
        assert!(
            rows.iter().map(|row| row.block.number).eq(expected.iter().copied()),
            "{expected:?}"
        );
    }
}
