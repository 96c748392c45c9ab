//! Generated programs with many loads and stores, at few addresses, in loops, branches and calls.

use std::fmt::Write;

use crate::common::Sandbox;

/// The number of functions in a program besides `main`.
const FUNCTIONS: usize = 4;

/// A generator of numbers (xorshift64*).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % bound
    }
}

/// Makes a recording of a program with its path, `run.aft`.
pub fn memory_recording(seed: u64) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.wasm("a.wasm", &memory_program(seed));
    sandbox.ok("record --invoke main -o run.aft a.wasm");
    sandbox.ok("build --lens paths run.aft");
    sandbox
}

/// Returns a program as text, with an export `main` without parameters.
pub fn memory_program(seed: u64) -> String {
    let mut numbers = Numbers(seed.wrapping_mul(2) + 1);
    for _ in 0..4 {
        numbers.below(2);
    }
    let mut text = String::from(
        "(module\n  (import \"wasi_snapshot_preview1\" \"clock_res_get\" (func $host (param i32 i32) (result i32)))\n  (memory (export \"memory\") 1)\n  (table funcref (elem $host",
    );
    for f in 0..FUNCTIONS {
        write!(text, " $f{f}").unwrap();
    }
    text.push_str("))\n  (type $callee (func (param i32 i32) (result i32)))\n");
    for f in 0..FUNCTIONS {
        writeln!(
            text,
            "  (func $f{f} (type $callee) (local $q i32) (local $i i32)"
        )
        .unwrap();
        let mut body = Body {
            numbers: &mut numbers,
            text: &mut text,
            function: f,
            depth: 0,
            loops: 0,
        };
        body.statements();
        match numbers.below(6) {
            0 if f > 0 => writeln!(
                text,
                "    (return_call $f{} (local.get $q) (local.get 1)))",
                f - 1
            ),
            _ => writeln!(text, "    (local.get $q))"),
        }
        .unwrap();
    }
    writeln!(
        text,
        "  (func (export \"main\") (result i32) (local $n i32) (local $sum i32)\n    (loop $again\n      (local.set $sum (i32.add (local.get $sum) (call $f{} (local.get $n) (i32.and (local.get $n) (i32.const 7)))))\n      (br_if $again (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 9))))\n    (local.get $sum)))",
        FUNCTIONS - 1
    )
    .unwrap();
    text
}

struct Body<'a> {
    numbers: &'a mut Numbers,
    text: &'a mut String,
    function: usize,
    depth: usize,
    loops: usize,
}

impl Body<'_> {
    fn statements(&mut self) {
        for _ in 0..2 + self.numbers.below(4) {
            self.statement();
        }
    }

    /// Writes an address below 32.
    fn address(&mut self) -> String {
        match self.numbers.below(4) {
            0 => format!("(i32.const {})", self.numbers.below(3) * 4),
            1 => "(i32.and (local.get 0) (i32.const 15))".to_owned(),
            _ => "(i32.and (local.get $q) (i32.const 12))".to_owned(),
        }
    }

    fn offset(&mut self) -> u64 {
        [0, 0, 4, 1, 8][self.numbers.below(5) as usize]
    }

    fn load(&mut self) -> String {
        let (address, offset) = (self.address(), self.offset());
        let name = ["i32.load", "i32.load", "i32.load8_u", "i32.load16_s"];
        let name = name[self.numbers.below(4) as usize];
        format!("({name} offset={offset} {address})")
    }

    fn statement(&mut self) {
        let depth = self.depth;
        let line = match self.numbers.below(if depth < 3 { 13 } else { 8 }) {
            0 | 1 => format!("(local.set $q (i32.xor (local.get $q) {}))", self.load()),
            2 | 3 => format!("(drop (i32.add {} {}))", self.load(), self.load()),
            4 => {
                let (address, offset, value) = (self.address(), self.offset(), self.load());
                let name = ["i32.store", "i32.store8", "i32.store16"];
                let name = name[self.numbers.below(3) as usize];
                format!("({name} offset={offset} {address} {value})")
            }
            5 => "(local.set $q (i32.add (local.get 0) (local.get 1)))".to_owned(),
            6 if self.function > 0 => {
                let callee = self.numbers.below(self.function as u64);
                format!(
                    "(local.set $q (i32.xor (local.get $q) (call $f{callee} (local.get $q) (i32.const 1))))"
                )
            }
            7 if self.function > 0 => {
                // The callee is the host, or a function.
                let callee = self.numbers.below(self.function as u64 + 1);
                format!(
                    "(drop (call_indirect (type $callee) (i32.const 1) (i32.and (local.get $q) (i32.const 24)) (i32.const {callee})))"
                )
            }
            8 => "(memory.fill (i32.and (local.get $q) (i32.const 8)) (i32.const 1) (i32.const 3))"
                .to_owned(),
            9 | 10 => {
                writeln!(self.text, "    (if (i32.and (i32.add (local.get 1) (local.get $q)) (i32.const {}))\n    (then", 1 + self.numbers.below(4)).unwrap();
                self.nested();
                self.text.push_str("    ) (else\n");
                self.nested();
                self.text.push_str("    ))\n");
                return;
            }
            11 | 12 if self.loops == 0 => {
                let times = 2 + self.numbers.below(5);
                writeln!(
                    self.text,
                    "    (local.set $i (i32.const 0))\n    (loop $loop"
                )
                .unwrap();
                self.loops += 1;
                self.nested();
                self.loops -= 1;
                writeln!(self.text, "    (br_if $loop (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const {times}))))").unwrap();
                return;
            }
            _ => format!("(drop {})", self.load()),
        };
        writeln!(self.text, "    {line}").unwrap();
    }

    fn nested(&mut self) {
        self.depth += 1;
        self.statements();
        self.depth -= 1;
    }
}
