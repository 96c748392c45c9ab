//! Numbers the blocks, edges, statements and lines of a program. The tables are joined by these
//! numbers.

use std::collections::HashMap;

use afterimage::profile::{Line, LineRow};
use afterimage_ids::{BlockId, EdgeId, EntityRef, FuncId, OpId};
use afterimage_program::{Location, Program};
use anyhow::{Result, bail};

/// The numbers of a program's parts. Statement numbers count all operators, so they depend only on
/// the program.
pub(crate) struct Ids {
    imports: u32,
    /// The first number of each defined function's blocks, edges and operators.
    bases: Vec<[u32; 3]>,
    lines: HashMap<Line, u32>,
}

impl Ids {
    /// Numbers the parts of a program. Lines are numbered in the order of `lines`.
    pub fn new(program: &Program, lines: &[LineRow]) -> Result<Self> {
        let mut next = [0u32; 3];
        let mut bases = Vec::with_capacity(program.functions.len());
        for function in &program.functions {
            bases.push(next);
            let cfg = &function.cfg;
            let own = [
                cfg.blocks.len(),
                cfg.edges.len(),
                function.operators as usize,
            ];
            for (next, own) in next.iter_mut().zip(own) {
                let sum = *next as usize + own;
                match i32::try_from(sum) {
                    Ok(_) => *next = sum as u32,
                    Err(_) => bail!(
                        "the program has more than 2,147,483,647 operators, the largest number that a column can hold"
                    ),
                }
            }
        }
        Ok(Self {
            imports: program.imports.len() as u32,
            bases,
            lines: lines.iter().map(|row| row.line).zip(0..).collect(),
        })
    }

    #[inline]
    fn base(&self, function: FuncId, which: usize) -> u32 {
        let index = function.as_u32().wrapping_sub(self.imports) as usize;
        self.bases.get(index).map_or(0, |bases| bases[which])
    }

    /// Returns a block's number.
    #[inline]
    pub fn block(&self, function: FuncId, block: BlockId) -> i32 {
        (self.base(function, 0) + block.as_u32()) as i32
    }

    /// Returns an edge's number.
    pub fn edge(&self, function: FuncId, edge: EdgeId) -> i32 {
        (self.base(function, 1) + edge.index() as u32) as i32
    }

    /// Returns an operator's number.
    #[inline]
    pub fn statement(&self, function: FuncId, op: OpId) -> i32 {
        (self.base(function, 2) + op.as_u32()) as i32
    }

    /// Returns the number of a place's line, if the line has code.
    pub fn line(&self, at: Option<Location>) -> Option<i32> {
        let line = at.map(Line::from)?;
        self.lines.get(&line).map(|&number| number as i32)
    }
}
