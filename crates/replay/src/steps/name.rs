//! Names operators as in the text format.

use wasmparser::Operator;

/// The prefixes that a dot separates from the rest of an operator's name.
const SPACES: [&str; 19] = [
    "i32", "i64", "f32", "f64", "v128", "i8x16", "i16x8", "i32x4", "i64x2", "f32x4", "f64x2",
    "memory", "table", "global", "local", "ref", "data", "elem", "atomic",
];

/// Returns the name of an operator in the text format, without its immediates.
pub fn name(operator: &Operator<'_>) -> String {
    // The visitor's method has the name of the operator.
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
        Some((space, rest)) if SPACES.contains(&space) => format!("{space}.{}", atomic(rest)),
        _ => name.to_owned(),
    }
}

/// Converts the rest of an operator's name. The names of atomic operators contain more dots.
fn atomic(rest: &str) -> String {
    let Some(rest) = rest.strip_prefix("atomic_") else {
        return rest.to_owned();
    };
    match rest.split_once('_') {
        Some((rmw, does)) if rmw.starts_with("rmw") => format!("atomic.{rmw}.{does}"),
        _ => format!("atomic.{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use afterimage_program::Program;
    use afterimage_testkit::modules::{HANDWRITTEN, ModuleConfig, module_from_seed};

    use super::name;

    /// Returns the first words of all lines of a module in the text format.
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
        const ATOMIC: &str = "(module (memory 1) (func (atomic.fence)
            (drop (i32.atomic.rmw16.cmpxchg_u (i32.const 0) (i32.const 1) (i32.const 2)))
            (drop (i64.atomic.rmw.add (i32.const 0) (i64.const 1)))
            (i64.atomic.store32 (i32.const 0) (i64.atomic.load8_u (i32.const 0)))
            (drop (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const 0)))))";
        let atomic = [wat::parse_str(ATOMIC).expect("a module")];
        let mut seen = BTreeSet::new();
        for module in generated.chain(written).chain(atomic) {
            let program = Program::parse(&module).expect("a program");
            let words = words(&module);
            for function in &program.functions {
                for (op, _, operator) in program.operators(&module, function) {
                    // The last operator closes the body. In the text format, this operator is a
                    // parenthesis.
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
