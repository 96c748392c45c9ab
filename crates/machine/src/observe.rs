//! The observer of a running machine, and the events that it receives.

use afterimage_ids::{FuncId, NodeId};

use crate::{GlobalBits, NodeCode};

/// A range of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    /// The number of the memory.
    pub memory: u32,
    /// The address of the first byte.
    pub address: u64,
    /// The number of bytes in the range.
    pub length: u64,
}

/// Observes, in order, the effects of nodes on state that outlives them. The default methods do
/// nothing and cost nothing.
pub trait Observer {
    /// Whether the observer uses the registers passed to [`done`](Self::done) and
    /// [`stopped`](Self::stopped). If not, they may be empty, and nodes are executed faster.
    const REGISTERS: bool = true;

    /// An execution of a node begins. [`variables`](Self::variables) then receives the node's
    /// variables.
    #[inline(always)]
    fn node(&mut self, node: NodeId, code: &NodeCode) {
        let _ = (node, code);
    }

    /// The node begins with these variables, which are the first registers. `high` contains the
    /// upper halves of vectors, if the function has any.
    #[inline(always)]
    fn variables(&mut self, code: &NodeCode, low: &[u64], high: &[u64]) {
        let _ = (code, low, high);
    }

    /// The instruction at this position reads memory.
    #[inline(always)]
    fn read(&mut self, inst: usize, range: Range) {
        let _ = (inst, range);
    }

    /// A load made this value from the bytes that it read. The value has its bits, and the upper
    /// half if it is a vector. The read was reported just before.
    #[inline(always)]
    fn loaded(&mut self, inst: usize, value: GlobalBits) {
        let _ = (inst, value);
    }

    /// The instruction at this position writes to memory.
    #[inline(always)]
    fn write(&mut self, inst: usize, range: Range) {
        let _ = (inst, range);
    }

    /// The value that a store wrote, as in [`Inst::stored`](crate::Inst::stored). The write was
    /// reported just before.
    #[inline(always)]
    fn stored(&mut self, inst: usize, value: GlobalBits) {
        let _ = (inst, value);
    }

    /// The instruction at this position writes any number of bytes that are not a value. They are
    /// one repeated byte, or bytes of a data segment. By default, this is reported as a
    /// [`write`](Self::write).
    #[inline(always)]
    fn fill(&mut self, inst: usize, range: Range) {
        self.write(inst, range);
    }

    /// The instruction at this position is about to copy memory.
    #[inline(always)]
    fn copy(&mut self, inst: usize, from: Range, to: Range) {
        let _ = (inst, from, to);
    }

    /// The access reported just before has these bytes. It is a copy, an initialisation, or an
    /// access by the host. The bytes of a copy are reported before the copy takes place.
    #[inline(always)]
    fn bytes(&mut self, bytes: &[u8]) {
        let _ = bytes;
    }

    /// The instruction at this position reads a global.
    #[inline(always)]
    fn read_global(&mut self, inst: usize, global: u32) {
        let _ = (inst, global);
    }

    /// An instruction that reads a global, a table or a size, or grows a memory or a table, has
    /// this result. The result has its bits, and the upper half if it is a vector.
    #[inline(always)]
    fn gave(&mut self, inst: usize, value: GlobalBits) {
        let _ = (inst, value);
    }

    /// The instruction at this position writes a global.
    #[inline(always)]
    fn write_global(&mut self, inst: usize, global: u32) {
        let _ = (inst, global);
    }

    /// The instructions of the node are done, and its end follows. This is not called if the run
    /// ends inside the node. `low` contains all registers of the node, at their positions. `high`
    /// contains the upper halves of vectors, if the function has any.
    #[inline(always)]
    fn done(&mut self, code: &NodeCode, low: &[u64], high: &[u64]) {
        let _ = (code, low, high);
    }

    /// The run ends inside the node, with a trap or from outside. The first `executed` instructions
    /// of the node are done. The other arguments are as for [`done`](Self::done).
    #[inline(always)]
    fn stopped(&mut self, code: &NodeCode, executed: usize, low: &[u64], high: &[u64]) {
        let _ = (code, executed, low, high);
    }

    /// The instruction after the executed instructions trapped. [`stopped`](Self::stopped) was
    /// called just before. This is not called if the run was stopped from outside.
    #[inline(always)]
    fn trapped(&mut self, inst: usize) {
        let _ = inst;
    }

    /// The guest calls one of its functions or a host function, or the host calls a function.
    #[inline(always)]
    fn called(&mut self, function: FuncId, arguments: &[GlobalBits]) {
        let _ = (function, arguments);
    }

    /// An activation or the host returns these values. A call to [`leave`](Self::leave) or
    /// [`host_returned`](Self::host_returned) follows.
    #[inline(always)]
    fn returned(&mut self, values: &[GlobalBits]) {
        let _ = values;
    }

    /// An activation of this function, which is now the innermost, returns without executing
    /// further code. This happens after a call, or with the values that its own label caught. Its
    /// return values follow.
    #[inline(always)]
    fn passes_on(&mut self, function: FuncId) {
        let _ = function;
    }

    /// An activation of a function begins.
    #[inline(always)]
    fn enter(&mut self, function: FuncId, by: Caller) {
        let _ = (function, by);
    }

    /// The innermost activation ends. If it returns to a caller in the guest, `results` has the
    /// caller's first variable for the results, and their number.
    #[inline(always)]
    fn leave(&mut self, results: Option<(u32, u32)>) {
        let _ = results;
    }

    /// The host returned from a call, and its results went to the variables from `first` on.
    #[inline(always)]
    fn host_returned(&mut self, first: u32, count: u32) {
        let _ = (first, count);
    }

    /// The guest calls the host. The host's reads, writes and results follow.
    #[inline(always)]
    fn host_call(&mut self) {}

    /// The host reads memory.
    #[inline(always)]
    fn host_read(&mut self, range: Range) {
        let _ = range;
    }

    /// The host writes to memory.
    #[inline(always)]
    fn host_write(&mut self, range: Range) {
        let _ = range;
    }

    /// An exception was caught. Its values are in the `count` variables from `first` on. The
    /// reference to the exception follows if the handler takes it. If the handler is the function's
    /// own label, the activation then ends and returns these values.
    #[inline(always)]
    fn caught(&mut self, first: u32, count: u32) {
        let _ = (first, count);
    }
}

/// The caller of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// The host, which calls into the module.
    Host,
    /// The guest, with an ordinary call.
    Call,
    /// The guest, with a tail call. The caller's activation has ended.
    TailCall,
}

impl Observer for () {
    const REGISTERS: bool = false;
}

/// Two observers of the same events. The first observer gets each event first.
impl<A: Observer, B: Observer> Observer for (&mut A, &mut B) {
    const REGISTERS: bool = A::REGISTERS || B::REGISTERS;

    #[inline(always)]
    fn node(&mut self, node: NodeId, code: &NodeCode) {
        self.0.node(node, code);
        self.1.node(node, code);
    }

    #[inline(always)]
    fn variables(&mut self, code: &NodeCode, low: &[u64], high: &[u64]) {
        self.0.variables(code, low, high);
        self.1.variables(code, low, high);
    }

    #[inline(always)]
    fn read(&mut self, inst: usize, range: Range) {
        self.0.read(inst, range);
        self.1.read(inst, range);
    }

    #[inline(always)]
    fn loaded(&mut self, inst: usize, value: GlobalBits) {
        self.0.loaded(inst, value);
        self.1.loaded(inst, value);
    }

    #[inline(always)]
    fn write(&mut self, inst: usize, range: Range) {
        self.0.write(inst, range);
        self.1.write(inst, range);
    }

    #[inline(always)]
    fn stored(&mut self, inst: usize, value: GlobalBits) {
        self.0.stored(inst, value);
        self.1.stored(inst, value);
    }

    #[inline(always)]
    fn fill(&mut self, inst: usize, range: Range) {
        self.0.fill(inst, range);
        self.1.fill(inst, range);
    }

    #[inline(always)]
    fn copy(&mut self, inst: usize, from: Range, to: Range) {
        self.0.copy(inst, from, to);
        self.1.copy(inst, from, to);
    }

    #[inline(always)]
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.bytes(bytes);
        self.1.bytes(bytes);
    }

    #[inline(always)]
    fn read_global(&mut self, inst: usize, global: u32) {
        self.0.read_global(inst, global);
        self.1.read_global(inst, global);
    }

    #[inline(always)]
    fn gave(&mut self, inst: usize, value: GlobalBits) {
        self.0.gave(inst, value);
        self.1.gave(inst, value);
    }

    #[inline(always)]
    fn write_global(&mut self, inst: usize, global: u32) {
        self.0.write_global(inst, global);
        self.1.write_global(inst, global);
    }

    #[inline(always)]
    fn done(&mut self, code: &NodeCode, low: &[u64], high: &[u64]) {
        self.0.done(code, low, high);
        self.1.done(code, low, high);
    }

    #[inline(always)]
    fn stopped(&mut self, code: &NodeCode, executed: usize, low: &[u64], high: &[u64]) {
        self.0.stopped(code, executed, low, high);
        self.1.stopped(code, executed, low, high);
    }

    #[inline(always)]
    fn trapped(&mut self, inst: usize) {
        self.0.trapped(inst);
        self.1.trapped(inst);
    }

    #[inline(always)]
    fn called(&mut self, function: FuncId, arguments: &[GlobalBits]) {
        self.0.called(function, arguments);
        self.1.called(function, arguments);
    }

    #[inline(always)]
    fn returned(&mut self, values: &[GlobalBits]) {
        self.0.returned(values);
        self.1.returned(values);
    }

    #[inline(always)]
    fn passes_on(&mut self, function: FuncId) {
        self.0.passes_on(function);
        self.1.passes_on(function);
    }

    #[inline(always)]
    fn enter(&mut self, function: FuncId, by: Caller) {
        self.0.enter(function, by);
        self.1.enter(function, by);
    }

    #[inline(always)]
    fn leave(&mut self, results: Option<(u32, u32)>) {
        self.0.leave(results);
        self.1.leave(results);
    }

    #[inline(always)]
    fn host_returned(&mut self, first: u32, count: u32) {
        self.0.host_returned(first, count);
        self.1.host_returned(first, count);
    }

    #[inline(always)]
    fn host_call(&mut self) {
        self.0.host_call();
        self.1.host_call();
    }

    #[inline(always)]
    fn host_read(&mut self, range: Range) {
        self.0.host_read(range);
        self.1.host_read(range);
    }

    #[inline(always)]
    fn host_write(&mut self, range: Range) {
        self.0.host_write(range);
        self.1.host_write(range);
    }

    #[inline(always)]
    fn caught(&mut self, first: u32, count: u32) {
        self.0.caught(first, count);
        self.1.caught(first, count);
    }
}
