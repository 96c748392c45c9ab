//! Derives the exact profile of a program from the counts of its edges.

use std::collections::HashMap;

use afterimage_ids::{BlockId, Counts, FuncId, FunctionCounts, OpId, OrigOffset, SecondaryMap};
use afterimage_program::{BlockKind, FileId, Function, Names, Program};

use crate::body::decode;
use crate::frequency::executed_blocks;
use crate::{Line, OperatorCount, ProfileError, Source, block_counts, text, walk};

/// The place where an activation stopped when the run ended.
///
/// An operator that trapped or was executing a call counts as executed. Later operators of its
/// block do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stop {
    /// The function of the activation.
    pub function: FuncId,
    /// The block in which the activation stopped.
    pub block: BlockId,
    /// The first operator of the block that was not executed, or the end of the block's range if
    /// all were executed.
    pub next: OpId,
}

/// The totals of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The times of the first and last block, if only a range of the run was counted.
    pub range: Option<(u64, u64)>,
    /// The number of runs that were added up.
    pub runs: u64,
    /// The number of executed instructions, which are all operators except the markers `block`,
    /// `loop`, `try_table`, `else` and `end`.
    pub instructions: u64,
    /// The number of executed basic blocks.
    pub blocks: u64,
    /// The number of activations of functions that the module defines.
    pub entries: u64,
    /// The number of functions that the module defines.
    pub functions: u64,
    /// The number of these functions that were entered or executed a block.
    pub executed_functions: u64,
    /// The number of activations that were still open when the run ended.
    pub open: u64,
}

impl Totals {
    /// Adds the counts of a function. Returns `None` if a sum does not fit into 64 bits.
    pub(crate) fn add(&mut self, of: &FunctionProfile) -> Option<()> {
        self.instructions = self.instructions.checked_add(of.instructions)?;
        self.blocks = self.blocks.checked_add(of.executed_blocks)?;
        self.entries = self.entries.checked_add(of.entries)?;
        self.executed_functions += u64::from(of.entries > 0 || of.executed_blocks > 0);
        Some(())
    }
}

/// The exact profile of one execution, or of several whose counts were [added
/// up](crate::add_counts).
///
/// The profile stores only counts of blocks and derives the rest on demand, one function at a time.
/// So its size is proportional to the graphs, not to the operators.
pub struct Profile<'a> {
    pub(crate) program: &'a Program,
    pub(crate) module: &'a [u8],
    pub(crate) counts: &'a Counts,
    pub(crate) names: &'a Names,
    pub(crate) source: &'a dyn Source,
    pub(crate) functions: Vec<FunctionProfile>,
    pub(crate) totals: Totals,
    /// The number of arrivals at each line that has any, for a range whose lines were counted.
    pub(crate) arrivals: Option<HashMap<Line, u64>>,
}

/// The data that [`Profile`] stores for one function.
#[derive(Clone, Debug)]
pub struct FunctionProfile {
    /// The number of activations.
    pub entries: u64,
    /// The number of executions of each vertex of the function's graph.
    pub blocks: SecondaryMap<BlockId, u64>,
    /// The places where open activations of the function stopped, ascending. Each place is a block,
    /// and the block's first operator that was not executed.
    pub stops: Vec<(BlockId, OpId)>,
    /// The number of basic blocks that the function executed.
    pub executed_blocks: u64,
    /// The number of instructions that the function executed, excluding callees.
    pub instructions: u64,
}

impl<'a> Profile<'a> {
    /// Derives the profile of a run. `stops` contains one element for each activation that was open
    /// at the end, in any order.
    ///
    /// O(size of the graphs and of the bodies that were executed).
    ///
    /// # Errors
    /// Returns an error if the counts do not belong to an execution of this program that ended at
    /// these stops.
    pub fn new(
        program: &'a Program,
        module: &'a [u8],
        counts: &'a Counts,
        stops: &[Stop],
        names: &'a Names,
        source: &'a dyn Source,
    ) -> Result<Self, ProfileError> {
        if counts.functions.len() != program.functions.len() {
            return Err(ProfileError::Functions {
                expected: program.functions.len(),
                got: counts.functions.len(),
            });
        }
        let mut stops = stops.to_vec();
        stops.sort_unstable();
        let mut unclaimed = stops.as_slice();
        let mut totals = Totals {
            runs: 1,
            functions: program.functions.len() as u64,
            ..Totals::default()
        };
        let mut functions = Vec::with_capacity(program.functions.len());
        let mut body = Vec::new();
        for (function, counts) in program.functions.iter().zip(&counts.functions) {
            let here = unclaimed.partition_point(|stop| stop.function <= function.id);
            let (own, rest) = unclaimed.split_at(here);
            unclaimed = rest;
            let blocks = block_counts(function, counts)?;
            let stops = checked_stops(function, counts, own)?;
            let overflow = || ProfileError::Overflow {
                function: function.id,
            };
            let executed_blocks = executed_blocks(function, &blocks).ok_or_else(overflow)?;
            let mut instructions = 0;
            if counts.entries > 0 {
                decode(program, module, function, &mut body)?;
                instructions = walk::instructions(function, &body, &blocks, &stops)?;
            }
            totals.open += stops.len() as u64;
            let of = FunctionProfile {
                entries: counts.entries,
                blocks,
                stops,
                executed_blocks,
                instructions,
            };
            totals.add(&of).ok_or_else(overflow)?;
            functions.push(of);
        }
        if let Some(stop) = unclaimed.first() {
            return Err(ProfileError::NoSuchStop {
                function: stop.function,
                block: stop.block,
                op: stop.next,
            });
        }
        Ok(Self {
            program,
            module,
            counts,
            names,
            source,
            functions,
            totals,
            arrivals: None,
        })
    }

    /// Returns the same profile, for counts that were added up over `runs` runs.
    #[must_use]
    pub fn over(mut self, runs: u64) -> Self {
        self.totals.runs = runs;
        self
    }

    /// Returns the program.
    pub fn program(&self) -> &'a Program {
        self.program
    }

    /// Returns the names of the program's functions.
    pub fn names(&self) -> &'a Names {
        self.names
    }

    /// Returns the source files and positions of the program.
    pub fn source(&self) -> &'a dyn Source {
        self.source
    }

    /// Returns the totals of the run.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Returns the path of a source file, or an empty text if the source has no such file.
    pub fn file(&self, file: FileId) -> &'a str {
        self.source
            .files()
            .get(file.0 as usize)
            .map_or("", String::as_str)
    }

    /// Returns the functions that the module defines, with their edge counts and the profiles
    /// derived from them.
    pub fn functions(
        &self,
    ) -> impl ExactSizeIterator<Item = (&'a Function, &'a FunctionCounts, &FunctionProfile)> {
        let counted = self.program.functions.iter().zip(&self.counts.functions);
        counted
            .zip(&self.functions)
            .map(|((function, counts), profile)| (function, counts, profile))
    }

    /// Returns a function that the module defines, or `None` for an import or an index out of
    /// range.
    pub fn function(
        &self,
        id: FuncId,
    ) -> Option<(&'a Function, &'a FunctionCounts, &FunctionProfile)> {
        let index = (id.as_u32() as usize).checked_sub(self.program.imports.len())?;
        let function = self.program.functions.get(index)?;
        Some((
            function,
            &self.counts.functions[index],
            &self.functions[index],
        ))
    }

    /// Writes every operator of a function into `into`, in body order, with its number of
    /// executions and its position.
    ///
    /// O(operators × log rows of the source map).
    ///
    /// # Errors
    /// Returns an error if the program was not parsed from the profile's module.
    pub fn operators(
        &self,
        function: &Function,
        profile: &FunctionProfile,
        into: &mut Vec<OperatorCount>,
    ) -> Result<(), ProfileError> {
        let mut body = Vec::new();
        decode(self.program, self.module, function, &mut body)?;
        walk::operators(function, &body, profile, self.source, into);
        Ok(())
    }

    /// Returns the lines of the module's text for the operators at these ascending offsets, with
    /// their indentation. A line is empty if there is no operator. A line is also empty for the
    /// `end` of a function, which the text format writes as a parenthesis. O(size of the module).
    ///
    /// # Errors
    /// Returns an error if the module cannot be written as text.
    pub fn texts(&self, offsets: &[OrigOffset]) -> Result<Vec<String>, ProfileError> {
        text::texts(self.module, offsets)
    }
}

/// Returns the stops of a function, after checking that their number in each block matches the
/// counts.
fn checked_stops(
    function: &Function,
    counts: &FunctionCounts,
    stops: &[Stop],
) -> Result<Vec<(BlockId, OpId)>, ProfileError> {
    let mut unseen = stops;
    for &(block, open) in &counts.open {
        let here = unseen.iter().take_while(|stop| stop.block == block).count();
        if here as u64 != open {
            let listed = here as u64;
            return Err(ProfileError::OpenFrames {
                function: function.id,
                block,
                open,
                listed,
            });
        }
        unseen = &unseen[here..];
    }
    if let Some(stop) = unseen.first() {
        let listed = unseen
            .iter()
            .take_while(|other| other.block == stop.block)
            .count() as u64;
        return Err(ProfileError::OpenFrames {
            function: function.id,
            block: stop.block,
            open: 0,
            listed,
        });
    }
    for stop in stops {
        let block = &function.cfg.blocks[stop.block];
        if block.kind != BlockKind::Code || stop.next < block.ops.start || stop.next > block.ops.end
        {
            return Err(ProfileError::NoSuchStop {
                function: function.id,
                block: stop.block,
                op: stop.next,
            });
        }
    }
    Ok(stops.iter().map(|stop| (stop.block, stop.next)).collect())
}
