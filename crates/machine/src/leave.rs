//! Finishes a node after its instructions, by writing its outputs and transferring control
//! according to its end.

use afterimage_ids::{BlockId, NodeId};
use afterimage_program::Callee;

use crate::code::NodeEnd;
use crate::machine::{Bits, Machine, Waiting};
use crate::observe::Observer;
use crate::{MachineError, Trap};

/// The machine's continuation after a node.
enum Then {
    Block(BlockId),
    Call(Callee, Option<u64>, bool),
    Return,
    Throw(u32, BlockId),
    Rethrow(u64, BlockId),
    Trap(Trap),
}

/// The registers of a node, for reading.
pub(crate) struct Bank<'a> {
    pub low: &'a [u64],
    /// The upper halves, empty if there are none.
    pub high: &'a [u64],
}

impl Bank<'_> {
    pub(crate) fn gather(&self, registers: &[u32], values: &mut Vec<Bits>) {
        values.clear();
        for &register in registers {
            let high = self.high.get(register as usize).copied().unwrap_or(0);
            values.push((self.low[register as usize], high));
        }
    }
}

impl Machine<'_> {
    /// Writes the node's outputs, and transfers control according to its end.
    pub(crate) fn leave_node<O: Observer>(
        &mut self,
        node: NodeId,
        base: usize,
        observer: &mut O,
    ) -> Result<(), MachineError> {
        let code = &self.codes[node];
        let bank = Bank {
            low: &self.registers[base..],
            high: if code.wide { &self.high[base..] } else { &[] },
        };
        let values = &mut self.values;
        let then = match &code.end {
            NodeEnd::Next => match code.next {
                Some(next) => Then::Block(next),
                None => return Err(self.diverged("the path ends, but nothing ends the run")),
            },
            NodeEnd::Trap => Then::Trap(Trap::Unreachable),
            NodeEnd::Call {
                callee,
                index,
                arguments,
                ..
            } => {
                bank.gather(arguments, values);
                Then::Call(*callee, index.map(|r| bank.low[r as usize]), false)
            }
            NodeEnd::TailCall {
                callee,
                index,
                arguments,
            } => {
                bank.gather(arguments, values);
                Then::Call(*callee, index.map(|r| bank.low[r as usize]), true)
            }
            NodeEnd::Return(results) => {
                bank.gather(results, values);
                Then::Return
            }
            NodeEnd::Throw {
                tag,
                values: carried,
                block,
            } => {
                bank.gather(carried, values);
                Then::Throw(*tag, *block)
            }
            NodeEnd::Rethrow { exception, block } => {
                match (bank.low[*exception as usize], *block) {
                    (0, _) => Then::Trap(Trap::NullReference),
                    (reference, block) => Then::Rethrow(reference, block),
                }
            }
        };
        self.write_outputs(node, base);
        match then {
            Then::Block(next) => self.waiting = Waiting::Block(next),
            Then::Trap(trap) => self.trapped(trap),
            Then::Call(callee, index, tail) => self.call(node, callee, index, tail, observer)?,
            Then::Return => {
                self.frames.pop();
                self.deliver(false, observer)?;
            }
            Then::Throw(tag, block) => self.unwind(tag, block, observer)?,
            Then::Rethrow(reference, block) => self.rethrow(reference, block, observer)?,
        }
        Ok(())
    }

    /// Writes the variables that a node changes.
    fn write_outputs(&mut self, node: NodeId, base: usize) {
        let code = &self.codes[node];
        let variables = code.variables;
        // A variable may get the old value of another variable, so all sources are read before any
        // variable is written.
        let moves = code.outputs.iter().any(|&(_, from)| from < variables);
        for registers in [&mut self.registers, &mut self.high]
            .into_iter()
            .take(1 + usize::from(code.wide))
        {
            let registers = &mut registers[base..];
            if moves {
                self.moved.clear();
                let values = code.outputs.iter();
                self.moved
                    .extend(values.map(|&(_, from)| registers[from as usize]));
                for (&(to, _), &value) in code.outputs.iter().zip(&self.moved) {
                    registers[to as usize] = value;
                }
            } else {
                for &(to, from) in &code.outputs {
                    registers[to as usize] = registers[from as usize];
                }
            }
        }
    }
}
