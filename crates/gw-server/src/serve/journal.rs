//! The journal of this instance, opened where the configuration says (spec/70 rule 11, HD25).

use super::{
    fault::Fault,
    stores::{Ground, Secrets, make_private},
};
use crate::{
    config::{Config, Entry as _, Environment, Problem, Report, kind::signing_key, registry::AUDIT_BUFFER_DIR},
    mount,
};
use anyhow::Context as _;
use gw_journal::{Journal, OpenError, Options, Recovery};
use gw_types::Seconds;
use std::sync::Arc;

/// Size of one segment file.
const SEGMENT_BYTES: u64 = 64 << 20;
/// Sealed segments are kept this long and this large, so that a failed-over audit store can be sealed again (HD25).
const RETAIN_FOR: Seconds = Seconds(24 * 3600);
const RETAIN_BYTES: u64 = 1 << 30;
/// Names the chains of this deployment.
pub(crate) const CLUSTER: &str = "ledger-gateway";

/// Opens it and finds what a crash left open.
pub(super) fn open(config: &Config, secrets: &Secrets, ground: &Ground) -> Result<(Arc<Journal>, Recovery), Fault> {
    let dir = config.audit.journal_dir.clone();
    if config.environment == Environment::Production {
        let vanishing = mount::vanishing(&dir).context("the journal's file system cannot be told")?;
        if let Some(kind) = vanishing {
            let mut report = Report::default();
            report.add(Problem::new(
                AUDIT_BUFFER_DIR.name(),
                format!("lies on {kind}, which does not outlive its container"),
            ));
            return Err(report.into());
        }
    }
    make_private(&dir)?;
    let key = signing_key(secrets.checkpoint.expose()).context("the checkpoint key cannot be read")?;
    let options = Options {
        dir,
        holder: format!("process {}", std::process::id()),
        cluster: CLUSTER.to_owned(),
        checkpoint_key: key.verifying_key().to_bytes(),
        max_bytes: config.audit.journal_max_bytes,
        segment_bytes: SEGMENT_BYTES,
        retain_bytes: RETAIN_BYTES,
        retain_for: RETAIN_FOR,
    };
    match Journal::open(options, Arc::clone(&ground.clock), Arc::clone(&ground.entropy)) {
        Ok((journal, recovery)) => {
            if recovery.torn > 0 {
                tracing::warn!(records = recovery.torn, "journal_torn: records at its end were lost with the power");
            }
            Ok((Arc::new(journal), recovery))
        }
        Err(error @ OpenError::Held { .. }) => Err(Fault::Held(error.to_string())),
        Err(error) => Err(Fault::Other(anyhow::Error::from(error).context("the journal cannot be opened"))),
    }
}
