//! Builds the values of single stretches of a run, when an answer needs them.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use afterimage_ids::{FuncId, NodeId};
use afterimage_machine::{Body, NodeEnd, Range, Snapshots, StoppedBefore, compile};
use afterimage_program::{EdgeKind, Module};
use afterimage_trace::TraceFile;
use afterimage_wet::{
    Before, FileEpochs, HostCalls, LastWriters, LeftOut, MakeStretch, Run, Standing, StorageCell,
    StretchError,
};
use afterimage_wpp::{OpenActivation, Segments, StretchDirectory, Summary};
use wasmparser::Operator;

use crate::Writers;
use crate::steps::{self, NearestAccess, last_writes_from_snapshot};
use crate::whole_path::RecordedPath;

/// For each node of a function, the variables that it may write, ascending. They include the
/// results of its call.
type Outputs = HashMap<NodeId, Box<[u32]>>;

/// A run whose stretches are built on demand.
struct Stretches {
    file: TraceFile,
    module: Arc<Module>,
    path: Arc<RecordedPath>,
    snapshots: Snapshots,
    /// The activations that are open at the beginning of each stretch.
    open: OpenWhere,
    /// Finds the stretch that wrote a byte.
    wrote: Arc<Writers>,
    stopped: Option<StoppedBefore>,
    /// For each global, the functions that write it.
    global_writers: OnceLock<Vec<BTreeSet<FuncId>>>,
    /// The variables that the nodes of a function may write, for each function examined so far.
    outputs: Mutex<HashMap<FuncId, Arc<Outputs>>>,
    /// The results of following the run, for adjacent bytes that were looked up together.
    followed: Mutex<HashMap<FollowedKey, [Followed; TOGETHER as usize]>>,
}

/// The stretch before which to search, the memory, and the first address in units of [`TOGETHER`].
type FollowedKey = (usize, u32, u64);

/// The last writer of a byte, found by following the run from a snapshot.
#[derive(Clone, Copy, Debug)]
enum Followed {
    /// No instruction or host call wrote the byte.
    Nobody,
    /// The last write is in this stretch.
    In(usize),
    /// The last write, if there is one, is before this stretch.
    Before(usize),
}

/// The cost of following the run from a snapshot, as a multiple of the cost of building a stretch.
const FOLLOWING: usize = 3;
/// The number of stretches that can be executed again in the time to build one stretch.
const EXECUTED: usize = 1 << 10;

/// The number of bytes whose last writers are searched for together. This is the size of a vector.
const TOGETHER: u64 = 16;

impl fmt::Debug for Stretches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stretches").finish_non_exhaustive()
    }
}

/// The description of the stretches is damaged.
#[derive(Debug, thiserror::Error)]
#[error("the stretches in the recording are damaged: {0}")]
struct Damaged(&'static str);

/// The activations that are open at the beginning of each stretch. There is a list for each depth,
/// outermost first. Each list contains the stretches in which the activation at that depth differs
/// from the previous stretch.
#[derive(Default)]
struct OpenWhere(Vec<Vec<(usize, OpenActivation)>>);

impl OpenWhere {
    /// Converts the lists of [`StretchDirectory::open`]. Takes time linear in the lists.
    fn of(stretches: &[Summary], open: &[Vec<OpenActivation>]) -> Self {
        let mut found = Self::default();
        for (number, (earlier, open)) in stretches.iter().zip(open).enumerate() {
            let known = StretchDirectory::known_before(earlier);
            for (activation, open) in (known..).zip(open) {
                if found.0.len() <= activation {
                    found.0.resize(activation + 1, Vec::new());
                }
                found.0[activation].push((number + 1, *open));
            }
        }
        found
    }

    /// Returns the activation at a given depth at the beginning of a stretch. O(log stretches).
    fn at(&self, position: usize, activation: usize) -> Option<&OpenActivation> {
        let known = self.0.get(activation)?;
        let found = known.partition_point(|&(from, _)| from <= position);
        known.get(found.checked_sub(1)?).map(|(_, open)| open)
    }
}

/// Returns the epochs of a run, one for each stretch. The epochs are built on demand, up to a
/// limit.
pub fn epochs_of_stretches(
    (file, module): (&TraceFile, &Arc<Module>),
    (path, open): (Arc<RecordedPath>, &[Vec<OpenActivation>]),
    (snapshots, wrote): (Snapshots, Arc<Writers>),
    (stopped, most): (Option<StoppedBefore>, usize),
) -> FileEpochs {
    let summaries = path.segments().summaries().iter();
    let before = Vec::from_iter(summaries.map(|summary| summary.before));
    let end = path.length();
    let open = OpenWhere::of(path.segments().summaries(), open);
    let maker = Stretches {
        file: file.clone(),
        module: Arc::clone(module),
        path,
        snapshots,
        open,
        wrote,
        stopped,
        global_writers: OnceLock::new(),
        outputs: Mutex::default(),
        followed: Mutex::default(),
    };
    FileEpochs::made(file, (before, end), Box::new(maker), most)
}

impl Stretches {
    /// Returns the summaries of all stretches.
    fn summaries(&self) -> &[Summary] {
        self.path.segments().summaries()
    }

    fn summary(&self, position: usize) -> Result<&Summary, Damaged> {
        let found = self.summaries().get(position);
        found.ok_or(Damaged("one is missing"))
    }

    /// Returns the number of executions of each node before a stretch. Leaves out nodes that have
    /// not been executed.
    fn counts_before(&self, position: usize) -> Vec<(NodeId, u64)> {
        let counts = self.path.nodes().keys().map(|node| {
            let inside = self.path.segments_with(node).iter();
            let before = inside.take_while(|&&(segment, _)| (segment as usize) < position);
            (node, before.map(|&(_, count)| count).sum())
        });
        counts.filter(|&(_, count)| count > 0).collect()
    }

    /// Returns the variables that the nodes of a function may write. The first call is linear in
    /// the function and its nodes.
    fn outputs(&self, function: FuncId) -> Result<Arc<Outputs>, StretchError> {
        let known = || self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known().get(&function) {
            return Ok(Arc::clone(known));
        }
        let program = &self.module.program;
        let own = program.function(function);
        let own = own.ok_or(Damaged("a function that is not in the program"))?;
        let body = Body::read(program, &self.module.bytes, own)?;
        // A handler may be in an enclosing block.
        let mut edges = own.cfg.edges.values();
        let catches = edges.any(|edge| edge.kind == EdgeKind::CallThrow);
        let continuations = &self.path.segments().directory().continuations;
        let mut found = Outputs::new();
        for ((id, node), on) in self.path.nodes().iter().zip(continuations) {
            if node.function != function {
                continue;
            }
            let code = compile(program, &body, &node.blocks, on.next)?;
            let mut all = Vec::from_iter(code.outputs.iter().map(|output| output.0));
            if let NodeEnd::Call { results, .. } = code.end {
                // Results, and the values that a handler receives, go to slots of the operand
                // stack. Later slots are not read before they are written.
                all.extend(results..code.variables);
                if catches {
                    all.extend(body.slots.locals.len() as u32..results);
                }
            }
            all.sort_unstable();
            all.dedup();
            found.insert(id, all.into());
        }
        let found = Arc::new(found);
        known().insert(function, Arc::clone(&found));
        Ok(found)
    }

    /// Returns, for each global, the functions that write it. The first call is linear in the
    /// program.
    fn global_writers(&self) -> &[BTreeSet<FuncId>] {
        self.global_writers.get_or_init(|| {
            let program = &self.module.program;
            let mut writers = vec![BTreeSet::new(); program.globals.len()];
            for function in &program.functions {
                for (_, _, operator) in program.operators(&self.module.bytes, function) {
                    if let Operator::GlobalSet { global_index } = operator
                        && let Some(writers) = writers.get_mut(global_index as usize)
                    {
                        writers.insert(function.id);
                    }
                }
            }
            writers
        })
    }
}

impl MakeStretch for Stretches {
    fn stretch(
        &self,
        position: usize,
        host: &HostCalls,
    ) -> Result<(Vec<u8>, LastWriters), StretchError> {
        let summary = self.summary(position)?;
        let all = self.summaries();
        let first = summary.before;
        let snapshot = self.snapshots.at(first);
        let begun = snapshot.map_or(0, |number| self.snapshots.times()[number]);
        let begun = all.partition_point(|summary| summary.before < begun);
        let followed = all.get(begun..=position).unwrap_or_default();
        let nodes = followed.iter().flat_map(|summary| &summary.node_counts);
        let nodes = BTreeSet::from_iter(nodes.map(|&(node, _)| node));
        let nodes = Vec::from_iter(nodes);
        let before = Before {
            snapshot: snapshot.map(|number| (&self.snapshots, number)),
            nodes: &nodes,
            counts: &self.counts_before(position),
            host,
        };
        let run = Run {
            program: &self.module.program,
            bytes: &self.module.bytes,
            path: &*self.path,
            continuations: &self.path.segments().directory().continuations,
            window: first + 1..=first + summary.length,
            left_out: &LeftOut::NOTHING,
            stopped: self.stopped,
            epoch: usize::MAX,
        };
        Ok(run.build_stretch(self.file.log()?, &before)?)
    }

    fn opened(&self, position: usize, activation: usize) -> Result<Option<Standing>, StretchError> {
        let found = self.open.at(position, activation);
        Ok(found.map(|open| Standing {
            entered: open.entered,
            called: open.call.map(|_| open.called),
        }))
    }

    fn may_write(
        &self,
        position: usize,
        activation: usize,
        (function, variable): (FuncId, u32),
    ) -> Result<bool, StretchError> {
        let outputs = self.outputs(function)?;
        let writes = |node: NodeId| {
            let written = outputs.get(&node);
            written.is_some_and(|written| written.binary_search(&variable).is_ok())
        };
        let counts = &self.summary(position)?.node_counts;
        if counts.iter().any(|&(node, _)| writes(node)) {
            return Ok(true);
        }
        // The activation's first pending call may write the variable when it returns.
        let open = self.open.at(position, activation);
        let Some(block) = open.and_then(|open| open.call) else {
            return Ok(false);
        };
        let waited = |node: NodeId| {
            let node = self.path.nodes().get(node);
            node.is_some_and(|node| node.blocks.last() == Some(&block))
        };
        Ok(outputs.keys().any(|&node| waited(node) && writes(node)))
    }

    fn written_before(
        &self,
        position: usize,
        place: StorageCell,
    ) -> Result<Option<usize>, StretchError> {
        let global = match place {
            StorageCell::Global(global) => global,
            StorageCell::Byte { memory, address } => {
                return Ok(self.wrote.last_before(position, memory, address)?);
            }
        };
        let writers = self.global_writers().get(global as usize);
        let writers = writers.ok_or(Damaged("a global that does not exist"))?;
        for earlier in (0..position).rev() {
            let mut nodes = self.summary(earlier)?.node_counts.iter();
            let nodes_of = self.path.nodes();
            if nodes.any(|(node, _)| {
                nodes_of
                    .get(*node)
                    .is_some_and(|node| writers.contains(&node.function))
            }) {
                return Ok(Some(earlier));
            }
        }
        Ok(None)
    }

    fn wrote_byte(
        &self,
        mut position: usize,
        memory: u32,
        address: u64,
    ) -> Result<(Option<usize>, usize), StretchError> {
        let executed = self.wrote.executed();
        let mut cost = 0;
        let found = loop {
            if let Some(found) = self.wrote.watched_before(position, memory, address) {
                break found;
            }
            // In a long run, the writer is usually close, whereas watching takes as long as the
            // run.
            let (found, took) = self.follow_back(position, memory, address)?;
            cost += took;
            position = match found {
                Followed::Nobody => break None,
                Followed::In(found) => break Some(found),
                Followed::Before(earlier) => earlier,
            };
            self.wrote.watch(position, memory, address);
        };
        let executed = self.wrote.executed() - executed;
        Ok((found, cost + executed.div_ceil(EXECUTED)))
    }
}

impl Stretches {
    /// Returns the stretch before `position` that last wrote a byte, if following the run from one
    /// snapshot finds it. Also returns the cost, in units of building a stretch.
    fn follow_back(
        &self,
        position: usize,
        memory: u32,
        address: u64,
    ) -> Result<(Followed, usize), StretchError> {
        let key = (position, memory, address / TOGETHER);
        let at = (address % TOGETHER) as usize;
        let known = || self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known().get(&key) {
            return Ok((known[at], 0));
        }
        let run = steps::Run {
            program: &self.module.program,
            module: &self.module.bytes,
            path: &*self.path,
            continuations: &self.path.segments().directory().continuations,
            stopped: self.stopped,
            checkpoints: None,
            snapshots: Some(&self.snapshots),
            progress: &|_| {},
        };
        let index = (&*self.wrote, &(|| self.file.log()) as &dyn Fn() -> _);
        let before = self.summary(position)?.before;
        let bytes = Range {
            memory,
            address: address - at as u64,
            length: TOGETHER,
        };
        let accesses = last_writes_from_snapshot(run, index, bytes, before)?;
        let all = self.summaries();
        let stretches = |time: u64| all.partition_point(|stretch| stretch.before < time);
        let mut found = [Followed::Nobody; TOGETHER as usize];
        for (found, access) in found.iter_mut().zip(accesses) {
            *found = match access {
                NearestAccess::Never => Followed::Nobody,
                NearestAccess::Step(step) => Followed::In(stretches(step.time).saturating_sub(1)),
                NearestAccess::Beyond(time) => Followed::Before(stretches(time.saturating_sub(1))),
            };
        }
        known().insert(key, found);
        Ok((found[at], FOLLOWING))
    }
}
