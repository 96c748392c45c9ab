//! Computes the cost of lines of the user's own code, including library code that was inlined into
//! them or called from them.
//!
//! Counts show the cost of inlined code. They do not show how much of a library function's cost
//! each caller caused, so the path must supply the cost of the function's activations
//! ([`Charged`]).

use std::collections::HashMap;

use afterimage_ids::{BlockId, EntityRef, FuncId};

use crate::walk::code_blocks;
use crate::{Folded, Line, LineCount, OperatorCount, Profile, ProfileError, Source, Stop, lines};

/// The lines of shown code, with the cost of all code that they executed, including library code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WholeLines {
    /// For each line, the number of arrivals from other code, and the number of all its
    /// instructions.
    pub lines: HashMap<Line, LineCount>,
    /// The number of instructions for which no line is known. They belong to code that runs before
    /// and after the user's own code, or to code without a line.
    pub elsewhere: u64,
}

/// The line to which the cost of library code is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PaidBy {
    /// A line of shown code.
    Line(Line),
    /// No line is known.
    Nobody,
}

/// The part of a block's cost that is not charged to its own lines, and the line to which the
/// block's calls are charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charged {
    /// The instructions charged to the caller of the function.
    pub instructions: u32,
    /// The line to which the block's calls are charged, or `None` for the line that called the
    /// function.
    pub calls: Option<PaidBy>,
}

/// The part of [`WholeLines`] that follows from the counts alone, and the data that is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// The part that follows from the counts alone.
    pub whole: WholeLines,
    /// The missing part, for each block that was executed and costs something.
    pub blocks: HashMap<(FuncId, BlockId), Charged>,
}

impl WholeLines {
    /// Adds instructions to the cost of the payer. Returns `None` if a sum does not fit into 64
    /// bits.
    pub fn pay(&mut self, by: PaidBy, instructions: u64) -> Option<()> {
        let sum = match by {
            PaidBy::Line(line) => &mut self.lines.entry(line).or_default().instructions,
            PaidBy::Nobody => &mut self.elsewhere,
        };
        *sum = sum.checked_add(instructions)?;
        Some(())
    }

    /// Adds the lines of another run. Returns `None` if a sum does not fit into 64 bits.
    pub fn add(&mut self, other: Self) -> Option<()> {
        self.pay(PaidBy::Nobody, other.elsewhere)?;
        for (line, count) in other.lines {
            self.pay(PaidBy::Line(line), count.instructions)?;
            let arrivals = &mut self.lines.entry(line).or_default().arrivals;
            *arrivals = arrivals.checked_add(count.arrivals)?;
        }
        Some(())
    }

    /// Returns the number of all instructions.
    pub fn instructions(&self) -> u64 {
        let lines = self.lines.values().map(|line| line.instructions);
        lines.fold(self.elsewhere, u64::saturating_add)
    }
}

impl Profile<'_> {
    /// Returns the part of the whole cost of lines that follows from the counts. O(operators).
    ///
    /// # Errors
    /// Returns the same errors as [`Profile::operators`], and an error if a sum does not fit into
    /// 64 bits.
    pub fn costs(&self, folded: &Folded<'_>) -> Result<Costs, ProfileError> {
        let mut costs = Costs::default();
        let mut operators = Vec::new();
        for (function, counts, of) in self.functions() {
            if of.executed_blocks == 0 {
                continue;
            }
            let overflow = || ProfileError::Overflow {
                function: function.id,
            };
            self.operators(function, of, &mut operators)?;
            let first = operators.iter().find_map(|operator| operator.position);
            let declared = self.source.declared(function.body.start);
            let name = self.names().function(function.id);
            let own = folded.shows_function(name, declared.or(first));
            fold(&mut operators, folded);
            let located = (&*operators, folded as &dyn Source);
            lines::add_lines(function, Some(counts), located, &mut costs.whole.lines)
                .ok_or_else(overflow)?;
            for (block, code) in code_blocks(function) {
                let here = &operators[code.ops.start.index()..code.ops.end.index()];
                let here = here.iter().filter(|operator| operator.instruction);
                let unknown = here.clone().filter(|operator| operator.position.is_none());
                if own {
                    let sum = unknown.clone().map(|operator| operator.count);
                    let sum = sum.fold(0, u64::saturating_add);
                    costs.whole.pay(PaidBy::Nobody, sum).ok_or_else(overflow)?;
                }
                let line = here.clone().next_back().and_then(lines::line_of);
                let charged = Charged {
                    // A body has fewer than 2³² operators.
                    instructions: if own { 0 } else { unknown.count() as u32 },
                    calls: match line {
                        Some(line) => Some(PaidBy::Line(line)),
                        None => own.then_some(PaidBy::Nobody),
                    },
                };
                costs.blocks.insert((function.id, block), charged);
            }
        }
        Ok(costs)
    }

    /// Returns the number of instructions that are charged for the run's last block but were not
    /// executed. Also returns the line to which they are charged. `stops` lists the open
    /// activations, the innermost first.
    ///
    /// # Errors
    /// Returns the same errors as [`Profile::operators`].
    pub fn unpaid(
        &self,
        folded: &Folded<'_>,
        costs: &Costs,
        stops: &[Stop],
    ) -> Result<Option<(PaidBy, u64)>, ProfileError> {
        let Some((innermost, around)) = stops.split_first() else {
            return Ok(None);
        };
        let charge = |stop: &Stop| costs.blocks.get(&(stop.function, stop.block));
        let of = self.function(innermost.function);
        let (
            Some((function, _, of)),
            Some(Charged {
                instructions: 1.., ..
            }),
        ) = (of, charge(innermost))
        else {
            return Ok(None);
        };
        let mut operators = Vec::new();
        self.operators(function, of, &mut operators)?;
        fold(&mut operators, folded);
        let end = function.cfg.blocks[innermost.block].ops.end;
        let missed = operators[innermost.next.index()..end.index()].iter();
        let missed = missed.filter(|operator| operator.instruction && operator.position.is_none());
        let payer = around.iter().find_map(|stop| charge(stop)?.calls);
        let by = payer.unwrap_or(PaidBy::Nobody);
        Ok(Some((by, missed.count() as u64)))
    }
}

/// Gives each operator of hidden code the position of the shown code into which it was inlined, or
/// no position.
fn fold(operators: &mut [OperatorCount], folded: &Folded<'_>) {
    for operator in operators.iter_mut().filter(|operator| operator.instruction) {
        let shown = operator.position.filter(|at| folded.shows(at.file));
        // Code without a line may still be inlined code that a shown line called.
        let around = || folded.around(operator.offset).into_iter().next();
        operator.position = shown
            .or_else(|| folded.locate(operator.offset))
            .or_else(around);
    }
}
