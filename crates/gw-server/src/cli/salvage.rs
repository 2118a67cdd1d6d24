//! `audit salvage`: recovers the intact records of a journal that cannot be opened, so that operators need not delete
//! it (spec/70 rule 12).
//!
//! Without `--confirm` it changes nothing, and with it, it deletes nothing. Exit codes: [`super`]. A damaged journal,
//! or a salvage that lost records, is a finding.

use super::{EXIT_FINDING, say};
use crate::{
    config::Config,
    serve::{ServeError, journal, stores},
    trust::HeadsFile,
};
use anyhow::Context as _;
use clap::Args;
use gw_audit::{ChainEdge, ChainId, TrustedHead};
use gw_journal::{Findings, JournalConfig, OpenError, StreamState};
use std::{
    fmt::Write as _,
    ops::Range,
    path::{Path, PathBuf},
    process::ExitCode,
};

#[derive(Debug, Args)]
pub(super) struct Salvage {
    /// The directory of the journal, if it is not AUDIT_BUFFER_DIR.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Write the intact records that are not sealed to a new shard, and move the damaged files aside.
    #[arg(long)]
    confirm: bool,
}

pub(super) fn run(command: &Salvage, config: &Config) -> Result<ExitCode, ServeError> {
    let dir = command.dir.clone().unwrap_or_else(|| config.audit.journal_dir.clone());
    let salvage = gw_journal::Salvage::inspect(&dir, &journal::holder()).map_err(serve_error)?;
    let Some(refusal) = salvage.refusal() else {
        say(format_args!(
            "OK `{}`: the journal can be opened, there is nothing to salvage\n",
            dir.display()
        ));
        return Ok(ExitCode::SUCCESS);
    };
    say(format_args!("DAMAGED {refusal}\n"));
    salvage.findings().for_each(|findings| say(describe(findings)));
    for path in salvage.leftovers() {
        say(format_args!(
            "  `{}` was left behind by an interrupted move; it is set aside, and its records are in the other shard\n",
            path.display()
        ));
    }
    let lost: u64 = salvage.findings().map(Findings::lost).sum();
    if !command.confirm {
        say("nothing was changed; --confirm continues with the intact records and moves the damaged files aside\n");
        return Ok(ExitCode::from(EXIT_FINDING));
    }
    let key = stores::checkpoint_key(config)
        .and_then(|key| key.context("there is no checkpoint key yet: set AUDIT_CHECKPOINT_KEY"))
        .map_err(ServeError::Unreadable)?;
    let options = JournalConfig {
        dir,
        ..journal::options(config, &key)?
    };
    trust_sealed(&salvage, &options.dir)?;
    let platform = stores::Platform::read_only(config);
    let salvaged = salvage
        .confirm(options, platform.clock, platform.entropy)
        .map_err(serve_error)?;
    say(format_args!(
        "SALVAGED {} records into shard {}\n",
        salvaged.records, salvaged.shard
    ));
    for path in salvaged.aside {
        say(format_args!("  the damaged files are in `{}`\n", path.display()));
    }
    Ok(if lost == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(EXIT_FINDING)
    })
}

/// Adds a trusted head for each chain of a damaged shard that is sealed further than it is signed. Only the damaged
/// journal knows of these entries: without the head, a writer of the store could remove them without a finding. The
/// next start compares the store with the heads, and signs them.
fn trust_sealed(salvage: &gw_journal::Salvage, dir: &Path) -> anyhow::Result<()> {
    let file = HeadsFile::open(dir)?;
    let trusted = file.heads();
    let mut new_heads = Vec::new();
    let chains = salvage.findings().flat_map(|findings| {
        let shard = findings.shard;
        let streams = findings.streams.iter().map(|state| state.stream);
        streams.map(move |stream| ChainId { stream, shard })
    });
    for chain in chains {
        let trusted_head = trusted.head(chain);
        let Some(mut edge) = trusted_head.map_or_else(|| Some(ChainEdge::default()), TrustedHead::edge) else {
            continue;
        };
        let signed = edge.size();
        // Stops at the first entry that is missing or does not continue the chain.
        let mut continues = true;
        salvage
            .each_sealed(chain, signed, |seq, bytes| {
                continues = continues && edge.push(seq, gw_audit::tree::leaf(bytes), bytes).is_ok();
            })
            .context("the damaged journal cannot be read")?;
        if edge.size() > signed {
            new_heads.push((
                chain,
                TrustedHead::new(None, &edge, trusted_head.map_or(0, |head| head.era)),
            ));
        }
    }
    file.update(|heads| {
        new_heads
            .into_iter()
            .filter(|(chain, head)| heads.advance(*chain, head.clone()))
            .count()
            > 0
    })
    .context("the trusted heads cannot be written")
}

fn serve_error(error: OpenError) -> ServeError {
    match error {
        OpenError::Held { .. } => ServeError::Busy(format!("{error}; stop it first")),
        OpenError::Io { .. } | OpenError::Corrupt { .. } | OpenError::SealedMissing { .. } => {
            ServeError::Unreadable(error.into())
        }
    }
}

/// Describes the findings for the operator, one fact per line.
fn describe(findings: &Findings) -> String {
    let mut text = String::new();
    let mut line = |line: core::fmt::Arguments<'_>| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {line}");
    };
    line(format_args!("shard {} in `{}`", findings.shard, findings.dir.display()));
    if !findings.header {
        line(format_args!(
            "the header cannot be read: sealed and unsealed records cannot be distinguished, and some are sealed twice"
        ));
    }
    if !findings.base {
        line(format_args!(
            "the state before the oldest segment cannot be read: open sends from before it will not be resolved"
        ));
    }
    for segment in &findings.segments {
        let damage = segment
            .damaged_at
            .map(|at| format!(", damaged at byte {at}"))
            .unwrap_or_default();
        line(format_args!(
            "segment `{}`: {} intact records{damage}",
            segment.path.display(),
            segment.records
        ));
    }
    for StreamState {
        stream,
        records,
        sealed,
        unsealed,
        missing,
        lost,
        broken,
    } in &findings.streams
    {
        line(format_args!(
            "stream {stream}: {records} intact, {sealed} sealed, {unsealed} to salvage, missing {}, lost {}",
            format_ranges(missing),
            format_ranges(lost)
        ));
        for seq in broken {
            line(format_args!(
                "stream {stream}: entry {seq} does not continue the entry before it; one of the two was changed"
            ));
        }
    }
    line(format_args!(
        "these numbers are the least: the journal notes its length once a second, so records after the last note may \
         be lost, too"
    ));
    line(format_args!("open sends: {}", findings.open_intents));
    text
}

/// Formats half-open ranges as `start..end`; the end is not included.
fn format_ranges(ranges: &[Range<u64>]) -> String {
    let texts: Vec<_> = ranges
        .iter()
        .map(|range| format!("{}..{}", range.start, range.end))
        .collect();
    if texts.is_empty() {
        "none".to_owned()
    } else {
        texts.join(" ")
    }
}
