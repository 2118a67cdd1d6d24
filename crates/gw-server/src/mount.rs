//! Which file system a directory lies on (HD25): a journal on memory or on a container's own layer is gone with the
//! container.

use std::{
    io,
    path::{Path, PathBuf},
};

/// File systems that end with the machine or the container.
const VANISHING: [&str; 4] = ["tmpfs", "ramfs", "overlay", "aufs"];

/// The kind of file system below `path`, if it is one that vanishes.
pub(crate) fn vanishing(path: &Path) -> io::Result<Option<String>> {
    let kind = kind_of(path)?;
    Ok(kind.filter(|kind| VANISHING.contains(&kind.as_str())))
}

fn kind_of(path: &Path) -> io::Result<Option<String>> {
    let path = nearest(path)?;
    let table = std::fs::read_to_string("/proc/self/mountinfo")?;
    Ok(find(&table, &path))
}

/// The path itself, or the closest directory above it that is there already.
fn nearest(path: &Path) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    let there = absolute
        .ancestors()
        .find(|above| above.exists())
        .unwrap_or(Path::new("/"));
    there.canonicalize()
}

/// The kind of the mount that holds `path`; of mounts on top of each other the last one.
fn find(table: &str, path: &Path) -> Option<String> {
    let mut best: Option<(usize, &str)> = None;
    for line in table.lines() {
        let Some((mount, rest)) = line.split_once(" - ") else {
            continue;
        };
        let point = unescape(mount.split(' ').nth(4)?);
        let depth = Path::new(&point).components().count();
        if path.starts_with(&point) && best.is_none_or(|(deepest, _)| depth >= deepest) {
            best = rest.split(' ').next().map(|kind| (depth, kind));
        }
    }
    best.map(|(_, kind)| kind.to_owned())
}

/// Blanks and backslashes stand as octal escapes in the table.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let code = after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(byte) => {
                out.push(char::from(byte));
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                out.push('\\');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
21 1 8:1 / / rw,relatime shared:1 - overlay overlay rw
22 21 0:20 / /tmp rw - tmpfs tmpfs rw
23 21 8:2 / /var/lib/my\\040data rw - ext4 /dev/sdb1 rw
24 21 8:3 / /var/lib rw - xfs /dev/sdc1 rw
25 24 0:21 / /var/lib rw - tmpfs tmpfs rw
";

    #[test]
    fn hd25_the_deepest_and_latest_mount_counts() {
        let kind = |path: &str| find(TABLE, Path::new(path));
        assert_eq!(kind("/srv/gateway").as_deref(), Some("overlay"));
        assert_eq!(kind("/tmp/x").as_deref(), Some("tmpfs"));
        assert_eq!(kind("/tmpfoo").as_deref(), Some("overlay"), "names are compared whole");
        assert_eq!(kind("/var/lib/my data/audit").as_deref(), Some("ext4"));
        assert_eq!(
            kind("/var/lib/audit").as_deref(),
            Some("tmpfs"),
            "the later mount lies on top"
        );
    }

    #[test]
    fn a_directory_that_is_not_there_yet_lies_where_its_parent_does() {
        let there = kind_of(Path::new("/proc")).expect("read");
        assert_eq!(kind_of(Path::new("/proc/self/none/at/all")).expect("read"), there);
        assert_eq!(there.as_deref(), Some("proc"));
    }
}
