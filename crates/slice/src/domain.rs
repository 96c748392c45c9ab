//! The labels that are carried forward along dependences.

use afterimage_machine::Range;

use crate::plan::Plan;
use crate::stretch::Execution;

/// The reason for a dependence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Why {
    /// It takes a value.
    Data,
    /// It takes a value that gives an address.
    Address,
    /// Its execution was decided.
    Control,
    /// It takes a value whose move this allowed, which thereby chose the value.
    Moved,
}

/// A label for everything that a run computes: an execution receives it from its dependences, and
/// passes it on to its dependents.
pub(crate) trait Domain {
    /// The type of labels; the default is the label of something without dependences.
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

    /// The node's end was executed, with these dependences: a call, a return, a throw.
    fn end(&mut self, execution: Execution, plan: &Plan, on: &[(Why, Self::Label)]) -> Self::Label;

    /// The bytes written by an instruction, or the operands of a node's end, also depend on these,
    /// though their execution does not. Examples are the data copied by memory.copy, and the
    /// arguments of a call.
    fn takes(
        &mut self,
        execution: Execution,
        plan: &Plan,
        inst: Option<usize>,
        on: &[(Why, Self::Label)],
    );

    /// Returns the label of something that depends on both.
    fn join(&mut self, a: Self::Label, b: Self::Label) -> Self::Label;

    /// The label of a value that was moved in a block with a label.
    fn moved(&mut self, value: Self::Label, block: Self::Label) -> Self::Label {
        self.join(value, block)
    }

    /// The label of a byte copied by an instruction with one label from a byte with another.
    fn copied(&mut self, copy: Self::Label, byte: Self::Label) -> Self::Label;

    /// Returns the label of everything that the host read in a call, given the labels of the
    /// earlier part and of another part.
    fn taken(&mut self, before: Self::Label, more: Self::Label) -> Self::Label {
        self.join(before, more)
    }

    /// The label of the host's results in a call with a label, if the data that it took has this
    /// one.
    fn host(&mut self, call: Self::Label, taken: Self::Label) -> Self::Label;

    /// In the call of the host that ends an execution, the host read bytes with a label.
    fn host_read(&mut self, _: Execution, _: Range) {}

    /// Whether a node can be skipped if nothing that it reads has a label.
    const SKIPS: bool;
}
