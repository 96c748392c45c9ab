//! `deflate < FILE`: compresses a file and prints the result.

use libz_sys::{Z_OK, compress2, uLong};
use std::io::{Read, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut text = Vec::new();
    std::io::stdin().read_to_end(&mut text)?;
    let mut packed = vec![0u8; 2 * text.len() + 600];
    let mut size = packed.len() as uLong;
    // SAFETY: each pointer comes with the length of the vector that it points into.
    let status = unsafe {
        compress2(
            packed.as_mut_ptr(),
            &mut size,
            text.as_ptr(),
            text.len() as uLong,
            9,
        )
    };
    packed.truncate(size as usize);
    std::io::stdout().write_all(&packed)?;
    if status != Z_OK {
        return Err(format!("zlib ended with status {status}").into());
    }
    Ok(())
}
