//! Makes a module independent. Its imports from `spectest` (the scripts' host) and constants of
//! other modules become definitions of its own.

use std::collections::HashMap;

use wasm_encoder::{ConstExpr, Encode};
use wasmparser::{
    ExternalKind, ImportSectionReader, Operator, Parser, Payload, TableType, TypeRef,
};

use super::sections::{CODE, FUNCTION, GLOBAL, IMPORT, MEMORY, Sections, Side, TABLE};

/// Modules available for import, by name.
pub type Registered<'a> = HashMap<&'a str, Vec<u8>>;

/// Returns the module without imports, or the reason why that is impossible.
pub fn alone(bytes: &[u8], registered: &Registered<'_>) -> Result<Vec<u8>, String> {
    let mut found = None;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(|error| error.to_string())? {
            Payload::ImportSection(imports) => found = Some(imports),
            Payload::CodeSectionStart { .. } => break,
            _ => {}
        }
    }
    let Some(imports) = found else {
        return Ok(bytes.to_vec());
    };
    own(bytes, imports, registered)
}

/// Returns the names of the modules that a module imports from.
pub fn imported(bytes: &[u8]) -> Vec<String> {
    let payloads = Parser::new(0).parse_all(bytes).flatten();
    let imports = payloads.filter_map(|payload| match payload {
        Payload::ImportSection(imports) => Some(imports.into_imports()),
        _ => None,
    });
    let imports = imports.flatten().flatten();
    imports.map(|import| import.module.to_owned()).collect()
}

/// Returns the body of an exported function that takes nothing and returns constants.
fn constant(bytes: &[u8], name: &str) -> Option<Vec<u8>> {
    let mut at = None;
    let mut imports = 0;
    let mut bodies = Vec::new();
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.ok()? {
            Payload::ImportSection(section) => {
                let functions = section.into_imports().flatten();
                imports = functions
                    .filter(|import| matches!(import.ty, TypeRef::Func(_)))
                    .count();
            }
            Payload::ExportSection(exports) => {
                let mut exports = exports.into_iter().flatten();
                let named = exports.find(|e| e.kind == ExternalKind::Func && e.name == name)?;
                at = Some(named.index as usize);
            }
            Payload::CodeSectionEntry(body) => bodies.push(body),
            _ => {}
        }
    }
    let body = bodies.get(at?.checked_sub(imports)?)?;
    let mut operators = body.get_operators_reader().ok()?.into_iter().flatten();
    let constant = operators.all(|operator| {
        matches!(
            operator,
            Operator::I32Const { .. }
                | Operator::I64Const { .. }
                | Operator::F32Const { .. }
                | Operator::F64Const { .. }
                | Operator::End
        )
    });
    let mut out = Vec::new();
    bytes[body.range()].encode(&mut out);
    constant.then_some(out)
}

fn own(
    bytes: &[u8],
    imports: ImportSectionReader<'_>,
    registered: &Registered<'_>,
) -> Result<Vec<u8>, String> {
    let mut functions = Vec::new();
    let mut bodies = Vec::new();
    let mut tables = Vec::new();
    let mut memories = Vec::new();
    let mut globals = Vec::new();
    let encoded = |item: &dyn Encode| {
        let mut out = Vec::new();
        item.encode(&mut out);
        out
    };
    for import in imports.into_imports() {
        let import = import.map_err(|error| error.to_string())?;
        if import.module != "spectest" {
            let other = registered.get(import.module);
            let body = match import.ty {
                TypeRef::Func(_) => other.and_then(|other| constant(other, import.name)),
                _ => None,
            };
            let (TypeRef::Func(ty), Some(body)) = (import.ty, body) else {
                return Err("linking of modules".to_owned());
            };
            functions.push(encoded(&ty));
            bodies.push(body);
            continue;
        }
        match import.ty {
            TypeRef::Func(ty) => {
                functions.push(encoded(&ty));
                // The functions of `spectest` print their arguments. Here, they have no locals and
                // an empty body.
                bodies.push(vec![2, 0, 0x0b]);
            }
            TypeRef::Table(ty) => {
                let ty = TableType {
                    initial: 10,
                    maximum: Some(20),
                    ..ty
                };
                let ty =
                    wasm_encoder::TableType::try_from(ty).map_err(|error| error.to_string())?;
                tables.push(encoded(&ty));
            }
            TypeRef::Memory(ty) if !ty.shared => {
                let ty = wasmparser::MemoryType {
                    initial: 1,
                    maximum: Some(2),
                    ..ty
                };
                memories.push(encoded(&wasm_encoder::MemoryType::from(ty)));
            }
            TypeRef::Global(ty) => {
                let value = match ty.content_type {
                    wasmparser::ValType::I32 => ConstExpr::i32_const(666),
                    wasmparser::ValType::I64 => ConstExpr::i64_const(666),
                    wasmparser::ValType::F32 => ConstExpr::f32_const(666.6_f32.into()),
                    wasmparser::ValType::F64 => ConstExpr::f64_const(666.6_f64.into()),
                    _ => return Err("an import that `spectest` lacks".to_owned()),
                };
                let ty =
                    wasm_encoder::GlobalType::try_from(ty).map_err(|error| error.to_string())?;
                globals.push([encoded(&ty), encoded(&value)].concat());
            }
            _ => return Err("an import that `spectest` lacks".to_owned()),
        }
    }
    let mut sections = Sections::of(bytes);
    sections.remove(IMPORT);
    for (id, entries) in [
        (FUNCTION, functions),
        (CODE, bodies),
        (TABLE, tables),
        (MEMORY, memories),
        (GLOBAL, globals),
    ] {
        sections.add(id, Side::First, &entries);
    }
    Ok(sections.encoded())
}
