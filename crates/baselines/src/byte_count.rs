//! Implements a sink that only counts bytes.

use std::io::{self, Write};

/// A sink that counts bytes and discards them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByteCount(u64);

impl ByteCount {
    /// Returns the number of bytes written.
    pub fn bytes(self) -> u64 {
        self.0
    }
}

impl Write for ByteCount {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
