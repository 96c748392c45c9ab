//! Stops a run from outside, at a poll of the stop clock or inside a host call.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use afterimage_trace::Interrupter;
use tokio::sync::Notify;

/// A handle for other threads to stop a run. It is cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    by: AtomicU8,
    /// The address of the guest's limit word while the guest runs.
    limit: Mutex<Option<usize>>,
    in_host_call: Notify,
}

impl Interrupt {
    /// Creates an unused handle.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests a stop. Only the first request counts.
    pub fn stop(&self, by: Interrupter) {
        let code = match by {
            Interrupter::CtrlC => 1,
            Interrupter::Terminate => 2,
            Interrupter::Timeout => 3,
        };
        if self
            .0
            .by
            .compare_exchange(0, code, Ordering::SeqCst, Ordering::SeqCst)
            .is_err()
        {
            return;
        }
        let limit = self.0.limit.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(address) = *limit {
            lower(address);
        }
        drop(limit);
        self.0.in_host_call.notify_one();
    }

    /// Returns who requested a stop, if anybody did.
    pub fn requested(&self) -> Option<Interrupter> {
        match self.0.by.load(Ordering::SeqCst) {
            1 => Some(Interrupter::CtrlC),
            2 => Some(Interrupter::Terminate),
            3 => Some(Interrupter::Timeout),
            _ => None,
        }
    }

    /// Resolves when a stop is requested.
    pub(crate) async fn wait(&self) {
        if self.requested().is_none() {
            self.0.in_host_call.notified().await;
        }
    }

    /// Lets a request stop the guest through the limit word at this address, until the guard is
    /// dropped.
    ///
    /// Until then, the address must stay valid, 8-aligned and readable by the guest.
    pub(crate) fn guard(&self, address: usize) -> LimitGuard<'_> {
        let mut limit = self.0.limit.lock().unwrap_or_else(PoisonError::into_inner);
        *limit = Some(address);
        if self.requested().is_some() {
            lower(address);
        }
        drop(limit);
        LimitGuard(self)
    }
}

/// Forgets the limit word when the run ends.
pub(crate) struct LimitGuard<'a>(&'a Interrupt);

impl Drop for LimitGuard<'_> {
    fn drop(&mut self) {
        *self
            .0
            .0
            .limit
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn lower(address: usize) {
    // SAFETY: `guard` received the address of an aligned word in a memory of fixed size, which
    // lives until the guard is dropped. The lock is held, so the guard exists. The guest only loads
    // the word.
    #[allow(unsafe_code)]
    let word = unsafe { AtomicU64::from_ptr(address as *mut u64) };
    word.store(0, Ordering::SeqCst);
}
