//! Writes a profile as an HTML page: an overview by file, then each file with its counts.
//!
//! Takes the coverage and the source text, and writes one page. Code that never ran is marked with
//! a symbol, not only with a colour.

use std::collections::HashSet;
use std::io::Write;

use afterimage_ids::OpId;
use afterimage_profile::{CodeFilter, FunctionRow, OperatorCount, Profile, ProfileError, Scope};

use super::overview::{Entry, files, tiles};
use super::{Coverage, CoveredFile, Ran};
use crate::PresentError;
use crate::number::{counted, grouped};
use crate::page::{self, CountedLine, LEGEND, count, escaped};
use crate::profile::ProfileView;
use crate::text::summary;

/// The style of the overview, the lists of functions, and the marks of lines.
const STYLE: &str = "
section { content-visibility: auto; contain-intrinsic-size: auto 40rem; border-top: 1px solid var(--line); margin-top: 2.5rem } section h2 { margin: 1rem 0 .5rem }
.tiles { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.5rem 0 }
.tile { flex: 1 1 11rem; background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: .8rem 1rem }
.tile .name, .tile .of { display: block; color: var(--soft) } .tile strong { display: block; font-size: 1.7rem; font-weight: 650; line-height: 1.25; font-variant-numeric: tabular-nums }
.tile .bar { width: 100%; margin: .35rem 0 .45rem }
.bar { display: inline-block; vertical-align: middle; width: 7rem; height: 6px; border-radius: 3px; background: var(--line); overflow: hidden } .bar i { display: block; height: 100%; background: var(--good) }
.code th:nth-child(3) { text-align: left } .list th, .list td { padding: .28rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap } .list tbody th { font-weight: 400; color: var(--ink) }
.list th:first-child, .list td:first-child { padding-left: 0 } .list .wide { width: 100%; white-space: normal; overflow-wrap: anywhere } .files tbody th { white-space: normal; overflow-wrap: anywhere; width: 100% }
.top { float: right; margin-top: 1.05rem; font-size: .9em } .tag { color: var(--some); font-size: .85em; white-space: nowrap }
details { margin: .5rem 0 1rem } summary { cursor: pointer; color: var(--soft) }
";

/// The maximum number of operators to list for functions without source. The most executed
/// functions come first.
const LISTED: usize = 20_000;

/// Writes the page of a profile, with the files that the filter selects. Library code that the
/// filter leaves out appears only as a sum. If the filter selects the user's own code and there is
/// none, shows all code.
///
/// # Errors
/// [`PresentError::NoCode`] if the filter leaves out all files. Other errors if `out` fails or the
/// profile cannot be evaluated.
pub(crate) fn html(out: &mut dyn Write, view: &ProfileView<'_>) -> Result<(), PresentError> {
    let scope = &view.options.scope;
    let profile = view.profile;
    let code = view.options.code.as_ref();
    let mut coverage = Coverage::of(profile, scope, code)?;
    if coverage.files.is_empty() && coverage.has_lines {
        match code {
            Some(CodeFilter::Files(_)) => return Err(PresentError::NoCode),
            _ => coverage = Coverage::of(profile, scope, None)?,
        }
    }
    let title = format!("Coverage of {}", view.title);
    page::begin(out, &title, STYLE)?;
    writeln!(out, "<h1>{}</h1>", escaped(&title))?;
    let mut sentence = Vec::new();
    summary(&mut sentence, profile.totals())?;
    let sentence = String::from_utf8_lossy(&sentence);
    let sentence = sentence.trim_end().replacen("ran ", "Ran ", 1);
    writeln!(out, "<p class=\"soft\">{}.</p>", escaped(&sentence))?;
    let unplaced = Ran::of(coverage.unplaced.iter().map(|row| row.entries));
    let sum = |of: fn(&CoveredFile) -> Ran| {
        let files = coverage.files.values().map(of);
        files.fold(Ran::default(), |sum, file| sum + file)
    };
    // If lines are known, branches without a line are left out, as in lcov.
    let branches = if coverage.files.is_empty() {
        coverage.unplaced_branches
    } else {
        sum(CoveredFile::branches_ran)
    };
    tiles(
        out,
        &[
            ("Lines", sum(CoveredFile::lines_ran)),
            ("Functions", sum(CoveredFile::functions_ran) + unplaced),
            ("Branches", branches),
        ],
    )?;
    if coverage.files.is_empty() {
        let why = profile.source().missing();
        writeln!(
            out,
            "<p>No source line is known: {}.</p>\n{LEGEND}",
            escaped(&why.to_string())
        )?;
    } else {
        by_file(out, view, &coverage)?;
    }
    without_lines(out, profile, scope, &coverage)?;
    page::end(out)
}

/// Writes the table of files, then each file.
fn by_file(
    out: &mut dyn Write,
    view: &ProfileView<'_>,
    coverage: &Coverage<'_>,
) -> Result<(), PresentError> {
    let entries = (1..).zip(&coverage.files).map(|(at, (path, file))| {
        let found = view.sources.read(path).is_some();
        let is_empty = file.functions.is_empty() && file.removed.is_empty();
        Entry {
            path,
            section: (found || !is_empty).then_some(at),
            found,
        }
    });
    let entries = Vec::from_iter(entries);
    writeln!(out, "<div class=\"scroll\" id=\"files\">")?;
    files(out, coverage, &entries)?;
    writeln!(out, "</div>\n{LEGEND}")?;
    for (entry, file) in entries.iter().zip(coverage.files.values()) {
        let Some(at) = entry.section else { continue };
        writeln!(
            out,
            "<section id=\"f{at}\"><a class=\"top\" href=\"#files\">all files</a><h2>{}</h2>",
            escaped(entry.path)
        )?;
        let source = if entry.found {
            view.sources.read(entry.path)
        } else {
            None
        };
        functions(out, view.profile, at, file, source.is_some())?;
        if let Some(source) = source {
            annotated(out, at, file, &source)?;
        }
        writeln!(out, "</section>")?;
    }
    Ok(())
}

/// The maximum number of functions in a file for which the list of functions is initially open.
const OPEN: usize = 12;

/// Writes the functions of a file.
fn functions(
    out: &mut dyn Write,
    profile: &Profile<'_>,
    section: usize,
    file: &CoveredFile,
    is_linked: bool,
) -> Result<(), PresentError> {
    let Ran { ran, all } = file.functions_ran();
    if all == 0 {
        return Ok(());
    }
    let open = if all <= OPEN as u64 { " open" } else { "" };
    writeln!(
        out,
        "<details{open}><summary>{}, {} ran</summary><div class=\"scroll\"><table class=\"list\"><thead><tr><th class=\"n\">Calls</th><th class=\"n\">Instructions</th><th class=\"n\">Line</th><th class=\"wide\">Function</th></tr></thead><tbody>",
        counted(all, "function"),
        grouped(ran)
    )?;
    let line = |number: u32| {
        if is_linked {
            format!("<a href=\"#f{section}L{number}\">{number}</a>")
        } else {
            number.to_string()
        }
    };
    let kept = file.functions.iter().map(|(at, row)| {
        let name = profile.names().function(row.function).to_owned();
        (*at, row.entries, Some(row.instructions), name)
    });
    let removed = file.removed.iter();
    let removed = removed.map(|(at, name)| (*at, 0, None, name.clone()));
    let mut rows = Vec::from_iter(kept.chain(removed));
    rows.sort_by_key(|row| row.0);
    for (at, entries, instructions, name) in rows {
        let (instructions, tag) = match instructions {
            Some(instructions) => (grouped(instructions), ""),
            None => (
                String::new(),
                " <span class=\"tag\">removed by the linker</span>",
            ),
        };
        writeln!(
            out,
            "<tr><td class=\"n\">{}</td><td class=\"n\">{instructions}</td><td class=\"n\">{}</td><td class=\"wide\"><code>{}</code>{tag}</td></tr>",
            count(entries),
            line(at),
            escaped(&name)
        )?;
    }
    Ok(writeln!(out, "</tbody></table></div></details>")?)
}

/// Writes the text of a file with its counts.
fn annotated(
    out: &mut dyn Write,
    section: usize,
    file: &CoveredFile,
    source: &str,
) -> Result<(), PresentError> {
    page::begin_counted(out, "line")?;
    let mut lines = file.lines.iter().peekable();
    let mut branches = file.branches.as_slice();
    let declared = HashSet::<_>::from_iter(file.functions.iter().map(|(line, _)| *line));
    let mut row = |number: u32, text: &str| {
        let own = branches.partition_point(|branch| branch.0 <= number);
        let (own, rest) = branches.split_at(own);
        branches = rest;
        let line = lines.next_if(|row| row.line.number == number);
        let count = line.map(|row| row.count);
        let is_named = count.is_some() || declared.contains(&number);
        let row = CountedLine {
            id: is_named.then(|| format!("f{section}L{number}")),
            number: number.to_string(),
            count,
            branches: own.iter().map(|branch| (&branch.1).into()).collect(),
            text,
        };
        row.write(out)
    };
    let mut last = 0;
    for (number, text) in (1..).zip(source.lines()) {
        row(number, text)?;
        last = number;
    }
    // The debug information may come from a different version of the file, with more lines.
    let beyond = file.lines.iter().map(|row| row.line.number);
    for number in beyond.filter(|number| *number > last) {
        row(number, "")?;
    }
    page::end_source(out)
}

/// Writes functions without a known line. If no function has lines, also lists the operators of the
/// first functions, up to [`LISTED`] operators.
fn without_lines(
    out: &mut dyn Write,
    profile: &Profile<'_>,
    scope: &Scope,
    coverage: &Coverage<'_>,
) -> Result<(), PresentError> {
    let rows = &coverage.unplaced;
    if rows.is_empty() {
        return Ok(());
    }
    let mut rows = Vec::from_iter(rows);
    rows.sort_by_key(|row| std::cmp::Reverse((row.instructions, row.entries)));
    writeln!(
        out,
        "<section id=\"f0\"><h2>Functions without a known line</h2><div class=\"scroll\"><table \
         class=\"list\"><thead><tr><th class=\"n\">Calls</th><th \
         class=\"n\">Instructions</th><th class=\"n\">Offset</th><th \
         class=\"wide\">Function</th></tr></thead><tbody>"
    )?;
    let listed = if coverage.files.is_empty() {
        listed(profile, &rows)?
    } else {
        Vec::new()
    };
    let known = HashSet::<_>::from_iter(listed.iter().map(|(row, _)| row.function));
    for row in &rows {
        let offset = if known.contains(&row.function) {
            format!("<a href=\"#w{}\">{}</a>", row.function.as_u32(), row.offset)
        } else {
            row.offset.to_string()
        };
        writeln!(
            out,
            "<tr><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{offset}</td><td class=\"wide\"><code>{}</code></td></tr>",
            count(row.entries),
            grouped(row.instructions),
            escaped(profile.names().function(row.function))
        )?;
    }
    writeln!(out, "</tbody></table></div></section>")?;
    listings(out, profile, scope, &listed)
}

/// A function and its operators.
type Listed<'r> = (&'r FunctionRow, Vec<OperatorCount>);

/// Returns the first functions that together have at most [`LISTED`] operators.
fn listed<'r>(
    profile: &Profile<'_>,
    rows: &[&'r FunctionRow],
) -> Result<Vec<Listed<'r>>, ProfileError> {
    let (mut listed, mut room) = (Vec::new(), LISTED);
    for row in rows {
        let Some((function, _, counts)) = profile.function(row.function) else {
            continue;
        };
        let mut operators = Vec::new();
        profile.operators(function, counts, &mut operators)?;
        let Some(left) = room.checked_sub(operators.len()) else {
            break;
        };
        room = left;
        listed.push((*row, operators));
    }
    Ok(listed)
}

/// Writes functions as WebAssembly text with counts.
fn listings(
    out: &mut dyn Write,
    profile: &Profile<'_>,
    scope: &Scope,
    listed: &[Listed<'_>],
) -> Result<(), PresentError> {
    let all = listed.iter().flat_map(|(_, operators)| operators);
    let mut offsets = Vec::from_iter(all.map(|operator| operator.offset));
    if offsets.is_empty() {
        return Ok(());
    }
    offsets.sort_unstable();
    let texts = profile.texts(&offsets)?;
    let branches = profile.branch_rows(scope)?;
    for (row, operators) in listed {
        writeln!(
            out,
            "<section id=\"w{}\"><h2>{}</h2>",
            row.function.as_u32(),
            escaped(profile.names().function(row.function))
        )?;
        page::begin_counted(out, "offset")?;
        let branch = |op: OpId| {
            let own = branches.binary_search_by_key(&(row.function, op), |b| (b.function, b.op));
            own.ok().map(|at| &branches[at])
        };
        for operator in operators {
            let counts = operator.instruction && operator.block.is_some();
            let text = offsets.binary_search(&operator.offset).ok();
            let text = text.map(|at| texts[at].as_str());
            let text = text.filter(|text| !text.is_empty()).unwrap_or("  end");
            let row = CountedLine {
                id: None,
                number: operator.offset.to_string(),
                count: counts.then_some(operator.count),
                branches: branch(operator.op).into_iter().map(Into::into).collect(),
                text,
            };
            row.write(out)?;
        }
        page::end_source(out)?;
        writeln!(out, "</section>")?;
    }
    Ok(())
}
