//! Answers questions about a whole execution trace.

mod before;
mod caught;
mod copied;
mod error;
mod evaluate;
mod forward;
mod host;
mod locals;
mod memory;
mod places;
mod source;
mod views;
mod written;

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use afterimage_ids::{EntityRef, FuncId, NodeId, OpId};
use afterimage_machine::{Body, NodeCode, State, compile_apart};
use afterimage_program::Program;
use afterimage_wpp::{Continuation, Occurrences, Segments, WholePath};

pub use before::{DefinedBy, StorageCell, VariableBefore};
pub use error::TraceError;
pub use evaluate::{Bits, ComputedValues};
pub use forward::{Definition, Held, Holders, HoldersMark, ReadBy, Readers, TakenBy, Takers};
pub use host::{HostCall, HostCalls};
pub use places::{TableOrSize, Taken};
pub use source::{Reading, Source, Writer};

use self::places::{Scanned, Sites};
use self::views::{Column, Copies, Views};
use crate::def::Origin;
use crate::epoch::{Blocks, Epoch, Execution, Mentions};
use crate::index::LeftOut;
use crate::model::NodeModel;

/// The source of a whole execution trace's epochs.
pub trait Epochs {
    /// The error of loading an epoch.
    type Error: std::error::Error + 'static;

    /// Returns the number of blocks executed before each epoch, by position. The default methods
    /// require these numbers to ascend.
    fn before(&self) -> &[u64];

    /// Returns the number of blocks executed by the end of the last epoch.
    fn end(&self) -> u64;

    /// Returns the ranges of blocks with stored values, ascending.
    fn kept(&self) -> Vec<(u64, u64)> {
        let first = self.before().first();
        first
            .map(|before| (before + 1, self.end()))
            .into_iter()
            .collect()
    }

    /// Returns the position of the epoch that covers a node beginning with block `time`, or `None`
    /// if there is none.
    fn find(&self, time: u64) -> Option<usize> {
        let after = self.before().partition_point(|&before| before < time);
        (after > 0 && time <= self.end()).then(|| after - 1)
    }

    /// Returns the functions that are left out where a node begins with block `time`, or `None` if
    /// no functions are left out.
    fn left_out(&self, time: u64) -> Option<&LeftOut> {
        let _ = time;
        None
    }

    /// Returns the extent of the epoch that covers nodes beginning with block `time`, or `None` if
    /// there is none.
    fn span(&self, time: u64) -> Option<Span> {
        let position = self.find(time)?;
        let next = self.before().get(position + 1).copied();
        Some(Span {
            position,
            last: next.unwrap_or(self.end()),
            ends: next.is_none(),
        })
    }

    /// Returns the first block from `time` on that an epoch covers.
    fn next_known(&self, time: u64) -> Option<u64> {
        let first = self.before().first()?.checked_add(1)?.max(time);
        (first <= self.end()).then_some(first)
    }

    /// Loads an epoch by its position. The epoch stays in memory until too many other epochs have
    /// been loaded.
    ///
    /// # Errors
    /// Returns an error if the epoch is damaged or cannot be read.
    fn load(&self, position: usize) -> Result<Arc<Epoch>, Self::Error>;

    /// Lends an epoch by its position for one use. The epoch does not stay in memory if reading it
    /// again is fast.
    ///
    /// # Errors
    /// Returns an error if the epoch is damaged or cannot be read.
    fn lend(&self, position: usize) -> Result<Arc<Epoch>, Self::Error> {
        self.load(position)
    }

    /// Whether an epoch is in memory.
    fn has(&self, position: usize) -> bool;

    /// Returns the number of epochs dropped from memory so far.
    fn dropped(&self) -> u64;

    /// Returns the last writer of a place before an epoch that was built alone, with the writer's
    /// execution or call. Returns `None` if nothing wrote the place. Other epochs name the writer
    /// themselves.
    ///
    /// # Errors
    /// Returns an error if an epoch cannot be built.
    fn written_before(
        &self,
        position: usize,
        place: StorageCell,
    ) -> Result<Option<(Origin, u64)>, Self::Error> {
        let _ = (position, place);
        Ok(None)
    }

    /// Returns the last writer of a variable before an epoch that was built alone. Other epochs
    /// name the writer themselves.
    ///
    /// # Errors
    /// Returns an error if an epoch cannot be built.
    fn variable_before(&self, wanted: VariableBefore) -> Result<Option<DefinedBy>, Self::Error> {
        let _ = wanted;
        Ok(None)
    }

    /// Returns the host's actions.
    ///
    /// # Errors
    /// Returns an error if the log is damaged or cannot be read.
    fn host(&self) -> Result<&HostCalls, Self::Error>;
}

/// The extent of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The position of the epoch.
    pub position: usize,
    /// The last block that may begin a node in the epoch.
    pub last: u64,
    /// Whether the epoch certainly covers no node that begins later.
    pub ends: bool,
}

/// An execution of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Instance {
    /// The time of the execution's first block.
    pub time: u64,
    /// The node that was executed.
    pub node: NodeId,
    /// The number of the node's execution, from 1.
    pub number: u64,
}

/// A node in compiled form.
#[derive(Debug)]
pub struct Compiled {
    /// The code of the node, in which every constant operator has its own register.
    pub code: NodeCode,
    /// The operators of the code's constants, by position.
    pub constants: Box<[OpId]>,
    /// The inputs and writes of the node.
    pub model: NodeModel,
}

/// The maximum number of nodes whose counted executions are cached.
const MOST_COUNTED: usize = 512;

/// Counted executions, cached for later questions.
type Counted<'a, S> = Rc<Occurrences<'a, S>>;

/// A whole execution trace, open for questions.
///
/// Values are computed on demand. A node's code computes them from the node's inputs, which come
/// from their definitions or are stored. The builder has stored enough values that each computation
/// takes at most a few hundred evaluations.
pub struct WholeTrace<'a, S: Segments, E> {
    program: &'a Program,
    bytes: &'a [u8],
    path: &'a WholePath<S>,
    continuations: &'a [Continuation],
    epochs: &'a E,
    /// The initial memories and globals.
    initial: State,
    bodies: RefCell<HashMap<FuncId, Rc<Body<'a>>>>,
    compiled: RefCell<HashMap<NodeId, Rc<Compiled>>>,
    counted: RefCell<HashMap<NodeId, Counted<'a, S>>>,
    setters: RefCell<HashMap<(FuncId, u32), Counted<'a, S>>>,
    views: RefCell<Views>,
    mentions: RefCell<HashMap<usize, Rc<Mentions>>>,
    scanned: OnceCell<Scanned>,
    sites: RefCell<HashMap<TableOrSize, Rc<Sites<'a, S>>>>,
    blocks: Blocks,
    /// Intermediate results from computing values for previous questions, kept for later questions.
    recent: RefCell<ComputedValues>,
}

/// The error type for a given path and its epochs.
type Failure<S, E> = TraceError<<S as Segments>::Error, <E as Epochs>::Error>;

impl<'a, S: Segments, E: Epochs> WholeTrace<'a, S, E>
where
    S::Error: std::error::Error + 'static,
{
    /// Opens a trace. `bytes` is the module from which the program was parsed. `continuations`
    /// belong to the path's nodes.
    ///
    /// # Errors
    /// Returns an error if the module cannot be read.
    pub fn new(
        program: &'a Program,
        bytes: &'a [u8],
        path: &'a WholePath<S>,
        continuations: &'a [Continuation],
        epochs: &'a E,
    ) -> Result<Self, Failure<S, E>> {
        let (initial, _) = State::of_module(program, bytes)?;
        Ok(Self {
            program,
            bytes,
            path,
            continuations,
            epochs,
            initial,
            bodies: RefCell::default(),
            compiled: RefCell::default(),
            counted: RefCell::default(),
            setters: RefCell::default(),
            views: RefCell::default(),
            mentions: RefCell::default(),
            scanned: OnceCell::new(),
            sites: RefCell::default(),
            blocks: Blocks::default(),
            recent: RefCell::default(),
        })
    }

    /// Returns the path.
    pub fn path(&self) -> &'a WholePath<S> {
        self.path
    }

    /// Returns the program.
    pub fn program(&self) -> &'a Program {
        self.program
    }

    /// Returns a node's code, compiled on demand.
    ///
    /// # Errors
    /// Returns an error if the path has no such node, or is not a path of the program.
    pub fn compiled(&self, node: NodeId) -> Result<Rc<Compiled>, Failure<S, E>> {
        if let Some(known) = self.compiled.borrow().get(&node) {
            return Ok(Rc::clone(known));
        }
        let unknown = || TraceError::Damaged("a node that is not in the path");
        let known = self.path.nodes().get(node).ok_or_else(unknown)?;
        let continuation = self.continuations.get(node.index()).ok_or_else(unknown)?;
        let body = self.body(known.function)?;
        let (code, constants) =
            compile_apart(self.program, &body, &known.blocks, continuation.next)?;
        let model = NodeModel::new(&code);
        let compiled = Rc::new(Compiled {
            code,
            constants,
            model,
        });
        let mut all = self.compiled.borrow_mut();
        all.insert(node, Rc::clone(&compiled));
        Ok(compiled)
    }

    fn body(&self, function: FuncId) -> Result<Rc<Body<'a>>, Failure<S, E>> {
        if let Some(known) = self.bodies.borrow().get(&function) {
            return Ok(Rc::clone(known));
        }
        let unknown = TraceError::Damaged("a function that is not in the program");
        let found = self.program.function(function).ok_or(unknown)?;
        let body = Rc::new(Body::read(self.program, self.bytes, found)?);
        let mut all = self.bodies.borrow_mut();
        all.insert(function, Rc::clone(&body));
        Ok(body)
    }

    fn counted(&self, node: NodeId) -> Result<Rc<Occurrences<'a, S>>, Failure<S, E>> {
        if let Some(known) = self.counted.borrow().get(&node) {
            return Ok(Rc::clone(known));
        }
        let counted = Rc::new(self.path.executions([(node, 0)])?);
        let mut all = self.counted.borrow_mut();
        if all.len() >= MOST_COUNTED {
            all.clear();
        }
        all.insert(node, Rc::clone(&counted));
        Ok(counted)
    }

    /// Returns the number of a node's executions.
    ///
    /// # Errors
    /// Returns an error if the path has no such node.
    pub fn executions(&self, node: NodeId) -> Result<u64, Failure<S, E>> {
        Ok(self.counted(node)?.count())
    }

    /// Returns an execution of a node by its number, from 1, or `None` if there are fewer
    /// executions.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn instance(&self, node: NodeId, number: u64) -> Result<Option<Instance>, Failure<S, E>> {
        let found = self.counted(node)?.select(number);
        let found = found.map_err(TraceError::Path)?;
        Ok(found.map(|found| Instance {
            time: found.time,
            node,
            number,
        }))
    }

    /// Returns the execution of a node that contains block `time`, or `None` if the run has no such
    /// block.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn at(&self, time: u64) -> Result<Option<Instance>, Failure<S, E>> {
        let mut cursor = self.path.cursor();
        let Some(visit) = cursor.seek(time).map_err(TraceError::Path)? else {
            return Ok(None);
        };
        self.numbered(visit.node, visit.start).map(Some)
    }

    /// Returns the execution of a node that begins with block `time`.
    fn numbered(&self, node: NodeId, time: u64) -> Result<Instance, Failure<S, E>> {
        let number = self.counted(node)?.rank(time).map_err(TraceError::Path)?;
        Ok(Instance { time, node, number })
    }

    /// Returns the execution of a node that a label names. `at` is the execution to which the label
    /// belongs.
    fn named(
        &self,
        node: NodeId,
        execution: Execution,
        at: u64,
    ) -> Result<Instance, Failure<S, E>> {
        let number = match execution {
            Execution::Number(number) => number,
            Execution::Ago(ago) => {
                let count = self.counted(node)?.rank(at).map_err(TraceError::Path)?;
                count.wrapping_sub(ago)
            }
        };
        let named = self.instance(node, number)?;
        let named = named.filter(|instance| instance.time <= at);
        named.ok_or(TraceError::Damaged("an execution that does not exist"))
    }

    /// Returns the host's actions.
    ///
    /// # Errors
    /// Returns an error if the log cannot be read.
    pub fn host(&self) -> Result<&'a HostCalls, Failure<S, E>> {
        self.epochs.host().map_err(TraceError::Epoch)
    }

    /// Returns the functions that are left out around block `time`, or `None` if no functions are
    /// left out.
    pub fn left_out(&self, time: u64) -> Option<&'a LeftOut> {
        self.epochs.left_out(time)
    }

    fn outside(&self, time: u64, without: Option<String>) -> Failure<S, E> {
        TraceError::Outside {
            time,
            kept: self.epochs.kept(),
            without,
        }
    }

    /// Returns an error for an execution of a function that was left out.
    fn check_kept(&self, instance: Instance) -> Result<(), Failure<S, E>> {
        let Some(left_out) = self.epochs.left_out(instance.time) else {
            return Ok(());
        };
        let node = self.path.nodes().get(instance.node);
        if node.is_some_and(|node| left_out.has(node.function)) {
            Err(self.outside(instance.time, Some(left_out.words.clone())))
        } else {
            Ok(())
        }
    }

    /// Returns the position of the epoch that covers a node beginning with block `time`.
    fn position(&self, time: u64) -> Result<usize, Failure<S, E>> {
        let position = self.epochs.find(time);
        position.ok_or_else(|| self.outside(time, None))
    }

    /// Returns the data about a copying write in the epoch of an execution.
    fn copies(&self, instance: Instance, write: usize) -> Result<Rc<Copies>, Failure<S, E>> {
        self.check_kept(instance)?;
        let position = self.position(instance.time)?;
        let key = (instance.node, write);
        if let Some(known) = self.views.borrow().copies(position, key) {
            return Ok(known);
        }
        let epoch = self.epochs.load(position).map_err(TraceError::Epoch)?;
        let found = Copies::try_new(epoch, |epoch| epoch.copies(instance.node, write))?;
        let found = Rc::new(found);
        let mut views = self.views.borrow_mut();
        views.close(self.epochs);
        views.put_copies(position, key, Rc::clone(&found));
        Ok(found)
    }

    /// Returns the data about an input in the epoch of an execution.
    fn column(&self, instance: Instance, input: usize) -> Result<Rc<Column>, Failure<S, E>> {
        let position = self.position(instance.time)?;
        let key = (instance.node, input);
        if let Some(known) = self.views.borrow().column(position, key) {
            return Ok(known);
        }
        let epoch = self.epochs.load(position).map_err(TraceError::Epoch)?;
        let found = Column::try_new(epoch, |epoch| epoch.input(instance.node, input))?;
        let found = Rc::new(found);
        let mut views = self.views.borrow_mut();
        views.close(self.epochs);
        views.put_column(position, key, Rc::clone(&found));
        Ok(found)
    }
}
