//! Ports for processes that a test starts, and starts again.
//!
//! A port that the kernel chose (`bind` with port 0) and that was closed again is free for everybody: the next outgoing
//! connection of any test may get it before the process listens. The ports here lie below the range from which the
//! kernel chooses, and a locked file keeps every other test process from the same port.

use std::{
    env,
    fs::{self, File, TryLockError},
    net::{Ipv4Addr, TcpListener},
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

/// Linux chooses ports from 32,768 on, unless it is configured otherwise.
const FIRST: u16 = 10_000;
const COUNT: u16 = 22_000;

/// The reserved ports. The locks end with the process.
struct Reserved {
    next: u16,
    locks: Vec<File>,
}

static RESERVED: Mutex<Reserved> = Mutex::new(Reserved {
    next: 0,
    locks: Vec::new(),
});

/// Reserves a port on which no process listens, until this process ends.
///
/// # Panics
/// If no port is free, or a lock file cannot be created.
pub fn reserve() -> u16 {
    let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = env::temp_dir().join("ledger-gateway-test-ports");
    if let Err(error) = fs::create_dir_all(&directory) {
        panic!("cannot create {}: {error}", directory.display());
    }
    // Test processes that run at the same time begin at different ports.
    let first = u16::try_from(std::process::id() % u32::from(COUNT)).unwrap_or_default();
    while reserved.next < COUNT {
        let offset = (u32::from(first) + u32::from(reserved.next)) % u32::from(COUNT);
        let port = FIRST + u16::try_from(offset).unwrap_or_default();
        reserved.next += 1;
        if let Some(lock) = lock(directory.join(port.to_string()))
            && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
        {
            reserved.locks.push(lock);
            return port;
        }
    }
    panic!("no port from {FIRST} on is free")
}

/// Locks a file, unless another process has it.
fn lock(path: PathBuf) -> Option<File> {
    let opened = File::options().create(true).truncate(false).write(true).open(&path);
    let file = opened.unwrap_or_else(|error| panic!("cannot open {}: {error}", path.display()));
    match file.try_lock() {
        Ok(()) => Some(file),
        Err(TryLockError::WouldBlock) => None,
        Err(TryLockError::Error(error)) => panic!("cannot lock {}: {error}", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ports_are_distinct_and_below_the_range_of_the_kernel() {
        let ports: BTreeSet<_> = (0..50).map(|_| reserve()).collect();
        assert_eq!(ports.len(), 50);
        assert!(ports.iter().all(|port| (FIRST..32_768).contains(port)));
    }

    #[test]
    fn a_locked_port_is_not_given_again() {
        let path = env::temp_dir()
            .join("ledger-gateway-test-ports")
            .join(reserve().to_string());
        assert!(lock(path).is_none());
    }

    #[test]
    fn a_port_in_use_is_passed_over() {
        // A process that reserves nothing listens on the port that would be next.
        let listener = (0..100).find_map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, reserve() + 1)).ok());
        let listener = listener.expect("one of them is free");
        let taken = listener.local_addr().expect("bound").port();
        assert!((0..5).all(|_| reserve() != taken));
    }
}
