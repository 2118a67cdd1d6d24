//! File systems that do not outlive their machine or container (HD25).

use rustix::fs::{FsWord, statfs};
use std::{
    io,
    path::{Path, PathBuf},
};

/// The file systems that end with the machine or the container, by their magic number (statfs(2)).
const VOLATILE: [(FsWord, &str); 4] = [
    (0x0102_1994, "tmpfs"),
    (0x8584_58f6, "ramfs"),
    (0x794c_7630, "overlay"),
    (0x6175_6673, "aufs"),
];

/// The kind of file system that holds `path`, if it does not outlive its machine or container.
///
/// # Errors
/// An error if the system does not answer, for example because a directory may not be entered.
pub(crate) fn volatile_kind(path: &Path) -> io::Result<Option<&'static str>> {
    Ok(name_if_volatile(statfs(nearest_existing(path)?)?.f_type))
}

fn name_if_volatile(magic: FsWord) -> Option<&'static str> {
    VOLATILE
        .iter()
        .find_map(|(volatile, name)| (*volatile == magic).then_some(*name))
}

/// The path itself, or the closest directory above it that exists.
fn nearest_existing(path: &Path) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    let existing = absolute.ancestors().find(|ancestor| ancestor.exists());
    existing.unwrap_or(Path::new("/")).canonicalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hd25_memory_and_container_layers_are_volatile() {
        assert_eq!(name_if_volatile(0x0102_1994), Some("tmpfs"));
        assert_eq!(name_if_volatile(0x794c_7630), Some("overlay"));
        assert_eq!(name_if_volatile(0xef53), None, "ext4 outlives the container");
        assert_eq!(volatile_kind(Path::new("/dev/shm")).expect("statfs"), Some("tmpfs"));
        assert_eq!(volatile_kind(Path::new("/proc")).expect("statfs"), None);
    }

    #[test]
    fn a_path_that_does_not_exist_yet_is_on_the_file_system_of_its_nearest_directory() {
        let path = Path::new("/dev/shm/none/at/all");
        assert_eq!(nearest_existing(path).expect("path"), Path::new("/dev/shm"));
        assert_eq!(volatile_kind(path).expect("statfs"), Some("tmpfs"));
    }
}
