//! Progress on a terminal, and nothing elsewhere.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use afterimage::{Monitor, Note, Work};
use afterimage_record::Progress;
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::{say, tell};

/// Shows on the terminal what a session does.
pub(crate) struct Terminal;

impl Monitor for Terminal {
    fn begin(&self, work: Work, total: Option<u64>) -> Progress {
        Bar::start(&work.to_string(), total).into_progress()
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

/// Whether a remark was not made before: a command may open a recording more than once.
fn is_new(remark: &str) -> bool {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    said.insert(remark.to_owned())
}

/// Shows that something is being done, until dropped.
pub(crate) struct Bar(ProgressBar);

/// So many events tell how far a run has come.
const TELLING: u64 = 1000;

impl Bar {
    /// `events`: how many there will be, if that is known.
    pub(crate) fn start(what: &str, events: Option<u64>) -> Self {
        let bar = if std::io::stderr().is_terminal() {
            ProgressBar::new(events.unwrap_or(0))
        } else {
            ProgressBar::hidden()
        };
        let template = match events {
            Some(_) => "{spinner} {msg} {elapsed} {wide_bar} {percent}%",
            None => "{spinner} {msg} {elapsed}",
        };
        // Templates are constant; one that did not parse would leave the default style.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(120));
        Self(bar)
    }

    /// A bar of what goes on from event to event of the log. Of a run that hardly asked the host, these do not tell how far it has come.
    pub(crate) fn of_events(what: &str, events: u64) -> Self {
        Self::start(what, Some(events).filter(|events| *events >= TELLING))
    }

    /// The same, shown until the last of what is returned is dropped.
    pub(crate) fn into_progress(self) -> Progress {
        Arc::new(move |events| self.0.set_position(events))
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
