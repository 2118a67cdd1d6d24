//! A small disk that tests can fill: a file system in memory, mounted for one test.
//!
//! Mounting takes rights that not every machine gives. A shell watches over the mount: when the test process ends,
//! however it ends, the shell's input closes, and it unmounts.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead as _, BufReader, Write as _},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// What takes up the room.
const FILLING: &str = "filling";

/// A disk of its own, full when the test says so.
#[derive(Debug)]
pub struct FullDisk {
    /// Removed after the shell has unmounted what is in it.
    directory: tempfile::TempDir,
    /// Its input stays open as long as the disk is wanted.
    watch: Child,
}

impl FullDisk {
    /// Mounts a disk of so many MiB; `None`, and loudly, where that is not allowed.
    ///
    /// # Panics
    /// When no directory and no process can be made.
    pub fn mount(mib: u32) -> Option<Self> {
        const SCRIPT: &str = r#"
            mount -t tmpfs -o "size=${2}m,mode=0700" gw-testkit "$1" && echo mounted || { echo refused; exit 1; }
            read -r _
            umount -l "$1"
        "#;
        let directory = tempfile::Builder::new().prefix("gw-disk-").tempdir();
        let directory = directory.unwrap_or_else(|error| panic!("no directory for a disk: {error}"));
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", SCRIPT, "watch"])
            .arg(directory.path())
            .arg(mib.to_string());
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // A group of its own: an interrupted test run must not take the shell down before it has cleaned up.
        shell.process_group(0);
        let mut watch = shell
            .spawn()
            .unwrap_or_else(|error| panic!("no shell for a disk: {error}"));
        let mut said = String::new();
        if let Some(stdout) = watch.stdout.take() {
            let _ = BufReader::new(stdout).read_line(&mut said);
        }
        if said.trim() == "mounted" {
            return Some(Self { directory, watch });
        }
        let _ = watch.wait();
        eprintln!("\n\n  NOT RUN: no disk of our own can be mounted here, so nothing was seen of a FULL DISK.\n\n");
        None
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Takes up all the room there is.
    ///
    /// # Errors
    /// When writing fails for another reason than want of room.
    pub fn fill(&self) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(self.filling())?;
        for size in [1 << 20, 4096, 1] {
            let block = vec![0u8; size];
            while take(&mut file, &block)? {}
        }
        Ok(())
    }

    /// Gives the room back.
    ///
    /// # Errors
    /// When nothing was filled.
    pub fn free(&self) -> io::Result<()> {
        std::fs::remove_file(self.filling())
    }

    fn filling(&self) -> PathBuf {
        self.path().join(FILLING)
    }
}

/// Whether there was room for it.
fn take(file: &mut File, block: &[u8]) -> io::Result<bool> {
    match file.write(block) {
        Ok(written) => Ok(written == block.len()),
        Err(error) if error.kind() == io::ErrorKind::StorageFull => Ok(false),
        Err(error) => Err(error),
    }
}

impl Drop for FullDisk {
    fn drop(&mut self) {
        drop(self.watch.stdin.take());
        // The shell has unmounted the disk when it ends; there is nothing to do about a failure.
        let _ended = self.watch.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_fills_and_empties() {
        let Some(disk) = FullDisk::mount(2) else { return };
        let file = disk.path().join("data");
        std::fs::write(&file, [1; 4096]).unwrap();
        disk.fill().unwrap();
        let full = std::fs::write(disk.path().join("more"), [1; 4096]).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        disk.free().unwrap();
        std::fs::write(disk.path().join("more"), [1; 4096]).unwrap();
        let path = disk.path().to_owned();
        drop(disk);
        assert!(!path.exists(), "unmounted and removed");
    }
}
