//! Collects the function types that rewritten code needs for its blocks.

use std::collections::HashMap;

use afterimage_ids::EntityRef;
use afterimage_program::Program;
use wasmparser::ValType;

use crate::RewriteError;

/// The module's function types, and the added types. The indices of the module's types do not
/// change.
pub(crate) struct TypePool {
    index: HashMap<(Vec<ValType>, Vec<ValType>), u32>,
    types: Vec<(Vec<ValType>, Vec<ValType>)>,
    original: usize,
}

impl TypePool {
    pub(crate) fn new(program: &Program) -> Self {
        let types: Vec<_> = program
            .types
            .values()
            .map(|t| (t.params.to_vec(), t.results.to_vec()))
            .collect();
        let mut index = HashMap::with_capacity(types.len());
        for (i, ty) in types.iter().enumerate() {
            index.entry(ty.clone()).or_insert(i as u32);
        }
        Self {
            index,
            original: types.len(),
            types,
        }
    }

    pub(crate) fn get(&self, index: u32) -> (&[ValType], &[ValType]) {
        let (params, results) = &self.types[index as usize];
        (params, results)
    }

    /// Returns the index of the function type with these parameters and results.
    pub(crate) fn intern(&mut self, params: &[ValType], results: &[ValType]) -> u32 {
        let key = (params.to_vec(), results.to_vec());
        if let Some(&i) = self.index.get(&key) {
            return i;
        }
        let i = self.types.len() as u32;
        self.types.push(key.clone());
        self.index.insert(key, i);
        i
    }

    /// Returns the block type for these parameters and results.
    pub(crate) fn block(
        &mut self,
        params: &[ValType],
        results: &[ValType],
    ) -> Result<wasm_encoder::BlockType, RewriteError> {
        Ok(match (params, results) {
            ([], []) => wasm_encoder::BlockType::Empty,
            ([], [one]) => wasm_encoder::BlockType::Result(val_type(*one)?),
            _ => wasm_encoder::BlockType::FunctionType(self.intern(params, results)),
        })
    }

    /// Returns the parameters and results of a block type of the module.
    pub(crate) fn signature(&self, ty: wasmparser::BlockType) -> (Vec<ValType>, Vec<ValType>) {
        match ty {
            wasmparser::BlockType::Empty => (Vec::new(), Vec::new()),
            wasmparser::BlockType::Type(t) => (Vec::new(), vec![t]),
            wasmparser::BlockType::FuncType(i) => self.types[i as usize].clone(),
        }
    }

    /// Returns the types that were added, in order. They come after the module's own types.
    pub(crate) fn added(&self) -> &[(Vec<ValType>, Vec<ValType>)] {
        &self.types[self.original..]
    }

    pub(crate) fn function(
        &self,
        program: &Program,
        id: afterimage_ids::FuncId,
    ) -> (&[ValType], &[ValType]) {
        let i = id.as_u32() as usize;
        let ty = program.imports.get(i).map_or_else(
            || program.functions[i - program.imports.len()].ty,
            |import| import.ty,
        );
        self.get(ty.index() as u32)
    }
}

/// Converts a value type to the encoder's form.
pub(crate) fn val_type(ty: ValType) -> Result<wasm_encoder::ValType, RewriteError> {
    wasm_encoder::ValType::try_from(ty).map_err(|_| RewriteError::Type(ty))
}
