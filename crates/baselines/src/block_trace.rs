//! The raw trace: every executed block, written out.

use std::io::{self, Write};

/// The raw block trace: 4 bytes, little-endian, for each executed block. This is the uncompacted whole program
/// path that Zhang and Gupta 2001 measure against (Tables 1 and 4).
///
/// Writes go to the sink one block at a time, so a sink that is not memory is best buffered.
#[derive(Debug)]
pub struct BlockTrace<W> {
    sink: W,
    blocks: u64,
}

impl<W: Write> BlockTrace<W> {
    /// The empty trace. [`std::io::sink`] is a sink for when only the size matters.
    pub fn new(sink: W) -> Self {
        Self { sink, blocks: 0 }
    }

    /// Writes the next executed block.
    ///
    /// # Errors
    /// The sink's; the block then does not count.
    #[inline]
    pub fn push(&mut self, block: u32) -> io::Result<()> {
        self.sink.write_all(&block.to_le_bytes())?;
        self.blocks += 1;
        Ok(())
    }

    /// The trace's size so far.
    pub fn bytes(&self) -> u64 {
        self.blocks * 4
    }

    /// Gives the sink back.
    pub fn into_sink(self) -> W {
        self.sink
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_bytes_a_block() {
        let mut trace = BlockTrace::new(Vec::new());
        for block in [1, 0x0102_0304, 0] {
            trace.push(block).unwrap();
        }
        assert_eq!(trace.bytes(), 12);
        assert_eq!(trace.into_sink(), [1, 0, 0, 0, 4, 3, 2, 1, 0, 0, 0, 0]);
    }
}
