//! Which chains were given up with all that was not sealed of them gone on in another shard. Their numbers behind the
//! sealed ones were given out and are of no entry there: without this they would count as lost.
//!
//! A file in the journal's directory, a line `<stream>/<shard>` for each, until the stores were told.

use crate::disk;
use crate::error::{OpenError, at};
use gw_audit::ChainId;
use std::path::Path;

const FILE: &str = "given-up";

/// The chains in the file of a directory; a line that is no chain's is passed over.
///
/// # Errors
/// [`OpenError::Io`] if the file cannot be read.
pub fn given_up(dir: &Path) -> Result<Vec<ChainId>, OpenError> {
    let path = dir.join(FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(text.lines().filter_map(|line| line.parse().ok()).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(at(&path)(error)),
    }
}

/// Forgets them, once the stores were told.
///
/// # Errors
/// [`OpenError::Io`] if the file cannot be removed.
pub fn forget_given_up(dir: &Path) -> Result<(), OpenError> {
    let path = dir.join(FILE);
    disk::remove(&path).map_err(at(&path))
}

/// Adds chains. Before their shard is given up: one that is not is passed over by whoever reads the file.
pub(crate) fn append(dir: &Path, chains: impl IntoIterator<Item = ChainId>) -> Result<(), OpenError> {
    let mut all = given_up(dir)?;
    all.extend(chains);
    let text: String = all.iter().map(|chain| format!("{chain}\n")).collect();
    let path = dir.join(FILE);
    disk::replace(&path, text.as_bytes()).map_err(at(&path))
}
