//! One recording, asked by many requests.
//!
//! Questions about counts, about the path and about values wait in separate lanes, so that quick
//! ones are not delayed by long ones. Within a lane, questions are answered one after another: they
//! share built data. A question that waits is given up when the same view of the page asks a newer
//! one, and so is the building of values for one.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use afterimage::Session;
use afterimage::profile::CodeFilter;
use afterimage::sources::SourcePaths;
use anyhow::{Context, Result};
use serde_json::json;

use crate::ask::{self, Answer, Lane};
use crate::http::Response;
use crate::parameters::Parameters;
use crate::standing::Standing;
use crate::works::Works;

/// The maximum size of cached answers in bytes. A run does not change, so neither do its answers.
const KEPT: usize = 64 << 20;

/// A recording that is open.
pub(crate) struct Desk {
    pub at: PathBuf,
    session: Session,
    works: Works,
    standing: Standing,
    waiting: Mutex<Waiting>,
    changed: Condvar,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Waiting {
    /// The lanes in use.
    taken: [bool; Lane::COUNT],
    /// The view whose question is answered in each lane.
    running: [Option<String>; Lane::COUNT],
    /// The number of the newest question of each view.
    newest: HashMap<String, u64>,
    asked: u64,
}

/// Answers that were given, the oldest first.
#[derive(Default)]
struct Kept {
    answers: HashMap<String, Arc<Answer>>,
    order: VecDeque<String>,
    bytes: usize,
}

impl Kept {
    fn keep(&mut self, key: &str, answer: &Arc<Answer>) {
        let bytes = answer.body.len();
        if bytes > KEPT / 4 || self.answers.contains_key(key) {
            return;
        }
        self.answers.insert(key.to_owned(), Arc::clone(answer));
        self.order.push_back(key.to_owned());
        self.bytes += bytes;
        while self.bytes > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            let dropped = self.answers.remove(&oldest);
            self.bytes -= dropped.map_or(0, |answer| answer.body.len());
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A lane that is taken until this is dropped.
struct Taken<'d> {
    desk: &'d Desk,
    lane: Lane,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut waiting = lock(&self.desk.waiting);
        waiting.taken[self.lane as usize] = false;
        waiting.running[self.lane as usize] = None;
        drop(waiting);
        self.desk.changed.notify_all();
    }
}

impl Desk {
    /// Opens a recording.
    ///
    /// # Errors
    /// If it is none, is damaged, or is still being recorded.
    pub fn open(at: &Path, code: CodeFilter, sources: SourcePaths) -> Result<Self> {
        afterimage::files::ended(at)?;
        let works = Works::default();
        let standing = Standing::of(at).with_context(|| at.display().to_string())?;
        let session = Session::open_with(at, works.clone())?;
        Ok(Self {
            at: at.to_owned(),
            session: session.looking_at(code).reading(sources),
            works,
            standing,
            waiting: Mutex::default(),
            changed: Condvar::new(),
            kept: Mutex::default(),
        })
    }

    /// Answers a question of a view of the page, or says in one sentence why not.
    pub fn ask(&self, command: &str, query: &str, view: Option<&str>) -> Response {
        let begun = Instant::now();
        let parameters = match Parameters::read(query) {
            Ok(parameters) => parameters,
            Err(error) => return Response::refused(400, format!("{error:#}")),
        };
        let shown = ask::as_command(command, &parameters, &self.at.display().to_string());
        let key = format!("{command}?{query}");
        let told = |answer: &Answer, is_kept: bool| {
            let took = begun.elapsed().as_secs_f64() * 1000.0;
            let mut response = Response::of(answer.content_type, answer.body.clone());
            let kept = if is_kept { "; kept" } else { "" };
            response
                .headers
                .push(("Server-Timing", format!("answer;dur={took:.2}")));
            response
                .headers
                .push(("X-Afterimage-Took", format!("{took:.2}{kept}")));
            response
                .headers
                .push(("X-Afterimage-Command", encoded(&shown)));
            response
        };
        let known = lock(&self.kept).answers.get(&key).cloned();
        if let Some(known) = known {
            return told(&known, true);
        }
        if let Some(trouble) = self.standing.trouble() {
            return Response::refused(409, trouble);
        }
        let Some(lane) = ask::lane(command, &parameters) else {
            return Response::refused(
                404,
                format!("there is no question {command}; docs/EXPLORE.md lists them"),
            );
        };
        let Some(_taken) = self.wait(lane, view) else {
            return Response::refused(409, "a newer question of the same view took its place");
        };
        let answered = catch_unwind(AssertUnwindSafe(|| {
            ask::answer(&self.session, command, parameters)
        }));
        match answered {
            Ok(Ok(answer)) => {
                let answer = Arc::new(answer);
                if answer.is_final {
                    lock(&self.kept).keep(&key, &answer);
                }
                told(&answer, false)
            }
            Ok(Err(error)) => {
                let why = afterimage::text::sentence(&error);
                let mut response = Response::refused(422, why);
                response
                    .headers
                    .push(("X-Afterimage-Command", encoded(&shown)));
                response
            }
            Err(_) => Response::refused(
                500,
                format!("this is a fault in afterimage; please report what this says: {shown}"),
            ),
        }
    }

    /// Waits for a lane; `None` if the same view asks something newer meanwhile.
    fn wait(&self, lane: Lane, view: Option<&str>) -> Option<Taken<'_>> {
        let mut waiting = lock(&self.waiting);
        waiting.asked += 1;
        let number = waiting.asked;
        if let Some(view) = view {
            waiting.newest.insert(view.to_owned(), number);
            // Its unfinished build is kept, and the next question continues from there.
            if waiting.running[Lane::Values as usize].as_deref() == Some(view) {
                self.session.cancel().store(true, Ordering::SeqCst);
            }
            self.changed.notify_all();
        }
        loop {
            let newest = view.and_then(|view| waiting.newest.get(view));
            if newest.is_some_and(|newest| *newest != number) {
                return None;
            }
            if !waiting.taken[lane as usize] {
                waiting.taken[lane as usize] = true;
                waiting.running[lane as usize] = view.map(str::to_owned);
                if lane == Lane::Values {
                    self.session.cancel().store(false, Ordering::SeqCst);
                }
                return Some(Taken { desk: self, lane });
            }
            let woken = self.changed.wait(waiting);
            waiting = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns the current work, and the remarks.
    pub fn progress(&self) -> Response {
        let told = json!({ "works": self.works.going(), "notes": self.works.notes() });
        Response::of("application/json", told.to_string())
    }

    /// Stops the building of values.
    pub fn cancel(&self) -> Response {
        self.session.cancel().store(true, Ordering::SeqCst);
        self.progress()
    }
}

/// A text in a header, as `decodeURIComponent` reads it.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'$' | b'&'..=b'~' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}
