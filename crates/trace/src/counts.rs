//! Exact edge counts: the COUNTS section.

use afterimage_ids::{BlockId, Counts, FunctionCounts};

use crate::event::entity;
use crate::wire::{Bytes, Fault, put_bytes, put_varint};
use crate::{Result, TraceError};

/// All functions together have at most this many edges: a gibibyte of counts.
pub(crate) const MAX_EDGES: usize = 1 << 27;

/// Exact counts of a recorded execution, and how they were made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountsLens {
    /// The counts of every defined function.
    pub counts: Counts,
    /// How the counters were placed.
    pub mode: String,
    /// How many counters the instrumented module had.
    pub counters: u64,
    /// How many increments the counters made.
    pub increments: u64,
}

/// Zeros are written out, one byte each, so that no length in the file is larger
/// than the bytes behind it; compression makes functions that never ran cost next to nothing.
pub(crate) fn encode(lens: &CountsLens) -> Result<Vec<u8>> {
    let edges: usize = lens
        .counts
        .functions
        .iter()
        .map(|function| function.edges.len())
        .sum();
    if edges > MAX_EDGES {
        return Err(TraceError::TooLarge {
            what: "the number of edges",
            limit: MAX_EDGES as u64,
        });
    }
    let mut bytes = Vec::new();
    let out = &mut bytes;
    put_bytes(out, lens.mode.as_bytes());
    put_varint(out, lens.counters);
    put_varint(out, lens.increments);
    put_varint(out, lens.counts.functions.len() as u64);
    for function in &lens.counts.functions {
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
    let functions = bytes.count(3)?;
    let mut total = 0;
    let functions = (0..functions)
        .map(|_| {
            let entries = bytes.varint()?;
            let edges = bytes.count(1)?;
            total += edges;
            if total > MAX_EDGES {
                return bytes.fault("too many edges");
            }
            let edges = (0..edges)
                .map(|_| bytes.varint())
                .collect::<Result<_, Fault>>()?;
            let open = bytes.count(2)?;
            let open = (0..open)
                .map(|_| Ok((BlockId::from_u32(entity(bytes)?), bytes.varint()?)))
                .collect::<Result<_, Fault>>()?;
            Ok(FunctionCounts {
                entries,
                edges,
                open,
            })
        })
        .collect::<Result<_, Fault>>()?;
    bytes.end()?;
    Ok(CountsLens {
        counts: Counts { functions },
        mode,
        counters,
        increments,
    })
}
