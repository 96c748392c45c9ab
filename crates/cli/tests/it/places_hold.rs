//! Every command accepts the places that commands print.

use std::collections::BTreeSet;

use afterimage_testkit::tools;
use serde_json::Value;

use crate::common::{Ran, Sandbox, ran};

/// A program with a file that has the same name as a file of the standard library. Both files have
/// code in the program.
const SOURCE: &str = r#"#[inline(always)]
fn double(n: u32) -> u32 {
    let twice = n.wrapping_mul(2);
    twice ^ 1
}

#[inline(never)]
fn sum(numbers: &[u32]) -> u32 {
    let mut sum = 0u32;
    for &n in numbers {
        if n % 3 == 0 {
            continue;
        }
        sum =
            sum.wrapping_add(double(n));
    }
    sum
}

fn main() {
    let mut numbers: Vec<u32> = (0..20).map(|n| n * 7 % 11).collect();
    numbers.sort();
    println!("{}", sum(&numbers));
}
"#;

/// Functions that are inlined, only move values, are declared on lines without code, or are
/// removed.
const C: &str = "struct node { int key; struct node *next; };
static struct node nodes[8];
static int total;
static volatile int seed = 1;
__attribute__((noinline))
static struct node *push(struct node *head,
                         int key)
{
    struct node *n = &nodes[key % 8];
    n->key = key;
    n->next = head;
    return n;
}
static inline int square(int x) { return x * x; }
static int sum(struct node *head)
{
    int s = 0;
    for (struct node *n = head; n; n = n->next) {
        int k = n->key;
        int copy = k;
        if (copy % 3 == 0)
            continue;
        s += square(copy);
    }
    return s;
}
int gone(int x)
{
    return x + 1;
}
__attribute__((noinline)) int move(int a, int b)
{
    int t = a;
    a = b;
    b = t;
    return a;
}
int run(void)
{
    struct node *head = 0;
    for (int i = 0; i < 8; i++)
        head = push(head, i * seed);
    total = sum(head);
    switch (total % 4) {
    case 0: total += 1; break;
    default: total -= move(2, total);
    }
    return total;
}
";

const CPP: &str = "namespace ns {
template <class T, int N> struct Box {
    T items[N];
    template <class U> __attribute__((noinline)) U sum(U start) const
    {
        U s = start;
        for (int i = 0; i < N; i++)
            s += items[i];
        return s;
    }
};
__attribute__((noinline)) int plain(int x) { return x * 2; }
}
__attribute__((noinline)) double plain(double x) { return x * 3; }
struct Shape { virtual int area() const { return 0; } };
struct Square : Shape {
    int s;
    Square(int s) : s(s) {}
    int area() const override { return s * s; }
};
template <class F> __attribute__((noinline)) int twice(F f) { return f(1) + f(2); }
static int unused() { return 3; }
int gone(int x) { return x + unused(); }
static volatile int seed = 1;
extern \"C\" int run() {
    ns::Box<int, 2> b{{3, 4}};
    ns::Box<int, 3> c{{3, 4, 5}};
    Square square(3);
    Shape *shape = &square;
    int area = shape->area() + seed;
    int more = twice([&](int k) {
        return k * area;
    });
    return b.sum<double>(0.5) + c.sum(1) + ns::plain(more) + plain(2.0);
}
";

/// Commands that print places. FUNCTION and LINE are the program's.
const PRINTING: &[&str] = &[
    "profile run.aft --by function --limit 400",
    "profile run.aft --by line --limit 400",
    "profile run.aft --by block --limit 400",
    "profile run.aft --by edge --limit 400",
    "profile run.aft --by instruction --limit 400",
    "state run.aft --at 50%",
    "state run.aft --at FUNCTION",
    "state run.aft --at end",
    "trace run.aft --limit 400",
    "trace run.aft --level path --limit 400",
    "trace run.aft --level call --limit 400",
    "trace run.aft --level statement --from FUNCTION --limit 40",
    "values run.aft --at FUNCTION",
    "values run.aft --at LINE",
    "deps run.aft --at FUNCTION#1",
    "deps run.aft --at FUNCTION#1 --forward",
    "deps run.aft --at LINE#1",
    "slice run.aft --at FUNCTION#1",
    "slice run.aft --at FUNCTION#1 --by statement",
    "slice run.aft --at FUNCTION#1 --forward",
    "slice run.aft --at LINE#1",
    "why run.aft --at LINE#1",
    "redundancy run.aft",
    "redundancy run.aft --expressions",
    "addresses run.aft --all --limit 100",
    "simulate run.aft --worst",
    "calls run.aft",
    "calls run.aft --function FUNCTION",
    "calls run.aft --function FUNCTION --call 1",
    "dataflow run.aft --fact available:LINE",
    "match run.aft run.aft",
    "paths run.aft --hot --limit 400",
    "paths run.aft --function FUNCTION",
];

/// Commands that take a place, with the words before it.
const TAKING: &[&str] = &[
    "state run.aft --at ",
    "trace run.aft --limit 3 --from ",
    "values run.aft --at ",
    "deps run.aft --at ",
    "slice run.aft --at ",
    "why run.aft --at ",
    "why-not run.aft --at ",
    "simulate run.aft --at ",
    "addresses run.aft --at ",
    "memory run.aft --address 0x100 --at ",
    "dataflow run.aft --fact available:",
    "export run.aft --format collapsed --from ",
];

/// Commands that take a function.
const TAKING_FUNCTION: &[&str] = &[
    "calls run.aft --function ",
    "paths run.aft --function ",
    "profile run.aft --function ",
    "redundancy run.aft --function ",
    "cfg run.aft --function ",
    "trace run.aft --level call --limit 3 --function ",
    "state run.aft --at ",
    "values run.aft --at ",
];

/// The messages about a text that is not a place, or matches several places.
const REFUSALS: &[&str] = &[
    "no source file",
    "ambiguous",
    "no code comes from",
    "no function",
    "no operator begins",
    "unexpected argument",
    "there is no statement",
    "not a place",
    "panicked",
];

/// The messages that make a refusal acceptable, because they say why there is no answer or how to
/// ask.
const REASONS: &[&str] = &["the linker removed", "ambiguous: func["];

/// Collects the places in a text: `file.rs:42`, `file.c:42:7` and `@0x1f3`, with or without `#3` at
/// the end.
fn places(text: &str, found: &mut BTreeSet<String>) {
    let words = text.split(|c: char| c.is_whitespace() || "(),;`\"".contains(c));
    let words = words.map(|word| word.trim_end_matches([':', '.', '…']));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_place = |word: &&str| {
        let (word, time) = word.split_once('#').unwrap_or((word, "1"));
        let line = [".rs:", ".c:", ".cpp:"]
            .iter()
            .filter_map(|end| word.rsplit_once(end))
            .any(|(_, line)| line.split(':').all(digits));
        let offset = word.strip_prefix("@0x");
        digits(time) && (line || offset.is_some_and(|at| at.bytes().all(|b| b.is_ascii_hexdigit())))
    };
    found.extend(words.filter(is_place).map(str::to_owned));
}

/// Collects the lines and functions in a document.
fn of_document(value: &Value, lines: &mut BTreeSet<String>, functions: &mut BTreeSet<String>) {
    match value {
        Value::Array(all) => all
            .iter()
            .for_each(|one| of_document(one, lines, functions)),
        Value::Object(fields) => {
            let text = |name| fields.get(name).and_then(Value::as_str);
            let number = |name| fields.get(name).and_then(Value::as_u64);
            if let (Some(file), Some(line)) = (text("file"), number("line")) {
                lines.insert(format!("{file}:{line}"));
                let column = number("column").filter(|column| *column > 0);
                lines.extend(column.map(|column| format!("{file}:{line}:{column}")));
            }
            if let (Some(name), Some(index)) = (text("name"), number("index"))
                && fields.len() <= 3
            {
                functions.insert(name.to_owned());
                functions.insert(format!("func[{index}]"));
            }
            fields
                .values()
                .for_each(|one| of_document(one, lines, functions));
        }
        _ => {}
    }
}

/// Runs all commands of a program, and passes the places that each prints to those that take a
/// place.
fn check(sandbox: &Sandbox, own: &str, function: &str, line: &str, more: &[&str]) {
    sandbox.ok("simulate run.aft");
    let (mut found, mut functions) = (BTreeSet::new(), BTreeSet::new());
    for command in PRINTING.iter().chain(more) {
        let command = command.replace("FUNCTION", function).replace("LINE", line);
        places(&sandbox.ok(&command).stdout, &mut found);
        let told = sandbox.ok(&format!("{command} --format json")).stdout;
        for document in serde_json::Deserializer::from_str(&told).into_iter::<Value>() {
            of_document(&document.unwrap(), &mut found, &mut functions);
        }
    }
    assert!(
        found.len() > 30 && functions.len() > 1,
        "{found:?} {functions:?}"
    );
    let mut wrong = Vec::new();
    let mut taken = |command: &str, text: &str| {
        let (words, before) = command.rsplit_once(' ').unwrap();
        let last = format!("{before}{text}");
        let words = words.split(' ').chain([last.as_str()]);
        let Ran { stderr, .. } = ran(&mut sandbox.command(words.filter(|word| !word.is_empty())));
        let says_why = REASONS.iter().any(|reason| stderr.contains(reason));
        let refused = !says_why && REFUSALS.iter().any(|refusal| stderr.contains(refusal));
        let aimless = stderr.contains("has no statement")
            && !stderr.contains("ask about")
            && !stderr.contains("and so does all of its function");
        if refused || aimless {
            wrong.push(format!("{command}{text}: {stderr}"));
        }
    };
    // Pass each place to one of the commands, so that each gets many places of every kind. Pass
    // lines of the program to all commands.
    for (i, place) in found.iter().enumerate() {
        let is_own = place.contains(own) && place.matches(':').count() == 1;
        // Libraries have thousands of places.
        if found.len() > 1000 && !place.contains(own) && i % 16 > 0 {
            continue;
        }
        for (k, command) in TAKING.iter().enumerate() {
            if i % TAKING.len() == k || is_own && i % 2 == k % 2 {
                // Some columns show offsets without the prefix used elsewhere.
                let bare = place.strip_prefix('@').filter(|_| i % 2 == 1);
                taken(command, bare.unwrap_or(place));
            }
        }
    }
    for (i, name) in functions.iter().enumerate() {
        for (k, command) in TAKING_FUNCTION.iter().enumerate() {
            if functions.len() < 40 || i % TAKING_FUNCTION.len() == k {
                taken(command, name);
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} places and {} functions\n{}",
        wrong.len(),
        found.len(),
        functions.len(),
        wrong.join("\n")
    );
}

fn check_rust(level: u32) {
    let sandbox = Sandbox::new();
    sandbox.write("lib.rs", SOURCE);
    sandbox.rustc("lib", "app", level);
    sandbox.ok("record -o run.aft app.wasm");
    let line = format!(
        "lib.rs:{}",
        1 + SOURCE
            .lines()
            .position(|line| line.contains("n % 3"))
            .unwrap()
    );
    check(
        &sandbox,
        "lib.rs:",
        "sum",
        &line,
        &["why run.aft --stdout 1"],
    );
}

/// Compiles a program. Returns `None` without a compiler.
fn compiled(name: &str, source: &str, level: &str) -> Option<Sandbox> {
    let clang = tools::clang()?;
    let sandbox = Sandbox::new();
    let source = sandbox.write(name, source);
    let link = ["-Wl,--no-entry", "-Wl,--export=run"];
    clang.module(
        &["-g", "-fno-rtti", level],
        &[source],
        &link,
        &sandbox.path("app.wasm"),
    );
    sandbox.ok("record -q --invoke run -o run.aft app.wasm");
    Some(sandbox)
}

#[test]
fn printed_places_are_taken_back() {
    check_rust(0);
}

#[test]
fn printed_places_of_an_optimised_program_are_taken_back() {
    check_rust(2);
}

#[test]
fn printed_places_of_c_are_taken_back() {
    for level in ["-O0", "-O2"] {
        if let Some(sandbox) = compiled("app.c", C, level) {
            check(&sandbox, "app.c:", "push", "app.c:18", &[]);
        }
    }
}

#[test]
fn printed_places_of_cpp_are_taken_back() {
    for level in ["-O0", "-O2"] {
        if let Some(sandbox) = compiled("app.cpp", CPP, level) {
            check(&sandbox, "app.cpp:", "ns::plain", "app.cpp:12", &[]);
        }
    }
}

#[test]
fn a_function_without_code_is_said_to_have_none_by_every_command() {
    let Some(sandbox) = compiled("app.c", C, "-O2") else {
        return;
    };
    sandbox.ok("simulate run.aft");
    let commands = || TAKING.iter().chain(TAKING_FUNCTION);
    for command in commands() {
        // A function has no line.
        let takes_lines = !command.contains("--function");
        let line = takes_lines.then_some("app.c:27");
        for what in ["gone"].into_iter().chain(line) {
            let words = format!("{command}{what}");
            sandbox.refused(&words, 125, &["the linker removed"]);
        }
        let part = [
            "sum, declared at app.c:15, has no code of its own",
            "such as app.c:",
        ];
        sandbox.refused(&format!("{command}sum"), 125, &part);
    }
}

#[test]
fn the_declaration_of_a_function_is_its_entry() {
    let Some(sandbox) = compiled("app.c", C, "-O0") else {
        return;
    };
    let of = |words: &str| sandbox.run(words);
    for (words, place) in [
        ("calls run.aft --function", "push"),
        ("state run.aft --at", "push#3"),
    ] {
        sandbox.ok(&format!("{words} {place}"));
    }
    for command in [
        "state run.aft --at",
        "trace run.aft --limit 5 --from",
        "values run.aft --at",
        "why-not run.aft --at",
    ] {
        let (line, function) = (
            of(&format!("{command} app.c:6")),
            of(&format!("{command} push")),
        );
        assert_eq!(
            (line.code, &line.stdout),
            (function.code, &function.stdout),
            "{command}"
        );
        let said = "app.c:6 has no code, but declares push: using that function";
        assert_eq!(
            line.stderr.matches(said).count(),
            1,
            "{command}\n{}",
            line.stderr
        );
    }
    let third = of("state run.aft --at app.c:6#3").stdout;
    assert_eq!(third, of("state run.aft --at push#3").stdout);
}
