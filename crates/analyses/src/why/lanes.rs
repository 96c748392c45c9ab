//! Tracks how operators move the bytes of vectors.

use std::ops::Range;

use afterimage_numeric::{Vector, VectorLoad, VectorStore};

use super::Bytes;

impl Bytes {
    /// Returns the position one past the last byte.
    fn end(self) -> u64 {
        self.first + self.length
    }

    /// Returns the bytes of a lane.
    fn lane(size: u64, lane: u64) -> Self {
        Self {
            first: size * lane,
            length: size,
        }
    }

    /// Returns the same bytes, counted from `first`.
    fn from(self, first: u64) -> Self {
        Self {
            first: self.first - first,
            ..self
        }
    }

    /// Returns the same bytes in lane 0, where all lanes are equal. Returns the whole lane if the
    /// bytes are in several lanes.
    fn repeated(self, size: u64) -> Self {
        let first = self.first % size;
        if first + self.length <= size {
            Self { first, ..self }
        } else {
            Self::lane(size, 0)
        }
    }

    /// Returns the bytes that lie within a value of `size` bytes. Returns the whole value if there
    /// are none, because bytes above the value extend its sign.
    fn within(self, size: u64) -> Self {
        if self.first < size {
            Self {
                length: self.length.min(size - self.first),
                ..self
            }
        } else {
            Self::lane(size, 0)
        }
    }

    fn are_in(self, all: Self) -> bool {
        all.first <= self.first && self.end() <= all.end()
    }

    fn meet(self, other: Self) -> bool {
        self.first < other.end() && other.first < self.end()
    }
}

/// Finds the operand, 0 or 1, that contains some bytes of an operator's result, and the position of
/// these bytes in the operand. `part` selects the bytes; `None` means all. Returns `None` if the
/// bytes are computed, or come from several places.
pub(super) fn moved(
    operator: Vector,
    immediate: u128,
    part: Option<Bytes>,
) -> Option<(usize, Bytes)> {
    use Vector::*;

    let lane = |size| immediate as u64 % (16 / size) * size;
    let taken = |size| {
        let all = Bytes::lane(size, 0);
        let part = part.map_or(all, |part| part.within(size));
        Some((
            0,
            Bytes {
                first: lane(size) + part.first,
                ..part
            },
        ))
    };
    let replaced = |size| {
        let part = part?;
        let own = Bytes {
            first: lane(size),
            length: size,
        };
        if part.are_in(own) {
            Some((1, part.from(own.first)))
        } else {
            (!part.meet(own)).then_some((0, part))
        }
    };
    let spread = |size| {
        let all = Bytes::lane(size, 0);
        Some((0, part.map_or(all, |part| part.repeated(size))))
    };
    match operator {
        I8x16ExtractLaneS | I8x16ExtractLaneU => taken(1),
        I16x8ExtractLaneS | I16x8ExtractLaneU => taken(2),
        I32x4ExtractLane | F32x4ExtractLane => taken(4),
        I64x2ExtractLane | F64x2ExtractLane => taken(8),
        I8x16ReplaceLane => replaced(1),
        I16x8ReplaceLane => replaced(2),
        I32x4ReplaceLane | F32x4ReplaceLane => replaced(4),
        I64x2ReplaceLane | F64x2ReplaceLane => replaced(8),
        I8x16Splat => spread(1),
        I16x8Splat => spread(2),
        I32x4Splat | F32x4Splat => spread(4),
        I64x2Splat | F64x2Splat => spread(8),
        I8x16Shuffle => {
            let part = part?;
            let all = immediate.to_le_bytes();
            let lanes = all.get(part.first as usize..part.end() as usize)?;
            let (&first, &last) = (lanes.first()?, lanes.last()?);
            let together = lanes
                .windows(2)
                .all(|two| u16::from(two[0]) + 1 == u16::from(two[1]));
            (together && first / 16 == last / 16).then_some((
                usize::from(first / 16 % 2),
                Bytes {
                    first: u64::from(first % 16),
                    ..part
                },
            ))
        }
        _ => None,
    }
}

/// The origin of some bytes of a loaded vector.
pub(super) enum Loaded {
    /// These bytes in memory, counted from the address.
    Memory(Range<u64>),
    /// These bytes of the vector that supplied the other lanes.
    Kept(Bytes),
}

/// Returns the origin of some bytes of a load's result. `part` selects the bytes; `None` means all.
/// For bytes that the load set to zero, returns all bytes that it read. For bytes that extend a
/// lane, returns the bytes of that lane.
pub(super) fn loaded(load: VectorLoad, lane: u64, part: Option<Bytes>) -> Loaded {
    let size = load.bytes() as u64;
    let Some(part) = part else {
        return Loaded::Memory(0..size);
    };
    let found = match shape(load) {
        Shape::Low => part.within(size),
        Shape::Repeated => part.repeated(size),
        Shape::Extended(size) => {
            let (first, last) = (part.first / (2 * size), (part.end() - 1) / (2 * size));
            match part.from(2 * size * first) {
                low if low.end() <= size => Bytes {
                    first: size * first + low.first,
                    ..low
                },
                _ => Bytes {
                    first: size * first,
                    length: size * (last + 1 - first),
                },
            }
        }
        Shape::Lane => {
            let own = Bytes::lane(size, lane % (16 / size));
            if !part.meet(own) {
                return Loaded::Kept(part);
            }
            let first = part.first.max(own.first);
            let both = Bytes {
                first,
                length: part.end().min(own.end()) - first,
            };
            both.from(own.first)
        }
    };
    Loaded::Memory(found.first..found.end())
}

/// Reconstructs the bytes in memory from which a vector was loaded.
pub(super) fn in_memory(load: VectorLoad, lane: u64, vector: [u8; 16]) -> Vec<u8> {
    let size = load.bytes();
    let at = |byte: usize| match shape(load) {
        Shape::Low | Shape::Repeated => byte,
        Shape::Extended(size) => byte + byte / size as usize * size as usize,
        Shape::Lane => lane as usize % (16 / size) * size + byte,
    };
    (0..size).map(|byte| vector[at(byte)]).collect()
}

/// Returns the position in the vector of the first byte that a store writes.
pub(super) fn stored(store: VectorStore, lane: u64) -> u64 {
    let size = store.bytes() as u64;
    lane % (16 / size) * size
}

/// The way in which a load forms a vector from the bytes that it reads.
enum Shape {
    /// The bytes are the lowest of the vector, and the others are zero.
    Low,
    /// The bytes are repeated in each lane.
    Repeated,
    /// Each group of this many bytes is extended to twice its size.
    Extended(u64),
    /// The bytes form a lane. The other lanes are kept.
    Lane,
}

fn shape(load: VectorLoad) -> Shape {
    use VectorLoad::*;

    match load {
        V128Load | V128Load32Zero | V128Load64Zero => Shape::Low,
        V128Load8x8S | V128Load8x8U => Shape::Extended(1),
        V128Load16x4S | V128Load16x4U => Shape::Extended(2),
        V128Load32x2S | V128Load32x2U => Shape::Extended(4),
        V128Load8Splat | V128Load16Splat | V128Load32Splat | V128Load64Splat => Shape::Repeated,
        V128Load8Lane | V128Load16Lane | V128Load32Lane | V128Load64Lane => Shape::Lane,
    }
}
