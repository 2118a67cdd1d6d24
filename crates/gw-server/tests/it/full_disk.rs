//! RL1 from outside: a process on a disk that fills up and is freed, killed in the end. Needs the right to mount.

use crate::process::{Answer, Serving};
use gw_testkit::anvil::anvil;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const TOKEN: &str = "a-token-of-thirty-two-characters-or-more";

/// A mounted file system, gone with the value.
struct Disk(PathBuf);

impl Disk {
    /// `None`, said aloud, where mounting is refused.
    #[expect(clippy::print_stdout, reason = "what did not run must be seen")]
    fn mount(place: &Path) -> Option<Self> {
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(place).output();
        match done {
            Ok(output) if output.status.success() => Some(Self(place.to_owned())),
            other => {
                println!("NOT RUN: no file system can be mounted here: {other:?}");
                None
            }
        }
    }

    fn fill(&self) {
        for size in [1 << 20, 1 << 16, 1 << 12] {
            for n in 0.. {
                if fs::write(self.0.join(format!("filler-{size}-{n}")), vec![7; size]).is_err() {
                    break;
                }
            }
        }
    }

    fn free(&self) {
        for entry in fs::read_dir(&self.0).expect("listed") {
            let entry = entry.expect("listed");
            if entry.file_name().to_string_lossy().starts_with("filler-") {
                fs::remove_file(entry.path()).expect("removed");
            }
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn make(gateway: &Serving, slug: &str) -> Answer {
    let body = format!(r#"{{"slug":"{slug}","name":"{slug}"}}"#);
    let headers = [("X-Admin-Token", TOKEN), ("Content-Type", "application/json")];
    gateway.ask("POST", "/api/v1/admin/orgs", &headers, &body)
}

#[test]
fn rl1_what_was_answered_around_a_full_disk_outlives_a_kill() {
    let (place, journal) = (tempfile::tempdir().expect("made"), tempfile::tempdir().expect("made"));
    let Some(disk) = Disk::mount(place.path()) else { return };
    let node = anvil();
    let (data, buffer) = (place.path().join("data"), journal.path().join("journal"));
    let settings = [
        ("DATA_DIR", data.to_str().expect("text")),
        ("AUDIT_BUFFER_DIR", buffer.to_str().expect("text")),
        ("ADMIN_API_TOKEN", TOKEN),
    ];
    let gateway = Serving::start(node.url(), &settings).ready();
    let mut acknowledged = Vec::new();
    for round in 0..2 {
        disk.fill();
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
        disk.free();
        for n in 0..10 {
            let slug = format!("freed-{round}-{n}");
            let answer = make(&gateway, &slug);
            assert_eq!(answer.status, 201, "{answer:?}\n{}", gateway.said());
            acknowledged.push(slug);
        }
    }
    // Killed, not told to end.
    drop(gateway);
    let gateway = Serving::start(node.url(), &settings).ready();
    for slug in acknowledged {
        assert_eq!(make(&gateway, &slug).status, 409, "`{slug}` was acknowledged and is gone");
    }
}
