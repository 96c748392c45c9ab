//! Who wrote the variables of the open activations last.

use afterimage_ids::{EntityRef, NodeId};

use super::KEPT;

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
}

impl Default for Written {
    fn default() -> Self {
        Self {
            node: NodeId::new(0),
            execution: 0,
            step: 0,
            cost: 0,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    /// Where its variables begin.
    base: usize,
    /// How many it has; known once its first node begins.
    variables: usize,
    /// How many nodes it has executed.
    step: u64,
    /// The last of them, and which execution of it.
    last: (NodeId, u64),
}

/// The open activations.
#[derive(Debug, Default)]
pub(super) struct Activations {
    frames: Vec<Frame>,
    variables: Vec<Written>,
    /// What the arguments of a call, or the results of a return, cost.
    pub given: Vec<u32>,
}

impl Activations {
    /// One begins. What `given` has are the costs of its arguments.
    pub(super) fn enter(&mut self) {
        let base = self.frames.last().map_or(0, |f| f.base + f.variables);
        self.frames.push(Frame {
            base,
            variables: 0,
            step: 0,
            last: (NodeId::new(0), 0),
        });
    }

    /// One ends.
    pub(super) fn leave(&mut self) {
        self.frames.pop();
    }

    /// What was written is not to be computed any more.
    pub(super) fn keep(&mut self) {
        for variable in &mut self.variables {
            variable.cost = KEPT;
        }
        self.given.fill(KEPT);
    }

    /// A node begins in the innermost one, which has so many variables. The answer is who wrote them.
    #[inline(always)]
    pub(super) fn node(&mut self, node: NodeId, execution: u64, variables: usize) -> Innermost<'_> {
        let Some(frame) = self.frames.last_mut() else {
            return Innermost::default();
        };
        frame.step += 1;
        frame.last = (node, execution);
        if frame.step == 1 {
            frame.variables = variables;
            let end = frame.base + variables;
            if self.variables.len() < end {
                self.variables.resize(2 * end, Written::default());
            }
            // Before the first of its nodes: so far back it has to be looked for.
            let begins = Written {
                node,
                execution,
                step: 0,
                cost: 0,
            };
            let variables = &mut self.variables[frame.base..end];
            variables.fill(begins);
            for (variable, &cost) in variables.iter_mut().zip(&self.given) {
                variable.cost = cost;
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
        let (node, execution) = frame.last;
        Innermost {
            variables: &mut self.variables[frame.base..frame.base + frame.variables],
            last: Written {
                node,
                execution,
                step: frame.step,
                cost: 0,
            },
        }
    }

    /// The last node of the innermost one, if there is one.
    pub(super) fn last(&self) -> Option<NodeId> {
        self.frames.last().map(|frame| frame.last.0)
    }

    /// The innermost one returns these variables.
    pub(super) fn give(&mut self, variables: std::ops::Range<u32>) {
        let base = self.frames.last().map_or(0, |frame| frame.base);
        let place = base + variables.start as usize..base + variables.end as usize;
        let costs = self.variables[place].iter().map(|variable| variable.cost);
        self.given.clear();
        self.given.extend(costs);
    }

    /// The last node of the innermost one wrote a variable with what its call gave.
    pub(super) fn set(&mut self, variable: u32, cost: u32) {
        self.innermost().set(variable, cost.min(KEPT));
    }
}

/// The innermost activation.
#[derive(Default)]
pub(super) struct Innermost<'a> {
    /// Who wrote its variables last.
    pub variables: &'a mut [Written],
    /// Its last node.
    pub last: Written,
}

impl Innermost<'_> {
    /// The last node wrote a variable.
    #[inline(always)]
    pub(super) fn set(&mut self, variable: u32, cost: u32) {
        if let Some(written) = self.variables.get_mut(variable as usize) {
            *written = Written { cost, ..self.last };
        }
    }
}
