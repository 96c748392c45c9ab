//! Defines the ways of recording a run's path, for comparison.

use afterimage_ids::{Counts, FuncId};
use afterimage_paths::witness::{self, WitnessOptions, WitnessPlan};
use afterimage_paths::{Counter, Cuts, EntryIds, PathPlan, Regenerator};
use afterimage_placement::PlanError;
use afterimage_program::Program;
use afterimage_record::Command;
use afterimage_record::measure::{Compiled, Execution, Setting, compile};
use afterimage_rewrite::{Layout, Options, PathProbes, Probes, TracePlan, rewrite};
use anyhow::{Context, Result, bail};

use super::tally::Tally;
use super::words::WordReader;

/// A way of recording. To add another, add a line to [`SCHEMES`].
pub(crate) struct Scheme {
    /// The scheme's name in the tables.
    pub name: &'static str,
    plan: fn(&Program, &Counts) -> Result<Plan, PlanError>,
}

/// The words to write, and their places.
enum Plan {
    Paths(PathPlan),
    Witnesses(WitnessPlan),
}

/// The schemes. Recordings use the first.
pub(crate) const SCHEMES: [Scheme; 4] = [
    Scheme {
        name: "paths",
        plan: |program, _| paths(program, None, Cuts::default()),
    },
    Scheme {
        name: "feedback",
        plan: |program, counts| paths(program, Some(counts), Cuts::default()),
    },
    Scheme {
        name: "witnesses",
        plan: |program, _| {
            let plan = WitnessPlan::new(program, None, &WitnessOptions::default());
            plan.map(Plan::Witnesses)
        },
    },
    Scheme {
        name: BRANCHES,
        // If paths start at every vertex with more than one path, each branch writes its own
        // outcome.
        plan: |program, _| {
            let cuts = Cuts {
                through: 1,
                ..Cuts::default()
            };
            paths(program, None, cuts)
        },
    },
];

/// The name of the scheme that writes every branch's outcome at once.
pub(crate) const BRANCHES: &str = "branches";

fn paths(program: &Program, feedback: Option<&Counts>, cuts: Cuts) -> Result<Plan, PlanError> {
    PathPlan::new(program, feedback, cuts).map(Plan::Paths)
}

/// The number of words in each half of the buffer, which is the same as in recordings.
const HALF: u32 = 1 << 17;
/// The duration, in seconds, above which a compilation is not repeated.
const LONG_COMPILATION: f64 = 5.0;

/// A program instrumented to write its path by one of the schemes.
pub(crate) struct Prepared {
    pub name: &'static str,
    plan: Plan,
    layout: Layout,
    compiled: Compiled,
    start: FuncId,
}

impl Scheme {
    pub(crate) fn prepare(
        &self,
        bytes: &[u8],
        program: &Program,
        counts: &Counts,
    ) -> Result<Prepared> {
        let plan = (self.plan)(program, counts)?;
        let probes = PathProbes {
            plan: plan.to_trace(),
            in_memory: None,
            half: HALF,
        };
        let rewritten = rewrite(bytes, program, Probes::Paths(probes), &Options::default())?;
        let start = program.exports.iter().find(|export| export.0 == "_start");
        Ok(Prepared {
            name: self.name,
            layout: rewritten.layout,
            compiled: warm(&rewritten.module)?,
            plan,
            start: start.context("the program exports no _start")?.1,
        })
    }
}

impl Prepared {
    /// Runs the program. `words` receives the words that the probes write, on another thread.
    pub(crate) fn run(
        &self,
        command: &Command,
        words: impl FnMut(&[u64]) + Send,
    ) -> Result<Execution> {
        let ids = self.plan.entry_ids();
        Ok(self.compiled.run_traced(command, ids, self.layout, words)?)
    }

    /// Returns a regenerator of paths from the words, if these are path numbers.
    pub(crate) fn regenerator<'a>(&'a self, program: &'a Program) -> Result<Regenerator<'a>> {
        let Plan::Paths(plan) = &self.plan else {
            bail!("the scheme {} does not write path numbers", self.name);
        };
        let mut regenerator = Regenerator::new(program, plan);
        regenerator.host_call(self.start);
        Ok(regenerator)
    }

    /// Returns a counter of the blocks that the words represent, if these are path numbers.
    pub(crate) fn counter<'a>(&'a self, program: &'a Program) -> Result<Counter<'a>> {
        let Plan::Paths(plan) = &self.plan else {
            bail!("the scheme {} does not write path numbers", self.name);
        };
        let mut counter = Counter::new(program, plan);
        counter.host_call(self.start);
        Ok(counter)
    }

    /// Regenerates the blocks of all words except the last, without using the blocks. Returns the
    /// number of blocks.
    pub(crate) fn regenerate(&self, program: &Program, words: &[u64]) -> Result<u64> {
        match &self.plan {
            Plan::Paths(_) => {
                let mut regenerator = self.regenerator(program)?;
                regenerator.feed(words, &mut Tally::default())?;
                Ok(regenerator.time())
            }
            Plan::Witnesses(plan) => {
                let mut regenerator = witness::Regenerator::new(program, plan);
                regenerator.host_call(self.start);
                let mut tally = Tally::default();
                regenerator.advance(&mut WordReader::new(words), &mut tally)?;
                Ok(tally.blocks)
            }
        }
    }

    pub(crate) fn compile_seconds(&self) -> f64 {
        self.compiled.compile_seconds
    }
}

impl Plan {
    fn to_trace(&self) -> TracePlan<'_> {
        match self {
            Self::Paths(plan) => TracePlan::Paths(plan),
            Self::Witnesses(plan) => TracePlan::Witnesses(plan),
        }
    }

    fn entry_ids(&self) -> &EntryIds {
        match self {
            Self::Paths(plan) => plan.entry_ids(),
            Self::Witnesses(plan) => plan.entry_ids(),
        }
    }
}

/// Compiles a module twice, unless that takes a long time. The first time warms up the machine.
pub(crate) fn warm(module: &[u8]) -> Result<Compiled> {
    let first = compile(Setting::default(), module)?;
    if first.compile_seconds > LONG_COMPILATION {
        return Ok(first);
    }
    Ok(compile(Setting::default(), module)?)
}
