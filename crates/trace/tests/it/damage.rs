//! Checks that truncated files, flipped bits and garbage give the right content or an error, and
//! never wrong content.

use std::fs;
use std::path::Path;

use afterimage_ids::ImportId;
use afterimage_trace::{
    Event, Existing, HostWrite, Kind, Rule, SectionReader, TraceError, TraceFile, TraceWriter,
    repair,
};

use crate::sample;

#[test]
fn a_file_cut_at_any_byte_gives_its_last_complete_state() {
    let (bytes, first) = sample::two_states();
    for length in 0..=bytes.len() {
        match TraceFile::from_bytes(bytes[..length].to_vec()) {
            Err(TraceError::Empty) => assert_eq!(length, 0),
            Err(TraceError::DamagedHeader) => assert!((1..16).contains(&length)),
            Err(error) => panic!("{length}: {error}"),
            Ok(file) => {
                let whole = sample::assert_never_wrong(&file);
                let (state, parts, end) = match length {
                    _ if length == bytes.len() => (Some(2), 5, bytes.len()),
                    _ if length >= first => (Some(1), 4, first),
                    _ => (None, whole, file.length() as usize),
                };
                assert_eq!((file.state(), whole), (state, parts), "cut at {length}");
                assert_eq!(file.length() as usize, end);
                assert_eq!(file.ignored_bytes() as usize, length - end);
            }
        }
    }
}

#[test]
fn a_recording_that_was_cut_keeps_its_complete_chunks() {
    let (bytes, first) = sample::two_states();
    let whole = |length| {
        let file = TraceFile::from_bytes(bytes[..length].to_vec()).unwrap();
        (
            file.log().map_or(0, Iterator::count),
            sample::assert_never_wrong(&file),
        )
    };
    let seen: Vec<_> = (16..first).map(whole).collect();
    assert!(
        seen.is_sorted(),
        "a longer piece of the file never has less"
    );
    let mut steps = seen;
    steps.dedup();
    // META, MODULE, two chunks of events (the second makes LOG whole), LOG's end, END.
    assert_eq!(steps, [(0, 0), (0, 1), (0, 2), (4, 2), (7, 3), (7, 4)]);
}

#[test]
fn every_flipped_bit_is_an_error_or_harmless_and_verify_sees_it() {
    let (bytes, _) = sample::two_states();
    for bit in 0..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        if let Ok(file) = TraceFile::from_bytes(bytes) {
            sample::assert_never_wrong(&file);
            assert!(!file.verify().is_sound(), "bit {bit}");
        }
    }
}

#[test]
fn a_flipped_bit_in_a_recording_without_a_footer_ends_its_state_there() {
    let (bytes, first) = sample::two_states();
    // The position of the first state's index.
    let index = u64::from_le_bytes(bytes[first - 24..first - 16].try_into().unwrap()) as usize;
    for bit in 16 * 8..index * 8 {
        let mut bytes = bytes[..index].to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let file = TraceFile::from_bytes(bytes).unwrap();
        sample::assert_never_wrong(&file);
        assert!(
            file.length() as usize <= bit / 8,
            "what is left of the state is intact"
        );
        let rules: Vec<_> = file.verify().findings.iter().map(|it| it.rule).collect();
        assert!(
            rules.contains(&Rule::Tail) && !rules.contains(&Rule::Chunk),
            "{rules:?}"
        );
    }
}

/// An event of several chunks, cut in its middle.
#[test]
fn a_recording_cut_inside_a_long_event_ends_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.aft");
    let writer = TraceWriter::create(&path, Existing::Kept).unwrap();
    let mut log = writer.log().unwrap();
    let long = HostWrite {
        memory: 0,
        address: 0,
        bytes: vec![7; 5 << 20],
    };
    let call = Event::HostCall {
        import: ImportId::from_u32(0),
        args: vec![],
        results: vec![],
        writes: vec![long],
        reads: vec![],
        read_digest: 0,
    };
    let growth = Event::MemoryGrow { granted: true };
    log.event(&growth).unwrap();
    log.event(&call).unwrap();
    log.event(&growth).unwrap();
    log.finish().unwrap();
    drop(writer);
    let bytes = fs::read(&path).unwrap();
    let mut seen = Vec::new();
    for length in 16..=bytes.len() {
        let file = TraceFile::from_bytes(bytes[..length].to_vec()).unwrap();
        let Ok(log) = file.log() else { continue };
        let events: Vec<_> = log.map(|event| event.unwrap()).collect();
        assert!([growth.clone(), call.clone(), growth.clone()].starts_with(&events));
        seen.push(events.len());
    }
    seen.dedup();
    assert_eq!(seen, [1, 2, 3]);
}

#[test]
fn what_follows_the_last_state_is_ignored_and_counted() {
    let (bytes, _) = sample::two_states();
    let footer = &bytes[bytes.len() - 32..];
    let tails: &[&[u8]] = &[
        &[0],
        &[0xff; 1000],
        b"AFTC",
        footer,
        &bytes,
        &bytes[16..],
        &[footer, footer].concat(),
    ];
    for tail in tails {
        let file = TraceFile::from_bytes([&bytes, *tail].concat()).unwrap();
        assert_eq!(sample::assert_never_wrong(&file), 5);
        assert_eq!(
            (file.state(), file.ignored_bytes()),
            (Some(2), tail.len() as u64)
        );
    }
}

/// Returns the file after `change` was made to its bytes.
fn changed(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

/// Returns the start of a file's last index.
fn last_index(bytes: &[u8]) -> usize {
    let at = bytes.len() - 24;
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

#[test]
fn appending_to_a_cut_file_goes_on_from_its_last_state() {
    let (bytes, first) = sample::two_states();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.aft");
    let index = last_index(&bytes);
    for length in first..bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        let added = sample::append(&path);
        let after = fs::read(&path).unwrap();
        if length < index + 40 {
            added.unwrap();
            assert_eq!(after, bytes, "cut at {length}");
        } else {
            // Everything that an index lists is written before the index is begun.
            assert!(matches!(added, Err(TraceError::Hidden { .. })));
            assert_eq!(after, bytes[..length], "cut at {length}");
        }
    }
}

/// Returns everything readable in a file: its sections, up to the first damaged chunk.
fn readable(path: &Path) -> Vec<(Kind, Vec<u8>)> {
    let Ok(file) = TraceFile::open(path) else {
        return vec![];
    };
    let sections = (0..).map_while(|position| file.section(position));
    let read = |mut section: SectionReader| {
        let mut bytes = Vec::new();
        while section.advance().is_ok_and(|more| more) {
            bytes.extend(section.bytes());
        }
        (section.kind(), bytes)
    };
    sections.map(read).collect()
}

/// Returns possible bytes after a file. They are nothing, garbage, the apparent beginning of a
/// chunk, or a piece of the file itself.
fn tails(bytes: &[u8]) -> Vec<Vec<u8>> {
    let tail = |bytes: &[u8]| bytes.to_vec();
    vec![
        vec![],
        vec![0],
        vec![b'A'],
        vec![0; 100],
        tail(&bytes[16..60]),
        tail(&bytes[last_index(bytes)..]),
        tail(&bytes[16..]),
    ]
}

/// Damages a file in small and larger ways. Adding to it must either refuse, name the remedy and
/// leave the file unchanged, or lose nothing that was readable.
#[test]
fn adding_to_a_damaged_file_loses_nothing() {
    let (bytes, first) = sample::two_states();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.aft");
    let (mut added, mut refused) = (0, 0);
    let mut check = |damaged: &[u8], what: &str| {
        fs::write(&path, damaged).unwrap();
        let before = readable(&path);
        match sample::append(&path) {
            Ok(()) => {
                added += 1;
                let mut after = readable(&path);
                for section in before {
                    let at = after
                        .iter()
                        .position(|it| it.1.starts_with(&section.1) && it.0 == section.0);
                    let at = at.unwrap_or_else(|| panic!("{what}: {} is lost", section.0));
                    after.remove(at);
                }
                assert_eq!(after.len(), 1, "{what}: the counts that were added");
            }
            Err(error) => {
                refused += 1;
                assert!(error.to_string().contains("verify --repair"), "{error}");
                assert_eq!(fs::read(&path).unwrap(), damaged, "{what}");
            }
        }
    };
    for whole in [
        &bytes[..],
        &bytes[..first],
        &bytes[..last_index(&bytes[..first])],
    ] {
        for (number, tail) in tails(&bytes).iter().enumerate() {
            for bit in (0..whole.len() * 8).step_by(if number == 0 { 5 } else { 67 }) {
                let mut damaged = [whole, tail].concat();
                damaged[bit / 8] ^= 1 << (bit % 8);
                check(
                    &damaged,
                    &format!("{} bytes, bit {bit}, tail {number}", whole.len()),
                );
            }
        }
    }
    assert!(added > 500 && refused > 500, "{added} {refused}");
}

#[test]
fn damage_to_one_chunk_does_not_hide_the_last_state() {
    let (bytes, first) = sample::two_states();
    let index = last_index(&bytes);
    for byte in first..index {
        // The following bytes move the footer from the place that is searched first.
        let mut damaged = [&bytes[..], b"x"].concat();
        damaged[byte] ^= 1;
        let file = TraceFile::from_bytes(damaged).unwrap();
        assert_eq!((file.state(), file.ignored_bytes()), (Some(2), 1), "{byte}");
        sample::assert_never_wrong(&file);
    }
}

/// Returns the ranges and kinds of all chunk payloads except those of indexes, by walking over the
/// intact file.
fn payloads(bytes: &[u8]) -> Vec<(std::ops::Range<usize>, Kind)> {
    let (mut at, mut found) = (16, Vec::new());
    while at < bytes.len() {
        if bytes[at..].starts_with(b"AFTEND") {
            at += 32;
            continue;
        }
        let kind = Kind(u16::from_le_bytes([bytes[at + 4], bytes[at + 5]]));
        let stored = u32::from_le_bytes(bytes[at + 24..at + 28].try_into().unwrap());
        let payload = at + 40..at + 40 + stored as usize;
        at = payload.end;
        if kind != Kind::INDEX {
            found.push((payload, kind));
        }
    }
    found
}

#[test]
fn a_repaired_copy_has_all_that_is_sound() {
    let (bytes, first) = sample::two_states();
    let dir = tempfile::tempdir().unwrap();
    let (path, copy) = (dir.path().join("a.aft"), dir.path().join("b.aft"));
    for (whole, parts) in [(&bytes[..], 5), (&bytes[..first], 4)] {
        let payloads = payloads(whole);
        for (number, tail) in tails(&bytes).iter().take(4).enumerate() {
            for bit in (0..whole.len() * 8).step_by(if number == 0 { 5 } else { 67 }) {
                let what = format!("{} bytes, bit {bit}, tail {number}", whole.len());
                let mut damaged = [whole, tail].concat();
                damaged[bit / 8] ^= 1 << (bit % 8);
                fs::write(&path, &damaged).unwrap();
                let hit = payloads
                    .iter()
                    .find(|(payload, _)| payload.contains(&(bit / 8)));
                let repaired = repair(&path, &copy, Existing::Replaced);
                assert_eq!(fs::read(&path).unwrap(), damaged, "{what}");
                let repaired = match (repaired, hit) {
                    (Err(error), Some((_, Kind::META | Kind::MODULE))) => {
                        assert!(error.to_string().contains("record the program again"));
                        continue;
                    }
                    (repaired, _) => repaired.unwrap_or_else(|error| panic!("{what}: {error}")),
                };
                let file = TraceFile::open(&copy).unwrap();
                let lost: Vec<_> = repaired.lost.iter().map(|lost| lost.kind).collect();
                let rules: Vec<_> = file.verify().findings.iter().map(|it| it.rule).collect();
                let found = sample::never_wrong(&file, hit.is_some());
                match hit {
                    None => assert_eq!((lost, rules, found), (vec![], vec![], parts), "{what}"),
                    // The recording then counts as cut off there.
                    Some((_, Kind::LOG)) => {
                        assert_eq!(lost.len(), parts - 2, "{what}: {lost:?}");
                        assert!(rules.iter().all(|rule| *rule == Rule::Complete), "{what}");
                        assert_eq!(found, 2, "{what}");
                    }
                    Some((_, kind)) => {
                        assert_eq!((lost, found), (vec![*kind], parts - 1), "{what}");
                        assert_eq!(rules, [], "{what}");
                    }
                }
            }
        }
    }
    fs::write(&path, &bytes).unwrap();
    assert!(matches!(
        repair(&path, &copy, Existing::Kept),
        Err(TraceError::Exists)
    ));
    fs::write(&path, "no recording").unwrap();
    assert!(matches!(
        repair(&path, &copy, Existing::Replaced),
        Err(TraceError::NotATrace)
    ));
}

/// Truncates a file within chunks, an index and a footer. Every whole chunk must be in the copy, in
/// its section. Without META and MODULE, nothing can be repaired.
#[test]
fn a_file_cut_at_any_byte_is_repaired_or_refused_by_name() {
    let (bytes, _) = sample::two_states();
    let dir = tempfile::tempdir().unwrap();
    let (path, copy) = (dir.path().join("a.aft"), dir.path().join("b.aft"));
    let intact = dir.path().join("intact.aft");
    fs::write(&intact, &bytes).unwrap();
    let intact = readable(&intact);
    let payloads = payloads(&bytes);
    let mut refused = 0;
    for length in 0..=bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        let whole = payloads.iter().filter(|(payload, _)| payload.end <= length);
        let whole = whole.count();
        match repair(&path, &copy, Existing::Replaced) {
            Err(error) => {
                assert!(whole < 2, "cut at {length}: {error}");
                refused += 1;
                match (length, &error) {
                    (0, TraceError::Empty) | (1..16, TraceError::DamagedHeader) => {}
                    (_, TraceError::NotATrace) => assert_eq!(whole, 0, "cut at {length}"),
                    (16.., TraceError::Missing(kind) | TraceError::Cut(kind)) => {
                        assert!(matches!(*kind, Kind::META | Kind::MODULE), "{error}");
                    }
                    _ => panic!("cut at {length}: {error}"),
                }
            }
            Ok(repaired) => {
                assert!(whole >= 2, "cut at {length}");
                assert_eq!(repaired.lost.len() as u64 + repaired.whole, {
                    let kinds = payloads[..whole].iter().map(|(_, kind)| *kind);
                    kinds.collect::<std::collections::BTreeSet<_>>().len() as u64
                });
                let file = TraceFile::open(&copy).unwrap();
                let rules = file.verify().findings;
                assert!(
                    rules.iter().all(|it| it.rule == Rule::Complete),
                    "cut at {length}: {rules:?}"
                );
                let sections = (0..).map_while(|position| file.section(position));
                let chunks: usize = sections.map(|section| section.chunks()).sum();
                assert_eq!(chunks, whole, "cut at {length}");
                for ((kind, found), (of, all)) in readable(&copy).iter().zip(&intact) {
                    assert_eq!(kind, of, "cut at {length}");
                    assert!(all.starts_with(found), "cut at {length}: {kind}");
                }
            }
        }
    }
    assert!(refused > 16);
}

/// A recording that was killed, with a byte in the middle damaged later.
#[test]
fn a_cut_recording_is_repaired_as_far_as_it_goes() {
    let (bytes, first) = sample::two_states();
    let dir = tempfile::tempdir().unwrap();
    let (path, copy) = (dir.path().join("a.aft"), dir.path().join("b.aft"));
    for length in (16..first).step_by(23) {
        for byte in (16..length).step_by(7) {
            let mut damaged = bytes[..length].to_vec();
            damaged[byte] ^= 1;
            fs::write(&path, &damaged).unwrap();
            let before = sample::assert_never_wrong(&TraceFile::open(&path).unwrap());
            if let Ok(repaired) = repair(&path, &copy, Existing::Replaced) {
                let file = TraceFile::open(&copy).unwrap();
                let rules: Vec<_> = file.verify().findings.iter().map(|it| it.rule).collect();
                assert!(
                    rules.iter().all(|rule| *rule == Rule::Complete),
                    "{rules:?}"
                );
                assert!(sample::never_wrong(&file, true) >= before, "{repaired:?}");
            }
        }
    }
}

#[test]
fn appending_to_a_recording_without_a_footer_gives_it_one() {
    let (bytes, first) = sample::two_states();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.aft");
    for length in 16..first {
        fs::write(&path, &bytes[..length]).unwrap();
        let parts = sample::assert_never_wrong(&TraceFile::open(&path).unwrap());
        sample::append(&path).unwrap();
        let file = TraceFile::open(&path).unwrap();
        assert_eq!((file.state(), file.ignored_bytes()), (Some(2), 0));
        assert_eq!(file.counts().unwrap(), Some(sample::counts()));
        // The ending is still missing, unless it was complete.
        let has_end = file
            .sections()
            .unwrap()
            .iter()
            .any(|it| it.kind == Kind::END);
        assert_eq!(file.end().unwrap().is_some(), has_end);
        assert_eq!(
            file.meta().is_ok() as usize + file.module().is_ok() as usize,
            parts.min(2)
        );
    }
}

#[test]
fn what_was_written_before_is_never_changed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.aft");
    sample::record(&path);
    let mut before = fs::read(&path).unwrap();
    for _ in 0..3 {
        sample::append(&path).unwrap();
        let after = fs::read(&path).unwrap();
        assert!(after.len() > before.len() && after.starts_with(&before));
        before = after;
    }
}

#[test]
fn a_writer_that_appends_and_is_dropped_takes_its_bytes_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.aft");
    sample::record(&path);
    let before = fs::read(&path).unwrap();
    let writer = TraceWriter::append(&path).unwrap();
    writer.counts(&sample::counts()).unwrap();
    assert!(fs::read(&path).unwrap().len() > before.len());
    let reader = TraceFile::open(&path).unwrap();
    assert_eq!(reader.counts().unwrap(), None, "not committed");
    drop(writer);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_damaged_older_footer_harms_nobody_but_verify() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.aft");
    let first = sample::record(&path) as usize;
    sample::append(&path).unwrap();
    changed(&path, |bytes| bytes[first - 1] ^= 1);
    let file = TraceFile::open(&path).unwrap();
    assert_eq!(sample::assert_never_wrong(&file), 5);
    assert!(!file.verify().is_sound());
}

/// Returns a file with a section so long that several threads decode its chunks, and with an
/// incompressible module.
fn long_module() -> (Vec<u8>, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.aft");
    let mut state = 1u64;
    let mut module = Vec::new();
    while module.len() < 5 << 20 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        module.extend((state >> 32).to_le_bytes());
    }
    let writer = TraceWriter::create(&path, Existing::Kept).unwrap();
    writer.meta(&sample::meta()).unwrap();
    writer.module(&module).unwrap();
    writer.commit().unwrap();
    drop(writer);
    (fs::read(&path).unwrap(), module)
}

fn module_section(file: &TraceFile) -> SectionReader {
    let mut all = (0..).map_while(|position| file.section(position));
    all.find(|section| section.kind() == Kind::MODULE).unwrap()
}

/// Returns the module's bytes, read chunk by chunk.
fn one_by_one(file: &TraceFile) -> Result<Vec<u8>, TraceError> {
    let mut section = module_section(file);
    let mut bytes = Vec::new();
    while section.advance()? {
        bytes.extend(section.bytes());
    }
    Ok(bytes)
}

#[test]
fn chunks_that_are_decoded_at_once_are_those_that_are_decoded_one_by_one() {
    let (bytes, module) = long_module();
    let file = TraceFile::from_bytes(bytes).unwrap();
    let section = module_section(&file);
    let count = section.chunks();
    assert!(count > 3, "{count} chunks");
    assert_eq!(one_by_one(&file).unwrap(), module);
    assert_eq!(file.module().unwrap(), module);
    let mut at = 0;
    for chunk in 0..count {
        let length = section.length(chunk..chunk + 1).unwrap() as usize;
        let own = &module[at..][..length];
        assert_eq!(section.decoded(chunk..chunk + 1).unwrap(), own);
        assert_eq!(section.decoded(chunk..count).unwrap(), module[at..]);
        at += length;
    }
    assert_eq!(section.length(0..count).unwrap() as usize, module.len());
}

#[test]
fn of_damaged_chunks_in_the_middle_the_first_is_told() {
    let (mut bytes, _) = long_module();
    let length = bytes.len();
    for at in [length * 4 / 5, length / 2] {
        bytes[at] ^= 1;
    }
    let file = TraceFile::from_bytes(bytes).unwrap();
    let told = |error: TraceError| match error {
        TraceError::Damaged { sequence, .. } => (sequence, error.to_string()),
        _ => panic!("{error}"),
    };
    let expected = told(one_by_one(&file).unwrap_err());
    assert!(expected.0 > 0, "{expected:?}");
    assert_eq!(told(file.module().unwrap_err()), expected);
    let section = module_section(&file);
    let chunks = section.chunks();
    let later = told(
        section
            .decoded(expected.0 as usize + 1..chunks)
            .unwrap_err(),
    );
    assert!(later.0 > expected.0, "{later:?} {expected:?}");
}

#[test]
fn chunks_that_a_section_has_not_are_an_error() {
    let (bytes, _) = sample::two_states();
    let file = TraceFile::from_bytes(bytes).unwrap();
    let section = module_section(&file);
    let count = section.chunks();
    assert_eq!(section.length(count..count).unwrap(), 0);
    for (from, to) in [
        (0, count + 1),
        (count, count + 1),
        (count + 1, count + 1),
        (1, 0),
    ] {
        for error in [
            section.length(from..to).unwrap_err(),
            section.decoded(from..to).unwrap_err(),
        ] {
            assert!(matches!(error, TraceError::NoChunks { .. }), "{error}");
        }
    }
}
