//! Progress on a terminal, and nothing elsewhere.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use afterimage_record::Progress;
use indicatif::{ProgressBar, ProgressStyle};

/// Shows that something is being done, until dropped.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// `events`: how many there will be, if that is known.
    pub(crate) fn start(what: &str, events: Option<u64>) -> Self {
        let bar = if std::io::stderr().is_terminal() {
            ProgressBar::new(events.unwrap_or(0))
        } else {
            ProgressBar::hidden()
        };
        // Templates are constant; one that did not parse would leave the default style.
        if let Ok(style) =
            ProgressStyle::with_template("{spinner} {msg} {elapsed} {wide_bar} {percent}%")
        {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(120));
        Self(bar)
    }

    pub(crate) fn progress(&self) -> Progress {
        let bar = self.0.clone();
        Arc::new(move |events| bar.set_position(events))
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
