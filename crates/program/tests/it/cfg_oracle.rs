//! Checks that every control-flow graph equals the graph built from the definition.

use std::collections::BTreeSet;
use std::path::Path;

use crate::oracle::{Body, Graph, call_throws, throwing};
use afterimage_ids::{FuncId, OpId};
use afterimage_program::{BlockEnd, BlockKind, EdgeKind, OperatorIndex, Program};
use afterimage_testkit::modules::{HANDWRITTEN, ModuleConfig, module_from_seed};

/// Compares the graphs of a module, and returns their number of edges.
fn check(name: &str, bytes: &[u8]) -> usize {
    let program = Program::parse(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    let bodies: Vec<_> = program
        .functions
        .iter()
        .map(|f| Body::new(&program, bytes, f))
        .collect();
    let expected = throwing(&program, &bodies);
    let actual: BTreeSet<FuncId> = program
        .functions
        .iter()
        .filter(|f| f.may_throw)
        .map(|f| f.id)
        .collect();
    assert_eq!(actual, expected, "{name}: functions that may throw");

    let throws = |op: &wasmparser::Operator<'_>| call_throws(&program, &expected, op);
    let mut edges = 0;
    for (function, body) in program.functions.iter().zip(&bodies) {
        let built = Graph::built(function);
        let defined = body.graph(&throws, program.tags.len() as u32);
        assert_eq!(built, defined, "{name}: {}", function.id);
        invariants(name, &program, bytes, function);
        edges += function.cfg.edges.len();
    }
    edges
}

/// Checks the promises of `Cfg`'s documentation beyond the shape of the graph.
fn invariants(
    name: &str,
    program: &Program,
    bytes: &[u8],
    function: &afterimage_program::Function,
) {
    let cfg = &function.cfg;
    let rank = |kind| match kind {
        BlockKind::Code => (0, None),
        BlockKind::Dispatch(Some(op)) => (1, Some(op)),
        BlockKind::Dispatch(None) => (2, None),
        BlockKind::Exit => (3, None),
    };
    let blocks: Vec<_> = cfg.blocks.values().collect();
    assert!(
        blocks.is_sorted_by_key(|block| rank(block.kind)),
        "{name}: order of vertices"
    );
    assert!(
        blocks
            .windows(2)
            .all(|w| { w[1].kind != BlockKind::Code || w[0].ops.end <= w[1].ops.start })
    );
    assert!(cfg.graph.in_edges(cfg.graph.root()).is_empty());
    assert_eq!(cfg.graph.exit().as_u32() as usize, blocks.len() - 1);
    assert!(cfg.edges.values().is_sorted_by_key(|edge| edge.from));
    for (id, edge) in &cfg.edges {
        assert_eq!((cfg.graph.from(id), cfg.graph.to(id)), (edge.from, edge.to));
        let from = &cfg.blocks[edge.from];
        if let (BlockKind::Code, Some(op)) = (from.kind, edge.op) {
            assert_eq!(
                op.as_u32() + 1,
                from.ops.end.as_u32(),
                "the last operator transfers control"
            );
        }
        if edge.kind == EdgeKind::Fall && edge.to == cfg.graph.exit() {
            assert_eq!(from.end, BlockEnd::Return);
        }
    }

    let index = OperatorIndex::new(program, bytes);
    for (op, offset, _) in program.operators(bytes, function) {
        assert_eq!(index.find(offset), Some((function.id, op)));
        assert_eq!(index.enclosing(offset), Some((function.id, op)));
        let naive = blocks
            .iter()
            .position(|b| b.kind == BlockKind::Code && b.ops.contains(&op));
        assert_eq!(function.block_of(op).map(|b| b.as_u32() as usize), naive);
        for block in blocks.iter().filter(|block| !block.ops.is_empty()) {
            assert_eq!(block.ops.start == op, block.offsets.start == offset);
        }
    }
    let past_end = OpId::from_u32(function.operators);
    assert_eq!(function.block_of(past_end), None);
}

#[test]
fn graphs_of_generated_modules() {
    let mut edges = 0;
    for seed in 0..1000 {
        let config = ModuleConfig {
            traps: seed % 2 == 0,
            imports: seed % 3 == 0,
            simd: seed % 5 == 0,
            fuel: (seed % 7 != 0).then_some(100),
            ..ModuleConfig::default()
        };
        edges += check(&format!("seed {seed}"), &module_from_seed(seed, &config));
    }
    assert!(edges > 50_000, "{edges} edges are too few to mean much");
}

#[test]
fn graphs_of_handwritten_modules() {
    for (name, text) in HANDWRITTEN {
        check(name, &wat::parse_str(text).unwrap());
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cfg");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ext| ext == "wat") {
            check(
                &path.display().to_string(),
                &wat::parse_file(&path).unwrap(),
            );
        }
    }
}
