//! Checks that the code of a path reads and writes exactly the variables that it declares.

use std::collections::BTreeSet;

use afterimage_ids::{BlockId, EntityRef};
use afterimage_machine::{
    Body, Code, Machine, MachineError, NodeCode, NodeEnd, Operand, Register, compile,
};
use afterimage_program::{BlockEnd, BlockKind, EdgeKind, Program};
use afterimage_testkit::modules::{HANDWRITTEN, ModuleConfig, SplitMix64, module_from_seed};
use afterimage_trace::{Existing, TraceFile, TraceWriter};

/// A path, and the block where it continues.
type Path = (Vec<BlockId>, Option<BlockId>);

/// Returns a path from a block on, as the lens would make it. The path ends before a block would
/// occur twice, or earlier.
fn path(body: &Body<'_>, random: &mut SplitMix64) -> Path {
    let cfg = &body.function.cfg;
    let code = Vec::from_iter(cfg.blocks.iter().filter(|b| b.1.kind == BlockKind::Code));
    let mut block = match random.below(3) {
        0 => cfg.graph.root(),
        _ => code[random.below(code.len())].0,
    };
    let mut blocks = vec![block];
    loop {
        let edges = cfg.graph.out_edges(block);
        let to = match cfg.blocks[block].end {
            BlockEnd::TailCall(_) | BlockEnd::Throw | BlockEnd::Unreachable => {
                return (blocks, None);
            }
            BlockEnd::Call(_) => {
                let mut edges = edges.iter();
                let back = edges.find(|&&edge| cfg.edges[edge].kind == EdgeKind::CallReturn);
                let next = cfg.graph.to(*back.expect("a call may return"));
                return (blocks, (next != cfg.graph.exit()).then_some(next));
            }
            // The run may end in the last block.
            _ if edges.is_empty() || random.below(20) == 0 => return (blocks, None),
            _ => cfg.graph.to(edges[random.below(edges.len())]),
        };
        if to == cfg.graph.exit() {
            return (blocks, None);
        }
        if blocks.contains(&to) || random.below(5) == 0 {
            return (blocks, Some(to));
        }
        blocks.push(to);
        block = to;
    }
}

/// Checks all claims about the code of a path.
fn check(program: &Program, body: &Body<'_>, (blocks, next): &Path, code: &NodeCode) {
    let cfg = &body.function.cfg;
    assert_eq!((code.function, code.first), (body.function.id, blocks[0]));
    assert_eq!(code.next, *next);
    assert_eq!(code.variables as usize, body.variables());
    let first = code.first_result();
    let mut read = BTreeSet::new();
    // Checks a register that is read after `done` instructions.
    let mut reads = |register: Register, done: usize| match code.source(register) {
        Operand::Variable(variable) => drop(read.insert(variable)),
        Operand::Constant(bits) => {
            assert_eq!(code.constants[(register - code.variables) as usize], bits);
        }
        Operand::Result(result) => {
            assert!(result < done, "{result} is read before it is there");
            assert!(
                code.insts[result].code.gives(),
                "{result} is read, but is none"
            );
        }
    };
    let mut at = (0, None);
    for (i, inst) in code.insts.iter().enumerate() {
        for &register in &[inst.a, inst.b, inst.c][..inst.code.operands()] {
            reads(register, i);
        }
        if let Code::Vector(vector) = inst.code {
            let extra = code.vector(i).expect("a vector instruction has more");
            if vector.signature().0.len() == 3 {
                assert_eq!(extra.c, inst.c);
            }
        }
        // The operators must belong to the blocks, in order.
        while !cfg.blocks[blocks[at.0]].ops.contains(&inst.op) {
            at = (at.0 + 1, None);
        }
        assert!(at.1 < Some(inst.op));
        at.1 = Some(inst.op);
    }
    let all = code.insts.len();
    let locals = body.slots.locals.len();
    let slots = |block: BlockId| body.slots.at_start[block].len();
    let live = match (&code.end, next) {
        (NodeEnd::Next, Some(next)) => locals + slots(*next),
        (NodeEnd::Call { results, .. }, _) => *results as usize,
        (NodeEnd::Throw { .. } | NodeEnd::Rethrow { .. }, _) => code.variables as usize,
        _ => 0,
    };
    for pair in code.outputs.windows(2) {
        assert!(pair[0].0 < pair[1].0, "each variable is written once");
    }
    for &(variable, register) in &code.outputs {
        assert!((variable as usize) < live, "what is left is live");
        assert_ne!(variable, register, "what stays is not written");
        reads(register, all);
    }
    match &code.end {
        NodeEnd::Next | NodeEnd::Trap => {}
        NodeEnd::Call {
            index, arguments, ..
        }
        | NodeEnd::TailCall {
            index, arguments, ..
        } => {
            let registers = arguments.iter().chain(index);
            registers.for_each(|&register| reads(register, all));
        }
        NodeEnd::Return(values) => {
            assert_eq!(values.len(), program.types[body.function.ty].results.len());
            values.iter().for_each(|&register| reads(register, all));
        }
        NodeEnd::Throw { values, .. } => {
            values.iter().for_each(|&register| reads(register, all));
        }
        NodeEnd::Rethrow { exception, .. } => reads(*exception, all),
    }
    assert!(
        read.iter()
            .all(|&v| (v as usize) < locals + slots(blocks[0]))
    );
    let inputs = BTreeSet::from_iter(code.inputs.iter().copied());
    assert_eq!(inputs.len(), code.inputs.len());
    assert!(code.inputs.is_sorted());
    assert_eq!(inputs, read);
    assert_eq!(code.registers() as u32, first + all as u32);
    assert!(code.wide || code.vectors.is_empty() && code.wide_constants.is_empty());
}

fn modules() -> Vec<Vec<u8>> {
    let mut modules = Vec::from_iter(
        HANDWRITTEN
            .iter()
            .map(|(_, text)| wat::parse_str(text).expect("a module")),
    );
    for seed in 0..80 {
        let config = ModuleConfig {
            imports: seed % 2 == 0,
            traps: seed % 3 == 0,
            fuel: (seed % 5 != 0).then_some(100),
            ..ModuleConfig::default()
        };
        modules.push(module_from_seed(800_000 + seed, &config));
    }
    modules
}

#[test]
fn code_reads_what_is_there_and_writes_each_variable_once() {
    let random = &mut SplitMix64(3);
    let mut paths = 0;
    for module in modules() {
        let program = Program::parse(&module).expect("a program");
        for function in &program.functions {
            let body = Body::read(&program, &module, function).expect("a body");
            for _ in 0..30 {
                let path = path(&body, random);
                match compile(&program, &body, &path.0, path.1) {
                    Ok(code) => check(&program, &body, &path, &code),
                    Err(error) => panic!("{error}: {path:?}"),
                }
                paths += 1;
            }
        }
    }
    assert!(paths > 10_000, "{paths}");
}

#[test]
fn blocks_that_are_no_path_are_refused() {
    let random = &mut SplitMix64(4);
    let (mut refused, mut paths) = (0, 0);
    for module in modules() {
        let program = Program::parse(&module).expect("a program");
        for function in &program.functions {
            let cfg = &function.cfg;
            let body = Body::read(&program, &module, function).expect("a body");
            let any = |random: &mut SplitMix64| BlockId::new(random.below(cfg.blocks.len() + 1));
            for _ in 0..20 {
                let (mut blocks, mut next) = path(&body, random);
                let at = random.below(blocks.len());
                match random.below(5) {
                    0 => blocks[at] = any(random),
                    1 => blocks.insert(at, any(random)),
                    2 => drop(blocks.remove(at)),
                    3 => next = Some(any(random)),
                    _ => blocks.push(blocks[at]),
                }
                let joined = blocks.windows(2).all(|pair| {
                    let known = cfg.blocks.get(pair[0]).is_some();
                    let edges = known.then(|| cfg.graph.out_edges(pair[0]));
                    let mut edges = edges.unwrap_or(&[]).iter();
                    edges.any(|&edge| cfg.graph.to(edge) == pair[1])
                });
                let sound = joined && !blocks.is_empty();
                match compile(&program, &body, &blocks, next) {
                    Ok(code) => {
                        assert!(sound, "{blocks:?} is no path");
                        check(&program, &body, &(blocks, next), &code);
                        paths += 1;
                    }
                    Err(MachineError::NoPath { function, .. }) => {
                        assert_eq!(function, body.function.id);
                        refused += 1;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
    assert!(
        refused > 2000 && paths > 100,
        "{refused} refused, {paths} not"
    );
}

/// Returns a recording of a run that executed nothing.
fn nothing() -> TraceFile {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().join("a.aft");
    let writer = TraceWriter::create(&at, Existing::Kept).expect("a writer");
    let log = writer.log().expect("a log");
    log.finish().expect("an end");
    writer.commit().expect("a commit");
    drop(writer);
    TraceFile::from_bytes(std::fs::read(&at).expect("a file")).expect("a sound file")
}

#[test]
fn paths_that_are_compiled_at_once_are_those_that_are_compiled_one_by_one() {
    let random = &mut SplitMix64(5);
    let file = nothing();
    let (mut refused, mut sound) = (0, 0);
    for (number, module) in modules().into_iter().enumerate() {
        let program = Program::parse(&module).expect("a program");
        let machine = || Machine::new(&program, &module, file.log().expect("it has a log"));
        let (Ok(mut one_by_one), Ok(mut at_once)) = (machine(), machine()) else {
            continue;
        };
        let mut paths = Vec::new();
        for function in &program.functions {
            let body = Body::read(&program, &module, function).expect("a body");
            paths.extend((0..40).map(|_| (function.id, path(&body, random))));
        }
        // Shuffle the paths, so that consecutive paths belong to different functions.
        for i in (1..paths.len()).rev() {
            paths.swap(i, random.below(i + 1));
        }
        if number % 2 == 0 && !paths.is_empty() {
            // Errors must name the first fault.
            for _ in 0..3 {
                let at = random.below(paths.len());
                let (_, (blocks, _)) = &mut paths[at];
                blocks.push(blocks[0]);
            }
        }
        let nodes = paths.iter();
        let nodes = nodes.map(|(function, (blocks, next))| (*function, &blocks[..], *next));
        let nodes = Vec::from_iter(nodes);
        let expected = nodes
            .iter()
            .try_for_each(|&(f, blocks, next)| one_by_one.define(f, blocks, next).map(drop));
        let found = at_once.define_all(&nodes);
        assert_eq!(format!("{found:?}"), format!("{expected:?}"));
        assert_eq!(
            format!("{:?}", at_once.codes()),
            format!("{:?}", one_by_one.codes())
        );
        match found {
            Ok(()) => sound += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 20 && sound > 20, "{refused} refused, {sound} not");
}
