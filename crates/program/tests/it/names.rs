//! Tests the sources of names, and the fallbacks.

use afterimage_ids::FuncId;
use afterimage_program::{NameError, Names, Program, SourceMap};

/// Resolves a query without debug information.
fn find(names: &Names, query: &str) -> Result<FuncId, NameError> {
    names.find(query, &SourceMap::build(&[]))
}

fn names(bytes: &[u8]) -> (Program, Names) {
    let program = Program::parse(bytes).unwrap();
    let names = Names::build(&program, bytes, &SourceMap::build(bytes));
    (program, names)
}

#[test]
fn name_section_then_exports_then_imports_then_index() {
    let text = r#"(module
      (import "env" "f" (func))
      (import "env" "g" (func $named_import))
      (func $named (export "exported_too") (param $x i32) (local $y i64)
        (block $outer (loop $inner (br $inner))))
      (func (export "exported") (export "again"))
      (func)
      (func $_ZN5space3fooEibc)
      (func $_ZN5space5other3fooEv))"#;
    let (_, names) = names(&wat::parse_str(text).unwrap());
    let id = FuncId::from_u32;
    let shown: Vec<_> = names.functions().map(|f| names.function(f)).collect();
    assert_eq!(
        shown,
        [
            "env.f",
            "named_import",
            "named",
            "exported",
            "func[4]",
            "space::foo(int, bool, char)",
            "space::other::foo()"
        ]
    );
    assert_eq!(names.raw(id(4)), None);
    // A function is also found by its export names.
    assert_eq!(find(&names, "exported_too"), Ok(id(2)));
    assert_eq!(find(&names, "again"), Ok(id(3)));
    assert_eq!(names.raw(id(5)), Some("_ZN5space3fooEibc"));
    assert_eq!(names.raw(id(99)), None);
    assert_eq!(
        (names.local(id(2), 0), names.local(id(2), 1)),
        (Some("x"), Some("y"))
    );
    assert_eq!(
        (names.label(id(2), 0), names.label(id(2), 1)),
        (Some("outer"), Some("inner"))
    );
    assert_eq!(names.local(id(3), 0), None);

    for (query, function) in [
        ("named", 2),
        ("4", 4),
        ("func[4]", 4),
        ("func4", 4),
        ("_ZN5space3fooEibc", 5),
        ("space::foo(int, bool, char)", 5),
        ("space::foo", 5),
        ("other::foo", 6),
    ] {
        assert_eq!(find(&names, query), Ok(id(function)), "{query}");
    }
    let Err(error @ NameError::Ambiguous { .. }) = find(&names, "foo") else {
        panic!()
    };
    assert_eq!(
        error.to_string(),
        "\"foo\" is ambiguous: func[5] space::foo(int, bool, char), func[6] space::other::foo()"
    );
    assert_eq!(
        find(&names, "7").unwrap_err().to_string(),
        "there is no function 7; the last is 6"
    );
    let error = find(&names, "exportd").unwrap_err();
    assert_eq!(
        error.to_string(),
        "no function is called \"exportd\"; did you mean exported?"
    );
    assert!(matches!(find(&names, ""), Err(NameError::Unknown { .. })));
    assert!(
        matches!(find(&names, "oo"), Err(NameError::Unknown { .. })),
        "only whole segments"
    );
}

#[test]
fn a_broken_name_section_gives_what_came_before_and_a_warning() {
    let mut bytes = wat::parse_str("(module (func (export \"e\")))").unwrap();
    // The custom section "name" has functions (1) in 4 bytes. They are two names, 0 → "a", and then
    // the end is missing.
    bytes.extend(b"\0\x0b\x04name\x01\x04\x02\0\x01a");
    let (_, names) = names(&bytes);
    assert_eq!(names.function(FuncId::from_u32(0)), "a");
    assert_eq!(names.warnings().len(), 1, "{:?}", names.warnings());
}

#[test]
fn without_a_name_section_names_come_from_debug_information() {
    let guest = crate::guests::with_debug_information();
    let (program, with) = names(guest);
    let mut stripped = guest.to_vec();
    let at = guest
        .windows(6)
        .rposition(|w| w == b"\x04name\0" || w == b"\x04name\x01")
        .unwrap();
    stripped[at + 1] = b'N';
    let (_, without) = names(&stripped);
    let source = SourceMap::build(guest);
    let mut by_debug_information = 0;
    for function in &program.functions {
        let exported = program.exports.iter().any(|(_, id)| *id == function.id);
        if let Some(name) = source.linkage_name(function.body.start)
            && !exported
        {
            assert_eq!(without.raw(function.id), Some(&*name));
            by_debug_information += usize::from(with.raw(function.id) == Some(&*name));
        }
    }
    assert!(
        by_debug_information > 100,
        "{by_debug_information} of {}",
        program.functions.len()
    );
}

#[test]
fn main_is_what_compilers_call_it() {
    for called in ["__original_main", "__main_argc_argv"] {
        let text = format!("(module (func $_start) (func ${called}))");
        let (_, names) = names(&wat::parse_str(text).unwrap());
        assert_eq!(find(&names, "main"), Ok(FuncId::from_u32(1)), "{called}");
    }
    for called in ["__original_main", "__main_argc_argv"] {
        let text = format!("(module (func ${called}) (func $f))");
        let (_, names) = names(&wat::parse_str(text).unwrap());
        assert_eq!(names.function(FuncId::from_u32(0)), "main", "{called}");
    }
    // In Rust, the crate has its own `main`.
    let rust = "(module (func $__main_argc_argv) (func $_ZN3app4main17h0123456789abcdefE))";
    let (_, of_rust) = names(&wat::parse_str(rust).unwrap());
    assert_eq!(of_rust.function(FuncId::from_u32(0)), "__main_argc_argv");
    assert_eq!(find(&of_rust, "main"), Ok(FuncId::from_u32(1)));
    let both = "(module (func $main) (func $__original_main))";
    let (_, names) = names(&wat::parse_str(both).unwrap());
    assert_eq!(find(&names, "main"), Ok(FuncId::from_u32(0)));
}

#[test]
fn generic_functions_are_found_without_what_a_user_leaves_out() {
    let text = r#"(module
        (func $"double mix<double>(double, double)")
        (func $"int ns::pick<int>(int)")
        (func $"int ns::pick<char>(char)")
        (func $"Stack<int>::push(int)")
        (func $"_RINvC3app5applyNCNvC3app4main0EB2_")
        (func $"non-virtual thunk to Stack<int>::push(int)"))"#;
    let (_, names) = names(&wat::parse_str(text).unwrap());
    let found = |query: &str| find(&names, query).map(|id| id.as_u32());
    for query in [
        "mix",
        "mix<double>",
        "double mix<double>",
        "mix<double>(double, double)",
        "_Z3mixIdET_S0_S0_",
    ] {
        assert_eq!(found(query), Ok(0), "{query}");
    }
    for query in ["ns::pick<char>", "pick<char>", "pick<char>(char)"] {
        assert_eq!(found(query), Ok(2), "{query}");
    }
    for query in ["push", "Stack::push", "Stack<int>::push"] {
        assert_eq!(found(query), Ok(3), "{query}");
    }
    assert_eq!(
        names.function(FuncId::from_u32(4)),
        "app::apply::<app::main::{closure#0}>"
    );
    for query in ["app::apply", "apply", "_RINvC3app5applyNCNvC3app4main0EB2_"] {
        assert_eq!(found(query), Ok(4), "{query}");
    }
    for query in ["pick", "ns::pick"] {
        let error = find(&names, query).unwrap_err().to_string();
        assert!(
            error.contains("func[1] ") && error.contains("func[2] "),
            "{error}"
        );
    }
    for query in ["ick", "s::pick", "ns::mix", "mix<int>", "_Z3mixIiET_S0_S0_"] {
        assert!(found(query).is_err(), "{query}");
    }
}

#[test]
fn an_exact_name_goes_before_what_else_may_be_meant_and_blanks_do_not_matter() {
    let text = r#"(module
        (func $"plain(double)")
        (func $"ns::plain(int)")
        (func $"double ns::Box<int, 2>::sum<double>(double)")
        (func $"int ns::Box<int, 3>::sum<int>(int)")
        (func $"_RNvMC3appINtB2_1WfE3get")
        (func $"_RNvMC3appINtB2_1WdE3get")
        (func $"_RNvXC3appINtB2_1WfENtB2_2Tr2of")
        (func $"A::f()")
        (func $"A::f() const"))"#;
    let (_, names) = names(&wat::parse_str(text).unwrap());
    let shown = |id| names.function(FuncId::from_u32(id));
    assert_eq!(
        [shown(4), shown(5), shown(6)],
        [
            "<app::W<f32>>::get",
            "<app::W<f64>>::get",
            "<app::W<f32> as app::Tr>::of"
        ]
    );
    let found = |query: &str| find(&names, query).map(|id| id.as_u32());
    for (query, function) in [
        ("plain(double)", 0),
        ("plain ( double )", 0),
        ("::plain", 0),
        ("ns::plain", 1),
        ("plain(int)", 1),
        ("ns::Box<int,2>::sum<double>", 2),
        ("ns::Box< int, 2 >::sum<double>(double)", 2),
        ("double ns::Box<int,2>::sum<double>(double)", 2),
        ("Box::sum<int>", 3),
        ("W<f32>::get", 4),
        ("app::W<f64>::get", 5),
        ("<W<f64>>::get", 5),
        ("W::of", 6),
        ("Tr::of", 6),
        ("<W as Tr>::of", 6),
        ("A::f()", 7),
        ("f() const", 8),
        ("A::f()const", 8),
    ] {
        assert_eq!(found(query), Ok(function), "{query}");
    }
    for (query, candidates) in [
        ("plain", [0, 1]),
        ("Box::sum", [2, 3]),
        ("W::get", [4, 5]),
        ("app::W::get", [4, 5]),
        ("f", [7, 8]),
    ] {
        let Err(NameError::Ambiguous {
            candidates: found, ..
        }) = find(&names, query)
        else {
            panic!("{query}");
        };
        assert_eq!(
            Vec::from_iter(found.iter().map(|(id, _)| id.as_u32())),
            candidates,
            "{query}"
        );
    }
    // The function exists with other arguments.
    let error = find(&names, "W<u8>::get").unwrap_err().to_string();
    assert!(
        error.ends_with("did you mean <app::W<f32>>::get, <app::W<f64>>::get?"),
        "{error}"
    );
}
