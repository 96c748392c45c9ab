//! Finds anchors, which are the calls that both runs make.

use std::collections::HashMap;

use afterimage_ids::FuncId;
use afterimage_program::{Names, Program};
use afterimage_wpp::{Segments, TargetError, WholePath};

use crate::matching::same_names;

/// A run whose calls are examined.
pub(super) struct Calling<'a, S> {
    pub path: &'a WholePath<S>,
    pub program: &'a Program,
    pub names: &'a Names,
}

/// Functions that both runs are expected to call in the same order. They are imports, or functions
/// that have the same name in both programs and are called equally often. An optimiser inlines a
/// function or leaves its calls alone, and does not reorder calls that have effects.
#[derive(Clone, Debug, Default)]
pub struct Anchors {
    /// The names of the functions, by anchor number.
    pub names: Vec<String>,
    /// For each function, whether the host defines it.
    pub is_host: Vec<bool>,
    /// The anchor number of each function, in the unoptimised and in the optimised program.
    pub(super) of: [HashMap<FuncId, u32>; 2],
}

impl Anchors {
    /// Finds the anchors of the unoptimised run and the optimised run. O(functions · segments).
    pub(super) fn new<S: Segments>(
        a: Calling<'_, S>,
        b: Calling<'_, S>,
    ) -> Result<Self, TargetError> {
        let mut found = Self::default();
        let imports = |program: &Program| -> HashMap<String, FuncId> {
            let all = program.imports.iter().zip(0..);
            all.map(|(import, index)| {
                let name = format!("{}.{}", import.module, import.name);
                (name, FuncId::from_u32(index))
            })
            .collect()
        };
        let of_b = imports(b.program);
        let mut all: Vec<(String, FuncId)> = imports(a.program).into_iter().collect();
        all.sort_unstable();
        for (name, function) in all {
            found.add(name.clone(), true, function, of_b.get(&name).copied());
        }
        // Adds the imports that only the optimised program has.
        for (name, function) in of_b {
            if !found.names.contains(&name) {
                let number = found.names.len() as u32;
                found.of[1].insert(function, number);
                found.names.push(name);
                found.is_host.push(true);
            }
        }
        let same = same_names((a.program, a.names), (b.program, b.names)).same;
        let mut pairs: Vec<(u32, u32)> = same.into_iter().collect();
        pairs.sort_unstable();
        for (of_b, of_a) in pairs {
            let (of_a, of_b) = (FuncId::from_u32(of_a), FuncId::from_u32(of_b));
            let calls = a.path.activations(of_a)?.count();
            if calls > 0 && calls == b.path.activations(of_b)?.count() {
                found.add(b.names.function(of_b).to_owned(), false, of_a, Some(of_b));
            }
        }
        Ok(found)
    }

    fn add(&mut self, name: String, is_host: bool, of_a: FuncId, of_b: Option<FuncId>) {
        let number = self.names.len() as u32;
        self.of[0].insert(of_a, number);
        if let Some(of_b) = of_b {
            self.of[1].insert(of_b, number);
        }
        self.names.push(name);
        self.is_host.push(is_host);
    }

    /// Removes functions whose calls turned out to differ.
    pub(super) fn remove(&mut self, numbers: &[u32]) {
        for of in &mut self.of {
            of.retain(|_, number| !numbers.contains(number));
        }
    }
}
