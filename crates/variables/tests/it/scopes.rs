//! Tests the variables in scope, and the variable that a name selects.

use afterimage_variables::{Nothing, PathError, Unavailable, VariableKind, VariableLocation};
use gimli::write::{Address, AttributeValue, UnitEntryId};

use crate::common::{Guest, Moment, Opened};

fn flag(guest: &mut Guest, id: UnitEntryId, name: gimli::DwAt) {
    guest.set(id, name, AttributeValue::Flag(true));
}

fn names(opened: &Opened, address: u64) -> Vec<(String, u32, bool)> {
    let variables = opened.in_scope(address).into_iter();
    variables.map(|v| (v.name, v.inlined, v.shadowed)).collect()
}

fn name(name: &str, inlined: u32, shadowed: bool) -> (String, u32, bool) {
    (name.into(), inlined, shadowed)
}

/// Returns `f(x)` with a block at 20..60 that has another `x` and `y`. It contains a block at
/// 30..40 and 50..55 that has `x` again.
fn blocks() -> Opened {
    let mut guest = Guest::new(4);
    let int = guest.int();
    let f = guest.function();
    let x = guest.typed(f, gimli::DW_TAG_formal_parameter, "x", int);
    guest.set(x, gimli::DW_AT_decl_line, AttributeValue::Udata(3));
    let outer = guest.add(f, gimli::DW_TAG_lexical_block, "");
    guest.code(outer, 20..60);
    guest.located(outer, "x", int, |e| e.op_fbreg(4));
    guest.located(outer, "y", int, |e| e.op_fbreg(8));
    let inner = guest.add(outer, gimli::DW_TAG_lexical_block, "");
    guest.ranges(inner, &[30..40, 50..55]);
    guest.located(inner, "x", int, |e| e.op_fbreg(12));
    // A block without its own code has its parent's code.
    let nowhere = guest.add(inner, gimli::DW_TAG_lexical_block, "");
    guest.variable(nowhere, "z", int);
    Opened::new(guest)
}

#[test]
fn inner_variables_shadow_outer_ones() {
    let opened = blocks();
    assert_eq!(names(&opened, 10), [name("x", 0, false)]);
    assert_eq!(
        names(&opened, 20),
        [name("x", 0, false), name("y", 0, false), name("x", 0, true)]
    );
    let all = [
        name("z", 0, false),
        name("x", 0, false),
        name("x", 0, true),
        name("y", 0, false),
        name("x", 0, true),
    ];
    assert_eq!(names(&opened, 30), all);
    assert_eq!(names(&opened, 54), all);
    assert_eq!(names(&opened, 45).len(), 3);
    assert_eq!(names(&opened, 60).len(), 1);
    let x = &opened.in_scope(10)[0];
    assert_eq!((x.kind, x.line), (VariableKind::Parameter, Some(3)));
    let y = &opened.in_scope(30)[3];
    assert_eq!(
        (y.kind, &y.scope[..]),
        (VariableKind::Local, &[opened.at(20)..opened.at(60)][..])
    );
    let moment = Moment::new();
    let place = |address| {
        opened
            .resolve("x", address, &moment)
            .map(|object| object.pieces[0].place.clone())
    };
    assert_eq!(place(30), Ok(VariableLocation::Memory(0x10c)));
    assert_eq!(place(20), Ok(VariableLocation::Memory(0x104)));
    assert_eq!(
        place(60),
        Err(PathError::Unavailable(Unavailable::OptimisedOut))
    );
}

/// Checks a block with an invalid end. `wasm-opt` leaves such a block around a block that it moved.
#[test]
fn a_block_is_where_its_own_code_is_whatever_is_around() {
    let mut guest = Guest::new(4);
    let int = guest.int();
    let f = guest.function();
    let outer = guest.add(f, gimli::DW_TAG_lexical_block, "");
    guest.code(outer, 20..60);
    let end = AttributeValue::Udata(1 << 32);
    guest.set(outer, gimli::DW_AT_high_pc, end);
    guest.located(outer, "lost", int, |e| e.op_fbreg(4));
    let inner = guest.add(outer, gimli::DW_TAG_lexical_block, "");
    guest.code(inner, 30..40);
    guest.located(inner, "x", int, |e| e.op_fbreg(12));
    let opened = Opened::new(guest);
    assert_eq!(
        names(&opened, 35),
        [name("x", 0, false), name("lost", 0, false)]
    );
    // Only the place of the inner block gives the place of the surrounding block.
    assert_eq!(names(&opened, 45), []);
    let error = opened.resolve("lost", 45, &Moment::new()).unwrap_err();
    assert!(error.to_string().contains("lost"), "{error}");
}

#[test]
fn out_of_scope_is_not_unknown() {
    let opened = blocks();
    let moment = Moment::new();
    let nearest = opened.at(20)..opened.at(60);
    let error = opened.resolve("y", 10, &moment).unwrap_err();
    assert_eq!(
        error,
        PathError::NotInScope {
            name: "y".into(),
            nearest
        }
    );
    let error = opened.resolve("yy", 30, &moment).unwrap_err();
    assert!(
        matches!(&error, PathError::NoVariable { name, .. } if name == "yy"),
        "{error}"
    );
}

#[test]
fn inlined_calls_have_their_variables_and_those_that_were_optimised_out() {
    let mut guest = Guest::new(4);
    let int = guest.int();
    let root = guest.root();
    let twice = guest.add(root, gimli::DW_TAG_subprogram, "twice");
    let x = guest.typed(twice, gimli::DW_TAG_formal_parameter, "x", int);
    guest.variable(twice, "lost", int);
    let y = guest.variable(twice, "y", int);
    let fixed = guest.variable(twice, "fixed", int);
    guest.set(fixed, gimli::DW_AT_const_value, AttributeValue::Sdata(4));
    let f = guest.function();
    guest.located(f, "y", int, |e| e.op_fbreg(0));
    let call = guest.add(f, gimli::DW_TAG_inlined_subroutine, "");
    guest.refer(call, gimli::DW_AT_abstract_origin, twice);
    guest.ranges(call, &[20..25, 30..35]);
    for (origin, local) in [(x, 1), (y, 2)] {
        let tag = if origin == x {
            gimli::DW_TAG_formal_parameter
        } else {
            gimli::DW_TAG_variable
        };
        let own = guest.add(call, tag, "");
        guest.refer(own, gimli::DW_AT_abstract_origin, origin);
        let place = crate::common::expression(|e| {
            e.op_wasm_local(local);
            e.op(gimli::DW_OP_stack_value)
        });
        guest.set(own, gimli::DW_AT_location, AttributeValue::Exprloc(place));
    }
    let deeper = guest.add(call, gimli::DW_TAG_inlined_subroutine, "");
    guest.refer(deeper, gimli::DW_AT_abstract_origin, twice);
    guest.code(deeper, 31..33);
    let opened = Opened::new(guest);
    let first = [
        name("x", 1, false),
        name("y", 1, false),
        name("lost", 1, false),
        name("fixed", 1, false),
        name("y", 0, true),
    ];
    assert_eq!(names(&opened, 22), first);
    assert_eq!(names(&opened, 27), [name("y", 0, false)]);
    assert_eq!(
        names(&opened, 31)[..4]
            .iter()
            .map(|n| n.1)
            .collect::<Vec<_>>(),
        [2; 4]
    );
    assert_eq!(names(&opened, 31).len(), 9);
    let scope = opened.in_scope(22);
    assert_eq!(
        (scope[0].function.as_deref(), scope[0].kind),
        (Some("twice"), VariableKind::Parameter)
    );
    assert_eq!(scope[4].function, None);
    let moment = Moment::new();
    assert_eq!(
        opened.locate("y", 22, &moment).unwrap().pieces[0].place,
        VariableLocation::Local(2)
    );
    assert_eq!(
        opened.locate("lost", 22, &moment),
        Err(Unavailable::OptimisedOut)
    );
    assert_eq!(
        opened.resolve("fixed", 22, &moment).unwrap().pieces[0].place,
        VariableLocation::Value([4, 0, 0, 0].into())
    );
}

fn address(guest: &mut Guest, id: UnitEntryId, at: u64) {
    let place = crate::common::expression(|e| e.op_addr(Address::Constant(at)));
    guest.set(id, gimli::DW_AT_location, AttributeValue::Exprloc(place));
}

#[test]
fn globals_have_namespaces() {
    let mut guest = Guest::new(4);
    let int = guest.int();
    let root = guest.root();
    let plain = guest.variable(root, "count", int);
    flag(&mut guest, plain, gimli::DW_AT_external);
    address(&mut guest, plain, 0x400);
    let geo = guest.add(root, gimli::DW_TAG_namespace, "geo");
    let scale = guest.variable(geo, "scale", int);
    address(&mut guest, scale, 0x404);
    let unnamed = guest.add(geo, gimli::DW_TAG_namespace, "");
    let hidden = guest.variable(unnamed, "hidden", int);
    address(&mut guest, hidden, 0x408);
    // The class declares a static member, and the namespace around the class defines it.
    let class = guest.add(geo, gimli::DW_TAG_class_type, "Other");
    let declared = guest.typed(class, gimli::DW_TAG_member, "count", int);
    flag(&mut guest, declared, gimli::DW_AT_external);
    flag(&mut guest, declared, gimli::DW_AT_declaration);
    let defined = guest.add(root, gimli::DW_TAG_variable, "");
    guest.refer(defined, gimli::DW_AT_specification, declared);
    address(&mut guest, defined, 0x40c);
    // These are static variables of two files, a declaration, and the same definition twice.
    for at in [0x410, 0x414] {
        let own = guest.variable(root, "state", int);
        address(&mut guest, own, at);
    }
    let again = guest.variable(root, "scale2", int);
    flag(&mut guest, again, gimli::DW_AT_declaration);
    for _ in 0..2 {
        let own = guest.variable(root, "weak", int);
        address(&mut guest, own, 0x418);
    }
    guest.variable(root, "gone", int);
    let f = guest.function();
    let local = guest.variable(f, "calls", int);
    address(&mut guest, local, 0x41c);
    let opened = Opened::new(guest);
    let variables = &opened.variables;
    let globals = variables.globals().unwrap();
    let names: Vec<_> = globals
        .iter()
        .map(|global| variables.full_name(global).unwrap())
        .collect();
    let expected = [
        "count",
        "geo::scale",
        "geo::(anonymous namespace)::hidden",
        "geo::Other::count",
        "state",
        "state",
        "weak",
        "weak",
        "gone",
    ];
    assert_eq!(names, expected);
    assert!(globals[0].external && !globals[1].external && globals[3].external);
    assert_eq!(variables.unit_name(&globals[0]).as_deref(), Some("guest.c"));

    let place = |query: &str| {
        let variable = variables.find_global(query)?;
        let object = variables.locate(&variable, None, &Nothing)?;
        Ok::<_, PathError>(object.address())
    };
    assert_eq!(place("geo::scale"), Ok(Some(0x404)));
    assert_eq!(place("scale"), Ok(Some(0x404)));
    assert_eq!(place("hidden"), Ok(Some(0x408)));
    assert_eq!(place("Other::count"), Ok(Some(0x40c)));
    assert_eq!(place("geo::Other::count"), Ok(Some(0x40c)));
    assert_eq!(place("weak"), Ok(Some(0x418)));
    assert_eq!(place("gone"), Err(Unavailable::OptimisedOut.into()));
    assert!(
        matches!(place("state"), Err(PathError::Ambiguous { candidates, .. }) if candidates == ["state (guest.c)", "state (guest.c)"])
    );
    // The variable of the outermost namespace has exactly this name. "Other::count" contains it.
    assert_eq!(place("count"), Ok(Some(0x400)));
    assert_eq!(place("::count"), Ok(Some(0x400)));
    assert!(matches!(
        place("Circle::count"),
        Err(PathError::NoVariable { .. })
    ));
    assert!(
        matches!(place("hiden"), Err(PathError::NoVariable { nearest, .. }) if nearest == ["hidden"])
    );
    // Static variables of functions are found where they are in scope. Elsewhere they are found if
    // no other variable matches.
    assert_eq!(
        opened
            .resolve("calls", 10, &Moment::new())
            .unwrap()
            .address(),
        Some(0x41c)
    );
    assert_eq!(place("calls"), Ok(Some(0x41c)));
}
