//! Queries the epochs of a whole execution trace of a small run, sound or not, in every possible
//! way. A question may be refused, but nothing may panic, take disproportionate memory, or run for
//! ever.

#[path = "values/epochs.rs"]
mod epochs;

use std::convert::Infallible;
use std::sync::Arc;

use afterimage_ids::{BlockId, EntityRef, FuncId, NodeId, PrimaryMap};
use afterimage_program::Program;
use afterimage_trace::{Event, Existing, RawValue, TraceFile, TraceWriter};
use afterimage_wet::{Epoch, Index, LeftOut, Run, WholeTrace};
use afterimage_wpp::{Builder, Continuation, InMemory, Limits, Node, Shape, WholePath};
use epochs::InEpochs;

/// The number of iterations of the guest's loop.
const TRIPS: u64 = 70;

/// The guest: overlapping loads and stores, copies, a global, and a parameter whose definition is
/// far away at the end.
pub const GUEST: &str = r#"(module
  (memory 1) (global $g (mut i32) (i32.const 3)) (data (i32.const 0) "initial bytes")
  (func (param $n i32) (local $i i32)
    (loop $l
      (i32.store16 (local.get $i) (i32.load offset=3 (local.get $i)))
      (memory.copy (i32.add (local.get $i) (i32.const 40)) (local.get $i) (i32.const 24))
      (global.set $g (i32.add (global.get $g) (i32.load offset=41 (local.get $i))))
      (i32.store (i32.const 200) (memory.size))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (i32.store (i32.const 100) (i32.add (global.get $g) (local.get $n)))))"#;

/// The run.
pub struct Guest {
    module: Vec<u8>,
    program: Program,
    path: WholePath<InMemory>,
    continuations: Vec<Continuation>,
    file: TraceFile,
}

impl Guest {
    /// The run of [`GUEST`], given as a module.
    pub fn new(module: Vec<u8>) -> Self {
        let program = Program::parse(&module).expect("a program");
        // The nodes up to the loop, around it, and out of it.
        let [entry, body, after] = [0, 1, 2].map(BlockId::new);
        let nodes = [
            (vec![entry], Some(body), false),
            (vec![body], Some(body), true),
            (vec![body, after], None, true),
        ];
        let mut builder = Builder::new(Limits::default());
        let mut table = PrimaryMap::new();
        let mut continuations = Vec::new();
        for (blocks, next, header) in nodes {
            builder.define(Shape {
                length: blocks.len() as u64,
                loops: if header {
                    [body.as_u32()].into()
                } else {
                    [].into()
                },
                header,
            });
            table.push(Node {
                function: FuncId::new(0),
                blocks: blocks.into(),
                left_out: 0,
            });
            let calls = false;
            continuations.push(Continuation { next, calls });
        }
        builder.enter(FuncId::new(0));
        builder.node(NodeId::new(0), 1);
        builder.node(NodeId::new(1), TRIPS - 1);
        builder.node(NodeId::new(2), 1);
        builder.leave();
        let segments = InMemory::from_iter(builder.finish());
        Self {
            path: WholePath::new(segments, Arc::new(table)).expect("a path"),
            continuations,
            file: log(),
            module,
            program,
        }
    }

    /// Builds the epochs of the run, of about `epoch` numbers each. Returns the number of preceding
    /// blocks and the bytes of each.
    pub fn build(&self, epoch: usize) -> Vec<(u64, Vec<u8>)> {
        let mut epochs = Vec::new();
        let run = Run {
            program: &self.program,
            bytes: &self.module,
            path: &self.path,
            continuations: &self.continuations,
            window: 1..=u64::MAX,
            left_out: &LeftOut::NOTHING,
            stopped: None,
            epoch,
        };
        let log = self.file.log().expect("a log");
        let add = |before, bytes| {
            epochs.push((before, bytes));
            Ok::<_, Infallible>(())
        };
        run.build(log, add, |_| ()).expect("a sound run");
        epochs
    }

    /// Asks every question. Returns the numbers of answered and of refused questions.
    pub fn ask(&self, epochs: &[(u64, Vec<u8>)]) -> (u32, u32) {
        let mut all = InEpochs {
            end: self.path.length(),
            ..InEpochs::default()
        };
        for (before, bytes) in epochs {
            let _ = Index::decode(bytes);
            let Ok(epoch) = Epoch::open(bytes.clone()) else {
                return (0, 1);
            };
            let _ = epoch.contents();
            all.before.push(*before);
            all.epochs.push(epoch.into());
        }
        let trace = WholeTrace::new(
            &self.program,
            &self.module,
            &self.path,
            &self.continuations,
            &all,
        );
        let trace = trace.expect("a module");
        let (mut answered, mut refused) = (0, 0);
        let mut count = |answer: bool| *(if answer { &mut answered } else { &mut refused }) += 1;
        for (node, number) in [
            (0, 1),
            (1, 1),
            (1, 2),
            (1, TRIPS / 2),
            (1, TRIPS - 1),
            (2, 1),
        ] {
            let node = NodeId::new(node);
            let instance = trace.instance(node, number).expect("a path");
            let instance = instance.expect("an execution");
            let compiled = trace.compiled(node).expect("a node");
            for register in 0..compiled.code.registers() as u32 {
                count(trace.value(instance, register).is_ok());
                count(trace.source(instance, register).is_ok());
            }
            for inst in 0..compiled.code.insts.len() {
                count(trace.reading(instance, inst).is_ok());
            }
            count(trace.host_call(instance).is_ok());
            count(trace.result(instance, 0).is_ok());
        }
        (answered, refused)
    }
}

/// The log of a run that the host begins with the number of trips.
fn log() -> TraceFile {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().join("a.aft");
    let writer = TraceWriter::create(&at, Existing::Kept).expect("a writer");
    let mut log = writer.log().expect("a log");
    let event = Event::Enter {
        function: FuncId::new(0),
        args: vec![RawValue::I32(TRIPS as i32)],
    };
    log.event(&event).expect("a small event");
    log.finish().expect("an end");
    writer.commit().expect("a commit");
    drop(writer);
    let bytes = std::fs::read(&at).expect("a file");
    TraceFile::from_bytes(bytes).expect("a sound file")
}
