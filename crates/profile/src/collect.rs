//! Collects all rows of one kind from a profile, in program order.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use afterimage_ids::{EntityRef, FuncId, FunctionCounts, OpId};
use afterimage_program::{BlockEnd, Callee, Function};

use crate::walk::code_blocks;
use crate::{
    BlockRow, BranchRow, CallRow, EdgeRow, FunctionProfile, FunctionRow, InstructionRow, Line,
    LineCount, LineRow, OperatorCount, Profile, ProfileError, lines,
};

/// The functions to include in a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// All functions that the module defines.
    #[default]
    All,
    /// Only these functions, each listed once. Imports among them have no rows.
    Only(Vec<FuncId>),
}

impl Scope {
    /// Whether a function has rows.
    pub fn contains(&self, function: FuncId) -> bool {
        match self {
            Self::All => true,
            Self::Only(functions) => functions.contains(&function),
        }
    }
}

/// A function with its counts and the profile derived from them.
type Counted<'s> = (&'s Function, &'s FunctionCounts, &'s FunctionProfile);

/// A function visited during a walk over the program.
struct VisitedFunction<'s> {
    function: &'s Function,
    counts: &'s FunctionCounts,
    profile: &'s FunctionProfile,
    operators: &'s [OperatorCount],
}

impl VisitedFunction<'_> {
    fn at(&self, op: OpId) -> Option<&OperatorCount> {
        self.operators.get(op.index())
    }
}

impl Profile<'_> {
    /// Returns one row per function, ascending by index.
    ///
    /// # Errors
    /// Returns the same errors as [`Profile::operators`]. The same applies to all methods that
    /// return rows.
    pub fn function_rows(&self, scope: &Scope) -> Result<Vec<FunctionRow>, ProfileError> {
        let mut rows = Vec::new();
        let mut operators = Vec::new();
        for (function, _, profile) in self.functions_in(scope) {
            let mut position = self.source.declared(function.body.start);
            if position.is_none() {
                self.operators(function, profile, &mut operators)?;
                position = operators.iter().find_map(|operator| operator.position);
            }
            rows.push(FunctionRow {
                function: function.id,
                entries: profile.entries,
                blocks: profile.executed_blocks,
                instructions: profile.instructions,
                position,
                offset: function.body.start,
            });
        }
        Ok(rows)
    }

    /// Returns one row per source line that has code, ascending by the file's path and then by
    /// line. With [`Scope::All`], includes the lines of functions that the linker removed, with a
    /// count of 0. [`LineCount::arrivals`] describes how arrivals are counted.
    pub fn line_rows(&self, scope: &Scope) -> Result<Vec<LineRow>, ProfileError> {
        if self.arrivals.is_none() {
            self.refuse_range("lines")?;
        }
        let mut counts = HashMap::<Line, LineCount>::new();
        self.each(scope, |seen| {
            let operators = (seen.operators, self.source());
            let of = self.arrivals.is_none().then_some(seen.counts);
            lines::add_lines(seen.function, of, operators, &mut counts).ok_or(
                ProfileError::Overflow {
                    function: seen.function.id,
                },
            )
        })?;
        for (line, count) in &mut counts {
            if let Some(arrivals) = &self.arrivals {
                count.arrivals = arrivals.get(line).copied().unwrap_or(0);
            }
        }
        let row = |(line, count): (Line, LineCount)| LineRow {
            line,
            count: count.arrivals,
            instructions: count.instructions,
            with_library: None,
        };
        let mut rows: Vec<_> = counts.into_iter().map(row).collect();
        if *scope == Scope::All {
            let removed = self.source().removed_lines().into_iter();
            rows.extend(removed.map(|line| row((line, LineCount::default()))));
        }
        rows.sort_unstable_by_key(|row| (self.file(row.line.file), row.line));
        Ok(rows)
    }

    /// Returns one row per basic block, ascending by function and then by block.
    pub fn block_rows(&self, scope: &Scope) -> Result<Vec<BlockRow>, ProfileError> {
        let mut rows = Vec::new();
        self.each(scope, |seen| {
            for (id, block) in code_blocks(seen.function) {
                let range = block.ops.start.index()..block.ops.end.index();
                let operators = &seen.operators[range];
                let executed = operators.iter().filter(|operator| operator.instruction);
                let sum = executed
                    .map(|operator| operator.count)
                    .try_fold(0, u64::checked_add);
                rows.push(BlockRow {
                    function: seen.function.id,
                    block: id,
                    end: block.end,
                    op: block.ops.start,
                    offset: block.offsets.start,
                    count: seen.profile.blocks[id],
                    instructions: sum.ok_or(ProfileError::Overflow {
                        function: seen.function.id,
                    })?,
                    position: operators.iter().find_map(|operator| operator.position),
                });
            }
            Ok(())
        })?;
        Ok(rows)
    }

    /// Returns one row per edge, ascending by function and then by edge.
    pub fn edge_rows(&self, scope: &Scope) -> Result<Vec<EdgeRow>, ProfileError> {
        self.refuse_range("edges")?;
        let mut rows = Vec::new();
        self.each(scope, |seen| {
            for (id, edge) in seen.function.cfg.edges.iter() {
                let op = edge.op.and_then(|op| seen.at(op));
                rows.push(EdgeRow {
                    function: seen.function.id,
                    edge: id,
                    from: edge.from,
                    to: edge.to,
                    kind: edge.kind,
                    back: edge.back,
                    offset: op.map(|op| op.offset),
                    count: seen.counts.edges[id.index()],
                    position: op.and_then(|op| op.position),
                });
            }
            Ok(())
        })?;
        Ok(rows)
    }

    /// Returns one row per instruction, ascending by function and then by operator. The text of
    /// each row is empty. A [`Report`](crate::Report) sets the text of the rows that it keeps.
    pub fn instruction_rows(&self, scope: &Scope) -> Result<Vec<InstructionRow>, ProfileError> {
        let mut rows = Vec::new();
        self.each(scope, |seen| {
            let instructions = seen
                .operators
                .iter()
                .filter(|operator| operator.instruction);
            rows.extend(instructions.map(|operator| InstructionRow {
                function: seen.function.id,
                op: operator.op,
                offset: operator.offset,
                block: operator.block,
                count: operator.count,
                position: operator.position,
                text: Box::default(),
            }));
            Ok(())
        })?;
        Ok(rows)
    }

    /// Returns one row per predicate, ascending by function and then by block. A predicate is a
    /// block that ends with `if`, `br_table`, or a kind of `br_if`.
    pub fn branch_rows(&self, scope: &Scope) -> Result<Vec<BranchRow>, ProfileError> {
        self.refuse_range("the directions of branches")?;
        let mut rows = Vec::new();
        self.each(scope, |seen| {
            let graph = &seen.function.cfg.graph;
            for (id, block) in code_blocks(seen.function) {
                if !matches!(block.end, BlockEnd::Branch | BlockEnd::Table) {
                    continue;
                }
                let ways = graph.out_edges(id).iter();
                let operator = ways
                    .clone()
                    .find_map(|&edge| seen.function.cfg.edges[edge].op)
                    .and_then(|op| seen.at(op));
                let Some(operator) = operator else { continue };
                rows.push(BranchRow {
                    function: seen.function.id,
                    block: id,
                    op: operator.op,
                    offset: operator.offset,
                    count: operator.count,
                    ways: ways
                        .map(|&edge| {
                            (
                                seen.function.cfg.edges[edge].kind,
                                seen.counts.edges[edge.index()],
                            )
                        })
                        .collect(),
                    position: operator.position,
                });
            }
            Ok(())
        })?;
        Ok(rows)
    }

    /// Returns the part of the dynamic call graph that the counts determine. This part consists of
    /// the direct calls and, for each caller, the sum of its calls through tables. Rows ascend by
    /// caller and then by callee, with calls through tables first. A call that never ran has count
    /// 0.
    pub fn call_rows(&self, scope: &Scope) -> Result<Vec<CallRow>, ProfileError> {
        let mut rows = Vec::new();
        self.each(scope, |seen| {
            let mut calls = BTreeMap::<Option<FuncId>, (u64, u32)>::new();
            for (_, block) in code_blocks(seen.function) {
                let (BlockEnd::Call(callee) | BlockEnd::TailCall(callee)) = block.end else {
                    continue;
                };
                let callee = match callee {
                    Callee::Direct(function) => Some(function),
                    Callee::Indirect { .. } => None,
                };
                let range = block.ops.start.index()..block.ops.end.index();
                let call = seen.operators[range]
                    .iter()
                    .rfind(|operator| operator.instruction);
                let (count, sites) = calls.entry(callee).or_default();
                *count = count.checked_add(call.map_or(0, |call| call.count)).ok_or(
                    ProfileError::Overflow {
                        function: seen.function.id,
                    },
                )?;
                *sites += 1;
            }
            rows.extend(calls.into_iter().map(|(callee, (count, sites))| CallRow {
                caller: seen.function.id,
                callee,
                count,
                sites,
            }));
            Ok(())
        })?;
        Ok(rows)
    }

    fn each(
        &self,
        scope: &Scope,
        mut visit: impl FnMut(VisitedFunction<'_>) -> Result<(), ProfileError>,
    ) -> Result<(), ProfileError> {
        let mut operators = Vec::new();
        for (function, counts, profile) in self.functions_in(scope) {
            self.operators(function, profile, &mut operators)?;
            visit(VisitedFunction {
                function,
                counts,
                profile,
                operators: &operators,
            })?;
        }
        Ok(())
    }

    /// Returns the functions of a scope, ascending by index.
    fn functions_in(&self, scope: &Scope) -> Vec<Counted<'_>> {
        match scope {
            Scope::All => self.functions().collect(),
            Scope::Only(functions) => {
                let functions: BTreeSet<_> = functions.iter().copied().collect();
                let functions = functions.into_iter();
                functions.filter_map(|id| self.function(id)).collect()
            }
        }
    }
}
