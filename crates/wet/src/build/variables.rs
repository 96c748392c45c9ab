//! Tracks the last writers of the open activations' variables.

use afterimage_ids::NodeId;
use afterimage_machine::lengthened;

use super::KEPT;
use crate::epoch::{BEFORE_NODE as BEFORE, CALLED_NODE as CALLED};

/// The execution of a node that wrote a variable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    /// The node. If nothing has written the variable since the activation began, this is the
    /// activation's first node.
    pub node: NodeId,
    /// The number of the node's execution.
    pub execution: u64,
    /// The number of nodes that the activation had executed by then, including this node.
    pub step: u64,
    /// The cost of the variable's value.
    pub cost: u32,
    /// The number of the activation. Entries left over from other activations count as unwritten.
    of: u64,
}

impl Default for Written {
    fn default() -> Self {
        Self::unpack([0; 4])
    }
}

impl Written {
    /// Returns the variable's writer in stored form. Executions before the beginning of the build
    /// have no number.
    pub(super) fn by(&self) -> (u32, u64) {
        match (self.execution, self.step) {
            (0, 0) => (BEFORE, 0),
            (0, _) => (CALLED, 0),
            (execution, _) => (self.node.as_u32(), execution),
        }
    }
}

/// The packed form of a [`Written`], which contains the number of its activation, the execution,
/// the step, and the node with the cost. It consists only of numbers, because a list of zeros takes
/// no memory until it is written. Most variables of a deep stack are never written.
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
    /// The position of the activation's variables.
    base: usize,
    /// The number of the activation's variables, known once its first node begins.
    variables: usize,
    /// The last node that the activation executed, with the number of nodes so far.
    last: Written,
    /// The entry of variables that have not been written since the activation began.
    begins: Written,
}

/// The stack of open activations.
#[derive(Debug, Default)]
pub(super) struct Activations {
    frames: Vec<Frame>,
    variables: Vec<Packed>,
    /// The number of activations begun so far.
    begun: u64,
    /// The costs of a call's arguments, or of a return's results.
    pub given: Vec<u32>,
}

impl Activations {
    /// Begins an activation. `given` has the costs of its arguments.
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

    /// Sets the activations that are open at the beginning, the outermost first. For each
    /// activation, `open` has the node with the pending call and the number of variables. The
    /// variables count as written by unknown nodes.
    pub(super) fn resume(&mut self, open: impl Iterator<Item = (NodeId, usize)>) {
        for (node, variables) in open {
            self.enter();
            let Some(frame) = self.frames.last_mut() else {
                continue;
            };
            frame.variables = variables;
            frame.begins.cost = KEPT;
            frame.last.node = node;
            // The activation's next node is not its first.
            frame.last.step = 1;
            let end = frame.base + variables;
            if self.variables.len() < end {
                self.variables = lengthened(&self.variables, 2 * end);
            }
        }
    }

    /// Returns the writers of each open activation's variables, the outermost first.
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

    /// Ends the innermost activation.
    pub(super) fn leave(&mut self) {
        self.frames.pop();
    }

    /// Marks the values of all writes as kept, so that they are no longer computed.
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

    /// Begins a node in the innermost activation, which has this many variables. Returns the
    /// writers of the variables.
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
            // These variables were set before the activation's first node, so a search must go back
            // that far.
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

    /// Returns the innermost activation.
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

    /// Returns the innermost activation's last node, or `None` if it has executed no node.
    pub(super) fn last(&self) -> Option<NodeId> {
        self.frames.last().map(|frame| frame.last.node)
    }

    /// Records that the innermost activation returns the values of these variables.
    pub(super) fn give(&mut self, variables: std::ops::Range<u32>) {
        let mut given = std::mem::take(&mut self.given);
        given.clear();
        let innermost = self.innermost();
        given.extend(variables.map(|variable| innermost.written(variable).cost));
        self.given = given;
    }

    /// Records that a variable received a result of the call that ends the innermost activation's
    /// last node, or a value of an exception caught there.
    pub(super) fn set(&mut self, variable: u32, cost: u32) {
        self.innermost().set(variable, cost.min(KEPT));
    }
}

/// Gives access to the innermost activation.
#[derive(Default)]
pub(super) struct Innermost<'a> {
    variables: &'a mut [Packed],
    begins: Written,
    /// The activation's last node.
    pub last: Written,
}

impl Innermost<'_> {
    /// Returns the last writer of a variable.
    #[inline(always)]
    pub(super) fn written(&self, variable: u32) -> Written {
        match self.variables.get(variable as usize) {
            Some(known) if known[0] == self.begins.of => Written::unpack(*known),
            _ => self.begins,
        }
    }

    /// Records that the last node wrote a variable.
    #[inline(always)]
    pub(super) fn set(&mut self, variable: u32, cost: u32) {
        if let Some(written) = self.variables.get_mut(variable as usize) {
            *written = Written { cost, ..self.last }.pack();
        }
    }
}
