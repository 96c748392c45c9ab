//! Signals: what stops the guest, and what must not stop us.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use afterimage_record::Interrupt;
use afterimage_trace::Interrupter;
use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::exit::Exit;
use crate::output::say;

/// Makes a write beyond the limit on file sizes an error like that of a full disk. By default the
/// system would kill the process in the middle of its work.
pub(crate) fn survive_file_size_limit() {
    // Without the handler the limit is merely less well reported.
    let _ = flag::register(SIGXFSZ, Arc::default());
}

/// Whether there is a [`StopFlag`]: then a [`Watch`] that is over leaves the signals to it.
static IN_ORDER: AtomicBool = AtomicBool::new(false);

/// What is said when a signal ends the process after its [`Watch`] is over.
static LAST_WORDS: Mutex<Option<String>> = Mutex::new(None);

/// Leaves something to say to whoever ends the process from now on.
pub(crate) fn leave_last_words(words: String) {
    *LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = Some(words);
}

/// A flag that Ctrl-C and SIGTERM set. While this lives the second of them ends the process, afterwards any does.
pub(crate) struct StopFlag {
    stop: Arc<AtomicBool>,
    /// The signal that set it.
    signal: Arc<AtomicUsize>,
}

impl StopFlag {
    pub(crate) fn watch() -> Result<Self> {
        let (stop, signal) = (Arc::new(AtomicBool::new(false)), Arc::default());
        for asking in [SIGINT, SIGTERM] {
            // In this order: that the flag was set before is what lets a signal end the process.
            flag::register_conditional_shutdown(asking, 128 + asking, Arc::clone(&stop))
                .and_then(|_| flag::register_usize(asking, Arc::clone(&signal), asking as usize))
                .and_then(|_| flag::register(asking, Arc::clone(&stop)))
                .context("cannot watch for Ctrl-C")?;
        }
        IN_ORDER.store(true, Ordering::SeqCst);
        Ok(Self { stop, signal })
    }

    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.stop
    }

    /// How a process ends that was stopped by it.
    pub(crate) fn exit(&self) -> Exit {
        match self.signal.load(Ordering::SeqCst) as i32 {
            SIGTERM => Exit::Terminated,
            _ => Exit::Interrupted,
        }
    }
}

impl Drop for StopFlag {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        IN_ORDER.store(false, Ordering::SeqCst);
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
                let is_over = is_over.load(Ordering::SeqCst);
                if is_over && IN_ORDER.load(Ordering::SeqCst) && signal != SIGHUP {
                    continue;
                }
                if interrupt.requested().is_some() || is_over {
                    let words = LAST_WORDS.lock();
                    if let Some(words) = words.unwrap_or_else(PoisonError::into_inner).take() {
                        say(words);
                    }
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
