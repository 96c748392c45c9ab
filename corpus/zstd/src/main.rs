//! `zstd LEVEL FILE`: compresses FILE in one go, restores it and compares.

use zstd_sys::{ZSTD_compress, ZSTD_compressBound, ZSTD_decompress};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(level), Some(path)) = (arguments.next(), arguments.next()) else {
        return Err("usage: zstd LEVEL FILE".into());
    };
    let (level, text) = (level.parse()?, std::fs::read(path)?);
    // SAFETY: a pure function of its argument.
    let mut packed = vec![0u8; unsafe { ZSTD_compressBound(text.len()) }];
    // SAFETY: each pointer comes with the length of the vector that it points into.
    let size = unsafe {
        ZSTD_compress(
            packed.as_mut_ptr().cast(),
            packed.len(),
            text.as_ptr().cast(),
            text.len(),
            level,
        )
    };
    // An error code is a size that no buffer can have.
    packed.resize(size.min(packed.len()), 0);
    let mut restored = vec![0u8; text.len()];
    // SAFETY: as above.
    let back = unsafe {
        ZSTD_decompress(
            restored.as_mut_ptr().cast(),
            restored.len(),
            packed.as_ptr().cast(),
            packed.len(),
        )
    };
    if back != text.len() || restored != text {
        return Err(format!("compression answered {size}, decompression {back}").into());
    }
    println!(
        "{} bytes to {size}, checksum {:016x}",
        text.len(),
        guest_summary::fnv1a(&packed)
    );
    Ok(())
}
