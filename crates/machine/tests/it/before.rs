//! Checks the code of a path up to an operator. This code must be the first part of the path's
//! code, and give the right variables.

use afterimage_ids::{BlockId, OpId};
use afterimage_machine::{Body, NodeCode, Operand, compile_apart, compile_before};
use afterimage_program::{BlockEnd, BlockKind, NO_HEIGHT, Program};
use afterimage_testkit::modules::{HANDWRITTEN, ModuleConfig, SplitMix64, module_from_seed};
use wasmparser::Operator;

/// Generates consecutive blocks without calls between them and without repetition.
fn path(body: &Body<'_>, random: &mut SplitMix64) -> Vec<BlockId> {
    let cfg = &body.function.cfg;
    let code = Vec::from_iter(cfg.blocks.iter().filter(|b| b.1.kind == BlockKind::Code));
    let mut blocks = vec![code[random.below(code.len())].0];
    while let Some(&block) = blocks.last() {
        let leaves = matches!(
            cfg.blocks[block].end,
            BlockEnd::Call(_) | BlockEnd::TailCall(_) | BlockEnd::Throw | BlockEnd::Unreachable
        );
        let edges = cfg.graph.out_edges(block);
        if leaves || edges.is_empty() {
            break;
        }
        let to = cfg.graph.to(edges[random.below(edges.len())]);
        if to == cfg.graph.exit() || blocks.contains(&to) {
            break;
        }
        blocks.push(to);
    }
    blocks
}

/// The source of a variable's value, without register numbers, which depend on the number of
/// constants.
#[derive(Debug, PartialEq)]
enum Meaning {
    Variable(u32),
    Constant(u64, u64),
    Result(usize),
}

fn meaning(code: &NodeCode, variable: u32) -> Meaning {
    let found = code.outputs.iter().find(|(output, _)| *output == variable);
    let register = found.map_or(variable, |(_, register)| *register);
    match code.source(register) {
        Operand::Variable(variable) => Meaning::Variable(variable),
        Operand::Result(position) => Meaning::Result(position),
        Operand::Constant(low) => {
            let wide = code.wide_constants.iter().find(|wide| wide.0 == register);
            Meaning::Constant(low, wide.map_or(0, |wide| wide.1))
        }
    }
}

/// Checks all operators of the last block of a path. Returns the number of comparisons.
fn check(program: &Program, body: &Body<'_>, blocks: &[BlockId]) -> usize {
    let before = |op| compile_before(program, body, blocks, op).expect("a path");
    let (&last, earlier) = blocks.split_last().expect("a block");
    let ops = body.function.cfg.blocks[last].ops.clone();
    let mut code = before(ops.start);
    if let Ok((whole, _)) = compile_apart(program, body, earlier, Some(last)) {
        // At the block's start, the state equals the state that the preceding path leaves.
        assert_eq!(format!("{:?}", code.insts), format!("{:?}", whole.insts));
        assert_eq!(code.outputs, whole.outputs);
        assert_eq!(code.constants, whole.constants);
    }
    let locals = body.slots.locals.len() as u32;
    let all = before(ops.end);
    for op in (ops.start.as_u32()..ops.end.as_u32()).map(OpId::from_u32) {
        let next = before(OpId::from_u32(op.as_u32() + 1));
        let own = next.insts.iter().zip(&all.insts);
        for (own, whole) in own {
            assert_eq!((own.code, own.op), (whole.code, whole.op));
        }
        assert!(next.insts[code.insts.len()..].iter().all(|i| i.op == op));
        let height = body.slots.heights[op];
        let set = match body.operators[op.as_u32() as usize] {
            Operator::LocalSet { local_index } | Operator::LocalTee { local_index } => {
                (height != NO_HEIGHT).then_some(local_index)
            }
            _ => None,
        };
        for local in 0..locals {
            // A local changes only when it is set, to the value on top of the operand stack.
            let from = if set == Some(local) {
                body.slots.of_slot(height - 1)
            } else {
                local
            };
            assert_eq!(meaning(&next, local), meaning(&code, from), "{op}");
        }
        code = next;
    }
    (ops.end.as_u32() - ops.start.as_u32()) as usize
}

fn check_module(module: &[u8], random: &mut SplitMix64) -> usize {
    let program = Program::parse(module).expect("a module");
    let mut checked = 0;
    for function in &program.functions {
        let body = Body::read(&program, module, function).expect("a body");
        for _ in 0..4 {
            let blocks = path(&body, random);
            checked += check(&program, &body, &blocks);
        }
    }
    checked
}

#[test]
fn variables_before_operators_are_what_the_operators_before_made_of_them() {
    let random = &mut SplitMix64(23);
    let mut checked = 0;
    for (_, text) in HANDWRITTEN {
        checked += check_module(&wat::parse_str(text).expect("a module"), random);
    }
    for seed in 0..60 {
        let module = module_from_seed(810_000 + seed, &ModuleConfig::default());
        checked += check_module(&module, random);
    }
    assert!(checked > 1000, "only {checked} operators were checked");
}

#[test]
fn an_operator_of_another_block_is_refused() {
    let module = wat::parse_str(
        "(module (func (param i32) (if (local.get 0) (then nop)) (local.set 0 (i32.const 1))))",
    );
    let module = module.expect("a module");
    let program = Program::parse(&module).expect("a module");
    let function = &program.functions[0];
    let body = Body::read(&program, &module, function).expect("a body");
    let root = function.cfg.graph.root();
    let end = function.cfg.blocks[root].ops.end;
    assert!(compile_before(&program, &body, &[root], end).is_ok());
    let beyond = OpId::from_u32(end.as_u32() + 1);
    assert!(compile_before(&program, &body, &[root], beyond).is_err());
    assert!(compile_before(&program, &body, &[], end).is_err());
}
