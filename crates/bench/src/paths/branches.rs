//! Computes the size of a trace of all branch outcomes from a run's counts alone.

use afterimage_baselines::branch_entropy_bits;
use afterimage_ids::Counts;
use afterimage_program::{BlockEnd, Program};

/// The bits of all branches of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Branches {
    /// The size if each outcome takes the bits needed to distinguish the branch's targets.
    pub packed: u64,
    /// The size if each branch is coded at the entropy of its own outcomes.
    pub entropy: f64,
}

impl Branches {
    pub(crate) fn of(program: &Program, counts: &Counts) -> Self {
        let mut packed = 0;
        let mut outcomes = Vec::new();
        for (function, counts) in program.functions.iter().zip(&counts.functions) {
            let cfg = &function.cfg;
            for (block, content) in cfg.blocks.iter() {
                if !matches!(content.end, BlockEnd::Branch | BlockEnd::Table) {
                    continue;
                }
                let edges = cfg.graph.out_edges(block).iter();
                let taken: Vec<u64> = edges
                    .map(|edge| counts.edges[edge.as_u32() as usize])
                    .collect();
                let width = u64::BITS - (taken.len() as u64).saturating_sub(1).leading_zeros();
                packed += taken.iter().sum::<u64>() * u64::from(width);
                outcomes.push(taken);
            }
        }
        Self {
            packed,
            entropy: branch_entropy_bits(outcomes),
        }
    }
}
