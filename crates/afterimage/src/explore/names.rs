//! Shortens the names of functions to the form that people write.

use afterimage_ids::FuncId;
use afterimage_present::NamesDocument;
use afterimage_program::demangle;

use crate::Session;

/// Returns the short forms of the names of functions, called or inlined. Reads the debug
/// information.
pub(crate) fn names(session: &Session) -> NamesDocument {
    let (program, source) = (session.program(), session.source_map());
    let names = session.module().names(source);
    let all = program.imports.len() + program.functions.len();
    let called =
        (0..all as u32).map(|function| names.function(FuncId::from_u32(function)).to_owned());
    let inlined = source.inlined_functions().into_iter();
    let inlined = inlined.map(|one| demangle(&one.name).unwrap_or(one.name));
    NamesDocument::new(called.chain(inlined))
}
