//! Groups statements with equal values into classes.

use rustc_hash::FxHashMap;

use crate::Version;

/// A number for each statement of two versions. Statements with equal sequences of values have
/// equal numbers.
pub(crate) struct Classes {
    pub a: Vec<u32>,
    pub b: Vec<u32>,
    /// For each class, the number of the first version's statements in it.
    pub size: Vec<u32>,
}

impl Classes {
    /// Numbers the classes of values in both versions. O(statements).
    pub fn new(a: &Version, b: &Version) -> Self {
        let mut known: FxHashMap<(u64, u64), u32> = FxHashMap::default();
        let mut of = |version: &Version| -> Vec<u32> {
            let statements = version.statements.iter();
            let numbers = statements.map(|statement| {
                let next = known.len() as u32;
                let values = statement.telling();
                let key = (values.count, values.sequence);
                *known.entry(key).or_insert(next)
            });
            numbers.collect()
        };
        let (a, b) = (of(a), of(b));
        let mut size = vec![0; known.len()];
        for &class in &a {
            size[class as usize] += 1;
        }
        Self { a, b, size }
    }
}
