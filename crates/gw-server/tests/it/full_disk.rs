//! RL1 from outside: a process on a disk that fills up and is freed, killed in the end. Needs the right to mount.

use crate::process::{Answer, Serving};
use gw_testkit::{FullDisk, anvil::anvil};
use std::time::{Duration, Instant};

const TOKEN: &str = "a-token-of-thirty-two-characters-or-more";

fn make(gateway: &Serving, slug: &str) -> Answer {
    let body = format!(r#"{{"slug":"{slug}","name":"{slug}"}}"#);
    let headers = [("X-Admin-Token", TOKEN), ("Content-Type", "application/json")];
    gateway.ask("POST", "/api/v1/admin/orgs", &headers, &body)
}

#[test]
fn rl1_what_was_answered_around_a_full_disk_outlives_a_kill() {
    let journal = tempfile::tempdir().expect("made");
    let Some(disk) = FullDisk::mount(8) else { return };
    let node = anvil();
    let (data, buffer) = (disk.path().join("data"), journal.path().join("journal"));
    let settings = [
        ("DATA_DIR", data.to_str().expect("text")),
        ("AUDIT_BUFFER_DIR", buffer.to_str().expect("text")),
        ("ADMIN_API_TOKEN", TOKEN),
    ];
    let gateway = Serving::start(node.url(), &settings).ready();
    let mut acknowledged = Vec::new();
    for round in 0..2 {
        disk.fill().expect("filled");
        let (mut refused, mut next) = (0, 0);
        while refused < 5 {
            next += 1;
            let slug = format!("full-{round}-{next}");
            let answer = make(&gateway, &slug);
            match answer.status {
                201 => acknowledged.push(slug),
                503 => refused += 1,
                _ => panic!("{answer:?}\n{}", gateway.said()),
            }
            assert!(next < 5_000, "the disk was never full");
        }
        let told = gateway.ask("GET", "/ready", &[], "");
        assert!(
            told.status == 200 && told.body.contains(r#""writes":"down""#),
            "RL12: readiness says what a write is told, and reads go on: {told:?}"
        );
        disk.free().expect("freed");
        for n in 0..10 {
            let slug = format!("freed-{round}-{n}");
            let answer = make(&gateway, &slug);
            assert_eq!(answer.status, 201, "{answer:?}\n{}", gateway.said());
            acknowledged.push(slug);
        }
        let end = Instant::now() + Duration::from_secs(20);
        while !gateway.ask("GET", "/ready", &[], "").body.contains(r#""writes":"ok""#) {
            assert!(Instant::now() < end, "no writes again: {}", gateway.said());
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    // Killed, not told to end.
    drop(gateway);
    let gateway = Serving::start(node.url(), &settings).ready();
    for slug in acknowledged {
        assert_eq!(
            make(&gateway, &slug).status,
            409,
            "`{slug}` was acknowledged and is gone"
        );
    }
}
