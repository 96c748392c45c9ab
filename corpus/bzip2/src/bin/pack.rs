//! `pack < FILE`: compresses a file and prints the result.

use bzip2_sys::{
    BZ_FINISH, BZ_STREAM_END, BZ2_bzCompress, BZ2_bzCompressInit, bz_stream,
};
use std::io::{Read, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut text = Vec::new();
    std::io::stdin().read_to_end(&mut text)?;
    let mut packed = vec![0u8; 2 * text.len() + 600];
    // SAFETY: the stream's pointers and lengths are those of the vectors, which outlive it; a stream of zeros is what the manual asks for.
    let (status, left) = unsafe {
        let mut stream: bz_stream = std::mem::zeroed();
        stream.next_in = text.as_ptr() as *mut _;
        stream.avail_in = text.len() as u32;
        stream.next_out = packed.as_mut_ptr().cast();
        stream.avail_out = packed.len() as u32;
        BZ2_bzCompressInit(&mut stream, 1, 0, 0);
        let status = BZ2_bzCompress(&mut stream, BZ_FINISH as _);
        (status, stream.avail_out as usize)
    };
    packed.truncate(packed.len() - left);
    std::io::stdout().write_all(&packed)?;
    if status != BZ_STREAM_END {
        return Err(format!("bzip2 ended with status {status}").into());
    }
    Ok(())
}
