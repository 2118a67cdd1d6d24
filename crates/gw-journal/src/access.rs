//! The access record of one call (spec/70 §1): room is reserved before the call acts, and the record is written before
//! the answer is sent.

use crate::{Journal, JournalError, Position, Reservation};
use gw_audit::AccessRecord;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// The client closed the connection before it received an answer (a status code of nginx).
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// What happens to a call while the journal is full (`AUDIT_FULL_POLICY`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// The call is rejected.
    Refuse,
    /// The call proceeds; its record is written if there is room at the end of the call.
    GoOn,
}

/// Writes the access record of one call.
///
/// Invariant: a call with an open recorder writes exactly one record: by [`AccessRecorder::finish`], or when the
/// recorder is dropped. The dropped recorder writes status 499 because the client disconnected (HD21), or 500 if the
/// handler panicked.
#[derive(Debug)]
#[must_use = "dropping the recorder records that the client went away"]
pub struct AccessRecorder {
    journal: Arc<Journal>,
    start: Instant,
    slot: JournalSlot,
    /// The record, which the steps of the call fill in. Status and duration are set at the end.
    pub record: AccessRecord,
}

#[derive(Debug)]
enum JournalSlot {
    Reserved(Reservation),
    /// The journal was full, and the configuration allows calls without a record.
    Unreserved,
    Written,
}

impl AccessRecorder {
    /// Reserves room for the record of a call that starts now.
    ///
    /// # Errors
    /// [`JournalError`] if the journal does not accept the record: the call must be rejected.
    pub fn open(journal: &Arc<Journal>, record: AccessRecord, when_full: WhenFull) -> Result<Self, JournalError> {
        let slot = match journal.reserve(1) {
            Ok(reservation) => JournalSlot::Reserved(reservation),
            Err(JournalError::Full) if when_full == WhenFull::GoOn => JournalSlot::Unreserved,
            Err(error) => return Err(error),
        };
        Ok(Self {
            journal: Arc::clone(journal),
            start: Instant::now(),
            slot,
            record,
        })
    }

    /// The duration of the call so far.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Writes the record with `status`, and waits for its fsync if `durably`. A second call writes nothing.
    ///
    /// # Errors
    /// [`JournalError`] if the record was not written, or is not known to be durable: the answer must not be sent.
    pub async fn finish(&mut self, status: u16, durably: bool) -> Result<(), JournalError> {
        match self.write(status)? {
            Some(position) if durably => self.journal.durable(position).await,
            _ => Ok(()),
        }
    }

    fn write(&mut self, status: u16) -> Result<Option<Position>, JournalError> {
        let mut record = std::mem::replace(&mut self.record, AccessRecord::new("", 0));
        record.status_code = status;
        record.duration_us = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        match std::mem::replace(&mut self.slot, JournalSlot::Written) {
            JournalSlot::Reserved(mut reservation) => {
                let position = reservation.append(record)?;
                self.journal.write_unrecorded();
                Ok(Some(position))
            }
            // The configuration allows this call without a record, so an error is only counted.
            JournalSlot::Unreserved => {
                let position = self.journal.append(record).ok();
                match position {
                    Some(_) => self.journal.write_unrecorded(),
                    None => self.journal.shared.unrecorded.add_call(),
                }
                Ok(position)
            }
            JournalSlot::Written => Ok(None),
        }
    }
}

impl Drop for AccessRecorder {
    fn drop(&mut self) {
        if matches!(self.slot, JournalSlot::Written) {
            return;
        }
        let status = if std::thread::panicking() {
            500
        } else {
            CLIENT_CLOSED_REQUEST
        };
        if let Err(error) = self.write(status) {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "an abandoned call was not recorded"
            );
        }
    }
}
