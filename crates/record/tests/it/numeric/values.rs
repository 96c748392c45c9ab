//! Generates operands, which are the edge values of each type and other values.

/// Pseudorandom numbers (Steele, Lea and Flood 2014, "SplitMix").
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn wide(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }

    pub fn choose(&mut self, from: &[u64]) -> u64 {
        from[self.next() as usize % from.len()]
    }
}

fn mask(width: u32) -> u64 {
    u64::MAX >> (64 - width)
}

/// Returns edge values of integers with `width` bits and of narrower integers. For 8 bits, returns
/// all 256 values.
pub fn integers(width: u32, random: &mut Random) -> Vec<u64> {
    if width == 8 {
        return (0..256).collect();
    }
    let mut values = Vec::new();
    for bits in [0, 1, 3, 7, 8, 15, 16, 23, 24, 31, 32, 33, 52, 53, 63] {
        let power = 1u64 << bits;
        values.extend([power, power - 1, power + 1, power.wrapping_neg()]);
    }
    values.extend([0x5555_5555_5555_5555, 0xaaaa_aaaa_aaaa_aaaa]);
    values.extend([6, 100, u64::MAX - 1, u64::MAX >> 1, u64::MAX << 63 | 1]);
    values.extend((0..12).map(|_| random.next()));
    values.iter_mut().for_each(|value| *value &= mask(width));
    values.sort_unstable();
    values.dedup();
    values
}

/// Returns edge values of floats with `width` bits. These are the edge values of the format, of
/// rounding and of conversions.
pub fn floats(width: u32, random: &mut Random) -> Vec<u64> {
    let mut values = vec![0.0, 0.3, 1.0 / 3.0, 1e-10, 1e20, 3.5, 4.5, 1e300, 1e-320];
    values.extend([0.5, 1.5, 2.5, 0.499_999_999_999_999_94, 0.499_999_97, 0.75]);
    for bits in [0, 22, 23, 24, 31, 32, 51, 52, 53, 62, 63, 64] {
        let power = 2f64.powi(bits);
        values.extend([power, power - 0.5, power + 0.5, power - 1.0, power + 1.0]);
        values.extend([power.next_down(), power.next_up()]);
        values.extend([
            f64::from((power as f32).next_down()),
            f64::from((power as f32).next_up()),
        ]);
    }
    // The smallest and the largest value of the narrower format, and the halfway points beyond
    // them.
    let (least, greatest) = (2f64.powi(-149), f64::from(f32::MAX));
    values.extend([
        least,
        least / 2.0,
        (least / 2.0).next_up(),
        least * 1.5,
        greatest,
    ]);
    values.extend([
        greatest + 2f64.powi(103),
        (greatest + 2f64.powi(103)).next_down(),
    ]);
    values.extend([
        f64::from(f32::MIN_POSITIVE),
        f64::from(f32::MIN_POSITIVE.next_down()),
    ]);
    let (mut bits, sign, nans) = match width {
        32 => {
            let bits = values
                .iter()
                .map(|&value| u64::from((value as f32).to_bits()));
            let nans = [
                0x7fc0_0000,
                0x7f80_0001,
                0x7fc1_2345,
                0x7fff_ffff,
                0x7fbf_ffff,
            ];
            (bits.collect::<Vec<_>>(), 1 << 31, nans.to_vec())
        }
        _ => {
            let format = [
                f64::MAX,
                f64::MIN_POSITIVE,
                f64::MIN_POSITIVE.next_down(),
                5e-324,
            ];
            values.extend(format);
            let bits = values.iter().map(|value| value.to_bits());
            let quiet = 0x7ff8_0000_0000_0000;
            let nans = [
                quiet,
                0x7ff0_0000_0000_0001,
                quiet | 0x12345,
                (1 << 63) - 1,
                quiet - 1,
            ];
            (bits.collect(), 1 << 63, nans.to_vec())
        }
    };
    let infinity = if width == 32 {
        0x7f80_0000
    } else {
        0x7ff << 52
    };
    bits.push(infinity);
    bits.extend(nans);
    bits.extend((0..6).map(|_| random.next() & mask(width)));
    let negative = Vec::from_iter(bits.iter().map(|bits| bits ^ sign));
    bits.extend(negative);
    bits.sort_unstable();
    bits.dedup();
    bits
}

/// Returns a float with an exponent near the exponents of the others, so that in sums neither
/// operand vanishes.
pub fn moderate_float(width: u32, random: &mut Random) -> u64 {
    let exponent = random.next() % 16;
    match width {
        32 => random.next() & 0x807f_ffff | (119 + exponent) << 23,
        _ => random.next() & 0x800f_ffff_ffff_ffff | (1015 + exponent) << 52,
    }
}
