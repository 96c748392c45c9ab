//! Collects the messages of a session during a call: progress, and notes for the caller.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use afterimage::{Monitor, Note, Progress, Work};
use serde_json::{Value, json};

use crate::rpc::Output;

/// The minimum time between progress messages.
const OFTEN: Duration = Duration::from_millis(250);

/// Receives the messages of sessions on behalf of the current call.
#[derive(Clone, Default)]
pub(crate) struct Listener(Arc<Mutex<Heard>>);

#[derive(Default)]
struct Heard {
    /// The progress token of the call, and the output for progress messages.
    told: Option<(Value, Arc<Output>)>,
    notes: Vec<String>,
    /// The progress at the end of the previous task.
    base: u64,
    done: u64,
    last: Option<Instant>,
}

impl Listener {
    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a call: discards the state of the previous call.
    pub(crate) fn begin_call(&self, token: Option<Value>, output: &Arc<Output>) {
        *self.heard() = Heard {
            told: token.map(|token| (token, Arc::clone(output))),
            ..Heard::default()
        };
    }

    /// Takes the notes that have been added since the call began.
    pub(crate) fn notes(&self) -> Vec<String> {
        std::mem::take(&mut self.heard().notes)
    }

    /// Adds a note.
    pub(crate) fn say(&self, note: String) {
        self.heard().notes.push(note);
    }
}

impl Monitor for Listener {
    fn begin(&self, work: Work, total: Option<u64>) -> Progress {
        let listener = self.clone();
        let message = work.to_string();
        {
            let mut heard = listener.heard();
            heard.base = heard.done;
        }
        Arc::new(move |done| {
            let mut heard = listener.heard();
            // The protocol requires that progress never decreases, even between tasks.
            heard.done = heard.done.max(heard.base + done);
            let now = Instant::now();
            if heard.last.is_some_and(|last| now - last < OFTEN) {
                return;
            }
            heard.last = Some(now);
            let (progress, base) = (heard.done, heard.base);
            let Some((token, output)) = heard.told.clone() else {
                return;
            };
            drop(heard);
            let mut told =
                json!({ "progressToken": token, "progress": progress, "message": message });
            if let Some(total) = total {
                told["total"] = json!(base + total);
            }
            output.notify("notifications/progress", &told);
        })
    }

    fn note(&self, at: &Path, note: &Note) {
        if !note.is_good_news() {
            self.say(note.about(at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Write};

    #[derive(Clone, Default)]
    struct Collected(Arc<Mutex<Vec<u8>>>);

    impl Write for Collected {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn progress_is_told_to_who_asked_and_only_grows() {
        let collected = Collected::default();
        let output = Arc::new(Output::new(Box::new(collected.clone())));
        let listener = Listener::default();
        listener.begin(Work::Path, None)(7);
        listener.begin_call(Some(json!("token")), &output);
        for work in [Work::Path, Work::Values] {
            // The next progress message is sent at once.
            listener.heard().last = None;
            let progress = listener.begin(work, Some(50));
            progress(40);
            progress(41);
        }
        let text = String::from_utf8(collected.0.lock().unwrap().clone()).unwrap();
        let all = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let all = Vec::from_iter(all.map(|mut message| message["params"].take()));
        let expected = [
            json!({ "progressToken": "token", "progress": 40, "total": 50, "message": "following the path" }),
            json!({ "progressToken": "token", "progress": 81, "total": 91, "message": "following the values" }),
        ];
        assert_eq!(all, expected);
    }
}
