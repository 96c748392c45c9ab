//! Annotates source text with counts.
//!
//! The form follows gcov. A line with code that never ran is marked `#####`, and a line without
//! code is marked `-`. If no source is available, the function's operators take its place.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write;

use afterimage_profile::{
    CodeFilter, Folded, FunctionRow, LineCount, Profile, Scope, is_library_name,
};
use afterimage_program::NoDebug;

use crate::listing::listing;
use crate::number::{counted, grouped, percent};
use crate::sources::Cache;
use crate::table::{Paint, plain, width};
use crate::text::summary;
use crate::{PresentError, Sources, Style};

/// The files and functions to annotate.
#[derive(Clone, Debug)]
pub struct Annotation {
    /// The functions to annotate. If all functions are selected, whole files are shown. Otherwise,
    /// only the lines that the functions cover are shown, with two lines of context.
    pub scope: Scope,
    /// The maximum number of functions without available source to write as WebAssembly text. The
    /// functions with the most executed instructions come first. The report only counts the others.
    pub listings: usize,
    /// The code to annotate. If the program has no such code, all code is annotated.
    pub code: Option<CodeFilter>,
}

/// The maximum number of missing files to name. The report only counts the others.
const MISSING: usize = 10;

/// Writes source files with the arrivals at each line, and the line's share of the program's
/// instructions. The file with the most executed instructions comes first.
///
/// # Errors
/// Returns an error if `out` fails or the profile cannot be evaluated.
pub fn annotate(
    out: &mut dyn Write,
    profile: &Profile<'_>,
    annotation: &Annotation,
    sources: &dyn Sources,
    style: Style,
) -> Result<(), PresentError> {
    summary(out, profile.totals())?;
    let mut files = HashMap::<&str, File>::new();
    let mut rows = profile.line_rows(&annotation.scope)?;
    let folded = annotation.code.as_ref();
    let folded = folded.map(|code| Folded::new(profile.source(), code));
    let shows = |at| folded.as_ref().is_none_or(|folded| folded.shows(at));
    let is_own = rows.iter().any(|row| shows(row.line.file));
    let shows = |at| !is_own || shows(at);
    let mut left_out = (BTreeSet::new(), 0);
    rows.retain(|row| {
        let keeps = shows(row.line.file);
        if !keeps {
            left_out.0.insert(row.line.file);
            left_out.1 += row.instructions;
        }
        keeps
    });
    for row in rows {
        let file = files.entry(profile.file(row.line.file)).or_default();
        let count = LineCount {
            arrivals: row.count,
            instructions: row.instructions,
        };
        file.lines.insert(row.line.number, count);
        file.instructions += row.instructions;
    }
    let missing = profile.source().missing();
    if missing != NoDebug::Nowhere {
        if files.is_empty() {
            writeln!(out, "\nno source line is known: {missing}")?;
        } else {
            writeln!(out, "\nsome code may have no line{}", missing.hint())?;
        }
    }
    let mut ordered: Vec<_> = files.into_iter().collect();
    ordered.sort_unstable_by_key(|(path, file)| (std::cmp::Reverse(file.instructions), *path));
    let mut cache = Cache::new(sources);
    let mut at_hand = BTreeSet::new();
    let whole = annotation.scope == Scope::All;
    let (mut never_ran, mut missing) = (0, Vec::new());
    for (path, file) in &ordered {
        if whole && file.instructions == 0 {
            never_ran += 1;
        } else if let Some(text) = cache.file(path) {
            at_hand.insert(*path);
            let source = SourceText { path, lines: text };
            file.write(out, profile, source, whole, style)?;
        } else {
            missing.push((*path, file.instructions));
        }
    }
    let total = profile.totals().instructions;
    if !missing.is_empty() {
        writeln!(
            out,
            "\nSources not found; say where they are with --source-path OLD=NEW:"
        )?;
        let (listed, rest) = missing.split_at(missing.len().min(MISSING));
        for (path, instructions) in listed {
            writeln!(
                out,
                "  {:>6}  {}",
                percent(*instructions, total),
                plain(path)
            )?;
        }
        if !rest.is_empty() {
            let instructions = rest.iter().map(|file| file.1).sum();
            let files = counted(rest.len() as u64, "more file");
            writeln!(out, "  {:>6}  … {files}", percent(instructions, total))?;
        }
    }
    if never_ran > 0 {
        writeln!(out, "\n{} never ran", counted(never_ran, "more file"))?;
    }

    let is_at_hand = |row: &FunctionRow| {
        row.position
            .is_some_and(|position| at_hand.contains(profile.file(position.file)))
    };
    let is_shown = |row: &FunctionRow| match row.position {
        Some(at) => shows(at.file),
        None => !is_own || !is_library_name(profile.names().function(row.function)),
    };
    let mut rows = profile.function_rows(&annotation.scope)?;
    rows.retain(|row| (!whole || row.blocks > 0) && is_shown(row) && !is_at_hand(row));
    rows.sort_by_key(|row| std::cmp::Reverse(row.instructions));
    let (written, rest) = rows.split_at(annotation.listings.min(rows.len()));
    listing(out, profile, written, style)?;
    if !rest.is_empty() {
        let n = counted(rest.len() as u64, "more function");
        writeln!(out, "\n{n} without source")?;
    }
    let (files, instructions) = left_out;
    if !files.is_empty() {
        let what = match annotation.code {
            Some(CodeFilter::Files(_)) => "other code",
            _ => "library code",
        };
        writeln!(
            out,
            "\n{what}: {} with {} of the instructions; --code all shows them",
            counted(files.len() as u64, "file"),
            percent(instructions, total)
        )?;
    }
    Ok(())
}

/// The text of a file.
#[derive(Clone, Copy)]
struct SourceText<'t> {
    path: &'t str,
    lines: &'t [String],
}

/// The lines of one file that have code.
#[derive(Default)]
struct File {
    lines: BTreeMap<u32, LineCount>,
    instructions: u64,
}

impl File {
    fn write(
        &self,
        out: &mut dyn Write,
        profile: &Profile<'_>,
        source: SourceText<'_>,
        whole: bool,
        style: Style,
    ) -> Result<(), PresentError> {
        let SourceText { path, lines: text } = source;
        let total = profile.totals().instructions;
        let title = format!(
            "{} ({} of all instructions)",
            path,
            percent(self.instructions, total)
        );
        writeln!(out, "\n{}", style.paint(Paint::Bold, &plain(&title)))?;
        let counts = self
            .lines
            .values()
            .map(|line| width(&grouped(line.arrivals)));
        let count_width = counts.max().unwrap_or(0).max("#####".len());
        let number_width = text.len().to_string().len().max("line".len());
        let header = format!(
            "{:>count_width$} {:>6} {:>number_width$}",
            "count", "share", "line"
        );
        writeln!(out, "{}", style.paint(Paint::Bold, &header))?;
        // The debug information may come from a different version of the file, with more lines.
        let beyond = self
            .lines
            .keys()
            .copied()
            .filter(|&number| number as usize > text.len());
        let numbers = (1..=text.len() as u32).chain(beyond);
        let mut last = 0;
        for number in numbers.filter(|&number| whole || self.is_near(number)) {
            if last + 1 < number && last > 0 {
                writeln!(out, "{:>count_width$}", "…")?;
            }
            last = number;
            let (count, share, paint) = match self.lines.get(&number) {
                // Other functions may have code on this line.
                None if !whole => (String::new(), String::new(), Paint::Plain),
                None => ("-".to_owned(), String::new(), Paint::Plain),
                Some(LineCount {
                    arrivals: 0,
                    instructions: 0,
                }) => ("#####".to_owned(), String::new(), Paint::Dead),
                Some(line) => (
                    grouped(line.arrivals),
                    percent(line.instructions, total),
                    Paint::of_share(line.instructions, total),
                ),
            };
            let code = text
                .get(number as usize - 1)
                .map(|line| plain(line))
                .unwrap_or_default();
            let line = format!("{count:>count_width$} {share:>6} {number:>number_width$}  {code}");
            writeln!(out, "{}", style.paint(paint, line.trim_end()))?;
        }
        Ok(())
    }

    /// Whether the line, or a line at most two lines away, has code.
    fn is_near(&self, number: u32) -> bool {
        let around = number.saturating_sub(2)..=number.saturating_add(2);
        self.lines.range(around).next().is_some()
    }
}
