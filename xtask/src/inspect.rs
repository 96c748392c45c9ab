//! Checks that each finished module still has the properties that the corpus needs.

use anyhow::{Context, Result};
use wasmparser::{Operator, Parser, Payload};

/// The contents of a module.
#[derive(Debug, Default, PartialEq)]
pub struct Facts {
    /// The number of functions that the module defines, without imports.
    pub functions: u32,
    /// Whether there is a name section.
    pub names: bool,
    /// Whether there is a DWARF line table.
    pub lines: bool,
    /// The number of functions that use the exceptions of WebAssembly 3.0 (`try_table`,
    /// `throw_ref`).
    pub exceptions: u32,
    /// The number of functions that use the withdrawn encoding (`try`, `catch`, `rethrow`,
    /// `delegate`), which the engine rejects.
    pub legacy_exceptions: u32,
}

/// Reads the whole of `module` once, in time linear in its size.
///
/// # Errors
/// Returns an error if `module` cannot be parsed as a core module.
pub fn inspect(module: &[u8]) -> Result<Facts> {
    let mut facts = Facts::default();
    for payload in Parser::new(0).parse_all(module) {
        match payload.context("the module cannot be parsed")? {
            Payload::CodeSectionEntry(body) => {
                facts.functions += 1;
                let (mut new, mut legacy) = (false, false);
                for operator in body.get_operators_reader()? {
                    match operator? {
                        Operator::TryTable { .. } | Operator::ThrowRef => new = true,
                        Operator::Try { .. }
                        | Operator::Catch { .. }
                        | Operator::CatchAll
                        | Operator::Rethrow { .. }
                        | Operator::Delegate { .. } => legacy = true,
                        _ => {}
                    }
                }
                facts.exceptions += u32::from(new);
                facts.legacy_exceptions += u32::from(legacy);
            }
            Payload::CustomSection(section) => match section.name() {
                "name" => facts.names = true,
                ".debug_line" => facts.lines = true,
                _ => {}
            },
            _ => {}
        }
    }
    Ok(facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a module with one function of type `[] -> []` whose body is `code`, and a custom
    /// section called `custom`.
    fn module(code: &[u8], custom: &str) -> Vec<u8> {
        let mut bytes = b"\0asm\x01\0\0\0".to_vec();
        bytes.extend([1, 4, 1, 0x60, 0, 0]);
        bytes.extend([3, 2, 1, 0]);
        let size = code.len() as u8;
        bytes.extend([10, size + 3, 1, size + 1, 0]);
        bytes.extend(code);
        let length = custom.len() as u8;
        bytes.extend([0, length + 1, length]);
        bytes.extend(custom.as_bytes());
        bytes
    }

    #[test]
    fn the_two_encodings_of_exceptions_are_told_apart() {
        const BLOCK: u8 = 0x40;
        const END: u8 = 0x0b;
        let legacy = inspect(&module(&[0x06, BLOCK, END, END], "name")).unwrap();
        assert_eq!(
            legacy,
            Facts {
                functions: 1,
                names: true,
                legacy_exceptions: 1,
                ..Facts::default()
            }
        );
        let new = inspect(&module(&[0x1f, BLOCK, 0, END, END], ".debug_line")).unwrap();
        assert_eq!(
            new,
            Facts {
                functions: 1,
                lines: true,
                exceptions: 1,
                ..Facts::default()
            }
        );
    }

    #[test]
    fn a_component_or_garbage_is_an_error() {
        assert!(inspect(b"\0asm").is_err());
        assert!(inspect(b"not a module").is_err());
    }
}
