//! Generates Markdown with headings, paragraphs, links, nested lists, quotes, tables and code.

use super::rng::Rng;
use super::words::{sentence, snake, word};
use std::fmt::Write;

/// Generates at least `size` bytes of Markdown.
pub fn generate(seed: u64, size: usize) -> String {
    let mut rng = Rng::new(seed);
    let mut out = String::with_capacity(size + 4096);
    while out.len() < size {
        match rng.below(9) {
            0 => heading(&mut rng, &mut out),
            1 => list(&mut rng, &mut out),
            2 => code(&mut rng, &mut out),
            3 => table(&mut rng, &mut out),
            4 => quote(&mut rng, &mut out),
            _ => paragraph(&mut rng, &mut out),
        }
        out.push('\n');
    }
    out
}

// Writing to a `String` cannot fail, so the results of `write!` below are dropped.

fn heading(rng: &mut Rng, out: &mut String) {
    let _ = writeln!(
        out,
        "{} {}",
        "#".repeat(1 + rng.below(4)),
        sentence(rng, 5).trim_end_matches('.')
    );
}

fn paragraph(rng: &mut Rng, out: &mut String) {
    for _ in 0..2 + rng.below(5) {
        let length = 6 + rng.below(12);
        let text = sentence(rng, length);
        let _ = match rng.below(8) {
            0 => writeln!(
                out,
                "{text} See [{}](https://example.org/{} \"{}\").",
                word(rng),
                snake(rng),
                word(rng)
            ),
            1 => writeln!(
                out,
                "*{}* {text} **{} `{}`**",
                word(rng),
                word(rng),
                snake(rng)
            ),
            2 => writeln!(
                out,
                "{text} `{}({})` &amp; ~~{}~~ <b>{}</b>  ",
                snake(rng),
                snake(rng),
                word(rng),
                word(rng)
            ),
            3 => writeln!(
                out,
                "{text} ***{} {}*** \\*{}\\* ![{}](image.png)",
                word(rng),
                word(rng),
                word(rng),
                word(rng)
            ),
            _ => writeln!(out, "{text}"),
        };
    }
}

fn list(rng: &mut Rng, out: &mut String) {
    let marker = rng.pick(&["-", "*", "1."]);
    for _ in 0..3 + rng.below(5) {
        let _ = writeln!(out, "{marker} {}", sentence(rng, 7));
        if rng.chance(30) {
            let _ = writeln!(
                out,
                "   - [{}] *{}* {}",
                rng.pick(&["x", " "]),
                word(rng),
                sentence(rng, 5)
            );
        }
    }
}

fn code(rng: &mut Rng, out: &mut String) {
    out.push_str("```c\n");
    for _ in 0..3 + rng.below(6) {
        let _ = writeln!(
            out,
            "{} = {}({} & {}); // <{}>",
            snake(rng),
            snake(rng),
            snake(rng),
            rng.below(256),
            word(rng)
        );
    }
    out.push_str("```\n");
}

fn table(rng: &mut Rng, out: &mut String) {
    out.push_str("| name | count | note |\n|:-----|------:|:----:|\n");
    for _ in 0..3 + rng.below(8) {
        let _ = writeln!(
            out,
            "| `{}` | {} | {} |",
            snake(rng),
            rng.below(10_000),
            sentence(rng, 4)
        );
    }
}

fn quote(rng: &mut Rng, out: &mut String) {
    for _ in 0..2 + rng.below(3) {
        let _ = writeln!(out, "> {}", sentence(rng, 9));
    }
    let _ = writeln!(out, "> > {}", sentence(rng, 5));
}
