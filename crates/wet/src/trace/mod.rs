//! Asking a whole execution trace.

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
mod written;

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use afterimage_ids::{EntityRef, FuncId, NodeId, OpId};
use afterimage_machine::{Body, NodeCode, State, compile_apart};
use afterimage_program::Program;
use afterimage_wpp::{Continuation, Occurrences, Segments, WholePath};

pub use before::{DefinedBy, Place, VariableBefore};
pub use error::TraceError;
pub use evaluate::{Bits, ComputedValues};
pub use forward::{Definition, Held, Holders, HoldersMark, ReadBy, Readers, TakenBy, Takers};
pub use host::{HostCall, HostCalls};
pub use places::{TableOrSize, Taken};
pub use source::{Reading, Source, Writer};

use self::places::{Scanned, Sites};
use crate::def::Origin;
use crate::epoch::{Blocks, ColumnView, CopyView, Epoch, Execution, Mentions};
use crate::index::LeftOut;
use crate::model::NodeModel;

/// Where the epochs of a whole execution trace are.
pub trait Epochs {
    /// Why one cannot be loaded.
    type Error: std::error::Error + 'static;

    /// How many blocks were executed before each, ascending.
    fn before(&self) -> &[u64];

    /// How many blocks were executed before the end of the last one.
    fn end(&self) -> u64;

    /// From which to which blocks values are kept, ascending.
    fn kept(&self) -> Vec<(u64, u64)> {
        let first = self.before().first();
        first
            .map(|before| (before + 1, self.end()))
            .into_iter()
            .collect()
    }

    /// The position of the one that tells of a node that begins with block T; `None` if none does.
    fn find(&self, time: u64) -> Option<usize> {
        let after = self.before().partition_point(|&before| before < time);
        (after > 0 && time <= self.end()).then(|| after - 1)
    }

    /// Of which functions nothing is stored where a node begins with block T; `None` for none.
    fn left_out(&self, time: u64) -> Option<&LeftOut> {
        let _ = time;
        None
    }

    /// The one that tells of nodes that begin with block T, and how far it does from there on; `None` if none does.
    fn span(&self, time: u64) -> Option<Span> {
        let position = self.find(time)?;
        let next = self.before().get(position + 1).copied();
        Some(Span {
            position,
            last: next.unwrap_or(self.end()),
            ends: next.is_none(),
        })
    }

    /// The first block from T on of which one tells.
    fn next_known(&self, time: u64) -> Option<u64> {
        let first = self.before().first()?.checked_add(1)?.max(time);
        (first <= self.end()).then_some(first)
    }

    /// One, by its position. It stays where it is.
    ///
    /// # Errors
    /// If it is damaged or cannot be read.
    fn load(&self, position: usize) -> Result<&Epoch, Self::Error>;

    /// One, by its position, for as long as it is looked at.
    ///
    /// # Errors
    /// If it is damaged or cannot be read.
    fn lend(&self, position: usize) -> Result<Lent<'_>, Self::Error> {
        self.load(position).map(Lent::Kept)
    }

    /// Who wrote a place last before an epoch that was built alone, and in which execution or call; `None` if nobody did. An epoch that was built along with those before it says so itself.
    ///
    /// # Errors
    /// If an epoch cannot be built.
    fn written_before(
        &self,
        position: usize,
        place: Place,
    ) -> Result<Option<(Origin, u64)>, Self::Error> {
        let _ = (position, place);
        Ok(None)
    }

    /// Who wrote a variable last before an epoch that was built alone. Others say so themselves.
    ///
    /// # Errors
    /// If an epoch cannot be built.
    fn variable_before(&self, wanted: VariableBefore) -> Result<Option<DefinedBy>, Self::Error> {
        let _ = wanted;
        Ok(None)
    }

    /// What the host wrote.
    ///
    /// # Errors
    /// If the log is damaged or cannot be read.
    fn host(&self) -> Result<&HostCalls, Self::Error>;
}

/// What an epoch tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its position.
    pub position: usize,
    /// It is the one to ask for nodes that begin until here.
    pub last: u64,
    /// It tells of no node that begins later: known, not only so by chance.
    pub ends: bool,
}

/// An epoch that is looked at.
#[derive(Debug)]
pub enum Lent<'e> {
    /// It stays in memory.
    Kept(&'e Epoch),
    /// It does not.
    Passing(std::sync::Arc<Epoch>),
}

impl std::ops::Deref for Lent<'_> {
    type Target = Epoch;

    fn deref(&self) -> &Epoch {
        match self {
            Self::Kept(epoch) => epoch,
            Self::Passing(epoch) => epoch,
        }
    }
}

/// An execution of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Instance {
    /// The time of its first block.
    pub time: u64,
    /// The node.
    pub node: NodeId,
    /// Which of the node's executions it is, from 1.
    pub number: u64,
}

/// A node, compiled.
#[derive(Debug)]
pub struct Compiled {
    /// Its code, in which no two operators share a constant's register.
    pub code: NodeCode,
    /// The operators that are its constants, by their positions.
    pub constants: Box<[OpId]>,
    /// Its inputs and writes.
    pub model: NodeModel,
}

/// An input of a node, in an epoch.
type Input = (usize, NodeId, usize);

/// How many inputs' columns are kept open.
const MOST_COLUMNS: usize = 1 << 16;
/// How many nodes' executions are kept countable.
const MOST_COUNTED: usize = 512;

/// A whole execution trace, open for questions.
///
/// Values are computed when they are asked for: from what is kept, through the definitions of what a node reads, by its code. The builder has
/// kept so much that one value takes a few hundred evaluations at most.
pub struct WholeTrace<'a, S: Segments, E> {
    program: &'a Program,
    bytes: &'a [u8],
    path: &'a WholePath<S>,
    continuations: &'a [Continuation],
    epochs: &'a E,
    /// What memories and globals are before the run.
    initial: State,
    bodies: RefCell<HashMap<FuncId, Rc<Body<'a>>>>,
    compiled: RefCell<HashMap<NodeId, Rc<Compiled>>>,
    counted: RefCell<HashMap<NodeId, Rc<Occurrences<'a, S>>>>,
    setters: RefCell<HashMap<(FuncId, u32), Rc<Occurrences<'a, S>>>>,
    columns: RefCell<HashMap<Input, Option<Rc<ColumnView<'a>>>>>,
    copies: RefCell<HashMap<Input, Option<Rc<CopyView<'a>>>>>,
    mentions: RefCell<HashMap<usize, Rc<Mentions>>>,
    scanned: OnceCell<Scanned>,
    sites: RefCell<HashMap<TableOrSize, Rc<Sites<'a, S>>>>,
    blocks: Blocks,
    /// What was computed for the values asked for so far.
    recent: RefCell<ComputedValues>,
}

/// What goes wrong, for a path and epochs.
type Failure<S, E> = TraceError<<S as Segments>::Error, <E as Epochs>::Error>;

impl<'a, S: Segments, E: Epochs> WholeTrace<'a, S, E>
where
    S::Error: std::error::Error + 'static,
{
    /// Opens a trace. `bytes` is the module that the program was parsed from, `continuations` are those of the path's nodes.
    ///
    /// # Errors
    /// If the module cannot be read.
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
            columns: RefCell::default(),
            copies: RefCell::default(),
            mentions: RefCell::default(),
            scanned: OnceCell::new(),
            sites: RefCell::default(),
            blocks: Blocks::default(),
            recent: RefCell::default(),
        })
    }

    /// The path.
    pub fn path(&self) -> &'a WholePath<S> {
        self.path
    }

    /// The program.
    pub fn program(&self) -> &'a Program {
        self.program
    }

    /// A node's code. Compiled when it is first asked for.
    ///
    /// # Errors
    /// If the path has no such node, or it is no path of the program.
    pub fn compiled(&self, node: NodeId) -> Result<Rc<Compiled>, Failure<S, E>> {
        if let Some(known) = self.compiled.borrow().get(&node) {
            return Ok(Rc::clone(known));
        }
        let unknown = || TraceError::Damaged("a node that the path does not have");
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
        let unknown = TraceError::Damaged("a function that the program does not have");
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

    /// How often a node was executed.
    ///
    /// # Errors
    /// If the path has no such node.
    pub fn executions(&self, node: NodeId) -> Result<u64, Failure<S, E>> {
        Ok(self.counted(node)?.count())
    }

    /// An execution of a node by its number, from 1. `None` if there are not so many.
    ///
    /// # Errors
    /// If the path cannot be read.
    pub fn instance(&self, node: NodeId, number: u64) -> Result<Option<Instance>, Failure<S, E>> {
        let found = self.counted(node)?.select(number);
        let found = found.map_err(TraceError::Path)?;
        Ok(found.map(|found| Instance {
            time: found.time,
            node,
            number,
        }))
    }

    /// The execution of a node that contains block T. `None` if T is not in the run.
    ///
    /// # Errors
    /// If the path cannot be read.
    pub fn at(&self, time: u64) -> Result<Option<Instance>, Failure<S, E>> {
        let mut cursor = self.path.cursor();
        let Some(visit) = cursor.seek(time).map_err(TraceError::Path)? else {
            return Ok(None);
        };
        self.numbered(visit.node, visit.start).map(Some)
    }

    /// The execution of a node that begins with block T.
    fn numbered(&self, node: NodeId, time: u64) -> Result<Instance, Failure<S, E>> {
        let number = self.counted(node)?.rank(time).map_err(TraceError::Path)?;
        Ok(Instance { time, node, number })
    }

    /// The execution of a node that a label names, which was written when `at` was executed.
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
        named.ok_or(TraceError::Damaged("an execution that is not there"))
    }

    /// What the host did.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn host(&self) -> Result<&'a HostCalls, Failure<S, E>> {
        self.epochs.host().map_err(TraceError::Epoch)
    }

    /// Of which functions nothing is stored around block T; `None` for none.
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

    /// Refuses an execution of a function that was left out.
    fn told(&self, instance: Instance) -> Result<(), Failure<S, E>> {
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

    /// The epoch in which a node that begins with block T is told of.
    fn epoch(&self, time: u64) -> Result<(usize, &'a Epoch), Failure<S, E>> {
        let Some(position) = self.epochs.find(time) else {
            return Err(self.outside(time, None));
        };
        let epoch = self.epochs.load(position).map_err(TraceError::Epoch)?;
        Ok((position, epoch))
    }

    /// What is told of a write of a node that copies, around block T.
    fn copies(
        &self,
        instance: Instance,
        write: usize,
    ) -> Result<Option<Rc<CopyView<'a>>>, Failure<S, E>> {
        self.told(instance)?;
        let (position, epoch) = self.epoch(instance.time)?;
        let key = (position, instance.node, write);
        if let Some(known) = self.copies.borrow().get(&key) {
            return Ok(known.clone());
        }
        let found = epoch.copies(instance.node, write)?.map(Rc::new);
        let mut copies = self.copies.borrow_mut();
        if copies.len() >= MOST_COLUMNS {
            copies.clear();
        }
        copies.insert(key, found.clone());
        Ok(found)
    }

    /// What is told of an input of a node around block T.
    fn column(
        &self,
        instance: Instance,
        input: usize,
    ) -> Result<Option<Rc<ColumnView<'a>>>, Failure<S, E>> {
        let (position, epoch) = self.epoch(instance.time)?;
        let key = (position, instance.node, input);
        if let Some(known) = self.columns.borrow().get(&key) {
            return Ok(known.clone());
        }
        let column = epoch.input(instance.node, input)?.map(Rc::new);
        let mut columns = self.columns.borrow_mut();
        if columns.len() >= MOST_COLUMNS {
            columns.clear();
        }
        columns.insert(key, column.clone());
        Ok(column)
    }
}
