//! Who wrote the variables of the open activations last.

use afterimage_ids::NodeId;
use afterimage_machine::lengthened;

use super::KEPT;
use crate::epoch::{BEFORE_NODE as BEFORE, CALLED_NODE as CALLED};

/// The execution of a node that wrote a variable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    /// The node; the activation's first, if nothing wrote the variable since it began.
    pub node: NodeId,
    /// Which execution of it.
    pub execution: u64,
    /// How many nodes the activation had executed by then, it included.
    pub step: u64,
    /// What its value costs.
    pub cost: u32,
    /// The number of the activation: what another one left is as if nothing had been written.
    of: u64,
}

impl Default for Written {
    fn default() -> Self {
        Self::unpack([0; 4])
    }
}

impl Written {
    /// Who wrote the variable, as it is told: of an activation that was open at first, executions of before have no number.
    pub(super) fn by(&self) -> (u32, u64) {
        match (self.execution, self.step) {
            (0, 0) => (BEFORE, 0),
            (0, _) => (CALLED, 0),
            (execution, _) => (self.node.as_u32(), execution),
        }
    }
}

/// What is kept of a [`Written`]: its number of the activation, execution, step, and node and cost. Numbers only, because a list of zeros takes no memory
/// before it is written, and most variables of a deep stack never are.
type Packed = [u64; 4];

impl Written {
    #[inline(always)]
    fn pack(self) -> Packed {
        let node = u64::from(self.node.as_u32()) << 32 | u64::from(self.cost);
        [self.of, self.execution, self.step, node]
    }

    #[inline(always)]
    fn unpack([of, execution, step, node]: Packed) -> Self {
        Self {
            node: NodeId::from_u32((node >> 32) as u32),
            execution,
            step,
            cost: node as u32,
            of,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    /// Where its variables begin.
    base: usize,
    /// How many it has; known once its first node begins.
    variables: usize,
    /// The last node that it executed, and how many it has.
    last: Written,
    /// What variables are that nothing wrote since it began.
    begins: Written,
}

/// The open activations.
#[derive(Debug, Default)]
pub(super) struct Activations {
    frames: Vec<Frame>,
    variables: Vec<Packed>,
    /// How many activations have begun.
    begun: u64,
    /// What the arguments of a call, or the results of a return, cost.
    pub given: Vec<u32>,
}

impl Activations {
    /// One begins. What `given` has are the costs of its arguments.
    pub(super) fn enter(&mut self) {
        let base = self.frames.last().map_or(0, |f| f.base + f.variables);
        self.begun += 1;
        let begins = Written {
            of: self.begun,
            ..Written::default()
        };
        self.frames.push(Frame {
            base,
            variables: 0,
            last: begins,
            begins,
        });
    }

    /// Those that are open at first, the outermost first: the node with the call that each waits for, and how many variables it has. What these are was written before, nobody knows where.
    pub(super) fn resume(&mut self, open: impl Iterator<Item = (NodeId, usize)>) {
        for (node, variables) in open {
            self.enter();
            let Some(frame) = self.frames.last_mut() else {
                continue;
            };
            frame.variables = variables;
            frame.begins.cost = KEPT;
            frame.last.node = node;
            // It is not its first that comes next.
            frame.last.step = 1;
            let end = frame.base + variables;
            if self.variables.len() < end {
                self.variables = lengthened(&self.variables, 2 * end);
            }
        }
    }

    /// Of each open activation, the outermost first, who wrote its variables.
    pub(super) fn written(&self) -> Vec<Box<[(u32, u64)]>> {
        let frames = self.frames.iter().map(|frame| {
            let variables = &self.variables[frame.base..frame.base + frame.variables];
            let by = |variable: &Packed| {
                let written = Written::unpack(*variable);
                let known = written.of == frame.begins.of;
                if known { written } else { frame.begins }.by()
            };
            variables.iter().map(by).collect()
        });
        frames.collect()
    }

    /// One ends.
    pub(super) fn leave(&mut self) {
        self.frames.pop();
    }

    /// What was written is not to be computed any more.
    pub(super) fn keep(&mut self) {
        for frame in &mut self.frames {
            frame.begins.cost = KEPT;
            let of = frame.begins.of;
            for variable in &mut self.variables[frame.base..frame.base + frame.variables] {
                let written = Written::unpack(*variable);
                if written.of == of {
                    let cost = KEPT;
                    *variable = Written { cost, ..written }.pack();
                }
            }
        }
        self.given.fill(KEPT);
    }

    /// A node begins in the innermost one, which has so many variables. The answer is who wrote them.
    #[inline(always)]
    pub(super) fn node(&mut self, node: NodeId, execution: u64, variables: usize) -> Innermost<'_> {
        let Some(frame) = self.frames.last_mut() else {
            return Innermost::default();
        };
        frame.last.node = node;
        frame.last.execution = execution;
        frame.last.step += 1;
        if frame.last.step == 1 {
            frame.variables = variables;
            let end = frame.base + variables;
            if self.variables.len() < end {
                self.variables = lengthened(&self.variables, 2 * end);
            }
            // Before the first of its nodes: so far back it has to be looked for.
            frame.begins.node = node;
            frame.begins.execution = execution;
            let variables = &mut self.variables[frame.base..end];
            for (variable, &cost) in variables.iter_mut().zip(&self.given) {
                *variable = Written {
                    cost,
                    ..frame.begins
                }
                .pack();
            }
        }
        self.innermost()
    }

    /// The innermost one.
    #[inline(always)]
    pub(super) fn innermost(&mut self) -> Innermost<'_> {
        let Some(frame) = self.frames.last() else {
            return Innermost::default();
        };
        Innermost {
            variables: &mut self.variables[frame.base..frame.base + frame.variables],
            begins: frame.begins,
            last: frame.last,
        }
    }

    /// The last node of the innermost one, if there is one.
    pub(super) fn last(&self) -> Option<NodeId> {
        self.frames.last().map(|frame| frame.last.node)
    }

    /// The innermost one returns these variables.
    pub(super) fn give(&mut self, variables: std::ops::Range<u32>) {
        let mut given = std::mem::take(&mut self.given);
        given.clear();
        let innermost = self.innermost();
        given.extend(variables.map(|variable| innermost.written(variable).cost));
        self.given = given;
    }

    /// The last node of the innermost one wrote a variable with what its call gave.
    pub(super) fn set(&mut self, variable: u32, cost: u32) {
        self.innermost().set(variable, cost.min(KEPT));
    }
}

/// The innermost activation.
#[derive(Default)]
pub(super) struct Innermost<'a> {
    variables: &'a mut [Packed],
    begins: Written,
    /// Its last node.
    pub last: Written,
}

impl Innermost<'_> {
    /// Who wrote a variable last.
    #[inline(always)]
    pub(super) fn written(&self, variable: u32) -> Written {
        match self.variables.get(variable as usize) {
            Some(known) if known[0] == self.begins.of => Written::unpack(*known),
            _ => self.begins,
        }
    }

    /// The last node wrote a variable.
    #[inline(always)]
    pub(super) fn set(&mut self, variable: u32, cost: u32) {
        if let Some(written) = self.variables.get_mut(variable as usize) {
            *written = Written { cost, ..self.last }.pack();
        }
    }
}
