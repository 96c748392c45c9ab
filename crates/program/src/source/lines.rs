//! Decoding of line tables.

use std::collections::HashSet;

use gimli::{ColumnType, UnitHeader};

use super::{FileId, FileTable, Location, Row, Slice, Unit};
use crate::sections::Sections;

/// Collects rows and files unit by unit.
pub(super) struct LineReader<'s, 'a> {
    sections: &'s Sections<'a>,
    dwarf: &'s gimli::Dwarf<Slice<'a>>,
    files: FileTable,
    rows: Vec<Row>,
    warnings: Vec<String>,
    /// The line tables read so far. Units may share one.
    seen: HashSet<usize>,
    /// How many more file entries are read: hostile units could all name one huge table.
    budget: usize,
    rows_without_file: usize,
}

impl<'s, 'a> LineReader<'s, 'a> {
    pub(super) fn new(sections: &'s Sections<'a>, dwarf: &'s gimli::Dwarf<Slice<'a>>) -> Self {
        // An entry takes at least two bytes, and a unit rarely shares its table.
        let lines = sections.custom(".debug_line").map_or(0, |(data, _)| data.len());
        Self {
            sections,
            dwarf,
            files: FileTable::default(),
            rows: Vec::new(),
            warnings: Vec::new(),
            seen: HashSet::new(),
            budget: 16 * lines,
            rows_without_file: 0,
        }
    }

    pub(super) fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    /// Reads a unit's line table, and gives the unit back for later.
    pub(super) fn unit(&mut self, header: UnitHeader<Slice<'a>>) -> Option<Unit<'a>> {
        let at = header.offset().0;
        let mut unit = match self.dwarf.unit(header) {
            Ok(unit) => unit,
            Err(error) => {
                self.warn(format!("unit at 0x{at:x} of .debug_info: {error}"));
                return None;
            }
        };
        let mut files = Vec::new();
        if let Some(program) = unit.line_program.take() {
            let entries = program.header().file_names().len();
            let Some(budget) = self.budget.checked_sub(entries) else {
                self.warn(format!("unit at 0x{at:x} of .debug_info: its line table is left out, as it is shared too often"));
                return None;
            };
            self.budget = budget;
            files = self.files.enter(self.dwarf, &unit, program.header());
            if self.seen.insert(program.header().offset().0)
                && let Err(error) = self.program(program, &files)
            {
                self.warn(format!("line table of the unit at 0x{at:x} of .debug_info: {error}"));
            }
        }
        Some(Unit { dwarf: unit, files })
    }

    /// Runs a line program. A sequence is kept if it begins in a function.
    fn program(
        &mut self,
        program: gimli::IncompleteLineProgram<Slice<'a>>,
        files: &[Option<FileId>],
    ) -> gimli::Result<()> {
        let mut rows = program.rows();
        // The row whose end is not known yet, and its address.
        let mut open: Option<(u64, Option<Location>, bool)> = None;
        let mut kept = false;
        while let Some((_, row)) = rows.next_row()? {
            let address = row.address();
            match open {
                None => kept = self.sections.body_at(address).is_some(),
                Some((start, Some(location), is_statement)) if kept => {
                    if let (true, Some(from), Some(to)) =
                        (start < address, self.sections.offset(start), self.sections.offset(address))
                    {
                        self.rows.push(Row { range: from..to, location, is_statement });
                    }
                }
                Some(_) => {}
            }
            if row.end_sequence() {
                open = None;
                continue;
            }
            let file = files.get(row.file_index() as usize).copied().flatten();
            let line = row.line().and_then(|line| u32::try_from(line.get()).ok());
            self.rows_without_file += usize::from(kept && line.is_some() && file.is_none());
            let column = match row.column() {
                ColumnType::LeftEdge => 0,
                ColumnType::Column(column) => u32::try_from(column.get()).unwrap_or(0),
            };
            let location = file.zip(line).map(|(file, line)| Location { file, line, column });
            open = Some((address, location, row.is_stmt()));
        }
        Ok(())
    }

    /// Files, sorted rows, warnings.
    pub(super) fn finish(mut self) -> (FileTable, Vec<Row>, Vec<String>) {
        self.rows.sort_by_key(|row| row.range.start);
        let all = self.rows.len();
        let mut end = Default::default();
        self.rows.retain(|row| {
            let apart = row.range.start >= end;
            if apart {
                end = row.range.end;
            }
            apart
        });
        let overlapping = all - self.rows.len();
        if overlapping > 0 {
            self.warn(format!("{overlapping} rows of the line tables overlap others and are left out"));
        }
        if self.rows_without_file > 0 {
            let rows = self.rows_without_file;
            self.warn(format!("{rows} rows of the line tables name a file that does not exist"));
        }
        (self.files, self.rows, self.warnings)
    }
}
