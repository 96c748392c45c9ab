//! Implements `afterimage export`.

use std::path::PathBuf;

#[cfg(feature = "parquet")]
use afterimage::Bounds;
use afterimage::export::{ExportFormat, ExportQuery, Least};
use afterimage::profile::CodeFilter;
use anyhow::{Context, Result, bail};

#[cfg(feature = "parquet")]
use crate::arguments::first_given;
use crate::arguments::{CodeArguments, StretchArguments};
use crate::exit::Exit;
use crate::lens::traced;
use crate::output::ToFile;

/// Write the calls of a run for other tools
///
/// It writes calls over time, or as a tree with counts. The unit of time is the executed basic
/// block, which other tools show as a microsecond or a sample. Calls that are too short or too deep
/// are merged, not dropped, and the merged entry shows their number.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Formats:
  perfetto   calls over time, for ui.perfetto.dev and chrome://tracing (JSON)
  firefox    calls over time, call tree and flame graph, for
             profiler.firefox.com
  collapsed  blocks by stack, for flamegraph.pl, inferno and speedscope
  speedscope the same, for www.speedscope.app
  pprof      the same, for `go tool pprof` (profile.proto)
  callgrind  blocks by function, and calls with their inclusive cost, for
             KCachegrind and callgrind_annotate
  dot        the tree of calling contexts, for Graphviz
  parquet    the whole run as tables for SQL: a folder (docs/PARQUET.md)

Examples:
  afterimage export app.aft --format perfetto -o app.json
  afterimage export app.aft --format perfetto --from 'parse#3' -o parse.json
  afterimage export app.aft --format collapsed | inferno-flamegraph > app.svg
  afterimage export app.aft --format collapsed --code mine > own.stacks
  afterimage export app.aft --format dot --min 2% | dot -Tsvg > app.svg
  afterimage export app.aft --format parquet -o app.tables
  afterimage export app.aft --format parquet -o app.tables --window 0..8")]
pub(crate) struct Arguments {
    /// Output format
    #[arg(long)]
    format: Format,
    /// Write the report to this file; for parquet, into this folder [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    stretch: StretchArguments,
    /// Merge calls more than N levels deep
    #[arg(long, value_name = "N", default_value_t = ExportQuery::DEPTH)]
    depth: usize,
    /// Merge calls (perfetto, firefox) or contexts (collapsed, speedscope, pprof, callgrind, dot)
    /// with fewer than this number of blocks, or with a smaller share of all blocks [default: a
    /// limit that leaves at most 150,000 calls; 0.5% for dot, 0.001% for others]
    #[arg(long, value_name = "BLOCKS|SHARE%")]
    min: Option<Least>,
    /// Show only the module's functions, not those inlined into them
    #[arg(long)]
    no_inlined: bool,
    #[command(flatten)]
    code: CodeArguments,
    #[cfg(feature = "parquet")]
    #[command(flatten)]
    dataset: crate::dataset::Arguments,
    /// The recording
    #[arg(value_name = "FILE.aft")]
    file: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Perfetto,
    Firefox,
    Collapsed,
    Speedscope,
    Pprof,
    Callgrind,
    Dot,
    #[cfg(feature = "parquet")]
    Parquet,
}

#[cfg(feature = "parquet")]
impl Arguments {
    /// Writes tables. Refuses options that apply only to the formats of calls.
    fn tables(&self) -> Result<Exit> {
        let given = [
            (
                "--from and --to",
                self.stretch.bounds() != Bounds::default(),
            ),
            ("--depth", self.depth != ExportQuery::DEPTH),
            ("--min", self.min.is_some()),
            ("--no-inlined", self.no_inlined),
            ("--code", self.code.is_given()),
        ];
        if let Some(option) = first_given(&given) {
            bail!("{option} does not apply to tables; select tables with --window and --tables");
        }
        let Some(folder) = &self.output else {
            bail!("tables need a folder: name it with -o");
        };
        self.dataset.write(&self.file, folder)
    }
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    #[cfg(feature = "parquet")]
    match arguments.format {
        Format::Parquet => return arguments.tables(),
        _ => arguments.dataset.refuse()?,
    }
    let session = traced(&arguments.file)?;
    let is_timeline = matches!(arguments.format, Format::Perfetto | Format::Firefox);
    let query = ExportQuery {
        format: match arguments.format {
            Format::Perfetto => ExportFormat::Perfetto,
            Format::Firefox => ExportFormat::Firefox,
            Format::Collapsed => ExportFormat::Collapsed,
            Format::Speedscope => ExportFormat::Speedscope,
            Format::Pprof => ExportFormat::Pprof,
            Format::Callgrind => ExportFormat::Callgrind,
            Format::Dot => ExportFormat::Dot,
            #[cfg(feature = "parquet")]
            Format::Parquet => return Ok(Exit::Success),
        },
        bounds: arguments.stretch.bounds(),
        depth: arguments.depth,
        least: arguments.min,
        // By default, timelines show all calls.
        code: if is_timeline && !arguments.code.is_given() {
            CodeFilter::All
        } else {
            arguments.code.filter()?
        },
        inlined: !arguments.no_inlined,
    };
    let output = ToFile(arguments.output.as_deref());
    let written = query.write(&session, &output);
    written.with_context(|| arguments.file.display().to_string())?;
    Ok(Exit::Success)
}
