//! Tests the forms in which compilers describe variables: versions of DWARF, arguments that are not
//! stored yet, computed lengths, and debug information in other files. The shown values must be the
//! values that the program assigned.

use std::fmt::Write as _;

use afterimage_testkit::modules::SplitMix64;
use afterimage_testkit::tools::{self, Clang};
use serde_json::Value;

use crate::common::Sandbox;

/// Records a C program from its export `run`. Without a compiler, reports that and returns nothing.
fn recorded(options: &[&str], source: &str) -> Option<Sandbox> {
    let clang = tools::clang()?;
    let sandbox = Sandbox::new();
    record(&sandbox, &clang, options, source);
    Some(sandbox)
}

fn record(sandbox: &Sandbox, clang: &Clang, options: &[&str], source: &str) {
    let source = sandbox.write("app.c", source);
    let link = ["-Wl,--no-entry", "-Wl,--export=run"];
    clang.module(options, &[source], &link, &sandbox.path("app.wasm"));
    sandbox.ok("record -q --force --invoke run -o app.aft app.wasm");
    sandbox.ok("build --lens full app.aft");
}

fn json(sandbox: &Sandbox, words: &str) -> Value {
    serde_json::from_str(&sandbox.ok(words).stdout).unwrap()
}

/// Returns the values of a variable at a place, and whether each is marked.
fn values(sandbox: &Sandbox, at: &str, variable: &str) -> Vec<(Option<String>, bool)> {
    let words = format!("values app.aft --at {at} --var {variable} --limit 999 --format json");
    let found = json(sandbox, &words);
    let rows = found["instances"].as_array().unwrap().iter();
    let row = |row: &Value| {
        let value = row["value"].as_str().map(str::to_owned);
        (value, row["written"].is_object())
    };
    rows.map(row).collect()
}

fn shown(sandbox: &Sandbox, at: &str, variable: &str) -> Vec<String> {
    let values = values(sandbox, at, variable).into_iter();
    values.map(|(value, _)| value.unwrap_or_default()).collect()
}

/// Returns the line of a source that ends with this comment.
fn line(source: &str, remark: &str) -> String {
    let found = source.lines().position(|line| line.ends_with(remark));
    format!("app.c:{}", found.unwrap() + 1)
}

/// The fields of a structure, each with its assigned value.
type Assigned = Vec<(String, i128)>;

/// Returns a program with structures of bit-fields, and the value that is assigned to each field.
fn bit_fields(random: &mut SplitMix64) -> (String, Vec<(String, Assigned)>) {
    const TYPES: [(&str, u64, bool); 9] = [
        ("int", 32, true),
        ("unsigned", 32, false),
        ("short", 16, true),
        ("unsigned short", 16, false),
        ("long long", 64, true),
        ("unsigned long long", 64, false),
        ("__int128", 128, true),
        ("unsigned __int128", 128, false),
        ("_Bool", 1, false),
    ];
    let (mut types, mut code, mut all) = (String::new(), String::new(), Vec::new());
    for record in 0..40 {
        let is_union = random.below(8) == 0;
        let (packed, keyword) = (
            random.below(2) == 0,
            if is_union { "union" } else { "struct" },
        );
        let attribute = if packed {
            " __attribute__((packed))"
        } else {
            ""
        };
        let _ = writeln!(types, "{keyword}{attribute} T{record} {{");
        let mut fields = Vec::new();
        for field in 0..1 + random.below(7) {
            let (name, most, signed) = TYPES[random.below(9)];
            let plain = random.below(5) == 0;
            let width = if plain {
                most
            } else {
                1 + random.below(most as usize) as u64
            };
            let declared = match (plain, random.below(12)) {
                (true, _) => format!("{name} f{field};"),
                (false, 0) if !is_union => format!("{name} : 0; {name} f{field} : {width};"),
                (false, 1) if !is_union => format!("{name} : {width}; {name} f{field} : {width};"),
                _ => format!("{name} f{field} : {width};"),
            };
            let _ = writeln!(types, "  {declared}");
            // Constants of more than 63 bits cannot be written.
            let bits = random.next() >> (64 - width.min(63));
            let value = if signed {
                i128::from((bits << (64 - width.min(63))) as i64 >> (64 - width.min(63)))
            } else {
                i128::from(bits)
            };
            fields.push((format!("f{field}"), value));
        }
        let _ = writeln!(types, "}} t{record};");
        // A union has only the field written last.
        let fields = if is_union {
            fields.split_off(fields.len() - 1)
        } else {
            fields
        };
        for (field, value) in &fields {
            let _ = writeln!(code, "  t{record}.{field} = {value}LL;");
        }
        for (field, value) in &fields {
            let _ = writeln!(
                code,
                "  if (t{record}.{field} != {value}LL) __builtin_trap();"
            );
        }
        all.push((format!("t{record}"), fields));
    }
    let source = format!("{types}int run(void) {{\n{code}  return 1; // here\n}}\n");
    (source, all)
}

#[test]
fn bit_fields_hold_what_was_assigned_in_every_version_of_dwarf() {
    let Some(clang) = tools::clang() else {
        return;
    };
    let mut random = SplitMix64(33);
    let sandbox = Sandbox::new();
    let mut fields = 0;
    for round in 0..3 {
        let (source, all) = bit_fields(&mut random);
        for version in 2..=5 {
            let option = format!("-gdwarf-{version}");
            record(&sandbox, &clang, &[&option, "-O0"], &source);
            let at = line(&source, "// here");
            let words = format!("state app.aft --at {at} --globals --format json");
            let state = json(&sandbox, &words);
            let globals = state["variables"].as_array().unwrap();
            for (name, assigned) in &all {
                let global = globals.iter().find(|one| one["name"] == **name);
                let value = global.unwrap()["value"].as_str();
                let value = value.unwrap_or_else(|| panic!("{round} {option} {global:?}"));
                for (field, number) in assigned {
                    let is_truth = value.contains(&format!("{field} = true"))
                        || value.contains(&format!("{field} = false"));
                    let expected = match (is_truth, *number) {
                        (true, 0) => format!(" {field} = false"),
                        (true, _) => format!(" {field} = true"),
                        _ => format!(" {field} = {number}"),
                    };
                    let ends = [',', ' '].map(|end| format!("{expected}{end}"));
                    let is_there = ends.iter().any(|text| value.contains(text));
                    assert!(
                        is_there,
                        "{round} {option} {name} = {value}:{expected}\n{source}"
                    );
                    fields += 1;
                }
            }
        }
    }
    assert!(fields > 1000, "{fields}");
}

#[test]
fn values_of_optimised_code_are_right_or_refused_in_every_version_of_dwarf() {
    let Some(clang) = tools::clang() else {
        return;
    };
    const SOURCE: &str = "
#define OWN __attribute__((noinline)) static
OWN int work(int a, int b) { __asm__ volatile(\"\"); return a * b; }
OWN int step(int n) {
  int twice = n * 2;
  int sum = work(twice, n);
  int more = sum + twice; // here
  sum = work(more, sum);
  return sum ^ more;
}
int run(void) {
  int all = 0;
  for (int k = 1; k < 5; k++)
    all += step(k);
  return all;
}
";
    let at = line(SOURCE, "// here");
    let sandbox = Sandbox::new();
    for version in 2..=5 {
        for level in ["-O1", "-O2"] {
            let options = [&format!("-gdwarf-{version}"), level];
            record(&sandbox, &clang, &options, SOURCE);
            for (variable, expected) in [
                ("n", [1, 2, 3, 4]),
                ("twice", [2, 4, 6, 8]),
                ("sum", [2, 8, 18, 32]),
            ] {
                let found = values(&sandbox, &at, variable);
                assert_eq!(found.len(), 4, "{options:?} {variable}");
                for ((value, _), expected) in found.into_iter().zip(expected) {
                    let expected = Some(expected.to_string());
                    // DWARF 2 and 3 do not distinguish a value from its address.
                    let is_right = value == expected || value.is_none() && version < 4;
                    assert!(is_right, "{options:?} {variable}: {value:?} {expected:?}");
                }
            }
        }
    }
}

#[test]
fn in_a_method_a_name_may_be_a_member_of_its_object() {
    const SOURCE: &str = "
#define OWN __attribute__((noinline))
int level = 100, other = 7;
struct Base { int below; };
struct Tank : Base {
  int level;
  union { int whole; char first; };
  static int made;
  OWN int add(int k) {
    level += k; below = level * 2; whole = k;
    return level; // method
  }
  __attribute__((always_inline)) int twice() {
    int old = other;
    other = level * 2;
    return other + old; // inlined
  }
  OWN int hidden(int below) {
    return below + level; // hidden
  }
};
int Tank::made = 5;
OWN int use(Tank *tank) {
  int below = 41;
  return tank->twice() + below + level + Tank::made; // caller
}
extern \"C\" int run() {
  Tank tank;
  tank.level = 1;
  tank.add(3);
  tank.add(4);
  tank.hidden(9);
  return use(&tank);
}
";
    for options in [["-xc++", "-g", "-O0"], ["-xc++", "-gdwarf-4", "-O0"]] {
        let Some(sandbox) = recorded(&options, SOURCE) else {
            return;
        };
        for (remark, variable, expected) in [
            ("// method", "level", &["4", "8"][..]),
            ("// method", "below", &["8", "16"]),
            ("// method", "whole", &["3", "4"]),
            ("// method", "first", &["3 '\\003'", "4 '\\004'"]),
            ("// method", "::level", &["100", "100"]),
            ("// method", "other", &["7", "7"]),
            ("// method", "this->level", &["4", "8"]),
            ("// method", "Tank::made", &["5", "5"]),
            ("// hidden", "below", &["9"]),
            ("// hidden", "this->below", &["16"]),
            ("// inlined", "old", &["7"]),
            ("// inlined", "level", &["8"]),
            // The caller's `level` is a different variable.
            ("// inlined", "below", &["16"]),
            ("// caller", "level", &["100"]),
        ] {
            let found = shown(&sandbox, &line(SOURCE, remark), variable);
            let is_right = found.iter().all(|value| expected.contains(&&**value));
            assert!(
                is_right && !found.is_empty(),
                "{options:?} {remark} {variable}: {found:?} {expected:?}"
            );
            assert!(found.len() >= expected.len(), "{variable}: {found:?}");
        }
        let method = line(SOURCE, "// method");
        let words = format!("memory app.aft --at {method}#2 --var level --format json");
        assert_eq!(json(&sandbox, &words)["variable"]["value"], "8");
        let slice = sandbox.ok(&format!("slice app.aft --at {method}#2 --var level"));
        assert!(slice.stdout.contains("level += k"), "{slice:?}");
        for words in [
            "why app.aft --at Tank::add#2 --var level",
            "state app.aft --at Tank::add#2",
        ] {
            sandbox.ok(words);
        }
        let nowhere = format!("values app.aft --at {method} --var nothing");
        sandbox.refused(&nowhere, 125, &["there is no variable nothing"]);
    }
}

/// UBSan's checks come before the first statement, so the line table has no prologue end that every
/// call reaches. In one-line functions, the prologue ends on the line where the function begins.
#[test]
fn arguments_are_known_before_they_are_stored() {
    const SOURCE: &str = "typedef struct { int x, y; } pair;
struct one { double d; };
int sum(int *all, signed char k, _Bool is, long long wide, struct one d, float f, __int128 huge, pair p) { return all[0] += k + is + (int)wide + (int)d.d + (int)f + (int)huge + p.x; }
int run(void) {
  int all[2] = { 1, 5 };
  for (int i = 0; i < 3; i++) {
    pair p = { i, 7 };
    struct one d = { i + 0.5 };
    sum(all, -i - 1, i & 1, (1LL << 40) + i, d, i * 0.25f, -((__int128)1 << 100) - i, p);
  }
  return all[0];
}
";
    for options in [
        &["-g", "-O0"][..],
        &["-g", "-O0", "-fsanitize=undefined", "-fsanitize-trap=all"],
    ] {
        let Some(sandbox) = recorded(options, SOURCE) else {
            return;
        };
        let huge = |i: i128| (-(1i128 << 100) - i).to_string();
        let expected: [(&str, [String; 3]); 8] = [
            ("k", ["-1", "-2", "-3"].map(str::to_owned)),
            ("is", ["false", "true", "false"].map(str::to_owned)),
            ("wide", [0, 1, 2].map(|i| ((1u64 << 40) + i).to_string())),
            ("d.d", ["0.5", "1.5", "2.5"].map(str::to_owned)),
            ("f", ["0.0", "0.25", "0.5"].map(str::to_owned)),
            ("huge", [0, 1, 2].map(huge)),
            ("p", [0, 1, 2].map(|i| format!("{{ x = {i}, y = 7 }}"))),
            ("all[1]", ["5", "5", "5"].map(str::to_owned)),
        ];
        for at in ["sum", "app.c:3", "sum+0"] {
            for (variable, right) in &expected {
                let found = shown(&sandbox, at, variable);
                let found: Vec<_> = found
                    .iter()
                    .map(|text| text.split(" '").next().unwrap())
                    .collect();
                assert_eq!(found, right.each_ref(), "{options:?} {at} {variable}");
            }
        }
    }
}

#[test]
fn lengths_that_the_program_computes_are_those_of_the_moment() {
    const SOURCE: &str = "_Thread_local int depth = 3;
int fill(int h, int w) {
  int cells[h][w];
  for (int y = 0; y < h; y++)
    for (int x = 0; x < w; x++)
      cells[y][x] = 10 * y + x;
  depth += 4;
  return cells[h - 1][w - 1]; // here
}
int run(void) { return fill(2, 3) + fill(1, 2); }
";
    for version in ["-gdwarf-2", "-gdwarf-3", "-gdwarf-4", "-gdwarf-5"] {
        let Some(sandbox) = recorded(&["-g", version, "-O0"], SOURCE) else {
            return;
        };
        let at = line(SOURCE, "// here");
        let all = ["{ { 0, 1, 2 }, { 10, 11, 12 } }", "{ { 0, 1 } }"];
        assert_eq!(shown(&sandbox, &at, "cells"), all);
        assert_eq!(shown(&sandbox, &at, "cells[0][1]"), ["1", "1"]);
        assert_eq!(shown(&sandbox, &at, "depth"), ["7", "11"]);
        let outside = json(
            &sandbox,
            &format!("values app.aft --at {at} --var cells[1][0] --format json"),
        );
        assert_eq!(outside["instances"][0]["value"], "10");
        let why = outside["instances"][1]["unavailable"].as_str().unwrap();
        assert!(why.contains("which has 1 elements"), "{why}");
        let memory = json(
            &sandbox,
            &format!("memory app.aft --at {at} --var cells --format json"),
        );
        let variable = &memory["variable"];
        assert_eq!(variable["type"], "int[2][3]");
        assert_eq!(variable["value"], all[0]);
        let depth = json(&sandbox, "memory app.aft --var depth --format json");
        assert_eq!(depth["variable"]["value"], "11");
        let state = sandbox.ok(&format!("state app.aft --at {at}")).stdout;
        assert!(state.contains("(int[2][3])"), "{state}");
    }
}

/// If a function is inlined everywhere, LLVM describes its static variables in a function without a
/// name.
#[test]
fn static_variables_of_inlined_functions_are_found() {
    const SOURCE: &str = "volatile int sink;
static void note(int n) {
  static int calls;
  calls += n + 1;
  sink = // here
      calls;
}
int run(void) {
  for (int k = 0; k < 3; k++)
    note(k);
  return sink;
}
";
    for level in ["-O0", "-O1", "-O2"] {
        let Some(sandbox) = recorded(&["-g", level], SOURCE) else {
            return;
        };
        let found = shown(&sandbox, &line(SOURCE, "// here"), "calls");
        let last: Vec<u32> = found.iter().map(|text| text.parse().unwrap()).collect();
        // Optimised code may store the value later.
        assert!(!last.is_empty() && last.is_sorted(), "{level} {found:?}");
        assert!(level != "-O0" || last == [1, 3, 6], "{found:?}");
        for variable in ["calls", "note::calls"] {
            let memory = format!("memory app.aft --var {variable} --format json");
            assert_eq!(json(&sandbox, &memory)["variable"]["value"], "6", "{level}");
        }
    }
}

#[test]
fn debug_information_that_is_elsewhere_is_named() {
    let Some(clang) = tools::clang() else {
        return;
    };
    const SOURCE: &str = "int depth = 3;
int add(int k) { return depth += k; }
int run(void) { return add(4); }
";
    let sandbox = Sandbox::new();
    record(&sandbox, &clang, &["-g", "-O0", "-gsplit-dwarf"], SOURCE);
    let values = "values app.aft --at add --var k";
    sandbox.refused(values, 125, &[".dwo", "compile without -gsplit-dwarf"]);
    let memory = "memory app.aft --var depth";
    sandbox.refused(memory, 125, &[".dwo", "compile without -gsplit-dwarf"]);
    record(&sandbox, &clang, &["-gline-tables-only", "-O0"], SOURCE);
    let only_lines = ["lines but no variables", "compile it with -g"];
    sandbox.refused(values, 125, &only_lines);
    sandbox.refused(memory, 125, &only_lines);
    for (section, parts) in [
        ("external_debug_info", ["another file, app.debug.wasm"]),
        ("sourceMappingURL", ["a source map, app.debug.wasm"]),
    ] {
        record(&sandbox, &clang, &["-g0", "-O0"], SOURCE);
        let mut module = sandbox.read("app.wasm");
        let text = "app.debug.wasm";
        let mut held = vec![section.len() as u8];
        held.extend(section.bytes());
        held.push(text.len() as u8);
        held.extend(text.bytes());
        module.extend([0, held.len() as u8]);
        module.extend(held);
        sandbox.write("app.wasm", module);
        sandbox.ok("record -q --force --invoke run -o app.aft app.wasm");
        sandbox.ok("build --lens full app.aft");
        sandbox.refused(values, 125, &parts);
        // Commands about lines report the other file, too.
        let refused = [
            "profile app.aft --format lcov",
            "values app.aft --at app.c:2",
            "why-not app.aft --at app.c:2",
            "trace app.aft --from app.c:2",
        ];
        for words in refused {
            sandbox.refused(words, 125, &parts);
        }
        for words in ["profile app.aft --by line", "profile app.aft --annotate"] {
            let report = sandbox.ok(words).stdout;
            assert!(parts.iter().all(|part| report.contains(part)), "{report}");
        }
    }
    // With -gsplit-dwarf and -gline-tables-only the module has all lines.
    for option in ["-gsplit-dwarf", "-gline-tables-only"] {
        record(&sandbox, &clang, &["-g", "-O0", option], SOURCE);
        let report = sandbox.ok("profile app.aft --format lcov").stdout;
        assert!(
            report.contains("DA:2,1\n") && report.contains("DA:3,1\n"),
            "{option} {report}"
        );
    }
}

/// Every command that takes the name of a function, except `record`, which runs the program.
const OF_A_FUNCTION: [&str; 18] = [
    "profile app.aft --function NAME",
    "trace app.aft --function NAME",
    "trace app.aft --level statement --from NAME#2 --limit 3",
    "calls app.aft --function NAME",
    "paths app.aft --function NAME",
    "cfg app.aft --function NAME",
    "cfg app.wasm --function NAME",
    "redundancy app.aft --function NAME",
    "addresses app.aft --at NAME",
    "values app.aft --at NAME --var a",
    "state app.aft --at NAME#2",
    "why app.aft --at NAME#1 --var a",
    "why-not app.aft --at NAME --after NAME#2",
    "deps app.aft --at NAME#1",
    "slice app.aft --at NAME#1 --var a",
    "slice app.aft --at end --chop NAME#1 --address 0x400",
    "memory app.aft --at NAME#1 --var a",
    "dataflow app.aft --fact gen=NAME;at=LINE",
];

/// Asks every command about a function by its mangled name and by other names, and compares the
/// answers. `line` is a place in the function.
fn is_found(sandbox: &Sandbox, mangled: &str, names: &[&str], line: &str, record: &str) {
    let ask = |command: &str, name: &str| {
        let words = command.split(' ').map(|word| word.replace("NAME", name));
        let words = words.map(|word| word.replace("LINE", line));
        let ran = crate::common::ran(&mut sandbox.command(words));
        assert_eq!(ran.code, Some(0), "{command} {name}: {}", ran.stderr);
        ran.stdout.replace(name, "NAME")
    };
    for command in OF_A_FUNCTION.into_iter().chain([record]) {
        let right = ask(command, mangled);
        for &name in names {
            // In a fact, spaces and commas separate places.
            if command.starts_with("dataflow") && name.contains([' ', ',']) {
                continue;
            }
            let (found, right) = (ask(command, name).lines().count(), right.lines().count());
            assert_eq!(found, right, "{command} {name}");
        }
    }
}

/// Debuggers accept the name of a template without its type, its arguments and its parameters.
/// Linkers write the mangled name.
#[test]
fn every_command_that_takes_a_function_finds_a_template() {
    const SOURCE: &str = "template <typename T> T mix(T a, T b) { return a * 2 + b; }
extern \"C\" double run(void) { return mix(1.5, mix(2.0, 0.25)) + 1; }
";
    let Some(sandbox) = recorded(&["-x", "c++", "-g", "-O0"], SOURCE) else {
        return;
    };
    let names = ["mix", "mix<double>", "mix<double>(double, double)"];
    let record = "record -q --force --lens paths --include NAME --invoke run -o part.aft app.wasm";
    is_found(&sandbox, "_Z3mixIdET_S0_S0_", &names, "app.c:1", record);
}

/// Since version v0, Rust's mangled names contain the types of generic functions.
#[test]
fn every_command_that_takes_a_function_finds_a_generic_of_rust() {
    const SOURCE: &str = "use std::ops::{Add, Mul};
fn mix<T: Copy + Add<Output = T> + Mul<Output = T>>(a: T, b: T) -> T { a * a + b }
fn main() { std::process::exit(mix(1.5, mix(2.0, 0.25)) as i32 - 6); }
";
    let sandbox = Sandbox::new();
    sandbox.write("app.rs", SOURCE);
    sandbox.rustc_with(&["-C", "symbol-mangling-version=v0"], "app", "app", 0);
    sandbox.ok("record -q --force -o app.aft app.wasm");
    let module = sandbox.read("app.wasm");
    let module = String::from_utf8_lossy(&module);
    let words = module.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let is_it = |word: &&str| word.starts_with("_RINv") && word.contains("3app3mixd");
    let mangled = words.into_iter().find(is_it).expect("a mangled name");
    let names = ["mix", "mix<f64>", "app::mix", "app::mix::<f64>"];
    let record = "record -q --force --lens paths --include NAME -o part.aft app.wasm";
    is_found(&sandbox, mangled, &names, "app.rs:2", record);
}

/// Parameters that the source never assigns keep one value during a call. A different value is
/// marked. At -O2, the debug information places `from` in a slot of the operand stack with another
/// value, and `n` in the memory of `left`.
#[test]
fn parameters_in_every_form_are_right_or_marked() {
    const SOURCE: &str = r#"use std::hint::black_box;
#[inline(never)]
fn text(word: &str, from: usize) -> usize {
    let mut sum = from;
    for byte in word.bytes() {
        sum = sum.wrapping_mul(31) ^ usize::from(byte); // a
    }
    black_box(sum) // b
}
#[inline(never)]
fn slice(all: &[u32], few: Option<u32>) -> u32 {
    let mut sum = few.unwrap_or(7);
    for one in all {
        sum = sum.wrapping_mul(5) ^ one; // c
        if sum & 3 == 0 { black_box(sum); } // d
    }
    black_box(sum) // e
}
#[inline(never)]
fn pair(both: (u32, u32), wide: u128) -> u128 {
    let mut rest = both.0;
    let mut sum = wide;
    while rest > 0 {
        rest >>= 1; // f
        sum = sum.rotate_left(3) ^ u128::from(rest ^ both.1); // g
    }
    black_box(sum) // h
}
#[inline(always)]
fn inside(both: (u32, u32), n: u32) -> u32 {
    let mut left = n;
    while left > both.0 { // k
        left -= both.1; // i
    }
    black_box(left) // j
}
fn main() {
    text(black_box("afterimage"), black_box(3));
    slice(black_box(&[4, 5, 6, 7]), black_box(Some(9)));
    pair(black_box((21, 3)), black_box(1 << 99));
    inside(black_box((2, 3)), black_box(17));
}
"#;
    let right = [
        ("word", "\"afterimage\"", "ab"),
        ("from", "3", "ab"),
        ("all", "{ 4, 5, 6, 7 }", "cde"),
        ("few", "Some(9)", "cde"),
        ("both", "(21, 3)", "fgh"),
        ("wide", "633825300114114700748351602688", "fgh"),
        ("both", "(2, 3)", "ij"),
        ("n", "17", "ij"),
        ("both", "(2, 3)", "k"),
        ("n", "17", "k"),
    ];
    let sandbox = Sandbox::new();
    sandbox.write("app.rs", SOURCE);
    for level in [0, 1, 2, 3] {
        sandbox.rustc("app", "app", level);
        sandbox.ok("record -q --force -o app.aft app.wasm");
        let (mut known, mut marked, mut others) = (0, 0, 0);
        for (variable, value, places) in right {
            for place in places.chars() {
                let end = format!("// {place}");
                let at = SOURCE.lines().position(|line| line.ends_with(&end));
                let at = format!("app.rs:{}", at.unwrap() + 1);
                let words = format!("values app.aft --at {at} --var {variable} --limit 999");
                let found = sandbox.run(&format!("{words} --format json"));
                // A line may have no code, or the variable no place at all.
                let Ok(found) = serde_json::from_str::<Value>(&found.stdout) else {
                    continue;
                };
                let mut asked = [0; 2];
                for row in found["instances"].as_array().unwrap() {
                    let Some(shown) = row["value"].as_str() else {
                        continue;
                    };
                    known += 1;
                    marked += u64::from(row["written"].is_object());
                    // Parts of the value may be unavailable.
                    let is_right = shown == value || shown.contains('<');
                    let is_marked = row["written"].is_object();
                    assert!(is_right || is_marked, "{level} {at} {variable}: {row}");
                    assert!(level > 0 || !is_marked, "{at} {variable}: {row}");
                    // Two marked occasions and two others are enough.
                    let asked = &mut asked[usize::from(is_marked)];
                    *asked += 1;
                    if *asked <= 2 {
                        others += u64::from(is_marked_elsewhere(&sandbox, (&at, variable), row));
                    }
                }
            }
        }
        assert!(known > 0, "{level}");
        assert_eq!(others > 0, marked > 0, "{level}");
        eprintln!("{level}: {known} known, {marked} marked, {others} by other commands, too");
    }
}

/// Checks that other commands agree with the mark that `values` gives a variable at one of the
/// times that it lists. Returns whether any command shows the mark.
fn is_marked_elsewhere(sandbox: &Sandbox, (at, variable): (&str, &str), row: &Value) -> bool {
    let written = &row["written"];
    let time = &row["number"];
    let mut is_there = false;
    for command in ["why", "slice", "memory"] {
        let words = format!("{command} app.aft --at {at}#{time} --var {variable}");
        let ran = sandbox.run(&format!("{words} --format json"));
        // The variable may not be in memory, or may be a constant.
        let Some(first) = ran.stdout.lines().next().filter(|_| ran.code == Some(0)) else {
            continue;
        };
        let found: Value = serde_json::from_str(first).unwrap();
        let found = match command {
            "memory" => &found["variable"]["written"],
            _ => &found["written"],
        };
        assert_eq!(found, written, "{words}");
        let text = sandbox.ok(&words).stdout;
        let marked = text.lines().next().unwrap_or_default();
        let marked = marked.contains("may be wrong");
        assert_eq!(marked, written.is_object(), "{words}: {text}");
        is_there |= marked;
    }
    is_there
}

/// Encodes a custom section.
fn section(name: &str, text: &str) -> Vec<u8> {
    let string = |text: &str| {
        let length = u8::try_from(text.len()).unwrap();
        [vec![length], text.as_bytes().to_vec()].concat()
    };
    let body = [string(name), string(text)].concat();
    [vec![0, u8::try_from(body.len()).unwrap()], body].concat()
}

#[test]
fn what_a_part_of_the_program_lacks_is_said_by_every_command() {
    let Some(clang) = tools::clang() else {
        return;
    };
    let lines_only = "inner.c has lines but no variables, as with -gline-tables-only";
    let split = "inner.dwo, which is not read; compile without -gsplit-dwarf";
    let elsewhere =
        "the module names another file with debug information, app.debug.wasm, which is not read";
    let mapped = "the module names a source map, app.map, which is not read";
    for (options, sections, lines, variables) in [
        (&["-gline-tables-only"][..], vec![], None, lines_only),
        (&["-g1"], vec![], None, lines_only),
        (&["-g", "-gsplit-dwarf"], vec![], None, split),
        (
            &[],
            section("external_debug_info", "app.debug.wasm"),
            Some(elsewhere),
            elsewhere,
        ),
        (
            &[],
            section("sourceMappingURL", "app.map"),
            Some(mapped),
            mapped,
        ),
        (
            &[],
            vec![],
            Some("if the program has it, compile it with -g"),
            "compile",
        ),
    ] {
        let sandbox = Sandbox::new();
        let inner = "int gone = 3;\nint work(int n) {\n  int local = n * gone;\n  gone += local;\n  return local;\n}\n";
        sandbox.write("inner.c", inner);
        sandbox.write(
            "outer.c",
            "int other = 1;\nint work(int);\nint run(void) { return work(2) + other; }\n",
        );
        let compile = |options: &[&str], name: &str| {
            let [source, object] = ["c", "o"].map(|end| sandbox.path(&format!("{name}.{end}")));
            let options = [&["-O0"], options].concat();
            clang.object(&options, &source, &object).unwrap();
            object
        };
        let objects = [compile(options, "inner"), compile(&["-g"], "outer")];
        let link = ["-Wl,--no-entry", "-Wl,--export=run"];
        clang
            .link(&objects, &link, &sandbox.path("app.wasm"))
            .unwrap();
        sandbox.write("app.wasm", [sandbox.read("app.wasm"), sections].concat());
        sandbox.ok("record -q --invoke run -o app.aft app.wasm");
        let state = sandbox.ok("state app.aft --at work").stdout;
        assert!(state.contains(variables), "{options:?}\n{state}");
        for words in [
            "values app.aft --at work --var local",
            "why app.aft --at work --var local",
            "slice app.aft --at work#1 --var local",
            "values app.aft --at work --var gone",
            "memory app.aft --var gone",
            "why app.aft --at end --var gone",
            "slice app.aft --at end --var gone",
        ] {
            sandbox.refused(words, 125, &[variables]);
        }
        let by_line = ["profile app.aft --by line", "profile app.aft --format lcov"];
        let by_line = by_line.map(|words| sandbox.ok(words).stderr);
        let Some(lines) = lines else {
            sandbox.ok("values app.aft --at inner.c:3");
            assert!(
                by_line.iter().all(|said| !said.contains("no line")),
                "{by_line:?}"
            );
            continue;
        };
        for said in by_line {
            let parts = [" executed instructions (work) have no known line; "];
            let parts = parts.into_iter().chain(lines.rsplit(", ").next());
            for part in parts {
                assert_eq!(said.matches(part).count(), 1, "{part}: {said}");
            }
        }
        let other = sandbox
            .ok("profile app.aft --by line --function run")
            .stderr;
        assert!(!other.contains("no line"), "{other}");
        for words in [
            "values app.aft --at inner.c:3",
            "state app.aft --at inner.c:3",
            "trace app.aft --from inner.c:3",
            "why app.aft --at inner.c:3",
            "why-not app.aft --at inner.c:3",
            "deps app.aft --at inner.c:3",
            "slice app.aft --at inner.c:3",
            "memory app.aft --address 0x100 --at inner.c:3",
            "addresses app.aft --at inner.c:3",
            "dataflow app.aft --fact available:inner.c:3",
        ] {
            sandbox.refused(words, 125, &[lines]);
        }
        let annotated = sandbox.ok("profile app.aft --annotate").stdout;
        let names_file = lines.starts_with("the module names");
        assert_eq!(names_file, annotated.contains(lines), "{annotated}");
        // Described variables are not affected.
        sandbox.ok("values app.aft --at run --var other");
    }
}
