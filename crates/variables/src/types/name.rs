//! Writes the names of types as in C.

use super::{Encoding, RecordKind, TypeKind, TypeRef, Types};
use crate::DebugError;
use crate::debug::Debug;

use super::size::CHAIN;

/// The depth beyond which function types in parameters are shown without their own parameters.
const NESTED: u32 = 2;

/// The maximum number of a function's parameters that are shown.
const PARAMETERS: usize = 16;

impl Types {
    /// Returns the name of a type, such as `const node *`, `int[2][3]` or `int (*)(int, char *)`.
    pub(crate) fn name(&self, debug: &Debug<'_>, type_ref: TypeRef) -> Result<String, DebugError> {
        self.nested_name(debug, type_ref, NESTED)
    }

    fn nested_name(
        &self,
        debug: &Debug<'_>,
        type_ref: TypeRef,
        depth: u32,
    ) -> Result<String, DebugError> {
        // The declarator grows outwards from the place of a variable's name. The qualifiers come
        // before everything.
        let (mut declarator, mut qualifiers) = (String::new(), String::new());
        let mut at = type_ref;
        for _ in 0..CHAIN {
            let described = self.describe(debug, at)?;
            let wrap = |declarator: &mut String| {
                if declarator.starts_with(['*', '&']) || declarator.contains("::*") {
                    *declarator = format!("({declarator})");
                }
            };
            match &described.kind {
                TypeKind::Alias {
                    qualifier: Some(qualifier),
                    of,
                } => {
                    let pointer =
                        matches!(self.describe(debug, *of)?.kind, TypeKind::Pointer { .. });
                    if pointer {
                        declarator = format!("{qualifier} {declarator}");
                    } else if !qualifiers.split(' ').any(|known| known == *qualifier) {
                        // Both an alias and its target may be qualified.
                        qualifiers = format!("{qualifiers}{qualifier} ");
                    }
                    at = *of;
                }
                // rustc gives names to its references, boxes and raw pointers.
                TypeKind::Pointer {
                    to,
                    reference,
                    rvalue,
                } if described.name.is_none() => {
                    let sign = match (reference, rvalue) {
                        (_, true) => "&&",
                        (true, _) => "&",
                        _ => "*",
                    };
                    declarator = format!("{sign}{}", declarator.trim_end());
                    at = *to;
                }
                TypeKind::MemberPointer { to, of } => {
                    let class = self.describe(debug, *of)?;
                    let class = class.name.as_deref().unwrap_or("<anonymous>");
                    declarator = format!("{class}::*{declarator}");
                    at = *to;
                }
                TypeKind::Array {
                    element,
                    dimensions,
                    ..
                } => {
                    wrap(&mut declarator);
                    for dimension in dimensions {
                        let count = dimension.map(|count| count.to_string()).unwrap_or_default();
                        declarator = format!("{declarator}[{count}]");
                    }
                    at = *element;
                }
                TypeKind::Function { result, parameters } => {
                    wrap(&mut declarator);
                    let parameters = match depth.checked_sub(1) {
                        None => "…".to_string(),
                        Some(depth) => {
                            let shown = parameters.iter().take(PARAMETERS);
                            let names = shown.map(|p| self.nested_name(debug, *p, depth));
                            let mut names = names.collect::<Result<Vec<_>, _>>()?;
                            if parameters.len() > PARAMETERS {
                                names.push("…".into());
                            }
                            names.join(", ")
                        }
                    };
                    declarator = format!("{declarator}({parameters})");
                    at = *result;
                }
                kind => {
                    // Clang uses this name for all complex types.
                    let name = match (described.name.as_deref(), kind, described.bytes) {
                        (Some("complex"), TypeKind::Base(Encoding::Complex), Some(bytes)) => {
                            Some(match bytes {
                                8 => "_Complex float",
                                16 => "_Complex double",
                                _ => "_Complex long double",
                            })
                        }
                        (name, ..) => name,
                    };
                    let own = name.unwrap_or(match kind {
                        TypeKind::Record(record) => match record.kind {
                            RecordKind::Structure => "<anonymous struct>",
                            RecordKind::Class => "<anonymous class>",
                            RecordKind::Union => "<anonymous union>",
                        },
                        TypeKind::Enumeration { .. } => "<anonymous enum>",
                        _ => "<unknown type>",
                    });
                    let space = if declarator.is_empty() || declarator.starts_with('[') {
                        ""
                    } else {
                        " "
                    };
                    return Ok(format!("{qualifiers}{own}{space}{declarator}"));
                }
            }
        }
        Err(DebugError::Endless {
            at: type_ref.entry.map_or(0, |entry| debug.at(entry)),
        })
    }
}
