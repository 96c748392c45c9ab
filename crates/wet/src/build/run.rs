//! Follows a whole run on one thread, while a second thread finds the writers and a third thread
//! encodes the result.

use std::convert::Infallible;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use afterimage_ids::{EntityRef, NodeId};
use afterimage_machine::{
    Machine, MachineError, Observer, SnapshotError, Snapshots, StoppedBefore,
};
use afterimage_program::Program;
use afterimage_trace::LogReader;
use afterimage_wpp::{Continuation, Cursor, PathError, Segments, WholePath};

use super::tape::Tape;
use super::{Buffers, Builder, LastWriters, Resumed};
use crate::checkpoint::{Intervals, Recorder, Vertex, Vertices};
use crate::epoch::Writer;
use crate::index::{Index, LeftOut, fingerprint};
use crate::printed::{Printed, Printing};
use crate::trace::HostCalls;

/// The reason why a whole execution trace cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError<P: std::error::Error + 'static, W> {
    /// The run cannot be followed.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The path cannot be read.
    #[error(transparent)]
    Path(PathError<P>),
    /// The path leaves out parts of the run.
    #[error(
        "parts of the path were left out when it was built, but a whole execution trace needs \
         all of it"
    )]
    Partial,
    /// The number of writes, or of executions of a write, is too large.
    #[error(
        "the program has too many writes, or one is executed too often, for a whole execution trace"
    )]
    Overflow,
    /// The run cannot continue from a snapshot.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The result cannot be written.
    #[error("writing the values failed: {0}")]
    Write(W),
}

/// The number of words at which a tape is passed on. A tape of this size roughly fits into a
/// processor core's own cache.
const TAPE: usize = 1 << 15;
/// The number of tapes that may wait to be read.
const TAPES: usize = 8;
/// The maximum count of numbers in an epoch with a prescribed end, which is 16 times the usual
/// count.
const LARGEST: usize = 64 << 20;

/// A message from the thread that follows the run to the thread that builds.
enum Message {
    /// Executions of whole nodes.
    Tape(Vec<u64>),
    /// The beginning of the window, after this many blocks.
    Begin(u64),
    /// Completed groups of intervals.
    Groups(Vec<Intervals>),
    /// The last groups, and whether the run ends with them.
    Last(Vec<Intervals>, bool),
}

/// A task for the coding thread.
enum Work {
    /// Encode an epoch, which begins after this many blocks.
    Epoch(u64, Buffers),
    /// The beginning of the window. Groups completed before it are not passed on.
    Begin,
    /// Encode groups of intervals.
    Groups(Vec<Intervals>),
    /// The end of the tasks, and whether the run has ended.
    End(bool),
}

/// Executes a node, up to its end or the end of the run.
#[inline(never)]
fn execute(
    machine: &mut Machine<'_>,
    (node, length, stopped): (NodeId, u64, Option<StoppedBefore>),
    tape: &mut Tape,
    recorder: &mut Option<(Recorder, Printing<'_>)>,
) -> Result<(), MachineError> {
    match recorder {
        None => step(machine, (node, length, stopped), tape),
        Some((recorder, printing)) => {
            let others = &mut (&mut *recorder, printing);
            step(machine, (node, length, stopped), &mut (tape, others))?;
            recorder.executed(machine);
            Ok(())
        }
    }
}

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

/// Builds the trace from the messages.
struct Reader<'a> {
    builder: Builder<'a>,
    /// The approximate count of numbers in an epoch.
    most: usize,
    /// If the ends of epochs are prescribed, the number of blocks executed before each epoch except
    /// the first, in order.
    cuts: Option<std::slice::Iter<'a, u64>>,
    work: SyncSender<Work>,
    /// Buffers that have been coded and can be filled again.
    empty: Receiver<Buffers>,
    /// The number of blocks executed before the current epoch.
    before: u64,
    /// Whether the window has begun.
    begun: bool,
    /// Whether an epoch has been sent.
    sent: bool,
}

impl<'a> Reader<'a> {
    /// Builds until there are no more messages, or the coder fails. Sends tapes back after reading
    /// them.
    fn all(mut self, told: Receiver<Message>, read: &Sender<Vec<u64>>) -> Builder<'a> {
        let mut last = (Vec::new(), false);
        for told in told {
            let going = match told {
                Message::Tape(tape) => {
                    let going = self.tape(&tape);
                    // The thread that follows the run may have ended.
                    let _ = read.send(tape);
                    going
                }
                Message::Begin(before) => {
                    self.builder.begin();
                    (self.before, self.begun) = (before, true);
                    self.work.send(Work::Begin).is_ok()
                }
                Message::Groups(groups) => self.work.send(Work::Groups(groups)).is_ok(),
                Message::Last(groups, ended) => {
                    last = (groups, ended);
                    true
                }
            };
            if !going {
                return self.builder;
            }
        }
        // A window needs an epoch even without stored data, because its computed values can be
        // queried.
        if self.begun && (self.builder.size() > 0 || !self.sent) {
            self.epoch();
        }
        let (groups, ended) = last;
        let _ = self.work.send(Work::Groups(groups));
        let _ = self.work.send(Work::End(ended));
        self.builder
    }

    fn tape(&mut self, tape: &[u64]) -> bool {
        let mut at = 0;
        loop {
            let limits = self.limits();
            at = self.builder.read(tape, at, limits);
            if at >= tape.len() {
                return true;
            }
            if !self.epoch() {
                return false;
            }
        }
    }

    /// Returns the maximum count of numbers in the current epoch, and the time at which it ends.
    fn limits(&mut self) -> (usize, u64) {
        // A cut at the end of a tape takes effect at the beginning of the next tape.
        let before = self.before;
        match &mut self.cuts {
            Some(cuts) if self.begun => {
                while cuts.as_slice().first().is_some_and(|&cut| cut <= before) {
                    cuts.next();
                }
                let next = cuts.as_slice().first().copied();
                (LARGEST.max(self.most), next.unwrap_or(u64::MAX))
            }
            _ => (self.most, u64::MAX),
        }
    }

    /// Ends the epoch. Returns `false` if the coding thread has failed.
    fn epoch(&mut self) -> bool {
        let empty = self.empty.try_recv().unwrap_or_default();
        let buffers = self.builder.take(empty);
        if !self.begun {
            return true;
        }
        let before = std::mem::replace(&mut self.before, self.builder.time);
        self.sent = true;
        self.work.send(Work::Epoch(before, buffers)).is_ok()
    }
}

/// A run, and the part of it to trace.
pub struct Run<'a, S: Segments> {
    /// The program that was run.
    pub program: &'a Program,
    /// The bytes of the module from which the program was parsed.
    pub bytes: &'a [u8],
    /// The path of the run.
    pub path: &'a WholePath<S>,
    /// The continuations of the path's nodes.
    pub continuations: &'a [Continuation],
    /// The first and the last traced block. If any of a node's blocks is in this range, the whole
    /// node is traced. Values that depend on earlier values are stored, so that the window can be
    /// read without the rest of the run.
    pub window: RangeInclusive<u64>,
    /// The functions to leave out. Their reads and computations are not stored, except values that
    /// other functions use.
    pub left_out: &'a LeftOut,
    /// The place where the run was stopped from outside, if it was stopped
    /// ([`stopped_before`](afterimage_machine::stopped_before)).
    pub stopped: Option<StoppedBefore>,
    /// The approximate count of numbers in an epoch, usually [`EPOCH`](Self::EPOCH).
    pub epoch: usize,
}

/// The starting point of a stretch that is built alone.
pub struct Before<'a> {
    /// The last snapshot before the stretch, with its number, or `None` if there is none.
    pub snapshot: Option<(&'a Snapshots, usize)>,
    /// The nodes executed from the snapshot to the stretch's end.
    pub nodes: &'a [NodeId],
    /// The number of executions of each node before the stretch.
    pub counts: &'a [(NodeId, u64)],
    /// The host's actions in the whole run.
    pub host: &'a HostCalls,
}

/// Receives a build's products other than epochs.
pub struct Sinks<V, P> {
    /// The number of instructions per interval.
    pub interval: u64,
    /// Receives the vertices that end in the window.
    pub vertices: V,
    /// Receives the program's output from the beginning of the run on, regardless of the window.
    pub printed: P,
}

/// The type of [`Sinks`] without receivers.
type NoSinks<W> = Sinks<fn(&Vertex) -> Result<(), W>, fn(&Printed<'_>) -> Result<(), W>>;

/// Receives a build's progress, and can stop the build.
pub struct Watch<'w, P> {
    /// Receives the time that the build has reached.
    pub progress: P,
    /// Ends the build when set.
    pub stop: &'w AtomicBool,
}

/// The state from which the threads continue at a moment of the run.
struct Begun<'a, 'p, S: Segments> {
    machine: Machine<'a>,
    builder: Builder<'a>,
    cursor: Cursor<'p, S>,
}

impl<S: Segments> Run<'_, S> {
    /// The usual count of numbers in an epoch.
    pub const EPOCH: usize = 4 << 20;
}

impl<S: Segments + Sync> Run<'_, S>
where
    S::Error: std::error::Error + 'static,
{
    /// Follows the run and passes its epochs to `write`, in order. Each epoch comes in coded form,
    /// with the number of blocks executed before it. `progress` receives the number of executed
    /// blocks from time to time.
    ///
    /// If a recording was cut off so that its log ends before its path, the window ends with the
    /// log (see [`Index::length`]).
    ///
    /// Takes time linear in the executed instructions, and memory linear in the guest's memory and
    /// the code of the path's nodes.
    ///
    /// # Errors
    /// Returns an error if the path or the log is damaged or belongs to another program, or if the
    /// path leaves out parts of the run. Also returns an error if a number is too large
    /// ([`BuildError::Overflow`]), or if `write` fails.
    pub fn build<W: Send>(
        &self,
        log: LogReader,
        write: impl FnMut(u64, Vec<u8>) -> Result<(), W> + Send,
        progress: impl FnMut(u64),
    ) -> Result<Index, BuildError<S::Error, W>> {
        let stop = &AtomicBool::new(false);
        let watch = Watch { progress, stop };
        self.follow(log, None, write, None::<NoSinks<W>>, watch)
    }

    /// Works like [`build`](Self::build), but also passes on the vertices that
    /// [`checkpoint`](crate::checkpoint) describes. For a window, these are the vertices that end
    /// in the window. An interval has about `interval` instructions, usually
    /// [`INTERVAL`](crate::checkpoint::INTERVAL).
    ///
    /// # Errors
    /// Returns the errors of [`build`](Self::build), or an error if `record` fails.
    pub fn build_with_checkpoints<W: Send>(
        &self,
        log: LogReader,
        write: impl FnMut(u64, Vec<u8>) -> Result<(), W> + Send,
        (interval, record): (u64, impl FnMut(&Vertex) -> Result<(), W> + Send),
        progress: impl FnMut(u64),
    ) -> Result<Index, BuildError<S::Error, W>> {
        let sinks = Sinks {
            interval,
            vertices: record,
            printed: |_: &Printed<'_>| Ok(()),
        };
        let stop = &AtomicBool::new(false);
        self.build_until(log, write, sinks, Watch { progress, stop })
    }

    /// Works like [`build_with_checkpoints`](Self::build_with_checkpoints), but divides the run
    /// into the same epochs as `index`, regardless of their intended size.
    ///
    /// # Errors
    /// Returns the errors of [`build_with_checkpoints`](Self::build_with_checkpoints).
    pub fn build_as<W: Send>(
        &self,
        index: &Index,
        log: LogReader,
        write: impl FnMut(u64, Vec<u8>) -> Result<(), W> + Send,
        (interval, record): (u64, impl FnMut(&Vertex) -> Result<(), W> + Send),
        progress: impl FnMut(u64),
    ) -> Result<Index, BuildError<S::Error, W>> {
        let cuts = index.epochs.iter().skip(1);
        let cuts = Vec::from_iter(cuts.map(|&(before, _)| before));
        let sinks = Sinks {
            interval,
            vertices: record,
            printed: |_: &Printed<'_>| Ok(()),
        };
        let stop = &AtomicBool::new(false);
        let watch = Watch { progress, stop };
        self.follow(log, Some(&cuts), write, Some(sinks), watch)
    }

    /// Works like [`build_with_checkpoints`](Self::build_with_checkpoints), but can be stopped. The
    /// window then ends with the current node, or has not begun (see [`Index::length`]). A window
    /// that begins with the next block supplies the missing part, with the same bytes.
    ///
    /// # Errors
    /// Returns the errors of [`build_with_checkpoints`](Self::build_with_checkpoints).
    pub fn build_until<W: Send>(
        &self,
        log: LogReader,
        write: impl FnMut(u64, Vec<u8>) -> Result<(), W> + Send,
        sinks: Sinks<
            impl FnMut(&Vertex) -> Result<(), W> + Send,
            impl FnMut(&Printed<'_>) -> Result<(), W>,
        >,
        watch: Watch<'_, impl FnMut(u64)>,
    ) -> Result<Index, BuildError<S::Error, W>> {
        self.follow(log, None, write, Some(sinks), watch)
    }

    /// Follows the run up to the end of the window, as [`build`](Self::build) does, and discards
    /// the results. With an interval length, follows it as
    /// [`build_with_checkpoints`](Self::build_with_checkpoints) does. Returns the number of
    /// executed blocks. A build takes at least as long as this call on any number of processors,
    /// because only one thread can follow the run.
    ///
    /// # Errors
    /// Returns an error if the path or the log is damaged or belongs to another program.
    pub fn follow_alone(
        &self,
        log: LogReader,
        interval: Option<u64>,
    ) -> Result<u64, BuildError<S::Error, Infallible>> {
        let mut machine = self.machine(log)?;
        let mut recorder = interval.map(|interval| self.recorders(interval));
        let mut tape = Tape::default();
        let mut empty = Vec::new();
        let mut cursor = self.path.cursor();
        while let Some(visit) = cursor.next().map_err(BuildError::Path)? {
            if visit.start > *self.window.end() {
                break;
            }
            let last = visit.last() == self.path.length();
            let node = (visit.node, visit.length, self.stopped.filter(|_| last));
            execute(&mut machine, node, &mut tape, &mut recorder)?;
            if tape.len() >= TAPE {
                empty = tape.take(empty);
                drop(recorder.as_mut().map(|(recorder, _)| recorder.take()));
            }
        }
        Ok(machine.time())
    }

    /// Returns a machine at the beginning of the run, with all nodes of the path. Also opens the
    /// path's first segment.
    fn machine(&self, log: LogReader) -> Result<Machine<'_>, MachineError> {
        let mut machine = Machine::new(self.program, self.bytes, log)?;
        let nodes = self.path.nodes().values().zip(self.continuations);
        let nodes = nodes.map(|(node, on)| (node.function, &node.blocks[..], on.next));
        let nodes = Vec::from_iter(nodes);
        std::thread::scope(|scope| {
            // Decoding the segment takes about as long as compiling the nodes. If it fails, it
            // fails again in the thread that follows the run.
            scope.spawn(|| self.path.cursor().next().map(drop).ok());
            machine.define_all(&nodes)
        })?;
        Ok(machine)
    }

    /// Creates the observers of the run besides the tape.
    fn recorders(&self, interval: u64) -> (Recorder, Printing<'_>) {
        (Recorder::new(interval), Printing::new(self.program))
    }

    fn follow<W: Send>(
        &self,
        log: LogReader,
        cuts: Option<&[u64]>,
        write: impl FnMut(u64, Vec<u8>) -> Result<(), W> + Send,
        sinks: Option<
            Sinks<
                impl FnMut(&Vertex) -> Result<(), W> + Send,
                impl FnMut(&Printed<'_>) -> Result<(), W>,
            >,
        >,
        watch: Watch<'_, impl FnMut(u64)>,
    ) -> Result<Index, BuildError<S::Error, W>> {
        if self.path.nodes().values().any(|node| node.left_out > 0) {
            return Err(BuildError::Partial);
        }
        let machine = self.machine(log)?;
        let builder = self.builder(&machine);
        let cursor = self.path.cursor();
        let begun = Begun {
            machine,
            builder,
            cursor,
        };
        let followed = self.follow_on(begun, cuts, write, sinks, watch);
        followed.map(|(index, _)| index)
    }

    /// Returns a builder for the actions of a machine.
    fn builder(&self, machine: &Machine<'_>) -> Builder<'_> {
        let (memories, globals) = (machine.state.memories.len(), machine.state.globals.len());
        let codes = machine.codes();
        let lengths = self.path.nodes().values().map(|node| node.length());
        // A machine that was restored to a snapshot has additional nodes of one block each.
        let lengths = Vec::from_iter(lengths.chain(std::iter::repeat(1)).take(codes.len()));
        let mut builder = Builder::new(self.program, codes, &lengths, memories, globals);
        if !self.left_out.is_nothing() {
            builder.leave_out(codes, |function| self.left_out.has(function));
        }
        builder
    }

    /// Builds a single stretch, which is the [window](Self::window). The run is followed from a
    /// snapshot, or from the start, to the stretch's beginning. The stretch is one epoch. Data that
    /// was written before the stretch has the origin `Before`, or `Initial` if the stretch begins
    /// the run. Returns the epoch in coded form, and the last writers in the stretch.
    ///
    /// # Errors
    /// Returns an error if the path, the snapshots or the log are damaged or belong to another
    /// program. Also returns an error if the stretch does not begin with a node, or is too large
    /// for one epoch.
    pub fn build_stretch(
        &self,
        log: LogReader,
        before: &Before<'_>,
    ) -> Result<(Vec<u8>, LastWriters), BuildError<S::Error, Infallible>> {
        let mut machine = Machine::new(self.program, self.bytes, log)?;
        let nodes = self.path.nodes();
        machine.expect(nodes.len());
        for &node in before.nodes {
            let unknown = MachineError::Unsupported("a node that is not in the path");
            let known = nodes.get(node).zip(self.continuations.get(node.index()));
            let (known, on) = known.ok_or(unknown)?;
            machine.compile(node, known.function, &known.blocks, on.next)?;
        }
        if let Some((snapshots, number)) = before.snapshot {
            snapshots.restore(&mut machine, number)?;
        }
        let inside = || BuildError::from(SnapshotError::Damaged("a snapshot is inside a node"));
        let mut cursor = self.path.cursor();
        let begins = match cursor.seek(machine.time()).map_err(BuildError::Path)? {
            Some(visit) => visit.last() == machine.time(),
            None => machine.time() == 0,
        };
        if !begins {
            return Err(inside());
        }
        let first = *self.window.start();
        self.path.read_ahead(machine.time() + 1, first, || {
            while machine.time() + 1 < first {
                let visit = cursor.next().map_err(BuildError::Path)?;
                let visit = visit.ok_or_else(inside)?;
                machine.step(visit.node, visit.length, &mut ())?;
            }
            Ok::<_, BuildError<S::Error, Infallible>>(())
        })?;
        let time = machine.time();
        if time + 1 != first {
            return Err(inside());
        }
        let (mut arguments, mut host_calls) = (0, 0);
        if time > 0 {
            let stands = machine.snapshot()?.ok_or(MachineError::Checkpoint)?;
            arguments = stands.arguments.len();
            let calls = before.host.among(stands.log.events);
            host_calls = calls.map_err(MachineError::Log)?;
        }
        let mut open = Vec::new();
        for (function, node) in Vec::from_iter(machine.activations()) {
            open.push((node, machine.variables_of(function)?));
        }
        let mut builder = self.builder(&machine);
        if time > 0 {
            builder.resume(Resumed {
                counts: before.counts,
                open,
                arguments,
                host_calls,
                time,
            });
        }
        let begun = Begun {
            machine,
            builder,
            cursor,
        };
        let mut bytes = Vec::new();
        let write = |_, epoch: Vec<u8>| {
            bytes.push(epoch);
            Ok::<_, Infallible>(())
        };
        let never = AtomicBool::new(false);
        let watch = Watch {
            progress: |_| {},
            stop: &never,
        };
        let (_, builder) =
            self.follow_on(begun, Some(&[]), write, None::<NoSinks<Infallible>>, watch)?;
        match <[_; 1]>::try_from(bytes) {
            Ok([bytes]) => Ok((bytes, builder.writers())),
            Err(_) => Err(BuildError::Overflow),
        }
    }

    fn follow_on<'b, W: Send>(
        &self,
        begun: Begun<'b, '_, S>,
        cuts: Option<&'b [u64]>,
        mut write: impl FnMut(u64, Vec<u8>) -> Result<(), W> + Send,
        sinks: Option<
            Sinks<
                impl FnMut(&Vertex) -> Result<(), W> + Send,
                impl FnMut(&Printed<'_>) -> Result<(), W>,
            >,
        >,
        watch: Watch<'_, impl FnMut(u64)>,
    ) -> Result<(Index, Builder<'b>), BuildError<S::Error, W>> {
        let Begun {
            mut machine,
            builder,
            mut cursor,
        } = begun;
        let nodes = self.path.nodes();
        let lengths = Vec::from_iter(nodes.values().map(|node| node.length()));
        let time = machine.time();
        let mut writer = Writer::new(builder.numbers());
        let mut recorder = sinks.as_ref().map(|sinks| self.recorders(sinks.interval));
        let (mut record, mut print) = sinks.map(|sinks| (sinks.vertices, sinks.printed)).unzip();
        let Watch { mut progress, stop } = watch;
        let first = *self.window.start();
        std::thread::scope(|scope| {
            let (tell, told) = sync_channel::<Message>(TAPES);
            let (give, tapes) = channel::<Vec<u64>>();
            // One epoch is collected while another is coded. A third epoch would only take memory.
            let (work, queue) = sync_channel::<Work>(0);
            let (recycle, empty) = channel::<Buffers>();
            let coder = scope.spawn(move || {
                let mut vertices = Vertices::default();
                let mut begun = first <= time + 1;
                let mut put = |made: Vec<Vertex>, begun: bool| match &mut record {
                    Some(record) if begun => made.iter().try_for_each(record),
                    _ => Ok(()),
                };
                for work in queue {
                    match work {
                        Work::Epoch(before, mut buffers) => {
                            let bytes = writer.encode(&mut buffers);
                            // At the end, no thread waits for the buffers.
                            let _ = recycle.send(buffers.emptied());
                            write(before, bytes)?;
                        }
                        Work::Begin => begun = true,
                        Work::Groups(groups) => {
                            for group in groups {
                                put(vertices.group(group), begun)?;
                            }
                        }
                        Work::End(true) => put(vertices.end(), begun)?,
                        Work::End(false) => {}
                    }
                }
                Ok::<_, W>(writer.sizes)
            });
            let reader = Reader {
                builder,
                most: self.epoch,
                cuts: cuts.map(<[u64]>::iter),
                work,
                empty,
                before: time,
                begun: first <= time + 1,
                sent: false,
            };
            let reader = scope.spawn(move || reader.all(told, &give));
            let mut tape = Tape::default();
            let mut begun = first <= time + 1;
            let mut ended = false;
            // Passes the tape on. Returns whether the receiver still exists.
            let hand_on = |tape: &mut Tape| {
                let empty = tapes.try_recv().unwrap_or_default();
                tell.send(Message::Tape(tape.take(empty))).is_ok()
            };
            let followed = loop {
                let visit = match cursor.next() {
                    Ok(Some(visit)) => visit,
                    Ok(None) => {
                        if let Some((recorder, _)) = &mut recorder {
                            recorder.end(&machine);
                        }
                        ended = true;
                        break Ok(());
                    }
                    Err(error) => break Err(BuildError::Path(error)),
                };
                let length = lengths[visit.node.index()];
                if visit.start > *self.window.end() || stop.load(Ordering::Relaxed) {
                    break Ok(());
                }
                if !begun && visit.last() >= first {
                    begun = true;
                    // The builder ends before this thread only if the coder fails, which is
                    // reported below.
                    if !hand_on(&mut tape) || tell.send(Message::Begin(visit.start - 1)).is_err() {
                        break Ok(());
                    }
                }
                let last = visit.last() == self.path.length();
                let stopped = self.stopped.filter(|_| last);
                let node = (visit.node, length, stopped);
                match execute(&mut machine, node, &mut tape, &mut recorder) {
                    Ok(()) => {}
                    // No part of the node was executed. The trace before the node is exact.
                    Err(MachineError::LogEnds { time }) if begun && time >= first => {
                        if let Some((recorder, _)) = &mut recorder {
                            recorder.end(&machine);
                        }
                        ended = true;
                        break Ok(());
                    }
                    Err(error) => {
                        tape.forget();
                        break Err(error.into());
                    }
                }
                if let Some((_, printing)) = &mut recorder
                    && let Some(printed) = printing.executed(machine.time())
                    && let Some(print) = &mut print
                    && let Err(error) = print(&printed)
                {
                    break Err(BuildError::Write(error));
                }
                if let Some((recorder, _)) = &mut recorder
                    && recorder.is_waiting()
                {
                    let groups = recorder.take();
                    if !hand_on(&mut tape) || tell.send(Message::Groups(groups)).is_err() {
                        break Ok(());
                    }
                }
                if tape.len() >= TAPE {
                    if !hand_on(&mut tape) {
                        break Ok(());
                    }
                    progress(machine.time());
                }
            };
            hand_on(&mut tape);
            if let Some((recorder, _)) = &mut recorder {
                let _ = tell.send(Message::Last(recorder.take(), ended));
            }
            drop(tell);
            let builder = match reader.join() {
                Ok(builder) => builder,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            let sizes = match coder.join() {
                Ok(sizes) => sizes,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            followed?;
            if builder.overflow {
                return Err(BuildError::Overflow);
            }
            let index = Index {
                nodes: fingerprint(nodes, self.continuations),
                anew: true,
                first,
                epochs: Vec::new(),
                length: machine.time(),
                statements: builder.statements,
                left_out: self.left_out.clone(),
                sizes: sizes.map_err(BuildError::Write)?,
            };
            Ok((index, builder))
        })
    }
}
