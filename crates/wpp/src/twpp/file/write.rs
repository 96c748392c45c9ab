//! Writes a file.

use std::cmp::Reverse;

use super::function_block;
use super::layout::{DirectoryEntry, ENTRY, HEADER, Header};
use crate::twpp::compact::Twpp;
use crate::twpp::plain_calls;

/// Encodes a run as a compacted TWPP file (Zhang and Gupta 2001, section 3). The file has a header
/// with a directory, the dynamic call graph, and the functions' path traces, the most frequently
/// called function first. Time: O(calls + bytes).
pub fn write(twpp: &Twpp) -> Vec<u8> {
    let (calls, plain_length) = plain_calls::compress(&twpp.calls);
    let mut order: Vec<usize> = (0..twpp.functions.len()).collect();
    order.sort_by_key(|&k| Reverse(twpp.functions[k].calls()));
    let begin = HEADER + ENTRY * order.len() + calls.len();
    let mut entries = Vec::new();
    let mut blocks = Vec::new();
    for k in order {
        let function = &twpp.functions[k];
        let block = function_block::write(function);
        entries.push(DirectoryEntry {
            function: function.function,
            offset: (begin + blocks.len()) as u64,
            length: block.len() as u64,
            calls: function.calls(),
            paths: function.paths.len() as u32,
            checksum: crc32fast::hash(&block),
        });
        blocks.extend(block);
    }
    entries.sort_by_key(|entry| entry.function);
    let header = Header {
        functions: entries.len() as u32,
        calls_length: calls.len() as u64,
        plain_length,
        calls_checksum: crc32fast::hash(&calls),
    };
    let mut bytes = header.to_bytes();
    let directory: Vec<u8> = entries.into_iter().flat_map(|e| e.to_bytes()).collect();
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&bytes);
    checksum.update(&directory);
    bytes.extend(checksum.finalize().to_le_bytes());
    bytes.extend(directory);
    bytes.extend(calls);
    bytes.extend(blocks);
    bytes
}
