//! `bzip2 LEVEL FILE`: compresses FILE in one go, restores it and compares.

use bzip2_sys::{
    BZ_FINISH, BZ_STREAM_END, BZ2_bzCompress, BZ2_bzCompressInit, BZ2_bzDecompress,
    BZ2_bzDecompressInit, bz_stream,
};
use std::os::raw::{c_int, c_uint};

/// Runs a stream from `input` into at most `room` bytes; `step` starts it and runs it to its end.
fn run(
    input: &[u8],
    room: usize,
    step: impl Fn(&mut bz_stream) -> c_int,
) -> Result<Vec<u8>, String> {
    let mut output = vec![0u8; room];
    // SAFETY: the manual asks for a zeroed stream: no buffers yet, the standard allocator.
    let mut stream: bz_stream = unsafe { std::mem::zeroed() };
    stream.next_in = input.as_ptr() as *mut _;
    stream.avail_in = input.len() as c_uint;
    stream.next_out = output.as_mut_ptr().cast();
    stream.avail_out = room as c_uint;
    match step(&mut stream) {
        BZ_STREAM_END => {
            output.truncate(room - stream.avail_out as usize);
            Ok(output)
        }
        status => Err(format!("bzip2 ended with status {status}")),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(level), Some(path)) = (arguments.next(), arguments.next()) else {
        return Err("usage: bzip2 LEVEL FILE".into());
    };
    let (level, text) = (level.parse()?, std::fs::read(path)?);
    // The bound in the manual: one per cent and 600 bytes more than the input.
    // SAFETY (both): the pointers and lengths are those of `input` and `output`, which outlive it.
    let packed = run(
        &text,
        text.len() + text.len() / 100 + 600,
        |stream| unsafe {
            BZ2_bzCompressInit(stream, level, 0, 0);
            BZ2_bzCompress(stream, BZ_FINISH as _)
        },
    )?;
    let restored = run(&packed, text.len(), |stream| unsafe {
        BZ2_bzDecompressInit(stream, 0, 0);
        BZ2_bzDecompress(stream)
    })?;
    if restored != text {
        return Err("the restored text differs".into());
    }
    println!(
        "{} bytes to {}, checksum {:016x}",
        text.len(),
        packed.len(),
        guest_summary::fnv1a(&packed)
    );
    Ok(())
}
