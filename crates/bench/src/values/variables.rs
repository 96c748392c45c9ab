//! Tracks where the variables that nodes read were written, activation by activation.

use serde::Serialize;

/// The distance to which the path is searched for a definition. More distant definitions are stored
/// explicitly.
const NEAR: u64 = 64;

/// The last writer of a variable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Writer {
    /// No writer, so the variable is zero.
    #[default]
    Zero,
    Argument,
    HostArgument,
    Result,
    HostResult,
    Caught,
    Node,
}

/// The origins of operands, counting each variable once per execution of a node.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Uses {
    /// Written by a node of the same activation, at most 64 nodes before. The path shows the
    /// writer.
    pub path: u64,
    /// Written more than 64 nodes before.
    pub far: u64,
    /// Passed by the guest as an argument. The call shows the writer.
    pub arguments: u64,
    /// Returned by one of the guest's own functions.
    pub results: u64,
    /// Passed or returned by the host. The log contains the value.
    pub host: u64,
    /// Caught with an exception.
    pub caught: u64,
    /// Never written, so equivalent to a constant and not a dependence.
    pub zero: u64,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    base: usize,
    variables: usize,
    step: u64,
    /// The caller that passed the activation's arguments.
    passed: Writer,
    parameters: usize,
}

/// The open activations.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    frames: Vec<Frame>,
    written: Vec<(Writer, u64)>,
    pub uses: Uses,
}

impl Variables {
    pub(crate) fn enter(&mut self, by_host: bool, parameters: usize) {
        let base = self.frames.last().map_or(0, |f| f.base + f.variables);
        let passed = if by_host {
            Writer::HostArgument
        } else {
            Writer::Argument
        };
        self.frames.push(Frame {
            base,
            variables: 0,
            step: 0,
            passed,
            parameters,
        });
    }

    pub(crate) fn leave(&mut self) {
        self.frames.pop();
    }

    /// Begins a node with `variables` variables. Its statements use the variables in `asked`.
    pub(crate) fn node(&mut self, variables: usize, asked: &[u32]) {
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        frame.step += 1;
        if frame.step == 1 {
            frame.variables = variables;
            let end = frame.base + variables;
            if self.written.len() < end {
                self.written.resize(2 * end, Default::default());
            }
            let written = &mut self.written[frame.base..end];
            written.fill((Writer::Zero, 1));
            for place in written.iter_mut().take(frame.parameters) {
                *place = (frame.passed, 1);
            }
        }
        for &variable in asked {
            let (writer, step) = self.written[frame.base + variable as usize];
            let uses = &mut self.uses;
            let place = match writer {
                _ if frame.step - step > NEAR => &mut uses.far,
                Writer::Zero => &mut uses.zero,
                Writer::Argument => &mut uses.arguments,
                Writer::HostArgument | Writer::HostResult => &mut uses.host,
                Writer::Result => &mut uses.results,
                Writer::Caught => &mut uses.caught,
                Writer::Node => &mut uses.path,
            };
            *place += 1;
        }
    }

    fn set(&mut self, variable: u32, writer: Writer) {
        if let Some(frame) = self.frames.last() {
            self.written[frame.base + variable as usize] = (writer, frame.step);
        }
    }

    /// Records that the node wrote a variable.
    pub(crate) fn write(&mut self, variable: u32) {
        self.set(variable, Writer::Node);
    }

    /// Records that a call to the host or to the guest gave these variables their values.
    pub(crate) fn give(&mut self, first: u32, count: u32, by_host: bool) {
        let writer = if by_host {
            Writer::HostResult
        } else {
            Writer::Result
        };
        (first..first + count).for_each(|variable| self.set(variable, writer));
    }

    /// Records that a handler received the values of these variables.
    pub(crate) fn catch(&mut self, first: u32, count: u32) {
        (first..first + count).for_each(|variable| self.set(variable, Writer::Caught));
    }
}

#[cfg(test)]
mod tests {
    use super::Variables;

    #[test]
    fn a_variable_is_known_by_who_wrote_it_last_in_its_own_activation() {
        let mut variables = Variables::default();
        variables.enter(true, 1);
        variables.node(3, &[0, 1]);
        variables.write(1);
        variables.enter(false, 2);
        variables.node(2, &[0, 1]);
        variables.leave();
        variables.give(2, 1, false);
        variables.node(3, &[0, 1, 2]);
        variables.give(0, 1, true);
        variables.node(3, &[0]);
        let uses = variables.uses;
        assert_eq!((uses.host, uses.zero, uses.arguments), (3, 1, 2));
        assert_eq!((uses.path, uses.results, uses.far), (1, 1, 0));
    }

    #[test]
    fn sixty_four_nodes_back_is_near_and_one_more_is_far() {
        let mut variables = Variables::default();
        variables.enter(true, 0);
        variables.node(1, &[]);
        variables.write(0);
        (0..63).for_each(|_| variables.node(1, &[]));
        variables.node(1, &[0]);
        assert_eq!((variables.uses.path, variables.uses.far), (1, 0));
        variables.node(1, &[0]);
        assert_eq!((variables.uses.path, variables.uses.far), (1, 1));
    }
}
