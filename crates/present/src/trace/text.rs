//! Writes a trace as text for people.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::Range;

use afterimage_ids::{BlockId, FuncId};
use afterimage_program::{Location, Names};
use afterimage_replay::paths::{BlockPlace, Visits};
use afterimage_wpp::{Segments, Visit};

use super::{Scene, TraceLevel, unreadable};
use crate::PresentError;
use crate::number::grouped;
use crate::sources::Cache;
use crate::table::{Paint, plain, width};

/// The minimum width of a place.
const PLACE: usize = 22;
/// The width of an offset.
const OFFSET: usize = 10;
/// The minimum width of a function with its indentation.
const FUNCTION: usize = 30;
/// The maximum number of levels by which an activation is indented.
pub(super) const LEVELS: usize = 20;

/// Writes a stretch of a run: a line for each block or path. Consecutive executions of a path share
/// a line.
///
/// Returns the time at which to continue, if there are more than `limit` lines.
///
/// # Errors
/// If `out` fails or the path cannot be read.
pub fn trace_text<S: Segments>(
    out: &mut dyn Write,
    scene: &Scene<'_, S>,
    visits: &mut Visits<'_, S>,
    level: TraceLevel,
    limit: Option<u64>,
) -> Result<Option<u64>, PresentError>
where
    S::Error: Send + Sync,
{
    let mut lines = Lines::new(scene, visits.window().last, level);
    lines.head(out)?;
    match level {
        TraceLevel::Block => blocks(out, scene, visits, &mut lines, limit),
        TraceLevel::Path => paths(out, scene, visits, &mut lines, limit),
    }
}

fn blocks<S: Segments>(
    out: &mut dyn Write,
    scene: &Scene<'_, S>,
    visits: &mut Visits<'_, S>,
    lines: &mut Lines<'_, '_, S>,
    limit: Option<u64>,
) -> Result<Option<u64>, PresentError>
where
    S::Error: Send + Sync,
{
    let mut written = 0;
    // Consecutive gaps share a line.
    let mut gap: Option<Range<u64>> = None;
    while let Some(visit) = visits.next_visit().map_err(unreadable)? {
        let depth = visits.depth();
        let node = &scene.path.nodes()[visit.node];
        let part = visits.window().part(visit);
        if node.left_out > 0 {
            let stretch = visit.start + part.start..visit.start + part.end;
            gap = Some(match gap.take() {
                None => stretch,
                Some(gap) => gap.start.min(stretch.start)..gap.end.max(stretch.end),
            });
            continue;
        }
        if let Some(gap) = gap.take() {
            if limit == Some(written) {
                return Ok(Some(gap.start));
            }
            lines.left_out(out, &gap)?;
            written += 1;
        }
        let mut line = |at: u64| -> Result<bool, PresentError> {
            if limit == Some(written) {
                return Ok(false);
            }
            written += 1;
            let block = node.blocks[at as usize];
            lines.block(out, visit.start + at, depth, node.function, block)?;
            Ok(true)
        };
        if visits.is_reverse() {
            for at in part.rev() {
                if !line(at)? {
                    return Ok(Some(visit.start + at));
                }
            }
        } else {
            for at in part {
                if !line(at)? {
                    return Ok(Some(visit.start + at));
                }
            }
        }
    }
    match gap {
        Some(gap) if limit == Some(written) => return Ok(Some(gap.start)),
        Some(gap) => lines.left_out(out, &gap)?,
        None => {}
    }
    Ok(None)
}

/// Consecutive executions of a path, given by the first and the last, or consecutive gaps.
struct Row {
    first: Visit,
    last: Visit,
    depth: usize,
    times: u64,
}

impl Row {
    fn new(visit: Visit, depth: usize) -> Self {
        Self {
            first: visit,
            last: visit,
            depth,
            times: 1,
        }
    }

    /// Returns the range of times of these executions.
    fn range(&self) -> Range<u64> {
        let start = self.first.start.min(self.last.start);
        start..self.first.last().max(self.last.last()) + 1
    }
}

fn paths<S: Segments>(
    out: &mut dyn Write,
    scene: &Scene<'_, S>,
    visits: &mut Visits<'_, S>,
    lines: &mut Lines<'_, '_, S>,
    limit: Option<u64>,
) -> Result<Option<u64>, PresentError>
where
    S::Error: Send + Sync,
{
    let mut written = 0;
    let mut row: Option<Row> = None;
    loop {
        let next = visits.next_visit().map_err(unreadable)?;
        let depth = visits.depth();
        if let (Some(row), Some(visit)) = (&mut row, next) {
            let neighbours =
                row.last.last() + 1 == visit.start || visit.last() + 1 == row.last.start;
            let same = row.depth == depth && row.first.node == visit.node;
            let left_out = |visit: Visit| scene.path.nodes()[visit.node].left_out > 0;
            if neighbours && (same || left_out(row.first) && left_out(visit)) {
                row.times += 1;
                row.last = visit;
                continue;
            }
        }
        if let Some(row) = row.take() {
            let node = &scene.path.nodes()[row.first.node];
            lines.path(out, &row, node.function, &node.blocks)?;
            written += 1;
        }
        match next {
            None => return Ok(None),
            Some(visit) if limit == Some(written) => {
                let reverse = visits.is_reverse();
                return Ok(Some(if reverse { visit.last() } else { visit.start }));
            }
            Some(visit) => {
                row = Some(Row::new(visit, depth));
            }
        }
    }
}

/// Writes lines with the same columns.
struct Lines<'s, 'a, S> {
    scene: &'s Scene<'a, S>,
    level: TraceLevel,
    /// The width of a time.
    time: usize,
    place: usize,
    functions: Functions<'a>,
    indent: Indent,
    texts: Cache<'a>,
    /// The source line that was last written.
    shown: Option<(FuncId, u32)>,
}

impl<'s, 'a, S> Lines<'s, 'a, S> {
    fn new(scene: &'s Scene<'a, S>, last: u64, level: TraceLevel) -> Self {
        Self {
            scene,
            level,
            time: last.to_string().len().max(6),
            place: if scene.places.has_files() {
                PLACE
            } else {
                OFFSET
            },
            functions: Functions::new(scene.names),
            indent: Indent::default(),
            texts: Cache::new(scene.sources),
            shown: None,
        }
    }

    fn head(&self, out: &mut dyn Write) -> io::Result<()> {
        let (time, place) = (self.time, self.place);
        let place_name = if place == PLACE { "source" } else { "offset" };
        let head = match self.level {
            TraceLevel::Block => {
                format!(
                    "{:>time$}  depth  block     {place_name:place$}  function",
                    "t"
                )
            }
            TraceLevel::Path => format!(
                "{:>time$}  depth  {place_name:place$}  {:FUNCTION$}  path",
                "t", "function"
            ),
        };
        writeln!(out, "{}", self.scene.style.paint(Paint::Bold, &head))
    }

    fn block(
        &mut self,
        out: &mut dyn Write,
        at: u64,
        depth: usize,
        function: FuncId,
        block: BlockId,
    ) -> Result<(), PresentError> {
        let place = self.scene.place(function, block)?;
        let indent = self.indent.of(depth);
        let name = self.functions.name(function);
        let (time, columns) = (self.time, self.place);
        let shown = shown_place(self.scene, place);
        let mut line = String::new();
        write!(
            line,
            "{at:>time$}  {depth:>5}  {:<8}  {shown:<columns$}  {:indent$}{name}",
            Short(block),
            "",
        )?;
        // Source text is shown once while control stays on its line.
        let arrived = place.position.map(|position| (function, position.line));
        if arrived != self.shown
            && let Some(position) = place.position
            && let Some(text) = self
                .texts
                .line(self.scene.places.file(position), position.line)
        {
            let used = indent + width(name);
            write!(line, "{:1$}  ", "", FUNCTION.saturating_sub(used))?;
            line.push_str(&plain(text.trim()));
        }
        self.shown = arrived;
        writeln!(out, "{}", self.scene.style.cut(&line))?;
        Ok(())
    }

    fn path(
        &mut self,
        out: &mut dyn Write,
        row: &Row,
        function: FuncId,
        blocks: &[BlockId],
    ) -> Result<(), PresentError> {
        let Some(&first) = blocks.first() else {
            self.left_out(out, &row.range())?;
            return Ok(());
        };
        let shown = shown_place(self.scene, self.scene.place(function, first)?);
        let indent = self.indent.of(row.depth);
        let name = self.functions.name(function);
        let (time, columns) = (self.time, self.place);
        let padding = FUNCTION.saturating_sub(indent + width(name));
        let mut line = String::new();
        write!(
            line,
            "{:>time$}  {:>5}  {shown:<columns$}  {:indent$}{name}{:padding$}  ",
            row.first.start, row.depth, "", ""
        )?;
        for (at, block) in blocks.iter().enumerate() {
            let dot = if at > 0 { "." } else { "" };
            write!(line, "{dot}{}", block.as_u32())?;
        }
        if row.times > 1 {
            write!(line, " ×{}", grouped(row.times))?;
        }
        writeln!(out, "{}", self.scene.style.cut(&line))?;
        Ok(())
    }

    fn left_out(&self, out: &mut dyn Write, gap: &Range<u64>) -> io::Result<()> {
        let (time, at) = (self.time, gap.start);
        let blocks = match gap.end - gap.start {
            1 => "1 block was".to_owned(),
            many => format!("{} blocks were", grouped(many)),
        };
        writeln!(out, "{at:>time$}  … {blocks} left out")
    }
}

/// Writes a place as `file.c:42`, or as the offset in the module if the line is unknown.
pub(super) fn shown_place<S>(scene: &Scene<'_, S>, place: BlockPlace) -> String {
    match place.position {
        Some(position) => shown_line(scene, position),
        None => place.offset.to_string(),
    }
}

/// Writes the last two parts of the file's path, and the line.
pub(super) fn shown_line<S>(scene: &Scene<'_, S>, position: Location) -> String {
    let file = scene.places.shown(position);
    plain(&format!("{file}:{}", position.line))
}

/// The names of functions. Hidden characters of each name are escaped only once.
pub(super) struct Functions<'a> {
    names: &'a Names,
    known: HashMap<FuncId, String>,
}

impl<'a> Functions<'a> {
    pub(super) fn new(names: &'a Names) -> Self {
        Self {
            names,
            known: HashMap::new(),
        }
    }

    pub(super) fn name(&mut self, function: FuncId) -> &str {
        let names = self.names;
        self.known
            .entry(function)
            .or_insert_with(|| plain(names.function(function)))
    }
}

/// Indents by depth, relative to the least depth so far.
#[derive(Default)]
pub(super) struct Indent(Option<usize>);

impl Indent {
    /// Returns the number of spaces before an entry of this depth.
    pub(super) fn of(&mut self, depth: usize) -> usize {
        let least = self.0.map_or(depth, |least| least.min(depth));
        self.0 = Some(least);
        2 * (depth - least).min(LEVELS)
    }
}

/// A block, displayed by its name in the graph.
struct Short(BlockId);

impl std::fmt::Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0.to_string())
    }
}
