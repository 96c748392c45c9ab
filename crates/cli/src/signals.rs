//! Signals: which of them stop the current work, and which must not stop the tool.
//!
//! One thread receives all signals. It asks the guest or the build to stop, or ends the process.
//! Invariant: while the current work can stop in an orderly way, only a second Ctrl-C ends the
//! process, and only if it does not come together with the first. (A shell, `timeout` and a closing
//! terminal send several signals for one request.)

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use afterimage_record::Interrupt;
use afterimage_trace::Interrupter;
use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::exit::Exit;
use crate::output::say;

/// A second Ctrl-C within this time counts as the first one, sent twice.
const TWICE: Duration = Duration::from_millis(300);

/// Other signals within this time after a completed request belong to that request.
const TOGETHER: Duration = Duration::from_secs(1);

/// Makes a write beyond the limit on file sizes an error, like that of a full disk. By default, the
/// system would kill the process in the middle of its work.
pub(crate) fn survive_file_size_limit() {
    // Without the handler, the limit is only reported less well.
    let _ = flag::register(SIGXFSZ, Arc::default());
}

/// The current work of the process, and the last request to it.
struct State {
    /// Whether a thread receives the signals.
    listens: bool,
    work: Work,
    /// The last request to end.
    request: Option<Request>,
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

/// Signals that make the same request.
struct Request {
    /// The first of them, and its time.
    signal: i32,
    at: Instant,
    /// The time of the first Ctrl-C among them.
    ctrl_c: Option<Instant>,
    /// Whether the work that they asked to stop has stopped.
    met: bool,
}

/// The meaning of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// Stop the work in an orderly way.
    Stop,
    /// The same request as before.
    Same,
    /// End the process at once.
    End,
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
            request: None,
            last_words: None,
            scratch: None,
        }
    }

    /// Begins other work. An earlier request is thereby completed.
    fn begin(&mut self, work: Work) {
        self.work = work;
        if let Some(request) = &mut self.request {
            request.met = true;
        }
    }

    fn meaning(&mut self, signal: i32, now: Instant) -> Meaning {
        let is_ctrl_c = signal == SIGINT;
        if let Some(request) = &mut self.request {
            let is_second = is_ctrl_c && now - *request.ctrl_c.get_or_insert(now) > TWICE;
            match request.met {
                false if is_second => return Meaning::End,
                false => return Meaning::Same,
                true if !is_second && now - request.at <= TOGETHER => return Meaning::Same,
                true => {}
            }
        }
        self.request = Some(Request {
            signal,
            at: now,
            ctrl_c: is_ctrl_c.then_some(now),
            met: false,
        });
        match self.work {
            Work::Other => Meaning::End,
            Work::Guest { .. } | Work::Build(_) => Meaning::Stop,
        }
    }

    fn handle(&mut self, signal: i32) {
        match self.meaning(signal, Instant::now()) {
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

/// Sets a folder to remove if a signal ends the process.
pub(crate) fn leave_scratch(folder: PathBuf) {
    state().scratch = Some(folder);
}

/// A flag that signals set, for a build.
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

    /// The exit code of a process that was stopped by it.
    pub(crate) fn exit(&self) -> Exit {
        match state().request {
            Some(Request { signal: SIGINT, .. }) | None => Exit::Interrupted,
            Some(_) => Exit::Terminated,
        }
    }
}

impl Drop for StopFlag {
    fn drop(&mut self) {
        state().begin(Work::Other);
    }
}

/// Signals stop the guest while this value lives.
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

    /// The handle that stops the guest.
    pub(crate) fn interrupt(&self) -> &Interrupt {
        &self.0
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        state().begin(Work::Other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_work() -> State {
        State {
            work: Work::Build(Arc::default()),
            ..State::new()
        }
    }

    /// The meanings of signals that arrive after these numbers of milliseconds.
    fn meanings(state: &mut State, signals: &[(i32, u64)]) -> Vec<Meaning> {
        let start = Instant::now();
        let at = |after| start + Duration::from_millis(after);
        let all = signals.iter();
        all.map(|&(signal, after)| state.meaning(signal, at(after)))
            .collect()
    }

    #[test]
    fn only_a_second_ctrl_c_that_comes_later_means_now() {
        use Meaning::{End, Same, Stop};
        for first in [SIGTERM, SIGHUP, SIGINT] {
            for second in [SIGTERM, SIGHUP, SIGINT] {
                for third in [SIGTERM, SIGHUP, SIGINT] {
                    let signals = [(first, 0), (second, 100), (third, 300)];
                    let found = meanings(&mut at_work(), &signals);
                    assert_eq!(found, [Stop, Same, Same], "{signals:?}");
                    // The first of several Ctrl-C counts.
                    let signals = [(first, 0), (second, 1), (third, 302)];
                    let found = meanings(&mut at_work(), &signals);
                    let is_now = third == SIGINT && (first == SIGINT || second == SIGINT);
                    assert_eq!(found[2], if is_now { End } else { Same }, "{signals:?}");
                }
            }
        }
        let often = [(SIGTERM, 0), (SIGTERM, 5000), (SIGHUP, 60_000)];
        assert_eq!(meanings(&mut at_work(), &often), [Stop, Same, Same]);
    }

    #[test]
    fn what_came_for_one_work_does_not_end_the_next() {
        use Meaning::{End, Same, Stop};
        for signal in [SIGTERM, SIGHUP, SIGINT] {
            for next in [Work::Build(Arc::default()), Work::Other] {
                let is_build = matches!(next, Work::Build(_));
                let mut state = at_work();
                let start = Instant::now();
                assert_eq!(state.meaning(signal, start), Stop);
                state.begin(next);
                let after = |milliseconds| start + Duration::from_millis(milliseconds);
                assert_eq!(state.meaning(SIGTERM, after(200)), Same);
                assert_eq!(state.meaning(SIGINT, after(250)), Same);
                let later = if is_build { Stop } else { End };
                assert_eq!(state.meaning(signal, after(1400)), later);
            }
        }
    }

    #[test]
    fn without_work_the_first_signal_ends_the_process() {
        for signal in [SIGTERM, SIGHUP, SIGINT] {
            let found = State::new().meaning(signal, Instant::now());
            assert_eq!(found, Meaning::End);
        }
    }
}
