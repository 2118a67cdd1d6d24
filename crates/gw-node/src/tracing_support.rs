//! The results of the last probe of a node, which [`crate::probe`] makes.

use gw_evm::wire::TraceForm;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// The trace form found by the last probe; `None` means no tracing.
#[derive(Debug, Default)]
pub(crate) struct TracingSupport(AtomicU8);

impl TracingSupport {
    pub(crate) fn load(&self) -> Option<TraceForm> {
        match self.0.load(Ordering::Relaxed) {
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
        if self.0.swap(code, Ordering::Relaxed) != code {
            tracing::info!(form = ?form, "the tracing support of the node changed");
        }
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
