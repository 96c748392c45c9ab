//! The labels that are carried forward along dependences.

use afterimage_machine::Range;

use crate::plan::Plan;
use crate::stretch::Execution;

/// The reason for a dependence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Why {
    /// The dependent takes a value.
    Data,
    /// The dependent takes a value that gives an address.
    Address,
    /// The dependent was executed because of a decision.
    Control,
    /// The dependent takes a value that was moved because of a decision, which thereby chose the
    /// value.
    Moved,
}

/// A label for everything that a run computes. An execution receives its label from its dependences
/// and passes it on to its dependents.
pub(crate) trait Domain {
    /// The type of labels. The default is the label of something without dependences.
    type Label: Copy + Default + PartialEq + std::fmt::Debug;

    /// An execution of a node begins.
    fn begin(&mut self, _: &Plan) {}

    /// This instruction, or the node's end, is a criterion.
    fn criterion(&mut self, _: Execution, _: &Plan, _: Option<usize>) {}

    /// An instruction was executed, with these dependences.
    fn inst(
        &mut self,
        execution: Execution,
        plan: &Plan,
        inst: usize,
        on: &[(Why, Self::Label)],
    ) -> Self::Label;

    /// The node's end was executed, with these dependences. The end is a call, a return or a throw.
    fn end(&mut self, execution: Execution, plan: &Plan, on: &[(Why, Self::Label)]) -> Self::Label;

    /// The bytes written by an instruction, or the operands of a node's end, also depend on these
    /// labels, though the execution itself does not. Examples are the data copied by memory.copy,
    /// and the arguments of a call.
    fn takes(
        &mut self,
        execution: Execution,
        plan: &Plan,
        inst: Option<usize>,
        on: &[(Why, Self::Label)],
    );

    /// Returns the label of something that depends on things with these two labels.
    fn join(&mut self, a: Self::Label, b: Self::Label) -> Self::Label;

    /// Returns the label of a value that was moved in a block with a label.
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

    /// In the call of the host that ends an execution, the host read bytes that have a label.
    fn host_read(&mut self, _: Execution, _: Range) {}

    /// Whether a node can be skipped if nothing that it reads has a label.
    const SKIPS: bool;
}
