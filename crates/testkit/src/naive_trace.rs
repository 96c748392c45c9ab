//! Computes the counts of an execution from their definition. Every block reports to the host,
//! which counts it.
//!
//! [`instrument`] inserts calls to the host at the entry and exit of every function, at the start
//! of every block, at every branch (with its condition or table index), and in every exception
//! handler. An [`Observer`] follows these calls with a stack of activations and adds one to an edge
//! whenever an activation crosses it. It uses no placement, no equations and no backtrace, and
//! shares no code with the rewriter. It takes the control-flow graphs as given, but rejects any
//! step that they do not contain. It is a thousand times slower than counters.

use std::collections::BTreeMap;
use std::fmt;

use afterimage_ids::{BlockId, Counts, EdgeId, EntityRef, FuncId, FunctionCounts};
use afterimage_program::{BlockEnd, BlockKind, Callee, Edge, EdgeKind, Function, Program};

mod instrument;

pub use instrument::{HOOKS, Traced, instrument};

/// An open activation.
#[derive(Clone, Debug)]
struct Activation {
    id: u32,
    function: FuncId,
    /// The current block; `None` before the first.
    block: Option<BlockId>,
    /// The value that decided the last branch.
    decision: Option<u32>,
    /// The edges to the handler that caught an exception, if one did.
    caught: Vec<EdgeId>,
    /// Whether a tail call is about to replace the activation.
    leaving: bool,
    /// Whether another function has replaced the function that the activation's block called.
    handed_on: bool,
}

/// An observed event. Events are in execution order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    /// An activation of a function executes its first block.
    Enter(FuncId),
    /// The innermost activation executes a block.
    Block(BlockId),
    /// The innermost activation ends, by a return, a tail call or an exception.
    Leave,
}

/// Everything observed in an execution.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The counts.
    pub counts: Counts,
    /// The function and block of every activation still open at the end, innermost first.
    pub frames: Vec<(FuncId, BlockId)>,
    /// The whole trace.
    pub trace: Vec<Observed>,
    /// All returns, each as the number of blocks executed before it and the function.
    pub returns: Vec<(u64, FuncId)>,
}

/// The way in which an execution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// Every call into the guest returned.
    Returned,
    /// An exception left the outermost function.
    Exception,
    /// The guest stopped for any other reason.
    Stopped,
}

/// The reason why an observer stops. Either an event is impossible, because the guest, the graph or
/// the observer is wrong, or the observer was asked to stop here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Surprise {
    /// The wanted number of blocks was executed.
    Enough,
    /// The control-flow graph lacks this step.
    Step(String),
}

impl fmt::Display for Surprise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Surprise::Enough => f.write_str("enough blocks were executed"),
            Surprise::Step(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Surprise {}

type Result<T> = std::result::Result<T, Surprise>;

/// Counts the events of an instrumented module one by one.
#[derive(Debug)]
pub struct Observer<'a> {
    program: &'a Program,
    tables: &'a BTreeMap<(FuncId, BlockId), Vec<u32>>,
    stack: Vec<Activation>,
    next: u32,
    counts: Counts,
    /// Blocks executed so far, not counting dispatch vertices and EXIT.
    blocks: u64,
    trace: Vec<Observed>,
    returns: Vec<(u64, FuncId)>,
    stop: Stop,
}

/// The point at which an observer stops an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The observer never stops the execution.
    Never,
    /// The execution stops at the beginning of the block with this number, counted from 1.
    In(u64),
    /// The execution stops after the block with this number, as late as possible before the next
    /// block.
    After(u64),
}

impl<'a> Observer<'a> {
    /// Begins an execution.
    pub fn new(program: &'a Program, traced: &'a Traced, stop: Stop) -> Self {
        let counts = program.functions.iter().map(|f| FunctionCounts {
            edges: vec![0; f.cfg.edges.len()],
            ..FunctionCounts::default()
        });
        Self {
            program,
            tables: &traced.tables,
            stack: Vec::new(),
            next: 0,
            counts: Counts {
                functions: counts.collect(),
            },
            blocks: 0,
            trace: Vec::new(),
            returns: Vec::new(),
            stop,
        }
    }

    /// Records the entry of a function and returns the activation's number.
    pub fn enter(&mut self, function: u32) -> Result<u32> {
        let function = FuncId::from_u32(function);
        if let Some(caller) = self.stack.last() {
            let block = caller
                .block
                .ok_or_else(|| step("a call before the first block"))?;
            let end = self.function(caller.function)?.cfg.blocks[block].end;
            let calls = match end {
                BlockEnd::Call(Callee::Direct(callee)) => caller.handed_on || callee == function,
                BlockEnd::TailCall(Callee::Direct(callee)) => caller.leaving && callee == function,
                BlockEnd::Call(Callee::Indirect { .. }) => true,
                BlockEnd::TailCall(Callee::Indirect { .. }) => caller.leaving,
                _ => false,
            };
            if !calls {
                return Err(step(format!(
                    "{function} was entered from a block that ends with {end:?}"
                )));
            }
        }
        self.host_call()?;
        let id = self.next;
        self.next += 1;
        self.stack.push(Activation {
            id,
            function,
            block: None,
            decision: None,
            caught: Vec::new(),
            leaving: false,
            handed_on: false,
        });
        Ok(id)
    }

    /// Records that an activation is at the start of a block.
    pub fn at(&mut self, id: u32, block: u32) -> Result<()> {
        if self.stop == Stop::After(self.blocks) {
            return Err(Surprise::Enough);
        }
        let block = BlockId::from_u32(block);
        let mut activation = self.top(id)?;
        if activation.block.is_some() {
            self.go(&activation, block)?;
        } else {
            let root = self.function(activation.function)?.cfg.graph.root();
            if block != root {
                return Err(step(format!("{} begins with {block}", activation.function)));
            }
            self.counts_of(activation.function)?.entries += 1;
            self.trace.push(Observed::Enter(activation.function));
        }
        self.trace.push(Observed::Block(block));
        self.blocks += 1;
        (activation.block, activation.decision, activation.handed_on) = (Some(block), None, false);
        activation.caught.clear();
        self.stack.push(activation);
        if self.stop == Stop::In(self.blocks) {
            return Err(Surprise::Enough);
        }
        Ok(())
    }

    /// Records the value that decides a branch.
    pub fn decide(&mut self, value: u32) -> Result<()> {
        let top = self
            .stack
            .last_mut()
            .ok_or_else(|| step("a branch outside any function"))?;
        top.decision = Some(value);
        Ok(())
    }

    /// Records that an activation is in the handler for a clause of a `try_table`.
    pub fn catch(&mut self, id: u32, op: u32, clause: u32) -> Result<()> {
        while self.stack.last().is_some_and(|top| top.id != id) {
            self.unwind()?;
        }
        let mut activation = self.top(id)?;
        let function = self.function(activation.function)?;
        let mut edges = vec![raised(function, &activation)?];
        loop {
            let dispatch = function.cfg.edges[edges[edges.len() - 1]].to;
            match function.cfg.blocks[dispatch].kind {
                BlockKind::Dispatch(Some(at)) if at.as_u32() == op => {
                    edges.push(leaving(function, dispatch, |e| {
                        e.kind == EdgeKind::Catch(clause)
                    })?);
                    break;
                }
                BlockKind::Dispatch(_) => {
                    edges.push(leaving(function, dispatch, |e| e.kind == EdgeKind::Unwind)?);
                }
                kind => return Err(step(format!("an exception goes to a {kind:?}"))),
            }
        }
        activation.caught = edges;
        self.stack.push(activation);
        Ok(())
    }

    /// Records the return of an activation.
    pub fn leave(&mut self, id: u32) -> Result<()> {
        let activation = self.top(id)?;
        let exit = self.function(activation.function)?.cfg.graph.exit();
        self.trace.push(Observed::Leave);
        self.returns.push((self.blocks, activation.function));
        self.go(&activation, exit)
    }

    /// Records that a tail call, which may still fail, is about to replace an activation.
    pub fn tail(&mut self, id: u32) -> Result<()> {
        let mut activation = self.top(id)?;
        activation.leaving = true;
        self.stack.push(activation);
        Ok(())
    }

    /// Records the call to an import. If it is a tail call, it has now replaced the activation.
    pub fn host_call(&mut self) -> Result<()> {
        if self.stack.last().is_some_and(|top| top.leaving)
            && let Some(activation) = self.stack.pop()
        {
            let exit = self.function(activation.function)?.cfg.graph.exit();
            self.go(&activation, exit)?;
            self.trace.push(Observed::Leave);
            if let Some(caller) = self.stack.last_mut() {
                caller.handed_on = true;
            }
        }
        Ok(())
    }

    /// Ends the execution and returns the observation.
    pub fn finish(mut self, how: Finish) -> Result<Observation> {
        match how {
            Finish::Returned if self.stack.is_empty() => {}
            Finish::Returned => return Err(step("the guest returned with activations left")),
            Finish::Exception => {
                while !self.stack.is_empty() {
                    self.unwind()?;
                }
            }
            Finish::Stopped => {}
        }
        let mut open: BTreeMap<(FuncId, BlockId), u64> = BTreeMap::new();
        let mut frames = Vec::new();
        for activation in std::mem::take(&mut self.stack).iter().rev() {
            if let Some(block) = activation.block {
                *open.entry((activation.function, block)).or_insert(0) += 1;
                frames.push((activation.function, block));
            }
        }
        for ((function, block), count) in open {
            self.counts_of(function)?.open.push((block, count));
        }
        Ok(Observation {
            counts: self.counts,
            frames,
            trace: self.trace,
            returns: self.returns,
        })
    }

    /// Pops the innermost activation, which must be this one.
    fn top(&mut self, id: u32) -> Result<Activation> {
        match self.stack.pop() {
            Some(top) if top.id == id && !top.leaving => Ok(top),
            top => Err(step(format!(
                "activation {id} reports, but the innermost is {top:?}"
            ))),
        }
    }

    /// Counts the step of an activation from its block to another block.
    fn go(&mut self, activation: &Activation, to: BlockId) -> Result<()> {
        let function = self.function(activation.function)?;
        let from = activation
            .block
            .ok_or_else(|| step("left before the first block"))?;
        let edges = if activation.caught.is_empty() {
            vec![self.chosen(function, activation, from)?]
        } else {
            activation.caught.clone()
        };
        let arrives = function.cfg.edges[edges[edges.len() - 1]].to;
        if arrives != to {
            return Err(step(format!(
                "{} goes from {from} to {to}, not to {arrives}",
                function.id
            )));
        }
        self.count(activation.function, &edges)
    }

    /// Returns the edge that an activation takes out of its block.
    fn chosen(
        &self,
        function: &Function,
        activation: &Activation,
        from: BlockId,
    ) -> Result<EdgeId> {
        let decision = || {
            activation
                .decision
                .ok_or_else(|| step(format!("{from} made no decision")))
        };
        match function.cfg.blocks[from].end {
            BlockEnd::Branch => {
                let yes = decision()? != 0;
                leaving(function, from, |e| match e.kind {
                    EdgeKind::Taken | EdgeKind::Then => yes,
                    EdgeKind::NotTaken | EdgeKind::Else => !yes,
                    _ => false,
                })
            }
            BlockEnd::Table => {
                let depths = self.tables.get(&(function.id, from));
                let depths = depths.ok_or_else(|| step(format!("{from} has no table")))?;
                let depth = depths[(decision()? as usize).min(depths.len() - 1)];
                leaving(function, from, |e| e.kind == EdgeKind::Table(depth))
            }
            BlockEnd::Call(_) => leaving(function, from, |e| e.kind == EdgeKind::CallReturn),
            BlockEnd::Fall | BlockEnd::Jump | BlockEnd::Return | BlockEnd::TailCall(_) => {
                leaving(function, from, |_| true)
            }
            end => Err(step(format!(
                "{from} ends with {end:?}, and yet something followed"
            ))),
        }
    }

    /// Records that an exception leaves the innermost activation.
    fn unwind(&mut self) -> Result<()> {
        let activation = self
            .stack
            .pop()
            .ok_or_else(|| step("an exception outside any function"))?;
        self.trace.push(Observed::Leave);
        let function = self.function(activation.function)?;
        let mut edges = vec![raised(function, &activation)?];
        while function.cfg.edges[edges[edges.len() - 1]].to != function.cfg.graph.exit() {
            let dispatch = function.cfg.edges[edges[edges.len() - 1]].to;
            edges.push(leaving(function, dispatch, |e| e.kind == EdgeKind::Unwind)?);
        }
        self.count(activation.function, &edges)
    }

    fn count(&mut self, function: FuncId, edges: &[EdgeId]) -> Result<()> {
        let counts = self.counts_of(function)?;
        for edge in edges {
            counts.edges[edge.index()] += 1;
        }
        Ok(())
    }

    fn function(&self, id: FuncId) -> Result<&'a Function> {
        self.program
            .function(id)
            .ok_or_else(|| step(format!("there is no {id}")))
    }

    fn counts_of(&mut self, id: FuncId) -> Result<&mut FunctionCounts> {
        let position = id.index().checked_sub(self.program.imports.len());
        let counts = position.and_then(|i| self.counts.functions.get_mut(i));
        counts.ok_or_else(|| step(format!("there is no {id}")))
    }
}

/// Returns the edge by which an exception leaves an activation's block.
fn raised(function: &Function, activation: &Activation) -> Result<EdgeId> {
    let from = activation
        .block
        .ok_or_else(|| step("an exception before the first block"))?;
    leaving(function, from, |e| {
        matches!(e.kind, EdgeKind::CallThrow | EdgeKind::Throw)
    })
}

/// Returns the only edge out of a block that satisfies `fits`.
fn leaving(function: &Function, from: BlockId, fits: impl Fn(&Edge) -> bool) -> Result<EdgeId> {
    let edges = &function.cfg.edges;
    let mut found = function
        .cfg
        .graph
        .out_edges(from)
        .iter()
        .filter(|&&e| fits(&edges[e]));
    match (found.next(), found.next()) {
        (Some(&edge), None) => Ok(edge),
        (first, _) => {
            let many = if first.is_some() {
                "several such edges"
            } else {
                "no such edge"
            };
            Err(step(format!("{} has {many} out of {from}", function.id)))
        }
    }
}

fn step(what: impl Into<String>) -> Surprise {
    Surprise::Step(what.into())
}
