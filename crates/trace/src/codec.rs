//! Encodes and decodes payloads. A payload is the bytes of a chunk, compressed if that makes them
//! smaller. In the first chunk of a named section, the name precedes them.

use std::cell::RefCell;
use std::io;

use zstd::bulk::{Compressor, Decompressor};

use crate::layout::{CODEC_RAW, CODEC_ZSTD, ChunkHeader};

/// The compression level of the log and of other sections that are needed soon.
pub(crate) const FAST: i32 = 1;
/// The compression level of all other sections.
pub(crate) const NORMAL: i32 = 3;

/// Encodes `raw`, appends it to `out`, and returns the codec used.
pub(crate) fn encode(compressor: &mut Compressor<'static>, raw: &[u8], out: &mut Vec<u8>) -> u8 {
    let start = out.len();
    out.resize(start + raw.len(), 0);
    // The output buffer is as long as the input, so an encoding that is not smaller fails here.
    match compressor.compress_to_buffer(raw, &mut out[start..]) {
        Ok(length) if length < raw.len() => {
            out.truncate(start + length);
            CODEC_ZSTD
        }
        _ => {
            out[start..].copy_from_slice(raw);
            CODEC_RAW
        }
    }
}

/// Returns a compressor at this level.
pub(crate) fn compressor(level: i32) -> io::Result<Compressor<'static>> {
    Compressor::new(level)
}

/// Decodes a payload into `raw`, replacing its contents. A damaged payload leaves `raw` empty. The
/// header's limits bound allocations, and nothing in the payload is trusted.
pub(crate) fn decode(
    header: &ChunkHeader,
    payload: &[u8],
    raw: &mut Vec<u8>,
) -> Result<(), &'static str> {
    raw.resize(header.raw as usize, 0);
    decode_to(header, payload, raw).inspect_err(|_| raw.clear())
}

/// Decodes a payload into a slice of exactly its decoded length.
pub(crate) fn decode_to(
    header: &ChunkHeader,
    payload: &[u8],
    raw: &mut [u8],
) -> Result<(), &'static str> {
    const LENGTH: &str = "its decoded length differs from the declared length";
    if payload.len() != header.stored as usize || crc32fast::hash(payload) != header.crc {
        return Err("its checksum does not match");
    }
    let (_, encoded) = split_name(header, payload)?;
    match header.codec {
        CODEC_RAW if raw.len() == encoded.len() => raw.copy_from_slice(encoded),
        CODEC_RAW => return Err(LENGTH),
        CODEC_ZSTD => {
            let length = decompress(encoded, raw).map_err(|_| "it cannot be decompressed")?;
            if length != raw.len() {
                return Err(LENGTH);
            }
        }
        _ => return Err("its codec is not known to this program"),
    }
    Ok(())
}

thread_local! {
    /// All calls in a thread share the decompressor, because it is as large as a short chunk, and a
    /// section has many chunks.
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Returns the number of bytes decompressed.
fn decompress(encoded: &[u8], raw: &mut [u8]) -> io::Result<usize> {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let decompressor = match kept {
            Some(kept) => kept,
            None => kept.insert(Decompressor::new()?),
        };
        decompressor.decompress_to_buffer(encoded, raw)
    })
}

/// Splits a payload into the section's name, if it has one, and the encoded bytes.
pub(crate) fn split_name<'a>(
    header: &ChunkHeader,
    payload: &'a [u8],
) -> Result<(Option<&'a str>, &'a [u8]), &'static str> {
    if !header.is_named() {
        return Ok((None, payload));
    }
    const FAULT: &str = "its section name is malformed";
    let (&length, rest) = payload.split_first().ok_or(FAULT)?;
    let (name, encoded) = rest.split_at_checked(length.into()).ok_or(FAULT)?;
    Ok((Some(std::str::from_utf8(name).map_err(|_| FAULT)?), encoded))
}
