//! Generates modules full of compiler idioms: sums as addresses, comparisons before branches,
//! constants, and variables that take the values of other variables.

use std::fmt::Write;

use afterimage_testkit::modules::SplitMix64;

const COMPARISONS: &[&str] = &[
    "eq", "ne", "lt_s", "lt_u", "gt_s", "gt_u", "le_s", "le_u", "ge_s", "ge_u",
];
const OPERATORS: &[&str] = &[
    "add", "add", "add", "sub", "mul", "and", "or", "xor", "shl", "shr_s", "shr_u", "rotl", "rotr",
];
const LOADS: &[&str] = &[
    "i32.load",
    "i32.load8_u",
    "i32.load8_s",
    "i32.load16_u",
    "i32.load16_s",
];
const WIDE_LOADS: &[&str] = &[
    "i64.load",
    "i64.load8_u",
    "i64.load8_s",
    "i64.load16_u",
    "i64.load16_s",
    "i64.load32_u",
    "i64.load32_s",
];

/// Generates code with these locals: `$p` and `$q` hold small numbers, which are addresses or
/// indices. `$a` to `$d` hold any 32-bit numbers, `$v` and `$w` any 64-bit numbers.
struct Patterns<'r> {
    random: &'r mut SplitMix64,
    text: String,
}

/// Returns a module with a function that takes two numbers and calls another function. Nearly all
/// its accesses are within bounds.
pub fn module(random: &mut SplitMix64) -> Vec<u8> {
    let mut patterns = Patterns {
        random,
        text: String::new(),
    };
    patterns.function("$other", "", 6);
    patterns.function("$main", "(export \"run\")", 14);
    let text = format!(
        "(module (memory 1) (global $g (mut i32) (i32.const 7)) {})",
        patterns.text
    );
    wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

impl Patterns<'_> {
    fn one(&mut self, of: &[&'static str]) -> &'static str {
        of[self.random.below(of.len())]
    }

    fn function(&mut self, name: &str, export: &str, statements: usize) {
        let locals = "(local $a i32) (local $b i32) (local $q i32) (local $v i64) (local $w i64)";
        let head = format!(
            "(func {name} {export} (param $c i32) (param $d i32) (result i32) (local $p i32) {locals}"
        );
        self.text.push_str(&head);
        self.text.push_str(
            "(local.set $a (local.get $d)) (local.set $v (i64.extend_i32_s (local.get $c)))",
        );
        for _ in 0..statements {
            let statement = self.statement(2, name == "$main");
            self.text.push_str(&statement);
        }
        self.text
            .push_str("(i32.add (local.get $a) (local.get $p)))\n");
    }

    fn statement(&mut self, depth: usize, calls: bool) -> String {
        let narrow = ["$a", "$b", "$c", "$d"];
        match self.random.below(if depth > 0 { 16 } else { 9 }) {
            0 | 1 => format!("(local.set {} {})", self.one(&narrow), self.value(2)),
            2 => format!("(local.set {} {})", self.one(&["$v", "$w"]), self.wide(2)),
            3 => format!(
                "(local.set {} (i32.and {} (i32.const 1023)))",
                self.one(&["$p", "$q"]),
                self.value(1)
            ),
            4 | 5 => {
                let (address, offset) = (self.address(), self.offset());
                match self.random.below(2) {
                    0 => {
                        let store = self.one(&["i32.store", "i32.store8", "i32.store16"]);
                        format!("({store} {offset} {address} {})", self.value(2))
                    }
                    _ => {
                        let store = self.one(&["i64.store", "i64.store8", "i64.store32"]);
                        format!("({store} {offset} {address} {})", self.wide(1))
                    }
                }
            }
            // Variables take the values of other variables.
            6 => {
                let mut gets = String::new();
                let mut sets = String::new();
                for _ in 0..2 + self.random.below(3) {
                    let _ = write!(gets, "local.get {} ", self.one(&narrow));
                    let _ = write!(sets, "local.set {} ", self.one(&narrow));
                }
                gets + &sets
            }
            // A variable's old value is read after the operator that computes its new value.
            7 if self.random.below(2) == 0 => format!(
                "local.get $a {} local.set $a {} i32.{} local.set {} ",
                self.value(1),
                self.value(0),
                self.one(OPERATORS),
                self.one(&narrow)
            ),
            7 => format!("(global.set $g {})", self.value(1)),
            8 => format!(
                "(local.set $a (select {} {} {}))",
                self.value(1),
                self.value(1),
                self.condition()
            ),
            9 if calls => format!(
                "(local.set {} (call $other {} {}))",
                self.one(&narrow),
                self.value(1),
                self.value(0)
            ),
            10 | 11 => {
                let value = self.value(1);
                let index = match self.random.below(2) {
                    0 => format!("(i32.and {value} (i32.const 7))"),
                    _ => format!("(i32.add (i32.and {value} (i32.const 7)) (i32.const -2))"),
                };
                let count = 1 + self.random.below(3);
                let labels = ["$x $y ", "$x $x $y $y $y "][self.random.below(2)].repeat(count);
                format!(
                    "(block $x (block $y (br_table {labels} $x {index})) {})",
                    self.statement(depth - 1, calls)
                )
            }
            12 => format!(
                "(local.set $q (i32.const {})) (loop $l {} (br_if $l (local.tee $q (i32.sub (local.get $q) (i32.const 1)))))",
                1 + self.random.below(3),
                self.statement(0, false).replace("$q", "$p")
            ),
            _ => {
                let condition = self.condition();
                let (yes, no) = (
                    self.statement(depth - 1, calls),
                    self.statement(depth - 1, calls),
                );
                format!("(if {condition} (then {yes}) (else {no}))")
            }
        }
    }

    fn constant(&mut self) -> i64 {
        let number = self.random.next() as i64;
        match self.random.below(4) {
            0 => number % 4,
            1 => number % 40,
            2 => i64::from(number as i32),
            _ => [0, 1, -1, i64::from(i32::MIN), i64::from(i32::MAX)][self.random.below(5)],
        }
    }

    fn value(&mut self, depth: usize) -> String {
        let leaf = ["$a", "$b", "$c", "$d", "$p", "$q"];
        match self.random.below(if depth > 0 { 9 } else { 3 }) {
            0 | 1 => format!("(local.get {})", self.one(&leaf)),
            2 => format!("(i32.const {})", self.constant()),
            3 => format!("({} {} {})", self.one(LOADS), self.offset(), self.address()),
            4 => format!(
                "(i32.{} {} {})",
                self.one(COMPARISONS),
                self.value(depth - 1),
                self.value(depth - 1)
            ),
            5 => format!("(i32.wrap_i64 {})", self.wide(depth - 1)),
            6 => format!("(i32.eqz {})", self.value(depth - 1)),
            _ => format!(
                "(i32.{} {} {})",
                self.one(OPERATORS),
                self.value(depth - 1),
                self.value(depth - 1)
            ),
        }
    }

    fn wide(&mut self, depth: usize) -> String {
        match self.random.below(if depth > 0 { 8 } else { 3 }) {
            0 | 1 => format!("(local.get {})", self.one(&["$v", "$w"])),
            2 => {
                let number = match self.random.below(4) {
                    0 => self.random.next() as i64,
                    1 => self.constant() ^ 1 << 32,
                    _ => self.constant(),
                };
                format!("(i64.const {number})")
            }
            3 => format!(
                "({} {} {})",
                self.one(WIDE_LOADS),
                self.offset(),
                self.address()
            ),
            4 => format!("(i64.extend_i32_u {})", self.value(depth - 1)),
            5 => format!("(i64.extend_i32_u {})", self.condition()),
            _ => format!(
                "(i64.{} {} {})",
                self.one(OPERATORS),
                self.wide(depth - 1),
                self.wide(depth - 1)
            ),
        }
    }

    fn condition(&mut self) -> String {
        match self.random.below(6) {
            0 => self.value(1),
            1 => format!("(i32.eqz {})", self.condition()),
            2 => format!(
                "(i64.{} {} {})",
                self.one(COMPARISONS),
                self.wide(1),
                self.wide(0)
            ),
            3 => format!("(i64.eqz {})", self.wide(1)),
            _ => format!(
                "(i32.{} {} {})",
                self.one(COMPARISONS),
                self.value(1),
                self.value(0)
            ),
        }
    }

    fn offset(&mut self) -> String {
        match self.random.below(4) {
            0 => String::new(),
            1 => format!("offset={}", self.random.below(60_000)),
            2 if self.random.below(20) == 0 => "offset=70000".into(),
            _ => format!("offset={}", self.random.below(64)),
        }
    }

    /// Returns an address, which is mostly small.
    fn address(&mut self) -> String {
        let index = format!("(local.get {})", self.one(&["$p", "$q"]));
        let base = format!("(local.get {})", self.one(&["$p", "$q"]));
        let small = self.random.below(100) as i64 - 8;
        let multiple = match self.random.below(3) {
            0 => format!("(i32.mul {index} (i32.const {}))", self.random.below(5)),
            _ => format!("(i32.shl {index} (i32.const {}))", self.random.below(4)),
        };
        match self.random.below(9) {
            0 => base,
            1 => format!("(i32.add {base} (i32.const {small}))"),
            2 => format!("(i32.add (i32.const {small}) {base})"),
            3 => format!("(i32.add {base} {index})"),
            4 => format!("(i32.add {base} {multiple})"),
            5 => format!("(i32.add {multiple} {base})"),
            6 => format!("(i32.add (i32.add {base} {multiple}) (i32.const {small}))"),
            7 => format!("(i32.const {})", self.random.below(200)),
            _ => multiple,
        }
    }
}
