//! Payloads: section name, then the bytes, compressed where that makes them smaller.

use std::io;

use zstd::bulk::{Compressor, Decompressor};

use crate::layout::{CODEC_RAW, CODEC_ZSTD, ChunkHeader};

/// For the log, which is compressed while the guest waits.
pub(crate) const FAST: i32 = 1;
/// For everything else.
pub(crate) const NORMAL: i32 = 3;

/// Appends `raw`, encoded, to `out` and returns the codec used.
pub(crate) fn encode(compressor: &mut Compressor<'static>, raw: &[u8], out: &mut Vec<u8>) -> u8 {
    let start = out.len();
    out.resize(start + raw.len(), 0);
    // The room is the length of the input, so an encoding that is no smaller fails here.
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

/// A compressor at this level.
pub(crate) fn compressor(level: i32) -> io::Result<Compressor<'static>> {
    Compressor::new(level)
}

/// Decodes a payload into `raw`, which it clears first. The header's limits bound
/// what is allocated; the payload is trusted for nothing.
pub(crate) fn decode(
    header: &ChunkHeader,
    payload: &[u8],
    raw: &mut Vec<u8>,
) -> Result<(), &'static str> {
    raw.clear();
    if payload.len() != header.stored as usize || crc32fast::hash(payload) != header.crc {
        return Err("its checksum does not match");
    }
    let (_, encoded) = split_name(header, payload)?;
    let length = header.raw as usize;
    match header.codec {
        CODEC_RAW => raw.extend_from_slice(encoded),
        CODEC_ZSTD => {
            raw.reserve_exact(length);
            Decompressor::new()
                .and_then(|mut decompressor| decompressor.decompress_to_buffer(encoded, raw))
                .map_err(|_| "it does not decompress")?;
        }
        _ => return Err("its codec is unknown to this program"),
    }
    if raw.len() != length {
        return Err("its decoded length is not the declared one");
    }
    Ok(())
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
