//! Finds the functions that may throw an exception to their caller, over the whole call graph.

use afterimage_ids::{EntityRef, EntitySet, FuncId, PrimaryMap, TypeId};
use std::collections::HashMap;
use wasmparser::{Catch, Operator};

use crate::{Callee, FunctionType};

/// The facts about one function for the analysis.
#[derive(Debug, Default)]
pub(crate) struct CallFacts {
    /// Whether the function has a `throw` or `throw_ref` that no `catch_all` encloses.
    throws: bool,
    /// The calls that no `catch_all` encloses, and all tail calls.
    calls: Vec<Callee>,
}

/// Collects [`CallFacts`] from the operators of one function.
///
/// Unreachable code counts, and a clause for a single tag is assumed to catch nothing. Both choices
/// err towards "may throw". They may cost a superfluous handler, but the recording stays exact.
#[derive(Debug, Default)]
pub(crate) struct CallScan {
    /// For each open frame, whether it is a `try_table` with a catch-all clause.
    frames: Vec<bool>,
    /// The number of these frames with a catch-all clause.
    protections: u32,
}

impl CallScan {
    /// Processes the next operator of the function.
    pub(crate) fn operator(&mut self, operator: &Operator<'_>, facts: &mut CallFacts) {
        match operator {
            Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } => {
                self.frames.push(false);
            }
            Operator::TryTable { try_table } => {
                let protects = try_table.catches.iter().any(catches_all);
                self.frames.push(protects);
                self.protections += u32::from(protects);
            }
            // The function's own frame is not pushed, so its `end` pops nothing.
            Operator::End => {
                self.protections -= u32::from(self.frames.pop().unwrap_or(false));
            }
            Operator::Throw { .. } | Operator::ThrowRef => facts.throws |= self.protections == 0,
            _ => match Transfer::of(operator) {
                Some(Transfer::Tail(callee)) => facts.calls.push(callee),
                Some(Transfer::Call(callee)) if self.protections == 0 => facts.calls.push(callee),
                _ => {}
            },
        }
    }
}

/// Whether a clause catches every exception.
pub(crate) fn catches_all(catch: &Catch) -> bool {
    matches!(catch, Catch::All { .. } | Catch::AllRef { .. })
}

/// The call that an operator makes.
pub(crate) enum Transfer {
    /// A call that returns to this function.
    Call(Callee),
    /// A call that replaces this activation.
    Tail(Callee),
}

impl Transfer {
    /// Returns the call that an operator makes, if it makes one.
    pub(crate) fn of(operator: &Operator<'_>) -> Option<Self> {
        let direct = |index: u32| Callee::Direct(FuncId::from_u32(index));
        let indirect = |table, ty: u32| Callee::Indirect {
            table,
            ty: TypeId::from_u32(ty),
        };
        Some(match *operator {
            Operator::Call { function_index } => Self::Call(direct(function_index)),
            Operator::CallIndirect {
                type_index,
                table_index,
            } => Self::Call(indirect(table_index, type_index)),
            Operator::ReturnCall { function_index } => Self::Tail(direct(function_index)),
            Operator::ReturnCallIndirect {
                type_index,
                table_index,
            } => Self::Tail(indirect(table_index, type_index)),
            _ => return None,
        })
    }
}

/// The calls that may throw an exception.
#[derive(Debug)]
pub(crate) struct MayThrow {
    functions: Vec<bool>,
    types: PrimaryMap<TypeId, bool>,
}

impl MayThrow {
    /// Computes the least fixed point of the following rules. A function may throw if it raises an
    /// exception that it might not catch, or calls a function that may throw. An indirect call may
    /// throw if any function of its type whose address is taken may throw. Imports never throw.
    ///
    /// Uses one backward walk over the call graph, from the functions that throw. All indirect
    /// calls of a type go through one vertex. O(functions + types + calls).
    pub(crate) fn compute(
        types: &PrimaryMap<TypeId, FunctionType>,
        function_types: &[TypeId],
        imports: usize,
        facts: &[CallFacts],
        address_taken: &EntitySet<FuncId>,
    ) -> Self {
        let functions = function_types.len();
        if !facts.iter().any(|f| f.throws) {
            return Self::nobody(functions, types.len());
        }
        // Function types are structural, so equal types share the vertex of the first.
        let mut classes = HashMap::new();
        let class: PrimaryMap<TypeId, usize> = types
            .iter()
            .map(|(id, ty)| *classes.entry(ty).or_insert(id.index()))
            .collect();
        let vertices = functions + types.len();

        let callee = |callee: &Callee| match *callee {
            Callee::Direct(function) => function.index(),
            Callee::Indirect { ty, .. } => functions + class[ty],
        };
        let mut callers = vec![Vec::new(); vertices];
        for (i, facts) in facts.iter().enumerate() {
            for call in &facts.calls {
                callers[callee(call)].push(imports + i);
            }
        }
        for (function, ty) in function_types.iter().enumerate() {
            if address_taken.contains(FuncId::new(function)) {
                callers[function].push(functions + class[*ty]);
            }
        }

        let mut throws = vec![false; vertices];
        let mut work: Vec<usize> = Vec::new();
        for (i, _) in facts.iter().enumerate().filter(|(_, f)| f.throws) {
            throws[imports + i] = true;
            work.push(imports + i);
        }
        while let Some(vertex) = work.pop() {
            for &caller in &callers[vertex] {
                if !std::mem::replace(&mut throws[caller], true) {
                    work.push(caller);
                }
            }
        }
        let types = class
            .values()
            .map(|&class| throws[functions + class])
            .collect();
        throws.truncate(functions);
        Self {
            functions: throws,
            types,
        }
    }

    /// Returns the result for a module in which nothing is thrown.
    pub(crate) fn nobody(functions: usize, types: usize) -> Self {
        Self {
            functions: vec![false; functions],
            types: (0..types).map(|_| false).collect(),
        }
    }

    /// Whether an exception can leave a function.
    pub(crate) fn function(&self, function: FuncId) -> bool {
        self.functions[function.index()]
    }

    /// Whether a call may throw an exception.
    pub(crate) fn call(&self, callee: Callee) -> bool {
        match callee {
            Callee::Direct(function) => self.function(function),
            Callee::Indirect { ty, .. } => self.types[ty],
        }
    }
}
