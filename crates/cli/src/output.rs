//! Writes reports and remarks to their destinations.

use std::fmt::Display;
use std::io::{IsTerminal, Write, stderr, stdout};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use afterimage::destination::{Replaces, fill, to_file};
use afterimage::rows::Output;
use afterimage::sources::SourcePaths;
pub(crate) use afterimage::text::{harmless, pasted};
use afterimage_present::{Content, Style, wrapped};
use afterimage_profile::CodeFilter;
use anyhow::{Result, bail};

use crate::progress::without_bars;

/// When to use color.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
pub(crate) enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

impl Color {
    /// Returns the style for a report that goes to `out`; `None` is standard output.
    pub(crate) fn style(self, out: Option<&Path>) -> Style {
        let color = match self {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                out.is_none() && stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
            }
        };
        if color {
            COLORED.store(true, Ordering::Relaxed);
        }
        let width = terminal_size::terminal_size_of(stdout())
            .filter(|_| out.is_none())
            .map(|size| usize::from(size.0.0));
        Style { color, width }
    }
}

/// Writes a remark to standard error. If standard error is closed, the remark is dropped.
pub(crate) fn say(remark: impl Display) {
    let remark = format!("afterimage: {}", harmless(&remark.to_string()));
    let width = terminal_size::terminal_size_of(stderr());
    let width = width.map(|size| usize::from(size.0.0));
    without_bars(|| {
        for line in remark.lines() {
            let lines = wrapped(&glued(line), width, 2).replace(NO_BREAK, " ");
            let _ = writeln!(stderr(), "{lines}");
        }
    });
}

/// A space at which a line is never broken.
const NO_BREAK: char = '\u{a0}';

/// Prevents line breaks inside short parentheses in a remark, such as `(534.2 kB)`.
fn glued(line: &str) -> String {
    let mut glued = String::with_capacity(line.len());
    for (number, part) in line.split('(').enumerate() {
        let inside = part.find(')').filter(|inside| number > 0 && *inside < 24);
        let (inside, rest) = part.split_at(inside.unwrap_or(0));
        if number > 0 {
            glued.push('(');
        }
        glued.extend(
            inside
                .chars()
                .map(|sign| if sign == ' ' { NO_BREAK } else { sign }),
        );
        glued += rest;
    }
    glued
}

/// Whether remarks use colours.
static COLORED: AtomicBool = AtomicBool::new(false);

static QUIET: AtomicBool = AtomicBool::new(false);

/// Suppresses remarks about successes from now on.
pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Writes a remark about a success.
pub(crate) fn tell(remark: impl Display) {
    if !QUIET.load(Ordering::Relaxed) {
        say(remark);
    }
}

/// Writes a report to a file, or to standard output.
///
/// The file appears only when it is complete. Until then, an existing file stays in place.
pub(crate) fn write(
    out: Option<&Path>,
    content: Content,
    report: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    let content = match content {
        Content::Text if COLORED.load(Ordering::Relaxed) => Content::ColoredText,
        content => content,
    };
    match out {
        Some(path) => to_file(path, Replaces::Files, content, report),
        None => {
            let terminal = stdout();
            if content == Content::Binary && terminal.is_terminal() {
                bail!("this format is binary: write it to a file with -o, or pipe it");
            }
            let place = || "cannot write to standard output".to_owned();
            fill(terminal.lock(), content, report, place).map(drop)
        }
    }
}

/// Writes text to standard output.
pub(crate) fn print(text: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    write(None, Content::Text, text)
}

/// A destination for a report: this file, or standard output.
pub(crate) struct ToFile<'p>(pub(crate) Option<&'p Path>);

impl Output for ToFile<'_> {
    fn write(
        &self,
        content: Content,
        report: &mut dyn FnMut(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        write(self.0, content, report)
    }
}

/// Writes a module to a file, replacing an existing module.
pub(crate) fn write_module(
    path: &Path,
    module: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    to_file(path, Replaces::Modules, Content::Binary, module)
}

/// Reports requested sources that were not found, and sources that are damaged.
pub(crate) fn say_not_at_hand(paths: &SourcePaths, code: &CodeFilter) {
    paths.remarks(code).into_iter().for_each(say);
}
