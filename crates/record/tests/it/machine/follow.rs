//! Takes the machine along the stored path of a recording and compares it with the engine.

use std::collections::BTreeSet;
use std::sync::Arc;

use afterimage_ids::{FuncId, NodeId, OpId};
use afterimage_machine::{Machine, MachineError, NodeCode, Observer, State, Trap, stopped_before};
use afterimage_program::{OperatorIndex, Program};
use afterimage_testkit::naive_trace::{self, instrument};
use afterimage_trace::{Ending, Event, RawValue, TraceFile, TrapCode};
use afterimage_wpp::Directory;
use wasmparser::{ExternalKind, Parser, Payload, ValType};

use super::coverage::class;
use super::{captured, checkpoints, snapshots, stretches, written};
use crate::harness::Recording;
use crate::play::play;
use crate::stored::Stored;

/// A stored path, expanded.
pub struct Path {
    pub directory: Directory,
    /// The nodes, in execution order.
    pub visits: Vec<NodeId>,
}

impl Path {
    pub fn of(stored: &Stored) -> Self {
        let mut cursor = stored.path.cursor();
        let mut visits = Vec::new();
        while let Some(visit) = cursor.next().expect("a step") {
            visits.push(visit.node);
        }
        let directory = stored.directory.clone();
        let length: u64 = visits.iter().map(|&n| directory.nodes[n].length()).sum();
        assert_eq!(length, stored.path.length());
        Self { directory, visits }
    }

    pub fn length(&self, node: NodeId) -> u64 {
        let node = self.directory.nodes.get(node);
        node.map_or(1, |node| node.length())
    }

    /// Returns the time of the path's end.
    pub fn time(&self) -> u64 {
        self.visits.iter().map(|&node| self.length(node)).sum()
    }

    /// Defines all nodes in the machine.
    pub fn define(&self, machine: &mut Machine<'_>) -> Result<(), MachineError> {
        let nodes = self.directory.nodes.iter();
        for ((id, node), continuation) in nodes.zip(&self.directory.continuations) {
            let defined = machine.define(node.function, &node.blocks, continuation.next)?;
            assert_eq!(defined, id);
        }
        Ok(())
    }
}

/// Collects the kinds of instructions in completed nodes, and the kind of the instruction that
/// trapped.
#[derive(Default)]
struct Seen {
    kinds: BTreeSet<&'static str>,
    /// The operator before which the last node was stopped.
    stopped: Option<(FuncId, OpId)>,
    trapped: bool,
}

impl Observer for Seen {
    fn done(&mut self, code: &NodeCode, _: &[u64], _: &[u64]) {
        self.kinds
            .extend(code.insts.iter().map(|inst| class(inst.code)));
    }

    fn stopped(&mut self, code: &NodeCode, executed: usize, _: &[u64], _: &[u64]) {
        let inst = code.insts.get(executed);
        self.stopped = inst.map(|inst| (code.function, inst.op));
    }

    fn trapped(&mut self, _: usize) {
        self.trapped = true;
    }
}

/// The result of following a path.
pub struct Followed {
    pub state: State,
    pub trap: Option<Trap>,
    /// The operator that trapped; `None` if the trap was at the end of its node.
    pub trapped: Option<(FuncId, OpId)>,
    pub time: u64,
    pub seen: BTreeSet<&'static str>,
}

/// Takes the machine along a path, with the log of this file.
pub fn follow(
    file: &TraceFile,
    recording: &Recording,
    path: &Path,
) -> Result<Followed, MachineError> {
    let log = file.log().expect("a log");
    let mut machine = Machine::new(&recording.program, &recording.bytes, log)?;
    path.define(&mut machine)?;
    let mut seen = Seen::default();
    let (last, visits) = match path.visits.split_last() {
        Some((&last, visits)) => (Some(last), visits),
        None => (None, &[][..]),
    };
    for &node in visits {
        machine.step(node, path.length(node), &mut seen)?;
    }
    if let Some(last) = last {
        let end = &recording.recorded.end;
        match stopped_before(&recording.program, &recording.bytes, end) {
            Some(stopped) => machine.step_before(last, path.length(last), stopped, &mut seen)?,
            None => machine.step(last, path.length(last), &mut seen)?,
        }
    }
    Ok(Followed {
        trap: machine.trap(),
        time: machine.time(),
        seen: seen.kinds,
        trapped: seen.stopped.filter(|_| seen.trapped),
        state: machine.state,
    })
}

/// Follows a recording and compares it with the engine. Returns the kinds of executed instructions.
pub fn agree(recording: &Recording, stored: &Stored) -> BTreeSet<&'static str> {
    let path = Path::of(stored);
    let followed = follow(&recording.file, recording, &path)
        .unwrap_or_else(|error| panic!("{error}, {}", recording.ending()));
    assert_eq!(followed.time, path.time());
    checkpoints::go_on(recording, &path);
    snapshots::go_on(recording, &path);
    let (taken, folder) = captured::all(recording);
    if let Some(folder) = folder {
        stretches::agree(recording, &folder, stored);
        // Compiling code with watchpoints takes long.
        let watched = recording.bytes.len().is_multiple_of(3);
        written::agree(recording, &path, &folder, watched);
    }
    captured::agree(recording, &path, taken);
    assert!(
        fits(recording.ending(), followed.trap),
        "{} is not {:?}",
        recording.ending(),
        followed.trap
    );
    if let Some(trapped) = followed.trapped {
        let index = OperatorIndex::new(&recording.program, &recording.bytes);
        let frame = recording.recorded.end.frames.first();
        let recorded = frame.and_then(|frame| index.find(frame.offset));
        assert_eq!(recorded, Some(trapped), "{}", recording.ending());
    }
    if let Some(expected) = engine_state(recording, path.time()) {
        assert_eq!(
            shown(recording, &followed.state),
            expected,
            "{}",
            recording.ending()
        );
    }
    followed.seen
}

/// Whether the trap ended the run.
fn fits(ending: &Ending, trap: Option<Trap>) -> bool {
    use afterimage_numeric::Trap as Numeric;
    let Ending::Trapped { code, .. } = ending else {
        return trap.is_none();
    };
    let expected = match code {
        TrapCode::Unreachable => Trap::Unreachable,
        TrapCode::MemoryOutOfBounds => Trap::Memory,
        TrapCode::TableOutOfBounds => Trap::Table,
        TrapCode::IndirectCallToNull => Trap::CallOfNull,
        TrapCode::BadSignature => Trap::Signature,
        TrapCode::IntegerOverflow => Trap::Numeric(Numeric::IntegerOverflow),
        TrapCode::DivisionByZero => Trap::Numeric(Numeric::DivisionByZero),
        TrapCode::BadConversionToInteger => Trap::Numeric(Numeric::InvalidConversion),
        TrapCode::NullReference => Trap::NullReference,
        TrapCode::UnalignedAtomic => Trap::Unaligned,
        TrapCode::UnsharedWait => Trap::Wait,
        TrapCode::OutOfMemory | TrapCode::Other => return false,
    };
    trap == Some(expected)
}

/// Returns the engine's memories, tables and globals at the end. If something outside the guest
/// ended the run, a traced form of the module is stopped in the last block.
fn engine_state(recording: &Recording, blocks: u64) -> Option<Vec<(String, String)>> {
    let log = recording.file.log().expect("a log").last();
    let stopped_in_host = matches!(log, Some(Ok(Event::HostStop { .. })));
    let stop = match recording.ending() {
        _ if stopped_in_host => naive_trace::Stop::Never,
        Ending::StackOverflow => naive_trace::Stop::After(blocks),
        Ending::Interrupted { .. } => naive_trace::Stop::In(blocks),
        _ => naive_trace::Stop::Never,
    };
    if stop == naive_trace::Stop::Never {
        let (played, _) = play(&recording.bytes, &recording.program, &recording.file, None);
        return played.state;
    }
    let program: &'static Program = Box::leak(Box::new(
        Program::parse(&recording.bytes).expect("a program"),
    ));
    let traced = Box::leak(Box::new(instrument(&recording.bytes, program)));
    let observer = naive_trace::Observer::new(program, traced, stop);
    let program: &Arc<Program> = &recording.program;
    let (played, _) = play(&traced.module, program, &recording.file, Some(observer));
    played.state
}

/// Formats the machine's memories, tables and globals as [`play`] formats the engine's.
fn shown(recording: &Recording, state: &State) -> Vec<(String, String)> {
    let mut shown = Vec::new();
    for payload in Parser::new(0).parse_all(&recording.bytes) {
        let Payload::ExportSection(exports) = payload.expect("a module") else {
            continue;
        };
        for export in exports {
            let export = export.expect("an export");
            let index = export.index as usize;
            let text = match export.kind {
                ExternalKind::Memory => {
                    let bytes = &state.memories[index].bytes;
                    let checksum = crc32fast::hash(bytes);
                    format!("{} bytes, checksum {checksum:#x}", bytes.len())
                }
                ExternalKind::Global => {
                    let ty = recording.program.globals[index];
                    format!("{:?}", value(ty, state.globals[index]))
                }
                ExternalKind::Table => {
                    let elements = state.tables[index].elements.iter();
                    let shown = elements.map(|&element| if element == 0 { '-' } else { 'x' });
                    shown.collect()
                }
                _ => continue,
            };
            shown.push((export.name.to_owned(), text));
        }
    }
    shown
}

fn value(ty: ValType, (low, high): (u64, u64)) -> RawValue {
    match ty {
        ValType::I32 => RawValue::I32(low as i32),
        ValType::I64 => RawValue::I64(low as i64),
        ValType::F32 => RawValue::F32(low as u32),
        ValType::F64 => RawValue::F64(low),
        ValType::V128 => RawValue::V128(u128::from(low) | u128::from(high) << 64),
        ValType::Ref(_) if low == 0 => RawValue::NullRef,
        ValType::Ref(_) => RawValue::OpaqueRef,
    }
}
