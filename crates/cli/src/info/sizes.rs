//! `afterimage info --sizes`: which bytes tell what.

use std::io::Write;

use afterimage_present::grouped;
use afterimage_replay::paths::RecordedPath;
use afterimage_replay::values::{Original, RecordedValues};
use afterimage_trace::{Kind, SectionInfo, TraceFile};
use afterimage_wet::FileEpochs;
use anyhow::Result;
use serde::Serialize;

use super::significant;

/// Bytes that a statement takes originally in Table I of Zhang and Gupta (2005): 9588.99 MiB for 646.9 million statements.
const TABLE_I: f64 = 9588.99 * 1_048_576.0 / 646.9e6;

/// The bytes that questions about values are answered from, by what they tell: a stream's class, and what is left of it by each tier.
#[derive(Debug, Serialize)]
pub(super) struct Streams {
    /// Statements of which values are kept.
    statements: u64,
    classes: Vec<Class>,
    /// All of them together.
    stored_bytes: i64,
    /// How many of these count for the part of the run that values are kept of.
    #[serde(skip)]
    counted: i64,
    bytes_per_statement: Option<f64>,
    /// Which part of the run's blocks values are kept of, if not all: of what tells of the whole run, so much is counted.
    of_part: Option<f64>,
    /// Of the papers' original form; `null` if functions were left out.
    original: Option<Form>,
}

/// The papers' original form of a run.
#[derive(Debug, Serialize)]
struct Form {
    /// With one control dependence per statement.
    bytes: u64,
    factor: f64,
    /// With one control dependence per block.
    factor_by_block: f64,
    /// With as many bytes per statement as in the paper's Table I.
    factor_by_table: f64,
}

/// What is told of one kind.
#[derive(Debug, Serialize)]
struct Class {
    name: &'static str,
    /// What it takes in the papers' original form.
    original_bytes: Option<u64>,
    parts: Vec<Part>,
}

/// A part of it.
#[derive(Debug, Serialize)]
struct Part {
    name: &'static str,
    /// The numbers that tier 1 leaves, as wide as in the original form. `null` where nothing is counted.
    tier1_bytes: Option<u64>,
    /// What they take in the file. Chunks may be packed to fewer bytes than were put into them.
    stored_bytes: i64,
    /// How many of these count for the part of the run that values are kept of.
    #[serde(skip)]
    counted: i64,
}

impl Class {
    fn new(name: &'static str, original_bytes: Option<u64>) -> Self {
        Self {
            name,
            original_bytes,
            parts: Vec::new(),
        }
    }

    fn part(mut self, name: &'static str, tier1_bytes: Option<u64>, stored_bytes: i64) -> Self {
        self.parts.push(Part {
            name,
            tier1_bytes,
            stored_bytes,
            counted: stored_bytes,
        });
        self
    }

    /// The same for what tells of the whole run, of which only a part counts.
    fn whole(self, name: &'static str, tier1_bytes: Option<u64>, stored: u64, part: f64) -> Self {
        let mut class = self.part(name, tier1_bytes, signed(stored));
        if let Some(last) = class.parts.last_mut() {
            last.counted = signed((stored as f64 * part).round() as u64);
        }
        class
    }

    fn counted(&self) -> i64 {
        self.parts.iter().map(|part| part.counted).sum()
    }

    fn stored(&self) -> i64 {
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

impl Streams {
    /// Those of a file.
    pub(super) fn of(
        file: &TraceFile,
        path: &RecordedPath,
        epochs: &FileEpochs,
        values: &RecordedValues<'_>,
        in_use: &InUse<'_>,
    ) -> Result<Self> {
        let all = file.sections()?;
        let stored = |position: usize| all.get(position).map_or(0, |found| found.stored);
        // Without what the file adds to each chunk.
        let payload = |position: usize| file.section(position).map_or(0, |found| found.stored());
        let last = |kind: Kind| {
            let is_it = |section: &SectionInfo| section.kind == kind && section.complete;
            all.iter().rposition(is_it)
        };
        let mut sum = afterimage_wet::Sizes::default();
        let mut statements = 0;
        for index in epochs.windows() {
            let one = index.sizes;
            for (sum, one) in [
                (&mut sum.labels, one.labels),
                (&mut sum.far, one.far),
                (&mut sum.values, one.values),
                (&mut sum.copies, one.copies),
            ] {
                sum.0 += one.0;
                sum.1 += one.1;
            }
            sum.directory += one.directory;
            statements += index.statements;
        }
        let told = sum.labels.0 + sum.far.0 + sum.values.0 + sum.copies.0 + sum.directory;
        let path_sections = [last(Kind::PATHS), last(Kind::PATH_INDEX)];
        let path_sections = Vec::from_iter(path_sections.into_iter().flatten());
        let log_section = last(Kind::LOG);
        let grammars = Vec::from_iter(in_use.grammars);
        let printed = Vec::from_iter(last(Kind::PRINTED));
        let checkpoints = in_use.checkpoints.as_deref().unwrap_or_default();
        let of_values = epochs
            .sections()
            .flat_map(|(values, index)| [values, index]);
        let used = of_values.chain(path_sections.iter().copied());
        let used = used.chain(log_section).chain(grammars.iter().copied());
        let used = used.chain(checkpoints.iter().copied());
        let used = used.chain(printed.iter().copied());
        let used: u64 = used.map(stored).sum();
        let bytes_of = |sections: &[usize]| sections.iter().copied().map(payload).sum::<u64>();
        let (path_bytes, log) = (bytes_of(&path_sections), log_section.map_or(0, payload));
        let (of_checkpoints, of_grammars) = (bytes_of(checkpoints), bytes_of(&grammars));
        let of_printed = bytes_of(&printed);
        let beside = of_grammars + of_checkpoints + of_printed;
        let windows = epochs.windows().map(|index| (index.first, index.length));
        let windows = Vec::from_iter(windows);
        let is_whole = windows == [(1, path.length())];
        let original = match epochs.windows().all(|index| index.left_out.is_nothing()) {
            true if is_whole => Some(Original::of(values)?),
            true => Some(Original::of_windows(values, &windows)?),
            // Without some functions nobody knows what would have been stored of the rest.
            false => None,
        };
        // What tells of the whole run counts for a part in proportion to its blocks.
        let part = match &original {
            Some(original) if !is_whole => original.blocks as f64 / path.length().max(1) as f64,
            _ => 1.0,
        };
        let labels = |count: u64| Some(count.saturating_mul(Original::LABEL));
        let words = |count: u64| Some(count.saturating_mul(Original::WORD));
        let of = |bytes: fn(&Original) -> u64| original.as_ref().map(bytes);
        let classes = vec![
            Class::new("timestamps", of(Original::of_times)).whole(
                "the path",
                original.and_then(|original| words(original.nodes)),
                path_bytes,
                part,
            ),
            Class::new("values", of(Original::of_values))
                .part("kept values", words(sum.values.1), signed(sum.values.0))
                .whole("what the host gave: the log", None, log, part),
            Class::new("dependences", of(|original| original.of_dependences(false)))
                .part(
                    "who wrote what is read",
                    labels(sum.labels.1),
                    signed(sum.labels.0),
                )
                .part(
                    "who wrote variables long before",
                    labels(sum.far.1),
                    signed(sum.far.0),
                )
                .part(
                    "runs of bytes that were copied",
                    labels(sum.copies.1),
                    signed(sum.copies.0),
                )
                .part("directories", None, signed(sum.directory)),
            // Chunks are packed whole, whatever is in them.
            Class::new("what chunks add, less what packing saves", None).part(
                "frame",
                None,
                signed(used) - signed(told + path_bytes + log + beside),
            ),
            Class::new("the path as it is opened", None).whole("grammars", None, of_grammars, part),
            Class::new("checkpoints", None).part("checkpoints", None, signed(of_checkpoints)),
            Class::new("what was printed", None).whole("printed", None, of_printed, part),
        ];
        let stored_bytes = classes.iter().map(Class::stored).sum::<i64>();
        let counted = classes.iter().map(Class::counted).sum::<i64>();
        let factor = |bytes: f64| bytes / counted.max(1) as f64;
        Ok(Self {
            statements,
            classes,
            stored_bytes,
            counted,
            bytes_per_statement: (statements > 0).then(|| counted as f64 / statements as f64),
            of_part: (part < 1.0).then_some(part),
            original: original.map(|original| Form {
                bytes: original.bytes(false),
                factor: factor(original.bytes(false) as f64),
                factor_by_block: factor(original.bytes(true) as f64),
                factor_by_table: factor(TABLE_I * statements as f64),
            }),
        })
    }

    /// Writes them as a table.
    pub(super) fn text(&self, out: &mut dyn Write) -> Result<()> {
        writeln!(out)?;
        let head = ["originally", "tier 1", "tier 2", "B/statement", "factor"];
        line(out, "bytes of the values and of what they need", head)?;
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
                "values are kept without some functions: the original form of the others is not known"
            )?,
            Some(form) => writeln!(
                out,
                "Originally: 4 bytes of time per statement, 4 per value, 8 per dependence, as Zhang and Gupta (2005) count; factor {} with one control\ndependence per block, {} with the {} bytes per statement of their Table I. Tier 1: what the path, the code and other values do not tell, as\nwide; tier 2: as it is in the file",
                significant_factor(form.factor_by_block),
                significant_factor(form.factor_by_table),
                significant(TABLE_I),
            )?,
        }
        if let Some(part) = self.of_part {
            writeln!(
                out,
                "Values are kept of {:.1} % of the run's blocks: so much of the path and of the log counts per statement and for factors",
                100.0 * part
            )?;
        }
        Ok(())
    }
}

fn line(out: &mut dyn Write, name: &str, columns: [&str; 5]) -> Result<()> {
    let [original, tier1, tier2, each, factor] = columns;
    let line = format!("{name:<48}{original:>17} {tier1:>17} {tier2:>15} {each:>12} {factor:>9}");
    writeln!(out, "{}", line.trim_end())?;
    Ok(())
}

/// A factor with one decimal, if it is small.
fn significant_factor(factor: f64) -> String {
    if factor < 1000.0 {
        format!("{factor:.1}")
    } else {
        grouped(factor.round() as u64)
    }
}

/// A section of the file.
#[derive(Debug, Serialize)]
pub(super) struct SectionRow {
    kind: String,
    name: Option<String>,
    /// The first and the last block of the window that it tells of, of the sections of values.
    window: Option<(u64, u64)>,
    /// Something later is used instead.
    replaced: bool,
    pub(super) stored_bytes: u64,
    raw_bytes: u64,
    chunks: u64,
}

/// Of sections with the same one, the last one is used.
fn role(section: &SectionInfo) -> (Kind, Option<String>) {
    match section.kind {
        kind @ (Kind::SIMULATION | Kind::SLICE) => (kind, section.name.clone()),
        kind => (kind, None),
    }
}

/// Which sections hold, of those kinds of which the order alone does not tell.
pub(super) struct InUse<'a> {
    /// What is known of the values.
    pub(super) epochs: Option<&'a FileEpochs>,
    /// The section with the path's opened grammars.
    pub(super) grammars: Option<usize>,
    /// Those with checkpoints, if these can be read.
    pub(super) checkpoints: Option<Vec<usize>>,
}

impl SectionRow {
    /// Those of a file.
    pub(super) fn all(file: &TraceFile, in_use: &InUse<'_>) -> Result<Vec<Self>> {
        let epochs = in_use.epochs;
        let sections = file.sections()?;
        let mut windows = vec![None; sections.len()];
        if let Some(epochs) = epochs {
            for (index, (values, of_index)) in epochs.windows().zip(epochs.sections()) {
                windows[values] = Some((index.first, index.length));
                windows[of_index] = windows[values];
            }
        }
        let mut last = std::collections::HashMap::new();
        for (position, section) in sections.iter().enumerate() {
            last.insert(role(section), position);
        }
        let rows = sections.iter().enumerate().map(|(position, section)| {
            let replaced = match section.kind {
                Kind::VALUES | Kind::VALUES_INDEX => {
                    epochs.is_some() && windows[position].is_none()
                }
                // Those of several windows are used together.
                Kind::CHECKPOINTS => {
                    let own = in_use.checkpoints.as_ref();
                    own.is_some_and(|own| !own.contains(&position))
                }
                Kind::PATH_GRAMMARS => in_use.grammars != Some(position),
                _ => last.get(&role(section)) != Some(&position),
            };
            Self {
                kind: section.kind.to_string(),
                name: section.name.clone(),
                window: windows[position],
                replaced,
                stored_bytes: section.stored,
                raw_bytes: section.raw,
                chunks: section.chunks,
            }
        });
        Ok(rows.collect())
    }

    fn title(&self) -> String {
        let mut title = self.kind.clone();
        if let Some(name) = &self.name {
            title += &format!(" {name}");
        }
        if let Some((first, last)) = self.window {
            title += &format!(" t={}..{}", grouped(first), grouped(last));
        }
        if self.replaced {
            title += " (replaced)";
        }
        crate::output::harmless(&title)
    }
}

/// Writes all sections, and what else the file consists of.
pub(super) fn sections(
    out: &mut dyn Write,
    rows: &[SectionRow],
    length: u64,
    (why, ignored): (&str, u64),
) -> Result<()> {
    let titles = Vec::from_iter(rows.iter().map(SectionRow::title));
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
