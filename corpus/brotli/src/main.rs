//! `brotli QUALITY FILE`: compresses FILE, restores it and compares.

use brotli::enc::BrotliEncoderParams;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(quality), Some(path)) = (arguments.next(), arguments.next()) else {
        return Err("usage: brotli QUALITY FILE".into());
    };
    let text = std::fs::read(path)?;
    let parameters = BrotliEncoderParams {
        quality: quality.parse()?,
        ..BrotliEncoderParams::default()
    };
    let (mut packed, mut restored) = (Vec::new(), Vec::new());
    brotli::BrotliCompress(&mut text.as_slice(), &mut packed, &parameters)?;
    brotli::BrotliDecompress(&mut packed.as_slice(), &mut restored)?;
    if restored != text {
        return Err("what was restored differs".into());
    }
    println!(
        "{} bytes to {}, checksum {:016x}",
        text.len(),
        packed.len(),
        guest_summary::fnv1a(&packed)
    );
    Ok(())
}
