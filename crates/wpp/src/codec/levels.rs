//! Quantises the counts of a candidate in a context into a few levels.

/// The largest count of a candidate in a context.
pub(super) const MOST: u32 = 63;
/// The number of levels of [`FINE`].
pub(super) const FINE_LEVELS: usize = 41;
/// The number of levels of [`COARSE`].
pub(super) const COARSE_LEVELS: usize = 12;
/// A number above the number of misses that the other two candidates can cause.
const MISSES: usize = 128;

/// Maps two counts to a level. The first counts how often a candidate followed, and the second how
/// often the others did.
pub(super) struct Levels([[u8; MISSES]; MOST as usize + 1]);

impl Levels {
    /// Returns the level for a candidate that followed `hits` times, where all candidates together
    /// followed `total` times.
    #[inline]
    pub(super) fn of(&self, hits: u32, total: u32) -> usize {
        self.0[(hits & MOST) as usize][(total - hits) as usize % MISSES].into()
    }
}

pub(super) static FINE: Levels = Levels(table(true));
pub(super) static COARSE: Levels = Levels(table(false));
/// For each level, the hits and misses that represent it in a context with few observations.
pub(super) static FINE_MEANS: [(u32, u32); FINE_LEVELS] = means(true);
pub(super) static COARSE_MEANS: [(u32, u32); COARSE_LEVELS] = means(false);

/// Returns the number of boundaries that are at most `number`.
const fn reached(boundaries: &[u32], number: u32) -> usize {
    let mut at = 0;
    while at < boundaries.len() && boundaries[at] <= number {
        at += 1;
    }
    at
}

/// Computes a level. Without hits, the level depends on the misses. Without misses, it depends on
/// the hits. Otherwise, it depends on the share of hits, in 64ths, and on the certainty of that
/// share.
const fn level(is_fine: bool, hits: u32, misses: u32) -> usize {
    let total = hits + misses;
    match (is_fine, hits, misses) {
        (true, 0, _) => reached(&[1, 2, 4], misses),
        (true, _, 0) => 3 + reached(&[1, 2, 3, 5, 9, 17, 40], hits),
        (true, ..) => {
            let share = reached(&[4, 9, 16, 24, 32, 40, 48, 55, 60], hits * 64 / total);
            11 + reached(&[5, 20], total) * 10 + share
        }
        (false, 0, _) => reached(&[1, 4], misses),
        (false, _, 0) => 2 + reached(&[1, 3, 12], hits),
        (false, ..) => 6 + reached(&[12, 24, 36, 50, 59], hits * 64 / total),
    }
}

const fn table(is_fine: bool) -> [[u8; MISSES]; MOST as usize + 1] {
    let mut table = [[0; MISSES]; MOST as usize + 1];
    let mut hits = 0;
    while hits < table.len() {
        let mut misses = 0;
        while misses < MISSES {
            table[hits][misses] = level(is_fine, hits as u32, misses as u32) as u8;
            misses += 1;
        }
        hits += 1;
    }
    table
}

const fn means<const LEVELS: usize>(is_fine: bool) -> [(u32, u32); LEVELS] {
    let mut means = [(0, 0); LEVELS];
    let mut is_set = [false; LEVELS];
    let mut total = 0;
    while total < MISSES as u32 {
        let mut hits = 0;
        while hits <= total && hits <= MOST {
            let at = level(is_fine, hits, total - hits);
            if !is_set[at] {
                is_set[at] = true;
                means[at] = (hits, total - hits);
            }
            hits += 1;
        }
        total += 1;
    }
    means
}
