//! Generates streams of the shapes that traces have, from a seed.

/// SplitMix64 (Steele, Lea and Flood 2014).
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.bits() % limit
    }
}

/// A name and a way to make `len` values.
pub type Shape = (&'static str, fn(&mut Random, usize) -> Vec<u64>);

/// All shapes.
pub const SHAPES: &[Shape] = &[
    ("constant", |random, len| {
        vec![random.bits() >> random.below(64); len]
    }),
    ("arithmetic", |random, len| {
        let (first, stride) = (random.below(1 << 20), random.below(64));
        (0..len as u64).map(|i| first + stride * i).collect()
    }),
    ("arithmetic, 64 bits", |random, len| {
        let (first, stride) = (random.bits(), random.bits());
        (0..len as u64)
            .map(|i| first.wrapping_add(stride.wrapping_mul(i)))
            .collect()
    }),
    ("runs of one value", |random, len| {
        let mut value = 0;
        (0..len)
            .map(|_| {
                if random.below(30) == 0 {
                    value = random.below(1000);
                }
                value
            })
            .collect()
    }),
    ("strides with breaks", |random, len| {
        let mut value = 1u64 << 20;
        (0..len)
            .map(|_| {
                value = if random.below(60) == 0 {
                    random.below(1 << 24) & !3
                } else {
                    value + 4
                };
                value
            })
            .collect()
    }),
    ("a loop nest", |random, len| {
        let (inner, jump) = (2 + random.below(200), random.below(4096));
        (0..len as u64)
            .map(|i| i % inner * 8 + i / inner * jump)
            .collect()
    }),
    ("interleaved strides", |random, len| {
        let ways: Vec<_> = (0..2 + random.below(4))
            .map(|_| (random.below(1 << 24), random.below(64)))
            .collect();
        (0..len)
            .map(|i| {
                let (first, stride) = ways[i % ways.len()];
                first + stride * (i / ways.len()) as u64
            })
            .collect()
    }),
    ("two values", |random, len| {
        let values = [random.bits(), random.bits()];
        (0..len)
            .map(|_| values[usize::from(random.below(8) == 0)])
            .collect()
    }),
    ("a small alphabet", |random, len| {
        let values: Vec<_> = (0..20).map(|_| random.bits() >> 30).collect();
        (0..len)
            .map(|_| values[(random.below(20) * random.below(20) / 20) as usize])
            .collect()
    }),
    ("periodic", |random, len| {
        let period: Vec<_> = (0..3 + random.below(300))
            .map(|_| random.below(1 << 16))
            .collect();
        (0..len).map(|i| period[i % period.len()]).collect()
    }),
    ("periodic with faults", |random, len| {
        let period: Vec<_> = (0..3 + random.below(300))
            .map(|_| random.below(1 << 16))
            .collect();
        let mut at = 0;
        (0..len)
            .map(|_| {
                at = if random.below(100) == 0 {
                    random.below(300) as usize
                } else {
                    at + 1
                };
                period[at % period.len()]
            })
            .collect()
    }),
    ("a random walk", |random, len| {
        let mut value = 1u64 << 30;
        (0..len)
            .map(|_| {
                value = value.wrapping_add(random.below(41)).wrapping_sub(20);
                value
            })
            .collect()
    }),
    ("pointer chasing", |random, len| {
        // Walks over the cycle of a permutation, again and again from varying places.
        let mut next: Vec<u64> = (0..700).collect();
        for i in (1..next.len()).rev() {
            next.swap(i, random.below(i as u64) as usize);
        }
        let mut at = 0;
        (0..len)
            .map(|_| {
                at = if random.below(200) == 0 {
                    random.below(700)
                } else {
                    next[at as usize]
                };
                0x10_0000 + at * 48
            })
            .collect()
    }),
    ("markov", |random, len| {
        // One of two states follows each state, in most cases the first of the two.
        let next: Vec<_> = (0..64)
            .map(|_| [random.below(64), random.below(64)])
            .collect();
        let names: Vec<_> = (0..64).map(|_| random.below(1 << 32)).collect();
        let mut at = 0;
        (0..len)
            .map(|_| {
                at = next[at as usize][usize::from(random.below(10) == 0)];
                names[at as usize]
            })
            .collect()
    }),
    ("small numbers", |random, len| {
        (0..len)
            .map(|_| random.bits() >> 32 >> random.below(32))
            .collect()
    }),
    ("random, 64 bits", |random, len| {
        (0..len).map(|_| random.bits()).collect()
    }),
    ("floats of a smooth curve", |random, len| {
        let step = random.below(100) as f64 * 1e-4;
        (0..len)
            .map(|i| ((i as f64 * step).sin() * 100.0).to_bits())
            .collect()
    }),
    ("decimal floats", |random, len| {
        let mut cents = 10_000i64;
        (0..len)
            .map(|_| {
                cents += random.below(21) as i64 - 10;
                (cents as f64 / 100.0).to_bits()
            })
            .collect()
    }),
    ("whole floats, 32 bits", |random, len| {
        (0..len)
            .map(|_| (random.below(1000) as f32).to_bits().into())
            .collect()
    }),
    ("phases", |random, len| {
        let mut values = Vec::with_capacity(len);
        while values.len() < len {
            let shape = random.below(SHAPES.len() as u64 - 1) as usize;
            let count = (random.below(2000) as usize + 1).min(len - values.len());
            values.extend(SHAPES[shape].1(random, count));
        }
        values
    }),
];
