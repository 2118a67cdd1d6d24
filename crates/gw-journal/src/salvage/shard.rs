//! The state of one shard of a damaged journal.

use super::scan::{self, Scan};
use super::{Findings, or_refusal};
use crate::error::OpenError;
use crate::header::{ChainSizes, Header};
use crate::heads::{BaseState, OpenIntents};
use crate::{replay, segment, start_file};
use gw_audit::ShardId;
use std::path::Path;

/// An inspected shard.
#[derive(Debug)]
pub(super) struct DamagedShard {
    pub(super) findings: Findings,
    pub(super) scan: Scan,
    /// Sends whose intent is sealed and whose outcome is not sealed.
    pub(super) intents: OpenIntents,
    /// The number of entries of each stream that are known to be in the store.
    pub(super) sealed: ChainSizes,
}

impl DamagedShard {
    /// Reads the files of a shard. Stores in `refusal` why they cannot be opened, if it has no earlier reason.
    pub(super) fn inspect(dir: &Path, named: ShardId, refusal: &mut Option<OpenError>) -> Result<Self, OpenError> {
        let shard = shard_of_files(dir).unwrap_or(named);
        if shard != named {
            refusal.get_or_insert_with(|| OpenError::corrupt(dir, 0, "the directory has the files of another shard"));
        }
        let (header, base) = (Header::open(dir, shard), BaseState::load(dir, shard));
        let replayed = match (&header, &base) {
            (Ok(header), Ok(base)) => replay::replay(dir, header, base).err(),
            (Err(_), _) | (_, Err(_)) => None,
        };
        let (header, base) = (or_refusal(header, refusal), or_refusal(base, refusal));
        *refusal = refusal.take().or(replayed);
        or_refusal(start_file::read(dir), refusal);
        let base_sizes = base.as_ref().map(|base| base.heads.reached().sizes);
        let sealed = header.as_ref().map(|header| header.sealed().sizes).unwrap_or_default();
        let sealed = sealed.max(&base_sizes.unwrap_or_default());
        let scan = Scan::new(dir, shard)?;
        let progress = scan::RecordedProgress {
            low: base_sizes,
            sealed,
            high: header
                .as_ref()
                .map(|header| header.durable().sizes)
                .unwrap_or_default()
                .max(&sealed),
            header: header.is_some(),
        };
        let mut intents = base.as_ref().map(|base| base.intents.clone()).unwrap_or_default();
        let mut all_intents = intents.clone();
        let (segments, streams) = scan.tally(&progress, |record| {
            // Errors are ignored: an entry that cannot be decoded changes no open send.
            let _ = all_intents.fold(record.header.kind, record.entry, record.openings);
            if record.header.seq < sealed.get(record.header.chain.stream) {
                let _ = intents.fold(record.header.kind, record.entry, record.openings);
            }
        });
        let findings = Findings {
            shard,
            dir: dir.to_owned(),
            header: header.is_some(),
            base: base.is_some(),
            segments,
            streams,
            open_intents: all_intents.len(),
        };
        Ok(Self {
            findings,
            scan,
            intents,
            sealed,
        })
    }
}

/// The shard to which the files belong, according to the header or else to the first segment with a valid head.
fn shard_of_files(dir: &Path) -> Option<ShardId> {
    let by_segment = || {
        let numbers = segment::list(dir).ok()?;
        let heads = numbers.into_iter().filter_map(|number| {
            let bytes = scan::read(&segment::path(dir, number));
            segment::read_head(&bytes).map(|head| head.shard)
        });
        heads.into_iter().next()
    };
    Header::shard(dir).or_else(by_segment)
}
