//! A range of bytes, each with its last writer.

use afterimage_machine::Range;

/// The last writer of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrote {
    /// Nothing wrote the byte, so it has its initial value.
    Nothing,
    /// An instruction in an execution of a node.
    Guest {
        /// The time of the node's first block.
        start: u64,
        /// The instruction's position.
        inst: u32,
    },
    /// The host, during a call to an import.
    Host {
        /// The number of the call, from 1.
        call: u64,
    },
}

/// Adjacent bytes with the same writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub range: Range,
    pub wrote: Wrote,
}

/// The bytes of a range with their last writers. An entry is `None` while its writer is unknown.
pub(super) struct Canvas {
    range: Range,
    bytes: Vec<Option<Wrote>>,
}

impl Canvas {
    /// Creates a canvas in which all writers are unknown.
    pub fn new(range: Range) -> Self {
        Self {
            range,
            bytes: vec![None; range.length as usize],
        }
    }

    pub fn range(&self) -> Range {
        self.range
    }

    /// Returns the positions, in this canvas, of the bytes that are also in another range.
    fn common(&self, other: Range) -> std::ops::Range<usize> {
        let own = self.range;
        if other.memory != own.memory || other.length == 0 {
            return 0..0;
        }
        let end = other.address.saturating_add(other.length);
        let end = end.min(own.address.saturating_add(own.length));
        let first = other.address.max(own.address);
        if first < end {
            (first - own.address) as usize..(end - own.address) as usize
        } else {
            0..0
        }
    }

    /// Sets the last writer of a range. Overwrites earlier entries.
    #[inline]
    pub fn over(&mut self, range: Range, wrote: Wrote) {
        let common = self.common(range);
        self.bytes[common].fill(Some(wrote));
    }

    /// Sets the writer of the bytes of a range that have no known writer yet. Returns whether any of
    /// the bytes are in this canvas.
    pub fn under(&mut self, range: Range, wrote: Wrote) -> bool {
        let common = self.common(range);
        let is_common = !common.is_empty();
        for byte in &mut self.bytes[common] {
            byte.get_or_insert(wrote);
        }
        is_common
    }

    /// Whether all writers are known.
    pub fn is_complete(&self) -> bool {
        self.bytes.iter().all(Option::is_some)
    }

    /// Returns the writer of a byte, if known.
    pub fn get(&self, position: usize) -> Option<Wrote> {
        self.bytes[position]
    }

    /// Returns the positions of the bytes without a known writer.
    pub fn unknown(&self) -> Vec<usize> {
        let bytes = self.bytes.iter().enumerate();
        let unknown = bytes.filter(|(_, byte)| byte.is_none());
        unknown.map(|(position, _)| position).collect()
    }

    /// Sets the writer of a byte.
    pub fn set(&mut self, position: usize, wrote: Option<Wrote>) {
        self.bytes[position] = wrote;
    }

    /// Returns all bytes, in parts. Bytes without a known writer count as unwritten.
    pub fn parts(&self) -> Vec<Part> {
        let mut address = self.range.address;
        let groups = self.bytes.chunk_by(|a, b| a == b).map(|group| {
            let length = group.len() as u64;
            let range = Range {
                address,
                length,
                ..self.range
            };
            address = address.wrapping_add(length);
            let wrote = group[0].unwrap_or(Wrote::Nothing);
            Part { range, wrote }
        });
        groups.collect()
    }
}
