//! Reports what the bytes of a recording contain.

use std::io::Write;

use schemars::JsonSchema;
use serde::Serialize;

use super::significant;
use crate::PresentError;
use crate::number::grouped;
use crate::plain::plain;

/// The bytes that answer questions about values, by kind of data.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InfoStreams {
    /// The number of statements with stored values.
    pub statements: u64,
    /// The bytes by kind of data.
    pub classes: Vec<InfoClass>,
    /// The total number of bytes that answer questions about values.
    pub stored_bytes: i64,
    /// The number of bytes attributed to the part of the run with stored values.
    #[serde(skip)]
    pub counted: i64,
    /// The number of bytes that answer questions about values, per statement with stored values.
    pub bytes_per_statement: Option<f64>,
    /// The share of the run's blocks with stored values, if some blocks have none. Data about the
    /// whole run counts in this proportion.
    pub of_part: Option<f64>,
    /// The sizes in the papers' uncompressed form; `null` if functions were left out.
    pub original: Option<InfoOriginal>,
}

/// A run in the papers' uncompressed form: 4 bytes of time for each statement, 4 for each value and
/// 8 for each dependence (Zhang and Gupta 2005).
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InfoOriginal {
    /// The size of the uncompressed form in bytes, with one control dependence for each statement.
    pub bytes: u64,
    /// The factor by which the file is smaller than `bytes`.
    pub factor: f64,
    /// The same factor, but with one control dependence counted for each block.
    pub factor_by_block: f64,
    /// The same factor, but computed with the bytes per statement from Table I of the paper.
    pub factor_by_table: f64,
}

impl InfoOriginal {
    /// The original size of a statement in Table I of Zhang and Gupta (2005), in bytes: 9588.99 MiB
    /// for 646.9 million statements.
    pub const TABLE_I: f64 = 9588.99 * 1_048_576.0 / 646.9e6;
}

/// The bytes of one kind of data.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InfoClass {
    /// The kind of data.
    pub name: &'static str,
    /// Its size in the papers' original form.
    pub original_bytes: Option<u64>,
    /// Its parts.
    pub parts: Vec<InfoStream>,
}

/// A part of a class.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InfoStream {
    /// Its contents.
    pub name: &'static str,
    /// The size in bytes of the numbers that remain after tier 1, with the widths of the original
    /// form; `null` if no numbers are counted.
    pub tier1_bytes: Option<u64>,
    /// Its size in the file. It may be negative, because compressed chunks may have fewer bytes
    /// than their contents.
    pub stored_bytes: i64,
    /// The number of bytes attributed to the part of the run with stored values.
    #[serde(skip)]
    pub counted: i64,
}

impl InfoClass {
    /// Creates a class without parts.
    pub fn new(name: &'static str, original_bytes: Option<u64>) -> Self {
        Self {
            name,
            original_bytes,
            parts: Vec::new(),
        }
    }

    /// Adds a part.
    pub fn part(mut self, name: &'static str, tier1_bytes: Option<u64>, stored_bytes: i64) -> Self {
        self.parts.push(InfoStream {
            name,
            tier1_bytes,
            stored_bytes,
            counted: stored_bytes,
        });
        self
    }

    /// Adds a part about the whole run. Only the share `part` of its bytes counts.
    pub fn whole(
        self,
        name: &'static str,
        tier1_bytes: Option<u64>,
        stored: u64,
        part: f64,
    ) -> Self {
        let mut class = self.part(name, tier1_bytes, signed(stored));
        if let Some(last) = class.parts.last_mut() {
            last.counted = signed((stored as f64 * part).round() as u64);
        }
        class
    }

    /// Returns the number of its bytes attributed to the part of the run with stored values.
    pub fn counted(&self) -> i64 {
        self.parts.iter().map(|part| part.counted).sum()
    }

    /// Returns its size in the file in bytes.
    pub fn stored(&self) -> i64 {
        self.parts.iter().map(|part| part.stored_bytes).sum()
    }

    fn tier1(&self) -> Option<u64> {
        let known = self.parts.iter().filter_map(|part| part.tier1_bytes);
        known.reduce(u64::saturating_add)
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

impl InfoStreams {
    /// Writes the table.
    pub(super) fn text(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        writeln!(out)?;
        let head = ["originally", "tier 1", "tier 2", "B/statement", "factor"];
        line(out, "bytes for the values and what they need", head)?;
        let number = |bytes: Option<u64>| bytes.map_or(String::new(), grouped);
        let stored = |bytes: i64| {
            if bytes < 0 {
                format!("-{}", grouped(bytes.unsigned_abs()))
            } else {
                grouped(bytes.unsigned_abs())
            }
        };
        let each = |bytes: i64| match self.statements {
            0 => String::new(),
            statements => format!("{:.4}", bytes as f64 / statements as f64),
        };
        let row = |original: Option<u64>, tier1: Option<u64>, bytes: i64, counted: i64| {
            let factor = original.filter(|_| counted > 0);
            let factor =
                factor.map(|original| significant_factor(original as f64 / counted as f64));
            [
                number(original),
                number(tier1),
                stored(bytes),
                each(counted),
                factor.unwrap_or_default(),
            ]
        };
        for class in &self.classes {
            let (stored, counted) = (class.stored(), class.counted());
            let found = row(class.original_bytes, class.tier1(), stored, counted);
            line(out, class.name, found.each_ref().map(String::as_str))?;
            for part in class.parts.iter().filter(|_| class.parts.len() > 1) {
                let found = row(None, part.tier1_bytes, part.stored_bytes, part.counted);
                let name = format!("  {}", part.name);
                line(out, &name, found.each_ref().map(String::as_str))?;
            }
        }
        let original = self.original.as_ref();
        let all = original.map(|form| form.bytes);
        let all = row(all, None, self.stored_bytes, self.counted);
        line(out, "all", all.each_ref().map(String::as_str))?;
        match original {
            None => writeln!(
                out,
                "the values of some functions were left out, so the size of the original form is not \
                 known"
            )?,
            Some(form) => writeln!(
                out,
                "The original form has 4 bytes of time per statement, 4 per value and 8 per dependence, \
                 as in Zhang and Gupta (2005).\nThe factor is {} with one control dependence per \
                 block, and {} with the {} bytes per statement of their Table I.\nThe column \
                 \"tier 1\" is the size of the numbers that do not follow from the path, the code \
                 and other values, at the same width.\nThe column \"tier 2\" is the size in the \
                 file.",
                significant_factor(form.factor_by_block),
                significant_factor(form.factor_by_table),
                significant(InfoOriginal::TABLE_I),
            )?,
        }
        if let Some(part) = self.of_part {
            writeln!(
                out,
                "Values are kept for {:.1} % of the run's blocks, so sizes per statement and factors \
                 include only this share of the path and of the log",
                100.0 * part
            )?;
        }
        Ok(())
    }
}

fn line(out: &mut dyn Write, name: &str, columns: [&str; 5]) -> Result<(), PresentError> {
    let [original, tier1, tier2, each, factor] = columns;
    let line = format!("{name:<48}{original:>17} {tier1:>17} {tier2:>15} {each:>12} {factor:>9}");
    writeln!(out, "{}", line.trim_end())?;
    Ok(())
}

/// Formats a factor, with one decimal if it is small.
fn significant_factor(factor: f64) -> String {
    if factor < 1000.0 {
        format!("{factor:.1}")
    } else {
        grouped(factor.round() as u64)
    }
}

/// A section of the file.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InfoSection {
    /// Its contents.
    pub kind: String,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The window of the values, if it is a section of values.
    pub window: Option<InfoWindow>,
    /// Whether a later section replaces it.
    pub replaced: bool,
    /// Its size in bytes.
    pub stored_bytes: u64,
    /// Its unpacked size in bytes.
    pub raw_bytes: u64,
    /// The number of its chunks.
    pub chunks: u64,
}

/// A part of a run.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct InfoWindow {
    /// The first block.
    pub first: u64,
    /// The last block.
    pub last: u64,
}

impl InfoSection {
    fn title(&self) -> String {
        let mut title = self.kind.clone();
        if let Some(name) = &self.name {
            title += &format!(" {name}");
        }
        if let Some(InfoWindow { first, last }) = self.window {
            title += &format!(" t={}..{}", grouped(first), grouped(last));
        }
        if self.replaced {
            title += " (replaced)";
        }
        plain(&title)
    }
}

/// Writes all sections, and the size of the rest of the file.
pub(super) fn sections(
    out: &mut dyn Write,
    rows: &[InfoSection],
    length: u64,
    (why, ignored): (&str, u64),
) -> Result<(), PresentError> {
    let titles = Vec::from_iter(rows.iter().map(InfoSection::title));
    let rest = "header, indexes and footers of the file";
    let widths = titles.iter().map(|title| title.chars().count());
    let width = widths.max().unwrap_or(0).max(rest.len());
    writeln!(out)?;
    writeln!(
        out,
        "{:<width$} {:>16} {:>16} {:>8}",
        "section", "bytes", "unpacked", "chunks"
    )?;
    for (row, title) in rows.iter().zip(&titles) {
        let (stored, raw) = (grouped(row.stored_bytes), grouped(row.raw_bytes));
        let chunks = grouped(row.chunks);
        writeln!(out, "{title:<width$} {stored:>16} {raw:>16} {chunks:>8}")?;
    }
    let stored: u64 = rows.iter().map(|row| row.stored_bytes).sum();
    let own = length.saturating_sub(stored).saturating_sub(ignored);
    writeln!(out, "{rest:<width$} {:>16}", grouped(own))?;
    if ignored > 0 {
        writeln!(out, "{why:<width$} {:>16}", grouped(ignored))?;
    }
    writeln!(out, "{:<width$} {:>16}", "the file", grouped(length))?;
    Ok(())
}
