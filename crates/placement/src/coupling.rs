//! Sets up the equations that link the functions of a program.
//!
//! Every activation of a function was started by a direct call, by an indirect call, or by the
//! host: `entries = direct calls + indirect calls + host entries`. The indirect call that started
//! an activation is unknown. So the functions that indirect calls of one type may reach share one
//! equation, which is the sum of their equations. Imported functions take part if the host counts
//! their calls.

use std::collections::HashMap;

use afterimage_ids::{BlockId, EntityRef, FuncId};
use afterimage_program::{Callee, FunctionType, Program};

use crate::calls::call_blocks;

/// The equation to which each function and each call belongs.
#[derive(Debug)]
pub(crate) struct Coupling {
    /// For each equation, the number of call blocks that take part.
    call_sites: Vec<u32>,
    /// The equation of each function, by function index, imports included.
    of_function: Vec<Option<u32>>,
    /// The equation of indirect calls, by function type.
    of_type: Vec<Option<u32>>,
}

/// The facts about the host that are needed to set up the equations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostKnowledge {
    /// Whether the host counts the calls to each imported function.
    pub(crate) counts_import_calls: bool,
    /// Whether the host may call functions through tables and references, or put its own functions
    /// there.
    pub(crate) uses_references: bool,
}

impl Coupling {
    pub(crate) fn new(program: &Program, host: HostKnowledge) -> Self {
        // Types with the same structure are equal, even if their indices differ.
        let mut classes: HashMap<&FunctionType, usize> = HashMap::new();
        let class_of_type: Vec<usize> = program
            .types
            .values()
            .map(|ty| {
                let next = classes.len();
                *classes.entry(ty).or_insert(next)
            })
            .collect();
        let mut called = vec![false; classes.len()];
        for function in &program.functions {
            for (_, callee) in call_blocks(&function.cfg) {
                if let Callee::Indirect { ty, .. } = callee {
                    called[class_of_type[ty.index()]] = true;
                }
            }
        }
        let imports = program.imports.iter().map(|i| i.ty);
        let types = imports.chain(program.functions.iter().map(|f| f.ty));
        let import_count = program.imports.len();
        let has_total = |f: usize| f >= import_count || host.counts_import_calls;
        let is_taken = |f: usize| program.address_taken.contains(FuncId::new(f));
        let classes_of_functions: Vec<usize> = types.map(|ty| class_of_type[ty.index()]).collect();

        let mut of_class: Vec<Option<u32>> = vec![None; classes.len()];
        let mut equations = 0;
        let mut fresh = || {
            equations += 1;
            Some(equations - 1)
        };
        if !host.uses_references {
            for (class, slot) in of_class.iter_mut().enumerate() {
                if called[class] {
                    *slot = fresh();
                }
            }
            for (f, &class) in classes_of_functions.iter().enumerate() {
                if is_taken(f) && !has_total(f) {
                    of_class[class] = None;
                }
            }
        }
        let of_function = classes_of_functions
            .iter()
            .enumerate()
            .map(|(f, &class)| {
                if is_taken(f) && (host.uses_references || called[class]) {
                    of_class[class]
                } else if has_total(f) {
                    fresh()
                } else {
                    None
                }
            })
            .collect();
        let mut this = Self {
            call_sites: vec![0; equations as usize],
            of_function,
            of_type: class_of_type.iter().map(|&class| of_class[class]).collect(),
        };
        let functions = program.functions.iter();
        for (_, callee) in functions.flat_map(|f| call_blocks(&f.cfg)) {
            if let Some(equation) = this.of_callee(callee) {
                this.call_sites[equation as usize] += 1;
            }
        }
        this
    }

    /// Returns the number of equations, including equations that turned out to be unusable.
    pub(crate) fn len(&self) -> usize {
        self.call_sites.len()
    }

    /// Returns the number of call blocks that take part in each equation.
    pub(crate) fn call_sites(&self) -> &[u32] {
        &self.call_sites
    }

    /// Returns the equation to which the entries of a function belong.
    pub(crate) fn of_function(&self, f: FuncId) -> Option<u32> {
        self.of_function[f.index()]
    }

    /// Returns the equation to which the calls to a callee belong.
    pub(crate) fn of_callee(&self, callee: Callee) -> Option<u32> {
        match callee {
            Callee::Direct(f) => self.of_function(f),
            Callee::Indirect { ty, .. } => self.of_type[ty.index()],
        }
    }
}

/// Returns each call block that takes part, with the equation to which it belongs.
pub(crate) fn coupled_calls<'a>(
    program: &'a Program,
    coupling: &'a Coupling,
    function: usize,
) -> impl Iterator<Item = (BlockId, u32)> + 'a {
    let calls = call_blocks(&program.functions[function].cfg);
    calls.filter_map(|(v, callee)| Some((v, coupling.of_callee(callee)?)))
}
