//! Tests debug information that is broken or designed to cost time and memory.

use std::time::{Duration, Instant};

use afterimage_ids::FuncId;
use afterimage_testkit::modules::SplitMix64;
use afterimage_variables::{Limits, Variables};
use gimli::write::{Address, AttributeValue};

use crate::common::{Guest, Moment, Opened, func, module, offset};

/// Asks every possible question.
fn ask_everything(module: &[u8], functions: std::ops::Range<u32>) -> usize {
    let Ok(variables) = Variables::open(module) else {
        return 0;
    };
    let moment = Moment::new();
    let limits = Limits {
        pointers: 2,
        parts: 200,
        ..Limits::default()
    };
    let mut found = Vec::new();
    for global in variables.globals().unwrap_or_default() {
        let _ = (variables.full_name(&global), variables.unit_name(&global));
        found.extend(
            variables
                .global_variable(&global)
                .ok()
                .map(|variable| (variable, None)),
        );
    }
    for index in functions {
        let Ok(function) = variables.function(FuncId::from_u32(index)) else {
            continue;
        };
        for at in (8..module.len() as u32)
            .step_by(97)
            .map(afterimage_ids::OrigOffset)
        {
            let variables = variables.in_scope_of(&function, at).unwrap_or_default();
            found.extend(variables.into_iter().map(|variable| (variable, Some(at))));
        }
    }
    for (variable, at) in &found {
        let _ = variables.type_name(variable.type_ref);
        if let Ok(object) = variables.locate(variable, *at, &moment) {
            let _ = variables.render(&object, &limits, &moment).to_string();
            for path in ["v.key", "*v", "&v", "v[1].x->y"] {
                let _ = variables.follow(&path.parse().unwrap(), object.clone(), &moment);
            }
        }
    }
    let _ = variables.warnings().count();
    found.len()
}

fn damaged(bytes: &[u8], random: &mut SplitMix64) -> Vec<u8> {
    let mut copy = bytes.to_vec();
    for _ in 0..=random.below(20) {
        let at = random.below(copy.len());
        if random.below(3) == 0 {
            copy[at] = random.below(256) as u8;
        } else {
            copy[at] ^= 1 << random.below(8);
        }
    }
    copy
}

/// Returns a guest with every feature.
fn everything() -> Vec<u8> {
    let mut guest = Guest::new(4);
    let int = guest.int();
    let node = guest.record("node", 16, &[("key", int, 0)]);
    let next = guest.pointer(node);
    guest.member(node, "next", next, 4);
    let array = guest.array(node, &[3, 2]);
    let part = guest.add(node, gimli::DW_TAG_variant_part, "");
    let tag = guest.member(part, "", int, 8);
    guest.refer(part, gimli::DW_AT_discr, tag);
    let variant = guest.add(part, gimli::DW_TAG_variant, "");
    guest.member(variant, "A", int, 12);
    let f = guest.function();
    guest.located(f, "v", array, |e| e.op_fbreg(4));
    let block = guest.add(f, gimli::DW_TAG_lexical_block, "");
    guest.ranges(block, &[10..20, 30..90]);
    let w = guest.variable(block, "w", next);
    let place = |local| {
        crate::common::expression(|e| {
            e.op_wasm_local(local);
            e.op(gimli::DW_OP_stack_value)
        })
    };
    guest.list(
        w,
        gimli::DW_AT_location,
        vec![(10..50, place(5)), (50..80, place(6))],
    );
    guest.located(block, "s", node, |e| {
        e.op_wasm_local(5);
        e.op_deref();
        e.op_constu(3);
        e.op(gimli::DW_OP_mul);
        e.op(gimli::DW_OP_stack_value);
        e.op_piece(4);
        e.op_addr(Address::Constant(0x400));
        e.op_piece(12);
    });
    let root = guest.root();
    guest.located(root, "g", array, |e| e.op_addr(Address::Constant(0x500)));
    guest.finish()
}

fn damage(bytes: &[u8], functions: std::ops::Range<u32>, time: Duration, rounds_at_least: usize) {
    assert!(ask_everything(bytes, functions.clone()) > 0);
    let mut random = SplitMix64(5);
    let start = Instant::now();
    let mut rounds = 0;
    while start.elapsed() < time {
        ask_everything(&damaged(bytes, &mut random), functions.clone());
        rounds += 1;
    }
    assert!(rounds > rounds_at_least, "{rounds}");
}

#[test]
fn damaged_debug_information_never_panics() {
    damage(&everything(), 1..2, Duration::from_secs(1), 100);
}

#[test]
fn damaged_guests_of_compilers_never_panic() {
    for guest in crate::guests::compiled() {
        // This shows the guest if a test fails.
        eprintln!("{} -O{}", guest.source, guest.level);
        damage(&guest.module, 0..12, Duration::from_millis(300), 0);
    }
}

#[test]
fn truncation_anywhere_never_panics() {
    let module = everything();
    for length in 0..module.len() {
        ask_everything(&module[..length], 1..2);
    }
}

#[test]
fn types_that_never_end_are_refused() {
    let mut guest = Guest::new(4);
    let int = guest.int();
    let root = guest.root();
    let circle = guest.add(root, gimli::DW_TAG_typedef, "circle");
    guest.refer(circle, gimli::DW_AT_type, circle);
    let array = guest.array(int, &[u64::from(u32::MAX) - 1; 3]);
    let huge = guest.array(int, &[1 << 30]);
    let own = guest.record("own", 4, &[]);
    guest.member(own, "own", own, 0);
    let base = guest.record("base", 4, &[]);
    for _ in 0..2 {
        let inherited = guest.typed(base, gimli::DW_TAG_inheritance, "", base);
        guest.set(
            inherited,
            gimli::DW_AT_data_member_location,
            AttributeValue::Udata(0),
        );
    }
    let pointer = guest.add(root, gimli::DW_TAG_pointer_type, "");
    guest.refer(pointer, gimli::DW_AT_type, pointer);
    let f = guest.function();
    for (name, of) in [
        ("circle", circle),
        ("array", array),
        ("huge", huge),
        ("own", own),
        ("base", base),
        ("pointer", pointer),
    ] {
        guest.located(f, name, of, |e| e.op_addr(Address::Constant(0x400)));
    }
    let origin = guest.variable(f, "origin", int);
    guest.refer(origin, gimli::DW_AT_abstract_origin, origin);
    let opened = Opened::new(guest);
    let moment = Moment::new();
    let show = |path: &str| opened.show(path, &moment);
    assert!(
        show("circle").contains("endless chain of references"),
        "{}",
        show("circle")
    );
    assert!(
        show("array").contains("does not give the size of") || show("array").contains("outside"),
        "{}",
        show("array")
    );
    assert!(
        show("huge").ends_with("… 1,073,741,792 more }"),
        "{}",
        show("huge")
    );
    assert!(show("huge[1000000000]").contains("outside memory"));
    assert_eq!(
        show("own"),
        "{ own = { own = { own = { own = { own = { own = { … } } } } } } }"
    );
    assert!(
        show("base.x").contains("too many base classes"),
        "{}",
        show("base.x")
    );
    assert!(show("base").len() < 200_000);
    assert!(
        show("***pointer").contains("outside memory"),
        "{}",
        show("***pointer")
    );
    assert!(opened.variables.in_scope(func(), opened.at(10)).is_ok());
}

#[test]
fn deep_nesting_needs_no_stack() {
    let mut guest = Guest::new(4);
    let int = guest.int();
    let f = guest.function();
    let mut inside = f;
    for i in 0..20_000 {
        inside = guest.add(inside, gimli::DW_TAG_lexical_block, "");
        if i % 100 == 0 {
            guest.variable(inside, "v", int);
        }
    }
    let mut space = guest.root();
    for _ in 0..1_000 {
        space = guest.add(space, gimli::DW_TAG_namespace, "n");
    }
    guest.located(space, "g", int, |e| e.op_addr(Address::Constant(0x400)));
    // The writer of debug information recurses, but this crate does not.
    let run = move || {
        let opened = Opened::new(guest);
        std::thread::Builder::new()
            .stack_size(256 << 10)
            .spawn(move || {
                assert_eq!(opened.in_scope(10).len(), 200);
                let global = &opened.variables.globals().unwrap()[0];
                assert_eq!(
                    opened.variables.full_name(global).unwrap().len(),
                    3 * 1_000 + 1
                );
            })
            .unwrap()
            .join()
            .unwrap();
    };
    let deep = std::thread::Builder::new().stack_size(256 << 20).spawn(run);
    deep.unwrap().join().unwrap();
}

/// Returns a unit of DWARF 4 with its abbreviations at an offset, and with this content.
fn unit(abbreviations: u32, content: &[u8]) -> Vec<u8> {
    let mut unit = Vec::new();
    unit.extend((7 + content.len() as u32).to_le_bytes());
    unit.extend([4, 0]);
    unit.extend(abbreviations.to_le_bytes());
    unit.push(4);
    unit.extend(content);
    unit
}

#[test]
fn overlapping_abbreviations_are_not_read_again_and_again() {
    // Every unit reads one long table from another place on.
    let (mut table, mut units) = (Vec::new(), Vec::new());
    for code in 1..20_000u32 {
        let code = [
            code as u8 | 0x80,
            (code >> 7) as u8 | 0x80,
            (code >> 14) as u8,
        ];
        units.extend(unit(table.len() as u32, &[&code[..], b"a\0"].concat()));
        table.extend(code);
        table.extend([0x11, 0, 0x03, 0x08, 0, 0]);
    }
    table.push(0);
    let module = module(&[(".debug_info", units), (".debug_abbrev", table)]);
    let start = Instant::now();
    ask_everything(&module, 1..2);
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
    let variables = Variables::open(&module).unwrap();
    assert!(variables.warnings().any(|w| w.contains("overlap")));
}

#[test]
fn line_tables_are_not_read_again_and_again() {
    // The table has version 4, no directories and many files, and every unit reads it.
    let files: Vec<u8> = b"f\0\0\0\0".repeat(40_000);
    let mut header = vec![1, 1, 1, 0xfb, 14, 1, 0];
    header.extend(&files);
    header.push(0);
    let mut line = Vec::new();
    line.extend((header.len() as u32 + 6).to_le_bytes());
    line.extend([4, 0]);
    line.extend((header.len() as u32).to_le_bytes());
    line.extend(header);
    let table = vec![1, 0x11, 0, 0x10, 0x17, 0, 0, 0];
    let units = unit(0, &[1, 0, 0, 0, 0]).repeat(20_000);
    let module = module(&[
        (".debug_info", units),
        (".debug_abbrev", table),
        (".debug_line", line),
    ]);
    let start = Instant::now();
    let variables = Variables::open(&module).unwrap();
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
    let warnings: Vec<_> = variables.warnings().collect();
    assert!(
        warnings.len() == 1 && warnings[0].contains("shared"),
        "{warnings:?}"
    );
}

#[test]
fn attributes_that_take_no_bytes_are_limited() {
    // Each of 100,000 entries has 100,000 flags that take no bytes.
    let mut table = vec![1, 0x11, 1];
    table.extend([0x3f, 0x19].repeat(100_000));
    table.extend([0, 0, 0]);
    let module = module(&[
        (".debug_info", unit(0, &[1; 100_000])),
        (".debug_abbrev", table),
    ]);
    let start = Instant::now();
    ask_everything(&module, 1..2);
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn addresses_of_removed_code_are_not_code() {
    let mut guest = Guest::new(4);
    let int = guest.int();
    let root = guest.root();
    for low in [0u64, 0xffff_ffff, 0xffff_fffe, 1 << 20] {
        let gone = guest.add(root, gimli::DW_TAG_subprogram, "gone");
        guest.code(gone, low..low + 40);
        guest.variable(gone, "x", int);
    }
    let f = guest.function();
    guest.located(f, "y", int, |e| e.op_fbreg(0));
    let module = guest.finish();
    let variables = Variables::open(&module).unwrap();
    let names: Vec<_> = variables.in_scope(func(), offset(&module, 10)).unwrap();
    assert_eq!(
        names.iter().map(|v| v.name.as_str()).collect::<Vec<_>>(),
        ["y"]
    );
}
