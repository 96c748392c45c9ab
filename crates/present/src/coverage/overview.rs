//! Writes the beginning of the page: the totals, and the table of files.

use std::io::Write;

use super::{Coverage, LeftOut, Ran};
use crate::PresentError;
use crate::number::{counted, grouped, percent};
use crate::page::escaped;

/// Writes the totals side by side.
pub(super) fn tiles(
    out: &mut dyn Write,
    sums: &[(&'static str, Ran); 3],
) -> Result<(), PresentError> {
    writeln!(out, "<div class=\"tiles\">")?;
    for (name, sum) in sums.iter().filter(|(_, sum)| sum.all > 0) {
        writeln!(
            out,
            "<div class=\"tile\"><span class=\"name\">{name}</span><strong>{}</strong>{}<span class=\"of\">{}</span></div>",
            percent(sum.ran, sum.all),
            bar(*sum),
            of(*sum)
        )?;
    }
    Ok(writeln!(out, "</div>")?)
}

/// Formats a sum as `35 of 40`.
fn of(sum: Ran) -> String {
    format!("{} of {}", grouped(sum.ran), grouped(sum.all))
}

/// Returns the filled part of a bar. The bar is full only if everything ran, and empty only if
/// nothing ran.
fn bar(sum: Ran) -> String {
    let Ran { ran, all } = sum;
    let width = match ran {
        0 => 0,
        ran if ran == all => 1000,
        _ => (u128::from(ran) * 1000 / u128::from(all)).clamp(10, 990),
    };
    format!(
        "<span class=\"bar\"><i style=\"width:{}.{}%\"></i></span>",
        width / 10,
        width % 10
    )
}

/// A file of the table: its path, and the number of its section if it has one.
pub(super) struct Entry<'p> {
    pub(super) path: &'p str,
    pub(super) section: Option<usize>,
    /// Whether its source was found.
    pub(super) found: bool,
}

/// Writes the table of files, and names the parts that it leaves out.
pub(super) fn files(
    out: &mut dyn Write,
    coverage: &Coverage<'_>,
    entries: &[Entry<'_>],
) -> Result<(), PresentError> {
    let folder = folder(entries.iter().map(|entry| entry.path));
    writeln!(
        out,
        "<table class=\"list files\"><thead><tr><th>File</th><th colspan=\"3\">Lines</th><th colspan=\"2\">Functions</th><th colspan=\"2\">Branches</th></tr></thead><tbody>"
    )?;
    for entry in entries {
        let Some(file) = coverage.files.get(entry.path) else {
            continue;
        };
        let name = escaped(&entry.path[folder.len()..]);
        let title = escaped(entry.path);
        let name = match entry.section {
            Some(at) => format!("<a href=\"#f{at}\" title=\"{title}\">{name}</a>"),
            None => format!("<span title=\"{title}\">{name}</span>"),
        };
        let mark = if entry.found {
            ""
        } else {
            " <span class=\"tag\">no source</span>"
        };
        let lines = file.lines_ran();
        writeln!(
            out,
            "<tr><th scope=\"row\">{name}{mark}</th><td>{}</td>{}{}{}</tr>",
            if lines.all > 0 {
                bar(lines)
            } else {
                String::new()
            },
            cells(lines),
            cells(file.functions_ran()),
            cells(file.branches_ran())
        )?;
    }
    if !coverage.unplaced.is_empty() {
        let unplaced = Ran::of(coverage.unplaced.iter().map(|row| row.entries));
        writeln!(
            out,
            "<tr><th scope=\"row\">functions whose file is unknown</th><td></td>{}{}{}</tr>",
            cells(Ran::default()),
            cells(unplaced),
            cells(Ran::default())
        )?;
    }
    writeln!(out, "</tbody></table>")?;
    if !folder.is_empty() {
        writeln!(
            out,
            "<p class=\"soft\">Paths are in <code>{}</code></p>",
            escaped(folder)
        )?;
    }
    let missing = entries.iter().filter(|entry| !entry.found).count();
    if missing > 0 {
        writeln!(
            out,
            "<p class=\"soft\">The source of {} was not found: the page shows only what their \
             functions did.</p>",
            counted(missing as u64, "file")
        )?;
    }
    left_out(out, &coverage.left_out)
}

/// Formats the percentage and the two numbers as cells.
fn cells(sum: Ran) -> String {
    if sum.all == 0 {
        return "<td class=\"n\"></td><td class=\"n soft\">–</td>".to_owned();
    }
    format!(
        "<td class=\"n\">{}</td><td class=\"n soft\">{}/{}</td>",
        percent(sum.ran, sum.all),
        grouped(sum.ran),
        grouped(sum.all)
    )
}

/// Returns the folder that contains all files, with a trailing separator, or an empty text if there
/// is none.
fn folder<'p>(mut paths: impl Iterator<Item = &'p str>) -> &'p str {
    let parent = |path: &'p str| &path[..path.rfind(['/', '\\']).map_or(0, |at| at + 1)];
    let Some(first) = paths.next() else {
        return "";
    };
    let mut folder = parent(first);
    for path in paths {
        while !path.starts_with(folder) {
            folder = parent(&folder[..folder.len() - 1]);
        }
    }
    folder
}

/// Writes one line about the library code that was left out.
fn left_out(out: &mut dyn Write, left_out: &LeftOut<'_>) -> Result<(), PresentError> {
    let LeftOut {
        files,
        lines,
        functions,
    } = left_out;
    if files.is_empty() && functions.all == 0 {
        return Ok(());
    }
    writeln!(
        out,
        "<p class=\"soft\">Library code is left out: {}, in which {} lines and {} \
         functions ran. <code>--code all</code> shows it.</p>",
        counted(files.len() as u64, "file"),
        of(*lines),
        of(*functions)
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_all_files_is_found() {
        let of = |paths: &[&'static str]| folder(paths.iter().copied());
        assert_eq!(of(&["/a/b/c.c", "/a/b/d/e.c"]), "/a/b/");
        assert_eq!(of(&["/a/bc/c.c", "/a/b/e.c"]), "/a/");
        assert_eq!(of(&["a.c", "/a/b/e.c"]), "");
        assert_eq!(of(&["/a/b/c.c"]), "/a/b/");
        assert_eq!(of(&["/é/a.c", "/è/a.c"]), "/");
        assert_eq!(of(&[]), "");
    }

    #[test]
    fn bars_are_full_only_if_all_ran() {
        let width = |ran, all| bar(Ran { ran, all });
        assert!(width(0, 7).contains("width:0.0%"));
        assert!(width(7, 7).contains("width:100.0%"));
        assert!(width(1, 7_000_000).contains("width:1.0%"));
        assert!(width(6_999_999, 7_000_000).contains("width:99.0%"));
        assert!(width(1, 3).contains("width:33.3%"));
    }
}
