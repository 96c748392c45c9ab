//! Runs the machine along arbitrary nodes and an arbitrary log that more or less fit a module. The
//! machine may refuse, but it must not panic or take disproportionate memory.

#[path = "machine/events.rs"]
pub mod events;

use afterimage_ids::{BlockId, EntityRef, FuncId, ImportId, NodeId, OpId};
use afterimage_machine::{Machine, NodeEnd, StoppedBefore};
use afterimage_program::{BlockKind, Callee, Function, Program};
use afterimage_trace::{Event, Existing, HostRead, HostWrite, RawValue, TraceFile, TraceWriter};
use events::Forms;
use wasmparser::ValType;

/// Decisions, one byte each; zeros once they are used up.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn next(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn below(&mut self, bound: usize) -> usize {
        let wide = usize::from(self.next()) << 8 | usize::from(self.next());
        wide % bound.max(1)
    }

    fn seldom(&mut self) -> bool {
        self.next() % 16 == 15
    }
}

/// Follows the nodes that these bytes choose in a module. Returns the number of executed nodes.
pub fn follow_anything(module: &[u8], choices: &[u8]) -> usize {
    let Ok(program) = Program::parse(module) else {
        return 0;
    };
    let choices = &mut Choices(choices);
    let mut executed = 0;
    while !choices.0.is_empty() && !program.functions.is_empty() {
        executed += follow_once(&program, module, choices);
    }
    executed
}

fn follow_once(program: &Program, module: &[u8], choices: &mut Choices<'_>) -> usize {
    let entered = &program.functions[choices.below(program.functions.len())];
    let file = log(program, entered, choices);
    let machine = || Machine::new(program, module, file.log().expect("it has a log")).ok();
    let Some(mut forms) = Forms::new(machine) else {
        return 0;
    };
    for _ in 0..choices.below(60) {
        let any = choices.below(2 * program.functions.len());
        let function = program.functions.get(any).unwrap_or(entered);
        let (blocks, next) = path(function, choices);
        let _ = forms.all(|machine| machine.define(function.id, &blocks, next));
    }
    let (mut executed, mut last, mut failed) = (0, None, 0);
    while failed < 3 && executed < 1024 {
        let node = follower(&forms.lean, entered, last, choices);
        let outcome = if choices.seldom() {
            let block = BlockId::new(choices.below(8));
            let op = OpId::new(choices.below(32));
            forms.step(node, Some(StoppedBefore { block, op }))
        } else {
            forms.step(node, None)
        };
        match outcome {
            Ok(()) => (executed, last) = (executed + 1, Some(node)),
            // Nothing fits any more, but it may be attempted.
            Err(error) => {
                assert!(!error.to_string().is_empty());
                failed += 1;
            }
        }
        assert_eq!(forms.lean.time(), executed as u64);
    }
    executed
}

/// A node that is likely to come next.
fn follower(
    machine: &Machine<'_>,
    entered: &Function,
    last: Option<NodeId>,
    choices: &mut Choices<'_>,
) -> NodeId {
    let any = NodeId::new(choices.below(machine.codes().len() + 1));
    if choices.seldom() {
        return any;
    }
    let last = last.and_then(|last| machine.codes().get(last));
    let fits = |node: &NodeId| {
        let other = &machine.codes()[*node];
        let Some(code) = last else {
            return other.function == entered.id && other.first == entered.cfg.graph.root();
        };
        match &code.end {
            NodeEnd::Next => other.function == code.function && Some(other.first) == code.next,
            NodeEnd::Call {
                callee: Callee::Direct(callee),
                ..
            } => other.function == *callee,
            _ => true,
        }
    };
    let nodes = machine.codes().len();
    let mut around = (0..nodes).map(|i| NodeId::new((any.index() + i) % nodes));
    around.find(fits).unwrap_or(any)
}

/// Blocks of a function: mostly a path.
fn path(function: &Function, choices: &mut Choices<'_>) -> (Vec<BlockId>, Option<BlockId>) {
    let graph = &function.cfg.graph;
    let count = function.cfg.blocks.len();
    let mut block = match choices.next() % 2 {
        0 => graph.root(),
        _ => BlockId::new(choices.below(count + 1)),
    };
    let mut blocks = vec![block];
    loop {
        if function.cfg.blocks.get(block).is_none() {
            return (blocks, None);
        }
        let edges = graph.out_edges(block);
        if edges.is_empty() || choices.seldom() {
            let next = choices
                .seldom()
                .then(|| BlockId::new(choices.below(count + 1)));
            return (blocks, next);
        }
        let to = graph.to(edges[choices.below(edges.len())]);
        let code = function.cfg.blocks[to].kind == BlockKind::Code;
        if !code || choices.below(4) == 0 {
            let next = (to != graph.exit()).then_some(to);
            return (blocks, next);
        }
        blocks.push(to);
        block = to;
    }
}

/// A recording with only a log.
fn log(program: &Program, entered: &Function, choices: &mut Choices<'_>) -> TraceFile {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().join("a.aft");
    let writer = TraceWriter::create(&at, Existing::Kept).expect("a writer");
    let mut log = writer.log().expect("a log");
    if !choices.seldom() {
        let event = enter(program, entered.id, choices);
        log.event(&event).expect("a small event");
    }
    for _ in 0..choices.below(12) {
        log.event(&event(program, choices)).expect("a small event");
    }
    log.finish().expect("an end");
    writer.commit().expect("a commit");
    drop(writer);
    let bytes = std::fs::read(&at).expect("a file");
    TraceFile::from_bytes(bytes).expect("a sound file")
}

fn event(program: &Program, choices: &mut Choices<'_>) -> Event {
    let all = program.imports.len() + program.functions.len();
    let granted = choices.below(2) == 0;
    match choices.next() % 8 {
        0 => Event::MemoryGrow { granted },
        1 => Event::TableGrow { granted },
        2 => Event::Leave {
            results: Vec::new(),
        },
        3 | 4 if !program.imports.is_empty() => {
            let import = choices.below(program.imports.len());
            let ty = &program.types[program.imports[import].ty];
            Event::HostCall {
                import: ImportId::new(import),
                args: values(&ty.params, choices),
                results: values(&ty.results, choices),
                writes: Vec::from_iter(choices.seldom().then(|| HostWrite {
                    memory: u32::from(choices.next() % 3),
                    address: u64::from(choices.next()) << (choices.next() % 64),
                    bytes: vec![choices.next(); 3],
                })),
                reads: Vec::from_iter(choices.seldom().then(|| HostRead {
                    memory: u32::from(choices.next() % 3),
                    address: u64::from(choices.next()) << (choices.next() % 64),
                    length: u64::from(choices.next()) << (choices.next() % 64),
                })),
                read_digest: 0,
            }
        }
        _ => enter(program, FuncId::new(choices.below(all + 1)), choices),
    }
}

fn enter(program: &Program, function: FuncId, choices: &mut Choices<'_>) -> Event {
    let defined = program.function(function);
    let ty = defined.and_then(|function| program.types.get(function.ty));
    Event::Enter {
        function,
        args: ty.map_or(Vec::new(), |ty| values(&ty.params, choices)),
    }
}

fn values(types: &[ValType], choices: &mut Choices<'_>) -> Vec<RawValue> {
    let mut values = Vec::new();
    for ty in types {
        let number = i64::from(choices.next() as i8);
        values.push(match ty {
            _ if choices.seldom() => RawValue::OpaqueRef,
            ValType::I32 => RawValue::I32(number as i32),
            ValType::I64 => RawValue::I64(number),
            ValType::F32 => RawValue::F32((number as f32).to_bits()),
            ValType::F64 => RawValue::F64((number as f64).to_bits()),
            ValType::V128 => RawValue::V128(number as u128),
            ValType::Ref(_) => RawValue::NullRef,
        });
    }
    values
}
