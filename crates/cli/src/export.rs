//! `afterimage export`

use std::path::PathBuf;

use afterimage::Session;
use afterimage_present::context_dot;
use afterimage_present::export::{
    TimelineHead, callgrind_calls, collapsed, firefox, perfetto, pprof_stacks, speedscope,
};
use afterimage_replay::paths::{
    CallLengths, ContextLimits, ContextTree, Timeline, TimelineLimits, Window,
};
use anyhow::{Context, Result, bail};

use crate::arguments::StretchArguments;
use crate::exit::Exit;
use crate::lens::traced;
use crate::output::{say, write};

/// Write the calls of a run for other tools
///
/// The calls are written over time, or as a tree with counts. The unit of time is the executed basic block, which other tools show as a microsecond or a sample. Calls that are too short or too
/// deep are not left out but merged, and say how many they are.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Formats:
  perfetto   calls over time, for ui.perfetto.dev and chrome://tracing (JSON)
  firefox    calls over time, call tree and flame graph, for profiler.firefox.com
  collapsed  blocks by stack, for flamegraph.pl, inferno and speedscope
  speedscope the same, for www.speedscope.app
  pprof      the same, for `go tool pprof` (profile.proto)
  callgrind  blocks by function and calls with what they cost in all, for KCachegrind
             and callgrind_annotate
  dot        the tree of calling contexts, for Graphviz

Examples:
  afterimage export app.aft --format perfetto -o app.json
  afterimage export app.aft --format perfetto --from 'parse#3' -o parse.json
  afterimage export app.aft --format collapsed | inferno-flamegraph > app.svg
  afterimage export app.aft --format dot --min 2% | dot -Tsvg > app.svg")]
pub(crate) struct Arguments {
    /// The format
    #[arg(long)]
    format: Format,
    /// Where the report goes [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    stretch: StretchArguments,
    /// Merge calls that are more than N deep
    #[arg(long, value_name = "N", default_value_t = DEPTH)]
    depth: usize,
    /// Merge calls (perfetto, firefox) or contexts (collapsed, speedscope, pprof, callgrind, dot) with fewer blocks, or with a smaller share of all
    /// [default: so that at most 150,000 calls are left; 0.5% for dot, 0.001% for others]
    #[arg(long, value_name = "BLOCKS|SHARE%", value_parser = least)]
    min: Option<Least>,
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
}

/// Levels of calls that are told apart: more than tools show, and enough for programs that do not recurse without end.
const DEPTH: usize = 256;
/// Calls that a timeline shows if nothing else is asked for: 100 bytes each, so that tools can open it.
const CALLS: u64 = 150_000;
/// Calls that a timeline may have: tools open no more, and some formats need all of them in memory.
const MOST_CALLS: u64 = 20_000_000;

/// The least that is not merged.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Least {
    Blocks(u64),
    Percent(f64),
}

fn least(text: &str) -> Result<Least, String> {
    let least = match text.strip_suffix('%') {
        None => text.parse().ok().map(Least::Blocks),
        Some(share) => {
            let share = share.parse().ok();
            share
                .filter(|share| (0.0..=100.0).contains(share))
                .map(Least::Percent)
        }
    };
    least.ok_or_else(|| "write a number of blocks, or a share from 0% to 100%".to_owned())
}

impl Least {
    fn of(self, blocks: u64) -> u64 {
        match self {
            Self::Blocks(blocks) => blocks,
            Self::Percent(share) => (blocks as f64 * share / 100.0).ceil() as u64,
        }
    }
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let traced = traced(&arguments.file)?;
    export(&arguments, &traced).with_context(|| arguments.file.display().to_string())?;
    Ok(Exit::Success)
}

fn export(arguments: &Arguments, traced: &Session) -> Result<()> {
    let source = traced.source_map();
    let names = traced.module().names(&source);
    if traced.path()?.length() == 0 {
        bail!("the run executed no block, so there is nothing to export");
    }
    let positions = traced.positions(&names, &source)?;
    let window = arguments.stretch.bounds().window(&positions)?;
    let out = arguments.output.as_deref();
    match arguments.format {
        Format::Perfetto | Format::Firefox => {
            let limits = timeline_limits(arguments, traced, window)?;
            let program = traced.file().meta()?.program_name;
            let head = TimelineHead {
                program: &program,
                names: &names,
                window,
                limits,
            };
            let mut timeline = Timeline::new(traced.path()?, window, limits);
            write(out, false, |out| match arguments.format {
                Format::Firefox => Ok(firefox(out, &head, &mut timeline)?),
                _ => Ok(perfetto(out, &head, &mut timeline)?),
            })
        }
        Format::Collapsed
        | Format::Speedscope
        | Format::Pprof
        | Format::Callgrind
        | Format::Dot => {
            let default = match arguments.format {
                Format::Dot => 0.5,
                _ => 0.001,
            };
            let least = arguments.min.unwrap_or(Least::Percent(default));
            let limits = ContextLimits {
                depth: arguments.depth,
                min: least.of(window.last - window.first + 1),
            };
            let tree = ContextTree::new(traced.path()?, window, limits)?;
            let program = traced.program();
            let run = traced.file().meta()?.program_name;
            let binary = arguments.format == Format::Pprof;
            write(out, binary, |out| match arguments.format {
                Format::Speedscope => Ok(speedscope(out, &tree, program, &names, &source, &run)?),
                Format::Pprof => Ok(pprof_stacks(out, &tree, program, &names, &source)?),
                Format::Dot => Ok(context_dot(out, &tree, &names)?),
                Format::Callgrind => Ok(callgrind_calls(out, &tree, program, &names, &source)?),
                _ => Ok(collapsed(out, &tree, &names)?),
            })
        }
    }
}

fn timeline_limits(
    arguments: &Arguments,
    traced: &Session,
    window: Window,
) -> Result<TimelineLimits> {
    let lengths = CallLengths::new(traced.path()?, window)?;
    let blocks = window.last - window.first + 1;
    let min = match arguments.min {
        Some(least) => least.of(blocks),
        None => {
            let min = lengths.resolution(CALLS);
            if min > 1 {
                say(format_args!(
                    "calls shorter than {min} blocks are merged; choose another limit with --min"
                ));
            }
            min
        }
    };
    // Lengths are known as powers of two.
    let calls = lengths.at_least(min.max(1).ilog2());
    if calls > MOST_CALLS {
        bail!(
            "up to {calls} calls have {min} blocks or more, and no tool shows so many; choose a larger --min, or a stretch with --from and --to"
        );
    }
    Ok(TimelineLimits {
        depth: arguments.depth,
        min,
    })
}
