//! Shows progress, but only on a terminal.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use afterimage::{Monitor, Note, Work};
use afterimage_present::grouped;
use afterimage_record::Progress;
use indicatif::{
    HumanDuration, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle,
};

use crate::output::{say, tell};

/// Shows the progress of a session on the terminal.
pub(crate) struct Terminal;

impl Monitor for Terminal {
    fn begin(&self, work: Work, total: Option<u64>) -> Progress {
        let left = match work.may_end_early() {
            true => "at most ",
            false => "",
        };
        let all = total.map(|total| (total, work.units()));
        Bar::start(&work.to_string(), all, left).into_progress()
    }

    fn note(&self, at: &Path, note: &Note) {
        let text = note.about(at);
        match note {
            Note::Remark(_) if !is_new(&text) => {}
            note if note.is_good_news() => tell(text),
            _ => say(text),
        }
    }
}

/// Whether a remark is new. A command may open a recording several times, and so cause the same
/// remark again.
fn is_new(remark: &str) -> bool {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    said.insert(remark.to_owned())
}

/// The bars on the terminal. Work that is part of other work has its bar on a separate line.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Runs `write`, which writes to the terminal, while no bar is shown.
pub(crate) fn without_bars<T>(write: impl FnOnce() -> T) -> T {
    BARS.suspend(write)
}

/// A progress bar, which is shown until it is dropped.
pub(crate) struct Bar(ProgressBar);

/// The time after which the progress of work is shown.
const SOON: Duration = Duration::from_millis(500);

/// The minimum number of events for which progress is reported.
const TELLING: u64 = 1000;

impl Bar {
    /// Starts a progress bar. `all` is the total amount if known, with its unit if the unit is
    /// meaningful to a user. `about` precedes the remaining time.
    pub(crate) fn start(
        what: &str,
        all: Option<(u64, Option<&'static str>)>,
        about: &'static str,
    ) -> Self {
        let (count, units) = all.unwrap_or_default();
        let bar = ProgressBar::with_draw_target(Some(count), ProgressDrawTarget::hidden());
        let template = match (all, units) {
            (Some(_), _) => "{spinner} {msg} {elapsed} {wide_bar} {percent}%{rate}",
            (None, _) => "{spinner} {msg} {elapsed}",
        };
        // The templates are constant and valid. An invalid template would leave the default style.
        if let Ok(style) = ProgressStyle::with_template(template) {
            let rate = move |state: &ProgressState, out: &mut dyn Write| {
                // Before the first progress, such as during compilation, nothing is known.
                if state.pos() == 0 {
                    return;
                }
                let (rate, left) = (state.per_sec(), HumanDuration(state.eta()));
                // If a write fails, the bar only lacks the rate.
                let _ = match units {
                    Some(units) => {
                        let rate = grouped(rate as u64);
                        write!(out, ", {rate} {units} a second, {about}{left:#} left")
                    }
                    None => {
                        let rate = 100.0 * rate / count.max(1) as f64;
                        write!(out, ", {rate:.1}% a second, {about}{left:#} left")
                    }
                };
            };
            bar.set_style(style.with_key("rate", rate));
        }
        bar.set_message(what.to_owned());
        if std::io::stderr().is_terminal() {
            let weak = bar.downgrade();
            // If the thread cannot be started, no progress is shown.
            let _ = thread::Builder::new().spawn(move || {
                thread::sleep(SOON);
                if let Some(bar) = weak.upgrade().filter(|bar| !bar.is_finished()) {
                    let bar = BARS.add(bar);
                    bar.enable_steady_tick(Duration::from_millis(120));
                }
            });
        }
        Self(bar)
    }

    /// Creates a bar for progress in events of the log. Shows no amount for a run with few events,
    /// because these say nothing about progress.
    pub(crate) fn of_events(what: &str, events: u64) -> Self {
        let known = (events >= TELLING).then_some((events, None));
        Self::start(what, known, "")
    }

    /// Converts the bar to a progress callback. The bar is shown until the last copy of the
    /// callback is dropped.
    pub(crate) fn into_progress(self) -> Progress {
        Arc::new(move |done| {
            if self.0.position() == 0 {
                // The rate does not include earlier events.
                self.0.reset_eta();
            }
            self.0.set_position(done);
        })
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
