//! Generates Rust source text that parses, for the `syn` guest.

use super::rng::Rng;
use super::words::{camel, sentence, snake};
use std::fmt::Write;

/// Generates at least `size` bytes of Rust, cut at the end of an item.
pub fn generate(seed: u64, size: usize) -> String {
    let mut rng = Rng::new(seed);
    let mut out = String::with_capacity(size + 4096);
    out.push_str("//! Generated: a module that means nothing and parses.\n\nuse std::collections::HashMap;\n");
    while out.len() < size {
        match rng.below(8) {
            0 => structure(&mut rng, &mut out),
            1 => enumeration(&mut rng, &mut out),
            2 => interface(&mut rng, &mut out),
            3 | 4 => implementation(&mut rng, &mut out),
            _ => {
                out.push('\n');
                function(&mut rng, &mut out, 0);
            }
        }
    }
    out
}

const TYPES: &[&str] = &[
    "u32",
    "usize",
    "&str",
    "Vec<u8>",
    "Option<u64>",
    "HashMap<String, Vec<u32>>",
    "Box<dyn Fn(u32) -> bool>",
    "&'static [u16]",
];

// Writing to a `String` cannot fail, so the results of `write!` below are dropped.

fn structure(rng: &mut Rng, out: &mut String) {
    let _ = writeln!(
        out,
        "\n/// {}\n#[derive(Clone, Debug, Default)]\npub struct {} {{",
        sentence(rng, 10),
        camel(rng)
    );
    for number in 0..2 + rng.below(6) {
        let _ = writeln!(
            out,
            "    /// {}\n    pub {}_{number}: {},",
            sentence(rng, 6),
            snake(rng),
            rng.favour(TYPES)
        );
    }
    out.push_str("}\n");
}

fn enumeration(rng: &mut Rng, out: &mut String) {
    let _ = writeln!(
        out,
        "\n/// {}\npub enum {} {{",
        sentence(rng, 8),
        camel(rng)
    );
    for number in 0..3 + rng.below(5) {
        let name = camel(rng);
        let _ = match rng.below(3) {
            0 => writeln!(out, "    {name}{number},"),
            1 => writeln!(out, "    {name}{number}({}),", rng.favour(TYPES)),
            _ => writeln!(
                out,
                "    {name}{number} {{ {}: {} }},",
                snake(rng),
                rng.favour(TYPES)
            ),
        };
    }
    out.push_str("}\n");
}

fn interface(rng: &mut Rng, out: &mut String) {
    let _ = writeln!(
        out,
        "\npub trait {}<T: Clone + 'static>: Sized {{\n    type Item;",
        camel(rng)
    );
    for _ in 0..1 + rng.below(3) {
        let _ = writeln!(
            out,
            "    fn {}(&mut self, {}: T) -> Result<Self::Item, {}>;",
            snake(rng),
            snake(rng),
            camel(rng)
        );
    }
    out.push_str("}\n");
}

fn implementation(rng: &mut Rng, out: &mut String) {
    let _ = writeln!(
        out,
        "\nimpl<'a, T> {}<'a, T>\nwhere\n    T: {} + Copy,\n{{",
        camel(rng),
        camel(rng)
    );
    for _ in 0..1 + rng.below(3) {
        function(rng, out, 1);
    }
    out.push_str("}\n");
}

fn function(rng: &mut Rng, out: &mut String, depth: usize) {
    let pad = "    ".repeat(depth);
    let receiver = if depth > 0 { "&self, " } else { "" };
    let _ = writeln!(out, "{pad}/// {}", sentence(rng, 12));
    let (name, argument, kind, answer) =
        (snake(rng), snake(rng), rng.favour(TYPES), rng.favour(TYPES));
    let _ = writeln!(
        out,
        "{pad}pub fn {name}({receiver}{argument}: {kind}) -> {answer} {{"
    );
    block(rng, out, depth + 1);
    let _ = writeln!(out, "{pad}    {}\n{pad}}}", expression(rng, 2));
}

fn block(rng: &mut Rng, out: &mut String, depth: usize) {
    for _ in 0..1 + rng.below(4) {
        statement(rng, out, depth);
    }
}

fn statement(rng: &mut Rng, out: &mut String, depth: usize) {
    let pad = "    ".repeat(depth);
    // Nesting ends at four levels, which bounds the recursion.
    match rng.below(if depth < 4 { 8 } else { 4 }) {
        0 => {
            let _ = writeln!(
                out,
                "{pad}let mut {}: {} = {};",
                snake(rng),
                rng.favour(TYPES),
                expression(rng, 2)
            );
        }
        1 => {
            let _ = writeln!(
                out,
                "{pad}{}.{} += {};",
                snake(rng),
                snake(rng),
                expression(rng, 2)
            );
        }
        2 => {
            let _ = writeln!(
                out,
                "{pad}println!(\"{{}} {}\", {});",
                sentence(rng, 4),
                snake(rng)
            );
        }
        3 => {
            let (argument, body) = (snake(rng), expression(rng, 2));
            let _ = writeln!(
                out,
                "{pad}let {} = {}.iter().map(|{argument}| {body}).collect::<Vec<_>>();",
                snake(rng),
                snake(rng)
            );
        }
        4 => {
            let _ = writeln!(
                out,
                "{pad}if let Some({}) = {} {{",
                snake(rng),
                expression(rng, 1)
            );
            block(rng, out, depth + 1);
            let _ = writeln!(out, "{pad}}} else {{");
            block(rng, out, depth + 1);
            let _ = writeln!(out, "{pad}}}");
        }
        5 => {
            let _ = writeln!(
                out,
                "{pad}for ({}, &{}) in {}.iter().enumerate() {{",
                snake(rng),
                snake(rng),
                snake(rng)
            );
            block(rng, out, depth + 1);
            let _ = writeln!(out, "{pad}}}");
        }
        6 => {
            let _ = writeln!(out, "{pad}match {} {{", expression(rng, 1));
            for number in 0..2 + rng.below(3) {
                let _ = writeln!(
                    out,
                    "{pad}    {}::{}({number}..={}) => {},",
                    camel(rng),
                    camel(rng),
                    number + 7,
                    expression(rng, 1)
                );
            }
            let _ = writeln!(out, "{pad}    _ => return {},\n{pad}}}", expression(rng, 1));
        }
        _ => {
            let _ = writeln!(out, "{pad}while {} < {} {{", snake(rng), rng.below(64));
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
    match rng.below(7) {
        0 => format!("{left}[{}]", expression(rng, depth - 1)),
        1 => format!(
            "({left} {} {})",
            rng.pick(&["<<", "&", "|", "^"]),
            expression(rng, depth - 1)
        ),
        2 => format!("{}({left}, &{})?", snake(rng), expression(rng, depth - 1)),
        3 => format!(
            "({left} as u64).{}({})",
            snake(rng),
            expression(rng, depth - 1)
        ),
        4 => left,
        _ => format!(
            "{left} {} {}",
            rng.pick(&["+", "-", "*"]),
            expression(rng, depth - 1)
        ),
    }
}
