//! Measures the size of a stream under zstd.

use crate::ByteCount;
use std::io::{self, Write};
use zstd::stream::write::Encoder;

/// A sink that compresses its input with zstd (RFC 8878) and counts the compressed bytes. It needs
/// as much memory as the level's window.
///
/// The output is one frame of unknown length, without a checksum and without long-distance
/// matching. At level 19, this is the output of `zstd -19` on a pipe, less the 4-byte checksum.
pub struct ZstdSize {
    encoder: Encoder<'static, ByteCount>,
}

impl ZstdSize {
    /// Creates a compressor at `level`. Level 19 is the usual strong setting, and 3 is the default.
    ///
    /// # Errors
    /// Returns `InvalidInput` for a level outside zstd's range, which zstd itself would clamp.
    /// Returns `Other` if memory runs out.
    pub fn new(level: i32) -> io::Result<Self> {
        let levels = zstd::compression_level_range();
        if level == 0 || !levels.contains(&level) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "zstd has no level {level}: it has {} to {}, without 0",
                    levels.start(),
                    levels.end()
                ),
            ));
        }
        let encoder = Encoder::new(ByteCount::default(), level)?;
        Ok(Self { encoder })
    }

    /// Ends the frame and returns the compressed size in bytes.
    ///
    /// # Errors
    /// Returns an error if the compressor fails.
    pub fn finish(self) -> io::Result<u64> {
        Ok(self.encoder.finish()?.bytes())
    }
}

impl Write for ZstdSize {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.encoder.write(bytes)
    }

    /// Does nothing. The bytes are discarded anyway, and ending a block early would enlarge the
    /// stream.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> Vec<u8> {
        let mut state = 1u32;
        (0..300_000u32)
            .map(|at| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if at % 5 == 0 {
                    (state >> 29) as u8
                } else {
                    (at % 7) as u8
                }
            })
            .collect()
    }

    fn size(level: i32, chunks: usize, text: &[u8]) -> u64 {
        let mut sink = ZstdSize::new(level).unwrap();
        for chunk in text.chunks(chunks) {
            sink.write_all(chunk).unwrap();
            sink.flush().unwrap();
        }
        sink.finish().unwrap()
    }

    #[test]
    fn the_size_is_that_of_the_compressed_stream_however_it_is_cut() {
        let text = text();
        for level in [3, 19] {
            let expected = zstd::encode_all(&text[..], level).unwrap().len() as u64;
            for chunks in [4, 1000, text.len()] {
                assert_eq!(size(level, chunks, &text), expected, "level {level}");
            }
        }
        assert!(size(19, 4096, &text) < size(3, 4096, &text));
    }

    #[test]
    fn a_level_that_zstd_does_not_have_is_refused() {
        for level in [0, 23, i32::MIN] {
            assert!(ZstdSize::new(level).is_err());
        }
    }
}
