//! Every operator against its definition, written separately, slowly and driven by the operator's name:
//! integers as unbounded numbers, floats as exact fractions that are rounded once.

mod complete;
mod floats;
mod integers;
mod scalars;
mod soft;
mod vectors;

/// Numbers that look random (Steele, Lea and Flood 2014, "SplitMix").
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Of `width` bits, with long runs of equal bits more often than not: edges are among them.
    fn bits(&mut self, width: u32) -> u64 {
        let mask = u64::MAX >> (64 - width);
        let random = self.next();
        let run = (u64::MAX << (random % 64)) ^ (u64::MAX << (random / 64 % 64));
        let bits = match random >> 60 {
            0..4 => self.next(),
            4..8 => run,
            8..10 => !run,
            10..12 => run ^ 1 << (random / 4096 % 64),
            12..14 => (random / 4096 % 5).wrapping_sub(2),
            _ => run ^ self.next() & 0xff,
        };
        bits & mask
    }
}
