//! Computes the rows that answer a question about a profile.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use afterimage_ids::{FuncId, OrigOffset};
use afterimage_program::Location;
use serde::{Deserialize, Serialize};

use crate::{
    BlockRow, CodeFilter, EdgeRow, Folded, FunctionRow, InlinedRow, InstructionRow, Line, LineRow,
    Profile, ProfileError, Rows, Scope, Source, Totals, WholeLines, text,
};

/// The kind of rows in a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// One row for each function.
    #[default]
    Function,
    /// One row for each source line.
    Line,
    /// One row for each basic block.
    Block,
    /// One row for each edge of a control-flow graph.
    Edge,
    /// One row for each instruction.
    Instruction,
}

/// The order of a report's rows. Ties are in program order, so every order is total and stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// By executed instructions, in descending order. Edges and instructions are ordered by count.
    Instructions,
    /// By executions, in descending order. A function's executions are its entries, and a line's
    /// executions are the arrivals at the line.
    Count,
    /// By the name of the function. Lines are ordered by the path of their file.
    Name,
    /// In program order, by function index and then by position in the body. Lines are ordered by
    /// file and line.
    Program,
}

/// A question about a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The kind of each row.
    pub by: By,
    /// The order of the rows. The default is [`Sort::Program`], or [`Sort::Instructions`] if only
    /// the top rows are wanted.
    pub sort: Option<Sort>,
    /// The maximum number of rows. By default, there is no limit.
    pub top: Option<usize>,
    /// The functions to include.
    pub scope: Scope,
    /// The code that has rows. All code has rows by default, or if the filter matches nothing.
    pub code: Option<CodeFilter>,
    /// The cost of lines including the library code that they call. The scope must then be all
    /// functions.
    pub whole: Option<Arc<WholeLines>>,
    /// Whether rows of functions are followed by rows of inlined functions.
    pub inlined: bool,
}

/// The parts that a filter left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// The number of rows left out.
    pub rows: usize,
    /// The number of executed instructions in these rows. Edges have none.
    pub instructions: u64,
    /// The number of instructions that count for no line. This is `None` unless library code counts
    /// for the lines that call it.
    pub elsewhere: Option<u64>,
    /// Whether code that belongs to no library was left out.
    pub is_mixed: bool,
}

/// The answer to a question, which consists of rows and the totals of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The rows, in the requested order.
    pub rows: Rows,
    /// The number of rows before a limit is applied.
    pub available: usize,
    /// The inlined functions, if requested. They are ordered by name if the rows are, and otherwise
    /// by executed instructions, in descending order.
    pub inlined: Vec<InlinedRow>,
    /// The number of inlined functions before a limit is applied.
    pub inlined_available: usize,
    /// The parts that [`Options::code`] left out.
    pub left_out: LeftOut,
    /// The totals of the whole program, even if the rows cover only a part.
    pub totals: Totals,
    /// The order of the rows.
    pub sort: Sort,
}

impl Report {
    /// Answers a question.
    ///
    /// # Errors
    /// Returns the same errors as [`Profile::operators`].
    pub fn new(profile: &Profile<'_>, options: &Options) -> Result<Self, ProfileError> {
        let default = if options.top.is_some() {
            Sort::Instructions
        } else {
            Sort::Program
        };
        let sort = options.sort.unwrap_or(default);
        let scope = &options.scope;
        let name = |function| profile.names().function(function);
        let mut rows = match options.by {
            By::Function => Rows::Functions(profile.function_rows(scope)?),
            By::Line => Rows::Lines(profile.line_rows(scope)?),
            By::Block => Rows::Blocks(profile.block_rows(scope)?),
            By::Edge => Rows::Edges(profile.edge_rows(scope)?),
            By::Instruction => Rows::Instructions(profile.instruction_rows(scope)?),
        };
        let mut left_out = match &options.code {
            Some(code) => LeftOut {
                is_mixed: matches!(code, CodeFilter::Files(_)),
                ..rows.keep(profile, scope, &Folded::new(profile.source(), code))?
            },
            None => LeftOut::default(),
        };
        if let (Rows::Lines(rows), Scope::All, Some(whole)) = (&mut rows, scope, &options.whole)
            && left_out.rows > 0
        {
            add_whole(profile, rows, whole);
            left_out.elsewhere = Some(whole.elsewhere);
        }
        let available = rows.len();
        match &mut rows {
            Rows::Functions(rows) => order(
                rows,
                sort,
                |r| r.instructions,
                |r| r.entries,
                |r| name(r.function),
            ),
            // Lines are already sorted by path.
            Rows::Lines(rows) => order(rows, sort, LineRow::cost, |r| r.count, |_| ()),
            Rows::Blocks(rows) => order(
                rows,
                sort,
                |r| r.instructions,
                |r| r.count,
                |r| name(r.function),
            ),
            Rows::Edges(rows) => order(rows, sort, |r| r.count, |r| r.count, |r| name(r.function)),
            Rows::Instructions(rows) => {
                order(rows, sort, |r| r.count, |r| r.count, |r| name(r.function))
            }
        }
        if let Some(top) = options.top {
            match &mut rows {
                Rows::Functions(rows) => rows.truncate(top),
                Rows::Lines(rows) => rows.truncate(top),
                Rows::Blocks(rows) => rows.truncate(top),
                Rows::Edges(rows) => rows.truncate(top),
                Rows::Instructions(rows) => rows.truncate(top),
            }
        }
        if let Rows::Instructions(rows) = &mut rows {
            text::fill(profile.module, rows)?;
        }
        let mut inlined = match options.by {
            By::Function if options.inlined => profile.inlined_rows(scope)?,
            _ => Vec::new(),
        };
        if let Some(code) = &options.code {
            let folded = Folded::new(profile.source(), code);
            inlined.retain(|row| folded.shows_function(&row.name, row.position));
        }
        match sort {
            Sort::Name => inlined.sort_by(|a, b| a.name.cmp(&b.name)),
            Sort::Instructions | Sort::Count | Sort::Program => {
                inlined.sort_by_key(|row| Reverse(row.instructions));
            }
        }
        let inlined_available = inlined.len();
        inlined.truncate(options.top.unwrap_or(usize::MAX));
        Ok(Self {
            rows,
            available,
            inlined,
            inlined_available,
            left_out,
            totals: profile.totals(),
            sort,
        })
    }
}

impl Rows {
    /// Keeps only the rows of shown code, unless none are left. Where code that is not shown was
    /// inlined into shown code, the row gets the line of the call.
    fn keep(
        &mut self,
        profile: &Profile<'_>,
        scope: &Scope,
        folded: &Folded<'_>,
    ) -> Result<LeftOut, ProfileError> {
        let of_function = |row: &FunctionRow| {
            let name = profile.names().function(row.function);
            folded.shows_function(name, row.position)
        };
        let own = || {
            let mut own = profile.function_rows(scope)?;
            own.retain(of_function);
            let own = own.into_iter().map(|row| row.function);
            Ok::<HashSet<FuncId>, ProfileError>(own.collect())
        };
        let mut left_out = LeftOut::default();
        match self {
            Self::Functions(rows) => {
                left_out.keep(rows, |row| of_function(row), |row| row.instructions);
            }
            Self::Lines(rows) => {
                left_out.keep(
                    rows,
                    |row| folded.shows(row.line.file),
                    |row| row.instructions,
                );
            }
            Self::Blocks(rows) => {
                let own = own()?;
                let is_shown = |row: &mut BlockRow| {
                    let offset = Some(row.offset);
                    shows_code(folded, offset, &mut row.position) || own.contains(&row.function)
                };
                left_out.keep(rows, is_shown, |row| row.instructions);
            }
            Self::Edges(rows) => {
                let own = own()?;
                let is_shown = |row: &mut EdgeRow| {
                    let offset = row.offset;
                    shows_code(folded, offset, &mut row.position) || own.contains(&row.function)
                };
                left_out.keep(rows, is_shown, |_| 0);
            }
            Self::Instructions(rows) => {
                let own = own()?;
                let is_shown = |row: &mut InstructionRow| {
                    let offset = Some(row.offset);
                    shows_code(folded, offset, &mut row.position) || own.contains(&row.function)
                };
                left_out.keep(rows, is_shown, |row| row.count);
            }
        }
        Ok(left_out)
    }
}

impl LeftOut {
    /// Keeps the rows that are shown, unless there are none. Adds up the other rows.
    fn keep<R>(
        &mut self,
        rows: &mut Vec<R>,
        is_shown: impl FnMut(&mut R) -> bool,
        instructions: impl Fn(&R) -> u64,
    ) {
        let shown = Vec::from_iter(rows.iter_mut().map(is_shown));
        if !shown.contains(&true) {
            return;
        }
        let mut shown = shown.into_iter();
        rows.retain(|row| {
            let is_shown = shown.next().unwrap_or(true);
            if !is_shown {
                self.rows += 1;
                self.instructions += instructions(row);
            }
            is_shown
        });
    }
}

/// Whether code at an offset is shown, or was inlined into shown code. In the latter case,
/// `position` becomes the line of the call.
fn shows_code(
    folded: &Folded<'_>,
    offset: Option<OrigOffset>,
    position: &mut Option<Location>,
) -> bool {
    if position.is_some_and(|at| folded.shows(at.file)) {
        return true;
    }
    let around = offset.and_then(|offset| folded.locate(offset));
    *position = around.or(*position);
    around.is_some()
}

/// Adds the cost of lines including library code, and adds rows for lines that have only library
/// code.
fn add_whole(profile: &Profile<'_>, rows: &mut Vec<LineRow>, whole: &WholeLines) {
    let known: HashSet<Line> = rows.iter().map(|row| row.line).collect();
    let only_library = whole.lines.iter().filter(|(line, _)| !known.contains(line));
    rows.extend(only_library.map(|(&line, count)| LineRow {
        line,
        count: count.arrivals,
        instructions: 0,
        with_library: None,
    }));
    for row in &mut *rows {
        let count = whole.lines.get(&row.line);
        row.with_library = Some(count.map_or(0, |count| count.instructions));
    }
    rows.sort_unstable_by_key(|row| (profile.file(row.line.file), row.line));
}

/// Sorts rows that are in program order.
fn order<R, K: Ord>(
    rows: &mut [R],
    sort: Sort,
    instructions: impl Fn(&R) -> u64,
    count: impl Fn(&R) -> u64,
    name: impl Fn(&R) -> K,
) {
    match sort {
        Sort::Instructions => rows.sort_by_key(|row| Reverse((instructions(row), count(row)))),
        Sort::Count => rows.sort_by_key(|row| Reverse((count(row), instructions(row)))),
        Sort::Name => rows.sort_by_cached_key(name),
        Sort::Program => {}
    }
}

impl Profile<'_> {
    /// Returns a position as people write it, such as `file.c:42:7`. The column is omitted if it is
    /// unknown.
    pub fn place(&self, at: Location) -> String {
        let Location { file, line, column } = at;
        match column {
            0 => format!("{}:{line}", self.file(file)),
            _ => format!("{}:{line}:{column}", self.file(file)),
        }
    }
}
