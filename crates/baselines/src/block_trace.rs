//! Writes the raw trace, which contains the number of every executed block.

use std::io::{self, Write};

/// The raw block trace, with 4 little-endian bytes for each executed block. It is the uncompacted
/// whole program path with which Zhang and Gupta (2001) compare their compacted path (Tables 1 and
/// 4).
///
/// Each block is one write to the sink, so a sink that is not memory should be buffered.
#[derive(Debug)]
pub struct BlockTrace<W> {
    sink: W,
    blocks: u64,
}

impl<W: Write> BlockTrace<W> {
    /// Creates an empty trace. Use [`std::io::sink`] if only the size matters.
    pub fn new(sink: W) -> Self {
        Self { sink, blocks: 0 }
    }

    /// Writes the next executed block.
    ///
    /// # Errors
    /// Returns an error if the sink fails. In that case, the block does not count.
    #[inline]
    pub fn push(&mut self, block: u32) -> io::Result<()> {
        self.sink.write_all(&block.to_le_bytes())?;
        self.blocks += 1;
        Ok(())
    }

    /// Returns the size of the trace so far, in bytes.
    pub fn bytes(&self) -> u64 {
        self.blocks * 4
    }

    /// Returns the sink.
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
