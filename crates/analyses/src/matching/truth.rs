//! Judges matches against the line tables of both versions.
//!
//! A statement of the second version has a *true counterpart* if the first version executed a
//! statement that comes from the same position and does the same thing. A true counterpart is of
//! the same kind. If it computes or compares, it also has the same operator. It shares some value
//! with the statement, or some difference between consecutive values, since addresses may have
//! moved. A computation that an optimiser replaced by a different computation has no true
//! counterpart. A match is correct if it comes from the same position.
//!
//! A *position* is a file, line and column in an instance of a function, reached through the same
//! inlined calls. A line of generic code is compiled once for each combination of types, and each
//! of these functions may do different things. Code inlined into one function is likewise distinct
//! from the same code inlined into another. Debug information names the functions from which a
//! statement was compiled, and the places of the calls. These names and places must agree for the
//! calls that both versions inlined. Matches between any instances of the same line and column are
//! counted separately.
//!
//! Functions that are the same in both modules, operator for operator, count as not recompiled.
//! Library functions are usually among them. Their statements are easier to match, so they are also
//! counted separately. A statement in such a function has a known counterpart: the same operator in
//! the function with the same name, if both were executed.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use afterimage_ids::{EntityRef, FuncId};
use afterimage_matching::{Class, Match, Matching, Statement};
use afterimage_program::{Location, Names, OperatorIndex, Program};

use super::code::operators;
use super::runs::Matched;
use super::{Sketched, StatementSite};
use afterimage_profile::Source;

/// A version with its debug information.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The program of this version.
    pub program: &'a Program,
    /// The bytes from which the program was parsed.
    pub module: &'a [u8],
    /// The names in the program.
    pub names: &'a Names,
    /// The program's line tables.
    pub source: &'a dyn Source,
    /// The statements that the program executed, with their sketches.
    pub sketched: &'a Sketched,
}

/// Counts of correct matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accuracy {
    /// The number of executed statements of the second version in functions for which the first
    /// version has no equal function.
    pub executed: u64,
    /// The number of statements counted in `executed` with a known line and column.
    pub known: u64,
    /// The number of statements for which the first version executed an equal statement from the
    /// same line and column, in any instance of a generic function.
    pub of_column: u64,
    /// The number of statements counted in `of_column` that are matched with a statement of the
    /// same line and column in any instance.
    pub correct_of_column: u64,
    /// The number of statements with a true counterpart. It is the denominator for the fields from
    /// `matched` to `same_line`.
    pub true_counterpart: u64,
    /// The number of statements with a true counterpart that are matched.
    pub matched: u64,
    /// The number of statements with a true counterpart that are matched with a statement of the
    /// same position.
    pub correct: u64,
    /// The number of statements with a true counterpart for which at least one match is at the same
    /// position.
    pub found: u64,
    /// The total number of matches listed for statements with a true counterpart.
    pub listed: u64,
    /// The number of statements with a true counterpart that are matched correctly, or with a
    /// statement that did exactly the same as a true counterpart.
    pub equivalent: u64,
    /// The number of statements with a true counterpart that are matched with a statement of the
    /// same line.
    pub same_line: u64,
    /// The number of statements that both versions executed, in functions that are the same in
    /// both.
    pub unchanged: u64,
    /// The number of statements counted in `unchanged` that are matched with themselves.
    pub correct_of_unchanged: u64,
    /// The number of statements counted in `unchanged` with a match that is the statement itself.
    pub found_of_unchanged: u64,
    /// The total number of matches listed for statements counted in `unchanged`.
    pub listed_of_unchanged: u64,
    /// Matched statements with a true counterpart, by the stated likelihood of the match. The
    /// numbers in [`LIKELY`] separate the ranges of likelihood, lowest first. Each entry contains
    /// the number of matches and the number of correct matches.
    pub by_likelihood: [[u64; 2]; LIKELY.len() + 1],
}

/// The limits of the ranges of likelihood that are counted separately.
pub const LIKELY: [f32; 4] = [0.5, 0.8, 0.95, 0.99];

/// Maps functions of the second version to the functions of the first version that have the same
/// name and operators.
fn unchanged(a: Side<'_>, b: Side<'_>) -> HashMap<FuncId, Rc<[FuncId]>> {
    let shape = |side: Side<'_>, function| -> Vec<u64> {
        let all = operators(side.program, side.module, function);
        all.iter().map(|known| known.operator).collect()
    };
    let mut known: HashMap<(&str, Vec<u64>), Vec<FuncId>> = HashMap::new();
    for function in &a.program.functions {
        let key = (a.names.function(function.id), shape(a, function));
        known.entry(key).or_default().push(function.id);
    }
    let known: HashMap<_, Rc<[FuncId]>> = known
        .into_iter()
        .map(|(key, functions)| (key, functions.into()))
        .collect();
    let of_b = b.program.functions.iter().filter_map(|function| {
        let same = known.get(&(b.names.function(function.id), shape(b, function)))?;
        Some((function.id, same.clone()))
    });
    of_b.collect()
}

/// Returns the functions of the second version for which the first version has no function with the
/// same name and operators.
pub fn recompiled(a: Side<'_>, b: Side<'_>) -> HashSet<FuncId> {
    let unchanged = unchanged(a, b);
    let of_b = b.program.functions.iter().map(|function| function.id);
    of_b.filter(|function| !unchanged.contains_key(function))
        .collect()
}

/// A function from which a statement was compiled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame<'a> {
    /// The function's name, with type arguments if it is generic. `None` if unknown.
    pub function: Option<String>,
    /// File, line and column of the call that was inlined into the function. `None` if unknown, and
    /// for the innermost frame.
    pub call: Option<(&'a str, u32, u32)>,
}

/// The source position of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position<'a> {
    /// The file, line and column.
    pub column: (&'a str, u32, u32),
    /// The functions from which the statement was compiled. The innermost inlined function is
    /// first, and the function that the module defines is last.
    pub frames: Rc<[Frame<'a>]>,
}

impl Position<'_> {
    /// Whether statements at both positions come from the same line and column, through the same
    /// inlined calls where both versions inlined them.
    fn is(&self, other: &Self) -> bool {
        let mut frames = self.frames.iter().zip(&*other.frames);
        let same = |(x, y): (&Frame<'_>, &Frame<'_>)| {
            let call = x.call.is_none() || y.call.is_none() || x.call == y.call;
            x.function == y.function && call
        };
        self.column == other.column && frames.all(same)
    }

    /// Returns the file and line.
    fn line(&self) -> (&str, u32) {
        (self.column.0, self.column.1)
    }
}

/// Returns the positions of a version's statements, or `None` where unknown. O(statements).
fn positions<'a>(side: Side<'a>) -> Vec<Option<Position<'a>>> {
    let index = OperatorIndex::new(side.program, side.module);
    let files = side.source.files();
    let column = |location: Location| {
        let file = files.get(location.file.0 as usize)?;
        Some((file.as_str(), location.line, location.column))
    };
    let places = side.sketched.places.iter();
    let mut known: HashSet<Rc<[Frame<'_>]>> = HashSet::new();
    let found = places.map(|place| {
        let function = side.program.function(place.function)?;
        let offset = *index.offsets(function).get(place.op.index())?;
        let location = side.source.locate(offset)?;
        if location.line == 0 || location.column == 0 {
            return None;
        }
        let frames = side.source.written_frames(offset).into_iter().enumerate();
        let frames = frames.map(|(depth, frame)| Frame {
            function: frame.function,
            call: frame.location.filter(|_| depth > 0).and_then(column),
        });
        let frames = Vec::from_iter(frames);
        let same = known.get(frames.as_slice()).cloned();
        let frames = same.unwrap_or_else(|| {
            let frames: Rc<[Frame<'_>]> = frames.into();
            known.insert(Rc::clone(&frames));
            frames
        });
        let column = column(location)?;
        Some(Position { column, frames })
    });
    found.collect()
}

/// The line tables' verdict on the match for a statement of the second version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judged<'a> {
    /// The statement's position.
    pub position: Option<Position<'a>>,
    /// Whether the first version executed a statement that does the same thing and comes from the
    /// same line and column, in any instance.
    pub of_column: bool,
    /// Whether the statement is matched with a statement from the same line and column in any
    /// instance.
    pub correct_of_column: bool,
    /// The first version's statements from the same position.
    pub from_there: Vec<u32>,
    /// The true counterparts among these statements.
    pub counterparts: Vec<u32>,
    /// Whether the statement is matched with a statement from the same position.
    pub correct: bool,
    /// Whether the matched statement is at the same position, or did exactly the same as a true
    /// counterpart. Optimisers that merge common subexpressions keep only one of several positions.
    pub equivalent: bool,
    /// Whether the statement is matched with a statement from the same line.
    pub same_line: bool,
}

/// Compares each match with the line tables. Yields `None` for statements of functions that are the
/// same in both versions. O(statements × statements of a position).
pub fn judge<'a>(a: Side<'a>, b: Side<'a>, matching: &Matching) -> Vec<Option<Judged<'a>>> {
    let of_a = positions(a);
    let of_b = positions(b);
    let statements_of_a = &a.sketched.version.statements;
    let mut there: HashMap<(&str, u32, u32), Vec<u32>> = HashMap::new();
    // Code inlined into a function that was not recompiled belongs to that function in both
    // versions. So it is not a counterpart of any other statement.
    let anew = recompiled(b, a);
    for ((at, position), place) in (0..).zip(&of_a).zip(&a.sketched.places) {
        if let Some(position) = position
            && (position.frames.len() < 2 || anew.contains(&place.function))
        {
            there.entry(position.column).or_default().push(at);
        }
    }
    let differing = recompiled(a, b);
    let statements = b.sketched.version.statements.iter().enumerate();
    let judged = statements.map(|(at, statement)| {
        if !differing.contains(&b.sketched.places[at].function) {
            return None;
        }
        let mut judged = Judged {
            position: of_b[at].clone(),
            ..Judged::default()
        };
        let Some(position) = &of_b[at] else {
            return Some(judged);
        };
        let same = there.get(&position.column).map_or(&[][..], Vec::as_slice);
        let does_the_same = |a: &&u32| is_counterpart(&statements_of_a[**a as usize], statement);
        judged.of_column = same.iter().any(|a| does_the_same(&a));
        let from_there = |a: &&u32| of_a[**a as usize].as_ref().is_some_and(|a| a.is(position));
        judged.from_there = same.iter().filter(from_there).copied().collect();
        let counterparts = judged.from_there.iter().filter(does_the_same);
        judged.counterparts = counterparts.copied().collect();
        let found = matching.of_b[at].as_ref();
        let other = found.and_then(|found| of_a[found.a as usize].as_ref());
        judged.correct = found.is_some_and(|found| judged.from_there.contains(&found.a));
        judged.correct_of_column = other.is_some_and(|other| other.column == position.column);
        let did_the_same = found.is_some_and(|found| {
            let found = &statements_of_a[found.a as usize];
            let mut counterparts = judged.counterparts.iter();
            counterparts.any(|&a| did_the_same(found, &statements_of_a[a as usize]))
        });
        judged.equivalent = judged.correct || did_the_same;
        judged.same_line = other.is_some_and(|other| other.line() == position.line());
        Some(judged)
    });
    judged.collect()
}

/// Compares a matching with the line tables. O(statements × statements of a position).
pub fn accuracy(a: Side<'_>, b: Side<'_>, matching: &Matching) -> Accuracy {
    let mut found = Accuracy::default();
    for (at, judged) in judge(a, b, matching).into_iter().enumerate() {
        let Some(judged) = judged else { continue };
        found.executed += 1;
        found.known += u64::from(judged.position.is_some());
        if judged.of_column {
            found.of_column += 1;
            found.correct_of_column += u64::from(judged.correct_of_column);
        }
        if !judged.counterparts.is_empty() {
            found.true_counterpart += 1;
            found.matched += u64::from(matching.of_b[at].is_some());
            found.correct += u64::from(judged.correct);
            found.equivalent += u64::from(judged.equivalent);
            found.same_line += u64::from(judged.same_line);
            let matches = Vec::from_iter(matching.matches(at as u32));
            let is_right = |(a, _): &(u32, f32)| judged.from_there.contains(a);
            found.found += u64::from(matches.iter().any(is_right));
            found.listed += matches.len() as u64;
            if let Some((_, likely)) = matches.first() {
                let band = LIKELY.partition_point(|bound| bound <= likely);
                found.by_likelihood[band][0] += 1;
                found.by_likelihood[band][1] += u64::from(judged.correct);
            }
        }
    }
    let unchanged = unchanged(a, b);
    let executed: HashSet<StatementSite> = a.sketched.places.iter().copied().collect();
    for (at, place) in (0..).zip(&b.sketched.places) {
        let Some(same) = unchanged.get(&place.function) else {
            continue;
        };
        let itself = |function: &FuncId| StatementSite {
            function: *function,
            op: place.op,
        };
        let counterparts = same.iter().map(itself);
        let counterparts = Vec::from_iter(counterparts.filter(|place| executed.contains(place)));
        if !counterparts.is_empty() {
            let matches = matching.matches(at).map(|(of_a, _)| {
                let other = a.sketched.places[of_a as usize];
                counterparts.contains(&other)
            });
            let matches = Vec::from_iter(matches);
            found.unchanged += 1;
            found.correct_of_unchanged += u64::from(matches.first() == Some(&true));
            found.found_of_unchanged += u64::from(matches.contains(&true));
            found.listed_of_unchanged += matches.len() as u64;
        }
    }
    found
}

/// Counts the wrong matches whose statement is a copy of a true counterpart. A copy has the same
/// values in the same order, through the same calls if the second version inlined them. No
/// comparison of values can distinguish a copy from its original. O(statements × statements of a
/// position).
pub fn copies(a: Side<'_>, b: Side<'_>, matched: &Matched) -> u64 {
    let apart = &matched.apart;
    let mut there: HashMap<StatementSite, Vec<u32>> = HashMap::new();
    for (at, place) in (0..).zip(&apart.places) {
        there.entry(*place).or_default().push(at);
    }
    let gave = |at: u32| {
        let telling = apart.version.statements[at as usize].telling();
        (telling.count, telling.sequence)
    };
    let judged = judge(a, b, &matched.matching).into_iter();
    let judged = judged.zip(&matched.matching_apart.of_b);
    let is_copy = |(judged, found): &(Option<Judged<'_>>, &Option<Match>)| {
        let (Some(judged), Some(found)) = (judged, found) else {
            return false;
        };
        let mut counterparts = judged.counterparts.iter().flat_map(|&at| {
            let place = &a.sketched.places[at as usize];
            there.get(place).into_iter().flatten()
        });
        !judged.correct && counterparts.any(|&at| gave(at) == gave(found.a))
    };
    judged.filter(is_copy).count() as u64
}

/// Whether statements from the same position are counterparts. They must have the same operator or,
/// unless they compute or compare, the same kind. They must also have some value or some difference
/// between consecutive values in common.
fn is_counterpart(a: &Statement, b: &Statement) -> bool {
    let same = match b.class {
        Class::Compute | Class::Test | Class::Other => a.operator == b.operator,
        _ => a.class == b.class,
    };
    let values = b.values.sample.found_in(&a.values.sample).occurring > 0;
    let steps = b
        .values
        .step_sample
        .found_in(&a.values.step_sample)
        .occurring
        > 0;
    same && (values || steps)
}

/// Whether two statements of a version did exactly the same, with the same operator, values and
/// addresses in the same parts of the run.
fn did_the_same(x: &Statement, y: &Statement) -> bool {
    x.exact == y.exact
        && x.values == y.values
        && x.operands == y.operands
        && x.addresses == y.addresses
        && x.active == y.active
}
