//! The explanation of a printed number names the printed value, and the line that computed it.

use afterimage_testkit::modules::SplitMix64;
use afterimage_testkit::tools::{installed, skipped};
use serde_json::Value;

use crate::common::{Sandbox, ran};

/// A number: its computation in the language of the program, and its printed form.
struct Number {
    kind: &'static str,
    left: String,
    operator: char,
    right: String,
    format: &'static str,
}

/// The number of printed numbers.
const NUMBERS: usize = 48;

fn numbers(seed: u64, kinds: &[(&'static str, &[&'static str])]) -> Vec<Number> {
    let mut random = SplitMix64(seed);
    let mut below = move |n: usize| random.below(n);
    let mut number = || {
        let (kind, formats) = kinds[below(kinds.len())];
        let operator = ['+', '-', '*'][below(3)];
        let is_float = matches!(kind, "f32" | "f64" | "float" | "double");
        let mut operand = || match is_float {
            true => format!("{}.{}", below(1000) + 3, below(1000)),
            false => format!("{}", below(30_000) + 50),
        };
        Number {
            kind,
            left: operand(),
            operator,
            right: operand(),
            format: formats[below(formats.len())],
        }
    };
    std::iter::repeat_with(&mut number).take(NUMBERS).collect()
}

/// Checks that each digit, sign and point of each number leads to the line that computed it, and to
/// a value with this printed form.
fn compare(sandbox: &Sandbox, source: &str, printed: &str, parse: impl Fn(&str) -> f64) {
    let text = String::from_utf8(sandbox.read(source)).unwrap();
    for (row, line) in printed.lines().enumerate() {
        let begin = line.find(": ").unwrap() + 2;
        let shown = line[begin..].trim_end_matches(';').trim();
        let start = line.rfind(shown).unwrap();
        let computed = format!("v{row} = ");
        let computed = text.lines().position(|line| line.contains(&computed));
        let computed = computed.unwrap() as u64 + 1;
        for column in [start, start + shown.len() / 2, start + shown.len() - 1] {
            let at = format!("line:{}:{}", row + 1, column + 1);
            let told = sandbox
                .ok(&format!("why run.aft --stdout {at} --format json"))
                .stdout;
            let (head, steps) = told.split_once('\n').unwrap();
            let head: Value = serde_json::from_str(head).unwrap();
            let about = head["about"].as_str().unwrap();
            assert!(about.contains(&format!("printed as {shown:?}")), "{about}");
            let value = head["value"].as_str().unwrap();
            let value = value.split(' ').next().unwrap();
            // A value also has digits that were not printed.
            let (value, number) = (value.parse::<f64>().unwrap(), parse(shown));
            let error = (value - number).abs();
            assert!(error <= number.abs() * 0.006 + 0.51, "{shown}: {value}");
            // The value is computed on this line, or a call on it stores the value.
            let place = format!("{source}\",\"line\":{computed},");
            assert!(steps.contains(&place), "{line}: {place}, {steps}");
        }
    }
}

#[test]
fn numbers_that_rust_prints_are_those_that_it_computed() {
    let kinds: &[(_, &[_])] = &[
        ("i32", &["{}", "{:?}", "{:7}"]),
        ("i64", &["{}", "{:012}"]),
        ("u64", &["{}", "{:#x}"]),
        ("f64", &["{}", "{:.3}", "{:?}", "{:9.1}", "{:012.3}"]),
        ("f32", &["{}", "{:.2}"]),
    ];
    let mut source = "use std::hint::black_box;\nfn main() {\n".to_owned();
    for (row, one) in numbers(7, kinds).iter().enumerate() {
        let (kind, operator) = (one.kind, one.operator);
        // Unsigned differences would overflow.
        let operator = if kind == "u64" { '*' } else { operator };
        source += &format!(
            "let v{row} = black_box({}{kind}) {operator} black_box({}{kind});\nprintln!(\"n{}: {};\", v{row});\n",
            one.left,
            one.right,
            "x".repeat(row % 5),
            one.format
        );
    }
    source += "}\n";
    let sandbox = Sandbox::new();
    sandbox.rust("run", &source);
    let printed = sandbox.ok("record --lens full -o run.aft run.wasm").stdout;
    assert_eq!(printed.lines().count(), NUMBERS);
    compare(&sandbox, "run.rs", &printed, |text| {
        match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).unwrap() as f64,
            None => text.parse().unwrap(),
        }
    });
}

#[test]
fn numbers_that_c_prints_are_those_that_it_computed() {
    let sandbox = Sandbox::new();
    let Some(clang) = ["clang-19", "clang"]
        .into_iter()
        .find(|name| installed(name))
    else {
        return skipped("numbers that C prints: no clang");
    };
    let kinds: &[(_, &[_])] = &[
        ("int", &["%d", "%i", "%8d", "%x"]),
        ("long long", &["%lld", "%016lld"]),
        (
            "double",
            &["%f", "%.2f", "%g", "%e", "%.12g", "%8.1f", "%012.3f"],
        ),
        ("float", &["%.3f", "%g"]),
    ];
    let mut source = "#include <stdio.h>\nint main(void) {\n".to_owned();
    for (row, one) in numbers(8, kinds).iter().enumerate() {
        let (kind, format) = (one.kind, one.format);
        let operator = if format == "%x" { '*' } else { one.operator };
        source += &format!(
            "volatile {kind} a{row} = {}, b{row} = {};\n{kind} v{row} = a{row} {operator} b{row};\nprintf(\"n{}: {}{format};\\n\", v{row});\n",
            one.left,
            one.right,
            "x".repeat(row % 5),
            if format == "%x" { "0x" } else { "" },
        );
    }
    source += "}\n";
    sandbox.write("run.c", &source);
    for options in ["-g -O0 -c run.c -o run.o", "run.o -o run.wasm"] {
        let made = ran(sandbox
            .any(clang)
            .arg("--target=wasm32-wasi")
            .args(options.split(' ')));
        if made.code != Some(0) {
            return skipped("numbers that C prints: clang has no C library for WebAssembly here");
        }
    }
    let printed = sandbox.ok("record --lens full -o run.aft run.wasm").stdout;
    assert_eq!(printed.lines().count(), NUMBERS);
    compare(&sandbox, "run.c", &printed, |text| {
        match text.strip_prefix("0x") {
            Some(hex) => f64::from(u32::from_str_radix(hex, 16).unwrap() as i32),
            None => text.parse().unwrap(),
        }
    });
}
