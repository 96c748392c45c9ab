//! What is carried along dependences forward.

use crate::plan::Plan;
use crate::stretch::Execution;

/// Why something depends on something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Why {
    /// A value is taken.
    Data,
    /// A value is taken that tells where memory is accessed.
    Address,
    /// It was let run.
    Control,
    /// A value is taken that was moved where this let it be moved: it chose that it is this value.
    Moved,
}

/// A label of everything that a run computes: what an execution gets from those that it depends on, and hands on to those that depend on it.
pub(crate) trait Domain {
    /// The default is the label of what depends on nothing.
    type Label: Copy + Default + PartialEq + std::fmt::Debug;

    /// An execution of a node begins.
    fn begin(&mut self, _: &Plan) {}

    /// This instruction is what is asked about, or what the node ends with.
    fn asked(&mut self, _: Execution, _: &Plan, _: Option<usize>) {}

    /// An instruction was executed, and depends on these.
    fn inst(
        &mut self,
        execution: Execution,
        plan: &Plan,
        inst: usize,
        on: &[(Why, Self::Label)],
    ) -> Self::Label;

    /// What the node ends with was executed, and depends on these: a call, a return, a throw.
    fn end(&mut self, execution: Execution, plan: &Plan, on: &[(Why, Self::Label)]) -> Self::Label;

    /// What an instruction did to some bytes, or what a node ends with took, depends on these as well, though not that it was executed: what memory.copy
    /// copied, the arguments of a call.
    fn takes(
        &mut self,
        execution: Execution,
        plan: &Plan,
        inst: Option<usize>,
        on: &[(Why, Self::Label)],
    );

    /// The label of what depends on both.
    fn join(&mut self, a: Self::Label, b: Self::Label) -> Self::Label;

    /// The label of a value that was moved in a block which had a label.
    fn moved(&mut self, value: Self::Label, block: Self::Label) -> Self::Label {
        self.join(value, block)
    }

    /// The label of a byte that an instruction with a label copied from one with another label.
    fn copied(&mut self, copy: Self::Label, byte: Self::Label) -> Self::Label;

    /// The label of what the host took in a call: of all that came before, and of something more.
    fn taken(&mut self, before: Self::Label, more: Self::Label) -> Self::Label {
        self.join(before, more)
    }

    /// The label of what the host gave, in a call with a label, if what the host took has this one.
    fn host(&mut self, call: Self::Label, taken: Self::Label) -> Self::Label;

    /// Whether a node can be passed over, if nothing of what it reads has a label.
    const SKIPS: bool;
}
