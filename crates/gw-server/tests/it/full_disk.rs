//! RL1 from outside: a process on a disk that fills up and is freed, and that is killed at the end. Needs the right to
//! mount.

use crate::process::{Response, Serving};
use gw_testkit::{FullDisk, anvil::anvil};
use std::time::{Duration, Instant};

const TOKEN: &str = "a-token-of-thirty-two-characters-or-more";

fn create_org(gateway: &Serving, slug: &str) -> Response {
    let body = format!(r#"{{"slug":"{slug}","name":"{slug}"}}"#);
    let headers = [("X-Admin-Token", TOKEN), ("Content-Type", "application/json")];
    gateway.request("POST", "/api/v1/admin/orgs", &headers, &body)
}

#[test]
fn rl1_acknowledged_writes_around_a_full_disk_survive_a_kill() {
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
        let (mut rejected, mut next) = (0, 0);
        while rejected < 5 {
            next += 1;
            let slug = format!("full-{round}-{next}");
            let response = create_org(&gateway, &slug);
            match response.status {
                201 => acknowledged.push(slug),
                503 => rejected += 1,
                _ => panic!("{response:?}\n{}", gateway.output()),
            }
            assert!(next < 5_000, "the disk was never full");
        }
        let readiness = gateway.request("GET", "/ready", &[], "");
        assert!(
            readiness.status == 200 && readiness.body.contains(r#""writes":"down""#),
            "RL12: readiness reports that writes fail, and reads continue: {readiness:?}"
        );
        disk.free().expect("freed");
        for n in 0..10 {
            let slug = format!("freed-{round}-{n}");
            let response = create_org(&gateway, &slug);
            assert_eq!(response.status, 201, "{response:?}\n{}", gateway.output());
            acknowledged.push(slug);
        }
        let deadline = Instant::now() + Duration::from_secs(20);
        while !gateway
            .request("GET", "/ready", &[], "")
            .body
            .contains(r#""writes":"ok""#)
        {
            assert!(
                Instant::now() < deadline,
                "writes did not recover: {}",
                gateway.output()
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    // Dropping kills the process without SIGTERM.
    drop(gateway);
    let gateway = Serving::start(node.url(), &settings).ready();
    for slug in acknowledged {
        assert_eq!(
            create_org(&gateway, &slug).status,
            409,
            "`{slug}` was acknowledged and is lost"
        );
    }
}

/// RL1: a start that fails because the disk of the stores is full names the disk and what to do, and the next start
/// succeeds once there is room, however often the process was killed in between; the first start, too.
#[test]
fn rl1_a_start_on_a_full_disk_names_the_disk_and_succeeds_once_it_is_freed() {
    let journal = tempfile::tempdir().expect("made");
    let Some(disk) = FullDisk::mount(8) else { return };
    let node = anvil();
    let (data, buffer) = (disk.path().join("data"), journal.path().join("journal"));
    let data = data.to_str().expect("text");
    let settings = [
        ("DATA_DIR", data),
        ("AUDIT_BUFFER_DIR", buffer.to_str().expect("text")),
        ("ADMIN_API_TOKEN", TOKEN),
    ];
    let mut acknowledged: Vec<String> = Vec::new();
    for cycle in 0..4 {
        disk.fill().expect("filled");
        let output = Serving::spawn(node.url(), &settings).wait_for_failed_start();
        assert!(
            output.contains(&format!("the disk of `{data}` is full")) && output.contains("free disk space"),
            "cycle {cycle}: {output}"
        );
        disk.free().expect("freed");
        let gateway = Serving::start(node.url(), &settings).ready();
        for slug in &acknowledged {
            let response = create_org(&gateway, slug);
            assert_eq!(
                response.status, 409,
                "cycle {cycle}: `{slug}` was acknowledged and is lost"
            );
        }
        for n in 0..5 {
            let slug = format!("cycle-{cycle}-{n}");
            let response = create_org(&gateway, &slug);
            assert_eq!(response.status, 201, "{response:?}\n{}", gateway.output());
            acknowledged.push(slug);
        }
        // Dropping kills the process without SIGTERM.
        drop(gateway);
    }
}
