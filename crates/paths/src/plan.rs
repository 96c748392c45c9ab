//! Plans which bits of the path each function writes, and where.

use afterimage_ids::{BlockId, Counts, EdgeId, EntityRef, FuncId};
use afterimage_placement::{PlanError, function_weights};
use afterimage_program::{BlockKind, Cfg, Program};

use crate::numbering::{Cuts, Numbering};
use crate::steps::{self, Written};
use crate::writers::Writers;
use crate::{EntryIds, Step, width_of};

/// The place of a [`Step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    /// The step is taken when control enters a block.
    Start(BlockId),
    /// The step is taken when control passes over an edge.
    Edge(EdgeId),
    /// The step is taken right before the operator that ends a block.
    End(BlockId),
}

/// Path numbers for a whole program, written as one stream of bits.
#[derive(Clone, Debug)]
pub struct PathPlan {
    /// The path numbers of each defined function.
    pub(crate) functions: Vec<Numbering>,
    /// The functions that identify themselves at their entry.
    pub(crate) entry_ids: EntryIds,
    /// The probes of each defined function, in the order in which they must be placed.
    pub(crate) steps: Vec<Vec<(Spot, Step)>>,
}

impl PathPlan {
    /// Plans a program's probes. The counts of an earlier run serve as weights if given. Time:
    /// near-linear.
    ///
    /// # Errors
    /// Returns an error if the counts belong to another program.
    pub fn new(
        program: &Program,
        feedback: Option<&Counts>,
        cuts: Cuts,
    ) -> Result<Self, PlanError> {
        let weights = function_weights(program, feedback)?;
        let entry_ids = EntryIds::new(program);
        let all = &program.functions;
        let functions = afterimage_parallel::map(all.len(), |i| {
            Numbering::compute(&all[i].cfg, &weights[i], cuts)
        });
        let says_its_number =
            |function: FuncId| entry_ids.of(function).is_some_and(|(_, width)| width > 0);
        let imports = (0..program.imports.len()).map(|i| says_its_number(FuncId::new(i)));
        let defined = functions.iter().zip(all);
        let defined = defined.map(|(numbering, function)| {
            says_its_number(function.id) || numbering.starts().any(|(_, width)| width > 0)
        });
        let writes = imports.chain(defined).collect();
        let writers = Writers::new(program, writes);
        let steps = afterimage_parallel::map(all.len(), |i| {
            let (cfg, numbering) = (&all[i].cfg, &functions[i]);
            steps::place(&Written {
                cfg,
                writers: &writers,
                at_start: &|v| at_start(cfg, numbering, entry_ids.of(all[i].id), v),
                on_edge: &|e| on_edge(cfg, numbering, e),
            })
        });
        Ok(Self {
            functions,
            entry_ids,
            steps,
        })
    }

    /// Returns the probes of the `i`-th defined function. Steps that share an operator must be
    /// placed in this order.
    pub fn steps(&self, i: usize) -> &[(Spot, Step)] {
        &self.steps[i]
    }

    /// Returns the path numbers of a function, or `None` for an import.
    pub fn numbering(&self, program: &Program, function: FuncId) -> Option<&Numbering> {
        let i = function.index().checked_sub(program.imports.len())?;
        self.functions.get(i)
    }

    /// Returns a hash of the plan. Plans that write the same bits in the same places have the same
    /// hash. Different plans almost certainly have different hashes.
    pub fn fingerprint(&self) -> u64 {
        // The hash is FNV-1a, so it is the same on every machine and in every build.
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        let mut mix = |value: u64| {
            for byte in value.to_le_bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        };
        for (i, numbering) in self.functions.iter().enumerate() {
            mix(i as u64);
            for (block, width) in numbering.starts() {
                mix(u64::from(block.as_u32()) << 8 | u64::from(width));
            }
            for &(edge, value) in numbering.values() {
                mix(u64::from(edge.as_u32()) << 32 | u64::from(value));
            }
        }
        hash
    }

    /// Returns the numbers that functions write at their entry.
    pub fn entry_ids(&self) -> &EntryIds {
        &self.entry_ids
    }
}

/// Returns the step that reserves bits for the path that begins at a basic block and, at the root,
/// for the function's number.
fn at_start(
    cfg: &Cfg,
    numbering: &Numbering,
    entry: Option<(u32, u8)>,
    v: BlockId,
) -> Option<Step> {
    let path = numbering.start(v)?;
    let (number, more) = match entry {
        Some(entry) if v == cfg.graph.root() => entry,
        _ => (0, 0),
    };
    let width = path + more;
    (width > 0).then_some(Step::Begin {
        width,
        bits: u64::from(number) << path,
    })
}

/// Returns the step for the value that an edge adds. A dispatch vertex has no code, so its edges
/// also reserve its bits.
fn on_edge(cfg: &Cfg, numbering: &Numbering, edge: EdgeId) -> Option<Step> {
    let graph = &cfg.graph;
    let from = graph.from(edge);
    let value = numbering.value(edge);
    if matches!(cfg.blocks[from].kind, BlockKind::Dispatch(_)) {
        let width = width_of(graph.out_edges(from).len() as u64);
        let bits = u64::from(value);
        return (width > 0).then_some(Step::Begin { width, bits });
    }
    (value > 0).then_some(Step::Add(value))
}
