//! `jpeg WIDTH HEIGHT QUALITY… < PIXELS`: encodes 8-bit RGB pixels as JPEG, decodes them and reports the loss.

use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use std::io::Read;
use zune_jpeg::{JpegDecoder, zune_core::bytestream::ZCursor};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers = std::env::args()
        .skip(1)
        .map(|number| number.parse())
        .collect::<Result<Vec<u16>, _>>()?;
    let [width, height, qualities @ ..] = numbers.as_slice() else {
        return Err("usage: jpeg WIDTH HEIGHT QUALITY…".into());
    };
    let mut pixels = Vec::new();
    std::io::stdin().read_to_end(&mut pixels)?;
    for &quality in qualities {
        let mut file = Vec::new();
        let mut encoder = Encoder::new(&mut file, quality as u8);
        encoder.set_sampling_factor(SamplingFactor::F_2_2);
        encoder.set_progressive(quality % 2 == 1);
        encoder.encode(&pixels, *width, *height, ColorType::Rgb)?;
        let decoded = JpegDecoder::new(ZCursor::new(&file)).decode()?;
        let error: u64 = pixels
            .iter()
            .zip(&decoded)
            .map(|(&a, &b)| u64::from(a.abs_diff(b)).pow(2))
            .sum();
        let (size, sum) = (file.len(), guest_summary::fnv1a(&file));
        println!("quality {quality}: {size} bytes, checksum {sum:016x}, squared error {error}");
    }
    Ok(())
}
