//! A small disk that tests can fill: an in-memory file system, mounted for one test.
//!
//! Mounting needs rights that not every machine gives. A shell guards the mount: when the test process ends, in
//! whatever way, the shell's input closes and it unmounts.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead as _, BufReader, Write as _},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// Name of the file that fills the disk.
const FILLING: &str = "filling";

/// A mounted disk that a test can fill.
#[derive(Debug)]
pub struct FullDisk {
    /// Removed after the shell has unmounted the disk.
    directory: tempfile::TempDir,
    /// The guarding shell. Its input stays open as long as the disk is used.
    watch: Child,
}

impl FullDisk {
    /// Mounts a disk of `mib` MiB. `None`, with a printed notice, if mounting is not allowed.
    ///
    /// # Panics
    /// If the directory or the process cannot be created.
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
        // In a process group of its own, so that an interrupted test run does not kill the shell before it has cleaned
        // up.
        shell.process_group(0);
        let mut watch = shell
            .spawn()
            .unwrap_or_else(|error| panic!("no shell for a disk: {error}"));
        let mut first_line = String::new();
        if let Some(stdout) = watch.stdout.take() {
            let _ = BufReader::new(stdout).read_line(&mut first_line);
        }
        if first_line.trim() == "mounted" {
            return Some(Self { directory, watch });
        }
        let _ = watch.wait();
        eprintln!(
            "\n\n  NOT RUN: this machine does not allow mounting a tmpfs, so the FULL DISK test was skipped.\n\n"
        );
        None
    }

    /// The mount point.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Fills the disk completely.
    ///
    /// # Errors
    /// If writing fails for another reason than a full disk.
    pub fn fill(&self) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(self.filling())?;
        for size in [1 << 20, 4096, 1] {
            let block = vec![0u8; size];
            while write_block(&mut file, &block)? {}
        }
        Ok(())
    }

    /// Frees the space again.
    ///
    /// # Errors
    /// If the disk was not filled.
    pub fn free(&self) -> io::Result<()> {
        std::fs::remove_file(self.filling())
    }

    fn filling(&self) -> PathBuf {
        self.path().join(FILLING)
    }
}

/// Writes a block. Returns whether it fit.
fn write_block(file: &mut File, block: &[u8]) -> io::Result<bool> {
    match file.write(block) {
        Ok(written) => Ok(written == block.len()),
        Err(error) if error.kind() == io::ErrorKind::StorageFull => Ok(false),
        Err(error) => Err(error),
    }
}

impl Drop for FullDisk {
    fn drop(&mut self) {
        drop(self.watch.stdin.take());
        // The shell unmounts the disk before it exits. A failure cannot be handled here.
        let _status = self.watch.wait();
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
