//! Slices: what an execution depends on, directly or not, or what depends on it.

mod kept;
mod start;

use std::collections::BTreeSet;

use afterimage_analyses::slices::{
    self, Algorithm, Criterion, Direction, Edge, Origin, Question, Reach, SavedSlice, SliceAbout,
    SliceCounts, SliceQuery, by_statements, exercised_of,
};
use afterimage_ids::OrigOffset;
use afterimage_present::SliceReport;
use afterimage_profile::{Line, operator_texts};
use afterimage_program::{Names, SourceMap};
use afterimage_replay::state::Written;
use afterimage_replay::steps::Operators;
use anyhow::{Context, Result, bail};

use crate::Session;
use crate::explain::{Scene, explain};
use crate::steps::follow_for;
use start::SliceStart;

/// A slice that was found, in its recording.
pub struct Found<'f, 'a> {
    session: &'a Session,
    names: &'f Names,
    source: &'f SourceMap<'a>,
    saved: SavedSlice,
    written: Option<Written>,
}

/// Finds a slice, from the recording if it is kept there, and gives it to `ask`. `name` is the one under which it is to be kept later: another slice's is refused
/// before this one is made. Values must be there.
///
/// # Errors
/// If the program has no such place, the run no such execution, the recording is damaged, or `ask` fails.
pub fn find<R>(
    session: &Session,
    query: &SliceQuery,
    name: Option<&str>,
    ask: impl FnOnce(&Found<'_, '_>, &Scene<'_, '_>) -> Result<R>,
) -> Result<R> {
    if let Some(why) = query.refusal() {
        bail!("{why}");
    }
    explain(session, |scene| {
        let (saved, written) = made(scene, query, name)?;
        let found = Found {
            session: scene.traced,
            names: scene.names,
            source: scene.source(),
            saved,
            written,
        };
        ask(&found, scene)
    })
}

/// Gives `ask` a slice that was kept under a name.
///
/// # Errors
/// If there is none, the recording is damaged, or `ask` fails.
pub fn named<R>(
    session: &Session,
    name: &str,
    ask: impl FnOnce(&Found<'_, '_>) -> Result<R>,
) -> Result<R> {
    let source = session.source_map();
    let found = Found {
        session,
        names: &session.module().names(&source),
        source: &source,
        saved: kept::named(session, name)?,
        written: None,
    };
    ask(&found)
}

impl Found<'_, '_> {
    /// What is in it.
    ///
    /// # Errors
    /// If the recording is damaged.
    pub fn report(&self) -> Result<SliceReport> {
        let (program, module) = (self.session.program(), self.session.bytes());
        let operators = Operators::new(program, module, self.source);
        let path = self.session.path()?;
        let counts = SliceCounts::new(&self.saved.slice, program, path, &operators)?;
        let lines = self.saved.offsets.iter();
        let lines = lines.filter_map(|&offset| self.source.locate(offset).map(Line::from));
        let mut lines = Vec::from_iter(lines);
        lines.sort_unstable();
        Ok(SliceReport::new(
            &counts,
            self.saved.about.clone(),
            &lines,
            self.written,
            self.source,
            self.names,
        ))
    }

    /// The dependences between statements that were exercised, for a graph of it. Follows the run.
    ///
    /// # Errors
    /// If the run cannot be followed.
    pub fn edges(&self) -> Result<BTreeSet<Edge>> {
        follow_for(self.session, "collecting dependences", |run, log| {
            Ok(exercised_of(run, log, &self.saved.question)?)
        })
    }

    /// The texts of its first statements.
    ///
    /// # Errors
    /// If the module cannot be read.
    pub fn texts(&self, report: &SliceReport, first: usize) -> Result<Vec<String>> {
        let shown = report.statements.iter().take(first);
        let offsets = Vec::from_iter(shown.map(|one| OrigOffset(one.offset)));
        let mut sorted = offsets.clone();
        sorted.sort_unstable();
        sorted.dedup();
        let texts = operator_texts(self.session.bytes(), &sorted)?;
        let of = |offset| {
            let at = sorted.binary_search(offset).ok()?;
            texts.get(at).cloned()
        };
        Ok(offsets
            .iter()
            .map(|at| of(at).unwrap_or_default())
            .collect())
    }

    /// Keeps it in the recording under a name.
    ///
    /// # Errors
    /// If the name is another slice's, or nothing can be added to the file.
    pub fn keep(&self, name: &str) -> Result<()> {
        kept::keep(self.session, name, &self.saved)
    }
}

/// The slice that is asked for, from the recording if it is kept there.
fn made(
    scene: &Scene<'_, '_>,
    query: &SliceQuery,
    name: Option<&str>,
) -> Result<(SavedSlice, Option<Written>)> {
    let traced = scene.traced;
    let to = SliceStart::find(scene, &query.about, query.along)?;
    let from = query.chop.as_ref().map(|at| {
        let about = SliceAbout::Statement { at: at.clone() };
        let found = SliceStart::find(scene, &about, query.along);
        found.with_context(|| format!("--chop {at}"))
    });
    let from = from.transpose()?;
    let about = in_words(query, &to, from.as_ref());
    let (offsets, written) = (to.offsets.clone(), to.written);
    let mut question = Question {
        algorithm: query.algorithm,
        direction: query.direction,
        follows: query.along.follows(),
        operators: to.operators.clone(),
        from: from.map(|from| Origin {
            criteria: from.criteria,
            operators: from.operators,
        }),
        criteria: limited(query, to),
    };
    if query.algorithm != Algorithm::Full && !query.is_of_statements() {
        question = follow_for(traced, "finding the statements", |run, log| {
            Ok(by_statements(run, log, question)?)
        })?;
    }
    if let Some(name) = name {
        kept::free(traced, name, &question)?;
    }
    if let Some(known) = kept::known(traced, &question)? {
        let saved = SavedSlice {
            about,
            offsets,
            ..known
        };
        return Ok((saved, written));
    }
    // Of a few dependences it need not follow the run.
    let near = match (query.depth, query.direction, query.algorithm) {
        (Some(_), Direction::Backward, Algorithm::Full) => {
            let (follows, criteria) = (question.follows, &question.criteria);
            slices::near(&scene.host, traced.bytes(), follows, criteria, NEAR)?
        }
        _ => None,
    };
    let slice = match near {
        Some(slice) => slice,
        None => follow_for(traced, "slicing", |run, log| {
            let logs = [log, traced.file().log()?];
            Ok(slices::answer(run, logs, &question)?)
        })?,
    };
    let saved = SavedSlice {
        question,
        about,
        offsets,
        path: kept::identity(traced.path()?),
        slice,
    };
    Ok((saved, written))
}

/// So many executions at most are asked about one by one.
const NEAR: usize = 10_000;

/// What is asked, in words.
fn in_words(query: &SliceQuery, to: &SliceStart, from: Option<&SliceStart>) -> String {
    let title = &to.title;
    let alone = title.trim_end_matches(',');
    let within = match query.depth {
        None => String::new(),
        Some(1) => " directly".to_owned(),
        Some(depth) => format!(" over at most {depth} dependences"),
    };
    if let Some(from) = from {
        let from = from.title.trim_end_matches(',');
        return match query.algorithm {
            Algorithm::Full => format!("how {from} had an influence on {alone}"),
            Algorithm::Edges => format!(
                "how statements of {from} may have had an influence on {alone}, over dependences that were ever exercised"
            ),
            Algorithm::Nodes => format!(
                "how statements of {from} may have had an influence on {alone}, by the code"
            ),
        };
    }
    let whose = match (query.is_of_statements(), query.direction) {
        (true, _) => "statements of",
        (false, Direction::Forward) => "statements that used",
        (false, Direction::Backward) => "statements that made",
    };
    match (query.direction, query.algorithm) {
        (Direction::Forward, Algorithm::Full) => format!("what depends on {alone}{within}"),
        (Direction::Backward, Algorithm::Full) => format!("what {title} depends on{within}"),
        (Direction::Forward, Algorithm::Edges) => {
            format!("what ever depended on {whose} {alone}{within}")
        }
        (Direction::Backward, Algorithm::Edges) => {
            format!("what {whose} {title} had ever depended on{within}")
        }
        (Direction::Forward, Algorithm::Nodes) => {
            format!("what may depend on {whose} {alone}{within}, by the code")
        }
        (Direction::Backward, Algorithm::Nodes) => {
            format!("what {whose} {title} may depend on{within}, by the code")
        }
    }
}

/// What is to be followed as far as the depth says. A variable, bytes and an operand are made by what is one dependence away.
fn limited(query: &SliceQuery, to: SliceStart) -> Vec<Criterion> {
    let (mut criteria, mut taken) = (to.criteria, to.taken);
    if let Some(depth) = query.depth {
        let left = if query.is_of_statements() || query.direction == Direction::Forward {
            depth
        } else {
            depth - 1
        };
        let reach = |left| Reach::of_depth(left).unwrap_or(Reach::ALL);
        criteria.iter_mut().for_each(|one| one.reach = reach(left));
        taken
            .iter_mut()
            .for_each(|one| one.reach = reach(depth - 1));
    }
    criteria.append(&mut taken);
    criteria
}
