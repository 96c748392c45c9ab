//! Where reports go.

use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write, stdout};
use std::path::Path;

use afterimage_present::{Sources, Style};
use anyhow::{Context, Result};

/// When to use color.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
pub(crate) enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

impl Color {
    /// The style for a report that goes to `out` (`None`: standard output).
    pub(crate) fn style(self, out: Option<&Path>) -> Style {
        let color = match self {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => out.is_none() && stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
        };
        Style { color }
    }
}

/// Writes a report to a file, or to standard output.
pub(crate) fn write(
    out: Option<&Path>,
    binary: bool,
    report: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    match out {
        Some(path) => {
            let cannot = || format!("cannot write {}", path.display());
            let mut file = BufWriter::new(File::create(path).with_context(cannot)?);
            report(&mut file)?;
            file.flush().with_context(cannot)
        }
        None => {
            let terminal = stdout();
            if binary && terminal.is_terminal() {
                anyhow::bail!("this format is binary: write it to a file with -o, or pipe it");
            }
            let mut writer = BufWriter::new(terminal.lock());
            report(&mut writer)?;
            writer.flush().context("cannot write to standard output")
        }
    }
}

/// Source files, where they lie on this machine.
pub(crate) struct SourceFiles;

/// Larger files are not source text.
const LARGEST_SOURCE: u64 = 64 << 20;

impl Sources for SourceFiles {
    fn read(&self, path: &str) -> Option<String> {
        let data = std::fs::metadata(path).ok()?;
        if !data.is_file() || data.len() > LARGEST_SOURCE {
            return None;
        }
        let bytes = std::fs::read(path).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}
