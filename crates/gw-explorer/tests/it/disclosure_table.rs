//! What a grant of disclosure of each level shows of each field: the table `docs/tables/disclosure_by_field.snap`.
//!
//! `=` is what the owner sees, `-` a member that is absent, and a number alone a status of HTTP.

use crate::{
    chain::{policy, snapshot},
    world::{TestCaller, World},
};
use gw_explorer::ActivityCall;
use gw_policy::{
    PolicySettings, Snapshot,
    testing::{NOW, address_of, did},
};
use gw_types::Level;
use serde_json::{Value, json};
use std::fmt::Write as _;

const ALICE: TestCaller = TestCaller::User("alice");
const CAROL: TestCaller = TestCaller::User("carol");
const LEVELS: [Option<Level>; 4] = [
    None,
    Some(Level::Redacted),
    Some(Level::Pseudonymous),
    Some(Level::Full),
];
/// The lists in which a row is compared, and the world in which a grant adds or changes one.
const LISTS: [(&str, &str, u64); 3] = [
    ("transaction in lists", "/transactions?limit=100", 44),
    ("token transfer in lists", "/transfers?limit=100", 46),
    ("log in lists", "/logs?limit=100", 41),
];

#[derive(Default)]
struct Table(String);

impl Table {
    fn row(&mut self, name: &str, cells: [String; 4]) {
        let cells: String = cells.iter().map(|cell| format!("{cell:<16}")).collect();
        writeln!(self.0, "{}", format!("{name:<32}{cells}").trim_end()).unwrap();
    }

    /// One row for each member of what the owner sees.
    fn object(&mut self, name: &str, owners: &Value, shown: &[Value; 4]) {
        let title = |shown: &Value| match shown {
            Value::Null => "no row".to_owned(),
            Value::Number(status) => status.to_string(),
            _ => String::new(),
        };
        self.row(name, shown.each_ref().map(title));
        for (member, owners) in owners.as_object().unwrap() {
            self.row(
                &format!("  {member}"),
                shown.each_ref().map(|row| cell(row, member, owners)),
            );
        }
    }
}

fn cell(row: &Value, member: &str, owners: &Value) -> String {
    if !row.is_object() {
        return String::new();
    }
    match row.get(member) {
        None => "-".to_owned(),
        Some(shown) if shown == owners => "=".to_owned(),
        // Each grant has its own.
        Some(_) if member == "grant_id" => "…".to_owned(),
        Some(Value::String(text)) => match text.split_once('-') {
            Some((kind @ ("Address" | "External"), _)) => format!("{kind}-…"),
            _ if text.is_empty() => "\"\"".to_owned(),
            _ => text.chars().take(14).collect(),
        },
        Some(Value::Object(_)) => "{…}".to_owned(),
        Some(shown) => shown.to_string(),
    }
}

/// The rows of a list.
async fn rows(world: &World, who: TestCaller, path: &str) -> Vec<Value> {
    let answer = world.get(who, path).await.json();
    answer["data"].as_array().cloned().unwrap_or_default()
}

/// The rows of a block. Masked rows have nothing else to find them by: positions are those among the shown rows.
fn of_block<'r>(rows: &'r [Value], block: &Value) -> Vec<&'r Value> {
    rows.iter().filter(|row| row["blockNumber"] == *block).collect()
}

/// The first row of a block, or null.
fn first(rows: &[Value], block: &Value) -> Value {
    of_block(rows, block)
        .first()
        .map_or(Value::Null, |row| Value::clone(row))
}

/// A part of the answer to the grantee, or the status of an answer that is no success.
async fn body(world: &World, path: &str, pointer: &str) -> Value {
    let answer = world.get(ALICE, path).await;
    if answer.status.is_success() {
        answer.json().pointer(pointer).cloned().unwrap_or_default()
    } else {
        json!(answer.status.as_u16())
    }
}

/// The policy of the world with a grant of this level, or without one.
fn disclosing(world: &World, level: Option<Level>) -> Snapshot {
    match level {
        None => snapshot(&world.chain),
        Some(level) => {
            let built = policy(&world.chain).org("a").user("carol");
            built.disclosed_to("alice", level).snapshot()
        }
    }
}

/// A row of a list that a grant shows, or of which it shows more: as its owner sees it, as it is shown without a grant,
/// and by one of each level. `None` if there is none in this world.
async fn differing_row(path: &str, seed: u64) -> Option<(Value, [Value; 4])> {
    let world = World::random(seed, PolicySettings::SPEC).await;
    let owners = rows(&world, CAROL, path).await;
    let mut lists: [Vec<Value>; 4] = Default::default();
    for (level, list) in LEVELS.into_iter().zip(&mut lists) {
        world.set_policy(Some(disclosing(&world, level)));
        *list = rows(&world, ALICE, path).await;
    }
    let [without, _, _, full] = &lists;
    let hash = |row: &Value| row.get("hash").or(row.get("txHash")).cloned();
    let find = |is_shown: &dyn Fn(&Value) -> bool| {
        full.iter().find(|row| {
            let block = &row["blockNumber"];
            // Then the first row is the same one: a grant shows only rows of its owner, in the same order.
            of_block(full, block).len() == of_block(&owners, block).len()
                && hash(&first(full, block)) == hash(&first(&owners, block))
                && is_shown(block)
        })
    };
    let is_new = |block: &Value| of_block(without, block).is_empty();
    // Or it is shown without the grant, too, with fewer addresses in clear.
    let is_changed = |block: &Value| {
        of_block(without, block).len() == of_block(full, block).len() && first(without, block) != first(full, block)
    };
    let differing = find(&is_new).or_else(|| find(&is_changed))?;
    let block = &differing["blockNumber"];
    Some((first(&owners, block), lists.each_ref().map(|rows| first(rows, block))))
}

/// The table of spec/50 section 5, on every surface of the explorer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ds22_disclosure_by_field() {
    let world = World::random(44, PolicySettings::SPEC).await;
    *world.grants.calls.lock().unwrap() = vec![ActivityCall {
        method: "eth_call".to_owned(),
        status_code: 200,
        time: NOW,
    }];
    let wallet = format!("{:#x}", address_of("carol-w"));
    let owners = rows(&world, CAROL, LISTS[0].1).await;
    let transaction = owners.iter().find(|row| row["from"] == json!(wallet)).cloned().unwrap();
    let hash = transaction["hash"].as_str().unwrap().to_owned();
    let single = [
        (format!("/transactions/{hash}"), "transaction by hash"),
        (format!("/addresses/{wallet}/stats"), "address by itself"),
    ];
    let mut singles: Vec<[Value; 4]> = single.iter().map(|_| Default::default()).collect();
    let mut grants: [[Value; 4]; 4] = Default::default();
    for (column, level) in LEVELS.into_iter().enumerate() {
        let disclosed = disclosing(&world, level);
        let grant = disclosed.disclosures_to(&did("alice")).first().map(|grant| grant.id);
        world.set_policy(Some(disclosed));
        for ((path, _), shown) in single.iter().zip(&mut singles) {
            shown[column] = body(&world, path, "").await;
        }
        let Some(grant) = grant else { continue };
        let address = body(&world, "/viewable-addresses", "/disclosed_addresses/0").await;
        let id = address["address_id"].as_str().unwrap().to_owned();
        grants[0][column] = address;
        grants[1][column] = body(&world, &format!("/grant/{grant}/resolve/{id}"), "").await;
        let path = format!("/grant/{grant}/{id}/transactions?limit=100");
        let page = body(&world, &path, "/transactions").await;
        let block = &transaction["blockNumber"];
        let row = page
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["block_number"] == *block);
        grants[2][column] = row.cloned().unwrap();
        let built = policy(&world.chain).org("a").user("carol");
        let built = built.disclosed_to("alice", level.unwrap());
        let activity = built.with_disclosures(|grant| grant.scope.methods = Some(vec!["activity_logs".to_owned()]));
        let activity = activity.snapshot();
        let grant = activity.disclosures_to(&did("alice"))[0].id;
        world.set_policy(Some(activity));
        grants[3][column] = body(&world, &format!("/grant/{grant}/activity"), "/logs/0").await;
    }
    let mut table = Table::default();
    table.row("", ["no grant", "redacted", "pseudonymous", "full"].map(str::to_owned));
    for (name, path, seed) in LISTS {
        let (owners, shown) = differing_row(path, seed).await.unwrap();
        table.object(name, &owners, &shown);
    }
    for ((path, name), shown) in single.iter().zip(&singles) {
        table.object(name, &world.get(CAROL, path).await.json(), shown);
    }
    let names = [
        "grant: address",
        "grant: resolved address",
        "grant: transaction",
        "grant: call of the owner",
    ];
    for (name, shown) in names.into_iter().zip(&grants) {
        // Everything that some level shows, compared with the level full.
        let mut all = shown[3].as_object().unwrap().clone();
        for level in [&shown[1], &shown[2]] {
            for (member, value) in level.as_object().unwrap() {
                all.entry(member).or_insert_with(|| value.clone());
            }
        }
        table.object(name, &Value::Object(all), shown);
    }
    insta::with_settings!({snapshot_path => "../../../../docs/tables", prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!("disclosure_by_field", table.0.trim_end());
    });
}
