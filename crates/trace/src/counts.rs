//! Defines the COUNTS section, which contains exact edge counts.

use afterimage_ids::{BlockId, Counts, FunctionCounts};

use crate::Result;
use crate::event::entity;
use crate::limits::{MAX_EDGES, MAX_FUNCTIONS, MAX_OPEN, check};
use crate::wire::{Bytes, Fault, put_bytes, put_varint};

/// Exact counts of a recorded run, with facts about the counters from which they were derived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountsLens {
    /// The counts of every defined function.
    pub counts: Counts,
    /// The mode in which the counters were placed.
    pub mode: String,
    /// The number of counters in the instrumented module.
    pub counters: u64,
    /// The number of increments of all counters.
    pub increments: u64,
}

/// Encodes the counts. Zeros are stored as one byte each, so that no length in the file exceeds the
/// bytes that follow it. Compression makes the zeros of functions that never ran nearly free.
pub(crate) fn encode(lens: &CountsLens) -> Result<Vec<u8>> {
    let functions = &lens.counts.functions;
    check("the number of functions", functions.len(), MAX_FUNCTIONS)?;
    let edges = functions.iter().map(|function| function.edges.len()).sum();
    check("the number of edges", edges, MAX_EDGES)?;
    let open = functions.iter().map(|function| function.open.len()).sum();
    check("the number of open blocks", open, MAX_OPEN)?;
    let mut bytes = Vec::new();
    let out = &mut bytes;
    put_bytes(out, lens.mode.as_bytes());
    put_varint(out, lens.counters);
    put_varint(out, lens.increments);
    put_varint(out, functions.len() as u64);
    for function in functions {
        put_varint(out, function.entries);
        put_varint(out, function.edges.len() as u64);
        for &count in &function.edges {
            put_varint(out, count);
        }
        put_varint(out, function.open.len() as u64);
        for &(block, count) in &function.open {
            put_varint(out, block.as_u32().into());
            put_varint(out, count);
        }
    }
    Ok(bytes)
}

pub(crate) fn decode(bytes: &[u8]) -> Result<CountsLens, Fault> {
    let bytes = &mut Bytes::new(bytes);
    let mode = bytes.text()?;
    let counters = bytes.varint()?;
    let increments = bytes.varint()?;
    // The lists of all functions share the limits.
    let (mut edges_left, mut open_left) = (MAX_EDGES, MAX_OPEN);
    let functions = bytes.list(3, MAX_FUNCTIONS, |bytes| {
        let entries = bytes.varint()?;
        let edges = bytes.list(1, edges_left, Bytes::varint)?;
        let open = bytes.list(2, open_left, |bytes| {
            Ok((BlockId::from_u32(entity(bytes)?), bytes.varint()?))
        })?;
        edges_left -= edges.len() as u64;
        open_left -= open.len() as u64;
        Ok(FunctionCounts {
            entries,
            edges,
            open,
        })
    })?;
    bytes.end()?;
    Ok(CountsLens {
        counts: Counts { functions },
        mode,
        counters,
        increments,
    })
}
