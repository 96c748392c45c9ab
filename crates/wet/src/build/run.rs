//! Following a whole run, on one thread, while another codes what was collected.

use std::ops::RangeInclusive;
use std::sync::mpsc::sync_channel;

use afterimage_ids::{EntityRef, NodeId};
use afterimage_machine::{Machine, MachineError, Observer, StoppedBefore};
use afterimage_program::Program;
use afterimage_trace::LogReader;
use afterimage_wpp::{Continuation, PathError, Segments, WholePath};

use super::{Buffers, Builder};
use crate::checkpoint::{Recorder, Vertex};
use crate::epoch::Writer;
use crate::index::{Index, fingerprint};

/// Why a whole execution trace cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError<P: std::error::Error + 'static, W> {
    /// The run cannot be followed.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The path cannot be read.
    #[error(transparent)]
    Path(PathError<P>),
    /// Parts of the path were left out when it was built.
    #[error(
        "parts of the path were left out when it was built: a whole execution trace needs all of it"
    )]
    Partial,
    /// The numbers of a definition are too small.
    #[error(
        "the program has too many writes, or one is executed too often, for a whole execution trace"
    )]
    Overflow,
    /// An epoch cannot be written.
    #[error("an epoch cannot be written")]
    Write(W),
}

/// Checkpoints are written when they have so many bytes.
const WAITING: usize = 4 << 20;

/// What the coding thread does.
enum Work {
    /// An epoch is coded, before which so many blocks were executed.
    Epoch(u64, Buffers),
    /// Checkpoints are written.
    Vertices(Vec<Vertex>),
}

/// Executes a node.
#[inline(always)]
fn step<O: Observer>(
    machine: &mut Machine<'_>,
    (node, length, stopped): (NodeId, u64, Option<StoppedBefore>),
    observer: &mut O,
) -> Result<(), MachineError> {
    match stopped {
        None => machine.step(node, length, observer),
        Some(stopped) => machine.step_before(node, length, stopped, observer),
    }
}

/// What is to be traced.
pub struct Run<'a, S: Segments> {
    /// The program.
    pub program: &'a Program,
    /// The module that it was parsed from.
    pub bytes: &'a [u8],
    /// Its path.
    pub path: &'a WholePath<S>,
    /// Where its nodes go on.
    pub continuations: &'a [Continuation],
    /// Which blocks are traced: the first one, and the last one. A node of which any block is wanted is traced whole. What is computed from
    /// values of before is kept, so that the window can be read without what is outside of it.
    pub window: RangeInclusive<u64>,
    /// Where the run was stopped from outside, if it was ([`stopped_before`](afterimage_machine::stopped_before)).
    pub stopped: Option<StoppedBefore>,
    /// How many numbers an epoch collects, about: usually [`EPOCH`](Self::EPOCH).
    pub epoch: usize,
}

impl<S: Segments> Run<'_, S> {
    /// The usual size of an epoch.
    pub const EPOCH: usize = 8 << 20;
}

impl<S: Segments> Run<'_, S>
where
    S::Error: std::error::Error + 'static,
{
    /// Follows the run and gives its epochs to `write`, in order: how many blocks were executed before each, and its coded form. `progress` is told
    /// now and then how many blocks were executed.
    ///
    /// Time is linear in the instructions executed, memory in the memory of the guest and the code of its nodes.
    ///
    /// # Errors
    /// If the path or the log is damaged or not of this program, or `write` fails.
    pub fn build<W: Send>(
        &self,
        log: LogReader,
        write: impl FnMut(u64, Vec<u8>) -> Result<(), W> + Send,
        progress: impl FnMut(u64),
    ) -> Result<Index, BuildError<S::Error, W>> {
        let nobody = None::<(u64, fn(&Vertex) -> Result<(), W>)>;
        self.follow(log, write, nobody, progress)
    }

    /// As [`build`](Self::build), and gives to `record` what [`checkpoint`](crate::checkpoint) is about: of a window, what ends in it. An interval
    /// has about so many instructions: usually [`INTERVAL`](crate::checkpoint::INTERVAL).
    ///
    /// # Errors
    /// As [`build`](Self::build), or if `record` fails.
    pub fn build_with_checkpoints<W: Send>(
        &self,
        log: LogReader,
        write: impl FnMut(u64, Vec<u8>) -> Result<(), W> + Send,
        (interval, record): (u64, impl FnMut(&Vertex) -> Result<(), W> + Send),
        progress: impl FnMut(u64),
    ) -> Result<Index, BuildError<S::Error, W>> {
        self.follow(log, write, Some((interval, record)), progress)
    }

    fn follow<W: Send>(
        &self,
        log: LogReader,
        mut write: impl FnMut(u64, Vec<u8>) -> Result<(), W> + Send,
        record: Option<(u64, impl FnMut(&Vertex) -> Result<(), W> + Send)>,
        mut progress: impl FnMut(u64),
    ) -> Result<Index, BuildError<S::Error, W>> {
        let nodes = self.path.nodes();
        if nodes.values().any(|node| node.left_out > 0) {
            return Err(BuildError::Partial);
        }
        let mut machine = Machine::new(self.program, self.bytes, log)?;
        for (node, continuation) in nodes.values().zip(self.continuations) {
            machine.define(node.function, &node.blocks, continuation.next)?;
        }
        let lengths = Vec::from_iter(nodes.values().map(|node| node.length()));
        let (memories, globals) = (machine.state.memories.len(), machine.state.globals.len());
        let mut builder = Builder::new(self.program, machine.codes(), memories, globals);
        let mut writer = Writer::new(builder.numbers());
        let (interval, mut record) = record.unzip();
        let mut recorder = interval.map(Recorder::new);
        std::thread::scope(|scope| {
            // An epoch waits while another one is coded.
            let (epochs, queue) = sync_channel::<Work>(1);
            let coder = scope.spawn(move || {
                for work in queue {
                    match work {
                        Work::Epoch(before, buffers) => {
                            let bytes = writer.encode(buffers);
                            write(before, bytes)?;
                        }
                        Work::Vertices(vertices) => {
                            if let Some(record) = &mut record {
                                vertices.iter().try_for_each(record)?;
                            }
                        }
                    }
                }
                Ok::<_, W>(writer.sizes)
            });
            let first = *self.window.start();
            let (mut before, mut begun, mut sent) = (0, first <= 1, false);
            let mut cursor = self.path.cursor();
            let followed = loop {
                let visit = match cursor.next() {
                    Ok(Some(visit)) => visit,
                    Ok(None) => {
                        if let Some(recorder) = &mut recorder {
                            recorder.end(&machine);
                        }
                        break Ok(());
                    }
                    Err(error) => break Err(BuildError::Path(error)),
                };
                let length = lengths[visit.node.index()];
                if visit.start > *self.window.end() {
                    break Ok(());
                }
                if !begun && visit.last() >= first {
                    // What was completed before belongs to the windows before.
                    recorder.as_mut().map(Recorder::take);
                    builder.begin();
                    before = visit.start - 1;
                    begun = true;
                }
                let last = visit.last() == self.path.length();
                let stopped = self.stopped.filter(|_| last);
                let node = (visit.node, length, stopped);
                let stepped = match &mut recorder {
                    None => step(&mut machine, node, &mut builder),
                    Some(recorder) => {
                        let both = &mut (&mut builder, &mut *recorder);
                        let stepped = step(&mut machine, node, both);
                        recorder.executed(&machine);
                        stepped
                    }
                };
                if let Err(error) = stepped {
                    break Err(error.into());
                }
                if let Some(recorder) = &mut recorder
                    && recorder.waiting() > WAITING
                {
                    let vertices = recorder.take();
                    if begun && epochs.send(Work::Vertices(vertices)).is_err() {
                        break Ok(());
                    }
                }
                if builder.size() < self.epoch {
                    continue;
                }
                if begun {
                    if epochs.send(Work::Epoch(before, builder.take())).is_err() {
                        // The coder has failed, which is told below.
                        break Ok(());
                    }
                    before = machine.time();
                    sent = true;
                    progress(before);
                } else {
                    builder.take();
                }
            };
            // What needs no numbers can be asked for, too.
            if begun && (builder.size() > 0 || !sent) {
                let _ = epochs.send(Work::Epoch(before, builder.take()));
            }
            if let Some(recorder) = &mut recorder
                && begun
            {
                let _ = epochs.send(Work::Vertices(recorder.take()));
            }
            drop(epochs);
            let sizes = match coder.join() {
                Ok(sizes) => sizes,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            followed?;
            if builder.overflow {
                return Err(BuildError::Overflow);
            }
            Ok(Index {
                nodes: fingerprint(nodes, self.continuations),
                anew: true,
                first,
                epochs: Vec::new(),
                length: machine.time(),
                statements: builder.statements,
                sizes: sizes.map_err(BuildError::Write)?,
            })
        })
    }
}
