//! Signals: what stops the guest, and what must not stop us.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afterimage_record::Interrupt;
use afterimage_trace::Interrupter;
use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::output::say;

/// Makes a write beyond the limit on file sizes an error like that of a full disk. By default the
/// system would kill the process in the middle of its work.
pub(crate) fn survive_file_size_limit() {
    // Without the handler the limit is merely less well reported.
    let _ = flag::register(SIGXFSZ, Arc::default());
}

/// A flag that Ctrl-C sets. While this lives the second Ctrl-C ends the process, afterwards any does.
pub(crate) struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    pub(crate) fn watch() -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        // In this order: that the flag was set before is what lets a signal end the process.
        flag::register_conditional_shutdown(SIGINT, 128 + SIGINT, Arc::clone(&stop))
            .and_then(|_| flag::register(SIGINT, Arc::clone(&stop)))
            .context("cannot watch for Ctrl-C")?;
        Ok(Self(stop))
    }

    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.0
    }
}

impl Drop for StopFlag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// While this lives, the first signal stops the guest; the second one ends the process, as does any that comes later.
pub(crate) struct Watch {
    over: Arc<AtomicBool>,
}

impl Watch {
    /// Watches for Ctrl-C and its kin.
    ///
    /// `clock`: whether the guest can be stopped wherever it is, and not only in host calls. `scratch`: a folder
    /// that goes when the process ends here.
    pub(crate) fn start(
        interrupt: &Interrupt,
        clock: bool,
        scratch: Option<PathBuf>,
    ) -> Result<Self> {
        let interrupt = interrupt.clone();
        let over = Arc::new(AtomicBool::new(false));
        let is_over = over.clone();
        let mut signals =
            Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot watch for Ctrl-C")?;
        std::thread::spawn(move || {
            for signal in signals.forever() {
                if interrupt.requested().is_some() || is_over.load(Ordering::SeqCst) {
                    if let Some(folder) = &scratch {
                        let _ = std::fs::remove_dir_all(folder);
                    }
                    std::process::exit(128 + signal);
                }
                if !clock {
                    say(
                        "without the stop clock the guest stops at its next host call; interrupt again to end at once",
                    );
                }
                interrupt.stop(if signal == SIGINT {
                    Interrupter::CtrlC
                } else {
                    Interrupter::Terminate
                });
            }
        });
        Ok(Self { over })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
    }
}
