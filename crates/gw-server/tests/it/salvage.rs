//! RL5: a damaged journal is neither opened nor deleted; it can be salvaged.

use crate::deployment::{Deployment, Store, call, on_both_engines, output_of};
use gw_testkit::anvil::anvil;
use std::{
    fs::{self, OpenOptions},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

on_both_engines! {
    rl5_a_damaged_journal_is_salvaged_and_nothing_is_deleted,
    rl5_records_that_a_salvage_saved_are_not_reported_as_lost,
    rl2_removal_of_sealed_entries_of_a_salvaged_journal_is_detected,
    rl5_a_damaged_start_and_a_missing_shard_lead_out_of_the_salvage,
}

/// The first segment of the journal, which has the records.
fn segment(journal: &Path) -> PathBuf {
    let shard = fs::read_to_string(journal.join("shard")).expect("a shard");
    let files = fs::read_dir(journal.join(shard))
        .expect("files")
        .map(|entry| entry.expect("an entry").path());
    let mut segments: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|end| end == "segment"))
        .collect();
    segments.sort();
    segments.swap_remove(0)
}

fn rl5_a_damaged_journal_is_salvaged_and_nothing_is_deleted(deployment: &Deployment) {
    let node = anvil();
    let journal = deployment.path("journal");
    let gateway = deployment.start(node.url(), &[]);
    call(&gateway, 5);
    // The directory is in use.
    let busy = deployment.run(&["audit", "salvage"]);
    assert_eq!(busy.status.code(), Some(75), "{}", output_of(&busy));
    gateway.end();
    let clean = deployment.run(&["audit", "salvage", "--confirm"]);
    assert!(
        clean.status.success() && output_of(&clean).contains("nothing to salvage"),
        "{}",
        output_of(&clean)
    );

    let damaged = segment(Path::new(&journal));
    OpenOptions::new()
        .write(true)
        .open(&damaged)
        .expect("open")
        .write_all_at(&[0xee; 9], 4200)
        .expect("written");
    let before = fs::read(&damaged).expect("read");
    let failed_start = deployment.failed_start(node.url(), &[]);
    assert!(
        failed_start.contains("do not delete it; `ledger-gateway audit salvage`"),
        "{failed_start}"
    );

    let dry_run = deployment.run(&["audit", "salvage", "--dir", &journal]);
    assert_eq!(dry_run.status.code(), Some(1), "{}", output_of(&dry_run));
    assert!(
        ["stream access", "these numbers are the least", "nothing was changed"]
            .iter()
            .all(|line| output_of(&dry_run).contains(line)),
        "{}",
        output_of(&dry_run)
    );
    assert_eq!(fs::read(&damaged).expect("read"), before);
    // The store has the damaged records, so nothing is lost.
    let salvage = deployment.run(&["audit", "salvage", "--confirm"]);
    assert!(salvage.status.success(), "{}", output_of(&salvage));
    let moved_aside = fs::read_dir(&journal)
        .expect("entries")
        .map(|entry| entry.expect("an entry").path());
    let moved_aside = moved_aside
        .filter(|path| path.to_string_lossy().contains(".damaged-"))
        .collect::<Vec<_>>();
    assert_eq!(moved_aside.len(), 1);
    assert_eq!(
        fs::read(moved_aside[0].join(damaged.file_name().expect("a name"))).expect("read"),
        before
    );

    let gateway = deployment.start(node.url(), &[]);
    gateway.end();
    assert!(moved_aside[0].is_dir());
    let verified = deployment.run(&["audit", "verify"]);
    assert!(verified.status.success(), "{}", output_of(&verified));
}

/// RL5: whatever keeps the service from starting is something that the salvage repairs; the advice is no circle.
fn rl5_a_damaged_start_and_a_missing_shard_lead_out_of_the_salvage(deployment: &Deployment) {
    let (node, journal) = (anvil(), deployment.path("journal"));
    let damage: [fn(&Path); 2] = [
        |journal| {
            let shard = fs::read_to_string(journal.join("shard")).expect("a shard");
            fs::write(journal.join(shard).join("start"), "not a start").expect("written");
        },
        |journal| fs::write(journal.join("shard"), "00000000-0000-0000-0000-0000000000aa").expect("written"),
    ];
    for damage in damage {
        let gateway = deployment.start(node.url(), &[]);
        call(&gateway, 5);
        gateway.end();
        damage(Path::new(&journal));
        let failed_start = deployment.failed_start(node.url(), &[]);
        assert!(failed_start.contains("ledger-gateway audit salvage"), "{failed_start}");
        let salvage = deployment.run(&["audit", "salvage", "--confirm"]);
        assert!(salvage.status.success(), "{}", output_of(&salvage));
        deployment.start(node.url(), &[]).end();
        let verified = deployment.run(&["audit", "verify"]);
        assert!(verified.status.success(), "{}", output_of(&verified));
    }
}

/// RL5: the waiting records of a damaged journal are sealed in a new shard. Neither verification nor the new shard
/// reports them as lost.
fn rl5_records_that_a_salvage_saved_are_not_reported_as_lost(deployment: &Deployment) {
    let (node, journal) = (anvil(), deployment.path("journal"));
    let settings = [("AUDIT_CHECKPOINT_INTERVAL", "1s")];
    let sealed = || deployment.count(Store::Audit, "SELECT count(*) FROM entries WHERE kind = 'access'");
    let signed = || deployment.sizes().1;
    let mut gateway = deployment.start(node.url(), &settings);
    call(&gateway, 5);
    gateway.wait("signed the calls", |_| sealed() == 5 && signed() == 6);
    // Another session locks the audit database during further calls.
    deployment.while_locked(|| {
        call(&gateway, 7);
        // The gateway records the numbers outside the journal every second.
        std::thread::sleep(Duration::from_secs(2));
        drop(gateway);
    });

    let damaged = segment(Path::new(&journal));
    OpenOptions::new()
        .write(true)
        .open(&damaged)
        .expect("open")
        .write_all_at(&[0xee; 9], 4200)
        .expect("written");
    let salvage = deployment.run(&["audit", "salvage", "--confirm"]);
    assert!(salvage.status.success(), "{}", output_of(&salvage));
    let mut gateway = deployment.start(node.url(), &settings);
    gateway.wait("sealed the saved records", |_| sealed() == 12);
    gateway.wait("signed a checkpoint", |gateway| {
        gateway.output().contains("a checkpoint was signed")
    });
    gateway.wait("verified the chains", |gateway| {
        gateway.get("/ready").body.contains(r#""audit_chain":"ok""#)
    });
    let (_, log) = gateway.end();
    assert!(!log.contains("ERROR"), "{log}");
    let verified = deployment.run(&["audit", "verify"]);
    assert!(verified.status.success(), "{}", output_of(&verified));
}

/// RL2, rule 18: the store has entries of a damaged journal that are not signed yet. Their removal after the salvage is
/// detected.
fn rl2_removal_of_sealed_entries_of_a_salvaged_journal_is_detected(deployment: &Deployment) {
    let (node, journal) = (anvil(), deployment.path("journal"));
    let start = |interval| deployment.start(node.url(), &[("AUDIT_CHECKPOINT_INTERVAL", interval)]);
    let sealed = || deployment.count(Store::Audit, "SELECT count(*) FROM entries WHERE kind = 'access'");
    let signed = || deployment.sizes().1;
    let mut gateway = start("1s");
    call(&gateway, 5);
    gateway.wait("signed the calls", |_| sealed() == 5 && signed() == 6);
    gateway.end();
    let mut gateway = start("1h");
    call(&gateway, 7);
    gateway.wait("sealed the calls", |_| sealed() == 12);
    // The journal marks the records as sealed shortly after the store has them.
    std::thread::sleep(Duration::from_secs(1));
    drop(gateway);
    assert_eq!(signed(), 6);

    let segment = segment(Path::new(&journal));
    fs::remove_file(segment.with_file_name("base")).expect("removed");
    let salvage = deployment.run(&["audit", "salvage", "--confirm"]);
    assert!(salvage.status.success(), "{}", output_of(&salvage));
    deployment.sql(
        Store::Audit,
        "DELETE FROM entries WHERE kind = 'access' AND seq >= 6; \
         UPDATE chains SET size = 6, issued = 5, \
         head_hash = (SELECT hash FROM entries WHERE kind = 'access' AND seq = 5), \
         head_time = (SELECT created_at FROM entries WHERE kind = 'access' AND seq = 5) WHERE stream = 'access'",
    );
    let verified = deployment.run(&["audit", "verify"]);
    assert_eq!(verified.status.code(), Some(1), "{}", output_of(&verified));
    assert!(
        output_of(&verified).contains("chain_truncated"),
        "{}",
        output_of(&verified)
    );
    let failed_start = deployment.failed_start(node.url(), &[("AUDIT_CHECKPOINT_INTERVAL", "1h")]);
    assert!(failed_start.contains("entries are missing"), "{failed_start}");
}
