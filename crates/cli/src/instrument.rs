//! `afterimage instrument`, and reading what its modules leave behind.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use afterimage_ids::Counts;
use afterimage_placement::{Mode, Plan, PlanOptions, RunFacts, plan, solve};
use afterimage_present::InstrumentDocument;
use afterimage_present::document::begin;
use afterimage_profile::Stop;
use afterimage_rewrite::{Dump, External, Layout, MEMORY_EXPORT, Options, rewrite};
use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::exit::{Exit, Failed};
use crate::input::{self, Loaded};
use crate::output::{say, write, write_module};
use crate::record::{counted, same_file};

/// Write the instrumented module, to run in other engines and in browsers
///
/// The module exports its counters as a memory of its own, "afterimage.counters", so that the engine must allow more than
/// one memory (Node does from version 22 on). After the run, save the bytes of that memory: in JavaScript,
/// new Uint8Array(instance.exports["afterimage.counters"].buffer). `afterimage profile --counters DUMP PROGRAM` makes a
/// report of them. While calls are open (inside a host call, after an exit or a trap) the counters are not exact, and the
/// report says so; see --standalone.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  afterimage instrument app.wasm -o app.counting.wasm
  node run.js app.counting.wasm app.dump
  afterimage profile --counters app.dump app.wasm")]
pub(crate) struct Arguments {
    /// Where the module goes
    #[arg(short, long, value_name = "OUT.wasm")]
    output: PathBuf,
    /// How counters are placed
    #[arg(long, default_value = "quick")]
    mode: Placement,
    /// Place enough counters that a dump taken inside host calls, or after an exit from one, is exact; with
    /// --mode quick
    #[arg(long)]
    standalone: bool,
    /// The format of the summary
    #[arg(long, default_value = "text")]
    format: Format,
    /// A .wasm or .wat file
    #[arg(value_name = "PROGRAM")]
    program: PathBuf,
}

/// How counters are placed. (Placement by feedback cannot be had here: a dump does not hold the earlier counts that it came from.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Placement {
    /// In each function where its counters are executed least
    Quick,
    /// Over the whole program at once, which needs fewest
    Program,
    /// On every edge
    Slow,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

const QUICK: u16 = 1;
const PROGRAM: u16 = 2;
const SLOW: u16 = 3;
const STANDALONE: u16 = 1;

fn options(mode: u16, standalone: bool) -> Result<PlanOptions<'static>> {
    let mode = match mode {
        QUICK => Mode::Quick,
        PROGRAM => Mode::Program,
        // A counter on every edge: what a counter per block leaves open is measured too.
        SLOW => Mode::Edges,
        other => bail!(
            "the dump says that its counters were placed in mode {other}, which this version does not know"
        ),
    };
    Ok(PlanOptions {
        standalone,
        host_counts_import_calls: false,
        host_uses_references: true,
        ..PlanOptions::new(mode)
    })
}

/// What ties a dump to a program and a plan.
fn digest(loaded: &Loaded, plan: &Plan) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(&loaded.bytes);
    for (i, function) in plan.functions.iter().enumerate() {
        for probe in &function.probes {
            hasher.update(format!("{i} {probe:?}\n"));
        }
    }
    hasher.finalize().into()
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    if same_file(&arguments.output, &arguments.program) {
        bail!(
            "{} is the program itself; choose another name with -o",
            arguments.output.display()
        );
    }
    if arguments.standalone && arguments.mode != Placement::Quick {
        bail!("--standalone is possible with --mode quick only");
    }
    let loaded = input::program(&arguments.program)?;
    let mode = match arguments.mode {
        Placement::Quick => QUICK,
        Placement::Program => PROGRAM,
        Placement::Slow => SLOW,
    };
    let plan = plan(&loaded.program, &options(mode, arguments.standalone)?)?;
    let flags = if arguments.standalone { STANDALONE } else { 0 };
    let external = External {
        mode,
        flags,
        digest: digest(&loaded, &plan),
    };
    let rewriting = Options {
        external: Some(external),
        ..Options::default()
    };
    let rewritten =
        rewrite(&loaded.bytes, &loaded.program, Some(&plan), &rewriting).map_err(|error| {
            Failed {
                exit: Exit::CannotRun,
                error: anyhow::Error::new(error).context(arguments.program.display().to_string()),
            }
        })?;
    write_module(&arguments.output, |out| {
        Ok(out.write_all(&rewritten.module)?)
    })?;
    let size = rewritten.module.len();
    match arguments.format {
        Format::Text => say(format_args!(
            "wrote {} with {}; read them from the exported memory {MEMORY_EXPORT:?}",
            arguments.output.display(),
            counted(u64::from(plan.counters), "counter"),
        )),
        Format::Json => write(None, false, |out| {
            let document = InstrumentDocument {
                output: arguments.output.display().to_string(),
                bytes: size,
                counters: plan.counters,
                memory_export: MEMORY_EXPORT,
                standalone: arguments.standalone,
            };
            Ok(begin(out, &document)?)
        })?,
    }
    Ok(Exit::Success)
}

/// Counts read from a dump.
pub(crate) struct Read {
    pub counts: Counts,
    pub stops: Vec<Stop>,
    pub note: Option<String>,
}

/// Largest dump that is read: the counters of a module with all the edges that there may be.
const LARGEST_DUMP: u64 = 1 << 31;

/// Makes counts of a dump of an instrumented module's counters.
pub(crate) fn read_dump(path: &Path, loaded: &Loaded) -> Result<Read> {
    let name = || path.display().to_string();
    let mut bytes = Vec::new();
    input::open(path)?
        .take(LARGEST_DUMP + 1)
        .read_to_end(&mut bytes)
        .with_context(name)?;
    if bytes.len() as u64 > LARGEST_DUMP {
        bail!("{}: too large for a dump of counters", path.display());
    }
    let dump = Dump::read(&bytes).with_context(name)?;
    let standalone = dump.flags & STANDALONE != 0;
    let plan = plan(&loaded.program, &options(dump.mode, standalone)?)?;
    let layout = Layout {
        counters: plan.counters,
        entry_counters: loaded.program.exports.len() as u32,
        half: 0,
    };
    if dump.digest != digest(loaded, &plan) || dump.counters != u64::from(layout.counters) {
        bail!(
            "{}: these are not counters of {}",
            path.display(),
            loaded.path.display()
        );
    }
    let (Some(counters), Some(entries)) = (layout.counters(&bytes), layout.entry_counters(&bytes))
    else {
        bail!("{}: the dump is cut off", path.display());
    };
    let mut host_entries: Vec<_> = loaded
        .program
        .exports
        .iter()
        .map(|e| e.1)
        .zip(entries)
        .collect();
    host_entries.extend(loaded.program.start.map(|start| (start, 1)));
    let facts = RunFacts {
        host_entries,
        ..RunFacts::default()
    };
    let note = match (dump.running > 0, dump.in_host_call, standalone) {
        (false, ..) | (true, true, true) => None,
        (true, true, false) => Some(
            "not exact: the dump was taken inside calls, whose blocks are counted as if they had ended; instrument with --standalone for exact counts at such a moment",
        ),
        (true, false, _) => Some(
            "not exact: the dump was taken after a trap, and the counters do not tell where it was",
        ),
    };
    let counts = solve(&loaded.program, &plan, &counters, &facts).with_context(|| match note {
        Some(note) => format!("{}: {note}", path.display()),
        None => path.display().to_string(),
    })?;
    let stops = standing(loaded, &counts).with_context(name)?;
    Ok(Read {
        counts,
        stops,
        note: note.map(str::to_owned),
    })
}

/// More activations than any stack holds.
const MOST_ACTIVATIONS: u64 = 1 << 24;

/// Where the open activations that the counters tell of stand: at the ends of their blocks, which are calls.
fn standing(loaded: &Loaded, counts: &Counts) -> Result<Vec<Stop>> {
    let mut stops = Vec::new();
    for (function, counted) in loaded.program.functions.iter().zip(&counts.functions) {
        for &(block, open) in &counted.open {
            if open > MOST_ACTIVATIONS - stops.len() as u64 {
                bail!("these counters tell of more activations at once than there can be");
            }
            let stop = Stop {
                function: function.id,
                block,
                next: function.cfg.blocks[block].ops.end,
            };
            stops.extend(std::iter::repeat_n(stop, open as usize));
        }
    }
    Ok(stops)
}
