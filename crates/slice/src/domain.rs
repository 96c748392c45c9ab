//! Defines the labels that a forward walk carries along dependences.

use afterimage_machine::Range;

use crate::plan::Plan;
use crate::stretch::Execution;

/// The reason for a dependence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Why {
    /// The dependent uses a value.
    Data,
    /// The dependent uses a value as an address.
    Address,
    /// The dependent was executed because of a decision.
    Control,
    /// The dependent uses a value that was moved because of a decision. So the decision chose the
    /// value.
    Moved,
}

/// The dependences of an execution, collected one at a time.
pub(crate) trait Dependences<L>: Default {
    /// Adds a dependence on something with a label other than the default.
    fn add(&mut self, why: Why, label: L);

    fn clear(&mut self);

    /// Returns the labels, possibly combined.
    fn labels(&self) -> impl Iterator<Item = L>;
}

/// A label for everything that a run computes. An execution receives its label from its dependences
/// and passes it on to its dependents.
pub(crate) trait Domain {
    /// The type of labels. The default is the label of an execution or value without dependences.
    type Label: Copy + Default + PartialEq + std::fmt::Debug;

    /// The dependences of an execution, as far as the domain distinguishes them.
    type On: Dependences<Self::Label>;

    /// Begins an execution of a node.
    fn begin(&mut self, _: &Plan) {}

    /// Receives an instruction, or the node's end, that is a criterion.
    fn criterion(&mut self, _: Execution, _: &Plan, _: Option<usize>) {}

    /// Receives an executed instruction with its dependences, and returns its label.
    fn inst(
        &mut self,
        execution: Execution,
        plan: &Plan,
        inst: usize,
        on: &Self::On,
    ) -> Self::Label;

    /// Receives the executed end of a node with its dependences, and returns its label. The end is
    /// a call, a return or a throw.
    fn end(&mut self, execution: Execution, plan: &Plan, on: &Self::On) -> Self::Label;

    /// Receives labels on which only the bytes written by an instruction, or the operands of a
    /// node's end, depend. The execution itself does not depend on them. Examples are the data
    /// copied by `memory.copy` and the arguments of a call.
    fn takes(&mut self, execution: Execution, plan: &Plan, inst: Option<usize>, on: &Self::On);

    /// Returns the label of an execution or value that depends on two executions or values with
    /// these labels.
    fn join(&mut self, a: Self::Label, b: Self::Label) -> Self::Label;

    /// Returns the label of a value that was moved in a block with label `block`.
    fn moved(&mut self, value: Self::Label, block: Self::Label) -> Self::Label {
        self.join(value, block)
    }

    /// Returns the label of a byte that an instruction with label `copy` copied from a byte with
    /// label `byte`.
    fn copied(&mut self, copy: Self::Label, byte: Self::Label) -> Self::Label;

    /// Returns the label of everything that the host read in a call, from the labels of the parts
    /// read before and of another part.
    fn taken(&mut self, before: Self::Label, more: Self::Label) -> Self::Label {
        self.join(before, more)
    }

    /// Returns the label of the host's results in a call with label `call`, if the data that the
    /// host took has label `taken`.
    fn host(&mut self, call: Self::Label, taken: Self::Label) -> Self::Label;

    /// Receives a range of labelled bytes that the host read in the call that ends an execution.
    fn host_read(&mut self, _: Execution, _: Range) {}

    /// Whether a node can be skipped if nothing that it reads has a label.
    const SKIPS: bool;
}
