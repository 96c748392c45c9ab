//! Adds a function to a module that calls exports one after another.

use afterimage_ids::FuncId;
use afterimage_program::Program;
use wasm_encoder::{Encode, Instruction};
use wasmparser::ValType;

use super::script::Value;
use super::sections::{CODE, EXPORT, FUNCTION, Sections, Side, TYPE};

/// The export that makes the calls.
pub const DRIVE: &str = "drive";

/// The kind of an export.
#[derive(Clone, Copy)]
pub enum Export {
    Function(FuncId),
    /// A global by index, which is read.
    Global(u32),
}

/// A use of an export.
pub struct Call {
    pub export: Export,
    pub arguments: Vec<Value>,
    /// Whether the driver returns the results.
    pub kept: bool,
}

/// Returns the parameter and result types of an export.
pub fn signature(program: &Program, export: Export) -> (Vec<ValType>, Vec<ValType>) {
    let function = match export {
        Export::Function(function) => function,
        Export::Global(global) => return (vec![], vec![program.globals[global as usize]]),
    };
    let i = function.as_u32() as usize;
    let imports = &program.imports;
    let ty = imports.get(i).map_or_else(
        || program.functions[i - imports.len()].ty,
        |import| import.ty,
    );
    let ty = &program.types[ty];
    (ty.params.to_vec(), ty.results.to_vec())
}

/// Returns the module with the driver.
pub fn with_driver(bytes: &[u8], program: &Program, calls: &[Call]) -> Vec<u8> {
    let mut results = Vec::new();
    let mut code = vec![0];
    for call in calls {
        for argument in &call.arguments {
            argument.instruction().encode(&mut code);
        }
        match call.export {
            Export::Function(function) => Instruction::Call(function.as_u32()),
            Export::Global(global) => Instruction::GlobalGet(global),
        }
        .encode(&mut code);
        let given = signature(program, call.export).1;
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

    let mut sections = Sections::of(bytes);
    for (id, entry) in added {
        sections.add(id, Side::Last, &[entry]);
    }
    sections.encoded()
}
