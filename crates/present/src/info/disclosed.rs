//! Reports the data that a recording discloses to its receivers.

use std::io::Write;

use schemars::JsonSchema;
use serde::Serialize;

use super::InfoReport;
use crate::number::{counted, grouped, size};
use crate::plain::plain;
use crate::table::wrapped;
use crate::{PresentError, Style};

/// The data that the file discloses to its receivers, in addition to arguments, environment
/// variables and folders.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InfoDisclosed {
    /// Whether `strip --inputs` removed the program's input, so that the run cannot be repeated.
    pub without_inputs: bool,
    /// The data that the program read and wrote, in the order of first use.
    pub traffic: Vec<InfoTraffic>,
    /// The size of the module in bytes.
    pub module_bytes: u64,
    /// The number of bytes of the module that are debug information.
    pub debug_bytes: u64,
    /// The number of source files that the debug information names.
    pub debug_paths: u64,
    /// The folders of the source files that the debug information names, without nested folders.
    /// The author's own folders come before the folders of libraries.
    pub debug_folders: Vec<String>,
    /// The embedded source files; `null` if there are none.
    pub sources: Option<InfoSources>,
}

/// The traffic between the program and a stream or file.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InfoTraffic {
    /// `stdin`, `stdout`, `stderr`, `folder`, `file`, or `unknown`.
    pub stream: &'static str,
    /// The path of the file or folder, as the program names it; `null` for streams, and for files
    /// if the recording has no values.
    pub path: Option<String>,
    /// The number of bytes that the program read. For a folder, this is the size of the list of
    /// names.
    pub read_bytes: u64,
    /// The number of bytes that the program wrote.
    pub written_bytes: u64,
}

/// Embedded source files.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InfoSources {
    /// The number of files.
    pub files: u64,
    /// The total size of the files in bytes.
    pub bytes: u64,
    /// The embedded files, with `--sources`.
    pub list: Option<Vec<InfoSource>>,
}

/// An embedded source file.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InfoSource {
    /// Its path in the debug information.
    pub path: String,
    /// Its size in bytes.
    pub bytes: u64,
}

/// The maximum number of files and folders that the text form names. The others are only counted.
const NAMED: usize = 10;
/// The maximum number of folders of source files that the text form names.
const FOLDERS: usize = 3;

pub(super) fn text(
    out: &mut dyn Write,
    report: &InfoReport,
    style: Style,
) -> Result<(), PresentError> {
    let own = &report.disclosed;
    writeln!(
        out,
        "\nBefore you share this file, note that everyone who receives it learns"
    )?;
    let given = [
        ("argument", report.args.len(), ""),
        ("variable", report.env.len(), " with its value"),
        ("name of a folder", report.dirs.len(), ""),
    ];
    for (noun, count, with) in given.into_iter().filter(|row| row.1 > 0) {
        let text = match (noun, count) {
            ("name of a folder", 2..) => format!("{} names of folders", grouped(count as u64)),
            ("variable", 2..) => format!("{} with their values", counted(count as u64, noun)),
            _ => format!("{}{with}", counted(count as u64, noun)),
        };
        writeln!(out, "  {text}")?;
    }
    traffic(out, &own.traffic)?;
    let debug = match own.debug_paths {
        0 if own.debug_bytes == 0 => "without debug information".to_owned(),
        0 => "with debug information that names no source file".to_owned(),
        paths => {
            let named = own.debug_folders.iter().take(FOLDERS);
            let named = named.map(|folder| plain(folder)).collect::<Vec<_>>();
            let more = match own.debug_folders.len().saturating_sub(FOLDERS) {
                0 => String::new(),
                more => format!(" and {} more", grouped(more as u64)),
            };
            format!(
                "with debug information that names {} in {}{more}",
                counted(paths, "source file"),
                named.join(", ")
            )
        }
    };
    let module = format!("  the module, {}, {debug}", size(own.module_bytes));
    writeln!(out, "{}", wrapped(&module, style.width, 4))?;
    if let Some(sources) = &own.sources {
        let files = counted(sources.files, "source file");
        let bytes = size(sources.bytes);
        match &sources.list {
            None => writeln!(out, "  {files}, {bytes}; --sources lists them")?,
            Some(list) => {
                writeln!(out, "  {files}, {bytes}")?;
                for source in list {
                    writeln!(out, "    {}, {}", plain(&source.path), size(source.bytes))?;
                }
            }
        }
    }
    let remedy = if own.without_inputs {
        "  no other input of the program: it was stripped, and the run cannot be repeated"
    } else {
        "`afterimage strip --inputs` removes the program's input"
    };
    writeln!(out, "{remedy}")?;
    Ok(())
}

/// Writes the traffic. Data that was read comes before data that was written. In each group, the
/// largest amount comes first.
fn traffic(out: &mut dyn Write, all: &[InfoTraffic]) -> Result<(), PresentError> {
    let mut rows = Vec::new();
    for row in all {
        let path = row.path.as_deref().map(plain);
        let name = match (row.stream, path) {
            ("stdin", _) => "standard input".to_owned(),
            ("stdout", _) => "standard output".to_owned(),
            ("stderr", _) => "standard error".to_owned(),
            ("folder", Some(path)) => format!("the list of files in {path}"),
            (_, Some(path)) => path,
            ("file", None) => "a file (`afterimage build --lens full` finds its path)".to_owned(),
            _ => "a descriptor that was never opened".to_owned(),
        };
        if row.read_bytes > 0 {
            rows.push((0, row.read_bytes, format!("read from {name}")));
        }
        if row.written_bytes > 0 {
            rows.push((1, row.written_bytes, format!("written to {name}")));
        }
    }
    rows.sort_by_key(|row| (row.0, std::cmp::Reverse(row.1)));
    for (_, bytes, what) in rows.iter().take(NAMED) {
        writeln!(out, "  {} {what}", counted(*bytes, "byte"))?;
    }
    if let Some((first, rest)) = rows.get(NAMED..).unwrap_or_default().split_first() {
        let bytes = first.1 + rest.iter().map(|row| row.1).sum::<u64>();
        let others = grouped(rest.len() as u64 + 1);
        writeln!(out, "  {} of {others} more", counted(bytes, "byte"))?;
    }
    Ok(())
}
