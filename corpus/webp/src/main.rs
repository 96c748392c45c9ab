//! `webp WIDTH HEIGHT QUALITY… < PIXELS`: encodes 8-bit RGB pixels as WebP, decodes them and reports the loss.

use libwebp_sys::{WebPDecodeRGBInto, WebPEncodeRGB, WebPFree};
use std::io::Read;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers = std::env::args()
        .skip(1)
        .map(|number| number.parse())
        .collect::<Result<Vec<i32>, _>>()?;
    let [width, height, qualities @ ..] = numbers.as_slice() else {
        return Err("usage: webp WIDTH HEIGHT QUALITY…".into());
    };
    let mut pixels = Vec::new();
    std::io::stdin().read_to_end(&mut pixels)?;
    let stride = 3 * width;
    if i64::from(stride) * i64::from(*height) != pixels.len() as i64 {
        return Err("standard input is not as long as the image is large".into());
    }
    for &quality in qualities {
        let mut output = std::ptr::null_mut();
        // SAFETY: that many pixels were read, and the library returns the length of its allocation.
        let file = unsafe {
            let pixels = pixels.as_ptr();
            let size = WebPEncodeRGB(
                pixels,
                *width,
                *height,
                stride,
                quality as f32,
                &mut output,
            );
            if size == 0 {
                return Err("the image could not be encoded".into());
            }
            let file = std::slice::from_raw_parts(output, size).to_vec();
            WebPFree(output.cast());
            file
        };
        let mut decoded = vec![0u8; pixels.len()];
        // SAFETY: both pointers come with the lengths of their vectors.
        let into = unsafe {
            WebPDecodeRGBInto(
                file.as_ptr(),
                file.len(),
                decoded.as_mut_ptr(),
                decoded.len(),
                stride,
            )
        };
        if into.is_null() {
            return Err("the image could not be decoded".into());
        }
        let both = pixels.iter().zip(&decoded);
        let error: u64 = both.map(|(&a, &b)| u64::from(a.abs_diff(b)).pow(2)).sum();
        let (size, sum) = (file.len(), guest_summary::fnv1a(&file));
        println!("quality {quality}: {size} bytes, checksum {sum:016x}, squared error {error}");
    }
    Ok(())
}
