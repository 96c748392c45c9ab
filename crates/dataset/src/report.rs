//! Defines the report of an export.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use afterimage_present::{counted, grouped, size};
use serde::Serialize;

use crate::schema::Table;

/// The tables and windows that an export wrote, and the windows that the data set still lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DatasetReport {
    /// The rows and the bytes of each table that was written.
    pub tables: BTreeMap<&'static str, TableSize>,
    /// The number of windows that were written.
    pub windows: u64,
    /// The number of windows of the data set.
    pub all: u64,
    /// The windows that are missing, because they were not requested or other processes are writing
    /// them.
    pub missing: Vec<u64>,
    /// Whether all parts of the data set exist.
    pub complete: bool,
}

/// The size of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TableSize {
    /// The number of rows.
    pub rows: u64,
    /// The size of its files in bytes.
    pub bytes: u64,
}

/// The report of an export, to which each written table adds its rows and bytes.
pub(crate) type Written = DatasetReport;

impl DatasetReport {
    pub(crate) fn add(&mut self, table: &'static Table, (rows, bytes): (u64, u64)) {
        let size = self.tables.entry(table.name).or_default();
        size.rows += rows;
        size.bytes += bytes;
    }

    /// Returns the missing windows as text, such as `3, 5..8`.
    fn missing_text(&self) -> String {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for &window in &self.missing {
            match ranges.last_mut() {
                Some((_, end)) if *end == window => *end += 1,
                _ => ranges.push((window, window + 1)),
            }
        }
        let ranges = ranges.iter().map(|(first, end)| match end - first {
            1 => first.to_string(),
            _ => format!("{first}..{end}"),
        });
        Vec::from_iter(ranges).join(", ")
    }
}

impl Display for DatasetReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.complete && self.tables.is_empty() {
            return write!(f, "already complete: {}", counted(self.all, "window"));
        }
        let rows = self.tables.values().map(|table| table.rows).sum::<u64>();
        let bytes = self.tables.values().map(|table| table.bytes).sum::<u64>();
        write!(
            f,
            "{} of {}, {} rows in {}",
            counted(self.windows, "window"),
            grouped(self.all),
            grouped(rows),
            size(bytes)
        )?;
        match (self.complete, self.missing.is_empty()) {
            (true, _) => Ok(()),
            (false, true) => f.write_str("; another process writes the tables about the whole run"),
            (false, false) => write!(f, "; still missing: window {}", self.missing_text()),
        }
    }
}
