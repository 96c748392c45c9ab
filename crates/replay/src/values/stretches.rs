//! Values of stretches of a run, each built alone when it is asked for.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use afterimage_ids::{EntityRef, FuncId, NodeId};
use afterimage_machine::{Body, NodeEnd, Snapshots, StoppedBefore, WrittenLines, compile};
use afterimage_program::{EdgeKind, Module};
use afterimage_trace::TraceFile;
use afterimage_wet::{
    Before, FileEpochs, HostCalls, LastWriters, LeftOut, MakeStretch, Place, Run, Standing,
    StretchError,
};
use afterimage_wpp::{Segments, Summary};
use wasmparser::Operator;

use crate::paths::RecordedPath;

/// A run whose stretches are built: those between its snapshots.
struct Stretches {
    file: TraceFile,
    module: Arc<Module>,
    path: Arc<RecordedPath>,
    snapshots: Snapshots,
    /// Which lines of memory each segment of the path writes, if that is known.
    lines: Arc<OnceLock<WrittenLines>>,
    stopped: Option<StoppedBefore>,
    /// How many blocks were executed before each stretch.
    before: Vec<u64>,
    /// By global: the functions that write it.
    writers: OnceLock<Vec<BTreeSet<FuncId>>>,
    /// The variables that nodes, or what their calls give, may write, ascending: of those that were asked for.
    outputs: Mutex<HashMap<NodeId, Box<[u32]>>>,
}

impl fmt::Debug for Stretches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stretches").finish_non_exhaustive()
    }
}

/// What is told of stretches is not as it should be.
#[derive(Debug, thiserror::Error)]
#[error("the stretches in the recording are damaged: {0}")]
struct Damaged(&'static str);

/// Epochs of a run, one for each stretch between its snapshots, which are built when they are needed: at most so many. The index of written lines may be told of later.
pub fn epochs_of_stretches(
    file: &TraceFile,
    module: &Arc<Module>,
    path: Arc<RecordedPath>,
    (snapshots, lines): (Snapshots, Arc<OnceLock<WrittenLines>>),
    (stopped, most): (Option<StoppedBefore>, usize),
) -> FileEpochs {
    let times = snapshots.times().iter().copied();
    let mut before = Vec::from_iter([0].into_iter().chain(times.filter(|&time| time > 0)));
    // Nothing is executed after the last one.
    before.retain(|&time| time < path.length());
    let end = path.length();
    let maker = Stretches {
        file: file.clone(),
        module: Arc::clone(module),
        path,
        snapshots,
        lines,
        stopped,
        before: before.clone(),
        writers: OnceLock::new(),
        outputs: Mutex::default(),
    };
    FileEpochs::made(file, (before, end), Box::new(maker), most)
}

impl Stretches {
    /// What the segments of a stretch hold, and what those before it do.
    fn summaries(&self, position: usize) -> Result<(&[Summary], &[Summary]), Damaged> {
        let all = self.path.segments().summaries();
        let at = |time: u64| {
            let found = all.partition_point(|summary| summary.before < time);
            let begins = all.get(found).is_none_or(|summary| summary.before == time);
            let damaged = Damaged("one is not told of");
            if begins { Ok(found) } else { Err(damaged) }
        };
        let first = self.before.get(position).copied();
        let first = at(first.ok_or(Damaged("one is missing"))?)?;
        let last = match self.before.get(position + 1) {
            Some(&next) => at(next)?,
            None => all.len(),
        };
        let inside = all.get(first..last);
        Ok((&all[..first], inside.unwrap_or_default()))
    }

    /// The snapshot with which a stretch begins; `None` of the first.
    fn snapshot_before(&self, position: usize) -> Result<Option<usize>, Damaged> {
        let first = self.before.get(position).copied();
        let first = first.ok_or(Damaged("one is missing"))?;
        if position == 0 {
            return Ok(None);
        }
        let number = self.snapshots.at(first);
        let number = number.filter(|&number| self.snapshots.times()[number] == first);
        let missing = Damaged("no snapshot is before one");
        number.map(Some).ok_or(missing)
    }

    /// Whether a node, or what its call gives, may write a variable.
    fn writes(&self, node: NodeId, variable: u32) -> Result<bool, StretchError> {
        let mut known = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&node) {
            return Ok(known.binary_search(&variable).is_ok());
        }
        let damaged = || Damaged("a node that the path does not have");
        let program = &self.module.program;
        let of = self.path.nodes().get(node).ok_or_else(damaged)?;
        let on = &self.path.segments().directory().continuations;
        let on = on.get(node.index()).ok_or_else(damaged)?;
        let function = program.function(of.function).ok_or_else(damaged)?;
        let body = Body::read(program, &self.module.bytes, function)?;
        let code = compile(program, &body, &of.blocks, on.next)?;
        let mut all = Vec::from_iter(code.outputs.iter().map(|output| output.0));
        if let NodeEnd::Call { results, .. } = code.end {
            // What it gives, or what a handler gets, goes to slots of the operand stack: those behind are not read before they are written.
            all.extend(results..code.variables);
            // A handler may be further out.
            if function
                .cfg
                .edges
                .values()
                .any(|edge| edge.kind == EdgeKind::CallThrow)
            {
                all.extend(body.slots.locals.len() as u32..results);
            }
        }
        all.sort_unstable();
        all.dedup();
        let found = all.binary_search(&variable).is_ok();
        known.insert(node, all.into());
        Ok(found)
    }

    /// By global: the functions that write it. O(program), once.
    fn writers(&self) -> &[BTreeSet<FuncId>] {
        self.writers.get_or_init(|| {
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
        let (earlier, inside) = self.summaries(position)?;
        let node_counts = |summaries: &[Summary]| {
            let mut counts = vec![0; self.path.nodes().len()];
            for &(node, count) in summaries.iter().flat_map(|summary| &summary.node_counts) {
                if let Some(sum) = counts.get_mut(node.index()) {
                    *sum += count;
                }
            }
            let counts = counts
                .into_iter()
                .enumerate()
                .filter(|&(_, count)| count > 0);
            Vec::from_iter(counts.map(|(node, count)| (NodeId::new(node), count)))
        };
        let counts = node_counts(earlier);
        let nodes = Vec::from_iter(node_counts(inside).into_iter().map(|(node, _)| node));
        let first = self.before[position];
        let mut before = Before {
            snapshot: None,
            nodes: &nodes,
            counts: &counts,
            host_calls: 0,
        };
        if let Some(number) = self.snapshot_before(position)? {
            let (snapshot, _) = self.snapshots.snapshot(number)?;
            before.snapshot = Some((&self.snapshots, number));
            before.host_calls = host.among(snapshot.log.events)?;
        }
        let last = self.before.get(position + 1).copied();
        let run = Run {
            program: &self.module.program,
            bytes: &self.module.bytes,
            path: &*self.path,
            continuations: &self.path.segments().directory().continuations,
            window: first + 1..=last.unwrap_or(self.path.length()),
            left_out: &LeftOut::NOTHING,
            stopped: self.stopped,
            epoch: usize::MAX,
        };
        Ok(run.build_stretch(self.file.log()?, &before)?)
    }

    fn opened(&self, position: usize, activation: usize) -> Result<Option<Standing>, StretchError> {
        let Some(number) = self.snapshot_before(position)? else {
            return Ok(None);
        };
        let (snapshot, opened) = self.snapshots.snapshot(number)?;
        let found = opened.get(activation).zip(snapshot.frames.get(activation));
        Ok(found.map(|(times, (_, call))| Standing {
            entered: times.entered,
            called: call.map(|_| times.called),
        }))
    }

    fn may_write(
        &self,
        position: usize,
        activation: usize,
        (function, variable): (FuncId, u32),
    ) -> Result<bool, StretchError> {
        let (_, inside) = self.summaries(position)?;
        let nodes = self.path.nodes();
        let counts = inside.iter().flat_map(|summary| &summary.node_counts);
        for &(node, _) in counts {
            let own = nodes
                .get(node)
                .is_some_and(|node| node.function == function);
            if own && self.writes(node, variable)? {
                return Ok(true);
            }
        }
        // The call that it waited for at first may have given it.
        let Some(number) = self.snapshot_before(position)? else {
            return Ok(false);
        };
        let (snapshot, _) = self.snapshots.snapshot(number)?;
        let Some(&(of, Some(block))) = snapshot.frames.get(activation) else {
            return Ok(false);
        };
        for (id, node) in nodes {
            if node.function == of
                && node.blocks.last() == Some(&block)
                && self.writes(id, variable)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn knows_lines(&self) -> bool {
        self.lines.get().is_some()
    }

    fn written_before(&self, position: usize, place: Place) -> Result<Option<usize>, StretchError> {
        let global = match (place, self.lines.get()) {
            (Place::Global(global), _) => global,
            (Place::Byte { .. }, None) => return Ok(position.checked_sub(1)),
            (Place::Byte { memory, address }, Some(lines)) => {
                let (earlier, _) = self.summaries(position)?;
                let found = lines.last_before(earlier.len(), memory, address, 1)?;
                let Some(found) = found else { return Ok(None) };
                let found = earlier.get(found);
                let found = found.ok_or(Damaged("one that writes is missing"))?;
                let after = self
                    .before
                    .partition_point(|&before| before <= found.before);
                return Ok(after.checked_sub(1));
            }
        };
        let writers = self.writers().get(global as usize);
        let writers = writers.ok_or(Damaged("a global that is not there"))?;
        for earlier in (0..position).rev() {
            let (_, inside) = self.summaries(earlier)?;
            let mut nodes = inside.iter().flat_map(|summary| &summary.node_counts);
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
}
