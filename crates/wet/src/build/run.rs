//! Following a whole run, on one thread, while another codes what was collected.

use std::ops::RangeInclusive;
use std::sync::mpsc::sync_channel;

use afterimage_ids::EntityRef;
use afterimage_machine::{Machine, MachineError, StoppedBefore};
use afterimage_program::Program;
use afterimage_trace::LogReader;
use afterimage_wpp::{Continuation, PathError, Segments, WholePath};

use super::{Buffers, Builder};
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
        mut write: impl FnMut(u64, Vec<u8>) -> Result<(), W> + Send,
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
        std::thread::scope(|scope| {
            // An epoch waits while another one is coded.
            let (epochs, queue) = sync_channel::<(u64, Buffers)>(1);
            let coder = scope.spawn(move || {
                for (before, buffers) in queue {
                    let bytes = writer.encode(buffers);
                    write(before, bytes)?;
                }
                Ok::<_, W>(writer.sizes)
            });
            let first = *self.window.start();
            let (mut before, mut begun, mut sent) = (0, first <= 1, false);
            let mut cursor = self.path.cursor();
            let followed = loop {
                let visit = match cursor.next() {
                    Ok(Some(visit)) => visit,
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(BuildError::Path(error)),
                };
                let length = lengths[visit.node.index()];
                if visit.start > *self.window.end() {
                    break Ok(());
                }
                if !begun && visit.last() >= first {
                    builder.begin();
                    before = visit.start - 1;
                    begun = true;
                }
                let stepped = match self.stopped {
                    Some(stopped) if visit.last() == self.path.length() => {
                        machine.step_before(visit.node, length, stopped, &mut builder)
                    }
                    _ => machine.step(visit.node, length, &mut builder),
                };
                if let Err(error) = stepped {
                    break Err(error.into());
                }
                if builder.size() < self.epoch {
                    continue;
                }
                if begun {
                    if epochs.send((before, builder.take())).is_err() {
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
                let _ = epochs.send((before, builder.take()));
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
