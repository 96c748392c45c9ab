//! Answers many requests about one recording.
//!
//! Questions about the file, the counts, the path, the output and the values wait in separate
//! lanes, so that long questions do not delay quick ones. In a lane, questions are answered one
//! after another, and later questions use the data that earlier questions built. The page asks
//! ahead for the moments that a step could lead to. These questions have a separate lane.

use std::collections::{HashMap, HashSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use afterimage::explore::MomentQuery;
use afterimage::profile::CodeFilter;
use afterimage::sources::SourcePaths;
use afterimage::{OpenedFile, Session};
use anyhow::{Context, Result};
use serde_json::json;

use crate::ask::{self, Answer, Lane};
use crate::http::Response;
use crate::lanes::Lanes;
use crate::parameters::{Malformed, Parameters};
use crate::works::Works;

/// The maximum total size of cached answers in bytes. Answers can be cached because a run does not
/// change.
const KEPT: usize = 64 << 20;

/// The suffix of the name of a view that asks ahead.
const AHEAD: &str = " ahead";

/// The time for which a question waits if it is being answered ahead.
const PATIENCE: Duration = Duration::from_secs(1);

/// A recording that is open.
pub(crate) struct Desk {
    pub at: PathBuf,
    /// The recording, opened once for each lane, so that the builds of each lane can be stopped
    /// separately.
    sessions: [Session; Lane::ALL.len()],
    works: Works,
    file: OpenedFile,
    lanes: Lanes,
    kept: Mutex<Kept>,
    /// Signals that a question asked ahead was answered, or has failed.
    foreseen: Condvar,
}

/// The answers given so far, the oldest first.
#[derive(Default)]
struct Kept {
    answers: HashMap<String, Arc<Answer>>,
    order: VecDeque<String>,
    bytes: usize,
    /// The questions that are being answered ahead.
    ahead: HashSet<String>,
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

impl Desk {
    /// Opens a recording.
    ///
    /// # Errors
    /// Returns an error if the file is not a recording, is damaged, or is still being recorded.
    pub fn open(at: &Path, code: CodeFilter, sources: SourcePaths) -> Result<Self> {
        afterimage::files::ended(at)?;
        let works = Works::default();
        let file = OpenedFile::of(at).with_context(|| at.display().to_string())?;
        let session = Session::open_with(at, works.clone())?;
        let lanes = Lanes::default();
        let session = session.looking_at(code).reading(sources);
        Ok(Self {
            at: at.to_owned(),
            sessions: Lane::ALL.map(|lane| session.cancelled_by(Arc::clone(lanes.cancel(lane)))),
            works,
            file,
            lanes,
            kept: Mutex::default(),
            foreseen: Condvar::new(),
        })
    }

    /// Checks that a position names a time or a place of the program, without following the run.
    ///
    /// # Errors
    /// Returns an error if it does not.
    pub fn check_position(&self, position: &str) -> Result<()> {
        let checked = MomentQuery::check(&self.sessions[Lane::File as usize], position);
        checked.with_context(|| format!("{}: --at {position}", self.at.display()))
    }

    /// Answers a question from a view of the page, or explains in one sentence why there is no
    /// answer.
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
            response.headers.push((
                "X-Afterimage-Command",
                encoded(answer.command.as_ref().unwrap_or(&shown)),
            ));
            response
        };
        // Cached answers are about the recording that was opened, so check this first.
        if let Some(trouble) = self.file.trouble("afterimage explore") {
            return Response::refused(409, trouble);
        }
        let is_ahead = view.is_some_and(|view| view.ends_with(AHEAD));
        if let Some(known) = self.known(&key, is_ahead) {
            return told(&known, true);
        }
        let lane = match ask::lane(command, &parameters) {
            Some(Lane::Path | Lane::Values) if is_ahead => Lane::Ahead,
            Some(lane) => lane,
            None => {
                return Response::refused(
                    404,
                    format!("there is no question {command}; docs/EXPLORE.md lists them"),
                );
            }
        };
        let session = &self.sessions[lane as usize];
        let Some(_taken) = self.lanes.wait(lane, view, &shown) else {
            return Response::unanswered("a newer question of the same view took its place");
        };
        if is_ahead {
            lock(&self.kept).ahead.insert(key.clone());
        }
        let answered = catch_unwind(AssertUnwindSafe(|| {
            ask::answer(session, command, parameters).map(Arc::new)
        }));
        let mut kept = lock(&self.kept);
        if let Ok(Ok(answer)) = &answered
            && answer.is_final
        {
            kept.keep(&key, answer);
        }
        if is_ahead {
            kept.ahead.remove(&key);
            self.foreseen.notify_all();
        }
        drop(kept);
        match answered {
            Ok(Ok(answer)) => told(&answer, false),
            Ok(Err(error)) => {
                let why = afterimage::text::sentence(&error);
                if error.is::<Malformed>() {
                    return Response::refused(400, why);
                }
                let mut response = Response::unanswered(why);
                response
                    .headers
                    .push(("X-Afterimage-Command", encoded(&shown)));
                response
            }
            Err(_) => Response::refused(
                500,
                format!("this is a fault in afterimage; please report this message: {shown}"),
            ),
        }
    }

    /// Returns the cached answer to a question. If the question is being answered ahead, waits at
    /// most [`PATIENCE`] for this answer.
    fn known(&self, key: &str, is_ahead: bool) -> Option<Arc<Answer>> {
        let until = Instant::now() + PATIENCE;
        let mut kept = lock(&self.kept);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if let Some(known) = kept.answers.get(key) {
                return Some(Arc::clone(known));
            }
            if is_ahead || left.is_zero() || !kept.ahead.contains(key) {
                return None;
            }
            let woken = self.foreseen.wait_timeout(kept, left);
            kept = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns the current activity, and the remarks so far.
    pub fn progress(&self) -> Response {
        let told = json!({
            "works": self.works.going(),
            "answering": self.lanes.answering(),
            "notes": self.works.notes(),
        });
        Response::of("application/json", told.to_string())
    }

    /// Cancels the current questions of one view or of all views, and stops the builds that they
    /// started.
    pub fn cancel(&self, query: &str) -> Response {
        let mut parameters = match Parameters::read(query) {
            Ok(parameters) => parameters,
            Err(error) => return Response::refused(400, format!("{error:#}")),
        };
        let view = parameters.text("view");
        self.lanes.stop(view.as_deref());
        self.progress()
    }
}

/// Encodes a string for a header, so that `decodeURIComponent` can read it.
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
