//! Checks that the three forms of execution agree. They execute instruction by instruction,
//! operation by operation, and several instructions per operation.

mod discover;
mod patterns;

use afterimage_program::{BlockEnd, Program};
use afterimage_testkit::modules::{HANDWRITTEN, ModuleConfig, SplitMix64, module_from_seed};
use discover::{Piece, Run, define};

use crate::hostile::body::events::Forms;

/// Joins blocks into longer paths, none of which repeats a block.
fn join(program: &Program, pieces: &[Piece], random: &mut SplitMix64) -> Vec<Piece> {
    let mut joined: Vec<Piece> = Vec::new();
    for (function, blocks, next) in pieces {
        let block = blocks[0];
        let leaves = |piece: &Piece| {
            let known = program.function(piece.0).expect("a function");
            let last = piece.1.last().expect("a block");
            let end = &known.cfg.blocks[*last].end;
            matches!(
                end,
                BlockEnd::Call(_) | BlockEnd::TailCall(_) | BlockEnd::Throw
            )
        };
        match joined.last_mut() {
            Some(last)
                if last.0 == *function
                    && last.2 == Some(block)
                    && !last.1.contains(&block)
                    && !leaves(last)
                    && random.below(6) > 0 =>
            {
                last.1.push(block);
                last.2 = *next;
            }
            _ => joined.push((*function, blocks.clone(), *next)),
        }
    }
    joined
}

/// Follows an execution of a function. Returns the number of executed nodes.
fn check(module: &[u8], random: &mut SplitMix64, most: usize) -> usize {
    let program = Program::parse(module).expect("a module");
    let function = &program.functions[random.below(program.functions.len())];
    let number = random.next() as i32 >> random.below(32);
    let run = Run::new(&program, module, function.id, number);
    let pieces = run.discover(function.id, most);
    let mut executed = 0;
    for _ in 0..3 {
        let joined = join(&program, &pieces, random);
        let mut forms = Forms::new(|| run.machine().ok()).expect("machines");
        let nodes = forms.all(|machine| define(machine, &joined).expect("paths"));
        for node in nodes {
            forms.step(node, None).expect("a run");
            executed += 1;
        }
    }
    executed
}

#[test]
fn forms_agree_on_patterns() {
    let random = &mut SplitMix64(31);
    let mut executed = 0;
    for _ in 0..600 {
        let module = patterns::module(random);
        executed += check(&module, random, 60);
    }
    assert!(executed > 2000, "only {executed} nodes were executed");
}

#[test]
fn forms_agree_on_generated_and_handwritten_modules() {
    let random = &mut SplitMix64(32);
    let mut executed = 0;
    for (_, text) in HANDWRITTEN {
        let module = wat::parse_str(text).expect("a module");
        for _ in 0..4 {
            executed += check(&module, random, 60);
        }
    }
    for seed in 0..60 {
        let config = ModuleConfig {
            traps: seed % 3 == 0,
            ..ModuleConfig::default()
        };
        executed += check(&module_from_seed(720_000 + seed, &config), random, 60);
    }
    assert!(executed > 1000, "only {executed} nodes were executed");
}
