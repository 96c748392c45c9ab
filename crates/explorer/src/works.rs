//! Keeps the current builds, which the page shows.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use afterimage::{Monitor, Note, Progress, Work};
use serde::Serialize;

/// Tasks in progress.
#[derive(Clone, Default)]
pub(crate) struct Works(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    begun: u64,
    open: Vec<Open>,
    notes: Vec<String>,
}

struct Open {
    id: u64,
    what: String,
    since: Instant,
    total: Option<u64>,
    units: Option<&'static str>,
    done: Arc<AtomicU64>,
}

/// A task in progress.
#[derive(Debug, Serialize)]
pub(crate) struct Going {
    /// A description of the task.
    what: String,
    /// The time for which it has been running, in milliseconds.
    milliseconds: u64,
    /// The number of completed units.
    done: u64,
    /// The total number of units, if known.
    total: Option<u64>,
    /// The name of the units, if it is meaningful to a user.
    units: Option<&'static str>,
}

/// The maximum number of remarks to keep.
const NOTES: usize = 100;

/// Ends a task when its last reporter is dropped.
struct Ends {
    works: Works,
    id: u64,
}

impl Drop for Ends {
    fn drop(&mut self) {
        let id = self.id;
        self.works
            .with(|state| state.open.retain(|open| open.id != id));
    }
}

impl Works {
    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the tasks in progress.
    pub fn going(&self) -> Vec<Going> {
        self.with(|state| {
            let open = state.open.iter();
            let going = open.map(|open| Going {
                what: open.what.clone(),
                milliseconds: open.since.elapsed().as_millis() as u64,
                done: open.done.load(Ordering::Relaxed),
                total: open.total,
                units: open.units,
            });
            going.collect()
        })
    }

    /// Returns the remarks, oldest first.
    pub fn notes(&self) -> Vec<String> {
        self.with(|state| state.notes.clone())
    }
}

impl Monitor for Works {
    fn begin(&self, work: Work, total: Option<u64>) -> Progress {
        let done = Arc::new(AtomicU64::new(0));
        let id = self.with(|state| {
            state.begun += 1;
            state.open.push(Open {
                id: state.begun,
                what: work.to_string(),
                since: Instant::now(),
                total,
                units: work.units(),
                done: Arc::clone(&done),
            });
            state.begun
        });
        let ends = Ends {
            works: self.clone(),
            id,
        };
        Arc::new(move |now| {
            let _ = &ends;
            done.store(now, Ordering::Relaxed);
        })
    }

    fn note(&self, at: &Path, note: &Note) {
        let text = note.about(at);
        self.with(|state| {
            if state.notes.len() < NOTES && !state.notes.contains(&text) {
                state.notes.push(text);
            }
        });
    }
}
