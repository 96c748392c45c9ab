//! Compares two versions of a program that ran on the same input: which statements correspond, and
//! where corresponding statements first differ.

use std::panic::resume_unwind;
use std::thread;

use afterimage_analyses::diff::{Side, output_differences};
use afterimage_analyses::matching::{
    Matched, Sketched, TruthSide, accuracy, divergences, match_runs, same_names, suspects, version,
};
use afterimage_present::{DiffEnding, MatchSide, MatchView, VersionsView};
use afterimage_program::{Names, SourceMap};
use afterimage_replay::steps::Operators;
use afterimage_replay::whole_path::FileSegments;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::Session;
use crate::inputs::{endings, remark_different_inputs};
use crate::steps::{follow, follow_telling};

/// Follows two runs at the same time and sketches their statements.
fn sketched([a, b]: [&Session; 2]) -> Result<[Sketched; 2]> {
    let (of_a, of_b) = thread::scope(|scope| {
        let quietly = || follow_telling(b, &|_| {}, |run, log| Ok(version(run, log)?));
        let of_b = thread::Builder::new().spawn_scoped(scope, quietly);
        let of_a = follow(a, |run, log| Ok(version(run, log)?));
        let of_b = match of_b {
            Ok(of_b) => of_b.join().unwrap_or_else(|panic| resume_unwind(panic)),
            // Without a second thread, follows one run after the other.
            Err(_) => quietly(),
        };
        (of_a, of_b)
    });
    Ok([
        of_a.with_context(|| a.at().display().to_string())?,
        of_b.with_context(|| b.at().display().to_string())?,
    ])
}

/// A version, with the data needed to show it.
struct Version<'a> {
    session: &'a Session,
    name: String,
    names: &'a Names,
    source: &'a SourceMap<'a>,
}

impl<'a> Version<'a> {
    fn new(session: &'a Session, source: &'a SourceMap<'a>) -> Self {
        Self {
            session,
            name: session.at().display().to_string(),
            names: session.program_names(),
            source,
        }
    }

    fn operators(&self) -> Operators<'a> {
        self.session.operators()
    }

    fn side<'s>(&'s self, operators: &'s Operators<'s>, sketched: &'s Sketched) -> MatchSide<'s> {
        MatchSide {
            name: &self.name,
            names: self.names,
            operators,
            source: self.source,
            sketched,
        }
    }
}

/// Compares the runs of two versions, and passes the differences to `ask`. Shows at most `top` rows
/// of each list.
///
/// # Errors
/// Returns an error if a run cannot be followed, or `ask` fails.
pub fn versions<R>(
    sessions: [&Session; 2],
    top: Option<usize>,
    ask: impl FnOnce(&VersionsView<'_>) -> Result<R>,
) -> Result<R> {
    remark_different_inputs(sessions, "was changed in the program")?;
    let query = MatchQuery {
        names: true,
        all: false,
        check: false,
        top,
    };
    compared(
        sessions,
        query,
        |sketched, found, [a, b]| Ok((suspects(sketched, found), output_differences(a, b)?)),
        |report, (suspects, outputs)| {
            ask(&VersionsView {
                report,
                suspects,
                outputs,
            })
        },
    )
}

/// The options for matching and showing the statements of two versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchQuery {
    /// Whether to use names of functions as a hint.
    pub names: bool,
    /// Whether to show each statement of the second version.
    pub all: bool,
    /// Whether to compare the matches with the line tables.
    pub check: bool,
    /// The maximum number of rows in each list, or `None` for the default.
    pub top: Option<usize>,
}

/// Matches the statements of two versions, and passes the matches to `ask`. `unlike` is called
/// first if the runs ended differently.
///
/// # Errors
/// Returns an error if a run cannot be followed, line tables are requested but do not exist, or
/// `ask` fails.
pub fn matched<R>(
    [a, b]: [&Session; 2],
    query: MatchQuery,
    unlike: impl FnOnce(&[DiffEnding; 2]),
    ask: impl FnOnce(&MatchView<'_>) -> Result<R>,
) -> Result<R> {
    remark_different_inputs([a, b], "was changed in the program")?;
    if let Some(endings) = &endings([a, b])? {
        unlike(endings);
    }
    for session in [a, b] {
        if query.check && session.source_map().files().is_empty() {
            bail!(
                "--check compares with the line tables, and the module in {} has none: compile it with -g",
                session.at().display()
            );
        }
    }
    compared([a, b], query, |_, _, _| Ok(()), |report, ()| ask(&report))
}

/// Matches the statements of two versions. Passes the matches to `ask`, with what `more` computes
/// from them and both runs.
fn compared<T, R>(
    [a, b]: [&Session; 2],
    query: MatchQuery,
    more: impl FnOnce([&Sketched; 2], &Matched, [Side<'_, FileSegments>; 2]) -> Result<T>,
    ask: impl FnOnce(MatchView<'_>, T) -> Result<R>,
) -> Result<R> {
    let sources = [a, b].map(Session::source_map);
    let [of_a, of_b] = sketched([a, b])?;
    let version_a = Version::new(a, sources[0]);
    let version_b = Version::new(b, sources[1]);
    let same = same_names(
        (a.program(), version_a.names),
        (b.program(), version_b.names),
    );
    let hint = query.names.then_some(&same);
    let (found, diverging, more) = follow(a, |run_a, _| {
        follow(b, |run_b, _| {
            let logs = (|| a.file().log(), || b.file().log());
            let runs = [(run_a, &logs.0 as _), (run_b, &logs.1 as _)];
            let found = match_runs([&of_a, &of_b], hint, runs)?;
            let diverging = divergences([&of_a, &of_b], &found, runs)?;
            let sides = runs.map(|(run, log)| Side { run, log });
            let more = more([&of_a, &of_b], &found, sides)?;
            Ok((found.matching, diverging, more))
        })
    })?;
    let accuracy = query
        .check
        .then(|| accuracy(truth(&version_a, &of_a), truth(&version_b, &of_b), &found));
    let operators = (version_a.operators(), version_b.operators());
    let endings = endings([a, b])?;
    let report = MatchView {
        a: version_a.side(&operators.0, &of_a),
        b: version_b.side(&operators.1, &of_b),
        matching: &found,
        divergences: &diverging,
        endings: endings.as_ref(),
        accuracy,
        names_used: query.names,
        top: query.top,
        all: query.all,
    };
    ask(report, more)
}

fn truth<'a>(version: &'a Version<'a>, sketched: &'a Sketched) -> TruthSide<'a> {
    TruthSide {
        program: version.session.program(),
        module: version.session.bytes(),
        names: version.names,
        source: version.source,
        sketched,
    }
}
