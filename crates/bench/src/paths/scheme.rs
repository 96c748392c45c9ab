//! The ways of writing down a run's path that are compared.

use afterimage_ids::{Counts, FuncId};
use afterimage_paths::{Cuts, PathPlan, Regenerator};
use afterimage_placement::PlanError;
use afterimage_program::Program;
use afterimage_record::Command;
use afterimage_record::measure::{Compiled, Execution, Setting, compile};
use afterimage_rewrite::{Layout, Options, PathProbes, Probes, TracePlan, rewrite};
use anyhow::{Context, Result};

/// A way of recording. Another one is a line in [`SCHEMES`].
pub(crate) struct Scheme {
    /// What the tables call it.
    pub name: &'static str,
    plan: fn(&Program, &Counts) -> Result<PathPlan, PlanError>,
}

/// The ways; the first is the one that recordings use.
pub(crate) const SCHEMES: [Scheme; 3] = [
    Scheme {
        name: "paths",
        plan: |program, _| PathPlan::new(program, None, Cuts::default()),
    },
    Scheme {
        name: "feedback",
        plan: |program, counts| PathPlan::new(program, Some(counts), Cuts::default()),
    },
    Scheme {
        name: BRANCHES,
        // With every vertex a start through which more than one path leads, each branch writes its own outcome.
        plan: |program, _| {
            let cuts = Cuts {
                through: 1,
                ..Cuts::default()
            };
            PathPlan::new(program, None, cuts)
        },
    },
];

/// The name of the way that writes every branch's outcome at once.
pub(crate) const BRANCHES: &str = "branches";

/// Words of each half of the buffer, as in recordings.
const HALF: u32 = 1 << 17;
/// Compilations that take longer than this many seconds are not repeated.
const LONG_COMPILATION: f64 = 5.0;

/// A program made to write its path in one of the ways.
pub(crate) struct Prepared {
    pub name: &'static str,
    plan: PathPlan,
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
            plan: TracePlan::Paths(&plan),
            in_memory: &[],
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
    /// Runs it; `words` gets what it writes, on another thread.
    pub(crate) fn run(
        &self,
        command: &Command,
        words: impl FnMut(&[u64]) + Send,
    ) -> Result<Execution> {
        let run = self
            .compiled
            .run_traced(command, self.plan.entry_ids(), self.layout, words);
        Ok(run?)
    }

    /// What makes the path of the words.
    pub(crate) fn regenerator<'a>(&'a self, program: &'a Program) -> Regenerator<'a> {
        let mut regenerator = Regenerator::new(program, &self.plan);
        regenerator.host_call(self.start);
        regenerator
    }

    pub(crate) fn compile_seconds(&self) -> f64 {
        self.compiled.compile_seconds
    }
}

/// Compiles a module twice, if that does not take long: the first time warms the machine up.
pub(crate) fn warm(module: &[u8]) -> Result<Compiled> {
    let first = compile(Setting::default(), module)?;
    if first.compile_seconds > LONG_COMPILATION {
        return Ok(first);
    }
    Ok(compile(Setting::default(), module)?)
}
