//! Writes a trace as text for people.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::Range;

use afterimage_ids::{BlockId, FuncId, NodeId};
use afterimage_program::{Location, Names};
use afterimage_replay::whole_path::{BlockPlace, Visits, Window};
use afterimage_wpp::{Segments, Visit};

use super::{Scene, TraceLevel, unreadable};
use crate::PresentError;
use crate::name::short_function;
use crate::number::{counted, grouped};
use crate::sources::Cache;
use crate::table::{Paint, plain, shortened, width};

/// The minimum width of a place.
const PLACE: usize = 22;
/// The width of an offset.
const OFFSET: usize = 10;
/// The minimum width of a function with its indentation.
const FUNCTION: usize = 30;
/// The minimum width of a function on a narrow terminal.
const NARROW_FUNCTION: usize = 18;
/// The minimum width of source text. On a narrow terminal, other columns make room for it.
const TEXT: usize = 24;
/// The maximum number of levels by which an activation is indented.
pub(super) const LEVELS: usize = 20;

/// Writes a stretch of a run: a line for each block or path. Consecutive executions of a path share
/// a line. Paths that `visits` leaves out must be library code.
///
/// Returns the time at which to continue, if there are more than `limit` lines.
///
/// # Errors
/// Returns an error if `out` fails or the path cannot be read.
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
    lines: &mut Lines<'_, S>,
    limit: Option<u64>,
) -> Result<Option<u64>, PresentError>
where
    S::Error: Send + Sync,
{
    let mut rows = Rows {
        out,
        lines,
        limit,
        reverse: visits.is_reverse(),
        written: 0,
        gap: None,
    };
    let mut parts = Parts::new(scene, visits);
    while let Some((visit, gap)) = parts.next()? {
        let depth = parts.visits.depth();
        let part = parts.visits.window().part(visit);
        if let Some(kind) = gap {
            let times = visit.start + part.start..visit.start + part.end;
            if let Some(next) = rows.gap(kind, times)? {
                return Ok(Some(next));
            }
            continue;
        }
        let node = &scene.path.nodes()[visit.node];
        for k in 0..part.end - part.start {
            let at = match rows.reverse {
                true => part.end - 1 - k,
                false => part.start + k,
            };
            let (time, block) = (visit.start + at, node.blocks[at as usize]);
            let next = if scene.shows_block(node.function, block)? {
                rows.block(time, depth, (node.function, block))?
            } else {
                rows.gap(GapKind::Library, time..time + 1)?
            };
            if next.is_some() {
                return Ok(next);
            }
        }
    }
    rows.close()
}

/// Iterates over visits. For a visit without a line of its own, also returns the reason. Paths that
/// the visits leave out become one visit of library code.
struct Parts<'v, 'a, S: Segments> {
    scene: &'v Scene<'v, S>,
    visits: &'v mut Visits<'a, S>,
    /// The times that were not visited yet.
    rest: Window,
    /// A visit that is held back until the paths left out before it have been returned.
    next: Option<Visit>,
}

impl<'v, 'a, S: Segments> Parts<'v, 'a, S>
where
    S::Error: Send + Sync,
{
    fn new(scene: &'v Scene<'v, S>, visits: &'v mut Visits<'a, S>) -> Self {
        Self {
            scene,
            rest: visits.window(),
            visits,
            next: None,
        }
    }

    fn next(&mut self) -> Result<Option<(Visit, Option<GapKind>)>, PresentError> {
        if let Some(visit) = self.next.take() {
            return self.visited(visit).map(Some);
        }
        let next = self.visits.next_visit().map_err(unreadable)?;
        let Window { first, last } = self.rest;
        let before = match next {
            _ if self.scene.own.is_none() || !self.visits.is_filtered() => 1..1,
            None => first..last + 1,
            Some(visit) if self.visits.is_reverse() => visit.last() + 1..last + 1,
            Some(visit) => first..visit.start,
        };
        if !before.is_empty() {
            self.next = next;
            let visit = Visit {
                node: NodeId::from_u32(0),
                start: before.start,
                length: before.end - before.start,
            };
            self.passed(visit);
            return Ok(Some((visit, Some(GapKind::Library))));
        }
        next.map(|visit| self.visited(visit)).transpose()
    }

    fn visited(&mut self, visit: Visit) -> Result<(Visit, Option<GapKind>), PresentError> {
        self.passed(visit);
        Ok((visit, gap_of(self.scene, visit.node)?))
    }

    fn passed(&mut self, visit: Visit) {
        if self.visits.is_reverse() {
            self.rest.last = visit.start - 1;
        } else {
            self.rest.first = visit.last() + 1;
        }
    }
}

/// The reason why blocks have no line of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GapKind {
    /// The blocks were left out of the recording.
    LeftOut,
    /// The blocks belong to library code.
    Library,
}

/// Consecutive blocks that share a line.
struct Gap {
    kind: GapKind,
    times: Range<u64>,
}

impl Gap {
    /// Returns the time at which to continue with this gap.
    fn next(&self, reverse: bool) -> u64 {
        match reverse {
            true => self.times.end - 1,
            false => self.times.start,
        }
    }
}

/// Writes lines for blocks, and for the gaps between them. Each method returns the time at which to
/// continue, if the limit is reached.
struct Rows<'o, 's, S> {
    out: &'o mut dyn Write,
    lines: &'o mut Lines<'s, S>,
    limit: Option<u64>,
    reverse: bool,
    written: u64,
    /// The gap that has no line yet, because it may continue.
    gap: Option<Gap>,
}

impl<S> Rows<'_, '_, S> {
    fn block(
        &mut self,
        time: u64,
        depth: usize,
        at: (FuncId, BlockId),
    ) -> Result<Option<u64>, PresentError> {
        if let Some(next) = self.close()? {
            return Ok(Some(next));
        }
        if self.limit == Some(self.written) {
            return Ok(Some(time));
        }
        self.written += 1;
        self.lines.block(self.out, time, depth, at)?;
        Ok(None)
    }

    fn gap(&mut self, kind: GapKind, times: Range<u64>) -> Result<Option<u64>, PresentError> {
        if let Some(gap) = self.gap.as_mut().filter(|gap| gap.kind == kind) {
            gap.times = gap.times.start.min(times.start)..gap.times.end.max(times.end);
            return Ok(None);
        }
        let next = self.close()?;
        self.gap = Some(Gap { kind, times });
        Ok(next)
    }

    /// Writes the gap.
    fn close(&mut self) -> Result<Option<u64>, PresentError> {
        let Some(gap) = self.gap.take() else {
            return Ok(None);
        };
        if self.limit == Some(self.written) {
            return Ok(Some(gap.next(self.reverse)));
        }
        self.written += 1;
        self.lines.gap(self.out, &gap)?;
        Ok(None)
    }
}

/// Consecutive executions of a path, given by the first and the last, or consecutive gaps.
struct Row {
    first: Visit,
    last: Visit,
    depth: usize,
    times: u64,
    gap: Option<GapKind>,
}

impl Row {
    fn new(visit: Visit, depth: usize, gap: Option<GapKind>) -> Self {
        Self {
            first: visit,
            last: visit,
            depth,
            times: 1,
            gap,
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
    lines: &mut Lines<'_, S>,
    limit: Option<u64>,
) -> Result<Option<u64>, PresentError>
where
    S::Error: Send + Sync,
{
    let mut written = 0;
    let mut row: Option<Row> = None;
    let mut parts = Parts::new(scene, visits);
    loop {
        let (next, gap) = parts.next()?.unzip();
        let gap = gap.flatten();
        let depth = parts.visits.depth();
        if let (Some(row), Some(visit)) = (&mut row, next) {
            let neighbours =
                row.last.last() + 1 == visit.start || visit.last() + 1 == row.last.start;
            let same = row.depth == depth && row.first.node == visit.node;
            if neighbours && (same || gap.is_some() && row.gap == gap) {
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
                let reverse = parts.visits.is_reverse();
                return Ok(Some(if reverse { visit.last() } else { visit.start }));
            }
            Some(visit) => {
                row = Some(Row::new(visit, depth, gap));
            }
        }
    }
}

/// Leaves out the paths of library code. The text form shows only the number of their blocks.
///
/// # Errors
/// Returns an error if the paths cannot be counted.
pub fn leave_out_library<S: Segments>(
    scene: &Scene<'_, S>,
    visits: &mut Visits<'_, S>,
) -> Result<(), PresentError> {
    let mut kept = HashSet::new();
    for node in scene.path.nodes().keys() {
        if gap_of(scene, node)? != Some(GapKind::Library) {
            kept.insert(node);
        }
    }
    visits.keep_nodes(kept).map_err(unreadable)
}

/// Returns the reason why a path has no line of its own, or `None` if it has one.
fn gap_of<S: Segments>(
    scene: &Scene<'_, S>,
    node: NodeId,
) -> Result<Option<GapKind>, PresentError> {
    let node = &scene.path.nodes()[node];
    if node.left_out > 0 {
        return Ok(Some(GapKind::LeftOut));
    }
    for &block in &node.blocks {
        if scene.shows_block(node.function, block)? {
            return Ok(None);
        }
    }
    Ok((!node.blocks.is_empty()).then_some(GapKind::Library))
}

/// The columns that rows have besides the time and the place.
#[derive(Clone, Copy)]
struct Columns {
    depth: bool,
    block: bool,
    /// The minimum width of a function. On a narrow terminal, names are shortened to this width.
    function: usize,
}

impl Columns {
    const ALL: Self = Self {
        depth: true,
        block: true,
        function: FUNCTION,
    };

    /// Returns the columns that leave room for source text on a terminal. Drops the number of the
    /// block first, then the depth, which the indentation also shows.
    fn within(room: usize, time: usize) -> Self {
        let used = |columns: &Self| {
            let depth = if columns.depth { 7 } else { 0 };
            let block = if columns.block { 10 } else { 0 };
            time + 2 + depth + block + PLACE + 2 + columns.function + 2 + TEXT
        };
        let narrow = Self {
            block: false,
            function: NARROW_FUNCTION,
            ..Self::ALL
        };
        let narrowest = Self {
            depth: false,
            ..narrow
        };
        let fits = |columns: &Self| used(columns) <= room;
        [Self::ALL, narrow]
            .into_iter()
            .find(fits)
            .unwrap_or(narrowest)
    }
}

/// Writes lines with the same columns.
struct Lines<'s, S> {
    scene: &'s Scene<'s, S>,
    level: TraceLevel,
    /// The width of a time.
    time: usize,
    place: usize,
    columns: Columns,
    functions: Functions<'s>,
    indent: Indent,
    texts: Cache<'s>,
    /// The source line that was last written.
    shown: Option<(FuncId, u32)>,
}

impl<'s, S> Lines<'s, S> {
    fn new(scene: &'s Scene<'s, S>, last: u64, level: TraceLevel) -> Self {
        let time = grouped(last).len().max(6);
        let has_files = scene.places.has_files();
        let columns = match scene.style.width {
            Some(room) if has_files && level == TraceLevel::Block => Columns::within(room, time),
            _ => Columns::ALL,
        };
        Self {
            scene,
            level,
            time,
            place: if has_files { PLACE } else { OFFSET },
            columns,
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
                let Columns { depth, block, .. } = self.columns;
                let depth = if depth { "  depth" } else { "" };
                let block = if block { "  block   " } else { "" };
                format!(
                    "{:>time$}{depth}{block}  {place_name:place$}  function",
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
        (function, block): (FuncId, BlockId),
    ) -> Result<(), PresentError> {
        let place = self.scene.place(function, block)?;
        let Columns {
            depth: has_depth,
            block: has_block,
            function: room,
        } = self.columns;
        let mut indent = self.indent.of(depth);
        let name = self.functions.name(function);
        let mut name = Cow::Borrowed(name);
        if room < FUNCTION {
            indent = indent.min(room / 2);
            let short = short_function(&name);
            name = Cow::Owned(shortened(&short, room - indent, (room - indent) / 2));
        }
        let (time, columns) = (self.time, self.place);
        let shown = shown_place(self.scene, place);
        let mut line = String::new();
        write!(line, "{:>time$}  ", grouped(at))?;
        if has_depth {
            write!(line, "{depth:>5}  ")?;
        }
        if has_block {
            write!(line, "{:<8}  ", Short(block))?;
        }
        write!(line, "{shown:<columns$}  {:indent$}{name}", "")?;
        // Source text is shown once while control stays on its line.
        let arrived = place.position.map(|position| (function, position.line));
        if arrived != self.shown
            && let Some(position) = place.position
            && let Some(text) = self
                .texts
                .line(self.scene.places.file(position), position.line)
        {
            let used = indent + width(&name);
            write!(line, "{:1$}  ", "", room.saturating_sub(used))?;
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
        if let Some(kind) = row.gap {
            let times = row.range();
            self.gap(out, &Gap { kind, times })?;
            return Ok(());
        }
        let Some(&first) = blocks.first() else {
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
            grouped(row.first.start),
            row.depth,
            "",
            ""
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

    fn gap(&self, out: &mut dyn Write, gap: &Gap) -> io::Result<()> {
        let (time, at) = (self.time, grouped(gap.times.start));
        let count = gap.times.end - gap.times.start;
        let blocks = counted(count, "block");
        match gap.kind {
            GapKind::LeftOut => {
                let were = if count == 1 { "was" } else { "were" };
                writeln!(out, "{at:>time$}  … {blocks} {were} left out")
            }
            GapKind::Library => {
                let code = self.scene.own.map_or("", |own| own.folded.left_out());
                writeln!(out, "{at:>time$}  … {blocks} of {code}")
            }
        }
    }
}

/// Formats a place as `file.c:42`, or as the offset in the module if the line is unknown.
pub(super) fn shown_place<S>(scene: &Scene<'_, S>, place: BlockPlace) -> String {
    match place.position {
        Some(position) => shown_line(scene, position),
        None => place.offset.to_string(),
    }
}

/// Formats the last two parts of the file's path, and the line.
pub(super) fn shown_line<S>(scene: &Scene<'_, S>, position: Location) -> String {
    let file = scene.places.shown(position);
    plain(&format!("{file}:{}", position.line))
}

/// The short names of functions. Hidden characters of each name are escaped only once.
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
            .or_insert_with(|| plain(&names.short(function)))
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
