//! Stops a run from outside, at a poll of the stop clock or inside a host call, and reads the
//! clock.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use afterimage_rewrite::{CLOCK_AT, LIMIT_AT};
use afterimage_trace::Interrupter;
use tokio::sync::Notify;

/// A handle for other threads to stop a run. It is cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    by: AtomicU8,
    /// The address of the probes' memory while the guest runs.
    probes: Mutex<Option<usize>>,
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
        let probes = self.0.probes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(address) = *probes {
            lower(address);
        }
        drop(probes);
        self.0.in_host_call.notify_one();
    }

    /// Returns the number of polls of the stop clock so far, or `None` if the guest is not running.
    pub(crate) fn clock(&self) -> Option<u64> {
        let probes = self.0.probes.lock().unwrap_or_else(PoisonError::into_inner);
        probes.map(|address| word(address, CLOCK_AT).load(Ordering::Relaxed))
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

    /// Connects the handle to the probes' memory at this address. Until the guard is dropped, a
    /// request stops the guest through the limit word of that memory.
    ///
    /// While the guard exists, the address must stay valid, 8-aligned and readable by the guest.
    pub(crate) fn guard(&self, address: usize) -> ProbesGuard<'_> {
        let mut probes = self.0.probes.lock().unwrap_or_else(PoisonError::into_inner);
        *probes = Some(address);
        if self.requested().is_some() {
            lower(address);
        }
        drop(probes);
        ProbesGuard(self)
    }
}

/// Forgets the probes' memory when it is dropped.
pub(crate) struct ProbesGuard<'a>(&'a Interrupt);

impl Drop for ProbesGuard<'_> {
    fn drop(&mut self) {
        *self
            .0
            .0
            .probes
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn lower(probes: usize) {
    // The guest only loads this word.
    word(probes, LIMIT_AT).store(0, Ordering::SeqCst);
}

/// Returns a word of the probes' memory. The lock must be held.
fn word<'a>(probes: usize, at: u64) -> &'a AtomicU64 {
    // SAFETY: `guard` received the aligned address of a memory of fixed size, which lives until the
    // guard is dropped. The lock is held, so the guard exists. Both words are 8-aligned.
    #[allow(unsafe_code)]
    unsafe {
        AtomicU64::from_ptr((probes + at as usize) as *mut u64)
    }
}
