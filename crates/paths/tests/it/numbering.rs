//! Checks path numbers against their definition. Every path from a start to an end has its own
//! number, which fits the width.

use afterimage_ids::{BlockId, EntityRef};
use afterimage_paths::{Cuts, Numbering, PathPlan};
use afterimage_placement::function_weights;
use afterimage_program::{BlockEnd, Cfg, Program};
use afterimage_testkit::graphs::programs::{programs, without_calls};
use afterimage_testkit::modules::{ModuleConfig, module_from_seed};
use proptest::prelude::*;

/// Functions with more paths from a start than this are skipped.
const MANY: usize = 5000;

const NO_CUTS: Cuts = Cuts {
    through: u32::MAX as u64,
    rare: 0.0,
    loop_exits: false,
    shorter: 0.0,
};

/// Returns the numbers of all paths from a start, or `None` if there are too many.
fn numbers(cfg: &Cfg, numbering: &Numbering, start: BlockId) -> Option<Vec<u64>> {
    let graph = &cfg.graph;
    let mut found = Vec::new();
    let mut stack = vec![(start, 0u64)];
    while let Some((v, number)) = stack.pop() {
        if stack.len() + found.len() > MANY {
            return None;
        }
        let ends = v == graph.exit()
            || graph.out_edges(v).is_empty()
            || matches!(cfg.blocks[v].end, BlockEnd::Call(_));
        if ends {
            found.push(number);
            continue;
        }
        for &edge in graph.out_edges(v) {
            let number = number + u64::from(numbering.value(edge));
            let to = graph.to(edge);
            if numbering.start(to).is_some() {
                found.push(number);
            } else {
                stack.push((to, number));
            }
        }
    }
    Some(found)
}

/// Checks the law for all functions of a program.
fn unique(program: &Program, cuts: Cuts) {
    let plan = PathPlan::new(program, None, cuts).expect("no counts that could be wrong");
    for function in &program.functions {
        let numbering = plan.numbering(program, function.id).expect("it is defined");
        for (start, width) in numbering.starts() {
            let Some(numbers) = numbers(&function.cfg, numbering, start) else {
                continue;
            };
            let mut seen = std::collections::BTreeSet::new();
            for number in numbers {
                assert!(number < 1 << width, "{start:?}: {number} in {width} bits");
                assert!(seen.insert(number), "{start:?}: {number} is of two paths");
            }
        }
    }
}

fn all_cuts() -> [Cuts; 5] {
    let default = Cuts::default();
    [
        default,
        NO_CUTS,
        Cuts {
            shorter: 1.0,
            ..NO_CUTS
        },
        Cuts {
            shorter: 0.0,
            ..default
        },
        Cuts {
            through: 1,
            ..default
        },
    ]
}

/// Returns the number of bits that all paths take, according to the weights on which the plan is
/// based.
fn expected_bits(program: &Program, cuts: Cuts) -> f64 {
    let weights = function_weights(program, None).expect("weights");
    let plan = PathPlan::new(program, None, cuts).expect("no counts that could be wrong");
    let functions = program.functions.iter().zip(&weights);
    functions
        .map(|(function, weights)| {
            let numbering = plan.numbering(program, function.id).expect("it is defined");
            let starts = numbering.starts();
            let bits = starts.map(|(start, width)| {
                weights.vertex(&function.cfg.graph, start) * f64::from(width)
            });
            bits.sum::<f64>()
        })
        .sum()
}

fn generated(seed: u64) -> Program {
    let bytes = module_from_seed(seed, &ModuleConfig::default());
    Program::parse(&bytes).expect("a module of the testkit")
}

proptest! {
    #[test]
    fn numbers_are_unique(program in programs()) {
        for cuts in all_cuts() {
            unique(&program, cuts);
        }
    }

    #[test]
    fn numbers_of_modules_are_unique(seed in any::<u64>()) {
        for cuts in all_cuts() {
            unique(&generated(seed), cuts);
        }
    }
}

/// Four edges leave the root, and one of them leads to a fork. So there are five paths, or four if
/// the paths to the fork end there.
#[test]
fn a_fifth_path_is_cut_off() {
    let fork = 4;
    let edges = [
        (0, 1),
        (0, 2),
        (0, 3),
        (0, fork),
        (1, 6),
        (2, 6),
        (3, 6),
        (fork, 5),
        (fork, 6),
        (5, 6),
    ];
    let program = without_calls(7, &edges);
    let cfg = &program.functions[0].cfg;
    let widths = |cuts| -> Vec<(usize, u8)> {
        let plan = PathPlan::new(&program, None, cuts).expect("no counts");
        let numbering = plan.numbering(&program, program.functions[0].id);
        let starts = numbering.expect("it is defined").starts();
        starts.map(|(v, width)| (v.index(), width)).collect()
    };
    let root = cfg.graph.root().index();
    assert_eq!(widths(NO_CUTS), [(root, 3)]);
    let shorter = widths(Cuts {
        shorter: 1.0,
        ..NO_CUTS
    });
    assert_eq!(shorter, [(root, 2), (fork, 1)]);
}

#[test]
fn shorter_numbers_are_shorter() {
    let (mut with, mut without) = (0.0, 0.0);
    for seed in 0..200 {
        let program = generated(seed);
        let shorter = Cuts::default().shorter;
        with += expected_bits(&program, Cuts { shorter, ..NO_CUTS });
        without += expected_bits(&program, NO_CUTS);
    }
    assert!(with < without, "{with} bits, {without} without");
}
