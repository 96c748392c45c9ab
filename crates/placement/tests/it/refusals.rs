//! Checks that inconsistent input is refused by name.

use afterimage_ids::{BlockId, Counts, EdgeId, EntityRef, FuncId};
use afterimage_placement::{
    Counted, Mode, OpenFrame, Plan, PlanError, PlanOptions, RunFacts, Site, SolveError, plan, solve,
};
use afterimage_program::Program;
use afterimage_testkit::graphs::programs::{call_chain, tail_call, without_calls};

fn options(mode: Mode) -> PlanOptions<'static> {
    PlanOptions::new(mode)
}

fn planned(program: &Program, mode: Mode) -> Plan {
    plan(program, &options(mode)).expect("a plan")
}

fn frame(function: usize, block: usize) -> OpenFrame {
    OpenFrame {
        function: FuncId::new(function),
        block: BlockId::new(block),
        callee_entered: true,
    }
}

fn open(frame: OpenFrame) -> RunFacts {
    RunFacts {
        open: vec![frame],
        ..RunFacts::default()
    }
}

#[test]
fn feedback_needs_fitting_counts() {
    let program = call_chain(2);
    assert_eq!(
        plan(&program, &options(Mode::Feedback)),
        Err(PlanError::NoFeedback)
    );
    let none = Counts::default();
    let with_none = PlanOptions {
        feedback: Some(&none),
        ..options(Mode::Feedback)
    };
    let error = PlanError::FeedbackOfAnotherProgram {
        expected: 2,
        found: 0,
    };
    assert_eq!(plan(&program, &with_none), Err(error));
    let empty = Counts {
        functions: vec![Default::default(); 2],
    };
    let with_empty = PlanOptions {
        feedback: Some(&empty),
        ..options(Mode::Program)
    };
    let error = PlanError::FeedbackOfAnotherFunction(FuncId::new(1));
    assert_eq!(plan(&program, &with_empty), Err(error));
}

#[test]
fn standalone_is_for_chords_only() {
    for mode in [Mode::Slow, Mode::Edges, Mode::Program] {
        let standalone = PlanOptions {
            standalone: true,
            ..options(mode)
        };
        assert_eq!(
            plan(&call_chain(1), &standalone),
            Err(PlanError::StandaloneUnsupported)
        );
    }
}

#[test]
fn counters_must_be_as_many_as_planned() {
    let program = call_chain(1);
    let quick = planned(&program, Mode::Quick);
    let error = SolveError::CounterCount {
        expected: quick.counters as usize,
        found: 0,
    };
    assert_eq!(
        solve(&program, &quick, &[], &RunFacts::default()),
        Err(error)
    );
    let error = SolveError::ForeignProgram {
        expected: 2,
        found: 1,
    };
    let counters = vec![0; quick.counters as usize];
    assert_eq!(
        solve(&call_chain(2), &quick, &counters, &RunFacts::default()),
        Err(error)
    );
}

#[test]
fn blocks_alone_do_not_determine_edges() {
    // Edges that lead from one pair of blocks to another, crosswise.
    let edges = [
        (0, 1),
        (0, 2),
        (1, 3),
        (1, 4),
        (2, 3),
        (2, 4),
        (3, 5),
        (4, 5),
    ];
    let program = without_calls(6, &edges);
    let slow = planned(&program, Mode::Slow);
    let counters = vec![0; slow.counters as usize];
    let result = solve(&program, &slow, &counters, &RunFacts::default());
    assert!(
        matches!(result, Err(SolveError::Undetermined { .. })),
        "{result:?}"
    );
}

#[test]
fn a_plan_without_a_needed_counter_is_refused() {
    let program = call_chain(1);
    let mut quick = planned(&program, Mode::Quick);
    quick.functions[0].probes.pop();
    let counters = vec![0; quick.counters as usize];
    let result = solve(&program, &quick, &counters, &RunFacts::default());
    assert!(
        matches!(result, Err(SolveError::Undetermined { .. })),
        "{result:?}"
    );
}

#[test]
fn a_plan_with_places_that_do_not_exist_is_refused() {
    let program = call_chain(1);
    for site in [Site::Edge(EdgeId::new(99)), Site::Block(BlockId::new(99))] {
        let mut quick = planned(&program, Mode::Quick);
        quick.functions[0].probes[0].site = site;
        let counters = vec![0; quick.counters as usize];
        let place = match site {
            Site::Edge(e) => Counted::Edge(e),
            Site::Block(v) => Counted::Block(v),
        };
        let error = SolveError::ForeignPlan {
            function: FuncId::new(1),
            place,
        };
        assert_eq!(
            solve(&program, &quick, &counters, &RunFacts::default()),
            Err(error)
        );
    }
    let mut quick = planned(&program, Mode::Quick);
    quick.derived.push((FuncId::new(7), EdgeId::new(0)));
    quick.mode = Mode::Program;
    let counters = vec![0; quick.counters as usize];
    let result = solve(&program, &quick, &counters, &RunFacts::default());
    assert!(
        matches!(result, Err(SolveError::ForeignPlan { .. })),
        "{result:?}"
    );
}

#[test]
fn frames_that_cannot_be_are_refused() {
    let program = call_chain(1);
    let quick = planned(&program, Mode::Quick);
    let counters = vec![0; quick.counters as usize];
    for frame in [frame(0, 0), frame(9, 0), frame(1, 9), frame(1, 3)] {
        let error = SolveError::BadFrame {
            function: frame.function,
            block: frame.block,
        };
        assert_eq!(solve(&program, &quick, &counters, &open(frame)), Err(error));
    }
}

#[test]
fn a_standalone_plan_takes_no_frames_at_calls() {
    let program = call_chain(1);
    let standalone = PlanOptions {
        standalone: true,
        ..options(Mode::Quick)
    };
    let quick = plan(&program, &standalone).expect("a plan");
    let counters = vec![0; quick.counters as usize];
    let error = SolveError::UnexpectedFrame {
        function: FuncId::new(1),
        block: BlockId::new(1),
    };
    assert_eq!(
        solve(&program, &quick, &counters, &open(frame(1, 1))),
        Err(error)
    );
}

#[test]
fn negative_counts_are_refused() {
    let program = call_chain(1);
    let edges = planned(&program, Mode::Edges);
    // A frame ended in the call, but nothing ever entered it.
    let counters = vec![0; edges.counters as usize];
    let result = solve(&program, &edges, &counters, &open(frame(1, 1)));
    assert!(
        matches!(result, Err(SolveError::Unbalanced { .. })),
        "{result:?}"
    );
    let quick = planned(&program, Mode::Quick);
    let mut counters = vec![0; quick.counters as usize];
    counters[0] = u64::MAX;
    counters[1] = 5;
    let result = solve(&program, &quick, &counters, &RunFacts::default());
    assert!(
        matches!(result, Err(SolveError::Impossible { .. })),
        "{result:?}"
    );
}

#[test]
fn the_whole_program_needs_the_calls_of_imports() {
    let program = call_chain(2);
    let whole = planned(&program, Mode::Program);
    assert!(whole.needs_import_calls);
    let counters = vec![0; whole.counters as usize];
    let mut facts = RunFacts::default();
    let error = Err(SolveError::NoImportCalls { expected: 1 });
    assert_eq!(solve(&program, &whole, &counters, &facts), error);
    facts.import_calls = Some(vec![0, 0]);
    assert_eq!(solve(&program, &whole, &counters, &facts), error);
    facts.import_calls = Some(vec![0]);
    assert!(solve(&program, &whole, &counters, &facts).is_ok());
}

#[test]
fn entries_that_nothing_explains_are_refused() {
    let program = call_chain(2);
    let whole = planned(&program, Mode::Program);
    let mut facts = RunFacts {
        import_calls: Some(vec![0]),
        ..RunFacts::default()
    };
    facts.host_entries.push((FuncId::new(0), 1));
    let counters = vec![0; whole.counters as usize];
    let error = SolveError::BadHostEntry(FuncId::new(0));
    assert_eq!(solve(&program, &whole, &counters, &facts), Err(error));
    // There are more calls to the import than any function can have made.
    facts.host_entries.clear();
    facts.import_calls = Some(vec![1]);
    let result = solve(&program, &whole, &counters, &facts);
    let is_refused = matches!(
        result,
        Err(SolveError::Uncoupled(_)
            | SolveError::Impossible { .. }
            | SolveError::Unbalanced { .. })
    );
    assert!(is_refused, "{result:?}");
}

#[test]
fn a_tail_call_that_succeeded_leaves_no_frame() {
    let program = tail_call();
    let whole = planned(&program, Mode::Program);
    let counters = vec![0; whole.counters as usize];
    let facts = RunFacts {
        import_calls: Some(vec![0]),
        ..open(frame(1, 0))
    };
    let error = SolveError::BadFrame {
        function: FuncId::new(1),
        block: BlockId::new(0),
    };
    assert_eq!(solve(&program, &whole, &counters, &facts), Err(error));
}
