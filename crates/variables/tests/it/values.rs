//! Tests the form of values, and the meaning of paths.

use afterimage_variables::{Limits, Rank, Shape, Word};
use gimli::write::{Address, AttributeValue, Expression, UnitEntryId};

use crate::common::{Guest, Moment, Opened};

fn number(guest: &mut Guest, id: UnitEntryId, name: gimli::DwAt, value: u64) {
    guest.set(id, name, AttributeValue::Udata(value));
}

fn at(address: u64) -> impl Fn(&mut Expression) {
    move |e| e.op_addr(Address::Constant(address))
}

/// Returns `struct node { int key; char name[8]; node *next; } table[4], *p` and more, at 0x400.
fn nodes() -> (Opened, Moment) {
    let mut guest = Guest::new(4);
    let (int, char) = (
        guest.int(),
        guest.base("char", gimli::DW_ATE_signed_char, 1),
    );
    let node = guest.record("node", 16, &[("key", int, 0)]);
    let name = guest.array(char, &[8]);
    guest.member(node, "name", name, 4);
    let root = guest.root();
    let constant = guest.typed(root, gimli::DW_TAG_const_type, "", node);
    let (next, text) = (guest.pointer(constant), guest.pointer(char));
    guest.member(node, "next", next, 12);
    let (table, grid) = (guest.array(node, &[4]), guest.array(int, &[2, 3]));
    let named = guest.typed(root, gimli::DW_TAG_typedef, "grid_t", grid);
    let open = guest.typed(root, gimli::DW_TAG_array_type, "", int);
    guest.add(open, gimli::DW_TAG_subrange_type, "");
    let reference = guest.typed(root, gimli::DW_TAG_reference_type, "", node);
    let f = guest.function();
    guest.located(f, "table", table, at(0x400));
    guest.located(f, "grid", named, at(0x500));
    guest.located(f, "flexible", open, at(0x500));
    guest.located(f, "text", text, at(0x600));
    guest.located(f, "r", reference, at(0x604));
    guest.located(f, "p", next, |e| {
        e.op_wasm_local(0);
        e.op(gimli::DW_OP_stack_value)
    });
    let mut moment = Moment::new();
    for i in 0..4u32 {
        let at = 0x400 + 16 * i as usize;
        moment.word(at, 10 * i);
        moment.write(at + 4, format!("n{i}\0\0\0\0\0\0").as_bytes());
        moment.word(at + 12, if i == 3 { 0 } else { 0x410 + 16 * i });
    }
    (0..6).for_each(|i| moment.word(0x500 + 4 * i, i as u32));
    moment.word(0x600, 0x404);
    moment.word(0x604, 0x430);
    moment.locals.insert(0, Word::w32(0x410));
    (Opened::new(guest), moment)
}

#[test]
fn paths_through_pointers_and_arrays() {
    let (opened, moment) = nodes();
    let show = |path: &str| opened.show(path, &moment);
    assert_eq!(show("table[3].key"), "30");
    assert_eq!(show("p"), "0x410");
    assert_eq!(show("p->next->key"), "20");
    assert_eq!(show("p->next.next->key"), "30");
    assert_eq!(show("(*p).name"), "\"n1\"");
    assert_eq!(show("*p"), "{ key = 10, name = \"n1\", next = 0x420 }");
    assert_eq!(show("p[-1].key"), "0");
    assert_eq!(show("p[1].name[1]"), "50 '2'");
    assert_eq!(show("*table"), "{ key = 0, name = \"n0\", next = 0x410 }");
    assert_eq!(show("&table[2].key"), "0x420");
    assert_eq!(show("*&table[2].key"), "20");
    assert_eq!(show("(&table[1])->key"), "10");
    assert_eq!(show("(&grid[1])[0][2]"), "5");
    assert_eq!(show("grid"), "{ { 0, 1, 2 }, { 3, 4, 5 } }");
    assert_eq!(show("grid[1]"), "{ 3, 4, 5 }");
    assert_eq!(show("**grid"), "0");
    assert_eq!(show("flexible[4]"), "4");
    assert_eq!(show("text"), "0x404 \"n0\"");
    assert_eq!(show("*text"), "110 'n'");
    // A reference is replaced by its target.
    assert_eq!(show("r.key"), "30");
    assert_eq!(show("&r"), "0x430");
    assert_eq!(
        show("r"),
        "0x430 -> { key = 30, name = \"n3\", next = 0x0 }"
    );
    let writers = opened.resolve("table[2].name", 10, &moment).unwrap();
    assert!(writers.memory().eq(std::iter::once(0x424..0x42c)));
}

#[test]
fn paths_that_lead_nowhere_say_why() {
    let (opened, moment) = nodes();
    let show = |path: &str| opened.show(path, &moment);
    assert_eq!(
        show("table[4]"),
        "error: index 4 is outside the array, which has 4 elements"
    );
    assert_eq!(
        show("table[-1]"),
        "error: index -1 is outside the array, which has 4 elements"
    );
    assert_eq!(
        show("grid[0][3]"),
        "error: index 3 is outside the array, which has 3 elements"
    );
    assert_eq!(show("grid[0][0][0]"), "error: int has no elements");
    assert_eq!(
        show("p->keys"),
        "error: const node has no member keys; there is key"
    );
    assert_eq!(
        show("p->x"),
        "error: const node has no member x; there are key, name, next"
    );
    assert_eq!(show("p->key.x"), "error: int has no member x");
    assert_eq!(show("table[0]->key"), "error: node is not a pointer");
    assert_eq!(show("*p->key"), "error: int is not a pointer");
    assert_eq!(show("table[3].next->key"), "error: the pointer is null");
    assert_eq!(show("&p"), "error: it has no address: it is not in memory");
    let far = 0x410 + 16 * 100_000_000u64;
    assert_eq!(
        show("p[100000000].key"),
        format!("<address 0x{far:x} is outside memory>")
    );
    // Pointers wrap around.
    assert_eq!(
        show("p[-100].key"),
        "<address 0xfffffdd0 is outside memory>"
    );
    assert_eq!(show("p[268435455].key"), "0");
    assert_eq!(
        show("tabel"),
        "error: there is no variable tabel; there is table"
    );
    assert_eq!(
        show("flexible"),
        "<the debug information does not give the size of int[]>"
    );
}

#[test]
fn limits_leave_out_and_count() {
    let (opened, moment) = nodes();
    let limits = Limits::default();
    let show = |path: &str, limits: Limits| opened.show_with(path, &limits, &moment);
    assert_eq!(
        show(
            "grid",
            Limits {
                elements: 1,
                ..limits
            }
        ),
        "{ { 0, … 2 more }, … 1 more }"
    );
    assert_eq!(
        show("grid", Limits { depth: 1, ..limits }),
        "{ { … }, { … } }"
    );
    assert_eq!(
        show("grid", Limits { parts: 4, ..limits }),
        "{ { 0, 1, … 1 more }, … 1 more }"
    );
    assert_eq!(
        show(
            "text",
            Limits {
                string: 1,
                ..limits
            }
        ),
        "0x404 \"n\"…"
    );
    assert_eq!(
        show(
            "text",
            Limits {
                string: 0,
                ..limits
            }
        ),
        "0x404"
    );
    let followed = "0x410 -> { key = 10, name = \"n1\", next = 0x420 }";
    assert_eq!(
        show(
            "p",
            Limits {
                pointers: 1,
                ..limits
            }
        ),
        followed
    );
    let twice = "0x410 -> { key = 10, name = \"n1\", next = 0x420 -> { key = 20, name = \"n2\", next = 0x430 } }";
    assert_eq!(
        show(
            "p",
            Limits {
                pointers: 2,
                ..limits
            }
        ),
        twice
    );
}

#[test]
fn types_are_named_as_c_writes_them() {
    let mut guest = Guest::new(4);
    let (int, char) = (
        guest.int(),
        guest.base("char", gimli::DW_ATE_signed_char, 1),
    );
    let root = guest.root();
    let constant = guest.typed(root, gimli::DW_TAG_const_type, "", char);
    let text = guest.pointer(constant);
    let fixed = guest.typed(root, gimli::DW_TAG_const_type, "", text);
    let function = guest.typed(root, gimli::DW_TAG_subroutine_type, "", int);
    for of in [int, text] {
        guest.typed(function, gimli::DW_TAG_formal_parameter, "", of);
    }
    let callback = guest.pointer(function);
    let callbacks = guest.array(callback, &[3]);
    let row = guest.array(int, &[4]);
    let rows = guest.pointer(row);
    let grid = guest.array(int, &[2, 3]);
    let void = guest.add(root, gimli::DW_TAG_pointer_type, "");
    let anonymous = guest.record("", 4, &[]);
    let f = guest.function();
    let cases = [
        (text, "const char *"),
        (fixed, "const char *const"),
        (callback, "int (*)(int, const char *)"),
        (callbacks, "int (*[3])(int, const char *)"),
        (rows, "int (*)[4]"),
        (grid, "int[2][3]"),
        (void, "void *"),
        (anonymous, "<anonymous struct>"),
        (function, "int (int, const char *)"),
    ];
    for (i, (of, _)) in cases.iter().enumerate() {
        guest.located(f, &format!("v{i}"), *of, at(0x400));
    }
    let opened = Opened::new(guest);
    let mut moment = Moment::new();
    moment.word(0x400, 7);
    for (variable, (_, expected)) in opened.in_scope(10).iter().zip(cases) {
        assert_eq!(
            opened.variables.type_name(variable.type_ref).unwrap(),
            expected
        );
    }
    assert_eq!(opened.show("v2", &moment), "0x7 <seven>");
    assert_eq!(opened.show("v7", &moment), "{}");
}

#[test]
fn bit_fields_unions_and_anonymous_members() {
    let mut guest = Guest::new(4);
    let (int, unsigned) = (
        guest.int(),
        guest.base("unsigned", gimli::DW_ATE_unsigned, 4),
    );
    let float = guest.base("float", gimli::DW_ATE_float, 4);
    let root = guest.root();
    let record = guest.record("s", 12, &[("i", int, 0)]);
    for (name, of, first, count) in [
        ("flag", unsigned, 32, 3),
        ("mode", unsigned, 35, 5),
        ("s", int, 40, 7),
        ("wide", unsigned, 47, 16),
    ] {
        let member = guest.typed(record, gimli::DW_TAG_member, name, of);
        number(&mut guest, member, gimli::DW_AT_data_bit_offset, first);
        number(&mut guest, member, gimli::DW_AT_bit_size, count);
    }
    // In DWARF 3's form, these are the two highest bits of the word at byte 4.
    let old = guest.member(record, "old", unsigned, 4);
    number(&mut guest, old, gimli::DW_AT_byte_size, 4);
    number(&mut guest, old, gimli::DW_AT_bit_offset, 0);
    number(&mut guest, old, gimli::DW_AT_bit_size, 2);
    let union = guest.add(root, gimli::DW_TAG_union_type, "");
    number(&mut guest, union, gimli::DW_AT_byte_size, 4);
    guest.member(union, "u", unsigned, 0);
    guest.member(union, "f", float, 0);
    guest.member(record, "", union, 8);
    let f = guest.function();
    guest.located(f, "v", record, at(0x400));
    let opened = Opened::new(guest);
    let mut moment = Moment::new();
    moment.word(0x400, 1);
    let bits = 5 | (17 << 3) | (0x7e << 8) | (0xabcd << 15) | (2u64 << 30);
    moment.write(0x404, &bits.to_le_bytes()[..4]);
    moment.word(0x408, 1.5f32.to_bits());
    let wide = (bits >> 15) & 0xffff;
    let expected = format!(
        "{{ i = 1, flag = 5, mode = 17, s = -2, wide = {wide}, old = {}, {{ u = 1069547520, f = 1.5 }} }}",
        (bits >> 30) & 3
    );
    assert_eq!(opened.show("v", &moment), expected);
    assert_eq!(opened.show("v.mode", &moment), "17");
    assert_eq!(opened.show("v.f", &moment), "1.5");
    assert_eq!(
        opened.show("&v.mode", &moment),
        "error: it has no address: it is not in memory"
    );
    let wide = opened.resolve("v.wide", 10, &moment).unwrap();
    assert!(wide.memory().eq(std::iter::once(0x405..0x408)));
}

#[test]
fn classes_enumerations_and_characters() {
    let mut guest = Guest::new(4);
    let int = guest.int();
    let root = guest.root();
    let base = guest.record("Base", 4, &[("id", int, 0)]);
    let derived = guest.record("Derived", 12, &[]);
    let inherited = guest.typed(derived, gimli::DW_TAG_inheritance, "", base);
    number(&mut guest, inherited, gimli::DW_AT_data_member_location, 4);
    guest.member(derived, "own", int, 8);
    let counter = guest.typed(derived, gimli::DW_TAG_member, "counter", int);
    guest.set(counter, gimli::DW_AT_external, AttributeValue::Flag(true));
    // For a virtual base, the offset is in a table to which the object points.
    let remote = guest.record("Remote", 8, &[]);
    let inherited = guest.typed(remote, gimli::DW_TAG_inheritance, "", base);
    let place = crate::common::expression(|e| {
        e.op(gimli::DW_OP_dup);
        e.op_deref();
        e.op_constu(12);
        e.op(gimli::DW_OP_minus);
        e.op_deref();
        e.op(gimli::DW_OP_plus);
    });
    guest.set(
        inherited,
        gimli::DW_AT_data_member_location,
        AttributeValue::Exprloc(place),
    );
    let color = guest.typed(root, gimli::DW_TAG_enumeration_type, "color", int);
    number(&mut guest, color, gimli::DW_AT_byte_size, 4);
    for (name, value) in [("RED", 0), ("NONE", -1)] {
        let id = guest.add(color, gimli::DW_TAG_enumerator, name);
        guest.set(id, gimli::DW_AT_const_value, AttributeValue::Sdata(value));
    }
    let character = guest.base("char", gimli::DW_ATE_UTF, 4);
    let long = guest.base("__int128", gimli::DW_ATE_signed, 16);
    let declared = guest.add(root, gimli::DW_TAG_structure_type, "opaque");
    guest.set(
        declared,
        gimli::DW_AT_declaration,
        AttributeValue::Flag(true),
    );
    let opaque = guest.pointer(declared);
    let f = guest.function();
    for (name, of, place) in [
        ("d", derived, 0x400),
        ("v", remote, 0x420),
        ("c", color, 0x440),
        ("n", color, 0x444),
        ("o", color, 0x448),
        ("x", character, 0x44c),
        ("l", long, 0x450),
        ("q", opaque, 0x460),
    ] {
        guest.located(f, name, of, at(place));
    }
    let opened = Opened::new(guest);
    let mut moment = Moment::new();
    for (place, value) in [
        (0x404, 1),
        (0x408, 2),
        (0x420, 0x50c),
        (0x500, 4),
        (0x424, 9),
        (0x440, 0),
        (0x444, u32::MAX),
        (0x448, -3i32 as u32),
        (0x44c, 0x20ac),
        (0x460, 0x400),
    ] {
        moment.word(place, value);
    }
    moment.write(0x450, &(-5i128).to_le_bytes());
    let show = |path: &str| opened.show(path, &moment);
    assert_eq!(show("d"), "{ <Base> = { id = 1 }, own = 2 }");
    assert_eq!(show("d.id"), "1");
    assert_eq!(show("v.id"), "9");
    assert_eq!([show("c"), show("n"), show("o")], ["RED", "NONE", "-3"]);
    assert_eq!(show("x"), "'€'");
    assert_eq!(show("l"), "-5");
    assert_eq!(show("q"), "0x400");
    assert_eq!(
        show("*q"),
        "error: the debug information does not give the size of opaque"
    );
}

/// A variant, with its name, discriminant and fields.
type AVariant<'v> = (&'v str, Option<u64>, &'v [(&'v str, UnitEntryId, u64)]);

/// Adds a variant part in rustc's form, with a discriminant, and a structure for each variant.
fn variants(
    guest: &mut Guest,
    name: &str,
    bytes: u64,
    discriminant: (UnitEntryId, u64),
    all: &[AVariant<'_>],
) -> UnitEntryId {
    let of = guest.record(name, bytes, &[]);
    let part = guest.add(of, gimli::DW_TAG_variant_part, "");
    let tag = guest.member(part, "", discriminant.0, discriminant.1);
    guest.refer(part, gimli::DW_AT_discr, tag);
    for &(name, value, members) in all {
        let variant = guest.add(part, gimli::DW_TAG_variant, "");
        if let Some(value) = value {
            number(guest, variant, gimli::DW_AT_discr_value, value);
        }
        let inside = guest.record(name, bytes, members);
        guest.member(variant, name, inside, 0);
    }
    of
}

#[test]
fn rust_enumerations_with_tags_and_niches() {
    let mut guest = Guest::new(4);
    let (u8_, u32_) = (
        guest.base("u8", gimli::DW_ATE_unsigned, 1),
        guest.base("u32", gimli::DW_ATE_unsigned, 4),
    );
    let bool_ = guest.base("bool", gimli::DW_ATE_boolean, 1);
    let reference = guest.pointer(u8_);
    let shape = variants(
        &mut guest,
        "Shape",
        12,
        (u32_, 0),
        &[
            ("Circle", Some(0), &[("__0", u32_, 4)]),
            ("Rect", Some(1), &[("w", u32_, 4), ("h", u32_, 8)]),
            ("Empty", Some(2), &[]),
        ],
    );
    let option = variants(
        &mut guest,
        "Option<&u8>",
        4,
        (u32_, 0),
        &[
            ("None", Some(0), &[]),
            ("Some", None, &[("__0", reference, 0)]),
        ],
    );
    let maybe = variants(
        &mut guest,
        "Option<bool>",
        1,
        (u8_, 0),
        &[("None", Some(2), &[]), ("Some", None, &[("__0", bool_, 0)])],
    );
    let text = guest.record(
        "&str",
        8,
        &[("data_ptr", reference, 0), ("length", u32_, 4)],
    );
    let f = guest.function();
    for (name, of, place) in [
        ("circle", shape, 0x400),
        ("rect", shape, 0x410),
        ("empty", shape, 0x420),
        ("odd", shape, 0x430),
        ("none", option, 0x440),
        ("some", option, 0x444),
        ("yes", maybe, 0x448),
        ("nothing", maybe, 0x449),
        ("s", text, 0x450),
    ] {
        guest.located(f, name, of, at(place));
    }
    guest.located(f, "half", text, |e| {
        e.op_piece(4);
        e.op_constu(4);
        e.op(gimli::DW_OP_stack_value);
        e.op_piece(4);
    });
    let opened = Opened::new(guest);
    let mut moment = Moment::new();
    for (place, value) in [
        (0x400, 0),
        (0x404, 3),
        (0x410, 1),
        (0x414, 4),
        (0x418, 5),
        (0x420, 2),
        (0x430, 9),
        (0x440, 0),
        (0x444, 0x400),
        (0x450, 0x500),
        (0x454, 5),
    ] {
        moment.word(place, value);
    }
    moment.write(0x448, &[1, 2]);
    moment.write(0x500, "héy\n".as_bytes());
    let show = |path: &str| opened.show(path, &moment);
    assert_eq!(show("circle"), "Circle(3)");
    assert_eq!(show("circle.Circle.0"), "3");
    assert_eq!(show("rect"), "Rect { w = 4, h = 5 }");
    assert_eq!(
        show("rect.Circle"),
        "error: the variant is Rect, not Circle"
    );
    assert_eq!(show("rect.Rect.h"), "5");
    assert_eq!(show("empty"), "Empty");
    assert_eq!(show("odd"), "<the discriminant matches no variant>");
    assert_eq!(show("none"), "None");
    assert_eq!(show("some"), "Some(0x400)");
    assert_eq!([show("yes"), show("nothing")], ["Some(true)", "None"]);
    assert_eq!(show("s"), "\"héy\\n\"");
    assert_eq!(show("half"), "{ data_ptr = <optimised out>, length = 4 }");
    let object = opened.resolve("some", 10, &moment).unwrap();
    let tree = opened
        .variables
        .render(&object, &Limits::default(), &moment);
    assert_eq!(
        (&tree.shape, tree.children[0].name.as_deref()),
        (&Shape::Variant, Some("Some"))
    );
    assert_eq!(tree.children[0].children[0].type_name, "u8 *");
}

#[test]
fn numbers_are_told_from_what_consists_of_parts() {
    let (opened, mut moment) = nodes();
    let number = |path: &str, moment: &Moment| {
        let object = opened.resolve(path, 10, moment).unwrap();
        opened.variables.number(&object, moment)
    };
    moment.word(0x500, -3i32 as u32);
    let negative = number("grid[0][0]", &moment).unwrap();
    assert_eq!(
        (negative.text.as_str(), negative.bits, negative.rank),
        ("-3", 0xffff_fffd, Rank::Signed(-3))
    );
    // The text is an address, not the string at this address, which may change.
    let text = number("text", &moment).unwrap();
    assert_eq!(
        (text.text.as_str(), text.rank),
        ("0x404", Rank::Unsigned(0x404))
    );
    // A reference is replaced by its target.
    let why = |path: &str| number(path, &moment).unwrap_err().to_string();
    let node = "node is not a single number; name a part of it: .key, .name, .next";
    assert_eq!(why("r"), node);
    assert_eq!(why("table[1]"), node);
    assert_eq!(
        why("table"),
        "node[4] is not a single number; name a part of it: [0]"
    );
}

#[test]
fn vectors_of_rust_are_their_elements() {
    let mut guest = Guest::new(4);
    let (usize_, byte) = (
        guest.base("usize", gimli::DW_ATE_unsigned, 4),
        guest.base("u8", gimli::DW_ATE_unsigned, 1),
    );
    let short = guest.base("i16", gimli::DW_ATE_signed, 2);
    let bytes = guest.pointer(byte);
    let unique = guest.record("Unique<u8>", 4, &[("pointer", bytes, 0)]);
    let limit = guest.record("Cap", 4, &[("__0", usize_, 0)]);
    let raw = guest.record("RawVec<i16>", 8, &[("cap", limit, 0), ("ptr", unique, 4)]);
    let vector = guest.record("Vec<i16>", 12, &[("buf", raw, 0), ("len", usize_, 8)]);
    let members = [("buf", raw, 0), ("len", usize_, 8), ("head", usize_, 12)];
    let ring = guest.record("VecDeque<i16>", 16, &members);
    for made in [vector, ring] {
        guest.typed(made, gimli::DW_TAG_template_type_parameter, "T", short);
    }
    let text = guest.record("Vec<u8>", 12, &[("buf", raw, 0), ("len", usize_, 8)]);
    guest.typed(text, gimli::DW_TAG_template_type_parameter, "T", byte);
    let text = guest.record("String", 12, &[("vec", text, 0)]);
    let other = guest.record("Vec<i16>", 4, &[("len", usize_, 0)]);
    let f = guest.function();
    for (name, of) in [("v", vector), ("r", ring), ("s", text), ("other", other)] {
        guest.located(f, name, of, |e| e.op_addr(Address::Constant(0x400)));
    }
    let opened = Opened::new(guest);
    let mut moment = Moment::new();
    for (value, place) in [4u32, 0x500, 3, 2].into_iter().zip((0x400..).step_by(4)) {
        moment.word(place, value);
    }
    moment.write(0x500, &[b'a', 0, b'b', 0, 0xff, 0xff, b'd', 0]);
    let show = |path: &str, moment: &Moment| opened.show(path, moment);
    assert_eq!(show("v", &moment), "{ 97, 98, -1 }");
    assert_eq!(show("v[2]", &moment), "-1");
    assert_eq!(show("v.len", &moment), "3");
    // The ring begins at the third element, and the last element is before it.
    assert_eq!(show("r", &moment), "{ -1, 100, 97 }");
    assert_eq!(show("r[2]", &moment), "97");
    assert_eq!(show("s", &moment), r#""a\000b""#);
    assert_eq!(show("other", &moment), "{ len = 4 }");
    let few = Limits {
        elements: 2,
        string: 1,
        ..Limits::default()
    };
    assert_eq!(opened.show_with("v", &few, &moment), "{ 97, 98, … 1 more }");
    assert_eq!(opened.show_with("s", &few, &moment), "\"a\"…");
    // A ring that is longer than its buffer, or begins after its end, is invalid.
    moment.word(0x408, 5);
    assert!(show("r", &moment).starts_with("{ buf = { "));
    moment.word(0x408, 3);
    moment.word(0x40c, 4);
    assert!(show("r", &moment).starts_with("{ buf = { "));
    // Bytes outside memory are not read.
    moment.word(0x404, u32::MAX - 1);
    assert!(
        show("v", &moment).contains("memory"),
        "{}",
        show("v", &moment)
    );
    assert_eq!(show("s", &moment), "<outside memory>");
}

/// Returns slices with debug information in the form of the Zig and D compilers, from a unit with
/// this producer.
fn slices(producer: &str) -> (Opened, Moment) {
    let mut guest = Guest::new(4);
    let root = guest.root();
    let producer = AttributeValue::String(producer.into());
    guest.set(root, gimli::DW_AT_producer, producer);
    let (int, byte, size) = (
        guest.int(),
        guest.base("u8", gimli::DW_ATE_unsigned, 1),
        guest.base("usize", gimli::DW_ATE_unsigned, 4),
    );
    let char = guest.base("char", gimli::DW_ATE_UTF, 1);
    let f = guest.function();
    let elements = [("ints", int, "[]i32"), ("text", byte, "[]const u8")];
    for (place, (name, element, own)) in (0x400..).step_by(16).zip(elements) {
        let to = guest.pointer(element);
        let slice = guest.record(own, 8, &[("ptr", to, 0), ("len", size, 4)]);
        guest.located(f, name, slice, at(place));
    }
    let elements = [("d_ints", int, "int[]"), ("d_text", char, "string")];
    for (place, (name, element, own)) in (0x420..).step_by(16).zip(elements) {
        let to = guest.pointer(element);
        let slice = guest.record(own, 8, &[("length", size, 0), ("ptr", to, 4)]);
        guest.located(f, name, slice, at(place));
    }
    let to = guest.pointer(int);
    let own = guest.record("Buffer", 8, &[("ptr", to, 0), ("len", size, 4)]);
    guest.located(f, "own", own, at(0x400));
    let mut moment = Moment::new();
    for (at, word) in [
        (0x400, 0x500),
        (0x404, 2),
        (0x410, 0x510),
        (0x414, 3),
        (0x420, 2),
        (0x424, 0x500),
        (0x430, 3),
        (0x434, 0x510),
        (0x500, 7),
        (0x504, 8),
    ] {
        moment.word(at, word);
    }
    moment.write(0x510, b"abc");
    (Opened::new(guest), moment)
}

#[test]
fn slices_of_zig_and_d_are_their_elements_where_their_compilers_say_so() {
    let shown = |producer, names: [&str; 3]| {
        let (opened, moment) = slices(producer);
        names.map(|name| opened.show(name, &moment))
    };
    let zig = ["ints", "text", "own"];
    let d = ["d_ints", "d_text", "own"];
    let raw = "{ ptr = 0x500, len = 2 }";
    assert_eq!(shown("zig 0.14.1", zig), ["{ 7, 8 }", "\"abc\"", raw]);
    for producer in ["LDC 1.40.0 (LLVM 19.1.7)", "Digital Mars D v2.110"] {
        assert_eq!(shown(producer, d), ["{ 7, 8 }", "\"abc\"", raw]);
    }
    // The same layout in C is the program's own structure.
    let [first, second, _] = shown("clang version 19.1.7", zig);
    assert_eq!([&*first, &*second], [raw, "{ ptr = 0x510, len = 3 }"]);
    let [first, ..] = shown("zig 0.14.1", d);
    assert_eq!(first, "{ length = 2, ptr = 0x500 }");
    // This slice was not set.
    let (opened, mut moment) = slices("zig 0.14.1");
    moment.word(0x404, 0xcccc_cccc);
    assert_eq!(
        opened.show("ints", &moment),
        "{ ptr = 0x500, len = 3435973836 }"
    );
}
