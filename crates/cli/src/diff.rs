//! `afterimage diff`

mod counts;
mod same;

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::exit::Exit;
use crate::lens::traced;
use crate::output::Color;

/// Show where two executions first differ: in control, a value, an address, what the host does, or what is put out
///
/// Two recordings of the same program are followed side by side, so that the first difference is exact: everything before it is the same in
/// both. Then: where control parts, the first byte of output that differs, the lines that were executed differently often, and what to ask next.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage diff good.aft bad.aft
  afterimage diff good.aft bad.aft --format json")]
pub(crate) struct Arguments {
    /// Do not count how often lines were executed
    #[arg(long)]
    no_lines: bool,
    /// The format
    #[arg(long, default_value = "text")]
    format: Format,
    /// Where the report goes [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// When to use color
    #[arg(long, default_value = "auto", value_name = "WHEN")]
    color: Color,
    /// The first recording
    #[arg(value_name = "A.aft")]
    a: PathBuf,
    /// The second
    #[arg(value_name = "B.aft")]
    b: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let a = traced(&arguments.a)?;
    let b = traced(&arguments.b)?;
    if a.loaded.bytes != b.loaded.bytes {
        bail!(
            "{} and {} are recordings of different programs; see which statements correspond with: afterimage match {0} {1}",
            arguments.a.display(),
            arguments.b.display()
        );
    }
    same::compare(&arguments, &a, &b)?;
    Ok(Exit::Success)
}
