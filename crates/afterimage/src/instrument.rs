//! Adds counters to modules for other engines, and reads the dumps of these counters.

use std::io::Read;
use std::path::Path;

use afterimage_ids::{Counts, FuncId};
pub use afterimage_placement::Mode;
use afterimage_placement::{Plan, PlanOptions, RunFacts, Site, plan, solve};
use afterimage_present::CfgCounter;
use afterimage_profile::Stop;
use afterimage_program::Module;
pub use afterimage_rewrite::MEMORY_EXPORT;
use afterimage_rewrite::{Dump, External, Layout, Options, rewrite};
use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

const QUICK: u16 = 1;
const PROGRAM: u16 = 2;
const SLOW: u16 = 3;
const STANDALONE: u16 = 1;

fn options(mode: u16, standalone: bool) -> Result<PlanOptions<'static>> {
    let mode = match mode {
        QUICK => Mode::Quick,
        PROGRAM => Mode::Program,
        // Counters on all edges also measure the edges that counters in all blocks do not
        // determine.
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

/// Describes the counters of one function for display.
///
/// # Errors
/// Returns an error if the module cannot have counters.
pub fn counters(module: &Module, function: FuncId, mode: Mode) -> Result<Vec<CfgCounter>> {
    let plan = plan(&module.program, &PlanOptions::new(mode))?;
    let index = function.as_u32() as usize - module.program.imports.len();
    let probes = plan.functions[index].probes.iter();
    Ok(Vec::from_iter(probes.map(|probe| {
        let (block, edge) = match probe.site {
            Site::Block(block) => (Some(block.as_u32()), None),
            Site::Edge(edge) => (None, Some(edge.as_u32())),
        };
        CfgCounter {
            counter: probe.counter.as_u32(),
            block,
            edge,
        }
    })))
}

/// Returns a digest that ties a dump to a program and a plan.
fn digest(module: &Module, plan: &Plan) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(&module.bytes);
    for (i, function) in plan.functions.iter().enumerate() {
        for probe in &function.probes {
            hasher.update(format!("{i} {probe:?}\n"));
        }
    }
    hasher.finalize().into()
}

/// The result of adding counters to a module.
pub struct Instrumented {
    /// The bytes of the instrumented module.
    pub module: Vec<u8>,
    /// The number of counters.
    pub counters: u32,
}

/// Adds counters to a module. With `standalone`, adds further counters, so that dumps are exact
/// even during a host call, or after a host call that exits.
///
/// # Errors
/// Returns an error if there is no such placement, or the module exceeds the limits of engines.
pub fn instrument(module: &Module, mode: Mode, standalone: bool) -> Result<Instrumented> {
    let mode = match mode {
        Mode::Quick => QUICK,
        Mode::Program => PROGRAM,
        Mode::Edges | Mode::Slow => SLOW,
        Mode::Feedback => bail!("a dump does not hold the counts of the earlier run"),
    };
    let plan = plan(&module.program, &options(mode, standalone)?)?;
    let flags = if standalone { STANDALONE } else { 0 };
    let external = External {
        mode,
        flags,
        digest: digest(module, &plan),
    };
    let rewriting = Options {
        external: Some(external),
        ..Options::default()
    };
    let rewritten = rewrite(&module.bytes, &module.program, Some(&plan), &rewriting)?;
    Ok(Instrumented {
        module: rewritten.module,
        counters: plan.counters,
    })
}

/// Counts read from a dump.
pub struct ReadDump {
    /// The counts derived from the counters.
    pub counts: Counts,
    /// The places of the open activations.
    pub stops: Vec<Stop>,
    /// A note for the user if the counts are not exact.
    pub note: Option<String>,
}

/// The maximum size of a dump, in bytes. 2^27 counters of 8 bytes take half of it, and the section
/// COUNTS can hold no more edges.
const LARGEST_DUMP: u64 = 1 << 31;

/// Reads a dump of an instrumented module's counters and derives the counts. `program` is the
/// module's name.
///
/// # Errors
/// Returns an error if the file is not a dump, or belongs to another module.
pub fn read_dump(
    path: &Path,
    dump: impl Read,
    program: &Path,
    module: &Module,
) -> Result<ReadDump> {
    let name = || path.display().to_string();
    let mut bytes = Vec::new();
    dump.take(LARGEST_DUMP + 1)
        .read_to_end(&mut bytes)
        .with_context(name)?;
    if bytes.len() as u64 > LARGEST_DUMP {
        bail!("{}: too large for a dump of counters", path.display());
    }
    let dump = Dump::read(&bytes).with_context(name)?;
    let standalone = dump.flags & STANDALONE != 0;
    let plan = plan(&module.program, &options(dump.mode, standalone)?)?;
    let layout = Layout {
        counters: plan.counters,
        entry_counters: module.program.exports.len() as u32,
        half: 0,
        marks: 0,
        captured: 0,
    };
    if dump.digest != digest(module, &plan) || dump.counters != u64::from(layout.counters) {
        bail!(
            "{}: these are not counters of {}",
            path.display(),
            program.display()
        );
    }
    let (Some(counters), Some(entries)) = (layout.counters(&bytes), layout.entry_counters(&bytes))
    else {
        bail!("{}: the dump is cut off", path.display());
    };
    let mut host_entries: Vec<_> = module
        .program
        .exports
        .iter()
        .map(|e| e.1)
        .zip(entries)
        .collect();
    host_entries.extend(module.program.start.map(|start| (start, 1)));
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
            "not exact: the dump was taken after a trap, and the counters do not show where it was",
        ),
    };
    let counts = solve(&module.program, &plan, &counters, &facts).with_context(|| match note {
        Some(note) => format!("{}: {note}", path.display()),
        None => path.display().to_string(),
    })?;
    let stops = standing(module, &counts).with_context(name)?;
    Ok(ReadDump {
        counts,
        stops,
        note: note.map(str::to_owned),
    })
}

/// The maximum number of open activations in a dump. No stack has room for more.
const MOST_ACTIVATIONS: u64 = 1 << 24;

/// Returns the places of the open activations, according to the counters. Each is at the call that
/// ends its block.
fn standing(module: &Module, counts: &Counts) -> Result<Vec<Stop>> {
    let mut stops = Vec::new();
    for (function, counted) in module.program.functions.iter().zip(&counts.functions) {
        for &(block, open) in &counted.open {
            if open > MOST_ACTIVATIONS - stops.len() as u64 {
                bail!("these counters describe more simultaneous activations than are possible");
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
