//! The names of operators.

use wasmparser::Operator;

/// What begins a name of which the rest follows after a dot.
const SPACES: [&str; 18] = [
    "i32", "i64", "f32", "f64", "v128", "i8x16", "i16x8", "i32x4", "i64x2", "f32x4", "f64x2",
    "memory", "table", "global", "local", "ref", "data", "elem",
];

/// The name of an operator in the text format, without what follows it.
pub(crate) fn name(operator: &Operator<'_>) -> String {
    // The visitor's method is named after the operator.
    macro_rules! visited {
        ($(@$proposal:ident $op:ident $({ $($field:ident: $ty:ty),* })? => $visit:ident ($($arity:tt)*))*) => {
            match operator {
                $(Operator::$op { .. } => stringify!($visit),)*
                _ => "visit_unknown",
            }
        };
    }
    let visited = wasmparser::for_each_operator!(visited);
    let name = visited.strip_prefix("visit_").unwrap_or(visited);
    if name == "typed_select" {
        return "select".to_owned();
    }
    match name.split_once('_') {
        Some((space, rest)) if SPACES.contains(&space) => format!("{space}.{rest}"),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use afterimage_program::Program;
    use afterimage_testkit::modules::{HANDWRITTEN, ModuleConfig, module_from_seed};

    use super::name;

    /// The first word of every line of a module as text.
    fn words(module: &[u8]) -> BTreeSet<String> {
        let text = wasmprinter::print_bytes(module).expect("a module");
        let words = text
            .lines()
            .filter_map(|line| line.split_whitespace().next());
        words.map(str::to_owned).collect()
    }

    #[test]
    fn names_are_those_of_the_text_format() {
        let generated = (0..40).map(|seed| module_from_seed(seed, &ModuleConfig::default()));
        let written = HANDWRITTEN
            .iter()
            .map(|(_, text)| wat::parse_str(text).expect("a module"));
        let mut seen = BTreeSet::new();
        for module in generated.chain(written) {
            let program = Program::parse(&module).expect("a program");
            let words = words(&module);
            for function in &program.functions {
                for (op, _, operator) in program.operators(&module, function) {
                    // The last one closes the body, and is a parenthesis in the text.
                    if op.as_u32() + 1 < function.operators {
                        let name = name(&operator);
                        assert!(words.contains(&name), "{name}");
                        seen.insert(name);
                    }
                }
            }
        }
        for name in [
            "i32.load",
            "call_indirect",
            "select",
            "br_if",
            "memory.grow",
        ] {
            assert!(seen.contains(name), "{name} never occurred");
        }
    }
}
