//! Slices with few dependences are looked up step by step. They agree with slices found by
//! following the run backward.

use afterimage_analyses::slices::{
    Criterion, Follows, Reach, Slice, Through, Visibility, Want, backward, near, nearest,
};
use afterimage_replay::values::{HostReads, Kind, Statement};
use afterimage_testkit::modules::SplitMix64;

use crate::common::Sandbox;
use crate::common::generated::{each_with_values, seeds};
use crate::common::recorded::Recorded;

/// The maximum number of blocks. Longer runs are left out.
const MOST: u64 = 5000;
/// The number of executions of nodes in the questions about a run.
const ASKED: u64 = 40;

const FOLLOWS: [Follows; 4] = [Follows::ALL, Follows::DATA, Follows::THIN, Follows::CONTROL];

#[derive(Debug, Default)]
struct Compared {
    /// The number of slices that were made without following the run.
    near: usize,
    /// The number of slices for which the run was followed.
    left: usize,
    executions: u64,
    initial: usize,
    /// The number of distances of operators.
    distances: usize,
    /// The numbers of these distances through values, addresses, and branches or calls.
    through: [usize; 3],
}

#[test]
fn near_slices_are_those_of_going_back() {
    let mut all = Compared::default();
    crate::forward::recorded::each_recorded(5, |sandbox| compare(sandbox, &mut all));
    each_with_values(seeds(5), |sandbox| compare(sandbox, &mut all));
    let Compared {
        near,
        left,
        executions,
        initial,
        distances,
        through,
    } = all;
    assert!(
        near > 5000 && executions > 50_000 && initial > 100,
        "{all:?}"
    );
    assert!(left > 50, "{all:?}");
    assert!(distances > 5000, "{all:?}");
    assert!(through.iter().all(|&of| of > 50), "{all:?}");
}

#[test]
fn near_slices_of_programs_with_exceptions_tables_atomics_and_copies() {
    for text in [
        crate::forward_holds::PROGRAM,
        crate::forward_holds::EXCEPTIONS,
        crate::forward_holds::TABLES,
        crate::deps_slices::PROGRAM,
        crate::distances_hold::ATOMICS,
    ] {
        let sandbox = Sandbox::new();
        sandbox.wasm("a.wasm", text);
        sandbox.run("record --lens full -o run.aft a.wasm");
        let mut all = Compared::default();
        compare(&sandbox, &mut all);
        println!("{all:?}");
        assert!(all.near > 100 && all.distances > 100, "{all:?}");
    }
}

fn compare(sandbox: &Sandbox, all: &mut Compared) {
    let Some(recorded) = Recorded::short(sandbox, MOST) else {
        return;
    };
    let (program, module) = (recorded.program(), recorded.bytes());
    let path = recorded.path().unwrap();
    let values = recorded.values().unwrap();
    let run = recorded.run_from_checkpoints().unwrap();
    let host = HostReads::new(&values, run, recorded.file().clone());
    let mut random = SplitMix64(path.length());
    for _ in 0..ASKED {
        let time = 1 + random.below(path.length() as usize) as u64;
        let instance = values.at(time).unwrap().expect("an execution");
        let node = &path.nodes()[instance.node];
        let compiled = values.compiled(instance.node).unwrap();
        let statements = Statement::all(program, &compiled.code, &node.blocks);
        let mut wants = Vec::new();
        if !statements.is_empty() {
            let (_, one) = statements[random.below(statements.len())];
            wants.push(match one.kind {
                Kind::Inst(inst) => Want::Inst(inst),
                Kind::Call(_) | Kind::Return | Kind::Throw => Want::End,
            });
        }
        wants.push(Want::Block(random.below(node.blocks.len())));
        wants.push(Want::Variable(0));
        for want in wants {
            distances(&host, module, (instance.time, want), all);
            for depth in [0, 1, 2, 3, 7] {
                let criterion = Criterion {
                    start: instance.time,
                    wants: vec![want],
                    reach: Reach::of_depth(depth).expect("not too deep"),
                };
                let criteria = [criterion];
                for follows in FOLLOWS {
                    let found = near(&host, module, follows, &criteria, 100_000).unwrap();
                    let Some(found) = found else {
                        all.left += 1;
                        continue;
                    };
                    let log = recorded.log().unwrap();
                    let expected = backward(run, log, follows, criteria.to_vec()).unwrap();
                    assert_eq!(found, expected, "{criteria:?} {follows:?}");
                    all.near += 1;
                    all.executions += found.executions();
                    all.initial += found.initial.len();
                }
            }
        }
    }
}

/// Checks the distances of operators against the bounds from slices of each depth, and their kinds
/// against slices along each kind.
fn distances<'a>(
    host: &HostReads<'_, 'a>,
    module: &'a [u8],
    (start, want): (u64, Want),
    all: &mut Compared,
) {
    const DEPTH: u8 = 6;
    let of = |depth| {
        [Criterion {
            start,
            wants: vec![want],
            reach: Reach::of_depth(depth).expect("not too deep"),
        }]
    };
    let slice = |follows, depth| near(host, module, follows, &of(depth), 100_000).unwrap();
    // If the deepest slice requires following the run, leave out the start.
    let Some(_) = slice(Follows::ALL, DEPTH) else {
        return;
    };
    let mut each = |function, op| Visibility::Line((function, op));
    let most = (usize::MAX, usize::MAX);
    let found = nearest(host, module, &of(0), &mut each, most).unwrap();
    assert!(!found.cut);
    assert!(found.lines.is_sorted_by_key(|one| one.distance));
    let by_kind = [Follows::THIN, Follows::DATA, Follows::ALL];
    for (number, follows) in by_kind.into_iter().enumerate() {
        for depth in 0..=DEPTH {
            let Some(Slice { operators, .. }) = slice(follows, depth) else {
                continue;
            };
            // The length of the longest dependence of the kind.
            let most = [3, 60, 60][number] * u32::from(depth);
            for &place in operators.keys() {
                let of = found.lines.iter().find(|one| one.line == place);
                let of = of.expect("every operator of the slice");
                assert!(of.distance <= most, "{of:?} at {depth}");
            }
            // Each dependence counts at least 1.
            let reached = |distance| distance <= u32::from(depth);
            let kind = [Through::Values, Through::Addresses, Through::Control][number];
            for of in found.lines.iter().filter(|of| reached(of.distance)) {
                if of.through == kind {
                    assert!(operators.contains_key(&of.line), "{of:?} at {depth}");
                }
            }
        }
    }
    all.distances += found.lines.len();
    for one in &found.lines {
        all.through[one.through as usize] += 1;
    }
    // A limit cuts off the end of the list.
    let some = found.lines.len() / 2;
    if some == 0 {
        return;
    }
    let cut = nearest(host, module, &of(0), &mut each, (some, usize::MAX)).unwrap();
    assert_eq!(cut.lines, found.lines[..some]);
    assert!(cut.cut);
}
