//! Decodes line tables.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use afterimage_ids::OrigOffset;
use gimli::{ColumnType, LineInstruction, LineRow, UnitHeader};

use super::{FileId, FileTable, Location, Row, Slice, Unit};
use crate::Fit;
use crate::sections::Sections;

/// Collects rows and files unit by unit.
pub(super) struct LineReader<'s, 'a> {
    sections: &'s Sections<'a>,
    dwarf: &'s gimli::Dwarf<Slice<'a>>,
    files: FileTable,
    tables: Vec<Table<'a>>,
    warnings: Vec<String>,
    /// The line tables read so far. Several units may share a table.
    seen: HashSet<usize>,
    /// The remaining budget for bytes of table headers, or for their entries if there are more
    /// entries than bytes. Hostile units could all name one huge table, or tables that overlap.
    budget: usize,
    /// Whether the budget has been exceeded.
    is_exhausted: bool,
    /// The remaining budget for bytes of paths. Hostile files could all be in a folder with a huge
    /// name.
    text: usize,
}

/// A line table. Its header is not kept, because overlapping headers take far more memory when
/// decoded. The header is read again when the table is run.
pub(super) struct Table<'a> {
    /// The offset in `.debug_info` of the first unit that names the table.
    unit: usize,
    offset: gimli::DebugLineOffset,
    address_size: u8,
    comp_dir: Option<Slice<'a>>,
    comp_name: Option<Slice<'a>>,
    files: Vec<Option<FileId>>,
}

/// The result of running a line table.
#[derive(Default)]
struct Ran {
    sequences: Vec<Sequence>,
    rows_without_file: usize,
}

/// The maximum ratio of the total size of the headers read to the length of the tables. Few units
/// share a table.
const HEADERS: usize = 64;

/// The maximum ratio of the total size of the paths to the length of the tables. A file takes at
/// least 6 bytes of a table, and its path rarely exceeds 300 bytes.
const PATHS: usize = 256;

/// The total length in bytes up to which one thread runs the line tables, because starting other
/// threads would take as long.
const SHORT: usize = 1 << 16;

/// The rows of a contiguous stretch of code (DWARF 5, section 6.2.2).
struct Sequence {
    range: Range<OrigOffset>,
    rows: Vec<Row>,
    /// The relation of the sequence to the bodies.
    place: InBodies,
}

/// The relation of a sequence to the bodies of functions. The best relation comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum InBodies {
    /// The sequence is exactly one body or several bodies.
    Exact,
    /// The sequence lies in one body, but does not cover the body.
    Part,
    Across,
}

/// The combined contents of all line tables.
pub(super) struct Lines<'a> {
    pub(super) files: FileTable,
    /// The accepted rows, ascending, without overlaps.
    pub(super) rows: Vec<Row>,
    /// Rows of sequences that are parts of a body. They belong to the body if the function's entry
    /// fits the body.
    pub(super) parts: Vec<Vec<Row>>,
    /// The rows of sequences that match no function's code.
    pub(super) refused: Vec<Row>,
    pub(super) fit: Fit,
    /// The line tables, kept so that they can be run again.
    pub(super) tables: Vec<Table<'a>>,
    pub(super) warnings: Vec<String>,
}

impl<'s, 'a> LineReader<'s, 'a> {
    pub(super) fn new(sections: &'s Sections<'a>, dwarf: &'s gimli::Dwarf<Slice<'a>>) -> Self {
        let lines = sections
            .custom(".debug_line")
            .map_or(0, |(data, _)| data.len());
        Self {
            sections,
            dwarf,
            files: FileTable::default(),
            tables: Vec::new(),
            warnings: Vec::new(),
            seen: HashSet::new(),
            budget: HEADERS.saturating_mul(lines),
            is_exhausted: false,
            text: PATHS.saturating_mul(lines).saturating_add(1 << 20),
        }
    }

    pub(super) fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    /// Reads a unit's line table, and returns the unit for later use.
    pub(super) fn unit(&mut self, header: UnitHeader<Slice<'a>>) -> Option<Unit<'a>> {
        let at = header.offset().0;
        if self.is_exhausted {
            return None;
        }
        let mut unit = match self.dwarf.unit(header) {
            Ok(unit) => unit,
            Err(error) => {
                self.warn(format!("unit at 0x{at:x} of .debug_info: {error}"));
                return None;
            }
        };
        let mut files = Vec::new();
        if let Some(program) = unit.line_program.take() {
            let header = program.header();
            let entries = header.file_names().len() + header.include_directories().len();
            self.budget = self
                .budget
                .saturating_sub(entries.max(header.header_length()));
            if self.budget == 0 {
                self.is_exhausted = true;
                self.warn(format!(
                    "unit at 0x{at:x} of .debug_info: its line table is shared \
                    too often; the unit and all later units are left out"
                ));
                return None;
            }
            let left = self.text;
            files = self.files.enter(self.dwarf, &unit, header, &mut self.text);
            if self.text == 0 && left > 0 {
                self.warn(format!(
                    "unit at 0x{at:x} of .debug_info: the paths of its files are \
                    far longer than the line table; the other paths are left out"
                ));
            }
            if self.seen.insert(header.offset().0) {
                self.tables.push(Table {
                    unit: at,
                    offset: header.offset(),
                    address_size: unit.header.address_size(),
                    comp_dir: unit.comp_dir,
                    comp_name: unit.name,
                    files: files.clone(),
                });
            }
        }
        Some(Unit { dwarf: unit, files })
    }

    /// Runs the line tables, in parallel if they are long enough.
    fn run(&mut self) -> Ran {
        let tables = &self.tables;
        let lines = self.sections.custom(".debug_line");
        let (sections, debug_line) = (self.sections, self.dwarf.debug_line);
        let each = |at: usize| {
            let mut ran = Ran::default();
            let done = ran.table(&tables[at], debug_line, sections);
            (ran, done)
        };
        let all = if lines.is_some_and(|(data, _)| data.len() > SHORT) {
            afterimage_parallel::map(tables.len(), each)
        } else {
            (0..tables.len()).map(each).collect()
        };
        let mut warnings = Vec::new();
        let mut ran = Ran::default();
        for ((own, done), table) in all.into_iter().zip(tables) {
            ran.sequences.extend(own.sequences);
            ran.rows_without_file += own.rows_without_file;
            if let Err(error) = done {
                let at = table.unit;
                warnings.push(format!(
                    "line table of the unit at 0x{at:x} of .debug_info: {error}"
                ));
            }
        }
        self.warnings.extend(warnings);
        ran
    }

    /// Chooses among several sequences for one function. If many units defined a weak or inline
    /// function, all their tables point to the definition that the linker chose. The first of the
    /// sequences that fit this definition best is used.
    pub(super) fn finish(mut self) -> Lines<'a> {
        let Ran {
            mut sequences,
            rows_without_file,
        } = self.run();
        let claims = sequences.iter().map(|sequence| sequence.range.clone());
        let fit = Fit::of_sequences(&self.sections.bodies, &self.sections.operators, claims);
        for sequence in &mut sequences {
            sequence.place = match () {
                () if fit.fits(&sequence.range) => InBodies::Exact,
                () if fit.is_part(&sequence.range) => InBodies::Part,
                () => InBodies::Across,
            };
        }
        sequences.sort_by_key(|sequence| sequence.place);
        let mut chosen: BTreeMap<OrigOffset, Sequence> = BTreeMap::new();
        for sequence in sequences {
            let before = chosen.range(..sequence.range.end).next_back();
            if before.is_none_or(|(_, before)| before.range.end <= sequence.range.start) {
                chosen.insert(sequence.range.start, sequence);
            }
        }
        if rows_without_file > 0 {
            self.warn(format!(
                "{rows_without_file} rows of the line tables name a file that does not exist"
            ));
        }
        let all = chosen.values().map(|sequence| sequence.rows.len()).sum();
        let mut rows = Vec::with_capacity(all);
        let (mut parts, mut refused) = (Vec::new(), Vec::new());
        for sequence in chosen.into_values() {
            match sequence.place {
                InBodies::Exact => rows.extend(sequence.rows),
                InBodies::Part => parts.push(sequence.rows),
                InBodies::Across => refused.extend(sequence.rows),
            }
        }
        Lines {
            files: self.files,
            rows,
            parts,
            refused,
            fit,
            tables: self.tables,
            warnings: self.warnings,
        }
    }
}

impl Ran {
    /// Runs a line table. A sequence is kept if it begins in the code section.
    fn table<'a>(
        &mut self,
        table: &Table<'a>,
        debug_line: gimli::DebugLine<Slice<'a>>,
        sections: &Sections<'_>,
    ) -> gimli::Result<()> {
        let files = &table.files;
        let program = debug_line.program(
            table.offset,
            table.address_size,
            table.comp_dir,
            table.comp_name,
        )?;
        let mut rows = program.rows();
        let mut open: Option<OpenSequence> = None;
        while let Some((_, row)) = rows.next_row()? {
            let address = row.address();
            let sequence = open.get_or_insert_with(|| OpenSequence {
                start: address,
                // Only removed code begins at the start of the code section.
                kept: address > 0 && sections.offset(address).is_some(),
                ..OpenSequence::default()
            });
            let before = sequence.advance(address, sections);
            if row.end_sequence() {
                self.sequences
                    .extend(open.take().and_then(|open| open.close(address, sections)));
                continue;
            }
            let file = files.get(row.file_index() as usize).copied().flatten();
            let line = row.line().and_then(|line| u32::try_from(line.get()).ok());
            self.rows_without_file +=
                usize::from(sequence.kept && line.is_some() && file.is_none());
            let column = match row.column() {
                ColumnType::LeftEdge => 0,
                ColumnType::Column(column) => u32::try_from(column.get()).unwrap_or(0),
            };
            let location = file
                .zip(line)
                .map(|(file, line)| Location { file, line, column });
            // If several rows have one address, the last row applies, but an earlier prologue end
            // remains.
            let ends = |last: &LastRow| last.prologue_end && last.address == address;
            let prologue_end = row.prologue_end() || before.as_ref().is_some_and(ends);
            sequence.last = location.map(|location| LastRow {
                address,
                location,
                is_statement: row.is_stmt(),
                prologue_end,
            });
        }
        Ok(())
    }
}

impl<'a> Table<'a> {
    /// Calls `each` with the places of removed code. Errors are ignored, because they were reported
    /// when the table was first run.
    pub(super) fn removed(
        &self,
        debug_line: gimli::DebugLine<Slice<'a>>,
        mut each: impl FnMut(FileId, u32),
    ) -> gimli::Result<()> {
        let mut program = debug_line.program(
            self.offset,
            self.address_size,
            self.comp_dir,
            self.comp_name,
        )?;
        let header = program.header().clone();
        let mut instructions = header.instructions();
        let (mut row, mut is_removed) = (LineRow::new(&header), false);
        while let Some(instruction) = instructions.next_instruction(&header)? {
            if let LineInstruction::SetAddress(address) = instruction {
                is_removed = super::entries::is_tombstone(address, self.address_size);
            }
            if !row.execute(instruction, &mut program)? {
                continue;
            }
            if row.end_sequence() {
                (row, is_removed) = (LineRow::new(&header), false);
                continue;
            }
            let file = self.files.get(row.file_index() as usize).copied().flatten();
            let line = row.line().and_then(|line| u32::try_from(line.get()).ok());
            if let (true, Some(file), Some(line)) = (is_removed, file, line) {
                each(file, line);
            }
        }
        Ok(())
    }
}

/// A sequence whose end has not been read yet.
#[derive(Default)]
struct OpenSequence {
    start: u64,
    kept: bool,
    rows: Vec<Row>,
    /// The last row with a source location. It extends to the next row.
    last: Option<LastRow>,
}

/// A row whose end has not been read yet.
struct LastRow {
    address: u64,
    location: Location,
    is_statement: bool,
    prologue_end: bool,
}

impl OpenSequence {
    /// Ends the last row at the beginning of the next row, and returns it. A decreasing address
    /// makes a row empty.
    fn advance(&mut self, address: u64, sections: &Sections<'_>) -> Option<LastRow> {
        let last = self.last.take()?;
        let floor = self.rows.last().map(|row| row.range.end);
        let range = sections.offset(last.address).zip(sections.offset(address));
        if let Some((from, to)) = range
            && self.kept
            && from < to
            && floor.is_none_or(|floor| floor <= from)
        {
            self.rows.push(Row {
                range: from..to,
                location: last.location,
                is_statement: last.is_statement,
                prologue_end: last.prologue_end,
            });
        }
        Some(last)
    }

    fn close(self, end: u64, sections: &Sections<'_>) -> Option<Sequence> {
        let (start, end) = (sections.offset(self.start)?, sections.offset(end)?);
        let rows = self.rows;
        // Rows are cut off at the end of their sequence.
        let within = rows
            .iter()
            .all(|row| start <= row.range.start && row.range.end <= end);
        (self.kept && start < end && within).then_some(Sequence {
            range: start..end,
            rows,
            place: InBodies::Across,
        })
    }
}
