//! Tests orders, limits and scopes of reports, on functions with one block each.

use afterimage_ids::{BlockId, Counts, FuncId, FunctionCounts};
use afterimage_profile::{
    By, Options, Profile, ProfileError, Report, Rows, Scope, Sort, Stop, add_counts,
};
use afterimage_program::{Names, Program, SourceMap};

const TEXT: &str = r#"(module
  (func $c nop nop nop)
  (func $a nop)
  (func $d nop nop nop nop nop nop)
  (func $b nop))"#;

/// The number of entries of each function, in their order.
const ENTRIES: [u64; 4] = [2, 6, 1, 0];

fn with_profile<R>(ask: impl FnOnce(&Profile<'_>) -> R) -> R {
    let module = wat::parse_str(TEXT).unwrap();
    let program = Program::parse(&module).unwrap();
    let source = SourceMap::build(&module);
    let names = Names::build(&program, &module, &source);
    let functions = ENTRIES.map(|entries| FunctionCounts {
        entries,
        edges: vec![entries],
        open: vec![],
    });
    let counts = Counts {
        functions: functions.into(),
    };
    ask(&Profile::new(&program, &module, &counts, &[], &names, &source).unwrap())
}

/// Returns the names of the functions in a report's rows.
fn functions(profile: &Profile<'_>, options: Options) -> String {
    let report = Report::new(profile, &options).unwrap();
    assert_eq!(report.totals, profile.totals());
    let ids: Vec<FuncId> = match report.rows {
        Rows::Functions(rows) => rows.iter().map(|row| row.function).collect(),
        Rows::Blocks(rows) => rows.iter().map(|row| row.function).collect(),
        Rows::Edges(rows) => rows.iter().map(|row| row.function).collect(),
        Rows::Instructions(rows) => rows.iter().map(|row| row.function).collect(),
        Rows::Lines(rows) => panic!("{rows:?}"),
    };
    ids.into_iter()
        .map(|id| profile.names().function(id))
        .collect()
}

#[test]
fn rows_come_in_the_order_asked_for() {
    with_profile(|profile| {
        for (sort, expected) in [
            (None, "cadb"),
            (Some(Sort::Program), "cadb"),
            (Some(Sort::Name), "abcd"),
            (Some(Sort::Count), "acdb"),
            // c, a and d each executed 6 instructions. The function with more entries comes first.
            (Some(Sort::Instructions), "acdb"),
        ] {
            for by in [By::Function, By::Block, By::Edge] {
                let options = Options {
                    by,
                    sort,
                    ..Options::default()
                };
                assert_eq!(functions(profile, options), expected, "{by:?} {sort:?}");
            }
        }
    });
}

#[test]
fn the_top_rows_are_the_hottest_unless_sorted_otherwise() {
    with_profile(|profile| {
        let by = By::Instruction;
        let top = |sort| {
            functions(
                profile,
                Options {
                    by,
                    sort,
                    top: Some(5),
                    ..Options::default()
                },
            )
        };
        // Ties stay in program order: first one instruction of a, then those of c.
        assert_eq!(top(None), "acccd");
        assert_eq!(top(Some(Sort::Name)), "abccc");
        assert_eq!(top(Some(Sort::Program)), "cccad");
        let none = Options {
            top: Some(0),
            ..Options::default()
        };
        let report = Report::new(profile, &none).unwrap();
        assert!(report.rows.is_empty());
        assert_eq!(report.available, 4);
    });
}

#[test]
fn a_scope_leaves_out_the_other_functions() {
    with_profile(|profile| {
        let scope = Scope::Only([3, 0, 3, 99].map(FuncId::from_u32).into());
        assert_eq!(
            functions(
                profile,
                Options {
                    scope,
                    ..Options::default()
                }
            ),
            "cb"
        );
    });
}

#[test]
fn instructions_have_their_text() {
    with_profile(|profile| {
        let options = Options {
            by: By::Instruction,
            ..Options::default()
        };
        let Rows::Instructions(rows) = Report::new(profile, &options).unwrap().rows else {
            panic!("instructions were asked for");
        };
        assert_eq!(rows.len(), 11);
        assert!(rows.iter().all(|row| &*row.text == "nop"));
    });
}

#[test]
fn what_does_not_fit_the_program_is_refused() {
    let module = wat::parse_str("(module (func nop nop))").unwrap();
    let program = Program::parse(&module).unwrap();
    let source = SourceMap::build(&module);
    let names = Names::build(&program, &module, &source);
    let function = &program.functions[0];
    let block = function.cfg.graph.root();
    let stop = |op| Stop {
        function: function.id,
        block,
        next: afterimage_ids::OpId::from_u32(op),
    };
    let refused = |module: &[u8], functions: Vec<FunctionCounts>, stops: &[Stop]| {
        let counts = Counts { functions };
        Profile::new(&program, module, &counts, stops, &names, &source).err()
    };
    let counts = |entries, edges, open| FunctionCounts {
        entries,
        edges,
        open,
    };
    let open = || vec![counts(1, vec![0], vec![(block, 1)])];

    assert_eq!(refused(&module, open(), &[stop(1)]), None);
    assert!(matches!(
        refused(&module, vec![], &[]),
        Some(ProfileError::Functions { .. })
    ));
    let edges = refused(&module, vec![counts(0, vec![], vec![])], &[]);
    assert!(matches!(edges, Some(ProfileError::Edges { .. })));
    let flow = refused(&module, vec![counts(2, vec![1], vec![])], &[]);
    assert!(matches!(
        flow,
        Some(ProfileError::Flow {
            entered: 2,
            left: 1,
            ..
        })
    ));
    for stops in [&[][..], &[stop(1), stop(2)]] {
        let frames = refused(&module, open(), stops);
        assert!(matches!(
            frames,
            Some(ProfileError::OpenFrames { open: 1, .. })
        ));
    }
    let nowhere = refused(&module, open(), &[stop(9)]);
    assert!(matches!(nowhere, Some(ProfileError::NoSuchStop { .. })));
    let huge = refused(&module, vec![counts(u64::MAX, vec![u64::MAX], vec![])], &[]);
    assert!(matches!(huge, Some(ProfileError::Overflow { .. })));
    let bytes = refused(
        &module[..module.len() - 2],
        vec![counts(1, vec![1], vec![])],
        &[],
    );
    assert!(matches!(bytes, Some(ProfileError::Body { .. })));
}

#[test]
fn sums_of_runs_are_exact_or_refused() {
    let module = wat::parse_str("(module (func $f nop))").unwrap();
    let program = Program::parse(&module).unwrap();
    let of = |entries, open: &[(BlockId, u64)]| Counts {
        functions: vec![FunctionCounts {
            entries,
            edges: vec![entries],
            open: open.into(),
        }],
    };
    let [first, second] = [0, 1].map(BlockId::from_u32);
    let mut sum = of(3, &[(second, 1)]);
    add_counts(&program, &mut sum, &of(4, &[(first, 2), (second, 5)])).unwrap();
    assert_eq!(sum, of(7, &[(first, 2), (second, 6)]));

    let added = add_counts(&program, &mut sum, &of(u64::MAX - 6, &[]));
    assert!(matches!(added, Err(ProfileError::Overflow { .. })));
    let message = added.unwrap_err().to_string();
    assert!(
        message.contains("func0") && message.contains("64 bits"),
        "{message}"
    );
    let others = add_counts(&program, &mut sum, &Counts::default());
    assert!(matches!(others, Err(ProfileError::Functions { .. })));
}
