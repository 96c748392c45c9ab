//! What every function writes of its path, and where.

use afterimage_ids::{BlockId, Counts, EdgeId, EntityRef, FuncId};
use afterimage_placement::{PlanError, function_weights};
use afterimage_program::Program;

use crate::numbering::{Cuts, Numbering};
use crate::steps::{self, Written};
use crate::writers::Writers;
use crate::{EntryIds, Step};

/// Where a [`Step`] goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    /// When control enters a block.
    Start(BlockId),
    /// When control goes over an edge.
    Edge(EdgeId),
    /// Right before the operator that ends a block.
    End(BlockId),
}

/// Path numbers for a whole program, written as one stream of bits.
#[derive(Clone, Debug)]
pub struct PathPlan {
    /// By defined function.
    pub(crate) functions: Vec<Numbering>,
    /// Who says at its entry that it was called.
    pub(crate) entry_ids: EntryIds,
    /// By defined function: the probes, in the order in which they must be placed.
    pub(crate) steps: Vec<Vec<(Spot, Step)>>,
}

impl PathPlan {
    /// Plans for a program, with the counts of an earlier run as weights, if there are any. Near-linear.
    ///
    /// # Errors
    /// If the counts are not of this program.
    pub fn new(
        program: &Program,
        feedback: Option<&Counts>,
        cuts: Cuts,
    ) -> Result<Self, PlanError> {
        let weights = function_weights(program, feedback)?;
        let entry_ids = EntryIds::new(program);
        let functions: Vec<Numbering> = program
            .functions
            .iter()
            .zip(&weights)
            .map(|(function, weights)| Numbering::compute(&function.cfg, weights, cuts))
            .collect();
        let says_its_number =
            |function: FuncId| entry_ids.of(function).is_some_and(|(_, width)| width > 0);
        let imports = (0..program.imports.len()).map(|i| says_its_number(FuncId::new(i)));
        let defined = functions.iter().zip(&program.functions);
        let defined = defined.map(|(numbering, function)| {
            says_its_number(function.id) || numbering.starts().any(|(_, width)| width > 0)
        });
        let writes = imports.chain(defined).collect();
        let writers = Writers::new(program, writes);
        let steps = program
            .functions
            .iter()
            .zip(&functions)
            .map(|(function, numbering)| {
                let written = Written {
                    cfg: &function.cfg,
                    numbering,
                    entry: entry_ids.of(function.id),
                    writers: &writers,
                };
                steps::place(&written)
            })
            .collect();
        Ok(Self {
            functions,
            entry_ids,
            steps,
        })
    }

    /// The probes of the `i`-th defined function, in the order in which they must be placed where several
    /// come to stand at the same operator.
    pub fn steps(&self, i: usize) -> &[(Spot, Step)] {
        &self.steps[i]
    }

    /// The path numbers of a function; `None` for an import.
    pub fn numbering(&self, program: &Program, function: FuncId) -> Option<&Numbering> {
        let i = function.index().checked_sub(program.imports.len())?;
        self.functions.get(i)
    }

    /// What functions write at their entry.
    pub fn entry_ids(&self) -> &EntryIds {
        &self.entry_ids
    }
}
