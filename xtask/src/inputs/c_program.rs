//! Generates a C program as input for a compiler. It uses only integers and declares every name
//! before its use.

use super::rng::Rng;
use std::fmt::Write;

/// Generates a translation unit of `functions` functions, each of which may call earlier functions.
pub fn generate(seed: u64, functions: usize) -> String {
    let mut rng = Rng::new(seed);
    let mut out = String::from("static unsigned table[256];\n");
    for number in 0..functions {
        // Writing to a `String` cannot fail, so the results of `write!` are dropped, here and
        // below.
        let _ = writeln!(
            out,
            "\nunsigned f{number}(unsigned a, unsigned b, unsigned *p)\n{{"
        );
        let _ = writeln!(out, "  unsigned c = a ^ {}, d = b + p[0];", rng.below(1000));
        let mut body = Body {
            rng: &mut rng,
            out: &mut out,
            callable: number,
            loops: 0,
        };
        for _ in 0..4 {
            body.statement(1);
        }
        out.push_str("  return a + b + c + d;\n}\n");
    }
    out
}

struct Body<'a> {
    rng: &'a mut Rng,
    out: &'a mut String,
    /// The number of functions that exist already, and that the new code may call.
    callable: usize,
    /// The number of loop counters named so far. Each loop has its own counter.
    loops: usize,
}

impl Body<'_> {
    fn statement(&mut self, depth: usize) {
        let pad = "  ".repeat(depth);
        let target = self
            .rng
            .pick(&["a", "b", "c", "d", "p[c & 7]", "table[d & 255]"]);
        // Nesting ends at three levels, which bounds the recursion.
        match self.rng.below(if depth < 3 { 7 } else { 3 }) {
            0 if self.callable > 0 => {
                let callee = self.rng.below(self.callable);
                let (first, second) = (self.expression(1), self.expression(1));
                let _ = writeln!(
                    self.out,
                    "{pad}{target} += f{callee}({first}, {second}, p);"
                );
            }
            0..=2 => {
                let value = self.expression(3);
                let _ = writeln!(self.out, "{pad}{target} = {value};");
            }
            3 | 4 => {
                let (left, right) = (self.expression(1), self.expression(1));
                let _ = writeln!(self.out, "{pad}if ({left} < {right}) {{");
                self.statement(depth + 1);
                let _ = writeln!(self.out, "{pad}}} else {{");
                self.statement(depth + 1);
                let _ = writeln!(self.out, "{pad}}}");
            }
            5 => {
                let counter = self.loops;
                self.loops += 1;
                let bound = 2 + self.rng.below(100);
                let _ = writeln!(
                    self.out,
                    "{pad}for (unsigned i{counter} = 0; i{counter} < {bound}; i{counter}++) {{"
                );
                let _ = writeln!(self.out, "{pad}  c += table[i{counter}] * d;");
                self.statement(depth + 1);
                let _ = writeln!(self.out, "{pad}}}");
            }
            _ => {
                let subject = self.expression(1);
                let _ = writeln!(self.out, "{pad}switch (({subject}) & 7) {{");
                for case in 0..6 {
                    let value = self.expression(2);
                    let _ = writeln!(self.out, "{pad}case {case}: {target} ^= {value}; break;");
                }
                let _ = writeln!(self.out, "{pad}default: d--;\n{pad}}}");
            }
        }
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 {
            return match self.rng.below(4) {
                0 => format!("{}u", self.rng.below(4096)),
                1 => format!("p[{}]", self.rng.below(8)),
                _ => self.rng.pick(&["a", "b", "c", "d"]).to_owned(),
            };
        }
        let left = self.expression(depth - 1);
        let right = self.expression(depth - 1);
        match self.rng.below(8) {
            0 => format!("({left} >> ({right} & 31))"),
            1 => format!("({left} / ({right} | 1))"),
            2 => format!("({left} > {right} ? {left} : {right})"),
            _ => format!(
                "({left} {} {right})",
                self.rng.pick(&["+", "-", "*", "&", "|", "^"])
            ),
        }
    }
}
