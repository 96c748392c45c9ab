//! Tests bytes that are not modules, and modules that are not supported.

#[path = "../../../../fuzz/bodies/module_parser.rs"]
mod body;
use std::time::{Duration, Instant};

use afterimage_ids::OrigOffset;
use afterimage_program::{ParseError, Program};
use afterimage_testkit::modules::{HANDWRITTEN, ModuleConfig, SplitMix64, module_from_seed};
use body::read_everything;

fn refused(text: &str) -> (String, u32) {
    match Program::parse(&wat::parse_str(text).unwrap()) {
        Err(ParseError::Unsupported { feature, offset }) => (feature.into_owned(), offset.0),
        other => panic!("{text}: {other:?}"),
    }
}

/// Returns a damaged copy, which is cut off, has some flipped bits, or repeats a part elsewhere.
fn damaged(bytes: &[u8], random: &mut SplitMix64) -> Vec<u8> {
    let mut copy = bytes.to_vec();
    if copy.is_empty() {
        return copy;
    }
    match random.below(4) {
        0 => copy.truncate(random.below(bytes.len())),
        1 => {
            let (from, to) = (random.below(bytes.len()), random.below(bytes.len()));
            let count = random.below(64).min(bytes.len() - from.max(to));
            copy[to..to + count].copy_from_slice(&bytes[from..from + count]);
        }
        _ => {
            for _ in 0..=random.below(8) {
                let at = random.below(copy.len());
                copy[at] ^= 1 << random.below(8);
            }
        }
    }
    copy
}

#[test]
fn what_is_not_a_module_is_told_apart() {
    assert_eq!(Program::parse(b"").unwrap_err(), ParseError::Empty);
    assert_eq!(
        Program::parse(b"\x7fELF\x02").unwrap_err(),
        ParseError::NotWasm
    );
    assert_eq!(Program::parse(b"\0as").unwrap_err(), ParseError::NotWasm);
    let component = wat::parse_str("(component)").unwrap();
    assert_eq!(
        Program::parse(&component).unwrap_err(),
        ParseError::Component
    );
    let header = b"\0asm\x01\0\0";
    assert!(matches!(
        Program::parse(header),
        Err(ParseError::Malformed { .. })
    ));
    let version = b"\0asm\x02\0\0\0";
    let Err(ParseError::Malformed { message, offset }) = Program::parse(version) else {
        panic!()
    };
    assert_eq!(offset, OrigOffset(4));
    assert!(message.contains("version"), "{message}");
}

#[test]
fn what_is_not_supported_is_refused_by_name_and_place() {
    let cases = [
        ("(module (memory 1 1 shared))", "shared memories"),
        ("(module (type (struct (field i32))))", "garbage collection"),
        ("(module (type (array i8)))", "garbage collection"),
        ("(module (func (param anyref)))", "garbage collection"),
        (
            "(module (rec (type (func)) (type (func))))",
            "garbage collection",
        ),
        (
            "(module (func (drop (ref.i31 (i32.const 1)))))",
            "garbage collection",
        ),
        (
            "(module (type $t (func)) (func (param (ref $t))))",
            "typed function references",
        ),
        (
            "(module (type $t (func)) (func (call_ref $t (ref.null $t))))",
            "typed function references",
        ),
        (
            "(module (func (block (br_on_null 0 (ref.null func)) drop)))",
            "typed function references",
        ),
        (
            "(module (tag $e) (func try nop catch $e end))",
            "the legacy encoding of exception handling",
        ),
        (
            "(module (func try nop catch_all rethrow 0 end))",
            "the legacy encoding of exception handling",
        ),
        (
            "(module (type $f (func)) (type $c (cont $f)))",
            "stack switching",
        ),
        ("(module (memory 1 (pagesize 1)))", "custom page sizes"),
        (
            "(module (func (i64.const 1) (i64.const 1) (i64.mul_wide_s) drop drop))",
            "wide arithmetic",
        ),
        (
            "(module (import \"env\" \"m\" (memory 1)))",
            "an imported memory, \"env\" \"m\"",
        ),
        (
            "(module (import \"env\" \"t\" (table 1 funcref)))",
            "an imported table, \"env\" \"t\"",
        ),
        (
            "(module (import \"env\" \"g\" (global i32)))",
            "an imported global, \"env\" \"g\"",
        ),
        (
            "(module (import \"env\" \"e\" (tag)))",
            "an imported tag, \"env\" \"e\"",
        ),
    ];
    let limits = include_str!("../../../../docs/LIMITS.md");
    let limits = Vec::from_iter(limits.split_whitespace()).join(" ");
    for (text, feature) in cases {
        let (named, offset) = refused(text);
        assert_eq!(named, feature, "{text}");
        let import = feature.starts_with("an imported");
        assert!(
            import || limits.contains(feature),
            "docs/LIMITS.md: {feature}"
        );
        assert!(offset >= 8, "{text}: at {offset}");
    }
    let (_, offset) = refused("(module (func nop) (func (drop (ref.i31 (i32.const 1)))))");
    // The bytes are 8 for magic and version, 6 for types, 5 for functions, 3 + 4 for code, 2 for
    // size and locals, and 2 for i32.const.
    assert_eq!(offset, 30);
}

#[test]
fn everything_supported_is_accepted() {
    let text = r#"(module
      (type $f (func (param i32 i64) (result f32 f64)))
      (memory 1) (memory $big i64 1 2)
      (table 1 funcref) (table 1 externref)
      (tag $e (param i32))
      (global $g (mut i32) (i32.add (i32.const 1) (i32.const 2)))
      (global $r exnref (ref.null exn))
      (elem declare func $g)
      (func $g (export "g") (param v128) (result v128)
        (i32x4.relaxed_trunc_f32x4_s (local.get 0)))
      (func (result exnref) (block $h (result exnref)
        (try_table (catch_all_ref $h) (throw $e (i32.const 1))) unreachable))
      (func (drop (i64.load $big (i64.const 0))) (memory.copy $big 0 (i64.const 0) (i32.const 0) (i32.const 0))
        (drop (i32.extend8_s (i32.trunc_sat_f32_s (f32.const 1)))) (drop (ref.func $g))
        (return_call 2)))"#;
    let program = Program::parse(&wat::parse_str(text).unwrap()).unwrap();
    assert_eq!(
        (program.memories, program.tables, program.functions.len()),
        (2, 2, 3)
    );
}

#[test]
fn damaged_modules_never_panic() {
    let mut random = SplitMix64(3);
    let mut seeds: Vec<Vec<u8>> = HANDWRITTEN
        .iter()
        .map(|(_, text)| wat::parse_str(text).unwrap())
        .collect();
    let config = ModuleConfig {
        entropy: 1024,
        ..ModuleConfig::default()
    };
    seeds.extend((0..50).map(|seed| module_from_seed(seed, &config)));
    seeds.iter().for_each(|module| read_everything(module));
    let start = Instant::now();
    let mut rounds = 0;
    while start.elapsed() < Duration::from_secs(1) {
        read_everything(&damaged(&seeds[rounds % seeds.len()], &mut random));
        rounds += 1;
    }
    assert!(rounds > 100, "{rounds}");
}

#[test]
fn truncation_anywhere_never_panics() {
    let module = module_from_seed(
        7,
        &ModuleConfig {
            entropy: 512,
            ..ModuleConfig::default()
        },
    );
    for length in 0..module.len() {
        assert!(Program::parse(&module[..length]).is_err() || length >= 8);
        read_everything(&module[..length]);
    }
}

#[test]
fn damaged_debug_information_never_panics() {
    let guest = crate::guests::with_debug_information();
    let mut random = SplitMix64(4);
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(2) {
        let mut copy = guest.to_vec();
        // The debug sections make up most of the module, so the code mostly stays valid.
        for _ in 0..=random.below(200) {
            let at = guest.len() / 4 + random.below(guest.len() * 3 / 4);
            copy[at] ^= 1 << random.below(8);
        }
        let source = afterimage_program::SourceMap::build(&copy);
        for row in source.rows().iter().step_by(500) {
            let _ = source.inlined_frames(row.range.start);
        }
    }
}

#[test]
fn deep_nesting_needs_no_stack() {
    let depth = 100_000;
    let body: String = "block ".repeat(depth) + &"br 0 end ".repeat(depth);
    let module = wat::parse_str(format!("(module (func {body}))")).unwrap();
    read_everything(&module);
    let mut text = String::from("(module (func $f0)");
    for i in 1..20_000 {
        text.push_str(&format!("(func $f{i} (call $f{}))", i - 1));
    }
    text.push(')');
    read_everything(&wat::parse_str(text).unwrap());
}
