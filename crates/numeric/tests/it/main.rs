//! Checks every operator against its definition. The definitions are written separately, are slow,
//! and depend only on the operator's name. Integers are unbounded numbers, and floats are exact
//! fractions that are rounded once.

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

    /// Returns `width` bits, mostly edge cases of integers and floats: long runs of equal bits,
    /// least and greatest values, halves, and the limits of conversions.
    fn bits(&mut self, width: u32) -> u64 {
        let mask = u64::MAX >> (64 - width);
        let random = self.next();
        let run = (u64::MAX << (random % 64)) ^ (u64::MAX << (random / 64 % 64));
        let small = (random / 64 % 5).wrapping_sub(2);
        let bits = match random >> 60 {
            0..3 => self.next(),
            3..6 => run,
            6..7 => !run,
            7..8 => run ^ 1 << (random / 4096 % 64),
            8..9 => small,
            9..10 => small.wrapping_add(1 << (width - 1)),
            10..14 => {
                let powers = [0, 0, 1, 2, 3, 4, 31, 32, 52, 63, 64];
                let power = 2f64.powi(powers[random as usize % powers.len()]);
                let more = [-1.0, -0.5, 0.0, 0.5][random as usize / 64 % 4];
                let float = (power + more).copysign((random / 256 % 2) as f64 - 0.5);
                match width {
                    32 => u64::from((float as f32).to_bits()),
                    _ => float.to_bits(),
                }
            }
            _ => run ^ self.next() & 0xff,
        };
        bits & mask
    }
}
