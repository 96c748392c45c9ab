//! Stops the builds of data that questions need.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afterimage_record::RecordError;

use crate::error::Reason;

/// Stops the builds that a session's questions start: counts, the path, snapshots and values.
///
/// A stopped build ends with an error, and adds nothing to the recording except values built so
/// far.
#[derive(Debug, Default)]
pub struct Cancel(Mutex<Arc<AtomicBool>>);

impl Cancel {
    fn lock(&self) -> MutexGuard<'_, Arc<AtomicBool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the builds in progress, and those that begin before [`allow`](Self::allow).
    pub fn stop(&self) {
        self.lock().store(true, Ordering::SeqCst);
    }

    /// Allows new builds. Builds that were stopped stay stopped.
    pub fn allow(&self) {
        *self.lock() = Arc::default();
    }

    /// Whether new builds are stopped.
    pub fn is_stopped(&self) -> bool {
        self.lock().load(Ordering::SeqCst)
    }

    /// Returns the flag of the builds that begin now.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.lock())
    }
}

/// Returns a function that converts an error of a re-execution that builds `what`.
pub(crate) fn cancelled(what: &'static str) -> impl Fn(RecordError) -> Reason {
    move |error| match error {
        RecordError::Interrupted => Reason::Stopped(what),
        error => error.into(),
    }
}
