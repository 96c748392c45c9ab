//! Names the functions of a table.

use std::collections::{BTreeSet, HashMap};

use afterimage_ids::FuncId;
use afterimage_program::Names;
pub(crate) use afterimage_program::{short_function, short_type, without_parameters};

use crate::plain::plain;

/// The short names of the functions in a table. Functions whose short names would be the same, such
/// as overloads, keep their full names.
pub(crate) struct ShortNames(HashMap<FuncId, String>);

impl ShortNames {
    /// Shortens the names of functions, which may occur more than once.
    pub(crate) fn new(names: &Names, functions: impl IntoIterator<Item = FuncId>) -> Self {
        let functions = BTreeSet::from_iter(functions);
        let mut full: HashMap<String, BTreeSet<&str>> = HashMap::new();
        for &function in &functions {
            let name = names.function(function);
            full.entry(short_function(name)).or_default().insert(name);
        }
        let shown = functions.into_iter().map(|function| {
            let name = names.function(function);
            let short = short_function(name);
            let is_shared = full.get(&short).is_some_and(|full| full.len() > 1);
            (function, plain(if is_shared { name } else { &short }))
        });
        Self(shown.collect())
    }

    /// Returns the name of a function of the table.
    pub(crate) fn of(&self, function: FuncId) -> &str {
        self.0.get(&function).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use afterimage_ids::FuncId;
    use afterimage_program::{Names, Program, SourceMap};

    use super::ShortNames;

    #[test]
    fn overloads_keep_their_parameters() {
        let module = wat::parse_str(
            r#"(module
                (func (@name "look(int)"))
                (func (@name "look(long)"))
                (func (@name "show(std::__2::vector<int, std::__2::allocator<int>>)"))
                (func (@name "look(char)")))"#,
        );
        let module = module.unwrap();
        let program = Program::parse(&module).unwrap();
        let names = Names::build(&program, &module, &SourceMap::build(&module));
        let of = |functions: &[u32]| {
            let functions = Vec::from_iter(functions.iter().map(|&n| FuncId::from_u32(n)));
            let short = ShortNames::new(&names, functions.clone());
            let names = functions
                .iter()
                .map(|&function| short.of(function).to_owned());
            Vec::from_iter(names)
        };
        assert_eq!(of(&[0, 1, 2]), ["look(int)", "look(long)", "show"]);
        // Only the functions of the table count.
        assert_eq!(of(&[2, 3, 3]), ["show", "look", "look"]);
    }
}
