//! Keeps recordings open, and finds them by their paths.
//!
//! A recording stays open between calls, so that the next answer is fast. Before each call its file
//! is checked. A file changed by another process is opened again, and a file that was replaced or
//! truncated is reported.

use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use afterimage::Session;
use afterimage::files;
use afterimage::sources::SourcePaths;
use anyhow::Result;

use crate::listener::Listener;
use crate::roots::Roots;

/// The maximum number of open recordings.
const OPEN: usize = 4;

/// The state of a file at the last check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    length: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let data = fs::metadata(path).ok()?;
        Some(Self {
            file: (data.dev(), data.ino()),
            length: data.len(),
            changed: (data.mtime(), data.mtime_nsec()),
        })
    }
}

struct Open {
    path: PathBuf,
    stamp: Option<Stamp>,
    session: Session,
}

/// The maximum number of answers kept.
const KEPT: usize = 4;

/// Whole answers of which an agent saw a part, the newest first.
#[derive(Default)]
pub(crate) struct KeptAnswers(RefCell<VecDeque<(String, Rc<dyn Any>)>>);

impl KeptAnswers {
    /// Returns the answer to a question, which `key` identifies. If it is not kept, makes it.
    ///
    /// # Errors
    /// Returns an error if `make` fails.
    pub(crate) fn get<T: 'static>(
        &self,
        key: &str,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<Rc<T>> {
        let known = self
            .0
            .borrow()
            .iter()
            .find(|kept| kept.0 == key)
            .map(|kept| Rc::clone(&kept.1));
        if let Some(known) = known.and_then(|known| known.downcast().ok()) {
            return Ok(known);
        }
        let made = Rc::new(make()?);
        let mut kept = self.0.borrow_mut();
        kept.push_front((key.to_owned(), Rc::clone(&made) as Rc<dyn Any>));
        kept.truncate(KEPT);
        Ok(made)
    }

    fn clear(&self) {
        self.0.borrow_mut().clear();
    }
}

/// Recordings that are open, the most recently used first.
pub(crate) struct Sessions {
    open: VecDeque<Open>,
    /// Answers about recordings that are open and have not changed.
    kept: KeptAnswers,
    listener: Listener,
    roots: Roots,
}

impl Sessions {
    pub(crate) fn new(roots: Roots, listener: Listener) -> Self {
        Self {
            open: VecDeque::new(),
            kept: KeptAnswers::default(),
            listener,
            roots,
        }
    }

    /// Closes all recordings.
    pub(crate) fn clear(&mut self) {
        self.kept.clear();
        self.open.clear();
    }

    /// Opens recordings, or reuses open ones, and passes them to `ask`.
    ///
    /// # Errors
    /// Returns an error if a path is outside the roots, or a file is not a recording, or `ask`
    /// fails.
    pub(crate) fn with<R>(
        &mut self,
        texts: &[&str],
        ask: impl FnOnce(&[&Session], &KeptAnswers) -> Result<R>,
    ) -> Result<R> {
        let mut paths = Vec::new();
        for text in texts {
            let path = self.roots.resolve(text)?;
            self.refresh(&path)?;
            paths.push(path);
        }
        let of = |path: &PathBuf| self.open.iter().find(|open| open.path == *path);
        let sessions = paths.iter().filter_map(of).map(|open| &open.session);
        let answer = ask(&Vec::from_iter(sessions), &self.kept);
        // The question's own additions to the file are not foreign changes.
        for open in &mut self.open {
            if paths.contains(&open.path) {
                open.stamp = Stamp::of(&open.path);
            }
        }
        answer
    }

    /// Brings a recording to the front, and opens it again if its file has changed.
    fn refresh(&mut self, path: &Path) -> Result<()> {
        let now = Stamp::of(path);
        let known = self.open.iter().position(|open| open.path == path);
        let known = known.and_then(|at| self.open.remove(at));
        let recorder = |session: &Session| files::recorder(path, session.file()).is_some();
        if let Some(known) = known {
            if known.stamp == now && now.is_some() && !recorder(&known.session) {
                self.open.push_front(known);
                return Ok(());
            }
            if let (Some(before), Some(now)) = (known.stamp, now) {
                let name = self.roots.named(path);
                if before.file != now.file {
                    self.listener.say(format!(
                        "{name} has been replaced since the last question: \
                        earlier positions may belong to another run"
                    ));
                } else if now.length < before.length {
                    self.listener.say(format!(
                        "{name} is shorter than at the last question: it \
                        was cut off or written again"
                    ));
                }
            }
        }
        self.kept.clear();
        let session = Session::open_with(path, self.listener.clone())?;
        let session =
            session.reading(SourcePaths::default().within(self.roots.folders().iter().cloned()));
        self.open.push_front(Open {
            path: path.to_owned(),
            stamp: now,
            session,
        });
        self.open.truncate(OPEN);
        Ok(())
    }
}
