//! Finds the calls during which a probe may write.

use afterimage_ids::{EntityRef, FuncId, TypeId};
use afterimage_program::{BlockEnd, Callee, Program};

/// The functions that may write between a call to them and their return.
#[derive(Clone, Debug)]
pub(crate) struct Writers {
    /// For each function, imports included, whether it may write.
    functions: Vec<bool>,
    /// For each type, whether a table may hold a function of this type that may write.
    types: Vec<bool>,
}

impl Writers {
    /// Closes `writes` over the call graph. `writes` says whether each function writes itself, or
    /// the host writes for it. This is a backward walk from the writers, with one vertex per type
    /// for calls through tables. Time: O(functions + types + calls).
    pub(crate) fn new(program: &Program, writes: Vec<bool>) -> Self {
        let imports = program.imports.len();
        let n = writes.len();
        let mut first = std::collections::HashMap::new();
        let class: Vec<usize> = program
            .types
            .iter()
            .map(|(id, ty)| *first.entry(ty).or_insert(id.index()))
            .collect();
        let mut callers: Vec<Vec<u32>> = vec![Vec::new(); n + program.types.len()];
        for (i, function) in (imports..).zip(&program.functions) {
            for block in function.cfg.blocks.values() {
                let (BlockEnd::Call(callee) | BlockEnd::TailCall(callee)) = block.end else {
                    continue;
                };
                match callee {
                    Callee::Direct(id) => callers[id.index()].push(i as u32),
                    Callee::Indirect { ty, .. } => callers[n + class[ty.index()]].push(i as u32),
                }
            }
            if program.address_taken.contains(function.id) {
                callers[i].push((n + class[function.ty.index()]) as u32);
            }
        }
        for (i, import) in program.imports.iter().enumerate() {
            if program.address_taken.contains(FuncId::new(i)) {
                callers[i].push((n + class[import.ty.index()]) as u32);
            }
        }
        let mut all: Vec<bool> = writes;
        all.resize(n + program.types.len(), false);
        let mut work: Vec<usize> = (0..all.len()).filter(|&v| all[v]).collect();
        while let Some(v) = work.pop() {
            for &caller in &callers[v] {
                if !std::mem::replace(&mut all[caller as usize], true) {
                    work.push(caller as usize);
                }
            }
        }
        let types = class.iter().map(|&class| all[n + class]).collect();
        all.truncate(n);
        Self {
            functions: all,
            types,
        }
    }

    /// Whether anything may be written between this call and its return.
    pub(crate) fn call(&self, callee: Callee) -> bool {
        match callee {
            Callee::Direct(id) => self.functions[id.index()],
            Callee::Indirect { ty, .. } => self.ty(ty),
        }
    }

    fn ty(&self, ty: TypeId) -> bool {
        self.types[ty.index()]
    }
}
