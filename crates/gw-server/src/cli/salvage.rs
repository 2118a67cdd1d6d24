//! `audit salvage`: what is whole in a journal that refuses to open, so that nobody deletes it (spec/70 rule 12).
//!
//! Changes nothing without `--confirm`, and deletes nothing with it. Exit codes: [`super`]; a damaged journal, or a
//! salvage that had to leave records behind, is a finding.

use super::{EXIT_FINDING, say};
use crate::{
    config::Config,
    serve::{Fault, journal, stores},
};
use anyhow::Context as _;
use clap::Args;
use gw_journal::{Findings, OpenError, Options, StreamState};
use std::{fmt::Write as _, ops::Range, path::PathBuf, process::ExitCode};

#[derive(Debug, Args)]
pub(super) struct Salvage {
    /// The journal's directory, if not AUDIT_BUFFER_DIR.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Make a new shard of the whole records that are not sealed, and set the damaged files aside.
    #[arg(long)]
    confirm: bool,
}

pub(super) fn run(command: &Salvage, config: &Config) -> Result<ExitCode, Fault> {
    let dir = command.dir.clone().unwrap_or_else(|| config.audit.journal_dir.clone());
    let salvage = gw_journal::Salvage::inspect(&dir, &journal::holder()).map_err(fault)?;
    let findings = salvage.findings();
    let Some(refusal) = salvage.refusal() else {
        say(format_args!(
            "OK `{}`: the journal opens, there is nothing to salvage\n",
            dir.display()
        ));
        return Ok(ExitCode::SUCCESS);
    };
    say(format_args!("DAMAGED {refusal}\n{}", describe(findings)));
    let lost = findings.lost();
    if !command.confirm {
        say("nothing was changed; --confirm goes on with what is whole and sets the damaged files aside\n");
        return Ok(ExitCode::from(EXIT_FINDING));
    }
    let key = stores::checkpoint_key(config)
        .and_then(|key| key.context("there is no checkpoint key yet: set AUDIT_CHECKPOINT_KEY"))
        .map_err(Fault::Unreadable)?;
    let options = Options {
        dir,
        ..journal::options(config, &key)?
    };
    let ground = stores::Ground::read_only(config);
    let salvaged = salvage.confirm(options, ground.clock, ground.entropy).map_err(fault)?;
    say(format_args!(
        "SALVAGED {} records go on in shard {}\n",
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

fn fault(error: OpenError) -> Fault {
    match error {
        OpenError::Held { .. } => Fault::Busy(format!("{error}; stop it first")),
        OpenError::Io { .. } | OpenError::Corrupt { .. } => Fault::Unreadable(error.into()),
    }
}

/// One line per thing an operator decides by.
fn describe(findings: &Findings) -> String {
    let mut text = String::new();
    let mut line = |line: core::fmt::Arguments<'_>| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {line}");
    };
    if let Some(shard) = findings.shard {
        line(format_args!("shard {shard}"));
    }
    if !findings.header {
        line(format_args!(
            "the header cannot be read: what is sealed is not known, so records that are sealed are sealed once more"
        ));
    }
    if !findings.base {
        line(format_args!(
            "the state before the oldest segment cannot be read: sends opened before it are not followed up"
        ));
    }
    for segment in &findings.segments {
        let damage = segment
            .damaged_at
            .map(|at| format!(", damaged at byte {at}"))
            .unwrap_or_default();
        line(format_args!(
            "segment `{}`: {} whole records{damage}",
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
            "stream {stream}: {records} whole, {sealed} sealed, {unsealed} to go on with, missing {}, lost {}",
            ranges(missing),
            ranges(lost)
        ));
        for seq in broken {
            line(format_args!(
                "stream {stream}: entry {seq} does not follow the one before; one of them was changed"
            ));
        }
    }
    line(format_args!("open sends: {}", findings.open_intents));
    text
}

/// Ranges end before their second number.
fn ranges(ranges: &[Range<u64>]) -> String {
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
