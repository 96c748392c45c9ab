//! Tests locations as people write them, on a small program.

use std::path::Path;

use afterimage_ids::{FuncId, OpId, OrigOffset};
use afterimage_profile::Resolver;
use afterimage_profile::location::{Occurrence, Place, ResolveError, Resolved};
use afterimage_program::{LineError, NameError, Names, Program, SourceMap};

/// A program in which all operators except the last of a body have two bytes, because the line
/// tables of the `wat` crate are one byte off.
const TEXT: &str = r#"(module
  (import "env" "log" (func $log (param i32)))
  (func $main (export "start")
    call $"run::{closure#0}"
    call $"run::{closure#0}"
    call $"run::{closure#0}")
  (func $"run::{closure#0}"
    i32.const 7 call $log

    i32.const 8
    call $log)
  (func $"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE")
  (func $a..b)
  (func $"weird#3"))
"#;

fn check(questions: impl Fn(&Resolver<'_>, &Program)) {
    let mut parser = wat::Parser::new();
    parser.generate_dwarf(wat::GenerateDwarf::Lines);
    let module = parser
        .parse_str(Some(Path::new("src/small.wat")), TEXT)
        .unwrap();
    let program = Program::parse(&module).unwrap();
    let source = SourceMap::build(&module);
    let names = Names::build(&program, &module, &source);
    questions(&Resolver::new(&program, &module, &names, &source), &program);
}

fn func(index: u32) -> FuncId {
    FuncId::from_u32(index)
}

fn function(index: u32) -> Resolved {
    Resolved {
        place: Place::Function(func(index)),
        occurrence: None,
    }
}

#[test]
fn functions_by_index_name_and_demangled_name() {
    check(|at, _| {
        for (text, index) in [
            ("0", 0),
            ("func[2]", 2),
            ("main", 1),
            ("log", 0),
            ("run::{closure#0}", 2),
            ("core::fmt::Formatter::pad", 3),
            ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", 3),
            // This text does not mean the third execution of a function called `weird`.
            ("weird#3", 5),
        ] {
            assert_eq!(at.location(text).unwrap(), function(index), "{text}");
        }
        let second = at.location("run::{closure#0}#2").unwrap();
        assert_eq!(second.place, Place::Function(func(2)));
        assert_eq!(second.occurrence, Some(Occurrence::Kth(2)));
        let last = at.location("weird#3#last").unwrap();
        assert_eq!(last.place, Place::Function(func(5)));
        assert_eq!(last.occurrence, Some(Occurrence::Last));
    });
}

#[test]
fn operators_by_offset() {
    check(|at, program| {
        let body = program.function(func(1)).unwrap().body.start.0;
        // One byte encodes that there are no locals.
        let second = Place::Operator(func(1), OpId::from_u32(1));
        assert_eq!(at.location("main+3").unwrap().place, second);
        assert_eq!(at.location("main+0x3#9").unwrap().place, second);
        let absolute = format!("@{:#x}", body + 3);
        assert_eq!(at.location(&absolute).unwrap().place, second);

        // This is the first operator of a function, after its locals.
        let first = Place::Operator(func(1), OpId::from_u32(0));
        assert_eq!(at.location("main+0").unwrap().place, first);

        let nearest = |text: &str| match at.location(text) {
            Err(ResolveError::NoOperator { nearest, .. }) => nearest,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(nearest("main+4"), Some(OrigOffset(body + 3)));
        assert_eq!(nearest("@0"), Some(OrigOffset(body + 1)));
        assert!(nearest("@0xffffffff").is_some());
        let imported = at.location("log+1").unwrap_err();
        assert_eq!(
            imported.to_string(),
            "log is imported, so its code is not in this module"
        );
    });
}

#[test]
fn lines_are_all_their_instructions() {
    check(|at, _| {
        let line = |text: &str| match at.location(text).unwrap().place {
            Place::Line(line, operators) => {
                let operators = operators.iter().map(|o| (o.0.as_u32(), o.1.as_u32()));
                (line.number, operators.collect::<Vec<_>>())
            }
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(line("small.wat:8"), (8, vec![(2, 0), (2, 1)]));
        assert_eq!(line("src/small.wat:8:17"), (8, vec![(2, 1)]));
        assert_eq!(line("small.wat:8#4").1.len(), 2);

        let refused = |text: &str| match at.location(text).unwrap_err() {
            ResolveError::Line(error) => error,
            other => panic!("{text}: {other:?}"),
        };
        assert!(matches!(
            refused("small.wat:9"),
            LineError::NoCode {
                nearest: Some(10),
                ..
            }
        ));
        assert!(matches!(
            refused("small.wat:8:1"),
            LineError::NoColumn { .. }
        ));
        assert!(
            matches!(refused("smal.wat:8"), LineError::UnknownFile { nearest, .. } if nearest == ["small.wat"])
        );
    });
}

#[test]
fn ranges_are_cut_where_both_ends_exist() {
    check(|at, _| {
        assert_eq!(at.range("main..log").unwrap(), (function(1), function(0)));
        assert_eq!(at.range("a..b..main").unwrap(), (function(4), function(1)));
        assert_eq!(at.range("main..a..b").unwrap(), (function(1), function(4)));
        let (first, last) = at.range("small.wat:4#2..small.wat:5#last").unwrap();
        assert_eq!(first.occurrence, Some(Occurrence::Kth(2)));
        assert_eq!(last.occurrence, Some(Occurrence::Last));
        assert!(matches!(at.range("main"), Err(ResolveError::NoRange(_))));
        assert!(matches!(
            at.range("main..nothing"),
            Err(ResolveError::Name(_))
        ));
    });
}

#[test]
fn what_does_not_exist_is_refused_with_the_nearest() {
    check(|at, _| {
        let unknown = at.location("maim").unwrap_err();
        let nearest = |error: &ResolveError| match error {
            ResolveError::Name(NameError::Unknown { nearest, .. }) => nearest.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(nearest(&unknown)[0], "main");
        assert_eq!(nearest(&at.location("maim#3").unwrap_err())[0], "main");
        assert!(matches!(
            at.location("99"),
            Err(ResolveError::Name(NameError::NoIndex {
                index: 99,
                last: 5
            }))
        ));
        assert_eq!(at.location("").unwrap_err(), ResolveError::Empty);
        assert_eq!(at.location("#1").unwrap_err(), ResolveError::Empty);
        assert!(matches!(
            at.location("main#0"),
            Err(ResolveError::Zeroth(_))
        ));
        for odd in [
            "@", "#", ":", "+", "..", "@0x", "::", "a:b:c", "+1", ":1", "é:1", "#last",
        ] {
            assert!(at.location(odd).is_err(), "{odd}");
        }
    });
}

#[test]
fn what_is_written_wrongly_is_told_from_an_unknown_name() {
    check(|at, _| {
        for (wrong, why) in [
            ("small.wat:8#x", "after the #"),
            ("small.wat:8#", "after the #"),
            ("main#-1", "after the #"),
            ("main#99999999999999999999999", "too large"),
            ("small.wat:0", "not followed by a line"),
            ("small.wat:", "not followed by a line"),
            ("small.wat:x#2", "not followed by a line"),
            ("small.wat:8:x", "not followed by a column"),
            ("@zz", "not an offset"),
            ("@0x#1", "not an offset"),
            ("main+zz", "not followed by a distance"),
            ("50%#2", "which occurs only once"),
            ("end#2", "which occurs only once"),
            ("t=3", "not a place"),
            ("maim#x", "no function is called"),
            ("end", "no function is called"),
            ("a::0", "no function is called"),
        ] {
            let error = at.location(wrong).unwrap_err().to_string();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    });
}
