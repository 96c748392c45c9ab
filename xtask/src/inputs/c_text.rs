//! Generates C source text for compressors and regular expressions.

use super::rng::Rng;
use super::words::{sentence, snake};
use std::fmt::Write;

/// Generates at least `size` bytes of C, cut at the end of a function.
pub fn generate(seed: u64, size: usize) -> String {
    let mut rng = Rng::new(seed);
    let mut out = String::with_capacity(size + 4096);
    out.push_str(
        "#include <stddef.h>\n#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\n\n",
    );
    while out.len() < size {
        match rng.below(8) {
            0 => structure(&mut rng, &mut out),
            1 => table(&mut rng, &mut out),
            _ => function(&mut rng, &mut out),
        }
        out.push('\n');
    }
    out
}

const TYPES: &[&str] = &[
    "int",
    "size_t",
    "uint32_t",
    "char *",
    "struct node *",
    "const char *",
    "uint64_t",
    "double",
];

// Writing to a `String` cannot fail, so the results of `write!` below are dropped.

fn structure(rng: &mut Rng, out: &mut String) {
    let _ = writeln!(out, "struct {} {{", snake(rng));
    for _ in 0..3 + rng.below(6) {
        let _ = writeln!(out, "    {} {};", rng.favour(TYPES), snake(rng));
    }
    out.push_str("};\n");
}

fn table(rng: &mut Rng, out: &mut String) {
    let rows = 4 + rng.below(12);
    let _ = write!(
        out,
        "static const uint32_t {}_table[{}] = {{",
        snake(rng),
        rows * 6
    );
    for _ in 0..rows {
        out.push_str("\n   ");
        for _ in 0..6 {
            let _ = write!(out, " 0x{:08x},", rng.bits() as u32);
        }
    }
    out.push_str("\n};\n");
}

fn function(rng: &mut Rng, out: &mut String) {
    let _ = writeln!(out, "/* {} */", sentence(rng, 12));
    let _ = write!(out, "static {} {}(", rng.favour(TYPES), snake(rng));
    for position in 0..1 + rng.below(3) {
        let _ = write!(
            out,
            "{}{} {}",
            if position > 0 { ", " } else { "" },
            rng.favour(TYPES),
            snake(rng)
        );
    }
    out.push_str(")\n{\n");
    for _ in 0..2 + rng.below(3) {
        let _ = writeln!(
            out,
            "    {} {} = {};",
            rng.favour(TYPES),
            snake(rng),
            rng.below(256)
        );
    }
    block(rng, out, 1);
    let _ = writeln!(out, "    return {};\n}}", snake(rng));
}

fn block(rng: &mut Rng, out: &mut String, depth: usize) {
    for _ in 0..2 + rng.below(4) {
        statement(rng, out, depth);
    }
}

fn statement(rng: &mut Rng, out: &mut String, depth: usize) {
    let pad = "    ".repeat(depth);
    // Nesting ends at four levels, which bounds the recursion.
    match rng.below(if depth < 4 { 9 } else { 5 }) {
        0 => {
            let _ = writeln!(
                out,
                "{pad}{}->{} = {};",
                snake(rng),
                snake(rng),
                expression(rng, 2)
            );
        }
        1 => {
            let _ = writeln!(
                out,
                "{pad}{}({}, {});",
                snake(rng),
                expression(rng, 1),
                expression(rng, 1)
            );
        }
        2 => {
            let _ = writeln!(out, "{pad}{} += {};", snake(rng), expression(rng, 2));
        }
        3 => {
            let _ = writeln!(
                out,
                "{pad}log_error(\"{}\", {});",
                sentence(rng, 5),
                snake(rng)
            );
        }
        4 => {
            let _ = writeln!(out, "{pad}{} = {};", snake(rng), expression(rng, 3));
        }
        5 | 6 => {
            let _ = writeln!(
                out,
                "{pad}if ({} {} {}) {{",
                expression(rng, 1),
                rng.pick(&["==", "<", "!=", ">="]),
                expression(rng, 1)
            );
            block(rng, out, depth + 1);
            let _ = writeln!(out, "{pad}}}");
        }
        7 => {
            let name = snake(rng);
            let _ = writeln!(
                out,
                "{pad}for (size_t {name} = 0; {name} < {}; {name}++) {{",
                expression(rng, 1)
            );
            block(rng, out, depth + 1);
            let _ = writeln!(out, "{pad}}}");
        }
        _ => {
            let _ = writeln!(out, "{pad}while ({}) {{", expression(rng, 1));
            block(rng, out, depth + 1);
            let _ = writeln!(out, "{pad}}}");
        }
    }
}

fn expression(rng: &mut Rng, depth: usize) -> String {
    if depth == 0 {
        return if rng.chance(35) {
            rng.below(1024).to_string()
        } else {
            snake(rng)
        };
    }
    let left = expression(rng, depth - 1);
    match rng.below(5) {
        0 => format!("{left}[{}]", expression(rng, depth - 1)),
        1 => format!(
            "({left} {} {})",
            rng.pick(&["<<", "&", "|", "^"]),
            expression(rng, depth - 1)
        ),
        2 => left,
        _ => format!(
            "{left} {} {}",
            rng.pick(&["+", "-", "*"]),
            expression(rng, depth - 1)
        ),
    }
}
