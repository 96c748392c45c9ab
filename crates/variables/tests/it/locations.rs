//! Tests places of variables, from expressions and location lists with known answers.

use afterimage_program::NoDebug;
use afterimage_variables::{DebugError, Unavailable, VariableLocation, Variables, Word};
use gimli::write::{AttributeValue, Expression};

use crate::common::{BODY, Guest, Moment, Opened, expression, module};

/// Returns a function with one variable `v` of a type.
fn one(bytes: u64, ops: impl FnOnce(&mut Expression)) -> Opened {
    let mut guest = Guest::new(4);
    let of = guest.base("number", gimli::DW_ATE_signed, bytes);
    let function = guest.function();
    guest.located(function, "v", of, ops);
    Opened::new(guest)
}

fn show(opened: &Opened, moment: &Moment) -> String {
    opened.show("v", moment)
}

fn place(
    opened: &Opened,
    moment: &Moment,
) -> Result<Vec<(VariableLocation, u32, u64)>, Unavailable> {
    let object = opened.locate("v", 10, moment)?;
    let pieces = object.pieces.into_iter();
    Ok(pieces
        .map(|piece| (piece.place, piece.offset, piece.bytes))
        .collect())
}

#[test]
fn a_frame_in_memory() {
    let opened = one(4, |e| e.op_fbreg(12));
    let mut moment = Moment::new();
    moment.word(0x10c, -7i32 as u32);
    assert_eq!(show(&opened, &moment), "-7");
    assert_eq!(
        place(&opened, &moment),
        Ok(vec![(VariableLocation::Memory(0x10c), 0, 4)])
    );
    let object = opened.locate("v", 10, &moment).unwrap();
    assert!(object.memory().eq(std::iter::once(0x10c..0x110)));
    // Before the frame exists, its local is zero.
    moment.locals.insert(5, Word::w32(0));
    assert_eq!(
        place(&opened, &moment),
        Err(Unavailable::NoFrame { behind: None })
    );
    moment.locals.clear();
    assert_eq!(
        place(&opened, &moment),
        Err(Unavailable::Unknown(VariableLocation::Local(5)))
    );
}

#[test]
fn places_of_the_machine_need_no_value_to_be_found() {
    let nothing = Moment::default();
    let value = |e: &mut Expression| e.op(gimli::DW_OP_stack_value);
    let cases = [
        (
            one(4, |e| {
                e.op_wasm_local(3);
                value(e)
            }),
            VariableLocation::Local(3),
        ),
        (
            one(4, |e| {
                e.op_wasm_global(0);
                value(e)
            }),
            VariableLocation::Global(0),
        ),
        (
            one(4, |e| {
                e.op_wasm_stack(2);
                value(e)
            }),
            VariableLocation::OperandStack(2),
        ),
        // Kind 3 is a global with an index from the linker.
        (
            one(4, |e| *e = Expression::raw(vec![0xed, 3, 9, 0, 0, 0, 0x9f])),
            VariableLocation::Global(9),
        ),
    ];
    for (opened, expected) in cases {
        assert_eq!(place(&opened, &nothing), Ok(vec![(expected.clone(), 0, 4)]));
        let object = opened.locate("v", 10, &nothing).unwrap();
        let shown = opened
            .variables
            .render(&object, &Default::default(), &nothing)
            .to_string();
        assert_eq!(shown, format!("<the value of {expected} is not known>"));
    }
}

#[test]
fn words_are_read_at_their_width() {
    let local = |bytes| {
        one(bytes, |e| {
            e.op_wasm_local(1);
            e.op(gimli::DW_OP_stack_value)
        })
    };
    let mut moment = Moment::new();
    moment.locals.insert(1, Word::w32(0xffff_ff85));
    assert_eq!(show(&local(4), &moment), "-123");
    // A byte is the low byte of an i32, but 8 bytes do not fit in an i32.
    assert_eq!(show(&local(1), &moment), "-123");
    assert_eq!(
        show(&local(8), &moment),
        "<its location provides only 32 bits>"
    );
    moment.locals.insert(1, Word::w64(1 << 40));
    assert_eq!(show(&local(8), &moment), (1u64 << 40).to_string());
    moment.locals.insert(1, Word::w128(u128::MAX - 4));
    assert_eq!(show(&local(16), &moment), "-5");
}

#[test]
fn a_local_without_stack_value_is_an_address() {
    let opened = one(4, |e| e.op_wasm_local(1));
    let mut moment = Moment::new();
    moment.locals.insert(1, Word::w32(0x40));
    moment.word(0x40, 11);
    assert_eq!(
        place(&opened, &moment),
        Ok(vec![(VariableLocation::Memory(0x40), 0, 4)])
    );
    assert_eq!(show(&opened, &moment), "11");
    moment.locals.insert(1, Word::w64(1 << 40));
    assert!(matches!(
        place(&opened, &moment),
        Err(Unavailable::OutsideMemory { .. })
    ));
}

#[test]
fn constants_and_what_is_computed() {
    let moment = {
        let mut moment = Moment::new();
        moment.locals.insert(1, Word::w32(40));
        moment.locals.insert(2, Word::w64(u64::from(u32::MAX)));
        moment.word(40, 1000);
        moment.word(1004, 77);
        moment
    };
    let value = |bytes, ops: &dyn Fn(&mut Expression)| {
        show(
            &one(bytes, |e| {
                ops(e);
                e.op(gimli::DW_OP_stack_value)
            }),
            &moment,
        )
    };
    assert_eq!(value(4, &|e| e.op_consts(-3)), "-3");
    assert_eq!(
        value(8, &|e| e.op_constu(0x4000_0000_0000_0000)),
        (1u64 << 62).to_string()
    );
    assert_eq!(
        value(4, &|e| {
            e.op_wasm_local(1);
            e.op_plus_uconst(2)
        }),
        "42"
    );
    assert_eq!(
        value(4, &|e| {
            e.op_wasm_local(1);
            e.op_deref()
        }),
        "1000"
    );
    // A 64-bit local continues beyond the point where an address would wrap around.
    assert_eq!(
        value(8, &|e| {
            e.op_wasm_local(2);
            e.op_plus_uconst(1)
        }),
        (1u64 << 32).to_string()
    );
    assert_eq!(
        value(8, &|e| {
            e.op_wasm_local(1);
            e.op_plus_uconst(1)
        }),
        "error: its location provides only 32 bits"
    );
    // (40 - 50) / 5 is signed.
    let quotient = |e: &mut Expression| {
        e.op_wasm_local(1);
        e.op_constu(50);
        e.op(gimli::DW_OP_minus);
        e.op_constu(5);
        e.op(gimli::DW_OP_div);
    };
    assert_eq!(value(4, &quotient), "-2");
    let memory = one(4, |e| {
        e.op_wasm_local(1);
        e.op_deref();
        e.op_plus_uconst(4)
    });
    assert_eq!(
        place(&memory, &moment),
        Ok(vec![(VariableLocation::Memory(1004), 0, 4)])
    );
    assert_eq!(show(&memory, &moment), "77");
    let implicit = one(4, |e| e.op_implicit_value(Box::new([1, 1, 0, 0])));
    assert_eq!(show(&implicit, &moment), "257");
}

#[test]
fn three_ranges_and_a_gap() {
    for version in [4, 5] {
        let mut guest = Guest::new(version);
        let int = guest.int();
        let function = guest.function();
        let v = guest.variable(function, "v", int);
        let local = |index| {
            expression(|e| {
                e.op_wasm_local(index);
                e.op(gimli::DW_OP_stack_value)
            })
        };
        let list = vec![(10..20, local(1)), (20..30, local(2)), (50..60, local(3))];
        guest.list(v, gimli::DW_AT_location, list);
        let opened = Opened::new(guest);
        let moment = Moment::new();
        let at = |address| {
            opened
                .locate("v", address, &moment)
                .map(|object| object.pieces[0].place.clone())
        };
        for (address, local) in [(10, 1), (19, 1), (20, 2), (29, 2), (50, 3), (59, 3)] {
            assert_eq!(at(address), Ok(VariableLocation::Local(local)), "{address}");
        }
        let nearest = |range: std::ops::Range<u64>| {
            Err(Unavailable::NotHere {
                nearest: opened.at(range.start)..opened.at(range.end),
            })
        };
        assert_eq!(at(9), nearest(10..20));
        assert_eq!(at(30), nearest(20..30));
        assert_eq!(at(39), nearest(20..30));
        assert_eq!(at(41), nearest(50..60));
        assert_eq!(at(60), nearest(50..60));
    }
}

#[test]
fn what_has_no_location_is_optimised_out() {
    let mut guest = Guest::new(4);
    let int = guest.int();
    let function = guest.function();
    guest.variable(function, "nowhere", int);
    guest.located(function, "empty", int, |_| {});
    guest.located(function, "parts", int, |e| e.op_piece(4));
    let constant = guest.variable(function, "constant", int);
    guest.set(
        constant,
        gimli::DW_AT_const_value,
        AttributeValue::Sdata(-9),
    );
    let narrow = guest.variable(function, "narrow", int);
    guest.set(narrow, gimli::DW_AT_const_value, AttributeValue::Data1(200));
    let opened = Opened::new(guest);
    let moment = Moment::new();
    for name in ["nowhere", "empty", "parts"] {
        assert_eq!(
            opened.locate(name, 10, &moment),
            Err(Unavailable::OptimisedOut),
            "{name}"
        );
    }
    assert_eq!(opened.show("constant", &moment), "-9");
    // The value may be 200 or -56.
    assert_eq!(
        opened.locate("narrow", 10, &moment),
        Err(Unavailable::Narrow { bits: 8 })
    );
}

#[test]
fn parts_in_different_places() {
    let mut guest = Guest::new(4);
    let int = guest.int();
    let wide = guest.base("long long", gimli::DW_ATE_signed, 8);
    let record = guest.record(
        "s",
        24,
        &[
            ("a", int, 0),
            ("b", int, 4),
            ("c", int, 8),
            ("d", int, 12),
            ("e", wide, 16),
        ],
    );
    let function = guest.function();
    guest.located(function, "s", record, |e| {
        e.op_wasm_local(1);
        e.op(gimli::DW_OP_stack_value);
        e.op_piece(8);
        e.op_piece(4);
        e.op_constu(4);
        e.op(gimli::DW_OP_stack_value);
        e.op_piece(4);
        e.op_fbreg(8);
        e.op_piece(8);
    });
    let opened = Opened::new(guest);
    let mut moment = Moment::new();
    moment.locals.insert(1, Word::w64(0xffff_ffff_0000_0002));
    moment.write(0x108, &(-6i64).to_le_bytes());
    assert_eq!(
        opened.show("s", &moment),
        "{ a = 2, b = -1, c = <optimised out>, d = 4, e = -6 }"
    );
    let b = opened.resolve("s.b", 10, &moment).unwrap();
    assert_eq!(
        (&b.pieces[0].place, b.pieces[0].offset, b.pieces[0].bytes),
        (&VariableLocation::Local(1), 4, 4)
    );
    let e = opened.resolve("s.e", 10, &moment).unwrap();
    assert!(e.memory().eq(std::iter::once(0x108..0x110)));
    assert_eq!(opened.show("&s.e", &moment), "0x108");
    assert_eq!(
        opened.show("&s.a", &moment),
        "error: it has no address: it is not in memory"
    );
}

#[test]
fn entry_values_are_resolved_if_the_moment_knows_them() {
    let opened = one(4, |e| {
        e.op_entry_value(expression(|e| e.op_wasm_local(0)));
        e.op(gimli::DW_OP_stack_value);
    });
    let mut moment = Moment::new();
    assert_eq!(place(&opened, &moment), Err(Unavailable::OptimisedOut));
    moment.entry.insert(0, Word::w32(5));
    assert_eq!(show(&opened, &moment), "5");
}

#[test]
fn conversions_of_llvm_count_bits() {
    let mut guest = Guest::new(5);
    let bool_ = guest.base("bool", gimli::DW_ATE_boolean, 1);
    let long = guest.base("long long", gimli::DW_ATE_signed, 8);
    let bit = guest.base("DW_ATE_unsigned_1", gimli::DW_ATE_unsigned, 1);
    let [s32, s64] = [4, 8].map(|bytes| {
        guest.base(
            &format!("DW_ATE_signed_{}", 8 * bytes),
            gimli::DW_ATE_signed,
            bytes,
        )
    });
    let function = guest.function();
    guest.located(function, "odd", bool_, |e| {
        e.op_wasm_local(1);
        e.op_convert(Some(bit));
        e.op(gimli::DW_OP_stack_value);
    });
    guest.located(function, "wide", long, |e| {
        e.op_wasm_local(1);
        e.op_convert(Some(s32));
        e.op_convert(Some(s64));
        e.op(gimli::DW_OP_stack_value);
    });
    let opened = Opened::new(guest);
    let mut moment = Moment::new();
    moment.locals.insert(1, Word::w32(-2i32 as u32));
    assert_eq!(opened.show("odd", &moment), "false");
    assert_eq!(opened.show("wide", &moment), "-2");
    moment.locals.insert(1, Word::w32(7));
    assert_eq!(opened.show("odd", &moment), "true");
}

#[test]
fn what_has_no_meaning_is_refused_by_name() {
    let moment = Moment::new();
    let unsupported = |what| Err(Unavailable::Unsupported(what));
    let register = one(4, |e| e.op_reg(gimli::Register(3)));
    assert_eq!(place(&register, &moment), unsupported("a machine register"));
    let frame = one(4, |e| e.op(gimli::DW_OP_call_frame_cfa));
    assert_eq!(place(&frame, &moment), unsupported("DW_OP_call_frame_cfa"));
    let bits = one(4, |e| {
        e.op_wasm_local(1);
        e.op(gimli::DW_OP_stack_value);
        e.op_bit_piece(3, 0)
    });
    assert_eq!(
        place(&bits, &moment),
        unsupported("a part that is not whole bytes")
    );
    let endless = one(4, |e| *e = Expression::raw(vec![0x2f, 0xfd, 0xff]));
    assert_eq!(
        place(&endless, &moment),
        Err(Unavailable::Broken("an expression that does not end"))
    );
    let empty = one(4, |e| e.op(gimli::DW_OP_plus));
    assert_eq!(
        place(&empty, &moment),
        Err(Unavailable::Broken("too few operands"))
    );
    for gone in [0, 0xffff_ffff, 0xffff_fffe] {
        let removed = one(4, |e| e.op_addr(gimli::write::Address::Constant(gone)));
        assert_eq!(place(&removed, &moment), Err(Unavailable::Removed));
    }
}

#[test]
fn functions_without_debug_information_are_told_apart() {
    let opened = one(4, |e| e.op_fbreg(0));
    let function = |index| {
        opened
            .variables
            .function(afterimage_ids::FuncId::from_u32(index))
            .map(|_| ())
    };
    assert_eq!(function(1), Ok(()));
    let [imported, second, none] = [0, 2, 3].map(afterimage_ids::FuncId::from_u32);
    assert_eq!(function(0), Err(DebugError::NoFunction(imported)));
    assert_eq!(
        function(2),
        Err(DebugError::NotDescribed(second.into(), NoDebug::Nowhere))
    );
    assert_eq!(function(3), Err(DebugError::NoFunction(none)));
    let outside = opened
        .variables
        .in_scope(crate::common::func(), opened.at(BODY.end));
    assert!(matches!(outside, Err(DebugError::Outside { .. })));
    assert_eq!(
        Variables::open(&module(&[])).map(|_| ()),
        Err(DebugError::None(NoDebug::Nowhere))
    );
    assert_eq!(
        Variables::open(b"").map(|_| ()),
        Err(DebugError::None(NoDebug::Nowhere))
    );
}

#[test]
fn one_module_is_asked_from_several_threads() {
    let opened = one(4, |e| e.op_fbreg(12));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut moment = Moment::new();
                moment.word(0x10c, 8);
                assert_eq!(show(&opened, &moment), "8");
            });
        }
    });
}
