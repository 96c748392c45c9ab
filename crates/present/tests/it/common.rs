//! Provides a small program, and executions of it.

use std::path::Path;

use afterimage_ids::{Counts, EntityRef, FunctionCounts, OpId};
use afterimage_profile::{Profile, Stop};
use afterimage_program::{Function, Names, Program, SourceMap};

/// The program, which is also its own source.
pub const TEXT: &str = include_str!("../golden/program.wat");

/// Returns `program.wat` as a module, with or without line tables.
///
/// The line tables of the `wat` crate are one byte off, because they leave out the function count
/// of the Code section. So an operator of one byte takes the line of the next operator. No such
/// operator ends a line of the program.
pub fn module(debug: bool) -> Vec<u8> {
    let mut parser = wat::Parser::new();
    if debug {
        parser.generate_dwarf(wat::GenerateDwarf::Lines);
    }
    parser
        .parse_str(Some(Path::new("src/program.wat")), TEXT)
        .unwrap()
}

/// How an execution ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// `main` returns.
    Return,
    /// `i32.add` traps in the second iteration. It cannot trap in reality, but the counts allow it.
    Trap,
}

/// Makes the profile of an execution of the program, and passes it to `use_it`.
pub fn with_profile<R>(debug: bool, ending: Ending, use_it: impl FnOnce(&Profile<'_>) -> R) -> R {
    let module = module(debug);
    let program = Program::parse(&module).unwrap();
    let source = SourceMap::build(&module);
    let names = Names::build(&program, &module, &source);
    let (mut counts, mut stops) = (Counts::default(), Vec::new());
    for (function, run) in program.functions.iter().zip(runs(ending)) {
        counts.functions.push(walk(function, run, &mut stops));
    }
    let profile = Profile::new(&program, &module, &counts, &stops, &names, &source).unwrap();
    use_it(&profile)
}

/// One activation or none: the direction to take at each block with several, and the operator at
/// which the activation stops.
type Run = Option<(&'static [usize], Option<u32>)>;

fn runs(ending: Ending) -> [Run; 3] {
    match ending {
        // Branches list "not taken" before "taken". This run has four iterations, and then takes
        // the else arm.
        Ending::Return => [Some((&[], None)), Some((&[1, 1, 1, 0, 1], None)), None],
        Ending::Trap => [Some((&[], Some(1))), Some((&[1], Some(3))), None],
    }
}

fn walk(function: &Function, run: Run, stops: &mut Vec<Stop>) -> FunctionCounts {
    let graph = &function.cfg.graph;
    let mut counts = FunctionCounts {
        edges: vec![0; graph.edge_count()],
        ..Default::default()
    };
    let Some((ways, stop)) = run else {
        return counts;
    };
    counts.entries = 1;
    let (mut block, mut ways) = (graph.root(), ways.iter());
    while block != graph.exit() {
        let stop = stop.map(OpId::from_u32);
        let here = stop.filter(|op| function.cfg.blocks[block].ops.contains(op));
        if let Some(op) = here.filter(|_| ways.len() == 0) {
            counts.open.push((block, 1));
            stops.push(Stop {
                function: function.id,
                block,
                next: OpId::from_u32(op.as_u32() + 1),
            });
            break;
        }
        let edge = match graph.out_edges(block) {
            [only] => *only,
            several => several[*ways.next().expect("a way for every branch")],
        };
        counts.edges[edge.index()] += 1;
        block = graph.to(edge);
    }
    counts
}
