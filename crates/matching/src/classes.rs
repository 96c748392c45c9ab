//! Statements that gave the same values.

use rustc_hash::FxHashMap;

use crate::Version;

/// For each statement of two versions a number: the same for those whose sequences of values are the same.
pub(crate) struct Classes {
    pub a: Vec<u32>,
    pub b: Vec<u32>,
}

impl Classes {
    /// O(statements).
    pub fn new(a: &Version, b: &Version) -> Self {
        let mut known: FxHashMap<(u64, u64), u32> = FxHashMap::default();
        let mut of = |version: &Version| -> Vec<u32> {
            let statements = version.statements.iter();
            let numbers = statements.map(|statement| {
                let next = known.len() as u32;
                let key = (statement.values.count, statement.values.sequence);
                *known.entry(key).or_insert(next)
            });
            numbers.collect()
        };
        Self { a: of(a), b: of(b) }
    }
}
