//! `zlib LEVEL FILE`: compresses FILE in one go, restores it and compares.

use libz_sys::{Z_OK, compress2, compressBound, uLong, uncompress};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(level), Some(path)) = (arguments.next(), arguments.next()) else {
        return Err("usage: zlib LEVEL FILE".into());
    };
    let (level, text) = (level.parse()?, std::fs::read(path)?);
    // SAFETY: a pure function of its argument.
    let mut size = unsafe { compressBound(text.len() as uLong) };
    let mut packed = vec![0u8; size as usize];
    let mut restored = vec![0u8; text.len()];
    let mut back = text.len() as uLong;
    // SAFETY: each pointer comes with the length of the vector that it points into.
    let answers = unsafe {
        [
            compress2(
                packed.as_mut_ptr(),
                &mut size,
                text.as_ptr(),
                text.len() as uLong,
                level,
            ),
            uncompress(restored.as_mut_ptr(), &mut back, packed.as_ptr(), size),
        ]
    };
    packed.truncate(size as usize);
    if answers != [Z_OK; 2] || restored != text {
        return Err(format!("compression and decompression answered {answers:?}").into());
    }
    println!(
        "{} bytes to {size}, checksum {:016x}",
        text.len(),
        guest_summary::fnv1a(&packed)
    );
    Ok(())
}
