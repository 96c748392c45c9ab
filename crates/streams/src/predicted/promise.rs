//! Whether predictors are worth a try.

use super::history::hash;

/// Entries of the tables.
const TABLE: usize = 256;

/// Whether, in one value of eight, a value or a difference follows what it followed before: a fraction of the work of a model.
pub(crate) fn recurs(values: &[u64]) -> bool {
    let (mut after_value, mut after_difference) = ([0u16; TABLE], [0u16; TABLE]);
    let (mut last, mut last_difference, mut hits) = (0u64, 0u64, 0);
    // The upper bits choose an entry; its content is told by others.
    let place = |context: u64| (hash(context) >> 56) as usize;
    let mark = |value: u64| (hash(value) >> 16) as u16 | 1;
    for &value in values {
        let difference = value.wrapping_sub(last);
        let by_value = &mut after_value[place(last)];
        let by_difference = &mut after_difference[place(last_difference)];
        hits += usize::from(*by_value == mark(value) || *by_difference == mark(difference));
        *by_value = mark(value);
        *by_difference = mark(difference);
        (last, last_difference) = (value, difference);
    }
    hits * 8 >= values.len()
}
