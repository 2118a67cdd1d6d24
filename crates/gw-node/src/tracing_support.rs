//! The results of the last probe of a node, which [`crate::probe`] makes.

use gw_evm::wire::TraceForm;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// The trace form found by the last probe that the node answered; `None` means no tracing.
#[derive(Debug, Default)]
pub(crate) struct TracingSupport {
    form: AtomicU8,
    /// Whether the node did not answer the last probe.
    is_due: AtomicBool,
}

impl TracingSupport {
    pub(crate) fn load(&self) -> Option<TraceForm> {
        match self.form.load(Ordering::Relaxed) {
            1 => Some(TraceForm::Mux),
            2 => Some(TraceForm::Batch),
            _ => None,
        }
    }

    pub(crate) fn store(&self, form: Option<TraceForm>) {
        let code = match form {
            None => 0,
            Some(TraceForm::Mux) => 1,
            Some(TraceForm::Batch) => 2,
        };
        self.is_due.store(false, Ordering::Relaxed);
        if self.form.swap(code, Ordering::Relaxed) != code {
            tracing::info!(form = ?form, "the tracing support of the node changed");
        }
    }

    /// Records that the node did not answer a probe.
    pub(crate) fn set_due(&self) {
        self.is_due.store(true, Ordering::Relaxed);
    }

    /// Whether the node has to be probed again.
    pub(crate) fn is_due(&self) -> bool {
        self.is_due.load(Ordering::Relaxed)
    }
}

/// Whether the node was found, since the last probe, to support state overrides.
#[derive(Debug, Default)]
pub(crate) struct OverrideSupport(AtomicBool);

impl OverrideSupport {
    pub(crate) fn load(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn store(&self, overrides: bool) {
        self.0.store(overrides, Ordering::Relaxed);
    }
}
