//! Matches functions by name, as a hint for matching statements.

use std::collections::HashMap;

use afterimage_matching::Names as SameNames;
use afterimage_program::{Names, Program};

/// Finds the functions that have the same name in two programs, if the name is unique in each.
pub fn same_names(a: (&Program, &Names), b: (&Program, &Names)) -> SameNames {
    let known = |(program, names): (&Program, &Names)| -> HashMap<String, Option<u32>> {
        let mut known = HashMap::new();
        for function in &program.functions {
            let name = names.function(function.id).to_owned();
            let entry = known.entry(name).or_insert(Some(function.id.as_u32()));
            if *entry != Some(function.id.as_u32()) {
                *entry = None;
            }
        }
        known
    };
    let of_a = known(a);
    let of_b = known(b).into_iter();
    let pairs = of_b.filter_map(|(name, of_b)| Some((of_b?, (*of_a.get(&name)?)?)));
    SameNames {
        same: pairs.collect(),
    }
}
