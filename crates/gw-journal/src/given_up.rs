//! The list of chains that were given up and whose unsealed records were moved to another shard. Their numbers behind
//! the sealed ones were issued, but no entry in their chain uses them: without this list they would count as lost.
//!
//! The list is a file in the journal's directory with a line `<stream>/<shard>` for each chain. It is removed once the
//! stores know the chains.

use crate::disk;
use crate::error::{OpenError, at};
use gw_audit::ChainId;
use std::path::Path;

const FILE: &str = "given-up";

/// Reads the given-up chains of a journal directory; lines that are not the name of a chain are skipped.
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

/// Removes the list, once the stores know the chains.
///
/// # Errors
/// [`OpenError::Io`] if the file cannot be removed.
pub fn forget_given_up(dir: &Path) -> Result<(), OpenError> {
    let path = dir.join(FILE);
    disk::remove(&path).map_err(at(&path))
}

/// Adds chains to the list. Called before their shard is given up: readers of the list skip the chains of the current
/// shard.
pub(crate) fn append(dir: &Path, chains: impl IntoIterator<Item = ChainId>) -> Result<(), OpenError> {
    let mut listed = given_up(dir)?;
    listed.extend(chains);
    let text: String = listed.iter().map(|chain| format!("{chain}\n")).collect();
    let path = dir.join(FILE);
    disk::replace(&path, text.as_bytes()).map_err(at(&path))
}
