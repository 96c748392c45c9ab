//! A module with one more function, which calls exports one after the other.

use afterimage_ids::FuncId;
use afterimage_program::Program;
use wasm_encoder::{Encode, Instruction};
use wasmparser::{Parser, ValType};

use crate::script::Value;

/// The export that makes the calls.
pub const DRIVE: &str = "drive";

/// A call of an export.
pub struct Call {
    pub function: FuncId,
    pub arguments: Vec<Value>,
    /// What it returns is returned by the driver, too.
    pub kept: bool,
}

const TYPE: u8 = 1;
const FUNCTION: u8 = 3;
const EXPORT: u8 = 7;
const CODE: u8 = 10;
/// Sections in the order in which they stand in a module.
const ORDER: [u8; 13] = [1, 2, 3, 4, 5, 13, 6, 7, 8, 9, 12, 10, 11];

/// The types that a function of the module takes and returns.
pub fn signature(program: &Program, function: FuncId) -> (Vec<ValType>, Vec<ValType>) {
    let i = function.as_u32() as usize;
    let imports = &program.imports;
    let ty = imports.get(i).map_or_else(
        || program.functions[i - imports.len()].ty,
        |import| import.ty,
    );
    let ty = &program.types[ty];
    (ty.params.to_vec(), ty.results.to_vec())
}

/// The module with the driver.
pub fn with_driver(bytes: &[u8], program: &Program, calls: &[Call]) -> Vec<u8> {
    let mut results = Vec::new();
    let mut code = vec![0];
    for call in calls {
        for argument in &call.arguments {
            argument.instruction().encode(&mut code);
        }
        Instruction::Call(call.function.as_u32()).encode(&mut code);
        let given = signature(program, call.function).1;
        if call.kept {
            results.extend(given);
        } else {
            given
                .iter()
                .for_each(|_| Instruction::Drop.encode(&mut code));
        }
    }
    Instruction::End.encode(&mut code);
    let mut ty = vec![0x60, 0];
    (results.len() as u32).encode(&mut ty);
    for result in results {
        let result = wasm_encoder::ValType::try_from(result).expect("a type");
        result.encode(&mut ty);
    }
    let mut export = Vec::new();
    DRIVE.encode(&mut export);
    export.push(0);
    ((program.imports.len() + program.functions.len()) as u32).encode(&mut export);
    let mut function = Vec::new();
    (program.types.len() as u32).encode(&mut function);
    let mut body = Vec::new();
    code.as_slice().encode(&mut body);
    let added = [
        (TYPE, ty),
        (FUNCTION, function),
        (EXPORT, export),
        (CODE, body),
    ];

    let mut sections: Vec<(u8, Vec<u8>)> = Vec::new();
    for payload in Parser::new(0).parse_all(bytes) {
        if let Some((id, range)) = payload.expect("a module").as_section() {
            sections.push((id, bytes[range].to_vec()));
        }
    }
    // Custom sections say nothing that matters here.
    sections.retain(|(id, _)| *id != 0);
    for (id, entry) in added {
        let rank = |id: u8| ORDER.iter().position(|&other| other == id);
        let at = sections.partition_point(|(other, _)| rank(*other) < rank(id));
        if sections.get(at).is_none_or(|(other, _)| *other != id) {
            sections.insert(at, (id, vec![0]));
        }
        let section = &mut sections[at].1;
        let mut reader = wasmparser::BinaryReader::new(section, 0);
        let count = reader.read_var_u32().expect("a count");
        let rest = section[reader.original_position()..].to_vec();
        let mut more = Vec::new();
        (count + 1).encode(&mut more);
        more.extend(rest);
        more.extend(entry);
        *section = more;
    }
    let mut module = bytes[..8].to_vec();
    for (id, section) in sections {
        module.push(id);
        section.as_slice().encode(&mut module);
    }
    module
}
