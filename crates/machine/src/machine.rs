//! The machine that replays a guest along its path.

use std::collections::HashMap;

use afterimage_ids::{BlockId, FuncId, NodeId, OpId, PrimaryMap};
use afterimage_program::Program;
use afterimage_trace::LogReader;

use crate::activations::Frame;
use crate::code::NodeCode;
use crate::compile::{Body, compile};
use crate::end::StoppedBefore;
use crate::exceptions::Exceptions;
use crate::execute::{Registers, Stop, execute};
use crate::host::Source;
use crate::image::{Initial, State};
use crate::lean::Operations;
use crate::observe::{Caller, Observer};
use crate::{MachineError, Trap};

/// The maximum total number of instructions of all nodes. They take 3 GiB, and their operations 2
/// GiB.
pub(crate) const MOST_CODE: usize = 1 << 26;

/// The bits of a value, and the upper half if the value is a vector.
pub(crate) type Bits = (u64, u64);

/// The node that must come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// The first node of a call by the host.
    Host,
    /// The first node of a call to this function.
    Enter {
        function: FuncId,
        /// Whether the call is a tail call.
        tail: bool,
    },
    /// A node of the innermost activation that begins with this block.
    Block(BlockId),
    /// No node, because the run has ended.
    Nothing,
    /// No node, because there was a disagreement.
    Failed,
}

/// Replays a guest, node by node along its path, with the host's actions from the log. Every branch
/// must follow the path. Every host call must match the log, with the same arguments and the same
/// bytes in memory that the host read. Otherwise the path, the log or this machine is wrong, and
/// the machine reports an error.
///
/// Memory use does not depend on the length of the run. The machine contains the guest's own state,
/// its activations, the nodes' code, and the exceptions that may still be referenced.
pub struct Machine<'a> {
    pub(crate) program: &'a Program,
    pub(crate) bytes: &'a [u8],
    pub(crate) bodies: Vec<Option<Box<Body<'a>>>>,
    /// For each function, the facts that calls need.
    shapes: Vec<Option<Shape>>,
    pub(crate) codes: PrimaryMap<NodeId, NodeCode>,
    /// The operations of the nodes.
    pub(crate) operations: Operations,
    /// The total number of instructions of all nodes.
    pub(crate) instructions: usize,
    /// The memories, tables and globals.
    pub state: State,
    initial: Vec<Initial>,
    /// The initial tables and segments, without memories.
    pub(crate) first: State,
    pub(crate) source: Source,
    /// The registers of all activations. The registers of an inner activation begin after the
    /// variables of the enclosing activation.
    pub(crate) registers: Vec<u64>,
    /// Upper halves of the registers.
    pub(crate) high: Vec<u64>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) waiting: Waiting,
    /// The number of blocks executed before the next node.
    pub(crate) time: u64,
    /// The arguments of the call that is about to begin, the results of the call that has ended, or
    /// the values of an exception.
    pub(crate) values: Vec<Bits>,
    pub(crate) exceptions: Exceptions,
    /// The new values of variables during a move.
    pub(crate) moved: Vec<u64>,
    /// The reason why the last node stopped.
    pub(crate) trap: Option<Trap>,
    /// Single-block nodes that end with calls, for the activations of snapshots.
    pub(crate) calls: HashMap<(FuncId, BlockId), NodeId>,
    /// For calls in functions with vectors, whether each variable that can still be read is a
    /// vector.
    pub(crate) vectors: HashMap<(FuncId, BlockId), Box<[bool]>>,
}

/// The facts about a function that calls need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub locals: usize,
    /// The number of an activation's variables (see [`Body::variables`]).
    pub variables: usize,
    pub root: BlockId,
    /// Whether any value may be a vector.
    pub wide: bool,
}

/// The state inside a node, before one of its instructions.
#[derive(Clone, Copy, Debug)]
pub struct Inside<'m> {
    /// The node's registers. The registers of later instructions are undefined.
    pub low: &'m [u64],
    /// The upper halves of vectors, empty if there are no vectors.
    pub high: &'m [u64],
    /// The memories, tables and globals.
    pub state: &'m State,
}

impl<'a> Machine<'a> {
    /// Creates a machine at the beginning of the run. `bytes` is the module from which the program
    /// was parsed.
    ///
    /// # Errors
    /// Returns an error if the module uses an unsupported feature, or the run ends in activations
    /// with too many variables.
    pub fn new(
        program: &'a Program,
        bytes: &'a [u8],
        log: LogReader,
    ) -> Result<Self, MachineError> {
        let (state, initial) = State::of_module(program, bytes)?;
        let first = State {
            memories: Vec::new(),
            tables: state.tables.clone(),
            globals: state.globals.clone(),
            data: state.data.clone(),
            elements: state.elements.clone(),
        };
        let end = log.file().end().ok().flatten();
        let mut machine = Self {
            first,
            program,
            bytes,
            bodies: program.functions.iter().map(|_| None).collect(),
            shapes: vec![None; program.functions.len()],
            codes: PrimaryMap::new(),
            operations: Operations::default(),
            instructions: 0,
            state,
            initial,
            source: Source::new(log, program),
            registers: Vec::new(),
            high: Vec::new(),
            frames: Vec::new(),
            waiting: Waiting::Host,
            time: 0,
            values: Vec::new(),
            exceptions: Exceptions::default(),
            moved: Vec::new(),
            trap: None,
            calls: HashMap::new(),
            vectors: HashMap::new(),
        };
        if let Some(end) = end {
            machine.check_depth(&end)?;
        }
        Ok(machine)
    }

    /// Returns the sources of the memories' initial bytes.
    pub fn initial(&self) -> &[Initial] {
        &self.initial
    }

    /// Returns the number of blocks executed.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Returns the open activations, outermost first. Each has its function and the node that ends
    /// with its pending call. If no call is pending, this node has no meaning.
    pub fn activations(&self) -> impl Iterator<Item = (FuncId, NodeId)> + '_ {
        self.frames.iter().map(|frame| (frame.function, frame.call))
    }

    /// Returns the number of variables of a function's activations.
    ///
    /// # Errors
    /// Returns an error if the program does not have this function.
    pub fn variables_of(&mut self, function: FuncId) -> Result<usize, MachineError> {
        Ok(self.body(function)?.variables())
    }

    /// Returns the nodes' code.
    pub fn codes(&self) -> &PrimaryMap<NodeId, NodeCode> {
        &self.codes
    }

    /// Returns the reason why the last node did not reach its end, if it trapped.
    pub fn trap(&self) -> Option<Trap> {
        self.trap
    }

    /// Compiles the next node. Time: O(operators on its path), plus O(operators of the function)
    /// for a function's first node.
    ///
    /// # Errors
    /// Returns an error if the node is not a path of the program, or the nodes have more than 2²⁶
    /// instructions in total.
    pub fn define(
        &mut self,
        function: FuncId,
        blocks: &[BlockId],
        next: Option<BlockId>,
    ) -> Result<NodeId, MachineError> {
        let program = self.program;
        let code = compile(program, self.body(function)?, blocks, next)?;
        if code.insts.len() > MOST_CODE - self.instructions {
            return Err(MachineError::Unsupported("too many nodes or too much code"));
        }
        self.instructions += code.insts.len();
        Ok(self.codes.push(code))
    }

    /// Reserves numbers for nodes, which must be passed to [`compile`](Self::compile) before they
    /// are executed.
    pub fn expect(&mut self, nodes: usize) {
        for _ in 0..nodes {
            self.codes.push(NodeCode::missing());
        }
    }

    /// Whether a node exists and has been compiled.
    pub fn is_compiled(&self, node: NodeId) -> bool {
        self.codes.get(node).is_some_and(|code| !code.is_missing())
    }

    /// Compiles a node that was [expected](Self::expect). Otherwise works like
    /// [`define`](Self::define).
    ///
    /// # Errors
    /// Returns the errors of [`define`](Self::define), or an error if the node was not expected.
    pub fn compile(
        &mut self,
        node: NodeId,
        function: FuncId,
        blocks: &[BlockId],
        next: Option<BlockId>,
    ) -> Result<(), MachineError> {
        let program = self.program;
        let code = compile(program, self.body(function)?, blocks, next)?;
        if code.insts.len() > MOST_CODE - self.instructions {
            return Err(MachineError::Unsupported("too many nodes or too much code"));
        }
        self.instructions += code.insts.len();
        self.operations.forget(node);
        let Some(place) = self.codes.get_mut(node) else {
            return Err(self.diverged("a node follows that was not defined"));
        };
        *place = code;
        Ok(())
    }

    /// Returns the body of a function, if it has been read.
    pub(crate) fn known_body(&self, function: FuncId) -> Option<&Body<'a>> {
        let known = self.bodies.get(position(self.program, function))?;
        known.as_deref()
    }

    /// Returns a function's body, read on demand.
    pub(crate) fn body(&mut self, function: FuncId) -> Result<&Body<'a>, MachineError> {
        let (program, bytes) = (self.program, self.bytes);
        let missing = MachineError::Unsupported("a function that is not in the program");
        let (Some(known), Some(function)) = (
            self.bodies.get_mut(position(program, function)),
            program.function(function),
        ) else {
            return Err(missing);
        };
        if known.is_none() {
            *known = Some(Box::new(Body::read(program, bytes, function)?));
        }
        known.as_deref().ok_or(missing)
    }

    /// Returns the facts about a function that calls need.
    #[inline]
    pub(crate) fn shape(&mut self, function: FuncId) -> Result<Shape, MachineError> {
        match self.shapes.get(position(self.program, function)) {
            Some(Some(shape)) => Ok(*shape),
            _ => self.find_shape(function),
        }
    }

    #[cold]
    fn find_shape(&mut self, function: FuncId) -> Result<Shape, MachineError> {
        let body = self.body(function)?;
        let shape = Shape {
            locals: body.slots.locals.len(),
            variables: body.variables(),
            root: body.function.cfg.graph.root(),
            wide: body.wide,
        };
        self.shapes[position(self.program, function)] = Some(shape);
        Ok(shape)
    }

    /// Returns the number of variables of a function whose body was read.
    #[inline]
    pub(crate) fn variables(&self, function: FuncId) -> usize {
        let position = position(self.program, function);
        match (self.shapes.get(position), self.bodies.get(position)) {
            (Some(Some(shape)), _) => shape.variables,
            (_, Some(Some(body))) => body.variables(),
            _ => 0,
        }
    }

    /// Executes a node of `length` blocks. After an error, no further node can be executed.
    ///
    /// If the run was stopped from outside, use [`step_before`](Self::step_before) for the last
    /// node.
    ///
    /// # Errors
    /// Returns an error if the node cannot come next, or disagrees with the program.
    pub fn step<O: Observer>(
        &mut self,
        node: NodeId,
        length: u64,
        observer: &mut O,
    ) -> Result<(), MachineError> {
        let done = self.execute_whole(node, observer);
        self.pass(done, length)
    }

    /// Executes the last node of a run that was stopped from outside
    /// ([`stopped_before`](crate::stopped_before)), up to the position at which it was stopped. The
    /// observer does not get [`done`](Observer::done) for this node.
    ///
    /// # Errors
    /// Returns the errors of [`step`](Self::step).
    pub fn step_before<O: Observer>(
        &mut self,
        node: NodeId,
        length: u64,
        stopped: StoppedBefore,
        observer: &mut O,
    ) -> Result<(), MachineError> {
        let done = self.execute(node, Some(stopped), observer, &[], |_, _| ());
        self.pass(done, length)
    }

    /// Like [`step`](Self::step), or like [`step_before`](Self::step_before) if the run was
    /// `stopped`. Also shows the state at each pause. `pauses` has ascending numbers of executed
    /// instructions. Pauses that are not reached are not shown.
    ///
    /// # Errors
    /// Returns the errors of [`step`](Self::step).
    pub fn step_pausing<O: Observer>(
        &mut self,
        node: NodeId,
        length: u64,
        stopped: Option<StoppedBefore>,
        observer: &mut O,
        (pauses, show): (&[usize], impl FnMut(usize, &Inside<'_>)),
    ) -> Result<(), MachineError> {
        let done = self.execute(node, stopped, observer, pauses, show);
        self.pass(done, length)
    }

    pub(crate) fn execute<O: Observer>(
        &mut self,
        node: NodeId,
        before: Option<StoppedBefore>,
        observer: &mut O,
        pauses: &[usize],
        mut show: impl FnMut(usize, &Inside<'_>),
    ) -> Result<(), MachineError> {
        self.arrive(node, observer)?;
        let code = &self.codes[node];
        let base = self.frames.last().map_or(0, |frame| frame.base);
        let count = code.registers();
        if self.registers.len() < base + count {
            self.registers.resize(base + 2 * count, 0);
        }
        if code.wide && self.high.len() < base + count {
            self.high.resize(base + 2 * count, 0);
        }
        observer.node(node, code);
        let high = if code.wide {
            &self.high[base..base + count]
        } else {
            &[]
        };
        observer.variables(code, &self.registers[base..base + count], high);
        let insts = match before {
            None => code.insts.len(),
            Some(stopped) => instructions_before(self.program, code, stopped),
        };
        let mut executed = Ok(());
        let mut from = 0;
        for (i, to) in pauses.iter().copied().chain([insts]).enumerate() {
            let to = to.clamp(from, insts);
            let registers = Registers {
                low: &mut self.registers[base..base + count],
                high: if code.wide {
                    &mut self.high[base..base + count]
                } else {
                    &mut []
                },
            };
            let range = from..to;
            let (state, source) = (&mut self.state, &mut self.source);
            executed = execute(code, range, registers, state, source, observer);
            if executed.is_err() {
                break;
            }
            from = to;
            if pauses.get(i) == Some(&to) {
                let low = &self.registers[base..base + count];
                let high = if code.wide {
                    &self.high[base..base + count]
                } else {
                    &[]
                };
                let state = &self.state;
                show(to, &Inside { low, high, state });
            }
        }
        match executed {
            Ok(()) if before.is_none() => {
                let high = if code.wide {
                    &self.high[base..base + count]
                } else {
                    &[]
                };
                observer.done(code, &self.registers[base..base + count], high);
                self.leave_node(node, base, observer)?;
            }
            Ok(()) => self.stopped(node, insts, base, observer),
            Err(left) => self.stops(node, left, base, observer)?,
        }
        Ok(())
    }

    /// Prevents any further execution.
    pub(crate) fn fail(&mut self) {
        self.waiting = Waiting::Failed;
    }

    /// Records that a node of `length` blocks was executed, or could not be executed.
    #[inline]
    fn pass(&mut self, done: Result<(), MachineError>, length: u64) -> Result<(), MachineError> {
        let error = match (done, self.time.checked_add(length)) {
            (Ok(()), Some(time)) if time < u64::MAX => {
                self.time = time;
                return Ok(());
            }
            (Ok(()), _) => MachineError::Unsupported("a run of 2⁶⁴ blocks"),
            (Err(error), _) => error,
        };
        self.waiting = Waiting::Failed;
        Err(error)
    }

    /// Leaves a node that stopped after `executed` of its instructions.
    #[cold]
    pub(crate) fn stops<O: Observer>(
        &mut self,
        node: NodeId,
        (executed, stop): (usize, Stop),
        base: usize,
        observer: &mut O,
    ) -> Result<(), MachineError> {
        self.stopped(node, executed, base, observer);
        match stop {
            Stop::End => {}
            Stop::Trap(trap) => {
                observer.trapped(executed);
                self.trapped(trap);
            }
            Stop::Diverged(what) => return Err(self.diverged(what)),
            Stop::Boundary(what) => return Err(self.boundary(what)),
            Stop::Error(error) => return Err(error),
        }
        Ok(())
    }

    /// Ends the run inside a node, after `executed` of its instructions.
    fn stopped<O: Observer>(
        &mut self,
        node: NodeId,
        executed: usize,
        base: usize,
        observer: &mut O,
    ) {
        let code = &self.codes[node];
        let range = base..base + code.registers();
        let high = if code.wide {
            &self.high[range.clone()]
        } else {
            &[]
        };
        observer.stopped(code, executed, &self.registers[range], high);
        self.waiting = Waiting::Nothing;
    }

    /// Ends the run with a trap.
    pub(crate) fn trapped(&mut self, trap: Trap) {
        self.trap = Some(trap);
        self.waiting = Waiting::Nothing;
    }

    #[cold]
    pub(crate) fn diverged(&self, what: &'static str) -> MachineError {
        let time = self.time + 1;
        MachineError::Diverged { time, what }
    }

    #[cold]
    pub(crate) fn boundary(&self, what: &'static str) -> MachineError {
        let time = self.time + 1;
        MachineError::Boundary { time, what }
    }

    /// Returns the error for a path that continues beyond the end of a log that was cut off.
    #[cold]
    pub(crate) fn log_ends(&self) -> MachineError {
        let time = self.time;
        MachineError::LogEnds { time }
    }

    /// Whether the next node is the first of an activation.
    pub fn begins_activation(&self) -> bool {
        matches!(self.waiting, Waiting::Host | Waiting::Enter { .. })
    }

    /// Checks that the node can come next, and begins the node.
    pub(crate) fn arrive<O: Observer>(
        &mut self,
        node: NodeId,
        observer: &mut O,
    ) -> Result<(), MachineError> {
        let Some(code) = self.codes.get(node) else {
            return Err(self.diverged("a node follows that was not defined"));
        };
        let (function, first) = (code.function, code.first);
        match self.waiting {
            Waiting::Block(block) => {
                let fits = self.frames.last().map(|frame| frame.function) == Some(function)
                    && block == first;
                if !fits {
                    return Err(self.diverged("another block follows"));
                }
                Ok(())
            }
            Waiting::Enter {
                function: callee,
                tail,
            } => {
                if callee != function {
                    return Err(self.diverged("another function is called"));
                }
                let by = if tail { Caller::TailCall } else { Caller::Call };
                self.enter(function, first, by, observer)
            }
            Waiting::Host => self.enter_from_host(function, first, observer),
            Waiting::Nothing => Err(match self.trap {
                Some(trap) => {
                    let time = self.time;
                    MachineError::Trapped { time, trap }
                }
                None if self.source.is_cut() => self.log_ends(),
                None => self.diverged("the run has ended"),
            }),
            Waiting::Failed => Err(self.diverged("an earlier block did not match")),
        }
    }
}

impl std::fmt::Debug for Machine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine")
            .field("time", &self.time)
            .field("nodes", &self.codes.len())
            .field("activations", &self.frames.len())
            .field("waiting", &self.waiting)
            .field("trap", &self.trap)
            .finish_non_exhaustive()
    }
}

/// Returns the position of a defined function among the bodies. For an import, there is no body at
/// the position.
pub(crate) fn position(program: &Program, function: FuncId) -> usize {
    let index = function.as_u32() as usize;
    index.wrapping_sub(program.imports.len())
}

/// Returns the number of a node's instructions that were executed before the run was stopped in its
/// last block.
fn instructions_before(program: &Program, code: &NodeCode, stopped: StoppedBefore) -> usize {
    let function = program.function(code.function);
    let block = function.and_then(|function| function.cfg.blocks.get(stopped.block));
    let left_out = |op: OpId| block.is_some_and(|b| b.ops.contains(&op)) && op >= stopped.op;
    let first = code.insts.iter().position(|inst| left_out(inst.op));
    first.unwrap_or(code.insts.len())
}
