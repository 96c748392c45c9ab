//! Slices of a few dependences, looked up step by step, agree with following the run back.

use afterimage_analyses::slices::{Criterion, Follows, Reach, Want, backward, near};
use afterimage_program::Program;
use afterimage_replay::paths::recorded_path;
use afterimage_replay::steps::{Run, recorded_checkpoints, stopped_before};
use afterimage_replay::values::{HostReads, Kind, Statement, recorded_epochs, recorded_values};
use afterimage_testkit::modules::SplitMix64;
use afterimage_trace::TraceFile;

use crate::common::Sandbox;
use crate::common::generated::{each_with_values, seeds};

/// Longer runs are left out.
const MOST: u64 = 5000;
/// The number of executions of nodes in the questions about a run.
const ASKED: u64 = 40;

const FOLLOWS: [Follows; 4] = [Follows::ALL, Follows::DATA, Follows::THIN, Follows::CONTROL];

#[derive(Debug, Default)]
struct Compared {
    /// Slices that were made without following the run.
    near: usize,
    /// Slices for which the run was followed.
    left: usize,
    executions: u64,
    initial: usize,
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
    } = all;
    assert!(
        near > 5000 && executions > 50_000 && initial > 100,
        "{all:?}"
    );
    assert!(left > 50, "{all:?}");
}

fn compare(sandbox: &Sandbox, all: &mut Compared) {
    let file = TraceFile::open(&sandbox.path("run.aft")).unwrap();
    let module = file.module().unwrap();
    let program = Program::parse(&module).unwrap();
    let Some(path) = recorded_path(&file, &program).unwrap() else {
        return;
    };
    if !(1..=MOST).contains(&path.length()) {
        return;
    }
    let Some(epochs) = recorded_epochs(&file, &path).unwrap() else {
        return;
    };
    let values = recorded_values(&program, &module, &path, &epochs).unwrap();
    let checkpoints = recorded_checkpoints(&file, &path).unwrap();
    let run = Run {
        program: &program,
        module: &module,
        path: &path,
        continuations: &path.segments().directory().continuations,
        stopped: file
            .end()
            .unwrap()
            .and_then(|end| stopped_before(&program, &module, &end)),
        checkpoints: checkpoints.as_ref(),
        snapshots: None,
        progress: &|_| {},
    };
    let host = HostReads::new(&values, run, file.clone());
    let mut random = SplitMix64(path.length());
    for _ in 0..ASKED {
        let time = 1 + random.below(path.length() as usize) as u64;
        let instance = values.at(time).unwrap().expect("an execution");
        let node = &path.nodes()[instance.node];
        let compiled = values.compiled(instance.node).unwrap();
        let statements = Statement::all(&program, &compiled.code, &node.blocks);
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
            for depth in [0, 1, 2, 3, 7] {
                let criterion = Criterion {
                    start: instance.time,
                    wants: vec![want],
                    reach: Reach::of_depth(depth).expect("not too deep"),
                };
                let criteria = [criterion];
                for follows in FOLLOWS {
                    let found = near(&host, &module, follows, &criteria, 100_000).unwrap();
                    let Some(found) = found else {
                        all.left += 1;
                        continue;
                    };
                    let log = file.log().unwrap();
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
