//! Tests that TWPP files can be read back, that one function can be read alone, and that damage is
//! found or harmless.

use crate::twpp_support::{
    NaiveCall, collect, naive_calls, naive_dynamic_blocks, naive_paths, run,
};
use afterimage_ids::{BlockId, FuncId};
use afterimage_wpp::twpp::{
    DirectoryEntry, Event, FileError, LzwEncoder, Part, Reader, Twpp, write,
};
use proptest::prelude::*;

/// The length of the header, and of an entry of the directory.
const HEADER: usize = 40;
const ENTRY: usize = 40;
/// Offsets in the header (number of functions, length of the call graph) and in an entry (place and
/// checksum of its block).
const FUNCTIONS: usize = 12;
const CALLS_LENGTH: usize = 16;
const CALLS_CHECKSUM: usize = 32;
const CHECKSUM: usize = 36;
const LIMIT: usize = 1 << 20;

fn number<const N: usize>(bytes: &[u8], at: usize) -> usize {
    let mut number = [0; 8];
    number[..N].copy_from_slice(&bytes[at..at + N]);
    u64::from_le_bytes(number) as usize
}

/// Corrects the checksums of all parts that are in place, so that the decoders see the damage.
fn forge(bytes: &mut [u8]) {
    let directory = HEADER + ENTRY * number::<4>(bytes, FUNCTIONS);
    if directory > bytes.len() {
        return;
    }
    let calls = (directory, number::<8>(bytes, CALLS_LENGTH));
    put_checksum(bytes, CALLS_CHECKSUM, calls);
    for entry in (HEADER..directory).step_by(ENTRY) {
        let block = (
            number::<8>(bytes, entry + 8),
            number::<8>(bytes, entry + 16),
        );
        put_checksum(bytes, entry + 32, block);
    }
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&bytes[..CHECKSUM]);
    checksum.update(&bytes[HEADER..directory]);
    bytes[CHECKSUM..HEADER].copy_from_slice(&checksum.finalize().to_le_bytes());
}

fn put_checksum(bytes: &mut [u8], at: usize, (begin, length): (usize, usize)) {
    if let Some(part) = bytes.get(begin..begin.saturating_add(length)) {
        let checksum = crc32fast::hash(part);
        bytes[at..at + 4].copy_from_slice(&checksum.to_le_bytes());
    }
}

/// Reads a function in every way. Checks that nothing panics, and that all ways agree on whether a
/// trace is valid.
fn read_function(reader: &Reader<'_>, entry: &DirectoryEntry) {
    let Ok(stored) = reader.function(entry.function) else {
        return;
    };
    let stored = stored.expect("the directory has it");
    assert_eq!(stored.function(), entry.function);
    assert_eq!(stored.calls(), entry.calls);
    assert_eq!(stored.paths().len(), entry.paths as usize);
    let alone: Result<Vec<_>, _> = (0..stored.paths().len())
        .map(|k| stored.parts(k).map(|(trace, _)| trace.len()))
        .collect();
    match stored.check() {
        Ok(all) => {
            let lengths = (0..all.paths.len()).map(|k| all.parts(k).0.len());
            assert_eq!(alone, Ok(lengths.collect()));
        }
        Err(FileError::Malformed(part, what)) => {
            assert_eq!(part, Part::Function(entry.function));
            assert!(alone.is_err() || what == "it has more blocks than a run can execute");
        }
        Err(error) => panic!("a block whose checksum is right is refused: {error}"),
    }
}

/// Reads everything. Checks that nothing panics, and that an accepted file represents a run.
fn read_all(bytes: &[u8]) -> Result<Twpp, FileError> {
    let reader = Reader::open(bytes)?;
    let _ = reader.sizes();
    for entry in reader.entries() {
        read_function(&reader, &entry);
    }
    let twpp = reader.twpp(LIMIT)?;
    let stages = twpp.stages();
    if stages.unique < 1 << 20
        && let Ok(wpp) = twpp.expand()
        && stages.blocks < 1 << 20
    {
        let events: Vec<_> = wpp.events().collect();
        let calls = naive_calls(&events);
        assert_eq!(calls.len() as u64, stages.calls);
        let outermost = |c: &NaiveCall| c.depth == 0;
        assert!(calls.iter().all(|c| c.position == 0 || !outermost(c)));
        assert_eq!(
            naive_paths(&calls).values().map(|u| u.0).sum::<u64>(),
            stages.calls
        );
        assert!(twpp.graph_totals().is_ok());
    }
    Ok(twpp)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn files_come_back(events in run(3000)) {
        let wpp = collect(&events);
        let twpp = Twpp::compact(wpp.clone());
        let bytes = write(&twpp);
        let reader = Reader::open(&bytes).unwrap();
        let read = reader.twpp(LIMIT).unwrap();
        prop_assert_eq!(&read, &twpp);
        prop_assert_eq!(write(&read), bytes.clone());
        prop_assert!(read.expand().unwrap().events().eq(events.iter().copied()));
        prop_assert_eq!(reader.sizes().unwrap().total(), bytes.len() as u64);
        let stages = twpp.stages();
        prop_assert_eq!(reader.sizes().unwrap().calls, stages.call_graph_compressed);
        prop_assert_eq!(reader.plain_calls(), stages.call_graph_plain);
        let mut entries: Vec<_> = reader.entries().collect();
        entries.sort_by_key(|e| e.offset);
        prop_assert!(entries.is_sorted_by(|a, b| a.calls >= b.calls), "the most called first");
    }

    #[test]
    fn a_function_is_read_alone(events in run(1000)) {
        let twpp = Twpp::compact(collect(&events));
        let bytes = write(&twpp);
        let directory = HEADER + ENTRY * twpp.functions.len();
        for f in &twpp.functions {
            // Everything except the directory and the function's own block is overwritten.
            let mut alone = vec![0xff; bytes.len()];
            alone[..directory].copy_from_slice(&bytes[..directory]);
            let entry = Reader::open(&bytes).unwrap().entry(f.function).unwrap();
            let own = entry.offset as usize..(entry.offset + entry.length) as usize;
            alone[own.clone()].copy_from_slice(&bytes[own]);
            let reader = Reader::open(&alone).unwrap();
            let read = reader.function(f.function).unwrap().unwrap();
            for k in 0..f.paths.len() {
                let (trace, dictionary) = read.parts(k).unwrap();
                prop_assert_eq!((&trace.into_owned(), dictionary), f.parts(k));
            }
            prop_assert_eq!(&read.check().unwrap().into_owned(), f);
            for (k, path) in f.paths.iter().enumerate() {
                prop_assert!(path.calls > 0);
                let trace: Vec<_> = f.expand(k).unwrap().blocks().collect();
                let graph = f.dynamic_cfg(k).unwrap();
                prop_assert_eq!(graph.nodes().len(), naive_dynamic_blocks(&trace).len());
            }
            for other in twpp.functions.iter().filter(|o| o.function != f.function) {
                let damaged = reader.function(other.function);
                prop_assert_eq!(damaged, Err(FileError::Checksum(Part::Function(other.function))));
            }
        }
        prop_assert_eq!(Reader::open(&bytes).unwrap().function(FuncId::from_u32(99)), Ok(None));
    }

    #[test]
    fn every_flipped_bit_is_found(events in run(200), at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let mut bytes = write(&Twpp::compact(collect(&events)));
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(read_all(&bytes).is_err(), "byte {at}, bit {bit}");
    }

    #[test]
    fn every_cut_is_found(events in run(200), at in any::<prop::sample::Index>()) {
        let bytes = write(&Twpp::compact(collect(&events)));
        prop_assert!(read_all(&bytes[..at.index(bytes.len())]).is_err());
    }

    #[test]
    fn forged_files_are_refused_or_are_runs(
        events in run(200),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = write(&Twpp::compact(collect(&events)));
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        forge(&mut bytes);
        let _ = read_all(&bytes);
    }

    #[test]
    fn noise_is_refused(noise in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(read_all(&noise).is_err());
    }
}

#[test]
fn an_unknown_version_and_another_file_are_named() {
    let events = [
        Event::Enter(FuncId::from_u32(0)),
        Event::Block(BlockId::from_u32(0)),
    ];
    let mut bytes = write(&Twpp::compact(collect(&events)));
    assert_eq!(read_all(b"\0asm\x01\0\0\0"), Err(FileError::NotTwpp));
    bytes[8] = 2;
    assert_eq!(read_all(&bytes), Err(FileError::UnknownVersion(2)));
    let message = FileError::UnknownVersion(2).to_string();
    assert_eq!(
        message,
        "written in version 2 of the format, but this program reads 1"
    );
}

#[test]
fn the_directory_must_agree_with_the_blocks() {
    let events = [
        Event::Enter(FuncId::from_u32(4)),
        Event::Block(BlockId::from_u32(0)),
    ];
    let bytes = write(&Twpp::compact(collect(&events)));
    let part = Part::Function(FuncId::from_u32(4));
    let what = "its calls differ from those of the directory";
    // The fields are the number of path traces, and the number of calls.
    for field in [4, 24] {
        let mut other = bytes.clone();
        other[HEADER + field] += 1;
        forge(&mut other);
        assert_eq!(read_all(&other), Err(FileError::Malformed(part, what)));
    }
    let mut elsewhere = bytes.clone();
    elsewhere[HEADER + 8 + 4] = 1;
    forge(&mut elsewhere);
    assert_eq!(read_all(&elsewhere), Err(FileError::Truncated(part)));
    let mut twice = bytes[..HEADER].to_vec();
    twice.extend([&bytes[HEADER..HEADER + ENTRY]; 2].concat());
    twice.extend(&bytes[HEADER + ENTRY..]);
    twice[FUNCTIONS] = 2;
    forge(&mut twice);
    let what = "its functions do not ascend";
    assert_eq!(
        read_all(&twice),
        Err(FileError::Malformed(Part::Directory, what))
    );
}

/// Tests a call graph that claims two open calls, although there is only one call.
#[test]
fn no_more_calls_are_open_than_there_are() {
    let events = [
        Event::Enter(FuncId::from_u32(0)),
        Event::Block(BlockId::from_u32(0)),
    ];
    let mut bytes = write(&Twpp::compact(collect(&events)));
    let compressed = |open| {
        // The number of open calls is followed by one call from outside: function 0, path trace 0,
        // no calls.
        let mut encoder = LzwEncoder::default();
        encoder.push(&[open, 1, 0, 0, 0]);
        encoder.finish()
    };
    let begin = HEADER + ENTRY;
    let (one, two) = (compressed(1), compressed(2));
    assert_eq!(bytes[begin..begin + one.len()], one);
    bytes[begin..begin + one.len()].copy_from_slice(&two);
    forge(&mut bytes);
    let what = "more calls are open than exist";
    assert_eq!(
        read_all(&bytes),
        Err(FileError::Malformed(Part::Calls, what))
    );
}
