//! Reads and writes a function's block in a file. The block contains the function's traces, its
//! dictionaries, and its path traces. A path trace is a pair of a trace and a dictionary.

use afterimage_ids::FuncId;

use super::stored_traces::StoredTraces;
use crate::twpp::compact::{CompactPath, FunctionTraces};
use crate::twpp::dictionary::Dictionary;
use crate::twpp::timestamped::{block_of, put_block, take_block};
use crate::twpp::varint;

/// The sizes in bytes of the parts of a function's block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lengths {
    pub(super) traces: u64,
    pub(super) dictionaries: u64,
    /// The size of the pairs of traces and dictionaries, and of the lengths.
    pub(super) paths: u64,
}

/// Encodes the block of a function, which contains the lengths of the traces and the dictionaries,
/// and the three parts.
pub(super) fn write(function: &FunctionTraces) -> Vec<u8> {
    let mut traces = Vec::new();
    varint::put(&mut traces, function.traces.len() as u64);
    // The lengths are stored together, so that the traces can be located without reading them.
    for trace in &function.traces {
        varint::put(&mut traces, trace.as_bytes().len() as u64);
    }
    for trace in &function.traces {
        traces.extend_from_slice(trace.as_bytes());
    }
    let mut dictionaries = Vec::new();
    varint::put(&mut dictionaries, function.dictionaries.len() as u64);
    for dictionary in &function.dictionaries {
        write_dictionary(&mut dictionaries, dictionary);
    }
    let mut bytes = Vec::new();
    varint::put(&mut bytes, traces.len() as u64);
    varint::put(&mut bytes, dictionaries.len() as u64);
    bytes.append(&mut traces);
    bytes.append(&mut dictionaries);
    varint::put(&mut bytes, function.paths.len() as u64);
    for path in &function.paths {
        varint::put(&mut bytes, u64::from(path.trace));
        varint::put(&mut bytes, u64::from(path.dictionary));
        varint::put(&mut bytes, path.calls);
        varint::put(&mut bytes, path.unfinished);
    }
    bytes
}

fn write_dictionary(bytes: &mut Vec<u8>, dictionary: &Dictionary) {
    varint::put(bytes, dictionary.chains().len() as u64);
    let mut last = None;
    for chain in dictionary.chains() {
        let Some((&first, others)) = chain.split_first() else {
            continue;
        };
        put_block(bytes, first, last);
        last = Some(first);
        varint::put(bytes, others.len() as u64);
        for block in others {
            varint::put(bytes, u64::from(block.as_u32()));
        }
    }
}

/// Returns the lengths of the parts of a function's block. Does not read the parts. Returns `None`
/// if the block is malformed.
pub(super) fn lengths(bytes: &[u8]) -> Option<Lengths> {
    let mut rest = bytes;
    let traces = varint::take(&mut rest)?;
    let dictionaries = varint::take(&mut rest)?;
    let paths = (bytes.len() as u64).checked_sub(traces.checked_add(dictionaries)?)?;
    Some(Lengths {
        traces,
        dictionaries,
        paths,
    })
}

/// Reads the block of a function, except for the timestamps. On error, describes the fault. Time:
/// O(traces + bytes of dictionaries and path traces).
pub(super) fn read(function: FuncId, bytes: &[u8]) -> Result<StoredTraces<'_>, &'static str> {
    let lengths = lengths(bytes).ok_or("its parts are longer than it is")?;
    let mut rest = bytes;
    let _both = (varint::take(&mut rest), varint::take(&mut rest));
    let mut part = |length| split(&mut rest, length).ok_or("its parts are longer than it is");
    let traces = read_traces(part(lengths.traces)?)?;
    let dictionaries = read_dictionaries(part(lengths.dictionaries)?);
    let dictionaries = dictionaries.ok_or("its dictionaries are malformed")?;
    let paths = read_paths(rest).ok_or("its path traces are malformed")?;
    let (mut used_traces, mut used_dictionaries) =
        (vec![false; traces.len()], vec![false; dictionaries.len()]);
    let mut calls = 0u64;
    for path in &paths {
        let trace = used_traces.get_mut(path.trace as usize);
        let dictionary = used_dictionaries.get_mut(path.dictionary as usize);
        let (Some(trace), Some(dictionary)) = (trace, dictionary) else {
            return Err("it names a trace or dictionary that it does not have");
        };
        (*trace, *dictionary) = (true, true);
        if path.calls == 0 || path.unfinished > path.calls {
            return Err("a path trace has no calls, or fewer than did not return");
        }
        let sum = calls.checked_add(path.calls);
        calls = sum.ok_or("it has more calls than can be counted")?;
    }
    if used_traces.contains(&false) || used_dictionaries.contains(&false) {
        return Err("it has a trace or dictionary that it does not name");
    }
    Ok(StoredTraces {
        function,
        calls,
        traces,
        dictionaries,
        paths,
    })
}

fn split<'a>(bytes: &mut &'a [u8], length: u64) -> Option<&'a [u8]> {
    let (part, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some(part)
}

/// Returns the capacity to reserve for the `count` items that a file announces. An item takes at
/// least `each` bytes.
fn room(count: u64, bytes: &[u8], each: usize) -> usize {
    count.min((bytes.len() / each) as u64) as usize
}

fn read_traces(mut rest: &[u8]) -> Result<Vec<&[u8]>, &'static str> {
    let short = "its traces are cut off";
    let count = varint::take(&mut rest).ok_or(short)?;
    // Each entry has a length, and the numbers of steps and blocks.
    let mut lengths = Vec::with_capacity(room(count, rest, 3));
    for _ in 0..count {
        lengths.push(varint::take(&mut rest).ok_or(short)?);
    }
    let traces = lengths.into_iter().map(|length| split(&mut rest, length));
    let traces = traces.collect::<Option<_>>().ok_or(short)?;
    rest.is_empty()
        .then_some(traces)
        .ok_or("bytes follow its traces")
}

fn read_dictionaries(mut rest: &[u8]) -> Option<Vec<Dictionary>> {
    let count = varint::take(&mut rest)?;
    let mut dictionaries = Vec::with_capacity(room(count, rest, 1));
    let (mut blocks, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..count {
        blocks.clear();
        ends.clear();
        let mut last = None;
        for _ in 0..varint::take(&mut rest)? {
            let first = take_block(&mut rest, last)?;
            last = Some(first);
            blocks.push(first);
            for _ in 0..varint::take(&mut rest).filter(|&n| n > 0)? {
                blocks.push(block_of(varint::take(&mut rest)?)?);
            }
            ends.push(u32::try_from(blocks.len()).ok()?);
        }
        dictionaries.push(Dictionary::from_ascending(&blocks, &ends));
    }
    rest.is_empty().then_some(dictionaries)
}

fn read_paths(mut rest: &[u8]) -> Option<Vec<CompactPath>> {
    let count = varint::take(&mut rest)?;
    let mut paths = Vec::with_capacity(room(count, rest, 4));
    for _ in 0..count {
        paths.push(CompactPath {
            trace: u32::try_from(varint::take(&mut rest)?).ok()?,
            dictionary: u32::try_from(varint::take(&mut rest)?).ok()?,
            calls: varint::take(&mut rest)?,
            unfinished: varint::take(&mut rest)?,
        });
    }
    rest.is_empty().then_some(paths)
}
