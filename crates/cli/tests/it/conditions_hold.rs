//! Conditions agree with awk's evaluation of the listed values.

use std::fmt::Write;

use afterimage_testkit::modules::SplitMix64;
use afterimage_testkit::tools;
use serde_json::Value;

use crate::common::{Sandbox, ran};

const SOURCE: &str = r#"
struct point { int x, y; } points[4];
void use(struct point *p, int b, unsigned c, double d) {}
int run(void)
{
    int a = 1, b = -3;
    unsigned c = 7;
    for (int i = 0; i < 300; i++) {
        a = a * 1103515245 + 12345;
        b = (a >> 16) % 100;
        c = c * 7 + i;
        double d = b / 4.0;
        struct point *p = &points[i % 4];
        p->x = b;
        p->y += i;
        use(p, b, c, d); // here
    }
    return a;
}
"#;

/// The expressions in our notation, and their names in awk.
const VARIABLES: [(&str, &str); 6] = [
    ("a", "a"),
    ("b", "b"),
    ("c", "c"),
    ("d", "d"),
    ("p->x", "x"),
    ("(*p).y", "y"),
];

/// Returns a condition in both notations, with the first and the second names of [`VARIABLES`].
fn condition(random: &mut SplitMix64, depth: usize) -> [String; 2] {
    let operand = |random: &mut SplitMix64| -> [String; 2] {
        let (own, awk) = VARIABLES[random.below(VARIABLES.len())];
        let n = random.below(200) as i64 - 100;
        match random.below(4) {
            0 => [n.to_string(), n.to_string()],
            1 => [format!("{own} + {n}"), format!("{awk} + {n}")],
            2 => [format!("-{own} * 2"), format!("-{awk} * 2")],
            _ => [own.to_owned(), awk.to_owned()],
        }
    };
    if depth == 0 {
        let (left, right) = (operand(random), operand(random));
        let sign = ["<", "<=", ">", ">=", "==", "!="][random.below(6)];
        return [0, 1].map(|way| format!("{} {sign} {}", left[way], right[way]));
    }
    let (left, right) = (condition(random, depth - 1), condition(random, depth - 1));
    [0, 1].map(|way| match depth {
        1 => format!("{} && {}", left[way], right[way]),
        2 => format!("!({}) || {}", left[way], right[way]),
        _ => format!("({}) == ({})", left[way], right[way]),
    })
}

#[test]
fn conditions_hold_when_awk_says_so() {
    let sandbox = Sandbox::new();
    let Some(clang) = tools::clang() else {
        return;
    };
    let source = sandbox.write("run.c", SOURCE);
    let link = ["-Wl,--no-entry", "-Wl,--export=run"];
    clang.module(&["-g", "-O0"], &[source], &link, &sandbox.path("run.wasm"));
    sandbox.ok("record --invoke run --lens full -o run.aft run.wasm");
    let here = SOURCE
        .lines()
        .position(|line| line.contains("// here"))
        .unwrap()
        + 1;
    let ask = |options: &[&str]| {
        let at = format!("run.c:{here}");
        let words = [
            "values", "run.aft", "--format", "json", "--limit", "1000", "--at", &at,
        ];
        let told = ran(&mut sandbox.command(words.iter().chain(options)));
        assert_eq!(told.code, Some(0), "{options:?} {told:?}");
        serde_json::from_str::<Value>(&told.stdout).unwrap()
    };
    let mut table = vec![String::new(); 300];
    for (own, _) in VARIABLES {
        let told = ask(&["--var", own]);
        let rows = told["instances"].as_array().unwrap();
        assert_eq!(rows.len(), table.len());
        for (row, line) in rows.iter().zip(&mut table) {
            write!(line, " {}", row["value"].as_str().unwrap()).unwrap();
        }
    }
    sandbox.write("table", table.join("\n") + "\n");
    let mut random = SplitMix64(7);
    let (mut held, mut not) = (0, 0);
    for round in 0..40 {
        let [own, awk] = condition(&mut random, round % 4);
        let names = VARIABLES
            .iter()
            .zip(1..)
            .map(|((_, name), column)| format!("{name} = ${column};"));
        let program = format!(
            "{{ {} if ({awk}) print NR }}",
            Vec::from_iter(names).join(" ")
        );
        let said = ran(sandbox.any("awk").args([&program, "table"]));
        assert_eq!(said.code, Some(0), "{program}: {said:?}");
        let expected = Vec::from_iter(said.stdout.lines().map(|line| line.parse::<u64>().unwrap()));
        let told = ask(&["--where", &own]);
        let rows = told["instances"].as_array().unwrap();
        let numbers = rows.iter().map(|row| row["number"].as_u64().unwrap());
        assert_eq!(Vec::from_iter(numbers), expected, "{own}");
        assert_eq!(told["unknown"], serde_json::json!([]));
        assert_eq!(told["holds"], expected.len());
        held += expected.len();
        not += 300 - expected.len();
        assert_eq!(ask(&["--where", &own, "--count"])["holds"], expected.len());
        for (option, one) in [("--first", expected.first()), ("--last", expected.last())] {
            let told = ask(&["--where", &own, option]);
            let number = told["instances"]
                .get(0)
                .map(|row| row["number"].as_u64().unwrap());
            assert_eq!(number.as_ref(), one, "{own} {option}");
        }
    }
    assert!(held > 1000 && not > 1000, "{held} {not}");
    sandbox.refused(
        &format!("values run.aft --at run.c:{here} --where a=="),
        125,
        &["--where 'a=='", "at character 4"],
    );
    sandbox.refused(
        &format!("values run.aft --at run.c:{here} --where 1<2"),
        125,
        &["names no variable"],
    );
    sandbox.refused(
        &format!("values run.aft --at run.c:{here} --where nobody>2"),
        125,
        &["there is no variable nobody"],
    );
}

/// Returns how often a condition holds, and how often it is unknown, at the line with `// here`.
fn counts(sandbox: &Sandbox, source: &str, condition: &str) -> (u64, u64) {
    let here = source.lines().position(|line| line.contains("// here"));
    let at = format!(
        "app.{source}:{}",
        here.unwrap() + 1,
        source = extension(source)
    );
    let words = [
        "values", "app.aft", "--format", "json", "--at", &at, "--count",
    ];
    let told = ran(&mut sandbox.command(words.iter().chain(&["--where", condition])));
    assert_eq!(told.code, Some(0), "{condition}: {told:?}");
    let told = serde_json::from_str::<Value>(&told.stdout).unwrap();
    let unknown = told["unknown"].as_array().unwrap().iter();
    let unknown = unknown.map(|one| one["times"].as_u64().unwrap()).sum();
    (told["holds"].as_u64().unwrap(), unknown)
}

fn extension(source: &str) -> &str {
    if source.contains("fn main") {
        "rs"
    } else {
        "c"
    }
}

#[test]
fn constants_of_c_are_written_as_in_the_source() {
    let sandbox = Sandbox::new();
    let Some(clang) = tools::clang() else {
        return;
    };
    let source = "enum kind { DEPOSIT, WITHDRAW, TRANSFER = 7 };\n\
        enum other { LOW = -2, HIGH };\n\
        struct move { enum kind kind; int number; enum other other; };\n\
        int seen(struct move *m) { return m->number; } // here\n\
        int run(void) {\n    int sum = 0;\n    for (int i = 0; i < 12; i++) {\n        \
        struct move m = { i % 3 == 2 ? TRANSFER : i % 3, i, i % 2 ? LOW : HIGH };\n        \
        sum += seen(&m);\n    }\n    return sum;\n}\n";
    let file = sandbox.write("app.c", source);
    let link = ["-Wl,--no-entry", "-Wl,--export=run"];
    clang.module(&["-g", "-O0"], &[file], &link, &sandbox.path("app.wasm"));
    sandbox.ok("record --invoke run -o app.aft app.wasm");
    for (condition, holds) in [
        ("m->kind == TRANSFER", 4),
        ("m->kind != TRANSFER && m->number > 5", 4),
        ("kind::DEPOSIT == m->kind", 4),
        ("m->number == TRANSFER", 1),
        ("m->number > TRANSFER", 4),
        ("m->other == LOW", 6),
        ("m->other < HIGH", 6),
    ] {
        assert_eq!(
            counts(&sandbox, source, condition),
            (holds, 0),
            "{condition}"
        );
    }
    let words = [
        "values",
        "app.aft",
        "--at",
        "app.c:4",
        "--where",
        "m->kind == TRANSFR",
    ];
    let refused = ran(&mut sandbox.command(words));
    assert!(
        refused.stderr.contains("there is no variable TRANSFR"),
        "{refused:?}"
    );
}

#[test]
fn variants_and_counts_of_rust_are_written_as_in_the_source() {
    let sandbox = Sandbox::new();
    let source = "enum Event { Arrive(u32), Leave { item: String }, Audit }\n\
        #[derive(Clone, Copy)] enum Access { Read, Write }\n\
        #[inline(never)]\n\
        fn seen(event: &Event, access: Access, last: Option<u32>, all: &Vec<u32>) -> usize {\n    \
        all.len() // here\n}\n\
        fn main() {\n    let mut all = Vec::new();\n    let mut sum = 0;\n    for n in 0..12u32 {\n        \
        let event = match n % 3 { 0 => Event::Arrive(n), 1 => Event::Leave { item: n.to_string() }, _ => Event::Audit };\n        \
        let access = if n % 2 == 0 { Access::Read } else { Access::Write };\n        \
        sum += seen(&event, access, (n > 8).then_some(n), &all);\n        all.push(n);\n        \
        if let Event::Leave { item } = event { sum += item.len(); }\n    }\n    \
        if let Event::Arrive(n) = Event::Arrive(1) { println!(\"{sum} {n}\"); }\n}\n";
    sandbox.rust("app", source);
    sandbox.ok("record -o app.aft app.wasm");
    for (condition, holds) in [
        ("*event == Audit", 4),
        ("*event == Event::Leave", 4),
        ("*event != Arrive", 8),
        ("access == Read", 6),
        ("access == Access::Write && all.len() > 5", 3),
        ("last == None", 9),
        ("last != None", 3),
        ("last == Some", 3),
        ("all.len() == 3 || all.size == 4", 2),
    ] {
        assert_eq!(
            counts(&sandbox, source, condition),
            (holds, 0),
            "{condition}"
        );
    }
}

#[test]
fn a_missing_key_or_element_makes_a_condition_unknown() {
    let sandbox = Sandbox::new();
    let source = "use std::collections::BTreeMap;\n\
        #[inline(never)]\n\
        fn seen(map: &BTreeMap<String, Vec<u32>>, all: &Vec<u32>) -> usize {\n    \
        map.len() + all.len() // here\n}\n\
        fn main() {\n    let map = BTreeMap::new();\n    let mut all = Vec::new();\n    \
        let mut sum = 0;\n    for n in 0..12u32 {\n        sum += seen(&map, &all);\n        \
        all.push(n);\n    }\n    println!(\"{sum}\");\n}\n";
    sandbox.rust("app", source);
    sandbox.ok("record -o app.aft app.wasm");
    for (condition, unknown) in [
        ("(*map)[\"one\"][0] == 1", 12),
        ("(*map)[\"one\"] == 1 || (*all)[3] == 3", 4),
        ("(*all)[77] == 1", 12),
    ] {
        let (_, found) = counts(&sandbox, source, condition);
        assert_eq!(found, unknown, "{condition}");
    }
}

/// A condition is tested before the line. If the line itself assigns one of its variables, the
/// answer says so.
#[test]
fn a_line_that_assigns_the_variable_is_pointed_out() {
    let sandbox = Sandbox::new();
    let Some(clang) = tools::clang() else {
        return;
    };
    let file = sandbox.write("app.c", SOURCE);
    let link = ["-Wl,--no-entry", "-Wl,--export=run"];
    clang.module(&["-g", "-O0"], &[file], &link, &sandbox.path("app.wasm"));
    sandbox.ok("record --invoke run -o app.aft app.wasm");
    let line = |text: &str| 1 + SOURCE.lines().position(|line| line.contains(text)).unwrap();
    let asked = |line: usize, condition: &str, options: &[&str]| {
        let at = format!("app.c:{line}");
        let words = ["values", "app.aft", "--at", &at, "--where", condition];
        let told = ran(&mut sandbox.command(words.iter().chain(options)));
        assert_eq!(told.code, Some(0), "{told:?}");
        told.stdout
    };
    let said = |line, condition: &str, options: &[&str]| {
        let told = asked(line, condition, options);
        let (_, remark) = told.split_once("the condition is tested before ")?;
        Some(remark.trim_end().to_owned())
    };
    let assigns = line("b = (a >> 16)");
    for options in [&[][..], &["--first"], &["--last"], &["--count"]] {
        assert_eq!(
            said(assigns, "b < 0 && c != 3", options),
            Some(format!(
                "app.c:{assigns} runs, which changes b: to test the new value, use --at app.c:{}",
                assigns + 1
            ))
        );
    }
    let member = line("p->x = b");
    let remark = said(member, "p->x < 0 || p->y > 3", &[]).unwrap();
    assert!(remark.contains(" changes p->x: "), "{remark}");
    // There is no remark for other lines, or for variables that the line only reads.
    assert_eq!(said(line("// here"), "b < 0 && c != 3", &[]), None);
    assert_eq!(said(assigns, "a < 0", &[]), None);
    // `values --var` makes the same remark.
    let values = |line: usize, name: &str, options: &[&str]| {
        let at = format!("app.c:{line}");
        let words = ["values", "app.aft", "--at", &at, "--var", name];
        let told = ran(&mut sandbox.command(words.iter().chain(options)));
        assert_eq!(told.code, Some(0), "{told:?}");
        let remark = told.stdout.split_once("each value was read before ");
        remark.map(|(_, remark)| remark.trim_end().to_owned())
    };
    for options in [
        &[][..],
        &["--instances", "2"],
        &["--stats"],
        &["--limit", "1"],
    ] {
        assert_eq!(
            values(assigns, "b", options),
            Some(format!(
                "app.c:{assigns} runs, which changes b: to see the new value, use --at app.c:{}",
                assigns + 1
            ))
        );
    }
    let remark = values(member, "p->x", &[]).unwrap();
    assert!(remark.contains(" changes p->x: "), "{remark}");
    // A structure changes when one of its members changes.
    let remark = values(member, "*p", &[]).unwrap();
    assert!(remark.contains(" changes *p: "), "{remark}");
    assert_eq!(values(line("// here"), "b", &[]), None);
    assert_eq!(values(assigns, "a", &[]), None);
    // JSON names the line, too.
    let told = asked(assigns, "b < 0", &["--format", "json"]);
    let told = serde_json::from_str::<Value>(&told).unwrap();
    assert_eq!(told["changed"]["variables"], serde_json::json!(["b"]));
    assert_eq!(told["changed"]["next"]["line"], assigns + 1);
}
