//! Generates random programs that wander through calls in cycles, loops, and exceptions through
//! several frames. When their fuel runs out, they end in the requested way, wherever they are.

use std::collections::BTreeMap;
use std::fmt::Write;

use afterimage_program::Program;
use afterimage_record::Command;
use afterimage_testkit::modules::SplitMix64;
use afterimage_trace::Ending;
use wasmparser::ValType;

use crate::harness::invoke;

/// The ways in which a program ends without fuel, as code.
pub const ENDINGS: &[(&str, &str)] = &[
    ("exit", "(call $exit (i32.const 3))"),
    ("exit by a tail call", "(return_call $leave (i32.const 4))"),
    ("unreachable", "unreachable"),
    (
        "division",
        "(drop (i32.div_u (i32.const 1) (global.get $zero)))",
    ),
    ("bounds", "(drop (i32.load (i32.const -1)))"),
    (
        "null",
        "(drop (call_indirect (type $f) (i32.const 0) (i32.const 9)))",
    ),
    (
        "null, by a tail call",
        "(return_call_indirect (type $f) (i32.const 0) (i32.const 9))",
    ),
    (
        "wrong type",
        "(drop (call_indirect (type $f) (i32.const 0) (i32.const 8)))",
    ),
    ("exception", "(throw $big)"),
    ("overflow", "(drop (call $deep (i32.const 1)))"),
    (
        "overflow by tail calls",
        "(return_call $hop (i32.const 1) (i64.const 2) (i64.const 3) (i64.const 4))",
    ),
    ("for ever", "(loop $ever (br $ever))"),
    (
        "for ever, calling",
        "(loop $ever (drop (call $roll)) (br $ever))",
    ),
    (
        "sleep",
        "(drop (call $sleep (i32.const 512) (i32.const 1024) (i32.const 1) (i32.const 600)))",
    ),
];

const HEAD: &str = r#"(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $sleep (param i32 i32 i32 i32) (result i32)))
  (type $f (func (param i32) (result i32)))
  (tag $small (param i32))
  (tag $big)
  (memory (export "memory") 1 2)
  (data (i32.const 512) "\07\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\01\00\00\00\00\00\00\00\00\00\00\00\00\40\00\00")
  (global $zero (mut i32) (i32.const 0))
  (global $fuel (export "fuel") (mut i32) (i32.const 400))
  (func $leave (param i32) (result i32) (call $exit (local.get 0)) (i32.const 0))
  (func $deep (param i32) (result i32) (i32.add (call $deep (i32.const 1)) (local.get 0)))
  (func $hop (param i32 i64 i64 i64) (result i32) (return_call $land (local.get 0)))
  (func $land (param i32) (result i32)
    (i32.add (local.get 0) (call $hop (i32.const 1) (i64.const 2) (i64.const 3) (i64.const 4))))
  (func $wrong)
  (func $roll (result i32)
    (global.set $s (i32.add (i32.mul (global.get $s) (i32.const 1103515245)) (i32.const 12345)))
    (global.get $s))
"#;

/// Repeats, with or without exceptions, while there is fuel.
const TAIL: &str = r#"
  (func (export "_start") (local $e exnref)
    (loop $again
      (block $h (result exnref)
        (try_table (catch_all_ref $h) (drop (call $f0 (i32.const 5))))
        (br_if $again (global.get $fuel))
        (ref.null exn))
      (local.set $e)
      (br_if $again (global.get $fuel))
      (if (i32.eqz (ref.is_null (local.get $e))) (then (throw_ref (local.get $e))))
      (br $again))))"#;

/// Generates a program. The same seed gives the same program.
pub fn program(seed: u64, ending: &str) -> String {
    let mut random = SplitMix64(seed);
    let functions = 3 + random.below(5);
    let mut text = HEAD.to_owned();
    let start = random.next() as u32;
    write!(
        text,
        "(global $s (export \"state\") (mut i32) (i32.const {start}))"
    )
    .unwrap();
    text.push_str("(table 10 funcref) (elem (i32.const 0)");
    for _ in 0..8 {
        write!(text, " $f{}", random.below(functions)).unwrap();
    }
    text.push_str(" $wrong)\n");
    for i in 0..functions {
        let labels = vec![("$own".to_owned(), true)];
        let mut body = Body {
            random: &mut random,
            functions,
            ending,
            text: String::new(),
            labels,
            next: 0,
        };
        body.fuel();
        body.statements(4);
        let (code, counters) = (body.text, body.next);
        write!(text, "(func $f{i} (type $f) (local $e exnref)").unwrap();
        (0..counters).for_each(|c| write!(text, " (local $i{c} i32)").unwrap());
        writeln!(
            text,
            "\n(block $own (result i32)\n{code}\n(i32.add (local.get 0) (i32.const 1))))"
        )
        .unwrap();
    }
    text.push_str(TAIL);
    text
}

struct Body<'a> {
    random: &'a mut SplitMix64,
    functions: usize,
    ending: &'a str,
    text: String,
    /// The enclosing labels, outermost first: their names, and whether branches to them carry a
    /// number.
    labels: Vec<(String, bool)>,
    next: usize,
}

impl Body<'_> {
    fn put(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn fresh(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    fn fuel(&mut self) {
        let ending = self.ending;
        self.put(&format!(
            "(if (i32.eqz (global.get $fuel)) (then {ending}))
             (global.set $fuel (i32.sub (global.get $fuel) (i32.const 1)))"
        ));
    }

    /// Generates a changing number below a power of two.
    fn number(&mut self, mask: u32) -> String {
        let shift = self.random.below(20);
        format!("(i32.and (i32.shr_u (call $roll) (i32.const {shift})) (i32.const {mask}))")
    }

    /// Generates a condition that rarely holds.
    fn seldom(&mut self, mask: u32) -> String {
        let number = self.number(mask);
        format!("(i32.eqz {number})")
    }

    /// Returns a random label of a kind.
    fn label(&mut self, carries: bool) -> Option<String> {
        let fitting: Vec<&String> = self
            .labels
            .iter()
            .filter(|l| l.1 == carries)
            .map(|l| &l.0)
            .collect();
        (!fitting.is_empty()).then(|| fitting[self.random.below(fitting.len())].clone())
    }

    fn statements(&mut self, depth: usize) {
        for _ in 0..1 + self.random.below(3) {
            self.statement(depth);
        }
    }

    /// Generates statements inside a block with this label.
    fn inside(&mut self, label: String, carries: bool, depth: usize) {
        self.labels.push((label, carries));
        self.statements(depth);
        self.labels.pop();
    }

    fn callee(&mut self) -> String {
        format!("$f{}", self.random.below(self.functions))
    }

    fn statement(&mut self, depth: usize) {
        let simple = 9;
        match self
            .random
            .below(if depth == 0 { simple } else { simple + 6 })
        {
            0 => self
                .put("(i32.store (i32.const 64) (i32.add (i32.load (i32.const 64)) (call $roll)))"),
            1 => self.put("(drop (call $yield)) (drop (memory.grow (i32.const 1)))"),
            2 => {
                let callee = self.callee();
                self.put(&format!(
                    "(if (local.get 0) (then (drop (call {callee} (i32.sub (local.get 0) (i32.const 1))))))"
                ));
            }
            3 => {
                let index = self.number(7);
                self.put(&format!(
                    "(drop (call_indirect (type $f) (i32.const 2) {index}))"
                ));
            }
            4 => {
                let (condition, callee, index) = (self.seldom(7), self.callee(), self.number(7));
                let leave = [
                    "(return (i32.const 7))".to_owned(),
                    format!("(return_call {callee} (i32.const 3))"),
                    format!("(return_call_indirect (type $f) (i32.const 2) {index})"),
                ];
                let leave = &leave[self.random.below(3)];
                self.put(&format!("(if {condition} (then {leave}))"));
            }
            5 => {
                let condition = self.seldom(7);
                let throw = ["(throw $small (i32.const 5))", "(throw $big)"][self.random.below(2)];
                self.put(&format!("(if {condition} (then {throw}))"));
            }
            6 | 7 => {
                let (carries, condition) = (self.random.below(3) == 0, self.seldom(3));
                if let Some(label) = self.label(carries) {
                    self.put(&if carries {
                        format!("(drop (br_if {label} (i32.const 6) {condition}))")
                    } else {
                        format!("(br_if {label} {condition})")
                    });
                }
            }
            8 => {
                let carries = self.random.below(3) == 0;
                let index = self.number(7);
                let labels: Vec<String> = (0..1 + self.random.below(4))
                    .filter_map(|_| self.label(carries))
                    .collect();
                if !labels.is_empty() {
                    let value = if carries { "(i32.const 8)" } else { "" };
                    let condition = self.seldom(3);
                    self.put(&format!(
                        "(if {condition} (then (br_table {} {value} {index})))",
                        labels.join(" ")
                    ));
                }
            }
            9 => {
                let (condition, label) = (self.seldom(1), format!("$l{}", self.fresh()));
                self.put(&format!("(if {label} {condition} (then"));
                self.inside(label.clone(), false, depth - 1);
                if self.random.below(2) == 0 {
                    self.put(") (else");
                    self.inside(label, false, depth - 1);
                }
                self.put("))");
            }
            10 => {
                let label = format!("$l{}", self.fresh());
                self.put(&format!("(block {label}"));
                self.inside(label, false, depth - 1);
                self.put(")");
            }
            11 | 12 => {
                let counter = self.fresh();
                let (label, times) = (format!("$l{counter}"), 1 + self.random.below(6));
                self.put(&format!(
                    "(local.set $i{counter} (i32.const {times})) (loop {label}"
                ));
                if self.random.below(4) > 0 {
                    self.fuel();
                }
                self.inside(label.clone(), false, depth - 1);
                self.put(&format!(
                    "(br_if {label} (local.tee $i{counter} (i32.sub (local.get $i{counter}) (i32.const 1)))))"
                ));
            }
            _ => self.handler(depth),
        }
    }

    /// Generates a `try_table` whose clauses lead to its own handler and to outer labels.
    fn handler(&mut self, depth: usize) {
        let label = format!("$h{}", self.fresh());
        let by_reference = self.random.below(3) == 0;
        let mut clauses = String::new();
        for (clause, carries) in [
            ("catch $big", false),
            ("catch $small", true),
            ("catch_all", false),
        ] {
            if self.random.below(4) == 0
                && let Some(out) = self.label(carries)
            {
                write!(clauses, "({clause} {out})").unwrap();
            }
        }
        if by_reference {
            self.put(&format!(
                "(block {label} (result exnref) (try_table {clauses} (catch_all_ref {label})"
            ));
            self.statements(depth - 1);
            let again = self.seldom(1);
            self.put(&format!(
                ") (ref.null exn)) (local.set $e)
                 (if (i32.eqz (ref.is_null (local.get $e)))
                   (then (if {again} (then (throw_ref (local.get $e))))))"
            ));
        } else {
            self.put(&format!(
                "(block {label} (result i32) (try_table {clauses} (catch $small {label})"
            ));
            self.inside(label, true, depth - 1);
            self.put(") (i32.const 0)) (drop)");
        }
    }
}

/// Returns the number of seeds to try. The environment variable is for long manual runs.
pub fn seeds(usually: u64) -> u64 {
    std::env::var("AFTERIMAGE_TEST_SEEDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(usually)
}

/// The number of endings of each kind.
pub type Seen = BTreeMap<&'static str, u32>;

/// Returns the kind under which an ending is counted.
pub fn kind(ending: &Ending) -> &'static str {
    match ending {
        Ending::Returned => "returned",
        Ending::Exited { .. } => "exited",
        Ending::Trapped { .. } => "trapped",
        Ending::Exception { .. } => "exception",
        Ending::StackOverflow => "overflow",
        Ending::Interrupted { .. } => "interrupted",
        Ending::HostError { .. } => "host error",
    }
}

/// Generates a literal of a type, as for `--invoke`. Returns `None` for vectors and references.
fn literal(ty: ValType, random: &mut SplitMix64) -> Option<String> {
    let integers = ["0", "1", "-1", "2", "7", "100", "-2147483648", "65536"];
    let floats = ["0", "-1.5", "nan", "inf", "1e30"];
    Some(match ty {
        ValType::I32 | ValType::I64 => integers[random.below(integers.len())].to_owned(),
        ValType::F32 | ValType::F64 => floats[random.below(floats.len())].to_owned(),
        _ => return None,
    })
}

/// Generates up to `most` calls to exported functions.
pub fn invocations(program: &Program, most: usize, random: &mut SplitMix64) -> Vec<Command> {
    let mut commands = Vec::new();
    for (name, function) in &program.exports {
        let Some(function) = program.function(*function) else {
            continue;
        };
        let params = program.types[function.ty].params.iter();
        let args: Option<Vec<String>> = params.map(|ty| literal(*ty, random)).collect();
        if let Some(args) = args {
            commands.push(invoke(
                name,
                &Vec::from_iter(args.iter().map(String::as_str)),
            ));
        }
    }
    while commands.len() > most {
        commands.swap_remove(random.below(commands.len()));
    }
    commands
}

/// Returns the kinds of endings that wandering programs should reach often but did not.
pub fn rare(seen: &Seen) -> Vec<&'static str> {
    let kinds = ["exited", "trapped", "exception", "overflow", "interrupted"];
    let rare = |kind: &&str| seen.get(kind).is_none_or(|times| *times < 3);
    kinds.into_iter().filter(rare).collect()
}
