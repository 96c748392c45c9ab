//! Handles signals: some stop the current work, and some must not stop the tool.
//!
//! One thread receives all signals. It asks the guest or the build to stop, or else ends the
//! process. [`StopRequests`] decides which signals belong to one request.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use afterimage::requests::{Meaning, StopRequests, StopSignal};
use afterimage_record::Interrupt;
use afterimage_trace::Interrupter;
use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::exit::Exit;
use crate::output::say;

/// Makes a write beyond the limit on file sizes an error, as on a full disk. Otherwise, the system
/// would kill the process.
pub(crate) fn survive_file_size_limit() {
    // Without the handler, only the message about the limit is worse.
    let _ = flag::register(SIGXFSZ, Arc::default());
}

/// The current work of the process, and the last request to it.
struct State {
    /// Whether a thread receives the signals.
    listens: bool,
    work: Work,
    requests: StopRequests,
    /// The message to print when a signal ends the process.
    last_words: Option<String>,
    /// A folder to remove when a signal ends the process.
    scratch: Option<PathBuf>,
}

/// The work that a signal stops.
enum Work {
    /// A guest. `clock` says whether it can be stopped anywhere, not only in host calls.
    Guest { interrupt: Interrupt, clock: bool },
    /// A build that checks a flag.
    Build(Arc<AtomicBool>),
    /// Work that cannot be stopped in an orderly way.
    Other,
}

static STATE: Mutex<State> = Mutex::new(State::new());

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    const fn new() -> Self {
        Self {
            listens: false,
            work: Work::Other,
            requests: StopRequests::new(),
            last_words: None,
            scratch: None,
        }
    }

    /// Begins new work. This completes an earlier request to stop.
    fn begin(&mut self, work: Work) {
        self.work = work;
        self.requests.complete();
    }

    fn handle(&mut self, signal: i32) {
        let kind = match signal {
            SIGINT => StopSignal::CtrlC,
            _ => StopSignal::Terminate,
        };
        let can_stop = !matches!(self.work, Work::Other);
        match self.requests.meaning(kind, can_stop, Instant::now()) {
            Meaning::Same => {}
            Meaning::Stop => self.stop(signal),
            Meaning::End => {
                if let Some(words) = &self.last_words {
                    say(words);
                }
                if let Some(folder) = &self.scratch {
                    let _ = std::fs::remove_dir_all(folder);
                }
                std::process::exit(128 + signal);
            }
        }
    }

    fn stop(&self, signal: i32) {
        match &self.work {
            Work::Guest { interrupt, clock } => {
                if !clock {
                    say(
                        "without the stop clock the guest stops at its next host call; a second Ctrl-C ends it at once",
                    );
                }
                interrupt.stop(if signal == SIGINT {
                    Interrupter::CtrlC
                } else {
                    Interrupter::Terminate
                });
            }
            Work::Build(stop) => stop.store(true, Ordering::SeqCst),
            Work::Other => {}
        }
    }
}

/// Begins work that signals stop.
fn begin(work: Work) -> Result<()> {
    let mut state = state();
    if !state.listens {
        let signals = Signals::new([SIGINT, SIGTERM, SIGHUP]);
        let mut signals = signals.context("cannot watch for Ctrl-C")?;
        std::thread::spawn(move || {
            for signal in signals.forever() {
                self::state().handle(signal);
            }
        });
        state.listens = true;
    }
    state.begin(work);
    Ok(())
}

/// Sets a message to print if a signal ends the process from now on.
pub(crate) fn leave_last_words(words: String) {
    state().last_words = Some(words);
}

/// Sets a folder to remove if a signal ends the process from now on.
pub(crate) fn leave_scratch(folder: PathBuf) {
    state().scratch = Some(folder);
}

/// A flag that stops a build. Signals set it.
pub(crate) struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    pub(crate) fn watch() -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        begin(Work::Build(stop.clone()))?;
        Ok(Self(stop))
    }

    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// Returns the exit code of a process that a signal stopped.
    pub(crate) fn exit(&self) -> Exit {
        match state().requests.last() {
            Some(StopSignal::CtrlC) | None => Exit::Interrupted,
            Some(StopSignal::Terminate) => Exit::Terminated,
        }
    }
}

impl Drop for StopFlag {
    fn drop(&mut self) {
        state().begin(Work::Other);
    }
}

/// A watch during which signals stop the guest. It ends when this value is dropped.
pub(crate) struct Watch(Interrupt);

impl Watch {
    /// Watches for Ctrl-C and similar signals.
    ///
    /// `clock` says whether the guest can be stopped anywhere, not only in host calls.
    pub(crate) fn start(clock: bool) -> Result<Self> {
        let interrupt = Interrupt::new();
        begin(Work::Guest {
            interrupt: interrupt.clone(),
            clock,
        })?;
        Ok(Self(interrupt))
    }

    /// Returns the handle that stops the guest.
    pub(crate) fn interrupt(&self) -> &Interrupt {
        &self.0
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        state().begin(Work::Other);
    }
}
