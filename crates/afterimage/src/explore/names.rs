//! Shortens the names of functions to the form that people write, and finds the calls of the host.

use afterimage_ids::{EntityRef, FuncId};
use afterimage_present::{ImportCalls, NamesDocument};
use afterimage_program::{BlockEnd, Callee, demangle};
use anyhow::Result;

use crate::Session;

/// Returns the short forms of the names of functions, called or inlined, and the places that call
/// the host. Reads the debug information.
pub(crate) fn names(session: &Session) -> Result<NamesDocument> {
    let (program, source) = (session.program(), session.source_map());
    let names = session.program_names();
    let all = program.imports.len() + program.functions.len();
    let called =
        (0..all as u32).map(|function| names.function(FuncId::from_u32(function)).to_owned());
    let inlined = source.inlined_functions().into_iter();
    let inlined = inlined.map(|one| demangle(&one.name).unwrap_or(one.name));
    Ok(NamesDocument::new(called.chain(inlined), imports(session)?))
}

fn imports(session: &Session) -> Result<Vec<ImportCalls>> {
    let program = session.program();
    let imports = program.imports.iter().map(|import| ImportCalls {
        module: import.module.clone(),
        name: import.name.clone(),
        calls: Vec::new(),
    });
    let mut imports = Vec::from_iter(imports);
    let operators = session.operators();
    for function in &program.functions {
        for block in function.cfg.blocks.values() {
            let (BlockEnd::Call(callee) | BlockEnd::TailCall(callee)) = block.end else {
                continue;
            };
            let Callee::Direct(callee) = callee else {
                continue;
            };
            if let Some(import) = imports.get_mut(callee.index()) {
                let operators = operators.of(function.id)?;
                let own = operators.get(block.ops.start.index()..block.ops.end.index());
                let call = own.and_then(<[_]>::last);
                import.calls.extend(call.map(|call| call.offset.0));
            }
        }
    }
    imports.retain(|import| !import.calls.is_empty());
    Ok(imports)
}
